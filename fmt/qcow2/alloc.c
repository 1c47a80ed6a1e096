/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/alloc.c - host clusters: reference counts up and down, in runs.
 *
 * Allocation is first fit: the lowest free run that is long enough, where what no
 * refcount block covers counts as free. For each power of two, hint[] remembers
 * from where on a free run of that length may start, so that the search goes on
 * where the last one ended and still finds what was freed below it.
 *
 * Where a run reaches clusters whose counts have no block yet, the blocks are
 * made first, in front of the run. Cluster 0 holds the header and is never
 * handed out, whatever its count says.
 *
 * Clusters from w->fresh on have never been written: the file ends below them, so
 * they read as zeroes.
 */
#include "fmt/qcow2/write.h"

/* ---- where counts lie ------------------------------------------------------- */

static unsigned slice_bits(const struct qcow2 *q)
{
	return thr_log2(fmt_cache_slice_size(q->cache)) + 3 - q->h.refcount_order;
}

int qcow2_refblock_get(struct qcow2 *q, uint64_t i, uint64_t *off)
{
	uint32_t mask = fmt_cache_slice_size(q->cache) - 1;
	uint64_t at = q->h.reft_off + i * 8;
	struct fmt_slice *s;
	int err;

	*off = 0;
	if (i >= qcow2_reft_entries(q))
		return 0;
	err = fmt_slice_get(q->cache, q->blk.file, at, &s);
	if (err)
		return err;
	*off = thr_be64(s->data + (at & mask));
	fmt_slice_put(q->cache, s);
	return *off & (QCOW2_REFT_RESERVED | q->cluster_mask) ? -THR_EUCLEAN : 0;
}

/* Counts of one slice of a block. */
struct counts {
	struct fmt_slice *s;
	uint32_t lo, hi; /* in the slice */
};

/* Pins the slice with the count of @cluster, and says which of its counts are for
 * it and at most @n that follow. s is NULL where there is no block: then lo and hi
 * say how many clusters have none, within the block. */
static int counts_get(struct qcow2 *q, uint64_t cluster, uint64_t n, struct counts *c)
{
	unsigned bits = slice_bits(q), block_bits = qcow2_refblock_bits(q);
	uint64_t in_block = cluster & ((1ull << block_bits) - 1);
	uint64_t block;
	int err = qcow2_refblock_get(q, cluster >> block_bits, &block);

	if (err)
		return err;
	if (!block) {
		c->s = NULL;
		c->lo = 0;
		c->hi = (uint32_t)THR_MIN(n, (1ull << block_bits) - in_block);
		return 0;
	}
	c->lo = (uint32_t)in_block & ((1u << bits) - 1);
	c->hi = (uint32_t)THR_MIN(c->lo + n, 1ull << bits);
	block += in_block >> bits << (bits + q->h.refcount_order - 3);
	return fmt_slice_get(q->cache, q->blk.file, block, &c->s);
}

static void counts_dirty(struct qcow2 *q, const struct counts *c)
{
	unsigned order = q->h.refcount_order;

	fmt_slice_dirty(q->cache, c->s, FMT_RANK_REFBLOCK,
		(uint32_t)((uint64_t)c->lo << order >> 3),
		(uint32_t)((((uint64_t)c->hi << order) + 7) >> 3));
}

/* ---- looking for what is free -------------------------------------------------- */

/* Whether one of the counts that 8 bytes hold is 0. A lane of 0 is the only one
 * from which taking 1 can carry into a top bit that was clear. */
static bool has_zero(uint64_t v, unsigned order)
{
	static const uint64_t ones[] = {
		0xffffffffffffffffull,
		0x5555555555555555ull,
		0x1111111111111111ull,
		0x0101010101010101ull,
		0x0001000100010001ull,
		0x0000000100000001ull,
		0x0000000000000001ull,
	};
	uint64_t top = ones[order] << ((1u << order) - 1);

	return ((v - ones[order]) & ~v & top) != 0;
}

static uint64_t eight(const uint8_t *t, unsigned order, uint32_t i)
{
	return thr_be64(t + ((uint64_t)i << order >> 3));
}

