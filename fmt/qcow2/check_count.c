/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/check_count.c - references counted in a window of host clusters, and
 * compared with what the image's reference counts say.
 */
#include "cz/cz.h"
#include "fmt/qcow2/check.h"

#define CHUNK     QCOW2_CHECK_CHUNK
#define SPANS_MAX (2u << 20) /* L2 tables that are remembered: 8 MiB */

/* Images with so many snapshots count in four bytes whatever their size. */
#define SNAPSHOTS_WIDE 200

static size_t once_bytes(const struct qcow2_checker *k)
{
	return (k->cap + 7) / 8;
}

int qcow2_ck_count_open(struct qcow2_checker *k, uint32_t window)
{
	const struct qcow2_header *h = &k->q->h;
	uint32_t chunk = THR_MIN(k->q->cluster_size, CHUNK);
	uint64_t cap;

	k->max = h->refcount_order > 4 ? UINT32_MAX : (1u << (1u << h->refcount_order)) - 1;
	k->width = k->limit * 4 <= window || h->snapshots > SNAPSHOTS_WIDE ? 4 : 1;
	/* No chunk of the image's counts lies in two windows. */
	cap = thr_align_up(window / k->width, (uint64_t)chunk << 3 >> h->refcount_order);
	k->cap_bits = thr_log2(cap * 2 - 1);
	k->cap = (uint32_t)THR_MIN(k->limit, 1ull << k->cap_bits);
	k->nspans = k->limit > k->cap ? THR_MIN(h->l1_entries, SPANS_MAX) : 0;
	k->refs = (uint8_t *)thr_get(k->mem, (size_t)k->cap * k->width, 16);
	k->once = (uint8_t *)thr_get(k->mem, once_bytes(k), 16);
	k->l1 = (uint8_t *)thr_get(k->mem, CHUNK, 512);
	k->l2 = (uint8_t *)thr_get(k->mem, CHUNK, 512);
	k->counts = (uint8_t *)thr_get(k->mem, CHUNK, 512);
	if (k->nspans)
		k->spans =
			(struct qcow2_span *)thr_get(k->mem, k->nspans * sizeof(*k->spans), 16);
	if (!k->refs || !k->once || !k->l1 || !k->l2 || !k->counts || (k->nspans && !k->spans))
		return -THR_ENOMEM;
	return 0;
}

void qcow2_ck_count_close(struct qcow2_checker *k)
{
	thr_put(k->mem, k->refs, (size_t)k->cap * k->width);
	thr_put(k->mem, k->once, once_bytes(k));
	thr_put(k->mem, k->l1, CHUNK);
	thr_put(k->mem, k->l2, CHUNK);
	thr_put(k->mem, k->counts, CHUNK);
	thr_put(k->mem, k->spans, k->nspans * sizeof(*k->spans));
}

uint32_t qcow2_ck_refs(const struct qcow2_checker *k, uint64_t cluster)
{
	uint32_t i = (uint32_t)(cluster - k->lo);
	uint32_t v;

	if (k->width == 1)
		return k->refs[i];
	memcpy(&v, k->refs + (size_t)i * 4, 4);
	return v;
}

static void add_one(struct qcow2_checker *k, uint64_t cluster)
{
	uint32_t i = (uint32_t)(cluster - k->lo);
	uint32_t v = qcow2_ck_refs(k, cluster);

	if (v == k->max) {
		k->unfixed = true;
		if (!(k->mode & QCOW2_CK_COUNT))
			return;
		k->c->corruptions++;
		qcow2_ck_line(k,
			"ERROR: overflow cluster offset=0x%x: refcount_bits of the image are "
			"too few; convert makes a clean copy",
			cluster << k->q->h.cluster_bits);
		return;
	}
	v++;
	if (k->width == 4)
		memcpy(k->refs + (size_t)i * 4, &v, 4);
	else if (v < 256)
		k->refs[i] = (uint8_t)v;
}

