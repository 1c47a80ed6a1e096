/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/write.h - what the files that change an image share.
 *
 *   write_open.c  becoming writable: dirty bit, autoclear bits, flush, close
 *   header_write.c  header fields changed, by one write of the first sector
 *   alloc.c     host clusters in runs: reference counts up and down
 *   alloc_grow.c  new refcount blocks; a larger refcount table
 *   pending.c   requests in flight; dropped clusters, until they may be reused
 *   overlap.c   where metadata lies, so that nothing is written over it
 *   l2.c        L1 and L2 tables for changing: new, shared, grown
 *   data_write.c  the guest's data into standard clusters
 *   write.c     pwritev: in place, newly allocated, copy on write
 *   pack*.c     writing compressed clusters (pack.h)
 *   zero.c      zero and discard
 *   resize.c, preallocate.c  truncate
 *
 * Order on disk (see fmt/cache.h): refcount block, refcount table, L2, L1; a
 * decrement happens only once what dropped the cluster is durable, so no
 * dependency ever points the other way. An L2 entry enters the cache after the
 * data it points at was written, and is written after a flush that covers them.
 *
 * Order of waiting: turn, generation (qcow2_enter), guest range, layout, the
 * cache's lock. Who waits for its turn, or for the end of a generation, holds
 * nothing of what follows.
 */
#ifndef FMT_QCOW2_WRITE_H
#define FMT_QCOW2_WRITE_H

#include "fmt/qcow2/qcow2.h"

/* hint[i]: no free run of 1 << i clusters starts below it. */
#define QCOW2_HINTS 32

/* Clusters of one request that are allocated before any of them is written. */
#define QCOW2_BATCH 8192u

/* More dropped runs than this are settled before another request may add some. */
#define QCOW2_DROPS_MAX 16384u

struct qcow2_drops; /* pending.c */
struct qcow2_encoder;
struct qcow2_pack;
struct qcow2_meta; /* overlap.c */

/* Of compressed writes: what is kept to be used again (pack.c). */
struct qcow2_packer {
	struct thr_mutex lock;
	struct qcow2_encoder *encoders;
	struct qcow2_pack *idle;
	unsigned nidle;
	int level;
};

struct qcow2_write {
	/* Held by who allocates, or changes L1, refcount table or header: what
	 * it has looked up there stays true while the cache's lock is dropped. */
	struct thr_mutex layout;
	/* Guest clusters whose mapping is being changed. */
	struct blk_ranges ranges;
	/* One change of size at a time; taken before all else. */
	struct thr_mutex resize;

	/* alloc.c, under layout and, to be changed, the cache's lock */
	uint64_t hint[QCOW2_HINTS];
	uint64_t fresh;  /* clusters from here on were never written: they read as zeroes */
	uint64_t packed; /* where the last compressed stream ends, in a cluster; 0: nowhere */

	/* pending.c: the list under the cache's lock, generations under idle_lock */
	struct qcow2_drops *oldest, *newest;
	uint32_t ndrops;
	uint64_t dropped; /* drops that there were so far, */
	uint64_t durable; /* and those of them whose cause is durable */
	struct thr_mutex idle_lock;
	struct thr_cond idle;
	uint64_t gen;      /* atomic */
	uint32_t users[2]; /* atomic: requests in flight, of even and odd generations */
	uint32_t waiting;  /* atomic: on idle */

	bool lazy;  /* counts may be behind while the dirty bit is set */
	bool dirty; /* atomic: the dirty bit is set, durably */
	int err;    /* atomic: the header's state is unknown; nothing may be changed */

	struct qcow2_packer packer;

	struct qcow2_meta *meta; /* under the cache's lock; NULL: no checks */
	bool corrupt;            /* atomic: a check has failed; err is set */
};

/* Layout, then the cache's lock. */
void qcow2_layout_lock(struct qcow2 *q);
void qcow2_layout_unlock(struct qcow2 *q);

/* ---- alloc.c: layout and the cache's lock held (drops) ---- */

/* Allocates @n contiguous host clusters: the first fit, so that the layout depends
 * on the order of calls only. Counts become 1. *fresh: they read as zeroes. */
int qcow2_alloc(struct qcow2 *q, uint64_t n, uint64_t *host, bool *fresh);
/* The same for a table: the cache holds nothing of what lay there before. */
int qcow2_alloc_table(struct qcow2 *q, uint64_t n, uint64_t *host, bool *fresh);
/* Takes an allocation back that nothing has ever pointed to. */
void qcow2_unalloc(struct qcow2 *q, uint64_t host, uint64_t n);
/* Takes one from each of @n counts. -EUCLEAN where one is 0 already; the others
 * are done all the same. */
