/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/l2.c - L1 and L2 tables that are changed.
 *
 * A table may be changed in place only if its L1 entry has COPIED: its count is
 * one. Otherwise (snapshots) it is copied to a new cluster first; the copy's
 * entries lose COPIED, since their clusters are shared as well.
 *
 * A new table is at first in the cache only, as far as it is used; the rest of its
 * cluster reads as zeroes. Its slices go to the disk before the L1 entry does, by
 * rank. What L2 entries mapped before is dropped, and stays until the change is
 * durable.
 */
#include "fmt/qcow2/write.h"

static unsigned table_shift(const struct qcow2 *q)
{
	return q->h.cluster_bits + q->l2_bits;
}

static int l1_slice(struct qcow2 *q, uint32_t i, struct fmt_slice **s, uint32_t *at)
{
	uint64_t off = q->h.l1_off + (uint64_t)i * 8;

	*at = (uint32_t)off & (fmt_cache_slice_size(q->cache) - 1);
	return fmt_slice_get(q->cache, q->blk.file, off, s);
}

static void l1_put(struct qcow2 *q, struct fmt_slice *s, uint32_t at, uint64_t entry)
{
	thr_put_be64(s->data + at, entry);
	fmt_slice_dirty(q->cache, s, FMT_RANK_L1, at, at + 8);
}

int qcow2_l1_set(struct qcow2 *q, uint32_t i, uint64_t entry)
{
	struct fmt_slice *s;
	uint32_t at;
	int err = l1_slice(q, i, &s, &at);

	if (err)
		return err;
	l1_put(q, s, at, entry);
	fmt_slice_put(q->cache, s);
	return 0;
}

/* ---- new tables ------------------------------------------------------------- */

/* A table of zeroes, of which the slice with the entry of @guest is the first to be
 * used. *after: the flush that makes its zeroes durable. */
static int table_new(
	struct qcow2 *q, uint64_t host, bool fresh, uint64_t guest, uint64_t *after)
{
	uint32_t mask = fmt_cache_slice_size(q->cache) - 1;
	uint64_t at = (guest >> q->h.cluster_bits & ((1u << q->l2_bits) - 1)) << q->entry_bits;
	struct fmt_slice *s;
	int err = fresh ? 0 : qcow2_zero_cluster(q, host);

	*after = fresh ? 0 : fmt_cache_epoch(q->cache, q->blk.file);
	if (!err)
		err = fmt_slice_new(
			q->cache, q->blk.file, host + (at & ~(uint64_t)mask), FMT_RANK_L2, &s);
	if (!err)
		fmt_slice_put(q->cache, s);
	return err;
}

static int copy_slice(struct qcow2 *q, uint64_t from, uint64_t to)
{
	uint32_t size = fmt_cache_slice_size(q->cache), i;
	struct fmt_slice *s, *d;
	int err = fmt_slice_get(q->cache, q->blk.file, from, &s);

	if (err)
		return err;
	err = fmt_slice_new(q->cache, q->blk.file, to, FMT_RANK_L2, &d);
	if (!err) {
		memcpy(d->data, s->data, size);
		for (i = 0; i < size; i += 1u << q->entry_bits) {
			uint64_t entry = thr_be64(s->data + i);

			if (!(entry & QCOW2_COMPRESSED))
				thr_put_be64(d->data + i, entry & ~QCOW2_COPIED);
		}
		fmt_slice_put(q->cache, d);
	}
	fmt_slice_put(q->cache, s);
	return err;
}

static int table_copy(struct qcow2 *q, uint64_t from, uint64_t to)
{
	uint32_t size = fmt_cache_slice_size(q->cache), i;
	int err = 0;

	for (i = 0; !err && i < q->cluster_size; i += size)
		err = copy_slice(q, from + i, to + i);
	return err;
}

/* Puts a table of our own in place of @old (0: there was none). On failure the new
 * cluster is leaked: slices of it may be in the cache. */
