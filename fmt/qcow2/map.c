/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/map.c - guest offset to extent, through the two levels of tables.
 *
 * The L1 table is an array of L2 offsets, an L2 table one cluster of entries of 8
 * bytes, or of 16 where they are extended: then each of the 32 parts of a cluster is
 * mapped apart, at its own place in the one host cluster. Both are read in slices of the cache,
 * which are never larger than a cluster. An entry with a bit that must be 0, or with an offset
 * that is not aligned, is an error: what it means is not known, so nothing is guessed.
 *
 * The cache's lock may be dropped between two slices. What has been seen by then
 * stays true for the request that asked: tables and clusters that are dropped
 * meanwhile are not reused before it ends.
 */
#include "fmt/qcow2/qcow2.h"

int qcow2_l1_get(struct qcow2 *q, uint32_t i, uint64_t *entry)
{
	uint32_t mask = fmt_cache_slice_size(q->cache) - 1;
	uint64_t off = q->h.l1_off + (uint64_t)i * 8;
	struct fmt_slice *s;
	int err;

	if (i >= q->h.l1_entries)
		return -THR_EUCLEAN;
	err = fmt_slice_get(q->cache, q->blk.file, off & ~(uint64_t)mask, &s);
	if (err)
		return err;
	*entry = thr_be64(s->data + (off & mask));
	fmt_slice_put(q->cache, s);
	return 0;
}

void qcow2_compressed_range(const struct qcow2 *q, uint64_t entry, uint64_t *off, uint32_t *len)
{
	unsigned x = 70 - q->h.cluster_bits;
	uint32_t more = (uint32_t)(entry >> x) & ((1u << (q->h.cluster_bits - 8)) - 1);

	*off = entry & ((1ull << x) - 1);
	*len = (more + 1) * 512 - (uint32_t)(*off & 511);
}

static int decode_compressed(const struct qcow2 *q, uint64_t entry, struct qcow2_extent *e)
{
	uint32_t len;

	qcow2_compressed_range(q, entry, &e->host, &len);
	if (e->host >> 56 || !e->host)
		return -THR_EUCLEAN;
	e->kind = QCOW2_COMPRESSED_CLUSTER;
	e->mapped = false;
	e->copied = false;
	return 0;
}

static int decode_sub(struct qcow2_extent *e, unsigned sub)
{
	uint32_t alloc = (uint32_t)e->bitmap, zero = (uint32_t)(e->bitmap >> 32);

	if (alloc & zero || (alloc && !e->mapped) || (e->copied && !e->mapped))
		return -THR_EUCLEAN;
	if (alloc >> sub & 1)
		e->kind = QCOW2_NORMAL;
	else if (zero >> sub & 1)
		e->kind = e->mapped ? QCOW2_ZERO_ALLOC : QCOW2_ZERO;
	else
		e->kind = QCOW2_UNALLOCATED;
	return 0;
}

int qcow2_l2_decode(const struct qcow2 *q, uint64_t entry, uint64_t bitmap, unsigned sub,
	struct qcow2_extent *e)
{
	uint64_t reserved = QCOW2_L2E_RESERVED;

	e->entry = entry;
	e->bitmap = bitmap;
	if (entry & QCOW2_COMPRESSED && qcow2_external(q))
		return -THR_EUCLEAN;
	if (entry & QCOW2_COMPRESSED)
		return bitmap ? -THR_EUCLEAN : decode_compressed(q, entry, e);
	if (q->h.version < 3 || qcow2_extended(q))
		reserved |= QCOW2_L2E_ZERO;
	e->host = entry & QCOW2_L2E_OFF_MASK;
	e->copied = entry >> 63;
	e->mapped = e->host || (e->copied && qcow2_external(q));
	if (entry & reserved || e->host & q->cluster_mask)
		return -THR_EUCLEAN;
	if (qcow2_extended(q))
		return decode_sub(e, sub);
	if (entry & QCOW2_L2E_ZERO)
		e->kind = e->mapped ? QCOW2_ZERO_ALLOC : QCOW2_ZERO;
	else if (e->mapped)
		e->kind = QCOW2_NORMAL;
	else if (e->copied)
		return -THR_EUCLEAN;
	else
		e->kind = QCOW2_UNALLOCATED;
	return 0;
}

/* Clusters from entry @i of the L2 table on whose entries go on as @entry began,
 * each @step more than the one before: at most @max, the first among them. */
