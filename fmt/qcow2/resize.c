/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/resize.c - a virtual disk that becomes longer or shorter.
 *
 * Growing: first a larger L1 table, if the old one has no room; then whatever would
 * show in the new part (clusters left over from a longer disk or a saved VM state,
 * a backing file that is longer than the disk was) is made to read as zeroes; last
 * the size in the header, so that nobody sees the new part before.
 *
 * Shrinking: the size first, durably, since what was cut off must keep its content
 * as long as the disk still has it; then the mappings past the end are dropped, and
 * the file is cut behind the last cluster that is used.
 *
 * Entries of the L1 table past the old end are a saved VM state's: they stay.
 */
#include "fmt/qcow2/write.h"

static unsigned table_shift(const struct qcow2 *q)
{
	return q->h.cluster_bits + q->l2_bits;
}

static uint64_t tables_for(const struct qcow2 *q, uint64_t size)
{
	uint64_t mask = (1ull << table_shift(q)) - 1;

	return (size >> table_shift(q)) + !!(size & mask);
}

static uint64_t cluster_end(const struct qcow2 *q, uint64_t off)
{
	return (off + q->cluster_mask) & ~(uint64_t)q->cluster_mask;
}

static int set_size(struct qcow2 *q, uint64_t size)
{
	struct qcow2_header h;
	int err;

	qcow2_layout_lock(q);
	h = q->h;
	h.size = size;
	err = qcow2_header_switch(q, &h);
	if (!err)
		blk_set_size(&q->blk, size);
	qcow2_layout_unlock(q);
	return err;
}

static int make_l1(struct qcow2 *q, uint64_t size)
{
	uint64_t need = tables_for(q, size);
	int err = 0;

	qcow2_layout_lock(q);
	if (need > q->h.l1_entries)
		err = qcow2_l1_grow(q, (uint32_t)need);
	qcow2_layout_unlock(q);
	return err;
}

static int grow(struct qcow2 *q, uint64_t size, enum blk_prealloc p)
{
	uint64_t old = q->h.size;
	int err = qcow2_touch(q);

	if (!err)
		err = make_l1(q, size);
	if (!err)
		err = qcow2_data_grow(q, size);
	/* So that all of it is there for who reads the file without our tables. */
	if (qcow2_raw_data(q) && p == BLK_PREALLOC_OFF)
		p = BLK_PREALLOC_METADATA;
	if (!err)
		err = qcow2_zero_range(q, old, size - old, BLK_UNMAP);
	if (!err && p != BLK_PREALLOC_OFF)
		err = qcow2_preallocate(q, cluster_end(q, old), cluster_end(q, size), p);
	return err ? err : set_size(q, size);
}

/* ---- cutting off ----------------------------------------------------------------- */

/* Drops all that the L2 table at @l2 maps, and itself. It is read, not changed, as
 * it may be a snapshot's too. What cannot be read or understood is leaked. */
static void drop_table(struct qcow2 *q, uint64_t l2)
{
	uint32_t size = fmt_cache_slice_size(q->cache), i, j;

	for (i = 0; i < q->cluster_size; i += size) {
		struct fmt_slice *s;

		if (fmt_slice_get(q->cache, q->blk.file, l2 + i, &s))
			continue;
		for (j = 0; j < size; j += 1u << q->entry_bits)
			qcow2_drop_entry(q, thr_be64(s->data + j), QCOW2_PUNCH);
		fmt_slice_put(q->cache, s);
	}
	qcow2_drop_table(q, l2);
}

/* Cuts table @i from guest offset @from on. */
static int cut_table(struct qcow2 *q, uint32_t i, uint64_t from, uint64_t end)
{
	struct qcow2_edit e = {.mode = QCOW2_EDIT_CLEAR, .flags = QCOW2_PUNCH};
	uint64_t entry, l2, base = (uint64_t)i << table_shift(q);
	int err = qcow2_l1_get(q, i, &entry);

	l2 = entry & QCOW2_L1E_OFF_MASK;
	if (err || !l2)
		return err;
	if (entry & QCOW2_L1E_RESERVED || l2 & q->cluster_mask)
		return -THR_EUCLEAN;
	if (base >= from) {
		err = qcow2_l1_set(q, i, 0);
		if (!err)
			drop_table(q, l2);
		return err;
	}
	err = qcow2_l2_prepare(q, from);
	end = THR_MIN(end, base + (1ull << table_shift(q)));
	return err ? err : qcow2_l2_edit(q, from, (end - from) >> q->h.cluster_bits, &e);
}