static int table_replace(struct qcow2 *q, uint64_t guest, uint64_t old)
{
	struct fmt_slice *l1;
	uint64_t host, after = 0;
	uint32_t at;
	bool fresh;
	int err = qcow2_alloc_table(q, 1, &host, &fresh);

	if (err)
		return err;
	err = l1_slice(q, (uint32_t)(guest >> table_shift(q)), &l1, &at);
	if (err)
		return err;
	if (old)
		err = table_copy(q, old, host);
	else
		err = table_new(q, host, fresh, guest, &after);
	if (!err) {
		l1_put(q, l1, at, host | QCOW2_COPIED);
		fmt_slice_after(q->cache, l1, after);
		qcow2_meta_add(q, host, QCOW2_OV_L2);
		if (old)
			qcow2_drop_table(q, old);
	}
	fmt_slice_put(q->cache, l1);
	return err;
}

int qcow2_l2_prepare(struct qcow2 *q, uint64_t guest)
{
	uint64_t entry, l2;
	int err = qcow2_l1_get(q, (uint32_t)(guest >> table_shift(q)), &entry);

	if (err)
		return err;
	l2 = entry & QCOW2_L1E_OFF_MASK;
	if (entry & QCOW2_L1E_RESERVED || l2 & q->cluster_mask)
		return -THR_EUCLEAN;
	if (l2 && entry & QCOW2_COPIED)
		return 0;
	return table_replace(q, guest, l2);
}

/* ---- a larger L1 table --------------------------------------------------------- */

/* Writes cluster @j of the new table at @host: the old entries, then zeroes. */
static int l1_copy(struct qcow2 *q, uint64_t host, uint64_t j, uint8_t *buf)
{
	uint64_t off = j << q->h.cluster_bits, end = (uint64_t)q->h.l1_entries * 8;
	uint32_t size = fmt_cache_slice_size(q->cache), i;
	struct thr_iov v = {buf, q->cluster_size};
	struct blk_req r = {
		.off = host + off, .len = v.len, .iov = &v, .niov = 1, .flags = BLK_CHILD};
	int err;

	memset(buf, 0, q->cluster_size);
	for (i = 0; i < q->cluster_size && off + i < end; i += size) {
		struct fmt_slice *s;

		err = fmt_slice_get(q->cache, q->blk.file, q->h.l1_off + off + i, &s);
		if (err)
			return err;
		memcpy(buf + i, s->data, THR_MIN(size, end - (off + i)));
		fmt_slice_put(q->cache, s);
	}
	fmt_cache_unlock(q->cache);
	err = blk_pwritev(q->blk.file, &r);
	fmt_cache_lock(q->cache);
	fmt_cache_wrote(q->cache, q->blk.file);
	return err;
}

int qcow2_l1_grow(struct qcow2 *q, uint32_t entries)
{
	uint64_t n = ((uint64_t)entries * 8 + q->cluster_mask) >> q->h.cluster_bits;
	uint64_t old = ((uint64_t)q->h.l1_entries * 8 + q->cluster_mask) >> q->h.cluster_bits;
	uint64_t old_off = q->h.l1_off, host, j;
	struct qcow2_header h;
	uint8_t *buf;
	bool fresh;
	int err;

	if ((uint64_t)entries * 8 > QCOW2_MAX_L1_BYTES)
		return -THR_EFBIG;
	buf = thr_get(q->blk.mem, q->cluster_size, 512);
	if (!buf)
		return -THR_ENOMEM;
	err = qcow2_alloc_table(q, n, &host, &fresh);
	for (j = 0; !err && j < n; j++)
		err = l1_copy(q, host, j, buf);
	thr_put(q->blk.mem, buf, q->cluster_size);
	if (err)
		return err;
	h = q->h;
	h.l1_off = host;
	h.l1_entries = entries;
	err = qcow2_header_switch(q, &h);
	if (!err && old)
		qcow2_drop(q, old_off, old, QCOW2_PUNCH);
	return err;
}

void qcow2_drop_table(struct qcow2 *q, uint64_t l2)
{
	qcow2_meta_del(q, l2);
	qcow2_drop(q, l2, 1, QCOW2_PUNCH);
}

/* ---- L2 entries ------------------------------------------------------------------- */

