/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/check.c - the check: passes over the image, windows, results; and in
 * which order a repair writes.
 *
 * Repair never makes an image worse, whatever part of it a power cut leaves
 * undone: a count that is raised protects, a count is lowered only where all
 * references are known, a COPIED flag is set only once the count of one is
 * durable. Counts that cannot be repaired where they are, are made anew in
 * clusters past the end of the file, and the header switches to them last.
 */
#include "fmt/qcow2/check.h"

int qcow2_ck_pass(struct qcow2_checker *k, unsigned mode,
	int (*fn)(struct qcow2_checker *k, void *ctx), void *ctx)
{
	k->mode = mode;
	for (k->lo = 0; k->lo < k->limit; k->lo += k->cap) {
		int err;

		k->n = THR_MIN(k->cap, k->limit - k->lo);
		k->first = !k->lo;
		k->report = k->first && mode & QCOW2_CK_COUNT;
		memset(k->refs, 0, (size_t)k->n * k->width);
		if (mode & QCOW2_CK_COPIED)
			qcow2_ck_load_once(k);
		qcow2_ck_walk(k);
		err = fn(k, ctx);
		if (err)
			return err;
	}
	return 0;
}

static int compare(struct qcow2_checker *k, void *ctx)
{
	(void)ctx;
	qcow2_ck_compare(k);
	return 0;
}

static int nothing(struct qcow2_checker *k, void *ctx)
{
	(void)ctx;
	(void)k;
	return 0;
}

/* What has been written may be in the cache in its old form. */
static int settle(struct qcow2 *q)
{
	int err = qcow2_ck_flush(q);

	fmt_cache_lock(q->cache);
	fmt_cache_forget(q->cache, q->blk.file, 0, UINT64_MAX);
	fmt_cache_unlock(q->cache);
	qcow2_codecs_forget(q, 0, INT64_MAX);
	return err;
}

/* -EUCLEAN from the rebuild: it is not possible, but the check goes on. */
static int rebuild(struct qcow2_checker *k, struct blk_err *err)
{
	struct fmt_check *c = k->c;
	int ret = -THR_EUCLEAN;

	if (!k->rebuild || !(c->fix & FMT_FIX_ERRORS))
		return 0;
	if (!c->check_errors) {
		qcow2_ck_line(k, "Rebuilding refcount structure");
		ret = qcow2_ck_rebuild(k, err);
	}
	if (ret == -THR_EUCLEAN) {
		c->corruptions += k->later;
		c->leaks += k->later_leaks;
		c->check_errors++;
		return 0;
	}
	if (ret)
		return ret;
	c->corruptions_fixed += k->later;
	c->leaks_fixed += k->later_leaks;
	return 0;
}

/* Says that there are bitmaps where no extension tells of any: only a repair opens
 * such an image. */
static int bitmaps_bit(struct qcow2_checker *k)
{
	struct qcow2 *q = k->q;
	uint64_t bits = q->h.autoclear & ~(uint64_t)QCOW2_AUTO_BITMAPS;
	uint8_t p[8];
	int ret;

	if (q->bitmaps || bits == q->h.autoclear)
		return 0;
	if (!(k->c->fix & FMT_FIX_ERRORS)) {
		qcow2_ck_line(k, "ERROR the bitmaps bit is set without an extension");
		k->c->corruptions++;
		return 0;
	}
	qcow2_ck_line(k, "Repairing the bitmaps bit, set without an extension");
	thr_put_be64(p, bits);
	ret = qcow2_ck_write(q, 88, p, sizeof(p));
	if (ret)
		return ret;
	q->h.autoclear = bits;
	k->c->corruptions_fixed++;
	return 0;
}

static int repair(struct qcow2_checker *k, bool clean, struct blk_err *err)
{
	struct fmt_check *c = k->c;
	int ret = qcow2_ck_pass(k, QCOW2_CK_SCAN, nothing, NULL);

	if (!ret)
		ret = settle(k->q);
	k->hidden = false;
	if (!ret)
		ret = qcow2_ck_pass(k, QCOW2_CK_COUNT, compare, NULL);
	if (!ret)
		ret = settle(k->q);
	if (!ret)
		ret = rebuild(k, err);
	if (!ret)
		ret = qcow2_ck_pass(k, QCOW2_CK_COPIED, nothing, NULL);
	if (!ret)
		ret = settle(k->q);
	if (!ret && clean && !c->corruptions && !c->check_errors)
		ret = qcow2_ck_clean(k);
	return ret ? blk_fail(err, ret, BLK_E_SYS, 0, 0) : 0;
}

static void start(struct qcow2_checker *k, struct qcow2 *q, struct fmt_check *c)
{
	unsigned bits = q->h.cluster_bits;

	memset(k, 0, sizeof(*k));
	k->q = q;
	k->c = c;
	k->mem = q->blk.mem;
	k->file_size = blk_size(q->blk.file);
	k->file_clusters = (k->file_size >> bits) + !!(k->file_size & q->cluster_mask);
	k->limit = k->file_clusters + 1;
	c->image_end = q->cluster_size;
	c->total_clusters = (q->h.size >> bits) + !!(q->h.size & q->cluster_mask);
}

int qcow2_ck_run(
	struct qcow2 *q, struct fmt_check *c, uint32_t window, bool clean, struct blk_err *err)
{
	struct qcow2_checker k;
	int ret = qcow2_ck_settle(q);

	if (ret)
		return blk_fail(err, ret, BLK_E_SYS, 0, 0);
	start(&k, q, c);
	ret = qcow2_ck_count_open(&k, window);
	if (!ret)
		ret = bitmaps_bit(&k);
	if (ret)
		blk_fail(err, ret, BLK_E_SYS, 0, 0);
	else if (c->fix)
		ret = repair(&k, clean, err);
	else
		ret = qcow2_ck_pass(&k, QCOW2_CK_COUNT | QCOW2_CK_COPIED, compare, NULL);
	qcow2_ck_count_close(&k);
	return ret;
}

int qcow2_check(struct blk *b, struct fmt_check *c, struct blk_err *err)
{
	if (c->fix && !(b->flags & BLK_RDWR))
		return blk_fail(err, -THR_EROFS, BLK_E_READ_ONLY, 0, 0);
	return qcow2_ck_run(qcow2_of(b), c, QCOW2_CHECK_WINDOW, true, err);
}
