/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/log_replay.c - what a power cut does to the entries of a log, and doing
 * them again to another device.
 */
#include "blk/private.h"

static bool covers(
	const struct blk_log_entry *flush, const struct blk_log_entry *e, uint64_t at)
{
	return flush->op == BLK_OP_FLUSH && !flush->err && flush->completed <= at &&
	       e->completed < flush->submitted;
}

enum blk_log_fate blk_log_fate(struct blk *log, size_t i, uint64_t at)
{
	const struct blk_log_entry *e = blk_log_get(log, i);
	size_t n = blk_log_count(log);

	if (e->submitted > at)
		return BLK_LOG_NOT_YET;
	if (e->completed > at || e->err)
		return BLK_LOG_MAYBE;
	if (e->flags & BLK_FUA)
		return BLK_LOG_DURABLE;
	/* What was submitted after the cut had not completed at it. */
	for (i++; i < n; i++) {
		const struct blk_log_entry *later = blk_log_get(log, i);

		if (later->submitted > at)
			break;
		if (covers(later, e, at))
			return BLK_LOG_DURABLE;
	}
	return BLK_LOG_MAYBE;
}

int blk_log_apply(const struct blk_log_entry *e, uint64_t skip, uint64_t len, struct blk *to)
{
	struct thr_iov v = {.base = (void *)(uintptr_t)e->data, .len = (size_t)e->len};
	struct blk_req r = {.off = e->off + skip, .len = len};

	THR_ASSERT(thr_within(skip, len, e->len));
	switch (e->op) {
	case BLK_OP_WRITE:
		r.iov = &v;
		r.niov = 1;
		r.iov_off = (size_t)skip;
		return blk_pwritev(to, &r);
	case BLK_OP_ZERO:
		r.flags = e->flags & BLK_UNMAP;
		return blk_zero(to, &r);
	case BLK_OP_DISCARD:
		return blk_discard(to, &r);
	case BLK_OP_TRUNCATE:
		return blk_truncate(to, e->off, BLK_PREALLOC_OFF, NULL);
	default:
		return 0;
	}
}

int blk_log_replay(struct blk *log, struct blk *to,
	bool (*pick)(void *arg, size_t i, const struct blk_log_entry *e), void *arg)
{
	size_t n = blk_log_count(log);
	int err = 0;

	for (size_t i = 0; !err && i < n; i++) {
		const struct blk_log_entry *e = blk_log_get(log, i);

		if (pick ? pick(arg, i, e) : !e->err)
			err = blk_log_apply(e, 0, e->len, to);
	}
	return err;
}
