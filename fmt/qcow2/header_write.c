/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/header_write.c - changes of the header.
 *
 * All that ever changes in the header of an open image are numbers in its first
 * 104 bytes, so a change is one write of the first sector: it is torn by nothing,
 * and extensions, also those that we do not know, and fields that follow stay as
 * they are.
 */
#include "fmt/barrier.h"
#include "fmt/qcow2/write.h"

#define SECTOR 512u

static void put_header(uint8_t *p, const struct qcow2_header *h)
{
	thr_put_be64(p + 24, h->size);
	thr_put_be32(p + 36, h->l1_entries);
	thr_put_be64(p + 40, h->l1_off);
	thr_put_be64(p + 48, h->reft_off);
	thr_put_be32(p + 56, h->reft_clusters);
	thr_put_be32(p + 60, h->snapshots);
	thr_put_be64(p + 64, h->snapshots_off);
	if (h->version < 3)
		return;
	thr_put_be64(p + 72, h->incompatible);
	thr_put_be64(p + 80, h->compatible);
	thr_put_be64(p + 88, h->autoclear);
}

static int write_sector(struct qcow2 *q, const struct qcow2_header *h)
{
	struct thr_iov v = {thr_get(q->blk.mem, SECTOR, SECTOR), SECTOR};
	struct blk_req r = {.len = SECTOR, .iov = &v, .niov = 1, .flags = BLK_CHILD};
	int err = v.base ? blk_preadv(q->blk.file, &r) : -THR_ENOMEM;

	if (!err) {
		put_header(v.base, h);
		err = blk_pwritev(q->blk.file, &r);
		if (err)
			__atomic_store_n(&q->w->err, err, __ATOMIC_RELEASE);
	}
	thr_put(q->blk.mem, v.base, SECTOR);
	return err;
}

static int write_header(struct qcow2 *q, const struct qcow2_header *h)
{
	int err = __atomic_load_n(&q->w->err, __ATOMIC_ACQUIRE);

	if (err)
		return err;
	fmt_cache_unlock(q->cache);
	err = write_sector(q, h);
	fmt_cache_lock(q->cache);
	fmt_cache_wrote(q->cache, q->blk.file);
	return err;
}

/* What others read without the cache's lock never changes, and is left alone. */
static void take_header(struct qcow2_header *to, const struct qcow2_header *h)
{
	to->size = h->size;
	to->l1_entries = h->l1_entries;
	to->l1_off = h->l1_off;
	to->reft_off = h->reft_off;
	to->reft_clusters = h->reft_clusters;
	to->snapshots = h->snapshots;
	to->snapshots_off = h->snapshots_off;
	to->incompatible = h->incompatible;
	to->compatible = h->compatible;
	to->autoclear = h->autoclear;
}

/* Everything that the new header is about, and above all the new place of a table. */
static int flush_before(struct qcow2 *q, const struct qcow2_header *h)
{
	bool moves = h->l1_off != q->h.l1_off || h->reft_off != q->h.reft_off;

	if (moves && !FMT_BARRIER(TABLE_MOVE))
		return 0;
	return fmt_cache_flush(q->cache, q->blk.file);
}

int qcow2_header_switch(struct qcow2 *q, const struct qcow2_header *h)
{
	int err = flush_before(q, h);

	if (!err)
		err = write_header(q, h);
	if (err)
		return err;
	err = fmt_cache_flush(q->cache, q->blk.file);
	if (err) {
		__atomic_store_n(&q->w->err, err, __ATOMIC_RELEASE);
		return err;
	}
	take_header(&q->h, h);
	return 0;
}

void qcow2_header_corrupt(struct qcow2 *q)
{
	struct qcow2_header h = q->h;

	h.incompatible |= QCOW2_INC_CORRUPT;
	if (!write_sector(q, &h))
		(void)blk_flush(q->blk.file);
	fmt_cache_lock(q->cache);
	q->h.incompatible = h.incompatible;
	fmt_cache_unlock(q->cache);
}

static int mark_dirty(struct qcow2 *q)
{
	struct qcow2_header h = q->h;
	int err;

	if (q->w->dirty)
		return 0;
	h.incompatible |= QCOW2_INC_DIRTY;
	err = qcow2_header_switch(q, &h);
	if (!err)
		__atomic_store_n(&q->w->dirty, true, __ATOMIC_RELEASE);
	return err;
}

int qcow2_touch(struct qcow2 *q)
{
	int err = __atomic_load_n(&q->w->err, __ATOMIC_ACQUIRE);

	if (err || !q->w->lazy || __atomic_load_n(&q->w->dirty, __ATOMIC_ACQUIRE))
		return err;
	qcow2_layout_lock(q);
	err = mark_dirty(q);
	qcow2_layout_unlock(q);
	return err;
}
