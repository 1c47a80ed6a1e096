/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/pack_alloc.c - room for compressed streams, by the byte.
 *
 * The next stream goes to where the last one ended (w->packed), also across the end of
 * the host cluster if the next one is free. A host cluster's count says how many streams
 * it holds a part of; once that is as large as counts can be, the next stream begins in
 * another cluster. Where the next cluster is taken, streams that still fit fill up what is
 * left of the present one, and the others go to new clusters.
 *
 * Dropping a reference to the cluster of the cursor puts an end to it (qcow2_drop): a
 * request that has read the cursor has entered before, and counts its streams before
 * that drop is settled, so neither is the cluster punched nor does it become free.
 *
 * An image that is opened begins with a new cluster.
 */
#include "fmt/qcow2/pack.h"

/* A place for a stream, and how many there are in the part of its cluster before it. */
struct spot {
	uint64_t at;
	uint64_t count;
};

static uint64_t most(const struct qcow2 *q)
{
	return UINT64_MAX >> (64 - (1u << q->h.refcount_order));
}

static uint64_t cluster_of(const struct qcow2 *q, uint64_t host)
{
	return host >> q->h.cluster_bits;
}

/* Puts a stream there and moves the spot behind it. */
static uint64_t put(const struct qcow2 *q, struct spot *s, uint32_t len)
{
	uint64_t at;

	if (s->count >= most(q))
		s->at = thr_align_up(s->at, q->cluster_size);
	if (!(s->at & q->cluster_mask))
		s->count = 0;
	at = s->at;
	s->at += len;
	s->count = cluster_of(q, at) == cluster_of(q, s->at - 1) ? s->count + 1 : 1;
	return at;
}

static bool wants(const struct qcow2_packed *v)
{
	return v->kind == QCOW2_PACKED_STREAM && !v->host;
}

/* Puts all that have no place yet. */
static void put_all(const struct qcow2 *q, struct qcow2_pack *p, struct spot *s)
{
	for (unsigned i = 0; i < p->n; i++)
		if (wants(&p->v[i]))
			p->v[i].host = put(q, s, p->v[i].len);
}

static uint64_t end_of_all(const struct qcow2 *q, const struct qcow2_pack *p, struct spot s)
{
	for (unsigned i = 0; i < p->n; i++)
		if (wants(&p->v[i]))
			put(q, &s, p->v[i].len);
	return s.at;
}

/* An entry has fewer bits for the offset of a stream than there are in a cluster's. */
static bool too_far(const struct qcow2 *q, uint64_t end)
{
	return (end - 1) >> (70 - q->h.cluster_bits);
}

uint64_t qcow2_stream_entry(const struct qcow2 *q, uint64_t host, uint32_t len)
{
	uint64_t more = ((host & 511) + len - 1) >> 9;

	return QCOW2_COMPRESSED | more << (70 - q->h.cluster_bits) | host;
}

/* ---- counting --------------------------------------------------------------------- */

/* References to a cluster whose streams come one after the other. */
struct tally {
	uint64_t cluster, n;
};

/* A new cluster has the count 1 already. */
static int tally_end(struct qcow2 *q, const struct tally *t)
{
	return t->n > 1 ? qcow2_refcount_fill(q, t->cluster, 1, t->n) : 0;
}

static int tally_add(struct qcow2 *q, struct tally *t, uint64_t cluster)
{
	int err = 0;

	if (t->cluster != cluster) {
		err = tally_end(q, t);
		t->cluster = cluster;
		t->n = 0;
	}
	t->n++;
	return err;
}

/* Counts the streams in. Cluster @old (0: none) is no new one and has @count. */
static int count_all(struct qcow2 *q, const struct qcow2_pack *p, uint64_t old, uint64_t count)
{
	struct tally t = {0, 0};
	uint64_t more = 0;
	int err = 0;

	for (unsigned i = 0; !err && i < p->n; i++) {
		const struct qcow2_packed *v = &p->v[i];
		uint64_t c, last = cluster_of(q, v->host + v->len - 1);

		if (v->kind != QCOW2_PACKED_STREAM)
			continue;
		for (c = cluster_of(q, v->host); !err && c <= last; c++) {
			if (c == old)
				more++;
			else
				err = tally_add(q, &t, c);
		}
	}
	if (!err)
		err = tally_end(q, &t);
	if (!err && more)
		err = qcow2_refcount_fill(q, old, 1, count + more);
	return err;
}

