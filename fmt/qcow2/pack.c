/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/pack.c - clusters into compressed streams.
 *
 * Nothing is decided here that depends on anything but the data and the options, so
 * this is done by any number of requests at a time, before their turns. Encoders and
 * room for streams are kept and used again. An encoder is never held by who waits, so
 * there are as many as threads; room for streams is held for as long as the request.
 *
 * A cluster that is equal to the one before it has the same stream. What will not
 * shrink, by an estimate or by trying, is stored as it is. Between clusters those are let
 * through whose turn may have come.
 */
#include "cz/cz.h"
#include "fmt/qcow2/pack.h"

#define IDLE_MAX 16u

struct qcow2_encoder {
	struct qcow2_encoder *next;
	void *ctx;
	uint8_t *stage[2]; /* clusters that are put together: this one and the one before */
};

static size_t ctx_size(const struct qcow2 *q)
{
	return (size_t)thr_align_up(q->codec->encode_ctx_size, 16);
}

static size_t encoder_size(const struct qcow2 *q)
{
	return (size_t)thr_align_up(sizeof(struct qcow2_encoder), 16) + ctx_size(q) +
	       (size_t)q->cluster_size * 2;
}

static int encoder_new(struct qcow2 *q, struct qcow2_encoder **out)
{
	struct qcow2_encoder *e = thr_get(q->blk.mem, encoder_size(q), 16);
	int err;

	if (!e)
		return -THR_ENOMEM;
	e->ctx = (uint8_t *)e + thr_align_up(sizeof(*e), 16);
	e->stage[0] = (uint8_t *)e->ctx + ctx_size(q);
	e->stage[1] = e->stage[0] + q->cluster_size;
	err = q->codec->encode_init(e->ctx, q->blk.mem, q->w->packer.level, q->cluster_size);
	if (err)
		thr_put(q->blk.mem, e, encoder_size(q));
	else
		*out = e;
	return err;
}

static void encoder_free(struct qcow2 *q, struct qcow2_encoder *e)
{
	q->codec->encode_fini(e->ctx);
	thr_put(q->blk.mem, e, encoder_size(q));
}

static int encoder_get(struct qcow2 *q, struct qcow2_encoder **out)
{
	struct qcow2_packer *k = &q->w->packer;

	thr_mutex_lock(&k->lock);
	*out = k->encoders;
	if (*out)
		k->encoders = (*out)->next;
	thr_mutex_unlock(&k->lock);
	return *out ? 0 : encoder_new(q, out);
}

static void encoder_put(struct qcow2 *q, struct qcow2_encoder *e)
{
	struct qcow2_packer *k = &q->w->packer;

	thr_mutex_lock(&k->lock);
	e->next = k->encoders;
	k->encoders = e;
	thr_mutex_unlock(&k->lock);
}

/* ---- room ------------------------------------------------------------------- */

static size_t pack_size(const struct qcow2 *q, unsigned n)
{
	return sizeof(struct qcow2_pack) +
	       n * (sizeof(struct qcow2_packed) + sizeof(uint64_t) + (size_t)q->cluster_size);
}

static struct qcow2_pack *pack_kept(struct qcow2 *q)
{
	struct qcow2_packer *k = &q->w->packer;
	struct qcow2_pack *p;

	thr_mutex_lock(&k->lock);
	p = k->idle;
	if (p) {
		k->idle = p->next;
		k->nidle--;
	}
	thr_mutex_unlock(&k->lock);
	return p;
}

/* Room of the full size is kept; there is never more of it than of requests. */
static struct qcow2_pack *pack_get(struct qcow2 *q, unsigned n)
{
	bool full = n == qcow2_pack_most(q) >> q->h.cluster_bits;
	struct qcow2_pack *p = full ? pack_kept(q) : NULL;

	if (!p) {
		p = thr_get(q->blk.mem, pack_size(q, n), 16);
		if (!p)
			return NULL;
		p->bytes = pack_size(q, n);
	}
	p->n = n;
	p->v = (struct qcow2_packed *)(void *)(p + 1);
	p->entries = (uint64_t *)(void *)(p->v + n);
	p->out = (uint8_t *)(p->entries + n);
	memset(p->v, 0, n * sizeof(*p->v));
	return p;
}