static uint32_t next_free(const uint8_t *t, unsigned order, uint32_t i, uint32_t end)
{
	uint32_t per = 64u >> order;

	while (i < end && qcow2_refcount_load(t, order, i)) {
		i++;
		while (!(i & (per - 1)) && i < end && !has_zero(eight(t, order, i), order))
			i += per;
	}
	return THR_MIN(i, end);
}

static uint32_t next_used(const uint8_t *t, unsigned order, uint32_t i, uint32_t end)
{
	uint32_t per = 64u >> order;

	while (i < end && !qcow2_refcount_load(t, order, i)) {
		i++;
		while (!(i & (per - 1)) && i < end && !eight(t, order, i))
			i += per;
	}
	return THR_MIN(i, end);
}

struct search {
	uint64_t want;
	uint64_t pos;                /* the next cluster to look at */
	uint64_t start, len;         /* the free run that ends there */
	uint64_t first[QCOW2_HINTS]; /* the first run of 1 << i that was too short; 0: none */
};

static void run_ended(struct search *f)
{
	unsigned i;

	for (i = 0; f->len >> i && i < QCOW2_HINTS; i++) {
		if (!f->first[i])
			f->first[i] = f->start;
	}
	f->len = 0;
}

static void run_grows(struct search *f, uint64_t n)
{
	if (!f->len)
		f->start = f->pos;
	f->len += n;
	f->pos += n;
}

static void search_slice(
	struct search *f, const uint8_t *t, unsigned order, uint32_t i, uint32_t end)
{
	uint32_t j;

	while (i < end && f->len < f->want) {
		j = next_used(t, order, i, (uint32_t)THR_MIN(end, i + (f->want - f->len)));
		if (j > i)
			run_grows(f, j - i);
		i = j;
		if (i == end || f->len == f->want)
			break;
		run_ended(f);
		j = next_free(t, order, i, end);
		f->pos += j - i;
		i = j;
	}
}

uint64_t qcow2_cluster_limit(const struct qcow2 *q)
{
	const struct blk *file = q->blk.file;

	return file->grows ? 1ull << (56 - q->h.cluster_bits)
			   : blk_size(file) >> q->h.cluster_bits;
}

static unsigned hint_of(uint64_t n)
{
	return THR_MIN(thr_log2(n), QCOW2_HINTS - 1u);
}

/* Finds the first free run of @f->want clusters. */
static int search_run(struct qcow2 *q, struct search *f)
{
	uint64_t limit = qcow2_cluster_limit(q);
	struct counts c;
	int err;

	f->pos = q->w->hint[hint_of(f->want)];
	while (f->len < f->want) {
		if (f->pos >= limit || f->want - f->len > limit - f->pos)
			return -THR_ENOSPC;
		if (f->pos >> qcow2_refblock_bits(q) >= qcow2_reft_entries(q)) {
			run_grows(f, f->want - f->len);
			break;
		}
		err = counts_get(q, f->pos, UINT32_MAX, &c);
		if (err)
			return err;
		if (!c.s) {
			run_grows(f, THR_MIN(c.hi, f->want - f->len));
			continue;
		}
		search_slice(f, c.s->data, q->h.refcount_order, c.lo, c.hi);
		fmt_slice_put(q->cache, c.s);
	}
	return 0;
}

/* What the search has seen, which began at @from, once all from f->start to @end is
 * used. */
static void hints_raise(
	struct qcow2_write *w, const struct search *f, uint64_t from, uint64_t end)
{
	unsigned i;

	for (i = 0; i < QCOW2_HINTS; i++) {
		uint64_t to = f->first[i] ? f->first[i] : end;

		if (w->hint[i] >= from)
			w->hint[i] = THR_MAX(w->hint[i], to);
	}
}

/* A run that is free now may begin before what was freed. */
static void hints_lower(struct qcow2_write *w, uint64_t freed)
{
	unsigned i;

	for (i = 0; i < QCOW2_HINTS; i++) {
		uint64_t before = (2ull << i) - 1;

		w->hint[i] = THR_MIN(w->hint[i], freed > before ? freed - before : 1);
	}
}

/* ---- counts up --------------------------------------------------------------------- */

static void fill(uint8_t *t, unsigned order, uint32_t lo, uint32_t hi, uint64_t count)
{
	for (; lo < hi; lo++)
		qcow2_refcount_store(t, order, lo, count);
}

