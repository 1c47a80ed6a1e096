/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/check_walk.c - everything in an image that refers to a host cluster:
 * header, active L1 table and what it maps, snapshots, reference count table and
 * blocks, bitmaps.
 *
 * Damaged entries are reported and then followed as far as they make sense, so
 * that one damaged entry does not show as a thousand leaks.
 */
#include "fmt/qcow2/check.h"

#define CHUNK QCOW2_CHECK_CHUNK

int qcow2_ck_read(struct qcow2 *q, uint64_t off, void *buf, uint32_t len)
{
	struct thr_iov iov = {buf, len};
	struct blk_req r = {
		.off = off, .len = len, .iov = &iov, .niov = 1, .flags = BLK_EOF_ZERO};

	return blk_preadv(q->blk.file, &r);
}

int qcow2_ck_try(struct qcow2_checker *k, uint64_t off, void *buf, uint32_t len)
{
	int err = qcow2_ck_read(k->q, off, buf, len);

	if (err && !k->c->error)
		k->c->error = err;
	return err;
}

bool qcow2_ck_load(struct qcow2_checker *k, uint64_t off, void *buf, uint32_t len)
{
	if (!qcow2_ck_try(k, off, buf, len))
		return true;
	k->hidden = true;
	if (!qcow2_ck_new_error(k))
		return false;
	k->c->check_errors++;
	qcow2_ck_line(k, "ERROR: %u bytes at offset 0x%x cannot be read", (uint64_t)len, off);
	return false;
}

bool qcow2_ck_save(struct qcow2_checker *k, uint64_t off, const void *buf, uint32_t len)
{
	int err = qcow2_ck_write(k->q, off, buf, len);

	if (!err)
		return true;
	if (!k->c->error)
		k->c->error = err;
	k->c->check_errors++;
	k->unfixed = true;
	qcow2_ck_line(
		k, "ERROR: %u bytes at offset 0x%x cannot be written", (uint64_t)len, off);
	return false;
}

bool qcow2_ck_found(struct qcow2_checker *k)
{
	if (k->report)
		k->c->corruptions++;
	return k->report;
}

bool qcow2_ck_new_error(const struct qcow2_checker *k)
{
	if (k->mode & QCOW2_CK_COUNT)
		return true;
	return k->mode != QCOW2_CK_SCAN && !k->c->check_errors;
}

/* ---- COPIED flags ---- */

/* Whether counts are now such that a wrong flag may be put right. */
static bool may_fix_copied(const struct qcow2_checker *k, bool set)
{
	const struct fmt_check *c = k->c;

	if (k->mode & QCOW2_CK_COUNT || !c->fix)
		return false;
	if (set && k->unfixed)
		return false;
	if (c->fix & FMT_FIX_ERRORS)
		return true;
	return !c->check_errors && !c->corruptions && !c->leaks;
}

/* Compares the flag of an entry with what it must be; true if the entry has been changed. */
static bool compare_copied(struct qcow2_checker *k, uint8_t *p, uint64_t entry,
	uint64_t cluster, bool once, const char *what)
{
	uint64_t count = 1;
	bool fix;

	if (once == (bool)(entry >> 63))
		return false;
	fix = may_fix_copied(k, once);
	if (!once) {
		fmt_cache_lock(k->q->cache);
		(void)qcow2_refcount_get(k->q, cluster, &count);
		fmt_cache_unlock(k->q->cache);
	}
	qcow2_ck_line(k, "%s OFLAG_COPIED %s_entry=%x refcount=%u", fix ? "Repairing" : "ERROR",
		what, entry, count);
	if (!fix) {
		k->c->corruptions++;
		return false;
	}
	thr_put_be64(p, entry ^ QCOW2_COPIED);
	k->c->corruptions_fixed++;
	return true;
}

/* The same for a table entry that points to @host. */
static bool check_copied(
	struct qcow2_checker *k, uint8_t *p, uint64_t entry, uint64_t host, const char *what)
{
	uint64_t cluster = host >> k->q->h.cluster_bits;
	int once = qcow2_ck_once(k, cluster);

	return once >= 0 && compare_copied(k, p, entry, cluster, once, what);
}

/* ---- L2 and L1 tables ---- */