/* Whether what an entry maps may be given back. */
static int guard_entry(struct qcow2 *q, const struct qcow2_extent *x)
{
	uint32_t len = q->cluster_size;
	uint64_t host = x->host;

	if (x->kind == QCOW2_COMPRESSED_CLUSTER)
		qcow2_compressed_range(q, x->entry, &host, &len);
	else if (!x->mapped || qcow2_external(q))
		return 0;
	return qcow2_guard(q, host, len);
}

int qcow2_drop_entry(struct qcow2 *q, uint64_t entry, unsigned flags)
{
	struct qcow2_extent x;
	uint32_t len;
	int err = qcow2_l2_decode(q, entry, 0, 0, &x);

	if (!err)
		err = guard_entry(q, &x);
	if (err || qcow2_external(q))
		return err;
	if (x.mapped) {
		qcow2_drop(q, x.host, 1, flags);
	} else if (x.kind == QCOW2_COMPRESSED_CLUSTER) {
		uint64_t last;

		qcow2_compressed_range(q, entry, &x.host, &len);
		last = (x.host + len - 1) >> q->h.cluster_bits;
		qcow2_drop(q, x.host, last - (x.host >> q->h.cluster_bits) + 1, flags);
	}
	return 0;
}

/* What becomes of entry @old, the @i-th that is edited. */
static uint64_t new_entry(const struct qcow2 *q, const struct qcow2_edit *e,
	const struct qcow2_extent *old, uint64_t i)
{
	switch (e->mode) {
	case QCOW2_EDIT_DATA:
		return (e->host + (i << q->h.cluster_bits)) | QCOW2_COPIED;
	case QCOW2_EDIT_ZERO:
	case QCOW2_EDIT_ZERO_KEEP:
		if (old->kind == QCOW2_UNALLOCATED)
			return e->hide ? QCOW2_L2E_ZERO : old->entry;
		if (e->mode == QCOW2_EDIT_ZERO_KEEP && old->copied)
			return old->entry | QCOW2_L2E_ZERO;
		return QCOW2_L2E_ZERO;
	case QCOW2_EDIT_ENTRIES:
		return e->entries[i];
	case QCOW2_EDIT_CLEAR:
		break;
	}
	return 0;
}

/* The subclusters of the guest cluster at @base that an edit is about. */
static uint32_t subs_of(const struct qcow2 *q, const struct qcow2_edit *e, uint64_t base)
{
	uint64_t lo = e->lo > base ? (e->lo - base) >> q->unit_bits : 0;
	uint64_t hi = e->hi > base ? (e->hi - base) >> q->unit_bits : 0;
	uint64_t below = (1ull << THR_MIN(hi, (uint64_t)QCOW2_SUBS)) - 1;

	return (uint32_t)(below & ~((1ull << THR_MIN(lo, (uint64_t)QCOW2_SUBS)) - 1));
}

/* The same for an extended entry. Of a compressed cluster no part is zeroed. */
static uint64_t new_extended(const struct qcow2 *q, const struct qcow2_edit *e,
	const struct qcow2_extent *old, uint64_t i, uint64_t base, uint64_t *bitmap)
{
	uint32_t alloc = (uint32_t)old->bitmap, zero = (uint32_t)(old->bitmap >> 32);
	uint32_t m = subs_of(q, e, base);
	uint64_t entry = 0;

	switch (e->mode) {
	case QCOW2_EDIT_DATA:
		entry = (e->host + (i << q->h.cluster_bits)) | QCOW2_COPIED;
		if (!old->mapped || old->host != (entry & QCOW2_L2E_OFF_MASK))
			alloc = 0;
		alloc |= m;
		zero &= ~m;
		break;
	case QCOW2_EDIT_ZERO:
	case QCOW2_EDIT_ZERO_KEEP:
		if (old->kind == QCOW2_COMPRESSED_CLUSTER)
			alloc = UINT32_MAX;
		zero |= e->hide ? m : m & alloc;
		alloc &= ~m;
		if (alloc || (e->mode == QCOW2_EDIT_ZERO_KEEP && old->copied))
			entry = old->entry;
		break;
	case QCOW2_EDIT_ENTRIES:
		zero = e->entries[i] == QCOW2_L2E_ZERO ? UINT32_MAX : 0;
		alloc = zero || e->entries[i] & QCOW2_COMPRESSED ? 0 : UINT32_MAX;
		entry = zero ? 0 : e->entries[i];
		break;
	case QCOW2_EDIT_CLEAR:
		alloc = 0;
		zero = 0;
		break;
	}
	*bitmap = (uint64_t)zero << 32 | alloc;
	return entry;
}

