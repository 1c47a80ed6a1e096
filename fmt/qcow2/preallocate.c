/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/preallocate.c - clusters for a part of the disk that nobody has written.
 *
 * The L2 entries point at clusters that read as zeroes, one run for each L2 table.
 * They differ in what the host is asked for: nothing but the length of the file
 * (metadata), its space (falloc), or zeroes that are written (full).
 */
#include "fmt/qcow2/write.h"

#define CHUNK (256u << 10)

static int write_zeroes(struct qcow2 *q, uint64_t host, uint64_t len)
{
	uint8_t *buf = thr_get(q->blk.mem, CHUNK, 4096);
	uint64_t at, n;
	int err = buf ? 0 : -THR_ENOMEM;

	if (buf)
		memset(buf, 0, CHUNK);
	for (at = 0; !err && at < len; at += n) {
		struct thr_iov v = {buf, CHUNK};
		struct blk_req r = {.off = host + at, .iov = &v, .niov = 1, .flags = BLK_CHILD};

		n = THR_MIN(len - at, CHUNK);
		r.len = n;
		err = blk_pwritev(q->data, &r);
	}
	thr_put(q->blk.mem, buf, CHUNK);
	return err;
}

static int make_zeroes(
	struct qcow2 *q, uint64_t host, uint64_t len, bool fresh, enum blk_prealloc p)
{
	struct blk_req r = {.off = host, .len = len, .flags = BLK_CHILD};

	if (qcow2_external(q)) {
		if (host >= blk_size(q->data))
			return 0;
		len = THR_MIN(len, blk_size(q->data) - host);
		r.len = len;
		r.flags |= p == BLK_PREALLOC_METADATA ? BLK_UNMAP : 0u;
	}
	if (p == BLK_PREALLOC_FULL)
		return write_zeroes(q, host, len);
	/* A file that is long enough will do for what was never written. */
	if (p == BLK_PREALLOC_METADATA && fresh) {
		r.off = host + len - 512;
		r.len = 512;
	}
	return blk_zero(q->data, &r);
}

/* What reads as zeroes where the data is encrypted. */
static int encrypt_zeroes(struct qcow2 *q, uint64_t off, uint64_t len, uint64_t host)
{
	struct blk_req r = {.off = off, .len = len};

	return qcow2_data_write(q, &r, host);
}

static int allocate(struct qcow2 *q, uint64_t off, uint64_t n, uint64_t *host, bool *fresh)
{
	int err;

	qcow2_layout_lock(q);
	err = qcow2_l2_prepare(q, off);
	if (!err)
		err = qcow2_data_alloc(q, off, n, host, fresh);
	qcow2_layout_unlock(q);
	return err;
}

static int fill(struct qcow2 *q, uint64_t off, uint64_t n, enum blk_prealloc p)
{
	struct qcow2_edit e = {
		.mode = QCOW2_EDIT_DATA, .lo = off, .hi = off + (n << q->h.cluster_bits)};
	bool fresh;
	int err = allocate(q, off, n, &e.host, &fresh);

	if (err)
		return err;
	if (qcow2_encrypted(q))
		err = encrypt_zeroes(q, off, n << q->h.cluster_bits, e.host);
	else
		err = make_zeroes(q, e.host, n << q->h.cluster_bits, fresh, p);
	if (!err) {
		fmt_cache_lock(q->cache);
		fmt_cache_wrote(q->cache, q->blk.file);
		e.after = fmt_cache_epoch(q->cache, q->blk.file);
		err = qcow2_l2_edit(q, off, n, &e);
		fmt_cache_unlock(q->cache);
	}
	if (err) {
		qcow2_layout_lock(q);
		qcow2_data_unalloc(q, e.host + (e.done << q->h.cluster_bits), n - e.done);
		qcow2_layout_unlock(q);
	}
	return err;
}

/* One run of one kind, at most to the end of its L2 table. */
static int step(struct qcow2 *q, uint64_t off, uint64_t end, enum blk_prealloc p, uint64_t *len)
{
	uint64_t table = 1ull << (q->h.cluster_bits + q->l2_bits);
	unsigned cookie = qcow2_enter(q);
	struct qcow2_extent x;
	int err;

	end = THR_MIN(end, (off | (table - 1)) + 1);
	err = qcow2_map(q, off, end - off, &x);
	/* A cluster that has no host cluster is without in all of its parts. */
	*len = err ? 0 : THR_MAX(x.len & ~(uint64_t)q->cluster_mask, q->cluster_size);
	if (!err && !x.mapped && x.kind != QCOW2_COMPRESSED_CLUSTER)
		err = fill(q, off, *len >> q->h.cluster_bits, p);
	qcow2_exit(q, cookie);
	return err;
}

int qcow2_preallocate(struct qcow2 *q, uint64_t off, uint64_t end, enum blk_prealloc p)
{
	uint64_t len;
	int err = 0;

	for (; !err && off < end; off += len) {
		err = qcow2_make_room(q);
		if (!err)
			err = step(q, off, end, p, &len);
		if (err)
			break;
	}
	return err;
}
