/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/pack_write.c - writing compressed clusters.
 *
 * Packed first, with nothing held; then in its turn room is found for the streams and
 * for what does not shrink; then, with no lock but that of the guest range, both are
 * written, streams that lie next to each other at once; and last the L2 entries are
 * pointed there, which go to the disk after the flush that follows the data.
 *
 * Clusters are never compressed in place: what was there before is dropped. Streams of
 * several requests may share a sector, and each writes its own bytes only: a disk that
 * loses or tears writes at sectors leaves the others' bytes as they are, since whoever
 * writes the sector (host cache or blk, under its range lock) writes those too.
 */
#include "cz/cz.h"
#include "fmt/barrier.h"
#include "fmt/qcow2/pack.h"

static int may_pack(const struct qcow2 *q, struct blk_err *err)
{
	if (q->data != q->blk.file)
		return blk_fail(err, -THR_ENOTSUP, BLK_E_QCOW2_PACK_DATA_FILE, 0, 0);
	if (q->h.crypt_method)
		return blk_fail(err, -THR_ENOTSUP, BLK_E_QCOW2_PACK_CRYPT, 0, 0);
	if (!q->codec)
		return blk_fail_str(err, -THR_ENOTSUP, BLK_E_NOT_BUILT,
			cz_codec_symbol((enum cz_codec_id)q->h.compression_type));
	if (!q->codec->encode)
		return blk_fail_str(
			err, -THR_ENOTSUP, BLK_E_QCOW2_PACK_DECODER, q->codec->name);
	return 0;
}

int qcow2_compress(struct blk *b, uint32_t *unit, struct blk_err *err)
{
	struct qcow2 *q = qcow2_of(b);

	*unit = q->cluster_size;
	return may_pack(q, err);
}

/* Whole clusters, though the disk may end in the last. */
static bool is_whole(const struct qcow2 *q, const struct blk_req *r)
{
	uint64_t end = r->off + r->len;

	return !(r->off & q->cluster_mask) &&
	       (!(end & q->cluster_mask) || end == blk_size(&q->blk));
}

/* ---- planning: in its turn, with range and layout -------------------------------------- */

static uint64_t guest_of(const struct qcow2 *q, const struct blk_req *r, unsigned i)
{
	return r->off + ((uint64_t)i << q->h.cluster_bits);
}

/* A zero cluster where that is what there is already needs none. */
static int plan_zero(struct qcow2 *q, uint64_t guest, struct qcow2_packed *v)
{
	struct qcow2_extent x;
	int err = qcow2_map_locked(q, guest, 1, &x);
	bool below = q->backing || q->blk.backing;

	if (!err && (x.kind == QCOW2_ZERO || (x.kind == QCOW2_UNALLOCATED && !below)) &&
		!qcow2_extended(q))
		v->kind = QCOW2_PACKED_NONE;
	return err;
}

static int plan_tables(struct qcow2 *q, const struct blk_req *r, struct qcow2_pack *p)
{
	uint64_t table = UINT64_MAX;
	int err = 0;

	for (unsigned i = 0; !err && i < p->n; i++) {
		uint64_t guest = guest_of(q, r, i);

		if (p->v[i].kind == QCOW2_PACKED_ZERO)
			err = plan_zero(q, guest, &p->v[i]);
		if (err || p->v[i].kind == QCOW2_PACKED_NONE)
			continue;
		if (guest >> (q->h.cluster_bits + q->l2_bits) == table)
			continue;
		table = guest >> (q->h.cluster_bits + q->l2_bits);
		err = qcow2_l2_prepare(q, guest);
	}
	return err;
}

static int plan_plain(struct qcow2 *q, struct qcow2_pack *p)
{
	uint64_t n = 0, host;
	bool fresh;
	int err;

	for (unsigned i = 0; i < p->n; i++)
		n += p->v[i].kind == QCOW2_PACKED_PLAIN;
	if (!n)
		return 0;
	err = qcow2_alloc(q, n, &host, &fresh);
	for (unsigned i = 0; !err && i < p->n; i++) {
		if (p->v[i].kind != QCOW2_PACKED_PLAIN)
			continue;
		p->v[i].host = host;
		host += q->cluster_size;
	}
	return err;
}

static void plan_entries(const struct qcow2 *q, struct qcow2_pack *p)
{
	for (unsigned i = 0; i < p->n; i++) {
		const struct qcow2_packed *v = &p->v[i];

		switch (v->kind) {
		case QCOW2_PACKED_STREAM:
			p->entries[i] = qcow2_stream_entry(q, v->host, v->len);
			break;
		case QCOW2_PACKED_PLAIN:
			p->entries[i] = v->host | QCOW2_COPIED;
			break;
		case QCOW2_PACKED_ZERO:
		case QCOW2_PACKED_NONE:
			p->entries[i] = QCOW2_L2E_ZERO;
			break;
		}
	}
}

static int plan(struct qcow2 *q, const struct blk_req *r, struct qcow2_pack *p)
{
	int err;

	qcow2_layout_lock(q);
	err = plan_tables(q, r, p);
	if (!err)
		err = qcow2_alloc_streams(q, p);
	if (!err)
		err = plan_plain(q, p);
	qcow2_layout_unlock(q);
	if (!err)
		plan_entries(q, p);
	return err;
}

/* ---- carrying out -------------------------------------------------------------------------
 */

static int write_bytes(struct qcow2 *q, uint8_t *from, size_t len, uint64_t host)
{
	struct thr_iov v = {from, len};
	struct blk_req r = {.off = host, .len = len, .iov = &v, .niov = 1, .flags = BLK_CHILD};

	return blk_pwritev(q->blk.file, &r);
}