void qcow2_pack_free(struct qcow2 *q, struct qcow2_pack *p)
{
	struct qcow2_packer *k = &q->w->packer;
	bool keep = p->n == qcow2_pack_most(q) >> q->h.cluster_bits;

	thr_mutex_lock(&k->lock);
	keep = keep && k->nidle < IDLE_MAX;
	if (keep) {
		p->next = k->idle;
		k->idle = p;
		k->nidle++;
	}
	thr_mutex_unlock(&k->lock);
	if (!keep)
		thr_put(q->blk.mem, p, p->bytes);
}

int qcow2_packer_open(struct qcow2 *q, const struct blk_opts *o, struct blk_err *err)
{
	thr_mutex_init(&q->w->packer.lock);
	return qcow2_opt_level(o, q->codec, &q->w->packer.level, err);
}

void qcow2_packer_close(struct qcow2 *q)
{
	struct qcow2_packer *k = &q->w->packer;

	while (k->encoders) {
		struct qcow2_encoder *e = k->encoders;

		k->encoders = e->next;
		encoder_free(q, e);
	}
	while (k->idle) {
		struct qcow2_pack *p = k->idle;

		k->idle = p->next;
		thr_put(q->blk.mem, p, p->bytes);
	}
}

/* ---- packing ------------------------------------------------------------------ */

/* Cluster @i of the request in one piece: where it lies, or in a stage. */
static const uint8_t *cluster_of(
	struct qcow2 *q, const struct blk_req *r, unsigned i, struct qcow2_encoder *e)
{
	uint64_t at = (uint64_t)i << q->h.cluster_bits;
	size_t len = (size_t)THR_MIN(r->len - at, q->cluster_size), n = len;
	void *piece = blk_req_piece(r, at, &n);
	uint8_t *stage = e->stage[i & 1];

	if (n == q->cluster_size)
		return piece;
	blk_req_to_buf(r, at, stage, len);
	memset(stage + len, 0, q->cluster_size - len);
	return stage;
}

/* Where there is no zero flag, zeroes are as good as anything to compress. */
static int pack_cluster(struct qcow2 *q, struct qcow2_encoder *e, const uint8_t *in,
	uint8_t *to, struct qcow2_packed *v)
{
	int n;

	v->kind = QCOW2_PACKED_ZERO;
	if (q->h.version >= 3 && cz_is_zero(in, q->cluster_size))
		return 0;
	v->kind = QCOW2_PACKED_PLAIN;
	if (!cz_will_shrink(in, q->cluster_size))
		return 0;
	n = q->codec->encode(e->ctx, to, q->cluster_size - 1, in, q->cluster_size);
	if (n == -THR_ENOSPC)
		return 0;
	if (n < 0)
		return n;
	v->kind = QCOW2_PACKED_STREAM;
	v->len = (uint32_t)n;
	return 0;
}

static int pack_all(
	struct qcow2 *q, const struct blk_req *r, struct qcow2_encoder *e, struct qcow2_pack *p)
{
	const uint8_t *in, *before = NULL;
	uint8_t *to = p->out;
	int err = 0;

	for (unsigned i = 0; !err && i < p->n; i++, before = in) {
		struct qcow2_packed *v = &p->v[i];

		thr_give_way();
		in = cluster_of(q, r, i, e);
		if (before && !memcmp(in, before, q->cluster_size)) {
			*v = v[-1];
			memcpy(to, to - v->len, v->len);
		} else {
			err = pack_cluster(q, e, in, to, v);
		}
		to += v->len;
	}
	return err;
}

int qcow2_pack(struct qcow2 *q, const struct blk_req *r, struct qcow2_pack **out)
{
	uint64_t n = (r->len + q->cluster_mask) >> q->h.cluster_bits;
	struct qcow2_encoder *e;
	int err = encoder_get(q, &e);

	if (err)
		return err;
	*out = pack_get(q, (unsigned)n);
	if (!*out)
		err = -THR_ENOMEM;
	else
		err = pack_all(q, r, e, *out);
	encoder_put(q, e);
	if (err && *out)
		qcow2_pack_free(q, *out);
	return err;
}
