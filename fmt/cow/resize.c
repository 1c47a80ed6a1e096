/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/cow/resize.c - another length of the disk, and giving everything up.
 *
 * The bitmap lies between the header and the data, and its length follows from the disk's.
 * So a disk can be made longer or shorter as long as the data begins where it did; what
 * would move it is refused. The header is switched by one sector: before a longer length
 * is there, the bits that it brings to light are durable; after a shorter one they go.
 */
#include "fmt/barrier.h"
#include "fmt/cow/cow.h"

static int settle(struct cow *c)
{
	int err;

	fmt_cache_lock(c->cache);
	err = fmt_cache_flush(c->cache, c->blk.file);
	fmt_cache_unlock(c->cache);
	return err;
}

/* Of a disk of so many bytes, in the cache. */
static int put_size(struct cow *c, uint64_t size)
{
	struct blk *below = c->blk.backing;
	uint64_t stored = cow_stored_size(c->at, size, below ? fmt_bytes(below) : size);
	uint8_t p[8];
	int err;

	thr_put_be64(p, stored);
	err = cow_header_put(c, c->at->size, p, sizeof(p));
	if (!err)
		c->stored = stored;
	return err;
}

int cow_lengthen(struct cow *c, uint64_t size, enum blk_prealloc p, struct blk_err *err)
{
	uint64_t end = c->lay.data + size;

	return blk_size(c->blk.file) < end ? blk_truncate(c->blk.file, end, p, err) : 0;
}

/* The tail of the bitmap beyond the disk may hold anything: none of it is to show, nor
 * what a longer backing file has there. */
static int grow(
	struct cow *c, uint64_t old, uint64_t size, enum blk_prealloc p, struct blk_err *err)
{
	int code = cow_lengthen(c, size, p, err);

	if (code)
		return code;
	code = cow_clear(c, old, size - old);
	if (!code)
		code = cow_zero_range(c, old, size - old, BLK_UNMAP);
	if (!code)
		code = settle(c);
	if (!code)
		code = put_size(c, size);
	if (!code)
		code = settle(c);
	return code ? blk_fail(err, code, BLK_E_SYS, 0, size) : 0;
}

static int shrink(struct cow *c, uint64_t old, uint64_t size, struct blk_err *err)
{
	int code = put_size(c, size);

	if (!code)
		code = settle(c);
	if (!code)
		code = cow_clear(c, size, old - size);
	if (!code)
		code = settle(c);
	if (!code && c->blk.file->ops->truncate && blk_size(c->blk.file) > c->lay.data + size)
		return blk_truncate(c->blk.file, c->lay.data + size, BLK_PREALLOC_OFF, err);
	return code ? blk_fail(err, code, BLK_E_SYS, 0, size) : 0;
}

int cow_truncate(struct blk *b, uint64_t size, enum blk_prealloc p, struct blk_err *err)
{
	struct cow *c = cow_of(b);
	uint64_t old = blk_size(b);
	struct cow_layout l;
	int code;

	size = thr_align_up(size, COW_SECTOR);
	if (p == BLK_PREALLOC_METADATA)
		p = BLK_PREALLOC_OFF;
	if (cow_layout(c->at, c->align, size, &l))
		return blk_fail(err, -THR_EFBIG, BLK_E_COW_SIZE, 0, size);
	if (l.data != c->lay.data)
		return blk_fail(err, -THR_ENOTSUP, BLK_E_COW_RESIZE, 0, size);
	if (size == old)
		return 0;
	code = size > old ? grow(c, old, size, p, err) : shrink(c, old, size, err);
	if (code)
		return code;
	c->lay = l;
	blk_set_size(b, size);
	return 0;
}

/* The backing file is what it is now; programs that merge look at that. */
static int put_base(struct cow *c)
{
	uint8_t p[4];
	int64_t mtime;
	int err;

	if (!c->blk.backing)
		return 0;
	err = put_size(c, blk_size(&c->blk));
	if (err || blk_mtime(c->blk.backing, &mtime))
		return err;
	thr_put_be32(p, (uint32_t)mtime);
	err = cow_header_put(c, c->at->mtime, p, sizeof(p));
	if (!err)
		c->mtime = (uint32_t)mtime;
	return err;
}

/* What is given up is given back once the bitmap says so durably. */
int cow_empty(struct blk *b)
{
	struct cow *c = cow_of(b);
	uint64_t size = blk_size(b), have;
	struct blk_req r = {.off = c->lay.data, .flags = BLK_CHILD};
	int err = cow_clear(c, 0, size);

	if (!err)
		err = put_base(c);
	if (!err && FMT_BARRIER(PUNCH_AFTER_DROP))
		err = settle(c);
	have = blk_size(b->file);
	if (err || have <= r.off)
		return err;
	r.len = THR_MIN(size, have - r.off);
	err = blk_discard(b->file, &r);
	fmt_cache_lock(c->cache);
	fmt_cache_wrote(c->cache, b->file);
	fmt_cache_unlock(c->cache);
	return err;
}
