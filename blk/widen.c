/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/widen.c - reads of any alignment on a device with block sizes.
 *
 * A read that the driver could not take as it is goes through a bounce buffer,
 * block by block from the first to the last that it touches. The last block of
 * a device whose length is no multiple of its blocks passes the end; what the
 * driver gives there is not looked at.
 */
#include "blk/private.h"

/* Every piece starts aligned, and every piece but the last ends aligned; the last
 * one does where the request does. */
bool blk_mem_aligned(const struct blk *b, const struct blk_req *r)
{
	size_t mask = b->mem_align - 1;
	size_t len_mask = mask | (b->align - 1);
	uint64_t left = r->len;
	struct blk_cursor c;

	if (!mask)
		return true;
	blk_cursor_init(&c, r, 0);
	while (left) {
		size_t n = (size_t)left;
		void *p = blk_cursor_next(&c, &n);

		left -= n;
		if ((uintptr_t)p & mask || (left && n & len_mask))
			return false;
	}
	return true;
}

int blk_widen_read(struct blk *b, const struct blk_req *r)
{
	uint64_t at = thr_align_down(r->off, b->align);
	uint64_t end = thr_align_up(r->off + r->len, b->align);
	size_t size = (size_t)THR_MIN(end - at, THR_MAX(BLK_BOUNCE_MAX, b->align));
	struct thr_iov v = {.len = size};
	struct blk_req p = {.iov = &v, .niov = 1};
	int err = 0;

	if (thr_is_aligned(r->off | r->len, b->align) && blk_mem_aligned(b, r))
		return blk_dev_read(b, r);
	v.base = thr_get(b->mem, size, b->mem_align);
	if (!v.base)
		return -THR_ENOMEM;
	for (; !err && at < end; at += p.len) {
		uint64_t lo = THR_MAX(at, r->off);
		uint64_t hi;

		p.off = at;
		p.len = THR_MIN(size, end - at);
		hi = THR_MIN(at + p.len, r->off + r->len);
		err = blk_dev_read(b, &p);
		if (!err)
			blk_req_from_buf(r, lo - r->off, (uint8_t *)v.base + (lo - at),
				(size_t)(hi - lo));
	}
	thr_put(b->mem, v.base, size);
	return err;
}