/* Whether a changed entry still maps the host cluster that it mapped, if any. */
static bool keeps_host(const struct qcow2_extent *old, uint64_t entry)
{
	if (old->kind == QCOW2_COMPRESSED_CLUSTER)
		return entry == old->entry;
	return !old->mapped || (entry & QCOW2_L2E_OFF_MASK) == old->host;
}

/* Edits the entry at @p, of the guest cluster at @base; *changed if it differs now. */
static int edit_entry(
	struct qcow2 *q, uint8_t *p, uint64_t base, struct qcow2_edit *e, bool *changed)
{
	uint64_t old = thr_be64(p), entry, bitmap = 0;
	struct qcow2_extent x;
	int err = qcow2_l2_decode(q, old, qcow2_entry_bitmap(q, p), 0, &x);

	if (err)
		return err;
	if (qcow2_extended(q))
		entry = new_extended(q, e, &x, e->done, base, &bitmap);
	else
		entry = new_entry(q, e, &x, e->done);
	*changed = entry != old || bitmap != x.bitmap;
	if (!*changed)
		return 0;
	if (!keeps_host(&x, entry)) {
		err = guard_entry(q, &x);
		if (err)
			return err;
	}
	thr_put_be64(p, entry);
	if (qcow2_extended(q))
		thr_put_be64(p + 8, bitmap);
	return keeps_host(&x, entry) ? 0 : qcow2_drop_entry(q, old, e->flags);
}

/* Edits entries [at, end) of a slice, the first of which is guest cluster @i; *lo and
 * *hi say which have changed. */
static int edit_slice(struct qcow2 *q, struct fmt_slice *s, uint32_t at, uint32_t end,
	uint64_t i, struct qcow2_edit *e, uint32_t *lo, uint32_t *hi)
{
	*lo = end;
	*hi = at;
	for (; at < end; at++, i++, e->done++) {
		bool changed;
		int err = edit_entry(q, s->data + ((size_t)at << q->entry_bits),
			i << q->h.cluster_bits, e, &changed);

		if (err)
			return err;
		if (!changed)
			continue;
		*lo = THR_MIN(*lo, at);
		*hi = at + 1;
	}
	return 0;
}

int qcow2_l2_edit(struct qcow2 *q, uint64_t guest, uint64_t n, struct qcow2_edit *e)
{
	uint32_t per = fmt_cache_slice_size(q->cache) >> q->entry_bits;
	uint64_t first = guest >> q->h.cluster_bits;
	int err = 0;

	for (e->done = 0; !err && e->done < n;) {
		uint64_t i = first + e->done, l2;
		uint32_t in = (uint32_t)i & ((1u << q->l2_bits) - 1), lo, hi, at, end;
		struct fmt_slice *s;

		err = qcow2_l1_get(q, (uint32_t)(i >> q->l2_bits), &l2);
		if (err)
			break;
		if (!(l2 & QCOW2_COPIED))
			return -THR_EUCLEAN;
		l2 &= QCOW2_L1E_OFF_MASK;
		err = fmt_slice_get(
			q->cache, q->blk.file, l2 + ((uint64_t)in << q->entry_bits), &s);
		if (err)
			break;
		at = in & (per - 1);
		end = (uint32_t)THR_MIN(per, at + (n - e->done));
		err = edit_slice(q, s, at, end, i, e, &lo, &hi);
		if (lo < hi) {
			fmt_slice_dirty(q->cache, s, FMT_RANK_L2, lo << q->entry_bits,
				hi << q->entry_bits);
			fmt_slice_after(q->cache, s, e->after);
		}
		fmt_slice_put(q->cache, s);
	}
	return err;
}