static void note_window(struct qcow2_checker *k, uint64_t cluster)
{
	uint16_t w = (uint16_t)THR_MIN(cluster >> k->cap_bits, UINT16_MAX);

	k->span.lo = THR_MIN(k->span.lo, w);
	k->span.hi = THR_MAX(k->span.hi, w);
}

void qcow2_ck_mark(struct qcow2_checker *k, uint64_t off, uint64_t len)
{
	uint64_t cluster_size = k->q->cluster_size;
	uint64_t first = off >> k->q->h.cluster_bits;
	uint64_t last = (off + len - 1) >> k->q->h.cluster_bits;

	if (!len)
		return;
	if (k->first && k->nspans) {
		note_window(k, first);
		note_window(k, last);
	}
	if (off + len > k->file_size && off + len - k->file_size >= cluster_size) {
		k->hidden = true;
		if (last >= k->avoid && first < k->avoid + k->avoid_n)
			k->avoid = last + 1;
		/* It may lie in no window: the first one looks after it. */
		if (k->first && k->nspans)
			note_window(k, 0);
		if (qcow2_ck_found(k))
			qcow2_ck_line(k,
				"ERROR: counting reference for region exceeding the end of the "
				"file by one cluster or more: offset 0x%x size 0x%x",
				off, len);
		return;
	}
	k->highest = THR_MAX(k->highest, last);
	if (k->mode == QCOW2_CK_COPIED)
		return;
	first = THR_MAX(first, k->lo);
	last = THR_MIN(last, k->lo + k->n - 1);
	for (; first <= last; first++)
		add_one(k, first);
}

/* ---- what the image says ---- */

/* The entry of the reference count table for @cluster. */
static bool block_of(struct qcow2_checker *k, uint64_t cluster, uint64_t *block)
{
	const struct qcow2_header *h = &k->q->h;
	uint64_t i = cluster >> (h->cluster_bits + 3 - h->refcount_order);
	uint8_t p[8];

	*block = 0;
	if (i >= (uint64_t)h->reft_clusters << (h->cluster_bits - 3))
		return true;
	if (qcow2_ck_try(k, h->reft_off + i * 8, p, sizeof(p)))
		return false;
	*block = thr_be64(p) & ~QCOW2_REFT_RESERVED;
	return !(*block & k->q->cluster_mask);
}

void qcow2_ck_counts(struct qcow2_checker *k, uint64_t cluster, struct qcow2_counts *s)
{
	unsigned order = k->q->h.refcount_order;
	uint32_t chunk = THR_MIN(k->q->cluster_size, CHUNK);
	uint32_t per_chunk = chunk << 3 >> order;
	uint64_t in_block = cluster & ((1ull << (k->q->h.cluster_bits + 3 - order)) - 1);
	uint64_t block;

	s->first = (uint32_t)in_block & (per_chunk - 1);
	s->n = per_chunk - s->first;
	s->off = 0;
	s->unknown = !block_of(k, cluster, &block);
	if (s->unknown || !block)
		return;
	s->off = block + ((in_block - s->first) << order >> 3);
	s->unknown = qcow2_ck_try(k, s->off, k->counts, chunk);
}

void qcow2_ck_load_once(struct qcow2_checker *k)
{
	unsigned order = k->q->h.refcount_order;
	struct qcow2_counts s;

	memset(k->once, 0, once_bytes(k));
	for (uint64_t at = 0; at < k->n; at += s.n) {
		qcow2_ck_counts(k, k->lo + at, &s);
		s.n = (uint32_t)THR_MIN(s.n, k->n - at);
		k->unknown |= s.unknown;
		if (s.unknown && qcow2_ck_new_error(k) && k->c->fix)
			k->c->check_errors++;
		if (s.unknown || !s.off)
			continue;
		for (uint32_t i = 0; i < s.n; i++)
			if (qcow2_refcount_load(k->counts, order, s.first + i) == 1)
				k->once[(at + i) >> 3] |= 1u << ((at + i) & 7);
	}
}