int qcow2_refcount_dec(struct qcow2 *q, uint64_t cluster, uint64_t n);
/* Sets @n counts from @cluster on, whose blocks are all there. */
int qcow2_refcount_fill(struct qcow2 *q, uint64_t cluster, uint64_t n, uint64_t count);
/* Where refcount block @i lies; 0: there is none. */
int qcow2_refblock_get(struct qcow2 *q, uint64_t i, uint64_t *off);
/* Counts @n clusters from @cluster on as used from now on; whether they were fresh. */
bool qcow2_take_fresh(struct qcow2 *q, uint64_t cluster, uint64_t n);
/* The first cluster that the file can never have. */
uint64_t qcow2_cluster_limit(const struct qcow2 *q);
/* Where the clusters end that have a count other than 0. */
int qcow2_last_used(struct qcow2 *q, uint64_t *end);
/* Makes the cluster at @host read as zeroes. */
int qcow2_zero_cluster(struct qcow2 *q, uint64_t host);
/* Drops what the cache holds of @len bytes at @off. */
int qcow2_purge(struct qcow2 *q, uint64_t off, uint64_t len);

static inline unsigned qcow2_refblock_bits(const struct qcow2 *q)
{
	return q->h.cluster_bits + 3 - q->h.refcount_order;
}

static inline uint64_t qcow2_reft_entries(const struct qcow2 *q)
{
	return (uint64_t)q->h.reft_clusters << (q->h.cluster_bits - 3);
}

/* ---- alloc_grow.c: layout and the cache's lock held (drops) ---- */

/* Makes refcount block @i, in host cluster @at, which is free. */
int qcow2_refblock_new(struct qcow2 *q, uint64_t i, uint64_t at);
/* Moves the refcount table to a larger one that has entry @i. */
int qcow2_reft_grow(struct qcow2 *q, uint64_t i);

/* ---- pending.c ---- */

enum qcow2_drop_flags { QCOW2_PUNCH = 1u << 0 }; /* give the space back to the host */

/* Drops one reference to each of @n host clusters: decrement, punch and reuse
 * happen once the change that dropped them, which is in the cache already, is
 * durable and the requests that may have mapped them have ended. With the
 * cache's lock held, never dropped. Without memory the clusters are leaked. */
void qcow2_drop(struct qcow2 *q, uint64_t host, uint64_t n, unsigned flags);
/* Flushes, then decrements what may be. */
int qcow2_flush(struct blk *b);
/* Before a request that may drop: keeps the list short. Holding nothing but a turn. */
int qcow2_drops_bound(struct qcow2 *q);
void qcow2_drops_free(struct qcow2 *q);

/* ---- overlap.c ---- */

enum qcow2_overlap {
	QCOW2_OV_HEADER = 1u << 0,
	QCOW2_OV_L1 = 1u << 1,
	QCOW2_OV_L2 = 1u << 2,
	QCOW2_OV_REFTABLE = 1u << 3,
	QCOW2_OV_REFBLOCK = 1u << 4,
	QCOW2_OV_SNAPSHOTS = 1u << 5,
	QCOW2_OV_INACTIVE_L1 = 1u << 6,
	QCOW2_OV_INACTIVE_L2 = 1u << 7,
};

/* -EUCLEAN, and nothing is written from now on, if a host range that is to be written,
 * allocated or given up holds metadata. Before it is touched. The cache's lock held. */
int qcow2_guard(struct qcow2 *q, uint64_t host, uint64_t len);
/* At the end of a request, holding nothing: sets the corrupt bit, durably, if a guard
 * has met something. Returns @err. */
int qcow2_guarded(struct qcow2 *q, int err);
/* A table has come into use, or has gone out of it. The cache's lock held. */
void qcow2_meta_add(struct qcow2 *q, uint64_t host, unsigned check);
void qcow2_meta_del(struct qcow2 *q, uint64_t host);
/* Before the first change, with nothing pending in the cache. Tables that lie on each
 * other refuse the image. */
int qcow2_meta_open(struct qcow2 *q, const struct fmt_open *o, struct blk_err *err);
void qcow2_meta_close(struct qcow2 *q);

/* ---- header_write.c ---- */

/* Sets the corrupt bit in the first sector, whatever is pending. With layout alone. */
void qcow2_header_corrupt(struct qcow2 *q);

/* Writes @h in place of the image's header, by its first sector, after a flush of
 * everything else and followed by one; then it is q->h. Where the header stood
 * nobody knows after a failure: nothing is written any more. Layout (or nobody
 * else) and the cache's lock held (drops). */
int qcow2_header_switch(struct qcow2 *q, const struct qcow2_header *h);
/* Before the first change of tables: sets the dirty bit where counts are lazy.
 * Neither layout nor the cache's lock held. */
int qcow2_touch(struct qcow2 *q);

/* ---- l2.c: the cache's lock held (drops) ---- */

/* Makes sure that the L2 table of a guest offset is there and ours alone. Layout
 * held. */
int qcow2_l2_prepare(struct qcow2 *q, uint64_t guest);
/* Moves the L1 table to one of @entries. Layout held. */
int qcow2_l1_grow(struct qcow2 *q, uint32_t entries);
/* Stores an L1 entry. Layout held. */
int qcow2_l1_set(struct qcow2 *q, uint32_t i, uint64_t entry);