int qcow2_refcount_fill(struct qcow2 *q, uint64_t cluster, uint64_t n, uint64_t count)
{
	struct counts c;
	int err;

	while (n) {
		err = counts_get(q, cluster, n, &c);
		if (err)
			return err;
		THR_ASSERT(c.s);
		fill(c.s->data, q->h.refcount_order, c.lo, c.hi, count);
		counts_dirty(q, &c);
		fmt_slice_put(q->cache, c.s);
		cluster += c.hi - c.lo;
		n -= c.hi - c.lo;
	}
	return 0;
}

bool qcow2_take_fresh(struct qcow2 *q, uint64_t cluster, uint64_t n)
{
	bool fresh = cluster >= q->w->fresh;

	q->w->fresh = THR_MAX(q->w->fresh, cluster + n);
	return fresh;
}

/* How many blocks are missing for @n clusters from @cluster on. */
static int blocks_missing(struct qcow2 *q, uint64_t cluster, uint64_t n, uint64_t *missing)
{
	unsigned bits = qcow2_refblock_bits(q);
	uint64_t i, off;

	*missing = 0;
	for (i = cluster >> bits; i <= (cluster + n - 1) >> bits; i++) {
		int err = qcow2_refblock_get(q, i, &off);

		if (err)
			return err;
		if (!off)
			++*missing;
	}
	return 0;
}

/* Makes those blocks, in the clusters from @cluster on. A block's own count is in
 * an older block, in one made just before it, or in itself. */
static int blocks_make(struct qcow2 *q, uint64_t cluster, uint64_t n)
{
	unsigned bits = qcow2_refblock_bits(q);
	uint64_t i, off, at = cluster;

	for (i = cluster >> bits; i <= (cluster + n - 1) >> bits; i++) {
		int err = qcow2_refblock_get(q, i, &off);

		if (!err && !off)
			err = qcow2_refblock_new(q, i, at++);
		if (err)
			return err;
	}
	return 0;
}

/* Finds room for @n clusters and the blocks that they need, *blocks of them. */
static int find_room(struct qcow2 *q, uint64_t n, struct search *f, uint64_t *blocks)
{
	unsigned bits = qcow2_refblock_bits(q);
	uint64_t missing, last;
	int err;

	for (*blocks = 0;;) {
		memset(f, 0, sizeof(*f));
		f->want = n + *blocks;
		err = search_run(q, f);
		if (err)
			return err;
		last = (f->start + f->want - 1) >> bits;
		if (last >= qcow2_reft_entries(q)) {
			err = qcow2_reft_grow(q, last);
			if (err)
				return err;
			continue;
		}
		err = blocks_missing(q, f->start, f->want, &missing);
		if (err)
			return err;
		if (missing <= *blocks) {
			*blocks = missing;
			return 0;
		}
		*blocks = missing;
	}
}

static bool overlaps(
	const struct qcow2 *q, uint64_t cluster, uint64_t n, uint64_t off, uint64_t bytes)
{
	uint64_t start = cluster << q->h.cluster_bits, len = n << q->h.cluster_bits;

	return start < off + bytes && off < start + len;
}

/* Counts of a damaged image may call free what is its L1 or refcount table. */
static bool is_table(const struct qcow2 *q, uint64_t cluster, uint64_t n)
{
	return overlaps(q, cluster, n, q->h.l1_off, (uint64_t)q->h.l1_entries * 8) ||
	       overlaps(q, cluster, n, q->h.reft_off,
		       (uint64_t)q->h.reft_clusters << q->h.cluster_bits);
}

int qcow2_alloc(struct qcow2 *q, uint64_t n, uint64_t *host, bool *fresh)
{
	struct qcow2_write *w = q->w;
	uint64_t blocks, from, start;
	struct search f;
	int err = find_room(q, n, &f, &blocks);

	if (err)
		return err;
	err = qcow2_guard(q, f.start << q->h.cluster_bits, (n + blocks) << q->h.cluster_bits);
	if (err)
		return err;
	if (is_table(q, f.start, n + blocks))
		return -THR_EUCLEAN;
	from = w->hint[hint_of(f.want)];
	if (blocks) {
		err = blocks_make(q, f.start, n + blocks);
		if (err)
			return err;
	}
	start = f.start + blocks;
	err = qcow2_refcount_fill(q, start, n, 1);
	if (err)
		return err; /* what has been filled is leaked */
	hints_raise(w, &f, from, start + n);
	*fresh = qcow2_take_fresh(q, start, n);
	*host = start << q->h.cluster_bits;
	return 0;
}

