/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/chain.c - what a chain of images holds, from the top image down.
 *
 * An image may be shorter or longer than the one below it. Where a layer does not
 * have something and the layer below ends before it, it reads as zeroes, whatever
 * lies still deeper. Everything here is a loop: neither stack nor recursion grows
 * with the chain.
 */
#include "fmt/drivers.h"

/* What the host has at @off of a file, and for how long: from what it said before, or
 * asked about all that follows. */
static int ask_host(struct fmt_holes *h, struct blk *file, uint64_t off, uint64_t size,
	bool *zero, uint64_t *n)
{
	struct blk_extent x;
	unsigned i;
	int err;

	for (i = 0; i < THR_ARRAY_SIZE(h->known); i++)
		if (h->known[i].file == file && off - h->known[i].off < h->known[i].len)
			goto known;
	err = blk_status(file, off, size - off, &x);
	if (err)
		return err;
	i = h->next++ & (THR_ARRAY_SIZE(h->known) - 1);
	h->known[i].file = file;
	h->known[i].off = off;
	h->known[i].len = x.len;
	h->known[i].zero = x.flags & BLK_EXT_ZERO;
known:
	*zero = h->known[i].zero;
	*n = h->known[i].off + h->known[i].len - off;
	return 0;
}

/* Whether the host has anything where an extent lies. Its bytes count as stored
 * (BLK_EXT_DATA stays): a preallocated cluster is still there. */
static int look_for_hole(const struct blk *layer, struct fmt_holes *h, struct fmt_map_extent *e)
{
	struct blk *file = blk_map_file(layer);
	uint64_t size, n;
	bool zero;
	int err;

	if (!file || !(e->flags & BLK_EXT_MAPPED) || e->flags & BLK_EXT_ZERO)
		return 0;
	/* Raw has asked: its extents are the file's. */
	if (fmt_streq(layer->ops->name, "raw"))
		return 0;
	size = blk_size(file);
	if (e->map >= size)
		return 0;
	err = ask_host(h, file, e->map, size, &zero, &n);
	if (err)
		return err;
	if (zero)
		e->flags |= BLK_EXT_ZERO;
	e->len = THR_MIN(e->len, n);
	return 0;
}

int fmt_map(struct blk *image, struct blk *base, uint64_t off, uint64_t len,
	struct fmt_holes *holes, struct fmt_map_extent *e)
{
	struct blk *b = image;
	struct blk_extent x;
	unsigned depth = 0;
	int err;

	THR_ASSERT(off < blk_size(image) && len);
	e->off = off;
	e->len = THR_MIN(len, blk_size(image) - off);
	for (;; depth++) {
		e->layer = b;
		e->depth = depth;
		e->map = 0;
		err = blk_status(b, off, e->len, &x);
		if (err)
			return err;
		THR_ASSERT(x.len && x.len <= e->len);
		e->len = x.len;
		e->flags = x.flags;
		if (x.flags & BLK_EXT_ALLOC)
			break;
		e->flags = BLK_EXT_ZERO;
		b = b->backing;
		if (!b)
			return 0;
		if (b == base) {
			e->flags = 0;
			return 0;
		}
		if (off >= blk_size(b))
			return 0;
		e->len = THR_MIN(e->len, blk_size(b) - off);
	}
	e->map = x.flags & BLK_EXT_MAPPED ? x.map : 0;
	return holes ? look_for_hole(b, holes, e) : 0;
}

/* Finds the layer below @layer that has what lies at @off: NULL where nobody does.
 * Shortens *n to what that holds for. The last layer is not asked when @ask_last is
 * false: it can only be read. */
static int find_below(struct blk *layer, uint64_t off, uint64_t *n, bool ask_last,
	struct blk **out, unsigned *flags)
{
	struct blk_extent x;
	int err;

	*flags = 0;
	for (struct blk *b = layer->backing; b; b = b->backing) {
		if (off >= blk_size(b))
			break;
		*n = THR_MIN(*n, blk_size(b) - off);
		*out = b;
		if (!b->backing && !ask_last)
			return 0;
		err = blk_status(b, off, *n, &x);
		if (err)
			return err;
		*n = x.len;
		*flags = x.flags;
		if (x.flags & BLK_EXT_ALLOC)
			return 0;
	}
	*out = NULL;
	return 0;
}

int fmt_read_below(struct blk *layer, const struct blk_req *r)
{
	struct blk_req part;
	struct blk *b;
	uint64_t n;
	unsigned flags;
	int err;

	for (uint64_t done = 0; done < r->len; done += n) {
		n = r->len - done;
		err = find_below(layer, r->off + done, &n, false, &b, &flags);
		if (err)
			return err;
		part = fmt_req_part(r, done, n, r->off + done);
		part.flags = BLK_CHILD;
		part.turn = NULL;
		if (b && !(flags & BLK_EXT_ZERO))
			err = blk_preadv(b, &part);
		else
			blk_req_fill(&part, 0, 0, (size_t)n);
		if (err)
			return err;
	}
	return 0;
}

int fmt_zero_below(struct blk *layer, uint64_t off, uint64_t len, bool *zero, uint64_t *n)
{
	struct blk *b;
	unsigned flags;
	int err;

	*n = len;
	err = find_below(layer, off, n, true, &b, &flags);
	*zero = !b || flags & BLK_EXT_ZERO;
	return err;
}
