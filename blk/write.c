/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/write.c - the write half of the request core: bounds, splitting, growth,
 * turns, durability, and the fallbacks for what a driver leaves out.
 *
 * A write that must be durable and that the driver cannot make so itself is
 * followed by a flush: one for the whole request, however it was split.
 */
#include "blk/private.h"

/* What is written where a device cannot zero. Never written to. */
#ifdef CONFIG_HOSTED
#define ZERO_BUF 65536u
#else
#define ZERO_BUF 512u
#endif
static uint8_t zero_buf[ZERO_BUF] __attribute__((aligned(ZERO_BUF < 4096 ? 16 : 4096)));

#define ZERO_COUNT 16u
static const struct thr_iov zero_iov[ZERO_COUNT] = {
	[0 ... ZERO_COUNT - 1] = {zero_buf, ZERO_BUF},
};
#define ZERO_MAX (ZERO_BUF * ZERO_COUNT)

/* ---- to the driver ---------------------------------------------------------- */

static bool wants_fua(const struct blk *b, const struct blk_req *r)
{
	return (r->flags & BLK_FUA || b->flags & BLK_WRITETHROUGH) && !(b->flags & BLK_NOFLUSH);
}

static unsigned driver_flags(const struct blk *b, const struct blk_req *r)
{
	unsigned flags = r->flags & (BLK_UNMAP | BLK_NO_FALLBACK | BLK_COMPRESS);

	return flags | BLK_CHILD | (b->fua && wants_fua(b, r) ? BLK_FUA : 0u);
}

int blk_dev_write(struct blk *b, const struct blk_req *r)
{
	unsigned flags = driver_flags(b, r);
	struct blk_req p = *r;
	uint64_t max;
	int err = 0;

	p.flags = flags;
	if (THR_LIKELY(p.len <= b->max_io))
		return b->ops->pwritev(b, &p);
	max = thr_align_down(b->max_io, b->align);
	THR_ASSERT(max);
	for (uint64_t at = 0; !err && at < r->len; at += max) {
		p = blk_req_part(r, at, THR_MIN(max, r->len - at));
		p.flags = flags;
		err = b->ops->pwritev(b, &p);
	}
	return err;
}

static int write_zeroes(struct blk *b, const struct blk_req *r)
{
	uint64_t max = THR_MAX(thr_align_down(ZERO_MAX, b->align), b->align);
	struct blk_req p;
	int err = 0;

	THR_ASSERT(b->align <= ZERO_MAX && b->mem_align <= 4096);
	for (uint64_t at = 0; !err && at < r->len; at += max) {
		p = *r;
		p.off += at;
		p.len = THR_MIN(max, r->len - at);
		p.iov = zero_iov;
		p.niov = ZERO_COUNT;
		p.iov_off = 0;
		p.flags &= ~(unsigned)(BLK_UNMAP | BLK_NO_FALLBACK);
		err = blk_dev_write(b, &p);
	}
	return err;
}

int blk_dev_zero(struct blk *b, const struct blk_req *r)
{
	struct blk_req p = *r;
	int err = -THR_ENOTSUP;

	p.flags = driver_flags(b, r);
	p.iov = NULL;
	p.niov = 0;
	p.iov_off = 0;
	if (b->ops->zero)
		err = b->ops->zero(b, &p);
	if (err != -THR_ENOTSUP || r->flags & BLK_NO_FALLBACK)
		return err;
	return write_zeroes(b, r);
}

/* ---- flush ------------------------------------------------------------------- */

/* After a failed flush nobody knows what reached the disk, and the kernel tells
 * each failure only once: so it is remembered. */
static int flush_admitted(struct blk *b)
{
	int err = blk_load(&b->flush_err);

	if (err)
		return err;
	if (b->flags & BLK_NOFLUSH || !(b->flags & BLK_RDWR))
		return 0;
	if (b->ops->flush)
		err = b->ops->flush(b);
	else if (b->file)
		err = blk_flush(b->file);
	if (err)
		blk_set_if0(&b->flush_err, err);
	return err;
}

int blk_flush(struct blk *b)
{
	struct blk_slot *slot = blk_enter(b, 0);
	int err = flush_admitted(b);

	blk_leave(b, slot);
	return err;
}

static int make_durable(struct blk *b, const struct blk_req *r)
{
	return wants_fua(b, r) && !b->fua ? flush_admitted(b) : 0;
}

/* ---- requests ------------------------------------------------------------------ */

