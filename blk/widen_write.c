/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/widen_write.c - writes and zeroing of any alignment on a device with block
 * sizes.
 *
 * A request is cut into a head and a tail, which cover parts of blocks, and a
 * middle of whole blocks. Head and tail read their block, change it and write
 * it back, holding the block exclusively; the middle holds its blocks shared, so
 * that nobody who is changing one of them writes back what it was before. Each
 * part holds its own range and gives it up before the next, so writers that
 * meet in one block do not wait for each other's middles, nor in a circle.
 *
 * Nobody may wait for a turn while holding a range, so the turn is passed on
 * first; or entered first, by a driver that uses turns and has a block size.
 */
#include "blk/private.h"

struct cut {
	uint64_t head; /* bytes */
	uint64_t mid;
};

static struct cut cut(const struct blk *b, const struct blk_req *r)
{
	uint64_t in_block = r->off & (b->align - 1);
	struct cut c = {0, 0};

	if (in_block)
		c.head = THR_MIN(r->len, b->align - in_block);
	c.mid = thr_align_down(r->len - c.head, b->align);
	return c;
}

/* While the range is held: the next to change the block must read it. */
static void grow(struct blk *b, const struct blk_req *r)
{
	if (b->grows)
		blk_raise(&b->size, r->off + r->len);
}

static int modify_block(struct blk *b, const struct blk_req *r, uint8_t *buf)
{
	uint64_t at = thr_align_down(r->off, b->align);
	struct thr_iov v = {.base = buf, .len = b->align};
	struct blk_req p = {.off = at, .len = b->align, .iov = &v, .niov = 1};
	uint8_t *part = buf + (r->off - at);
	int err = 0;

	if (at < blk_size(b))
		err = blk_dev_read(b, &p);
	else
		memset(buf, 0, b->align);
	if (err)
		return err;
	if (r->iov)
		blk_req_to_buf(r, 0, part, (size_t)r->len);
	else
		memset(part, 0, (size_t)r->len);
	p.flags = r->flags & ~(unsigned)(BLK_UNMAP | BLK_NO_FALLBACK);
	return blk_dev_write(b, &p);
}

/* @r lies within one block. */
static int write_part(struct blk *b, const struct blk_req *r)
{
	uint8_t *buf = thr_get(b->mem, b->align, b->mem_align);
	struct blk_range lock;
	int err;

	if (!buf)
		return -THR_ENOMEM;
	blk_range_lock(&b->ranges, &lock, thr_align_down(r->off, b->align), b->align, false);
	err = modify_block(b, r, buf);
	if (!err)
		grow(b, r);
	blk_range_unlock(&b->ranges, &lock);
	thr_put(b->mem, buf, b->align);
	return err;
}

static int write_bounced(struct blk *b, const struct blk_req *r)
{
	size_t size = (size_t)THR_MIN(r->len, THR_MAX(BLK_BOUNCE_MAX, b->align));
	struct thr_iov v = {.base = thr_get(b->mem, size, b->mem_align), .len = size};
	struct blk_req p = {.flags = r->flags, .iov = &v, .niov = 1};
	int err = 0;

	if (!v.base)
		return -THR_ENOMEM;
	for (uint64_t at = 0; !err && at < r->len; at += size) {
		p.off = r->off + at;
		p.len = THR_MIN(size, r->len - at);
		blk_req_to_buf(r, at, v.base, (size_t)p.len);
		err = blk_dev_write(b, &p);
	}
	thr_put(b->mem, v.base, size);
	return err;
}

static int write_blocks(struct blk *b, const struct blk_req *r)
{
	return blk_mem_aligned(b, r) ? blk_dev_write(b, r) : write_bounced(b, r);
}

static int do_blocks(struct blk *b, const struct blk_req *r,
	int (*fn)(struct blk *b, const struct blk_req *r))
{
	struct blk_range lock;
	int err;

	blk_range_lock(&b->ranges, &lock, r->off, r->len, true);
	err = fn(b, r);
	if (!err)
		grow(b, r);
	blk_range_unlock(&b->ranges, &lock);
	return err;
}

static int do_parts(struct blk *b, const struct blk_req *r,
	int (*fn)(struct blk *b, const struct blk_req *r))
{
	struct cut c = cut(b, r);
	uint64_t tail = r->len - c.head - c.mid;
	struct blk_req p;
	int err = 0;

	/* The middle first: zeroing may find out there that it is not supported. */
	if (c.mid) {
		p = blk_req_part(r, c.head, c.mid);
		p.turn = NULL;
		err = do_blocks(b, &p, fn);
	}
	if (!err && c.head) {
		p = blk_req_part(r, 0, c.head);
		p.turn = NULL;
		err = write_part(b, &p);
	}
	if (!err && tail) {
		p = blk_req_part(r, c.head + c.mid, tail);
		p.turn = NULL;
		err = write_part(b, &p);
	}
	return err;
}

/* Whole blocks, of a driver that uses turns all the same: waits for the turn while
 * nothing is held. Whoever holds a range meanwhile has no turn to wait for. */
static bool keeps_turn(const struct blk *b, const struct blk_req *r)
{
	return b->turns && r->turn && cut(b, r).mid == r->len;
}

static int do_in_turn(struct blk *b, const struct blk_req *r,
	int (*fn)(struct blk *b, const struct blk_req *r))
{
	int err = blk_turn_enter(r->turn);

	return err ? err : do_blocks(b, r, fn);
}

int blk_widen_write(struct blk *b, const struct blk_req *r)
{
	if (keeps_turn(b, r))
		return do_in_turn(b, r, write_blocks);
	blk_turn_leave(r->turn);
	return do_parts(b, r, write_blocks);
}

int blk_widen_zero(struct blk *b, const struct blk_req *r)
{
	struct blk_req p = *r;

	p.iov = NULL;
	p.niov = 0;
	p.iov_off = 0;
	if (keeps_turn(b, r))
		return do_in_turn(b, &p, blk_dev_zero);
	blk_turn_leave(r->turn);
	return do_parts(b, &p, blk_dev_zero);
}
