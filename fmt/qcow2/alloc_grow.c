/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/alloc_grow.c - refcount structures that grow: a new block, and a new
 * table when the old one is full.
 *
 * A block is a cluster of counts. It may hold its own count. Its entry in the
 * table follows it to the disk by rank.
 *
 * A table cannot grow in place. The new one is put behind everything that the old
 * one covers, together with the blocks that count it; all of that is written and
 * flushed while nothing points at it, then the header is switched over by its one
 * sector. The old table's clusters are dropped like any others.
 */
#include "fmt/qcow2/write.h"

int qcow2_refblock_new(struct qcow2 *q, uint64_t i, uint64_t at)
{
	uint32_t mask = fmt_cache_slice_size(q->cache) - 1;
	uint64_t off = at << q->h.cluster_bits, entry = q->h.reft_off + i * 8;
	uint64_t in_block = at & ((1ull << qcow2_refblock_bits(q)) - 1);
	bool self = at >> qcow2_refblock_bits(q) == i;
	uint64_t skip = self ? in_block << q->h.refcount_order >> 3 & ~(uint64_t)mask : 0;
	bool fresh = qcow2_take_fresh(q, at, 1);
	struct fmt_slice *t, *s;
	int err = qcow2_purge(q, off, q->cluster_size);

	if (!err && !fresh)
		err = qcow2_zero_cluster(q, off);
	if (!err && !self)
		err = qcow2_refcount_fill(q, at, 1, 1);
	if (err)
		return err;
	err = fmt_slice_get(q->cache, q->blk.file, entry, &t);
	if (err)
		return err;
	err = fmt_slice_new(q->cache, q->blk.file, off + skip, FMT_RANK_REFBLOCK, &s);
	if (err) {
		fmt_slice_put(q->cache, t);
		return err;
	}
	if (self)
		qcow2_refcount_store(s->data, q->h.refcount_order,
			(uint32_t)(in_block - (skip << 3 >> q->h.refcount_order)), 1);
	fmt_slice_put(q->cache, s);
	thr_put_be64(t->data + (entry & mask), off);
	fmt_slice_dirty(q->cache, t, FMT_RANK_REFTABLE, (uint32_t)(entry & mask),
		(uint32_t)(entry & mask) + 8);
	if (!fresh)
		fmt_slice_after(q->cache, t, fmt_cache_epoch(q->cache, q->blk.file));
	fmt_slice_put(q->cache, t);
	qcow2_meta_add(q, off, QCOW2_OV_REFBLOCK);
	return 0;
}

/* A new table: first its blocks, then the table, from cluster @base on. */
struct new_table {
	uint64_t old; /* entries of the old one */
	uint64_t base;
	uint64_t blocks; /* clusters */
	uint64_t table;  /* clusters */
	uint8_t *buf;    /* one cluster */
};

/* Sizes it for entry @i and for itself, at least, and for half as much again. */
static int size_table(struct qcow2 *q, struct new_table *t, uint64_t i)
{
	unsigned bits = qcow2_refblock_bits(q), cluster_bits = q->h.cluster_bits;
	uint64_t max = QCOW2_MAX_REFT_BYTES >> cluster_bits;
	uint64_t per = 1ull << (cluster_bits - 3), want;

	t->old = qcow2_reft_entries(q);
	t->base = t->old << bits;
	want = THR_MAX(i + 1, t->old + t->old / 2);
	t->table = THR_MIN((want + per - 1) / per, max);
	t->table = THR_MAX(t->table, i / per + 1);
	for (;;) {
		t->blocks = 1;
		while (t->blocks << bits < t->blocks + t->table)
			t->blocks++;
		if (t->old + t->blocks <= t->table * per)
			break;
		t->table++;
	}
	if (t->table > max)
		return -THR_EFBIG;
	return t->base + t->blocks + t->table > qcow2_cluster_limit(q) ? -THR_ENOSPC : 0;
}

