/* SPDX-License-Identifier: BSD-2-Clause
 *
 * thr/heap.c - the C library's heap behind the allocator handle.
 */
#include <stdlib.h>

#include "thr/base.h"

/* What everybody gets; malloc() of a 32-bit machine gives less. */
#define LEAST 16u

static void *heap_get(void *ctx, size_t size, size_t align)
{
	void *p;

	(void)ctx;
	if (align <= LEAST && _Alignof(max_align_t) >= LEAST)
		return malloc(size);
	return posix_memalign(&p, THR_MAX(align, LEAST), size) ? NULL : p;
}

static void heap_put(void *ctx, void *p, size_t size)
{
	(void)ctx;
	(void)size;
	free(p);
}

const struct thr_alloc thr_heap = {
	.get = heap_get,
	.put = heap_put,
};