int qcow2_ck_once(struct qcow2_checker *k, uint64_t cluster)
{
	uint64_t count;
	int err;

	if (k->unknown)
		return -1;
	if (cluster >= k->lo && cluster - k->lo < k->n) {
		cluster -= k->lo;
		return k->once[cluster >> 3] >> (cluster & 7) & 1;
	}
	if (!k->first || cluster < k->limit)
		return -1;
	fmt_cache_lock(k->q->cache);
	err = qcow2_refcount_get(k->q, cluster, &count);
	fmt_cache_unlock(k->q->cache);
	return err ? -1 : count == 1;
}

/* ---- comparing ---- */

/* Whether the image's count may be changed here to what has been found. */
static bool may_fix(struct qcow2_checker *k, uint64_t count, uint32_t refs, bool there)
{
	const struct fmt_check *c = k->c;

	if (count < refs && !there)
		k->rebuild = true;
	if (k->rebuild)
		return false;
	if (count < refs)
		return c->fix & FMT_FIX_ERRORS;
	return c->fix & FMT_FIX_LEAKS && !k->hidden && !c->check_errors;
}

static void differs(struct qcow2_checker *k, uint64_t cluster, uint64_t count, uint32_t refs)
{
	bool leak = count > refs;
	bool later = k->rebuild && k->c->fix & FMT_FIX_ERRORS && !(leak && k->hidden);

	if (leak)
		*(later ? &k->later_leaks : &k->c->leaks) += 1;
	else
		*(later ? &k->later : &k->c->corruptions) += 1;
	k->unfixed = true;
	qcow2_ck_line(k, "%s cluster %u refcount=%u reference=%u", leak ? "Leaked" : "ERROR",
		cluster, count, (uint64_t)refs);
}

/* True if the count has been changed. */
static bool compare_one(struct qcow2_checker *k, uint64_t cluster, const struct qcow2_counts *s,
	uint32_t i, uint32_t refs)
{
	unsigned order = k->q->h.refcount_order;
	uint64_t count = s->off ? qcow2_refcount_load(k->counts, order, i) : 0;
	bool same = count == refs || (k->width == 1 && refs == 255 && count > refs);
	bool fix = !same && may_fix(k, count, refs, s->off);

	if (refs || (count && !fix))
		k->c->image_end = (cluster + 1) << k->q->h.cluster_bits;
	if (same)
		return false;
	if (!fix) {
		differs(k, cluster, count, refs);
		return false;
	}
	qcow2_refcount_store(k->counts, order, i, refs);
	if (count > refs)
		k->c->leaks_fixed++;
	else
		k->c->corruptions_fixed++;
	qcow2_ck_line(k, "Repairing cluster %u refcount=%u reference=%u", cluster, count,
		(uint64_t)refs);
	return true;
}

/* One chunk of counts; true if it has been changed. */
static bool compare_chunk(
	struct qcow2_checker *k, uint64_t cluster, const struct qcow2_counts *s)
{
	bool changed = false;

	for (uint32_t i = 0; i < s->n; i++, cluster++) {
		uint32_t refs = qcow2_ck_refs(k, cluster);

		if (cluster >= k->file_clusters && !refs)
			continue;
		if (!s->unknown)
			changed |= compare_one(k, cluster, s, s->first + i, refs);
		else if (!(k->c->fix & FMT_FIX_ERRORS))
			k->c->check_errors++;
	}
	return changed;
}

void qcow2_ck_compare(struct qcow2_checker *k)
{
	uint32_t chunk = THR_MIN(k->q->cluster_size, CHUNK);
	struct qcow2_counts s;

	for (uint64_t at = 0; at < k->n; at += s.n) {
		qcow2_ck_counts(k, k->lo + at, &s);
		s.n = (uint32_t)THR_MIN(s.n, k->n - at);
		if (s.unknown) {
			k->unknown = true;
			k->rebuild = true;
			qcow2_ck_line(k,
				"ERROR: the refcounts from cluster %u on cannot be read",
				k->lo + at);
		}
		if (compare_chunk(k, k->lo + at, &s))
			qcow2_ck_save(k, s.off, k->counts, chunk);
	}
}