enum qcow2_edit_mode {
	QCOW2_EDIT_DATA,      /* point at @host and what follows it; [lo, hi) is there */
	QCOW2_EDIT_ZERO,      /* v3: the zero flag, host clusters dropped */
	QCOW2_EDIT_ZERO_KEEP, /* v3: the zero flag, host clusters kept where they are ours */
	QCOW2_EDIT_CLEAR,     /* unallocated */
	QCOW2_EDIT_ENTRIES,   /* as @entries say */
};

struct qcow2_edit {
	enum qcow2_edit_mode mode;
	uint64_t host; /* DATA */
	/* ENTRIES, of whole clusters: compressed, or standard, or QCOW2_L2E_ZERO, also where
	 * entries are extended. */
	const uint64_t *entries;
	/* Where entries are extended: the guest range that is meant, in whole subclusters.
	 * What is outside stays; CLEAR is about whole clusters. A compressed cluster is
	 * zeroed whole, and DATA in place of it or of a shared cluster brings along all
	 * that is allocated there. */
	uint64_t lo, hi;
	uint64_t after; /* the flush that must come first; 0: none */
	bool hide;      /* ZERO, ZERO_KEEP: set the flag on what is unallocated too */
	unsigned flags; /* enum qcow2_drop_flags, for what is dropped */
	uint64_t done;  /* result: clusters that are done, also after an error */
};
/* Changes @n L2 entries from that of @guest on, whose tables are prepared, and
 * drops what they mapped. The caller holds the guest range. */
int qcow2_l2_edit(struct qcow2 *q, uint64_t guest, uint64_t n, struct qcow2_edit *e);
/* Drops an L2 table that nothing active points to any more. */
void qcow2_drop_table(struct qcow2 *q, uint64_t l2);
/* Drops what one L2 entry maps. Never drops the lock. */
int qcow2_drop_entry(struct qcow2 *q, uint64_t entry, unsigned flags);

/* ---- data_write.c ---- */

/* As qcow2_data_read(); without a vector it is zeroes that are written. */
int qcow2_data_write(struct qcow2 *q, const struct blk_req *r, uint64_t host);
/* Host clusters for @n clusters of the guest's data from @guest on: new ones, or in an
 * external file those at the same offset. Layout and the cache's lock held (drops). */
int qcow2_data_alloc(struct qcow2 *q, uint64_t guest, uint64_t n, uint64_t *host, bool *fresh);
void qcow2_data_unalloc(struct qcow2 *q, uint64_t host, uint64_t n);
/* qcow2_guard() for clusters of data. */
int qcow2_data_guard(struct qcow2 *q, uint64_t host, uint64_t len);
/* Has the external file @size bytes at least; the new ones read as zeroes. */
int qcow2_data_grow(struct qcow2 *q, uint64_t size);
/* Zeroes of the guest's, by the data alone: raw external data. */
int qcow2_data_zero(struct qcow2 *q, uint64_t off, uint64_t len, unsigned flags);
/* What the guest no longer has there goes back to the host. That it fails harms nothing. */
void qcow2_data_punch(struct qcow2 *q, uint64_t off, uint64_t len);
/* Data has been written: the next flush is needed. No lock held. */
void qcow2_data_wrote(struct qcow2 *q);

/* ---- write.c ---- */

int qcow2_pwritev(struct blk *b, struct blk_req *r);
/* Writes the data of @r, or zeroes where it has none, into the image: in place or
 * into new clusters. The caller is entered; @turn is left once all is allocated. */
int qcow2_write_range(struct qcow2 *q, const struct blk_req *r, struct blk_turn *turn);
/* Before a request: makes room for changes. Holding nothing but a turn. */
int qcow2_make_room(struct qcow2 *q);
/* Whether what lies below the image reads as zeroes, and for how many bytes the
 * answer holds. No lock held. */
int qcow2_zero_below(struct qcow2 *q, uint64_t off, uint64_t len, bool *zero, uint64_t *n);

/* ---- pack.c, pack_write.c ---- */

/* Stores the data of @r compressed, in its turn. -EINVAL unless it is whole clusters, of
 * which the last may be cut short by the end of the disk. Holding nothing. */
int qcow2_write_packed(struct qcow2 *q, const struct blk_req *r);
int qcow2_packer_open(struct qcow2 *q, const struct blk_opts *o, struct blk_err *err);
void qcow2_packer_close(struct qcow2 *q);

/* ---- zero.c ---- */

int qcow2_zero(struct blk *b, struct blk_req *r);
int qcow2_discard(struct blk *b, struct blk_req *r);
/* Makes a range read as zeroes. The caller is entered and holds no range. */
int qcow2_zero_range(struct qcow2 *q, uint64_t off, uint64_t len, unsigned flags);

/* ---- resize.c, preallocate.c ---- */

int qcow2_truncate(struct blk *b, uint64_t size, enum blk_prealloc p, struct blk_err *err);
/* Allocates all that is not in [off, end), which reads as zeroes. */
int qcow2_preallocate(struct qcow2 *q, uint64_t off, uint64_t end, enum blk_prealloc p);

/* ---- repair.c of the check, or norepair.c ---- */

/* Makes all reference counts anew from the tables, and the COPIED flags with them. */
int qcow2_repair_refcounts(struct qcow2 *q, struct blk_err *err);

#endif
