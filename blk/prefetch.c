/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/prefetch.c - asking for data before it is read: a hint to whoever can act on it.
 */
#include "blk/private.h"

int blk_prefetch(struct blk *b, uint64_t off, uint64_t len)
{
	struct blk_slot *slot;
	int err;

	if (!thr_within(off, len, blk_size(b)))
		return -THR_EINVAL;
	if (!b->ops->prefetch)
		return -THR_ENOTSUP;
	slot = blk_enter(b, 0);
	err = b->ops->prefetch(b, off, len);
	blk_leave(b, slot);
	return err;
}