static int run_of_entries(struct qcow2 *q, uint64_t l2, uint32_t i, uint32_t max,
	uint64_t entry, uint32_t step, uint32_t *n)
{
	uint32_t mask = (fmt_cache_slice_size(q->cache) >> 3) - 1;

	*n = 0;
	while (*n < max) {
		uint32_t at = i + *n;
		uint32_t end = THR_MIN(at + (max - *n), (at | mask) + 1);
		struct fmt_slice *s;
		const uint8_t *p;
		int err = fmt_slice_get(
			q->cache, q->blk.file, l2 + (uint64_t)(at & ~mask) * 8, &s);

		if (err)
			return *n ? 0 : err;
		p = s->data + (at & mask) * 8;
		for (; at < end && thr_be64(p) == entry; at++, p += 8)
			entry += step;
		fmt_slice_put(q->cache, s);
		*n = at - i;
		if (at < end)
			break;
	}
	return 0;
}

/* The two bits of a subcluster, in place. */
#define SUB_PAIR (1ull << 32 | 1)

/* How many subclusters from @sub on are like it. */
static uint32_t like(uint64_t bitmap, unsigned sub)
{
	uint64_t pair = bitmap >> sub & SUB_PAIR;
	unsigned end = sub;

	if (bitmap == pair * 0xffffffffull)
		return QCOW2_SUBS - sub;
	while (end < QCOW2_SUBS && (bitmap >> end & SUB_PAIR) == pair)
		end++;
	return end - sub;
}

/* The same as run_of_entries() for extended entries, in subclusters that are as @pair
 * says. */
static int run_of_subs(struct qcow2 *q, uint64_t l2, uint32_t i, uint32_t max, uint64_t entry,
	uint32_t step, uint64_t pair, uint64_t *n)
{
	uint32_t mask = (fmt_cache_slice_size(q->cache) >> 4) - 1, at = i;

	*n = 0;
	while (at < i + max) {
		uint32_t end = THR_MIN(i + max, (at | mask) + 1);
		struct fmt_slice *s;
		const uint8_t *p;
		uint32_t more = QCOW2_SUBS;
		int err = fmt_slice_get(
			q->cache, q->blk.file, l2 + (uint64_t)(at & ~mask) * 16, &s);

		if (err)
			return *n ? 0 : err;
		p = s->data + (at & mask) * 16;
		for (; at < end && more == QCOW2_SUBS; at++, p += 16, entry += step) {
			uint64_t bitmap = thr_be64(p + 8);

			more = 0;
			if (thr_be64(p) == entry && (bitmap & SUB_PAIR) == pair &&
				!((uint32_t)bitmap & (uint32_t)(bitmap >> 32)))
				more = like(bitmap, 0);
			*n += more;
		}
		fmt_slice_put(q->cache, s);
		if (more != QCOW2_SUBS)
			break;
	}
	return 0;
}

/* How many entries of the L1 table say that there is no L2 table, from entry @i on, @max
 * at most. One with reserved bits set says nothing, in a run as on its own. */
static uint32_t run_of_l1(struct qcow2 *q, uint32_t i, uint32_t max)
{
	uint32_t mask = (fmt_cache_slice_size(q->cache) >> 3) - 1;
	uint32_t n = 0;

	while (n < max) {
		uint32_t at = i + n;
		uint32_t end = THR_MIN(at + (max - n), (at | mask) + 1);
		struct fmt_slice *s;
		const uint8_t *p;

		if (fmt_slice_get(q->cache, q->blk.file,
			    q->h.l1_off + (uint64_t)(at & ~mask) * 8, &s))
			break;
		p = s->data + (at & mask) * 8;
		for (; at < end && !(thr_be64(p) & (QCOW2_L1E_OFF_MASK | QCOW2_L1E_RESERVED));
			at++)
			p += 8;
		fmt_slice_put(q->cache, s);
		n = at - i;
		if (at < end)
			break;
	}
	return n;
}

/* @n units of 1 << @bits bytes, the first of which holds @off, as bytes from @off on. */
static uint64_t bytes_from(uint64_t off, uint64_t n, unsigned bits, uint64_t len)
{
	uint64_t bytes = (n << bits) - (off & ((1u << bits) - 1));

	return THR_MIN(bytes, len);
}

static int map_missing_l2(
	struct qcow2 *q, uint64_t off, uint64_t len, uint32_t l1, struct qcow2_extent *e)
{
	unsigned shift = q->h.cluster_bits + q->l2_bits;
	uint32_t last = (uint32_t)((off + len - 1) >> shift);
	uint32_t max = THR_MIN(last, q->h.l1_entries - 1) - l1 + 1;
	uint32_t n = 1;
	uint64_t bytes;

