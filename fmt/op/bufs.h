/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/op/bufs.h - buffers that the workers of an operation share.
 *
 * A worker takes one for a piece of work and gives it back. The one with the lowest
 * number goes out first, so that few are in use, and hot in a processor's cache, where
 * nobody ever waits with one in hand; they are made when they are first wanted.
 */
#ifndef FMT_OP_BUFS_H
#define FMT_OP_BUFS_H

#include "thr/base.h"

#define FMT_BUFS_MAX 64u

struct fmt_bufs {
	const struct thr_alloc *mem;
	size_t size;
	uint64_t idle;           /* atomic: bit i: nobody has number i */
	void *buf[FMT_BUFS_MAX]; /* NULL: not made yet; belongs to who has the number */
};

/* @n buffers, at most FMT_BUFS_MAX: as many as there are workers. */
void fmt_bufs_init(struct fmt_bufs *s, unsigned n, size_t size, const struct thr_alloc *mem);
/* All have been given back. */
void fmt_bufs_fini(struct fmt_bufs *s);
/* Aligned to a page. NULL where there is no memory for one more. */
void *fmt_bufs_take(struct fmt_bufs *s, unsigned *number);
void fmt_bufs_give(struct fmt_bufs *s, unsigned number);

#endif
