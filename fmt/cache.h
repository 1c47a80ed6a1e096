/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/cache.h - the metadata cache, and write ordering as an API.
 *
 * Tables of an image (L1, L2, refcounts, bitmaps) are cached in slices, keyed by
 * device and offset; one cache may serve a whole chain. Everything about the
 * metadata of the images that share a cache happens under the cache's lock,
 * which is short: functions marked (drops) release it while they do I/O, so
 * whatever was looked up before must be looked up again, except pinned slices.
 *
 * Ordering. A slice has a rank. Write-back writes ranks in ascending order, and
 * before a slice is written, the slices of lower rank that were dirty when it
 * was last changed are on disk and flushed, and so is everything that it was
 * told to come after (fmt_slice_after). Device flushes are counted: what has
 * been written by now is durable once flush number fmt_cache_epoch() completes.
 * Write-back works on a snapshot of all dirty slices taken at one instant, so a
 * change made meanwhile stays dirty with its own dependencies and write-back
 * always ends.
 *
 * A fresh slice belongs to a table that nothing durable points to yet: it is
 * written without waiting for anything, and its dependencies fall on the slices
 * of higher rank. It stops being fresh with the write-back that writes it.
 */
#ifndef FMT_CACHE_H
#define FMT_CACHE_H

#include "fmt/fmt.h"

enum fmt_rank {
	FMT_RANK_REFBLOCK, /* and bitmaps that follow data only */
	FMT_RANK_REFTABLE,
	FMT_RANK_L2,
	FMT_RANK_L1,
	FMT_RANKS
};

struct fmt_order;

struct fmt_slice {
	uint8_t *data; /* slice_size bytes; valid while pinned */
	uint64_t off;  /* in @file; a multiple of the slice size */
	struct blk *file;

	/* the cache's */
	struct fmt_slice *hash_next;
	struct fmt_slice *prev,
		*next; /* in the list of those that may be evicted, or of the dirty */
	uint32_t pins;
	struct fmt_order *order; /* dirty: of its file */
	uint32_t lo, hi; /* dirty: the bytes that have changed since it was last written */
	uint64_t after;  /* dirty: the flush that must complete before it is written */
	uint8_t rank;
	bool loading; /* its data is being read */
	bool dirty;
	bool fresh;
	bool writing;   /* a snapshot of it is on its way to the disk */
	uint8_t period; /* of its last use, once it may be evicted (cache_clean.c) */
	int err;        /* of loading */
};

struct fmt_cache;

/* Up to @max slices of @slice_size bytes (a power of two, at least 512), which
 * are taken from @mem as they are needed. */
int fmt_cache_open(
	struct fmt_cache **out, uint32_t slice_size, uint32_t max, const struct thr_alloc *mem);
/* No slice is pinned. What is dirty is lost. @c may be NULL. */
void fmt_cache_close(struct fmt_cache *c);
uint32_t fmt_cache_slice_size(const struct fmt_cache *c);

void fmt_cache_lock(struct fmt_cache *c);
void fmt_cache_unlock(struct fmt_cache *c);

/* Finds or reads the slice that holds @off, and pins it (drops). What lies past
 * the end of the file reads as zeroes. */
int fmt_slice_get(struct fmt_cache *c, struct blk *file, uint64_t off, struct fmt_slice **out);
/* The same without I/O: -EAGAIN where it is not there. */
int fmt_slice_peek(struct fmt_cache *c, struct blk *file, uint64_t off, struct fmt_slice **out);
void fmt_slice_put(struct fmt_cache *c, struct fmt_slice *s);
/* Forgets the slices of @file in a range, changes that have not been written
 * included: a table that nothing points to any more, or a file that is closed.
 * None of them is pinned. */
void fmt_cache_forget(struct fmt_cache *c, struct blk *file, uint64_t off, uint64_t len);

#ifdef CONFIG_HOSTED
/* Slices that have not been used for so long are to be freed; 0, as it is at first: they
 * stay. */
void fmt_cache_interval(struct fmt_cache *c, uint64_t ns);
/* Does so, if that long has passed at the time @now since the last time; the first call only
 * starts the clock. Not with the lock held. The bytes that were freed. */
uint64_t fmt_cache_clean(struct fmt_cache *c, uint64_t now);
#endif

#ifdef CONFIG_BLK_WRITE
/* Starts to keep order for @file, which is to be written: -ENOMEM. The functions
 * below may be used only between this and fmt_cache_detach(). */
int fmt_cache_attach(struct fmt_cache *c, struct blk *file);
/* What the tables of @file point at lies in @data, another device: from now on a device
 * flush of @file is one of @data and then one of @file, so that an epoch covers what was
 * written to either. Before the first request. */
void fmt_cache_data(struct fmt_cache *c, struct blk *file, struct blk *data);

/* Forgets all slices of @file and its order. No write-back is running. */
void fmt_cache_detach(struct fmt_cache *c, struct blk *file);

/* A slice whose old content does not matter: zeroed, dirty, fresh, pinned
 * (drops). */
int fmt_slice_new(struct fmt_cache *c, struct blk *file, uint64_t off, enum fmt_rank rank,
	struct fmt_slice **out);
/* Bytes [lo, hi) of a pinned slice have been changed, under the same holding of
 * the lock. */
void fmt_slice_dirty(
	struct fmt_cache *c, struct fmt_slice *s, enum fmt_rank rank, uint32_t lo, uint32_t hi);
/* The slice may be written only once flush @epoch has completed. */
void fmt_slice_after(struct fmt_cache *c, struct fmt_slice *s, uint64_t epoch);

/* With lazy reference counts, L2 and L1 do not wait for counts: the image is marked
 * dirty and they are made anew after a crash. */
void fmt_cache_lazy(struct fmt_cache *c, struct blk *file, bool lazy);

/* The number of the device flush of @file that makes durable what has been
 * written by now. */
uint64_t fmt_cache_epoch(struct fmt_cache *c, struct blk *file);
/* Whether that flush has completed. */
bool fmt_cache_durable(struct fmt_cache *c, struct blk *file, uint64_t epoch);

/* Too many dirty slices: who is about to dirty more calls fmt_cache_writeback()
 * first, holding nothing. */
bool fmt_cache_pressed(const struct fmt_cache *c);
/* Writes the dirty slices of @file, in order, with as few flushes as the
 * dependencies need (drops). */
int fmt_cache_writeback(struct fmt_cache *c, struct blk *file);
/* Write-back, and a flush of the device if anything has been written since the
 * last one (drops). Callers that come while one waits to begin are served by
 * that one. A failure is for good: every later call fails too. */
int fmt_cache_flush(struct fmt_cache *c, struct blk *file);
/* Data was written to @file outside the cache: the next flush is needed. */
void fmt_cache_wrote(struct fmt_cache *c, struct blk *file);
#endif

#endif