static void compressed_entry(struct qcow2_checker *k, uint64_t entry, bool active)
{
	uint64_t off;
	uint32_t len;

	qcow2_compressed_range(k->q, entry, &off, &len);
	if (active && k->report) {
		k->c->allocated_clusters++;
		k->c->compressed_clusters++;
		k->c->fragmented_clusters++;
	}
	if (entry & QCOW2_COPIED && qcow2_ck_found(k))
		qcow2_ck_line(k,
			"ERROR: coffset=0x%x: copied flag must never be set for compressed "
			"clusters",
			off);
	qcow2_ck_mark(k, off, len);
}

static void count_fragment(struct qcow2_checker *k, uint64_t host, uint64_t *next)
{
	k->c->allocated_clusters++;
	if (*next && host != *next)
		k->c->fragmented_clusters++;
	*next = host + k->q->cluster_size;
}

/* Where a cluster reads as zeroes, its host cluster can be let go: nothing is lost.
 * True if the entry has been changed. */
static bool unaligned_entry(struct qcow2_checker *k, uint8_t *p, uint64_t entry)
{
	uint64_t host = entry & QCOW2_L2E_OFF_MASK;
	bool zero = k->q->h.version >= 3 && !qcow2_extended(k->q) && entry & QCOW2_L2E_ZERO;
	const char *what = zero ? "Preallocated" : "Data";

	if (zero && k->mode == QCOW2_CK_SCAN && k->c->fix & FMT_FIX_ERRORS) {
		qcow2_ck_line(k,
			"Repairing offset=%x: %s cluster is not properly aligned; L2 entry "
			"corrupted.",
			host, what);
		k->c->corruptions_fixed++;
		thr_put_be64(p, QCOW2_L2E_ZERO);
		return true;
	}
	k->hidden = true;
	if (qcow2_ck_found(k))
		qcow2_ck_line(k,
			"ERROR offset=%x: %s cluster is not properly aligned; L2 entry "
			"corrupted.",
			host, what);
	return false;
}

/* The bits of subclusters of a standard cluster's entry. */
static void check_bitmap(struct qcow2_checker *k, bool mapped, uint64_t host, uint64_t bitmap)
{
	if (!mapped && (uint32_t)bitmap) {
		if (qcow2_ck_found(k))
			qcow2_ck_line(k, "ERROR: Unallocated cluster has non-zero subcluster "
					 "allocation map");
	} else if ((uint32_t)bitmap & (uint32_t)(bitmap >> 32)) {
		if (qcow2_ck_found(k))
			qcow2_ck_line(k,
				"ERROR offset=%x: Allocated cluster has corrupted subcluster "
				"allocation bitmap",
				host);
	}
}

/* An entry of a standard cluster whose data lies in a file of its own: it has no count, is
 * always ours alone, and lies at its guest offset. */
static bool external_entry(
	struct qcow2_checker *k, uint8_t *p, uint64_t entry, bool active, uint64_t *next)
{
	uint64_t host = entry & QCOW2_L2E_OFF_MASK;

	if (!host && !(entry & QCOW2_COPIED))
		return false;
	if (active && k->report)
		count_fragment(k, host, next);
	if (host != k->guest) {
		if (qcow2_ck_found(k))
			qcow2_ck_line(k,
				"ERROR offset=%x: external data cluster is not at its guest "
				"offset %x",
				host, k->guest);
		return false;
	}
	/* Once a pass: no window of counts has it. */
	if (!active || !k->first || !(k->mode & QCOW2_CK_COPIED))
		return false;
	return compare_copied(k, p, entry, 0, true, "data cluster: l2");
}

/* One L2 entry, which is not 0. True if it has been changed. */
static bool l2_entry(
	struct qcow2_checker *k, uint8_t *p, uint64_t entry, bool active, uint64_t *next)
{
	const struct qcow2 *q = k->q;
	uint64_t host = entry & QCOW2_L2E_OFF_MASK;
	uint64_t bitmap = qcow2_entry_bitmap(q, p), reserved = QCOW2_L2E_RESERVED;