/* Each run of streams that are neighbours on the disk as in memory in one write. */
static int write_streams(struct qcow2 *q, const struct qcow2_pack *p)
{
	uint8_t *from = p->out;
	size_t len = 0;
	uint64_t host = 0;
	int err = 0;

	for (unsigned i = 0; !err && i < p->n; i++) {
		const struct qcow2_packed *v = &p->v[i];

		if (v->kind != QCOW2_PACKED_STREAM)
			continue;
		if (len && v->host != host + len) {
			err = write_bytes(q, from, len, host);
			from += len;
			len = 0;
		}
		if (!len)
			host = v->host;
		len += v->len;
	}
	return err || !len ? err : write_bytes(q, from, len, host);
}

/* Clusters [i, end) of the request, which are whole on the disk. */
static int write_run(struct qcow2 *q, const struct blk_req *r, const struct qcow2_pack *p,
	unsigned i, unsigned end)
{
	uint64_t at = (uint64_t)i << q->h.cluster_bits, len = (uint64_t)(end - i)
							      << q->h.cluster_bits;
	struct blk_req sub = *r;
	int err;

	sub.off = r->off + at;
	sub.iov_off += (size_t)at;
	sub.len = THR_MIN(len, r->len - at);
	err = qcow2_data_write(q, &sub, p->v[i].host);
	if (err || sub.len == len)
		return err;
	sub = (struct blk_req){.off = sub.off + sub.len, .len = len - sub.len};
	return qcow2_data_write(q, &sub, p->v[i].host + (len - sub.len));
}

static int write_plain(struct qcow2 *q, const struct blk_req *r, const struct qcow2_pack *p)
{
	unsigned i = 0, end;
	int err = 0;

	for (; !err && i < p->n; i = end) {
		for (end = i; end < p->n && p->v[end].kind == QCOW2_PACKED_PLAIN; end++)
			;
		if (end > i)
			err = write_run(q, r, p, i, end);
		else
			end++;
	}
	return err;
}

/* Points the entries at what has been written; *done clusters, also after an error. */
static int map(struct qcow2 *q, const struct blk_req *r, struct qcow2_pack *p, unsigned *done)
{
	struct qcow2_edit e = {.mode = QCOW2_EDIT_ENTRIES};
	unsigned end;
	int err = 0;

	fmt_cache_lock(q->cache);
	fmt_cache_wrote(q->cache, q->blk.file);
	if (FMT_BARRIER(DATA_BEFORE_TABLE))
		e.after = fmt_cache_epoch(q->cache, q->blk.file);
	for (*done = 0; !err && *done < p->n;) {
		if (p->v[*done].kind == QCOW2_PACKED_NONE) {
			++*done;
			continue;
		}
		for (end = *done; end < p->n && p->v[end].kind != QCOW2_PACKED_NONE; end++)
			;
		e.entries = p->entries + *done;
		err = qcow2_l2_edit(q, guest_of(q, r, *done), end - *done, &e);
		*done += (unsigned)e.done;
	}
	fmt_cache_unlock(q->cache);
	return err;
}

/* Frees what clusters from @i on have got. */
static void undo(struct qcow2 *q, const struct qcow2_pack *p, unsigned i)
{
	qcow2_layout_lock(q);
	for (; i < p->n; i++) {
		const struct qcow2_packed *v = &p->v[i];

		if (!v->host)
			continue;
		if (v->kind == QCOW2_PACKED_STREAM)
			qcow2_unalloc_stream(q, v);
		else
			qcow2_unalloc(q, v->host, 1);
	}
	qcow2_layout_unlock(q);
}

static int store(struct qcow2 *q, const struct blk_req *r, struct qcow2_pack *p, bool last)
{
	struct blk_range lock;
	unsigned done = 0;
	int err = qcow2_touch(q);

	if (err)
		return err;
	blk_range_lock(
		&q->w->ranges, &lock, r->off, (uint64_t)p->n << q->h.cluster_bits, false);
	err = plan(q, r, p);
	if (err || last)
		blk_turn_leave(r->turn);
	if (!err)
		err = write_streams(q, p);
	if (!err)
		err = write_plain(q, r, p);
	if (!err)
		err = map(q, r, p, &done);
	if (err)
		undo(q, p, done);
	blk_range_unlock(&q->w->ranges, &lock);
	return err;
}

static int write_part(struct qcow2 *q, const struct blk_req *r, bool last)
{
	struct qcow2_pack *p;
	unsigned cookie;
	int err = qcow2_pack(q, r, &p);

	if (err)
		return err;
	err = qcow2_make_room(q);
	if (!err)
		err = blk_turn_enter(r->turn);
	if (!err) {
		cookie = qcow2_enter(q);
		err = store(q, r, p, last);
		qcow2_exit(q, cookie);
	}
	qcow2_pack_free(q, p);
	return err;
}

int qcow2_write_packed(struct qcow2 *q, const struct blk_req *r)
{
	int err = may_pack(q, NULL);
	struct blk_req part = *r;
	uint64_t done;

	if (!err && !is_whole(q, r))
		err = -THR_EINVAL;
	for (done = 0; !err && done < r->len; done += part.len) {
		part.off = r->off + done;
		part.iov_off = r->iov_off + (size_t)done;
		part.len = THR_MIN(r->len - done, (uint64_t)qcow2_pack_most(q));
		err = write_part(q, &part, done + part.len == r->len);
	}
	return qcow2_guarded(q, err);
}
