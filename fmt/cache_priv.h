/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/cache_priv.h - what cache.c (finding, reading, evicting) and order.c
 * (dirty slices, write-back, flushes) share.
 */
#ifndef FMT_CACHE_PRIV_H
#define FMT_CACHE_PRIV_H

#include "fmt/cache.h"

struct fmt_slice_list {
	struct fmt_slice *head, *tail;
};

/* The order of one file that is being written. */
struct fmt_order {
	struct blk *file;
	struct blk *data; /* flushed before it, or NULL */
	struct fmt_order *next;
	bool lazy;
	struct fmt_slice_list dirty;
	uint32_t ndirty;

	/* Device flushes are numbered from 1; one is in flight at a time. */
	uint64_t started, done;
	bool flushing;
	uint64_t wrote; /* the flush that makes durable all that has been written */
	uint64_t rank_wrote[FMT_RANKS]; /* the same for the slices of a rank */

	/* Write-backs likewise. */
	uint64_t wb_started, wb_done;
	bool wb_running;

	int err; /* for good */
};

struct fmt_cache {
	const struct thr_alloc *mem;
	struct thr_mutex lock;
	struct thr_cond changed; /* a load, flush or write-back has ended */
	uint32_t slice_size;
	unsigned slice_shift;
	uint32_t max, count;
	uint32_t hash_mask;
	struct fmt_slice **hash;
	struct fmt_slice_list lru; /* clean and unpinned; head: used last */
	struct fmt_order *orders;
#ifdef CONFIG_HOSTED
	uint64_t clean_ns;   /* 0: never */
	uint64_t cleaned_at; /* 0: not yet */
	uint8_t period;      /* one value for what was used since, another for the rest */
#endif
};

static inline void fmt_slice_used(const struct fmt_cache *c, struct fmt_slice *s)
{
#ifdef CONFIG_HOSTED
	s->period = c->period;
#else
	(void)c;
	(void)s;
#endif
}

void fmt_list_add(struct fmt_slice_list *l, struct fmt_slice *s); /* at the head */
void fmt_list_del(struct fmt_slice_list *l, struct fmt_slice *s);
/* Puts a slice that may be evicted now into the list for that, or frees it if
 * there are too many. */
void fmt_slice_idle(struct fmt_cache *c, struct fmt_slice *s);
/* The slice of @off, or NULL; pins it. While it is loading, waits (drops). */
struct fmt_slice *fmt_slice_find(struct fmt_cache *c, struct blk *file, uint64_t off);
/* A slice for @off, hashed and pinned, its data undefined. NULL: no memory. */
struct fmt_slice *fmt_slice_take(struct fmt_cache *c, struct blk *file, uint64_t off);
/* Takes a slice that nobody holds out of the cache and frees it. */
void fmt_slice_free(struct fmt_cache *c, struct fmt_slice *s);

#endif