/* ---- finding room ------------------------------------------------------------------- */

static int cursor(struct qcow2 *q, struct spot *s)
{
	int err;

	s->at = q->w->packed;
	s->count = 0;
	if (!s->at)
		return 0;
	err = qcow2_refcount_get(q, cluster_of(q, s->at), &s->count);
	if (!err)
		err = qcow2_guard(q, s->at, q->cluster_size - (s->at & q->cluster_mask));
	if (!s->count)
		s->at = 0;
	return err;
}

/* Goes on at the cursor, if what it takes to the end is free. */
static int go_on(struct qcow2 *q, struct qcow2_pack *p, struct spot *s, bool *done)
{
	uint64_t end = end_of_all(q, p, *s), host;
	uint64_t n = cluster_of(q, end - 1) - cluster_of(q, s->at);
	bool fresh;
	int err;

	*done = false;
	if (too_far(q, end))
		return 0;
	if (n) {
		err = qcow2_alloc(q, n, &host, &fresh);
		if (err)
			return err;
		if (cluster_of(q, host) != cluster_of(q, s->at) + 1) {
			qcow2_unalloc(q, host, n);
			return 0;
		}
	}
	put_all(q, p, s);
	*done = true;
	return 0;
}

/* Fills up the cluster of the cursor with what fits. */
static void fill_up(const struct qcow2 *q, struct qcow2_pack *p, struct spot *s)
{
	for (unsigned i = 0; i < p->n; i++) {
		struct qcow2_packed *v = &p->v[i];
		uint32_t left = q->cluster_size - ((uint32_t)s->at & q->cluster_mask);

		if (!(s->at & q->cluster_mask) || s->count >= most(q))
			return;
		if (wants(v) && v->len <= left)
			v->host = put(q, s, v->len);
	}
}

/* New clusters for all that have no place. */
static int go_elsewhere(struct qcow2 *q, struct qcow2_pack *p, struct spot *s)
{
	struct spot from = {0, 0};
	uint64_t end = end_of_all(q, p, from), n;
	bool fresh;
	int err;

	if (!end)
		return 0;
	n = (end + q->cluster_mask) >> q->h.cluster_bits;
	err = qcow2_alloc(q, n, &from.at, &fresh);
	if (err)
		return err;
	if (too_far(q, from.at + end)) {
		qcow2_unalloc(q, from.at, n);
		return -THR_EFBIG;
	}
	put_all(q, p, &from);
	*s = from;
	return 0;
}

static bool any_stream(const struct qcow2_pack *p)
{
	for (unsigned i = 0; i < p->n; i++)
		if (p->v[i].kind == QCOW2_PACKED_STREAM)
			return true;
	return false;
}

int qcow2_alloc_streams(struct qcow2 *q, struct qcow2_pack *p)
{
	uint64_t old, count;
	struct spot s;
	bool done = false;
	int err;

	if (!any_stream(p))
		return 0;
	err = cursor(q, &s);
	old = cluster_of(q, s.at);
	count = s.count;
	if (!err && s.at)
		err = go_on(q, p, &s, &done);
	if (!err && s.at && !done)
		fill_up(q, p, &s);
	if (!err && !done)
		err = go_elsewhere(q, p, &s);
	if (!err)
		err = count_all(q, p, old, count);
	if (err) {
		/* What has been counted is leaked. */
		for (unsigned i = 0; i < p->n; i++)
			p->v[i].host = 0;
		return err;
	}
	q->w->packed = s.at & q->cluster_mask ? s.at : 0;
	return 0;
}

void qcow2_unalloc_stream(struct qcow2 *q, const struct qcow2_packed *s)
{
	uint64_t last = cluster_of(q, s->host + s->len - 1);

	q->w->packed = 0;
	qcow2_unalloc(
		q, s->host & ~(uint64_t)q->cluster_mask, last - cluster_of(q, s->host) + 1);
}