	if (q->h.version < 3 || qcow2_extended(q))
		reserved |= QCOW2_L2E_ZERO;
	if (entry & QCOW2_COMPRESSED && qcow2_external(q)) {
		if (qcow2_ck_found(k))
			qcow2_ck_line(k,
				"ERROR compressed cluster %x with an external data file",
				entry);
		return false;
	}
	if (entry & QCOW2_COMPRESSED) {
		compressed_entry(k, entry, active);
		if (bitmap && qcow2_ck_found(k))
			qcow2_ck_line(k, "ERROR compressed cluster has a subcluster bitmap: %x",
				bitmap);
		return false;
	}
	if (entry & reserved && qcow2_ck_found(k))
		qcow2_ck_line(k, "ERROR found l2 entry with reserved bits set: %x", entry);
	check_bitmap(k, host || (qcow2_external(q) && entry & QCOW2_COPIED), host, bitmap);
	if (qcow2_external(q))
		return external_entry(k, p, entry, active, next);
	if (!host) {
		/* That would be a cluster with an external data file only. */
		if (entry == QCOW2_COPIED && qcow2_ck_found(k))
			qcow2_ck_line(k, "ERROR found l2 entry with offset 0: %x", entry);
		return false;
	}
	if (active && k->report)
		count_fragment(k, host, next);
	if (host & q->cluster_mask && unaligned_entry(k, p, entry))
		return true;
	qcow2_ck_mark(k, host, q->cluster_size);
	if (!active || !(k->mode & QCOW2_CK_COPIED))
		return false;
	return check_copied(k, p, entry, host, "data cluster: l2");
}

static void walk_l2(struct qcow2_checker *k, uint64_t l2, bool active)
{
	uint32_t chunk = THR_MIN(k->q->cluster_size, CHUNK);
	uint64_t next = 0;

	for (uint32_t at = 0; at < k->q->cluster_size; at += chunk) {
		bool changed = false;

		if (!qcow2_ck_load(k, l2 + at, k->l2, chunk))
			return;
		for (uint8_t *p = k->l2; p < k->l2 + chunk;
			p += 1u << k->q->entry_bits, k->guest += k->q->cluster_size) {
			uint64_t entry = thr_be64(p);

			if (entry || qcow2_entry_bitmap(k->q, p))
				changed |= l2_entry(k, p, entry, active, &next);
		}
		if (changed)
			qcow2_ck_save(k, l2 + at, k->l2, chunk);
	}
}

/* Whether L2 table number @i of the walk has nothing to do with this window. The
 * first window's walk has found that out. */
static bool elsewhere(const struct qcow2_checker *k, uint32_t i)
{
	uint64_t w = k->lo >> k->cap_bits;

	if (k->first || i >= k->nspans)
		return false;
	w = THR_MIN(w, UINT16_MAX);
	return w < k->spans[i].lo || w > k->spans[i].hi;
}

/* One L1 entry, which is not 0. True if it has been changed. */
static bool l1_entry(struct qcow2_checker *k, uint8_t *p, uint64_t entry, bool active)
{
	uint64_t l2 = entry & QCOW2_L1E_OFF_MASK;
	uint32_t i = k->walked++;
	bool changed = false;

	if (elsewhere(k, i))
		return false;
	k->span.lo = UINT16_MAX;
	k->span.hi = 0;
	if (entry & QCOW2_L1E_RESERVED && qcow2_ck_found(k))
		qcow2_ck_line(k, "ERROR found L1 entry with reserved bits set: %x", entry);
	if (l2 & k->q->cluster_mask) {
		k->hidden = true;
		if (qcow2_ck_found(k))
			qcow2_ck_line(k,
				"ERROR l2_offset=%x: Table is not cluster aligned; L1 entry "
				"corrupted",
				l2);
	}
	qcow2_ck_mark(k, l2, k->q->cluster_size);
	walk_l2(k, l2, active);
	if (active && l2 && k->mode & QCOW2_CK_COPIED)
		changed = check_copied(k, p, entry, l2, "L2 cluster: l1");
	if (k->first && i < k->nspans)
		k->spans[i] = k->span;
	return changed;
}

