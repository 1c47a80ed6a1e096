/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/firmware/arena.h - an allocator over a fixed piece of memory: first fit, freed
 * blocks joined. As small as an embedder would write it.
 */
#ifndef T_FIRMWARE_ARENA_H
#define T_FIRMWARE_ARENA_H

#include "thr/base.h"

struct arena_hole;
struct arena {
	struct thr_alloc mem;
	struct arena_hole *holes; /* by address */
	size_t used, peak;        /* bytes handed out, rounded up to 16 */
};

/* @base is aligned to 16. */
void arena_init(struct arena *a, void *base, size_t size);

#endif