/* Tables of which nothing is there are passed over without letting go. */
static int cut_some(struct qcow2 *q, uint32_t *i, uint64_t from, uint64_t end)
{
	uint64_t last = tables_for(q, end), before = q->w->dropped;
	int err = 0;

	while (!err && *i < last && q->w->dropped == before) {
		err = cut_table(q, *i, from, end);
		++*i;
	}
	return err;
}

static int cut(struct qcow2 *q, uint64_t from, uint64_t end)
{
	uint32_t i = (uint32_t)(from >> table_shift(q));
	uint64_t last = tables_for(q, end);
	struct blk_range lock;
	int err = 0;

	while (!err && i < last) {
		unsigned cookie;

		err = qcow2_make_room(q);
		if (err)
			break;
		cookie = qcow2_enter(q);
		blk_range_lock(&q->w->ranges, &lock, from, end - from, false);
		qcow2_layout_lock(q);
		err = cut_some(q, &i, from, end);
		qcow2_layout_unlock(q);
		blk_range_unlock(&q->w->ranges, &lock);
		qcow2_exit(q, cookie);
	}
	return err;
}

/* Cuts the file behind the last cluster that is used: nobody writes there. That it
 * fails harms nothing. */
static void trim(struct qcow2 *q)
{
	struct blk *file = q->blk.file;
	uint64_t end;
	int err;

	if (!file->grows)
		return;
	qcow2_layout_lock(q);
	err = qcow2_last_used(q, &end);
	fmt_cache_unlock(q->cache);
	if (!err && blk_size(file) > end << q->h.cluster_bits) {
		err = blk_truncate(file, end << q->h.cluster_bits, BLK_PREALLOC_OFF, NULL);
		fmt_cache_lock(q->cache);
		if (!err)
			q->w->fresh = end;
		fmt_cache_unlock(q->cache);
	}
	thr_mutex_unlock(&q->w->layout);
}

/* The external file ends with the disk. */
static int cut_data(struct qcow2 *q, uint64_t size)
{
	if (!qcow2_external(q) || !q->data->grows || blk_size(q->data) <= size)
		return 0;
	return blk_truncate(q->data, size, BLK_PREALLOC_OFF, NULL);
}

static int shrink(struct qcow2 *q, uint64_t size)
{
	uint64_t from = cluster_end(q, size), end = cluster_end(q, q->h.size);
	int err = qcow2_touch(q);

	if (!err)
		err = set_size(q, size);
	if (err || from >= end)
		return err ? err : cut_data(q, size);
	err = cut(q, from, end);
	if (!err)
		err = qcow2_flush(&q->blk);
	/* The counts that the first has settled: a check does not see those of clusters
	 * that the file no longer has. */
	if (!err)
		err = qcow2_flush(&q->blk);
	if (!err)
		err = cut_data(q, size);
	if (!err)
		trim(q);
	return err;
}

static int change_size(struct qcow2 *q, uint64_t size, enum blk_prealloc p)
{
	int err = 0;

	thr_mutex_lock(&q->w->resize);
	if (size > q->h.size)
		err = grow(q, size, p);
	else if (size < q->h.size)
		err = shrink(q, size);
	thr_mutex_unlock(&q->w->resize);
	return qcow2_guarded(q, err);
}

int qcow2_truncate(struct blk *b, uint64_t size, enum blk_prealloc p, struct blk_err *err)
{
	struct qcow2 *q = qcow2_of(b);
	int ret;

	if (size & 511)
		return blk_fail(err, -THR_EINVAL, BLK_E_QCOW2_SIZE_ODD, 0, size);
	if (q->h.version < 3 && q->h.snapshots)
		return blk_fail(err, -THR_ENOTSUP, BLK_E_QCOW2_RESIZE_SNAPSHOTS, 0, 0);
	if (tables_for(q, size) * 8 > QCOW2_MAX_L1_BYTES)
		return blk_fail(err, -THR_EFBIG, BLK_E_QCOW2_TOO_LARGE, 0, size);
	ret = change_size(q, size, p);
	return ret ? blk_fail(err, ret, BLK_E_SYS, 0, size) : 0;
}