static void walk_l1(struct qcow2_checker *k, uint64_t l1, uint32_t entries, bool active)
{
	uint64_t bytes = (uint64_t)entries * 8;

	qcow2_ck_mark(k, l1, bytes);
	for (uint64_t at = 0; at < bytes; at += CHUNK) {
		uint32_t len = (uint32_t)THR_MIN(CHUNK, bytes - at);
		bool changed = false;

		if (!qcow2_ck_load(k, l1 + at, k->l1, len))
			continue;
		for (uint8_t *p = k->l1; p < k->l1 + len; p += 8) {
			uint64_t entry = thr_be64(p);

			k->guest = ((at + (uint64_t)(p - k->l1)) >> 3)
				   << (k->q->h.cluster_bits + k->q->l2_bits);
			if (entry)
				changed |= l1_entry(k, p, entry, active);
		}
		if (changed)
			qcow2_ck_save(k, l1 + at, k->l1, len);
	}
}

/* ---- snapshots ---- */

struct snap_walk {
	struct qcow2_checker *k;
	uint64_t n;
	uint64_t end; /* of the table */
};

static void snap_text(struct qcow2 *q, uint64_t off, uint32_t len, char *buf, uint32_t size)
{
	len = THR_MIN(len, size - 1);
	if (blk_pread(q->blk.file, off, buf, len))
		len = 0;
	buf[len] = 0;
}

static void bad_snapshot(struct qcow2_checker *k, const struct qcow2_snapshot *s,
	const char *field, uint64_t val, const char *what)
{
	uint64_t off = s->off + QCOW2_SNAPSHOT_MIN + s->extra;
	char id[32], name[64];

	k->hidden = true;
	if (!qcow2_ck_found(k))
		return;
	snap_text(k->q, off, s->id_len, id, sizeof(id));
	snap_text(k->q, off + s->id_len, s->name_len, name, sizeof(name));
	qcow2_ck_line(k,
		"ERROR snapshot %s (%s) %s=0x%x: L1 table is %s; snapshot table entry "
		"corrupted",
		id, name, field, val, what);
}

static int walk_snapshot(void *ctx, const struct qcow2_snapshot *s, struct blk_err *err)
{
	struct snap_walk *w = ctx;

	(void)err;
	if (s->incomplete && qcow2_ck_found(w->k))
		qcow2_ck_line(w->k, "ERROR snapshot table entry %u is incomplete", w->n);
	w->n++;
	w->end = s->off + s->bytes;
	if (s->l1_off & w->k->q->cluster_mask)
		bad_snapshot(w->k, s, "l1_offset", s->l1_off, "not cluster aligned");
	else if ((uint64_t)s->l1_entries * 8 > QCOW2_MAX_L1_BYTES)
		bad_snapshot(w->k, s, "l1_size", s->l1_entries, "too large");
	else
		walk_l1(w->k, s->l1_off, s->l1_entries, false);
	return 0;
}

static void walk_snapshots(struct qcow2_checker *k)
{
	struct snap_walk w = {.k = k, .end = k->q->h.snapshots_off};

	if (!k->q->h.snapshots)
		return;
	if (qcow2_snapshots_walk(k->q, walk_snapshot, &w, NULL)) {
		k->hidden = true;
		if (qcow2_ck_found(k))
			qcow2_ck_line(k, "ERROR snapshot table entry %u is incomplete", w.n);
	}
	qcow2_ck_mark(k, k->q->h.snapshots_off, w.end - k->q->h.snapshots_off);
}

/* ---- bitmaps ---- */

static void bitmap_entry(struct qcow2_checker *k, uint64_t entry)
{
	uint64_t off = entry & QCOW2_L2E_OFF_MASK;

	if (entry & QCOW2_BME_RESERVED || off & k->q->cluster_mask || (off && entry & 1)) {
		k->hidden = true;
		if (qcow2_ck_found(k))
			qcow2_ck_line(k, "ERROR invalid bitmap table entry: %x", entry);
	}
	if (off)
		qcow2_ck_mark(k, off, k->q->cluster_size);
}