static int write_bounds(struct blk *b, const struct blk_req *r)
{
	uint64_t end;

	if (THR_UNLIKELY(!(b->flags & BLK_RDWR)))
		return -THR_EROFS;
	if (THR_UNLIKELY(r->flags & BLK_COMPRESS && !b->ops->compress))
		return -THR_ENOTSUP;
	if (THR_LIKELY(thr_within(r->off, r->len, blk_size(b))))
		return 0;
	if (!b->grows || thr_add_over(r->off, r->len, &end))
		return -THR_EINVAL;
	return end > BLK_MAX_SIZE ? -THR_EFBIG : 0;
}

static int write_admitted(struct blk *b, const struct blk_req *r)
{
	int err = write_bounds(b, r);

	if (err)
		return err;
	if (blk_any_align(b)) {
		err = blk_dev_write(b, r);
		if (!err && b->grows)
			blk_raise(&b->size, r->off + r->len);
	} else {
		err = blk_widen_write(b, r);
	}
	return err ? err : make_durable(b, r);
}

int blk_pwritev(struct blk *b, const struct blk_req *r)
{
	struct blk_slot *slot;
	int err;

	if (THR_UNLIKELY(r->len - 1 >= BLK_MAX_IO)) {
		blk_turn_leave(r->turn);
		return r->len ? -THR_EINVAL : 0;
	}
	slot = blk_enter(b, r->flags);
	err = write_admitted(b, r);
	blk_leave(b, slot);
	blk_turn_leave(r->turn);
	return err;
}

int blk_pwrite(struct blk *b, uint64_t off, const void *buf, size_t len)
{
	struct thr_iov v = {.base = (void *)(uintptr_t)buf, .len = len};
	struct blk_req r = {.off = off, .len = len, .iov = &v, .niov = 1};

	return blk_pwritev(b, &r);
}

static int zero_admitted(struct blk *b, const struct blk_req *r)
{
	int err = write_bounds(b, r);

	if (err)
		return err;
	if (b->align == 1) {
		err = blk_dev_zero(b, r);
		if (!err && b->grows)
			blk_raise(&b->size, r->off + r->len);
	} else {
		err = blk_widen_zero(b, r);
	}
	return err ? err : make_durable(b, r);
}

int blk_zero(struct blk *b, const struct blk_req *r)
{
	struct blk_slot *slot = blk_enter(b, r->flags);
	int err = r->len ? zero_admitted(b, r) : 0;

	blk_leave(b, slot);
	blk_turn_leave(r->turn);
	return err;
}

/* Whole blocks only, and what a growing device does not have yet needs none. */
static int discard_admitted(struct blk *b, const struct blk_req *r)
{
	struct blk_req p = *r;
	struct blk_range lock;
	uint64_t end;
	int err = write_bounds(b, r);

	if (err || !b->ops->discard)
		return err;
	end = thr_align_down(THR_MIN(r->off + r->len, blk_size(b)), b->align);
	p.off = thr_align_up(r->off, b->align);
	if (p.off >= end)
		return 0;
	p.len = end - p.off;
	p.flags = BLK_CHILD;
	p.iov = NULL;
	p.niov = 0;
	if (b->align > 1)
		blk_range_lock(&b->ranges, &lock, p.off, p.len, true);
	err = b->ops->discard(b, &p);
	if (b->align > 1)
		blk_range_unlock(&b->ranges, &lock);
	return err == -THR_ENOTSUP ? 0 : err;
}

int blk_discard(struct blk *b, const struct blk_req *r)
{
	struct blk_slot *slot = blk_enter(b, r->flags);
	int err = r->len ? discard_admitted(b, r) : 0;

	blk_leave(b, slot);
	blk_turn_leave(r->turn);
	return err;
}

static int truncate_admitted(
	struct blk *b, uint64_t size, enum blk_prealloc p, struct blk_err *err)
{
	if (!(b->flags & BLK_RDWR))
		return blk_fail(err, -THR_EROFS, BLK_E_READ_ONLY, 0, 0);
	if (size > BLK_MAX_SIZE)
		return blk_fail(err, -THR_EFBIG, BLK_E_SYS, 0, size);
	if (!b->ops->truncate)
		return blk_fail(err, -THR_ENOTSUP, BLK_E_SYS, 0, size);
	return b->ops->truncate(b, size, p, err);
}

int blk_truncate(struct blk *b, uint64_t size, enum blk_prealloc p, struct blk_err *err)
{
	struct blk_slot *slot = blk_enter(b, 0);
	int ret = truncate_admitted(b, size, p, err);

	blk_leave(b, slot);
	return ret;
}
