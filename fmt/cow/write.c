/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/cow/write.c - writing into a cow image.
 *
 * The core widens requests to whole sectors, which is the grain of the bitmap, so that no
 * sector is ever copied from below: what is written is written whole, first its data, then
 * its bit in the cache. The page of the bitmap is told to wait for a flush of the device
 * that covers the data. A write whose bits are set already has nothing to change there, and
 * costs nothing there.
 *
 * Bits are set and cleared under the lock of the cache, so two writers to one page keep
 * each other's. Requests on the same sector at the same time have no order, as anywhere.
 *
 * A zeroed sector is a sector of the image like others, with a hole under it where the
 * file system has them; one that reads as zeroes from below is left alone. Discarding gives
 * the data's space back, but not the bit: what the backing file has stays hidden.
 */
#include "fmt/barrier.h"
#include "fmt/cow/cow.h"

/* As much as is zeroed at once. */
#define STEP (64u << 20)

int cow_make_room(struct cow *c)
{
	int err = 0;

	fmt_cache_lock(c->cache);
	if (fmt_cache_pressed(c->cache))
		err = fmt_cache_writeback(c->cache, c->blk.file);
	fmt_cache_unlock(c->cache);
	return err;
}

/* Sets or clears bits [first, end), of which at least one changes. */
static void put_bits(uint8_t *map, uint64_t first, uint64_t end, bool set)
{
	uint64_t whole = thr_align_up(first, 8) / 8, last = end / 8;

	if (whole < last) {
		memset(map + whole, set ? 0xff : 0, (size_t)(last - whole));
		put_bits(map, first, whole * 8, set);
		first = last * 8;
	}
	for (; first < end; first++) {
		uint8_t bit = (uint8_t)(1u << (first & 7));

		map[first / 8] = (uint8_t)(set ? map[first / 8] | bit : map[first / 8] & ~bit);
	}
}

/* What of [sector, sector + n) one slice holds, which is *done. Pages in which nothing
 * changes stay clean. */
static int change_slice(
	struct cow *c, uint64_t sector, uint64_t n, bool set, uint64_t epoch, uint64_t *done)
{
	uint64_t pos = c->lay.bitmap + sector / 8, skip = sector & 7, first, end;
	struct fmt_slice *s;
	uint32_t in;
	int err = fmt_slice_get(c->cache, c->blk.file, pos, &s);

	if (err)
		return err;
	in = (uint32_t)(pos - s->off);
	*done = THR_MIN(n, (fmt_cache_slice_size(c->cache) - in) * 8ull - skip);
	end = skip + *done;
	first = cow_bits_until(s->data + in, skip, end, set);
	if (first < end) {
		put_bits(s->data + in, first, end, set);
		fmt_slice_dirty(c->cache, s, FMT_RANK_REFBLOCK, in + (uint32_t)(first / 8),
			in + (uint32_t)((end + 7) / 8));
		if (FMT_BARRIER(COW_BITMAP))
			fmt_slice_after(c->cache, s, epoch);
	}
	fmt_slice_put(c->cache, s);
	return 0;
}

/* A bit that is set comes after what has been written by now; one that is cleared waits for
 * nothing. */
static int change(struct cow *c, uint64_t off, uint64_t len, bool set)
{
	uint64_t sector = off / COW_SECTOR, end = sector + len / COW_SECTOR;
	uint64_t done = 0, epoch = 0;
	int err = 0;

	fmt_cache_lock(c->cache);
	if (set) {
		epoch = fmt_cache_epoch(c->cache, c->blk.file);
		fmt_cache_wrote(c->cache, c->blk.file);
	}
	for (; !err && sector < end; sector += done)
		err = change_slice(c, sector, end - sector, set, epoch, &done);
	fmt_cache_unlock(c->cache);
	return err;
}

int cow_mark(struct cow *c, uint64_t off, uint64_t len)
{
	return change(c, off, len, true);
}

int cow_clear(struct cow *c, uint64_t off, uint64_t len)
{
	uint64_t n;
	int err = 0;

	for (; !err && len; off += n, len -= n) {
		n = THR_MIN(len, (uint64_t)STEP);
		err = cow_make_room(c);
		if (!err)
			err = change(c, off, n, false);
	}
	return err;
}

