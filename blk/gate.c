/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/gate.c - requests in flight, and drains.
 *
 * A device counts its requests in several slots, one for each executor or so.
 * Draining sets the top bit of every slot. Who counts itself in or out sees the
 * bit in the same atomic step: one that comes in takes itself out again and
 * waits, one that goes out tells the drainer. Requests made by an admitted
 * request (BLK_CHILD) stay in, and the drainer waits for them too.
 *
 * The slots are not read in one step, and need not be: a child on another slot
 * ends before its parent does, so what is found empty stays empty but for
 * those that came in by mistake, who only make the count larger for a moment.
 */
#include "blk/private.h"

void blk_enter_slow(struct blk *b, struct blk_slot *s)
{
	do {
		blk_add(&s->n, (uint32_t)-1);
		thr_mutex_lock(&b->drain_lock);
		thr_cond_broadcast(&b->drain_cond);
		while (b->drained)
			thr_cond_wait(&b->drain_cond, &b->drain_lock);
		thr_mutex_unlock(&b->drain_lock);
	} while (blk_add(&s->n, 1) & BLK_DRAINING);
}

void blk_leave_slow(struct blk *b)
{
	thr_mutex_lock(&b->drain_lock);
	thr_cond_broadcast(&b->drain_cond);
	thr_mutex_unlock(&b->drain_lock);
}

static bool is_busy(struct blk *b)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < BLK_SLOTS; i++)
		n |= blk_load(&b->inflight[i].n) & ~BLK_DRAINING;
	return n != 0;
}

void blk_drain_begin(struct blk *b)
{
	thr_mutex_lock(&b->drain_lock);
	if (b->drained++ == 0)
		for (unsigned i = 0; i < BLK_SLOTS; i++)
			blk_or(&b->inflight[i].n, BLK_DRAINING);
	while (is_busy(b))
		thr_cond_wait(&b->drain_cond, &b->drain_lock);
	thr_mutex_unlock(&b->drain_lock);
}

void blk_drain_end(struct blk *b)
{
	thr_mutex_lock(&b->drain_lock);
	THR_ASSERT(b->drained);
	if (--b->drained == 0) {
		for (unsigned i = 0; i < BLK_SLOTS; i++)
			blk_and(&b->inflight[i].n, ~BLK_DRAINING);
		thr_cond_broadcast(&b->drain_cond);
	}
	thr_mutex_unlock(&b->drain_lock);
}

void blk_init(struct blk *b, const struct blk_ops *ops, const char *name, unsigned flags,
	const struct thr_alloc *mem)
{
	memset(b, 0, sizeof(*b));
	b->ops = ops;
	b->mem = mem;
	b->name = name;
	b->flags = flags;
	b->align = 1;
	b->zero_align = 1;
	b->mem_align = 1;
	b->max_io = BLK_MAX_IO;
	blk_ranges_init(&b->ranges);
	thr_mutex_init(&b->drain_lock);
	thr_cond_init(&b->drain_cond);
}

void blk_fini(struct blk *b)
{
	THR_ASSERT(!b->drained && !is_busy(b));
	THR_ASSERT(!b->ranges.head);
}

void blk_close(struct blk *b)
{
	if (b)
		b->ops->close(b);
}