static int walk_bitmap(void *ctx, const struct qcow2_bitmap *m, struct blk_err *err)
{
	struct qcow2_checker *k = ctx;
	uint64_t bytes = (uint64_t)m->table_entries * 8;

	(void)err;
	if ((m->flags & ~QCOW2_BM_KNOWN || m->type != QCOW2_BM_DIRTY || !bytes) &&
		qcow2_ck_found(k))
		qcow2_ck_line(k, "ERROR invalid bitmap directory entry at offset 0x%x", m->off);
	qcow2_ck_mark(k, m->table_off, bytes);
	for (uint64_t at = 0; at < bytes; at += CHUNK) {
		uint32_t len = (uint32_t)THR_MIN(CHUNK, bytes - at);

		/* A table as long as its header says may not be there at all. */
		if (m->table_off + at >= k->file_size)
			break;
		if (!qcow2_ck_load(k, m->table_off + at, k->l2, len))
			continue;
		for (uint32_t i = 0; i < len; i += 8)
			if (thr_be64(k->l2 + i))
				bitmap_entry(k, thr_be64(k->l2 + i));
	}
	return 0;
}

static void walk_bitmaps(struct qcow2_checker *k)
{
	struct qcow2 *q = k->q;

	if (!q->bitmaps)
		return;
	qcow2_ck_mark(k, q->bitmap_dir_off, q->bitmap_dir_size);
	if (qcow2_bitmaps_walk(q, walk_bitmap, k, NULL)) {
		k->hidden = true;
		if (qcow2_ck_found(k))
			qcow2_ck_line(k, "ERROR the bitmap directory is damaged");
	}
}

/* ---- reference counts ---- */

static void count_later(struct qcow2_checker *k)
{
	if (k->c->fix & FMT_FIX_ERRORS)
		k->later++;
	else
		k->c->corruptions++;
}

/* A finding that the counts have to be made anew for. */
static void bad_block(struct qcow2_checker *k, uint64_t i, const char *what)
{
	k->rebuild = true;
	if (!k->report)
		return;
	count_later(k);
	qcow2_ck_line(k, what, i);
}

static void refblock(struct qcow2_checker *k, uint64_t i, uint64_t entry)
{
	const struct qcow2 *q = k->q;
	uint64_t cluster = entry >> q->h.cluster_bits;

	if (entry & QCOW2_REFT_RESERVED) {
		bad_block(k, i, "ERROR refcount table entry %u has reserved bits set");
		return;
	}
	if (entry & q->cluster_mask) {
		bad_block(k, i,
			"ERROR refcount block %u is not cluster aligned; refcount table entry "
			"corrupted");
		return;
	}
	if (cluster >= k->file_clusters) {
		bad_block(k, i, "ERROR refcount block %u is outside image");
		return;
	}
	qcow2_ck_mark(k, entry, q->cluster_size);
	if (cluster < k->lo || cluster - k->lo >= k->n || k->mode == QCOW2_CK_COPIED ||
		qcow2_ck_refs(k, cluster) == 1)
		return;
	k->rebuild = true;
	if (!(k->mode & QCOW2_CK_COUNT))
		return;
	count_later(k);
	qcow2_ck_line(k, "ERROR refcount block %u refcount=%u", i,
		(uint64_t)qcow2_ck_refs(k, cluster));
}

static void walk_refcounts(struct qcow2_checker *k)
{
	struct qcow2 *q = k->q;
	uint64_t bytes = (uint64_t)q->h.reft_clusters << q->h.cluster_bits;

	if (!bytes)
		bad_block(k, 0, "ERROR there is no usable refcount table");
	qcow2_ck_mark(k, q->h.reft_off, bytes);
	for (uint64_t at = 0; at < bytes; at += CHUNK) {
		uint32_t len = (uint32_t)THR_MIN(CHUNK, bytes - at);

		if (!qcow2_ck_load(k, q->h.reft_off + at, k->l2, len))
			continue;
		for (uint32_t i = 0; i < len; i += 8)
			if (thr_be64(k->l2 + i))
				refblock(k, (at + i) >> 3, thr_be64(k->l2 + i));
	}
}

void qcow2_ck_walk(struct qcow2_checker *k)
{
	struct qcow2 *q = k->q;

	k->walked = 0;
	qcow2_ck_mark(k, 0, q->cluster_size);
	if (q->crypt_len)
		qcow2_ck_mark(k, q->crypt_off, q->crypt_len);
	walk_l1(k, q->h.l1_off, q->h.l1_entries, true);
	walk_snapshots(k);
	walk_bitmaps(k);
	/* New counts do not count the old ones. */
	if (!(k->mode & QCOW2_CK_REBUILD))
		walk_refcounts(k);
}