int cow_header_put(struct cow *c, uint32_t at, const uint8_t *p, uint32_t len)
{
	struct fmt_slice *s;
	int err;

	fmt_cache_lock(c->cache);
	err = fmt_slice_get(c->cache, c->blk.file, at, &s);
	if (!err) {
		uint32_t in = at - (uint32_t)s->off;

		memcpy(s->data + in, p, len);
		fmt_slice_dirty(c->cache, s, FMT_RANK_REFBLOCK, in, in + len);
		fmt_slice_put(c->cache, s);
	}
	fmt_cache_unlock(c->cache);
	return err;
}

static int cow_flush(struct blk *b)
{
	struct cow *c = cow_of(b);
	int err;

	fmt_cache_lock(c->cache);
	err = fmt_cache_flush(c->cache, b->file);
	fmt_cache_unlock(c->cache);
	return err;
}

static int cow_pwritev(struct blk *b, struct blk_req *r)
{
	struct cow *c = cow_of(b);
	struct blk_req p = fmt_req_part(r, 0, r->len, c->lay.data + r->off);
	int err = cow_make_room(c);

	p.flags = BLK_CHILD;
	p.turn = NULL;
	if (!err)
		err = blk_pwritev(b->file, &p);
	return err ? err : cow_mark(c, r->off, r->len);
}

/* Whether what lies below a run of clear bits is zeroes, and for how long that holds, in
 * whole sectors. */
static int zero_below(struct cow *c, uint64_t off, uint64_t len, bool *zero, uint64_t *n)
{
	int err = fmt_zero_below(&c->blk, off, len, zero, n);

	if (err)
		return err;
	if (*zero && *n < COW_SECTOR)
		*zero = false;
	*n = *zero ? thr_align_down(*n, COW_SECTOR) : thr_align_up(*n, COW_SECTOR);
	return 0;
}

int cow_zero_range(struct cow *c, uint64_t off, uint64_t len, unsigned flags)
{
	struct blk_req p = {.flags = BLK_CHILD | (flags & (BLK_UNMAP | BLK_NO_FALLBACK))};
	uint64_t n;
	bool set, zero;
	int err = 0;

	for (; !err && len; off += n, len -= n) {
		err = cow_run(c, off, THR_MIN(len, (uint64_t)STEP), &set, &n);
		zero = false;
		if (!err && !set)
			err = zero_below(c, off, n, &zero, &n);
		if (err || zero)
			continue;
		p.off = c->lay.data + off;
		p.len = n;
		err = cow_make_room(c);
		if (!err)
			err = blk_zero(c->blk.file, &p);
		if (!err)
			err = cow_mark(c, off, n);
	}
	return err;
}

static int cow_zero(struct blk *b, struct blk_req *r)
{
	return cow_zero_range(cow_of(b), r->off, r->len, r->flags);
}

/* A file may end before the disk does. */
static int cow_discard(struct blk *b, struct blk_req *r)
{
	struct cow *c = cow_of(b);
	uint64_t size = blk_size(b->file);
	struct blk_req p = {.off = c->lay.data + r->off, .len = r->len, .flags = BLK_CHILD};
	int err;

	if (p.off >= size)
		return 0;
	p.len = THR_MIN(p.len, size - p.off);
	err = blk_discard(b->file, &p);
	fmt_cache_lock(c->cache);
	fmt_cache_wrote(c->cache, b->file);
	fmt_cache_unlock(c->cache);
	return err;
}

int cow_write_open(struct cow *c, struct blk_err *err)
{
	int code = fmt_cache_attach(c->cache, c->blk.file);

	if (code)
		return blk_fail(err, code, BLK_E_SYS, 0, 0);
	c->attached = true;
	/* What those who had it open before have written may not be durable yet; who reads
	 * it now, and flushes, relies on it. */
	fmt_cache_lock(c->cache);
	fmt_cache_wrote(c->cache, c->blk.file);
	fmt_cache_unlock(c->cache);
	c->blk.ops = &cow_rw_ops;
	return 0;
}

void cow_write_close(struct cow *c)
{
	if (!c->attached)
		return;
	(void)cow_flush(&c->blk);
	fmt_cache_detach(c->cache, c->blk.file);
	c->attached = false;
}

const struct blk_ops cow_rw_ops = {
	.name = "cow",
	.preadv = cow_preadv,
	.pwritev = cow_pwritev,
	.zero = cow_zero,
	.discard = cow_discard,
	.flush = cow_flush,
	.status = cow_status,
	.truncate = cow_truncate,
	.close = cow_close,
};