/* Writes the buffer into cluster @at, without the cache's lock. */
static int put_cluster(struct qcow2 *q, struct new_table *t, uint64_t at)
{
	struct thr_iov v = {t->buf, q->cluster_size};
	struct blk_req r = {
		.off = at << q->h.cluster_bits,
		.len = q->cluster_size,
		.iov = &v,
		.niov = 1,
		.flags = BLK_CHILD,
	};
	int err;

	fmt_cache_unlock(q->cache);
	err = blk_pwritev(q->blk.file, &r);
	fmt_cache_lock(q->cache);
	fmt_cache_wrote(q->cache, q->blk.file);
	return err;
}

/* Block @j of those that count what is new. */
static int put_block(struct qcow2 *q, struct new_table *t, uint64_t j)
{
	uint64_t per = 1ull << qcow2_refblock_bits(q);
	uint64_t all = t->blocks + t->table, before = j * per;
	uint64_t n = all > before ? THR_MIN(all - before, per) : 0;

	memset(t->buf, 0, q->cluster_size);
	for (uint32_t i = 0; i < n; i++)
		qcow2_refcount_store(t->buf, q->h.refcount_order, i, 1);
	return put_cluster(q, t, t->base + j);
}

/* Copies a slice of the old table, whose first entry is entry @i. */
static int copy_slice(struct qcow2 *q, uint64_t i, uint8_t *to)
{
	struct fmt_slice *s;
	int err = fmt_slice_get(q->cache, q->blk.file, q->h.reft_off + i * 8, &s);

	if (err)
		return err;
	memcpy(to, s->data, fmt_cache_slice_size(q->cache));
	fmt_slice_put(q->cache, s);
	return 0;
}

static int put_table(struct qcow2 *q, struct new_table *t, uint64_t j)
{
	uint64_t per = 1ull << (q->h.cluster_bits - 3), first = j * per, i;
	uint32_t step = fmt_cache_slice_size(q->cache) / 8;
	int err = 0;

	memset(t->buf, 0, q->cluster_size);
	for (i = first; !err && i < first + per && i < t->old; i += step)
		err = copy_slice(q, i, t->buf + (i - first) * 8);
	if (err)
		return err;
	for (i = THR_MAX(first, t->old); i < first + per && i < t->old + t->blocks; i++)
		thr_put_be64(t->buf + (i - first) * 8, (t->base + (i - t->old))
							       << q->h.cluster_bits);
	return put_cluster(q, t, t->base + t->blocks + j);
}

static int write_table(struct qcow2 *q, struct new_table *t)
{
	uint64_t j;
	int err = qcow2_purge(
		q, t->base << q->h.cluster_bits, (t->blocks + t->table) << q->h.cluster_bits);

	qcow2_take_fresh(q, t->base, t->blocks + t->table);
	for (j = 0; !err && j < t->blocks; j++)
		err = put_block(q, t, j);
	for (j = 0; !err && j < t->table; j++)
		err = put_table(q, t, j);
	return err;
}

int qcow2_reft_grow(struct qcow2 *q, uint64_t i)
{
	struct qcow2_header h = q->h;
	uint64_t old_off = h.reft_off, old_clusters = h.reft_clusters;
	struct new_table t;
	int err = size_table(q, &t, i);

	if (err)
		return err;
	err = qcow2_guard(
		q, t.base << q->h.cluster_bits, (t.blocks + t.table) << q->h.cluster_bits);
	if (err)
		return err;
	t.buf = thr_get(q->blk.mem, q->cluster_size, 512);
	if (!t.buf)
		return -THR_ENOMEM;
	err = write_table(q, &t);
	thr_put(q->blk.mem, t.buf, q->cluster_size);
	if (err)
		return err;
	h.reft_off = (t.base + t.blocks) << q->h.cluster_bits;
	h.reft_clusters = (uint32_t)t.table;
	err = qcow2_header_switch(q, &h);
	for (i = 0; !err && i < t.blocks; i++)
		qcow2_meta_add(q, (t.base + i) << q->h.cluster_bits, QCOW2_OV_REFBLOCK);
	if (!err && old_clusters)
		qcow2_drop(q, old_off, old_clusters, QCOW2_PUNCH);
	return err;
}
