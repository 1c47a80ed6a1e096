/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/turn.c - a request's place in the order of a parallel job.
 *
 * A turn that was passed on is over: entering it again waits for nothing, as
 * happens when the core writes zeroes for a driver that gave up on zeroing.
 */
#include "blk/blk.h"

int blk_turn_enter(struct blk_turn *t)
{
	return t && !t->passed ? thr_seq_enter(t->seq, t->ticket) : 0;
}

void blk_turn_leave(struct blk_turn *t)
{
	if (!t || t->passed)
		return;
	t->passed = true;
	thr_seq_pass(t->seq, t->ticket);
}
