/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/firmware/arena.c - see arena.h.
 */
#include "t/firmware/arena.h"

struct arena_hole {
	size_t size;
	struct arena_hole *next;
};

static size_t rounded(size_t size)
{
	return (size + 15) & ~(size_t)15;
}

static void join(struct arena_hole *h)
{
	if (h->next && (char *)h + h->size == (char *)h->next) {
		h->size += h->next->size;
		h->next = h->next->next;
	}
}

static void insert(struct arena *a, void *p, size_t size)
{
	struct arena_hole **at = &a->holes, *before = NULL, *h = p;

	while (*at && *at < h) {
		before = *at;
		at = &before->next;
	}
	h->size = size;
	h->next = *at;
	*at = h;
	join(h);
	if (before)
		join(before);
}

/* Alignment beyond 16 is for devices that ask for it: there are none here. */
static void *get(void *ctx, size_t size, size_t align)
{
	struct arena *a = ctx;
	size_t need = rounded(size ? size : 1);

	(void)align;
	if (need < size)
		return NULL;
	for (struct arena_hole **at = &a->holes; *at; at = &(*at)->next) {
		struct arena_hole *h = *at;

		if (h->size < need)
			continue;
		*at = h->next;
		if (h->size > need)
			insert(a, (char *)h + need, h->size - need);
		a->used += need;
		a->peak = THR_MAX(a->peak, a->used);
		return h;
	}
	return NULL;
}

static void put(void *ctx, void *p, size_t size)
{
	struct arena *a = ctx;
	size_t len = rounded(size ? size : 1);

	a->used -= len;
	insert(a, p, len);
}

void arena_init(struct arena *a, void *base, size_t size)
{
	a->mem = (struct thr_alloc){.get = get, .put = put, .ctx = a};
	a->holes = NULL;
	a->used = 0;
	a->peak = 0;
	size &= ~(size_t)15;
	if (size >= sizeof(struct arena_hole))
		insert(a, base, size);
}
