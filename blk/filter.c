/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/filter.c - what drivers share that stand on one device and show it as it is.
 */
#include "blk/private.h"

/* No block size: the device below widens what needs it, and a filter sees
 * requests as they were made. Durability is the filter's to ask for, so a flush
 * of the writer is a flush below. */
void blk_filter_init(struct blk *b, const struct blk_ops *ops, struct blk *child,
	const struct thr_alloc *mem)
{
	blk_init(b, ops, child->name,
		child->flags & ~(unsigned)(BLK_WRITETHROUGH | BLK_NOFLUSH), mem);
	b->file = child;
	b->grows = child->grows;
	b->fua = true;
	b->zero_align = child->zero_align;
	blk_set_size(b, blk_size(child));
}

int blk_filter_status(struct blk *b, uint64_t off, uint64_t len, struct blk_extent *e)
{
	int err = blk_status(b->file, off, len, e);

	e->flags = (e->flags & ~(unsigned)BLK_EXT_COMPRESSED) | BLK_EXT_MAPPED;
	e->map = off;
	return err;
}