	if (max > 1)
		n += run_of_l1(q, l1 + 1, max - 1);
	bytes = ((uint64_t)n << shift) - (off & ((1ull << shift) - 1));
	e->kind = QCOW2_UNALLOCATED;
	e->len = THR_MIN(bytes, len);
	e->host = 0;
	e->mapped = false;
	e->copied = false;
	e->entry = 0;
	e->bitmap = 0;
	return 0;
}

/* Goes on from the subcluster of @off, whose entry is entry @i of at most @max. */
static int map_subs(struct qcow2 *q, uint64_t off, uint64_t len, uint64_t l2, uint32_t i,
	uint32_t max, struct qcow2_extent *e)
{
	unsigned sub = qcow2_sub(q, off);
	uint32_t step = e->mapped ? q->cluster_size : 0;
	uint64_t n = like(e->bitmap, sub), more = 0;
	int err = 0;

	if (sub + n == QCOW2_SUBS && max > 1)
		err = run_of_subs(q, l2, i + 1, max - 1, e->entry + step, step,
			e->bitmap >> sub & SUB_PAIR, &more);
	e->len = bytes_from(off, n + more, q->unit_bits, len);
	return err;
}

/* The first entry decides; raw entries are compared from there on. */
static int map_l2(
	struct qcow2 *q, uint64_t off, uint64_t len, uint64_t l2, struct qcow2_extent *e)
{
	uint32_t i = (uint32_t)(off >> q->h.cluster_bits) & ((1u << q->l2_bits) - 1);
	uint64_t last = ((off & q->cluster_mask) + len - 1) >> q->h.cluster_bits;
	uint32_t max = (uint32_t)THR_MIN(last + 1, (1ull << q->l2_bits) - i);
	uint32_t mask = fmt_cache_slice_size(q->cache) - 1;
	uint64_t at = l2 + ((uint64_t)i << q->entry_bits);
	struct fmt_slice *s;
	uint32_t n = 1;
	uint64_t entry, bitmap;
	int err = fmt_slice_get(q->cache, q->blk.file, at & ~(uint64_t)mask, &s);

	if (err)
		return err;
	entry = thr_be64(s->data + (at & mask));
	bitmap = qcow2_entry_bitmap(q, s->data + (at & mask));
	fmt_slice_put(q->cache, s);
	err = qcow2_l2_decode(q, entry, bitmap, qcow2_sub(q, off), e);
	if (err)
		return err;
	if (e->mapped && qcow2_external(q) && e->host != off - (off & q->cluster_mask))
		return -THR_EUCLEAN;
	e->len = bytes_from(off, 1, q->h.cluster_bits, len);
	if (e->kind == QCOW2_COMPRESSED_CLUSTER)
		return 0;
	if (qcow2_extended(q)) {
		err = map_subs(q, off, len, l2, i, max, e);
	} else if (max > 1) {
		err = run_of_entries(q, l2, i, max, entry, e->mapped ? q->cluster_size : 0, &n);
		e->len = bytes_from(off, THR_MAX(n, 1u), q->h.cluster_bits, len);
	}
	if (e->mapped)
		e->host += off & q->cluster_mask;
	return err;
}

int qcow2_map_locked(struct qcow2 *q, uint64_t off, uint64_t len, struct qcow2_extent *e)
{
	uint32_t l1 = (uint32_t)(off >> (q->h.cluster_bits + q->l2_bits));
	uint64_t entry, l2;
	int err = qcow2_l1_get(q, l1, &entry);

	if (err)
		return err;
	if (entry & QCOW2_L1E_RESERVED)
		return -THR_EUCLEAN;
	l2 = entry & QCOW2_L1E_OFF_MASK;
	if (!l2)
		return map_missing_l2(q, off, len, l1, e);
	if (l2 & q->cluster_mask)
		return -THR_EUCLEAN;
	if (!qcow2_exists(q, l2))
		return -THR_EUCLEAN;
	return map_l2(q, off, len, l2, e);
}

int qcow2_map(struct qcow2 *q, uint64_t off, uint64_t len, struct qcow2_extent *e)
{
	int err;

	fmt_cache_lock(q->cache);
	err = qcow2_map_locked(q, off, len, e);
	fmt_cache_unlock(q->cache);
	return err;
}
