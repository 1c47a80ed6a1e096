/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/write_open.c - an image that becomes writable, and is closed again.
 *
 * Before the first write, durably: the autoclear bits that we do not maintain are
 * cleared (all but that of raw external data: bitmaps and those that nobody knows), and
 * the counts of an image that was not closed properly are made anew.
 *
 * With lazy reference counts the dirty bit is set before the first change of a
 * table and cleared at close, once the counts are on the disk.
 */
#include "fmt/qcow2/write.h"

static void init(struct qcow2 *q, struct qcow2_write *w, bool repair)
{
	uint64_t size = blk_size(q->blk.file);
	unsigned i;

	thr_mutex_init(&w->layout);
	thr_mutex_init(&w->resize);
	thr_mutex_init(&w->idle_lock);
	thr_cond_init(&w->idle);
	blk_ranges_init(&w->ranges);
	for (i = 0; i < QCOW2_HINTS; i++)
		w->hint[i] = 1;
	w->fresh = (size >> q->h.cluster_bits) + !!(size & q->cluster_mask);
	w->gen = 1;
	w->lazy = !repair && q->h.version >= 3 && q->h.compatible & QCOW2_COMPAT_LAZY;
}

static int clear_bits(struct qcow2 *q, uint64_t incompatible)
{
	struct qcow2_header h;
	int err = 0;

	qcow2_layout_lock(q);
	h = q->h;
	h.autoclear = qcow2_raw_data(q) ? QCOW2_AUTO_RAW : 0;
	h.incompatible &= ~incompatible;
	if (h.autoclear != q->h.autoclear || h.incompatible != q->h.incompatible)
		err = qcow2_header_switch(q, &h);
	qcow2_layout_unlock(q);
	return err;
}

static int make_clean(struct qcow2 *q, struct blk_err *err)
{
	int ret = 0;

	if (q->h.incompatible & QCOW2_INC_DIRTY) {
		ret = qcow2_repair_refcounts(q, err);
		if (ret)
			return ret;
	}
	ret = clear_bits(q, QCOW2_INC_DIRTY);
	if (!ret)
		q->bitmaps = 0;
	return ret ? blk_fail(err, ret, BLK_E_SYS, 0, 0) : 0;
}

/* Nothing dirty is left in the cache, or it is lost. */
static void detach(struct qcow2 *q)
{
	const struct thr_alloc *mem = q->blk.mem;

	qcow2_packer_close(q);
	qcow2_drops_free(q);
	qcow2_meta_close(q);
	fmt_cache_detach(q->cache, q->blk.file);
	thr_put(mem, q->w, sizeof(*q->w));
	q->w = NULL;
}

int qcow2_write_open(struct qcow2 *q, const struct fmt_open *o, struct blk_err *err)
{
	struct qcow2_write *w = thr_zget(q->blk.mem, sizeof(*w));
	int ret;

	if (!w)
		return blk_fail(err, -THR_ENOMEM, BLK_E_SYS, 0, 0);
	init(q, w, o->flags & FMT_REPAIR);
	ret = fmt_cache_attach(q->cache, q->blk.file);
	if (ret) {
		thr_put(q->blk.mem, w, sizeof(*w));
		return blk_fail(err, ret, BLK_E_SYS, 0, 0);
	}
	q->w = w;
	if (qcow2_external(q))
		fmt_cache_data(q->cache, q->blk.file, q->data);
	ret = qcow2_packer_open(q, o->opts, err);
	fmt_cache_lazy(q->cache, q->blk.file, w->lazy);
	if (!ret && !(o->flags & FMT_REPAIR)) {
		ret = make_clean(q, err);
		if (!ret)
			ret = qcow2_meta_open(q, o, err);
	}
	if (ret) {
		detach(q);
		return ret;
	}
	/* What those who had it open before have written may not be durable yet; who reads
	 * it now, and flushes, relies on it. */
	fmt_cache_lock(q->cache);
	fmt_cache_wrote(q->cache, q->blk.file);
	fmt_cache_unlock(q->cache);
	q->blk.ops = &qcow2_rw_ops;
	return 0;
}

/* Flushes until nothing is pending: requests have ended, so the second flush writes
 * what the first has decremented. */
static int finish(struct qcow2 *q)
{
	int err = qcow2_flush(&q->blk);

	if (!err)
		err = qcow2_flush(&q->blk);
	return err;
}

/* The last sector of the last stream is there whole, for readers that want it so. */
static void round_up(struct qcow2 *q)
{
	uint64_t size = blk_size(q->blk.file);

	if (q->blk.file->grows && size & 511)
		blk_truncate(q->blk.file, thr_align_up(size, 512), BLK_PREALLOC_OFF, NULL);
}

void qcow2_write_close(struct qcow2 *q)
{
	if (!q->w)
		return;
	if (!finish(q) && q->w->dirty)
		clear_bits(q, QCOW2_INC_DIRTY);
	round_up(q);
	detach(q);
}

const struct blk_ops qcow2_rw_ops = {
	.name = "qcow2",
	.preadv = qcow2_preadv,
	.pwritev = qcow2_pwritev,
	.compress = true,
	.zero = qcow2_zero,
	.discard = qcow2_discard,
	.flush = qcow2_flush,
	.status = qcow2_status,
	.truncate = qcow2_truncate,
	.close = qcow2_close,
};