int qcow2_alloc_table(struct qcow2 *q, uint64_t n, uint64_t *host, bool *fresh)
{
	int err = qcow2_alloc(q, n, host, fresh);

	return err ? err : qcow2_purge(q, *host, n << q->h.cluster_bits);
}

/* ---- counts down --------------------------------------------------------------------- */

/* Takes one from each of the counts; the place of the first that became 0, or hi. */
static uint32_t counts_dec(struct qcow2 *q, const struct counts *c, int *err)
{
	unsigned order = q->h.refcount_order;
	uint32_t i, first = c->hi;

	for (i = c->lo; i < c->hi; i++) {
		uint64_t count = qcow2_refcount_load(c->s->data, order, i);

		if (!count) {
			*err = -THR_EUCLEAN;
			continue;
		}
		qcow2_refcount_store(c->s->data, order, i, count - 1);
		if (count == 1)
			first = THR_MIN(first, i);
	}
	return first;
}

int qcow2_refcount_dec(struct qcow2 *q, uint64_t cluster, uint64_t n)
{
	struct counts c;
	int ret = 0;

	qcow2_codecs_forget(q, cluster << q->h.cluster_bits, n << q->h.cluster_bits);
	while (n) {
		int err = counts_get(q, cluster, n, &c);

		if (err)
			return err;
		if (c.s) {
			uint32_t first = counts_dec(q, &c, &ret);

			if (first < c.hi)
				hints_lower(q->w, cluster + (first - c.lo));
			counts_dirty(q, &c);
			fmt_slice_put(q->cache, c.s);
		} else {
			ret = -THR_EUCLEAN;
		}
		cluster += c.hi - c.lo;
		n -= c.hi - c.lo;
	}
	return ret;
}

void qcow2_unalloc(struct qcow2 *q, uint64_t host, uint64_t n)
{
	qcow2_refcount_dec(q, host >> q->h.cluster_bits, n);
}

/* The last count of a slice that is not 0, plus one; @lo where all are. */
static uint32_t last_used(const uint8_t *t, unsigned order, uint32_t lo, uint32_t hi)
{
	while (hi > lo && !qcow2_refcount_load(t, order, hi - 1))
		hi--;
	return hi;
}

int qcow2_last_used(struct qcow2 *q, uint64_t *end)
{
	unsigned bits = slice_bits(q);
	uint64_t slices = qcow2_reft_entries(q) << (qcow2_refblock_bits(q) - bits);
	struct counts c;

	slices = THR_MIN(slices, (q->w->fresh >> bits) + 1);
	for (; slices; slices--) {
		uint32_t used = 0;
		int err = counts_get(q, (slices - 1) << bits, 1ull << bits, &c);

		if (err)
			return err;
		if (!c.s)
			continue;
		used = last_used(c.s->data, q->h.refcount_order, c.lo, c.hi);
		fmt_slice_put(q->cache, c.s);
		if (used) {
			*end = ((slices - 1) << bits) + used;
			return 0;
		}
	}
	*end = 1;
	return 0;
}

/* ---- content ---------------------------------------------------------------------------- */

int qcow2_zero_cluster(struct qcow2 *q, uint64_t host)
{
	struct blk_req r = {.off = host, .len = q->cluster_size, .flags = BLK_CHILD};
	int err;

	fmt_cache_unlock(q->cache);
	err = blk_zero(q->blk.file, &r);
	fmt_cache_lock(q->cache);
	fmt_cache_wrote(q->cache, q->blk.file);
	return err;
}

int qcow2_purge(struct qcow2 *q, uint64_t off, uint64_t len)
{
	uint32_t size = fmt_cache_slice_size(q->cache);
	struct fmt_slice *s;
	uint64_t at;

	for (at = off; at < off + len; at += size) {
		bool busy;

		if (fmt_slice_peek(q->cache, q->blk.file, at, &s))
			continue;
		busy = s->pins > 1;
		fmt_slice_put(q->cache, s);
		/* Only in a damaged image can a free cluster be a table in use. */
		if (busy)
			return -THR_EUCLEAN;
		fmt_cache_forget(q->cache, q->blk.file, at, size);
	}
	return 0;
}
