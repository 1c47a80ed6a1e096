/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/overlap.c - nothing is written over metadata that is in use, whatever a
 * damaged table says.
 *
 * The header's cluster, that of a LUKS header, the active L1 table, the reference count table
 * and the snapshot table are ranges that the header knows. Where the L2 tables, the reference
 * count blocks and the snapshots' L1 tables lie is kept in a set of host clusters, which is
 * filled when the image becomes writable and follows every change.
 *
 * What is about to be written, allocated or given back is looked up first. A hit ends
 * all writing: the error is set at once, so that nothing leaves the cache any more, and
 * the request that met it sets the corrupt bit once it holds nothing, and tells what it was
 * to whoever opened the image (warn() of struct fmt_open), as its own error has no room.
 *
 * The set is bounded; an image with more tables has its first ones in it.
 */
#include "fmt/qcow2/write.h"

#define SET_MAX (1u << 20) /* clusters */
#define CHUNK   (64u << 10)

struct qcow2_meta {
	unsigned checks;
	uint64_t snaps_end; /* of the snapshot table */
	uint64_t *v;        /* 1 << bits places; 0: empty */
	unsigned bits;
	uint32_t n;
	const char *hit; /* what would have been overwritten first; NULL: nothing so far */
	uint64_t hit_off;
	bool told;
	void (*warn)(void *ctx, const struct blk_err *odd);
	void *warn_ctx;
};

/* ---- the set ------------------------------------------------------------------ */

static uint32_t place(const struct qcow2_meta *m, uint64_t cluster)
{
	return (uint32_t)(cluster * 0x9e3779b97f4a7c15ull >> (64 - m->bits));
}

static uint32_t next(const struct qcow2_meta *m, uint32_t i)
{
	return (i + 1) & ((1u << m->bits) - 1);
}

/* Where a cluster is, or the empty place where it would be. */
static uint32_t find(const struct qcow2_meta *m, uint64_t cluster)
{
	uint32_t i = place(m, cluster);

	while (m->v[i] && m->v[i] != cluster)
		i = next(m, i);
	return i;
}

static int resize(struct qcow2 *q, struct qcow2_meta *m, unsigned bits)
{
	struct qcow2_meta to = {.bits = bits};

	to.v = thr_zget(q->blk.mem, sizeof(*to.v) << bits);
	if (!to.v)
		return -THR_ENOMEM;
	for (uint32_t i = 0; m->v && i < 1u << m->bits; i++)
		if (m->v[i])
			to.v[find(&to, m->v[i])] = m->v[i];
	if (m->v)
		thr_put(q->blk.mem, m->v, sizeof(*m->v) << m->bits);
	m->v = to.v;
	m->bits = bits;
	return 0;
}

static int add(struct qcow2 *q, struct qcow2_meta *m, uint64_t cluster)
{
	uint32_t i;

	if (m->n >= SET_MAX)
		return 0;
	if (m->n >= (1u << m->bits) / 2) {
		int err = resize(q, m, m->bits + 1);

		if (err)
			return err;
	}
	i = find(m, cluster);
	if (!m->v[i])
		m->n++;
	m->v[i] = cluster;
	return 0;
}

void qcow2_meta_add(struct qcow2 *q, uint64_t host, unsigned check)
{
	struct qcow2_meta *m = q->w->meta;

	/* Without memory for it, it goes unprotected. */
	if (m && m->checks & check)
		(void)add(q, m, host >> q->h.cluster_bits);
}

void qcow2_meta_del(struct qcow2 *q, uint64_t host)
{
	struct qcow2_meta *m = q->w->meta;
	uint32_t hole, i;

	if (!m)
		return;
	hole = find(m, host >> q->h.cluster_bits);
	if (!m->v[hole])
		return;
	m->n--;
	/* What follows moves up, unless the hole is before its place. */
	for (i = next(m, hole); m->v[i]; i = next(m, i)) {
		uint32_t home = place(m, m->v[i]);
		uint32_t mask = (1u << m->bits) - 1;

		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		m->v[hole] = m->v[i];
		hole = i;
	}
	m->v[hole] = 0;
}

/* ---- looking -------------------------------------------------------------------- */

static bool meets(uint64_t host, uint64_t len, uint64_t off, uint64_t bytes)
{
	return host < off + bytes && off < host + len;
}

/* What is there; NULL: nothing. */
static const char *meets_ranges(const struct qcow2 *q, uint64_t host, uint64_t len)
{
	const struct qcow2_meta *m = q->w->meta;
	const struct qcow2_header *h = &q->h;

	if (m->checks & QCOW2_OV_HEADER && host < q->cluster_size)
		return "the header";
	if (m->checks & QCOW2_OV_HEADER && q->crypt_len &&
		meets(host, len, q->crypt_off, q->crypt_len))
		return "the encryption header";
	if (m->checks & QCOW2_OV_L1 && meets(host, len, h->l1_off, (uint64_t)h->l1_entries * 8))
		return "the L1 table";
	if (m->checks & QCOW2_OV_REFTABLE &&
		meets(host, len, h->reft_off, (uint64_t)h->reft_clusters << h->cluster_bits))
		return "the reference count table";
	if (m->checks & QCOW2_OV_SNAPSHOTS && h->snapshots &&
		meets(host, len, h->snapshots_off, m->snaps_end - h->snapshots_off))
		return "the snapshot table";
	return NULL;
}

static bool meets_set(const struct qcow2 *q, uint64_t host, uint64_t len)
{
	const struct qcow2_meta *m = q->w->meta;
	uint64_t c = host >> q->h.cluster_bits, last = (host + len - 1) >> q->h.cluster_bits;

	for (; m->n && c <= last; c++)
		if (m->v[find(m, c)])
			return true;
	return false;
}

int qcow2_guard(struct qcow2 *q, uint64_t host, uint64_t len)
{
	struct qcow2_write *w = q->w;
	const char *what, *none = NULL;

	if (!w->meta)
		return 0;
	what = meets_ranges(q, host, len);
	if (!what && meets_set(q, host, len))
		what = "an L2 table, a reference count block or a snapshot's table";
	if (!what)
		return 0;
	__atomic_store_n(&w->err, -THR_EIO, __ATOMIC_RELEASE);
	if (__atomic_compare_exchange_n(
		    &w->meta->hit, &none, what, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
		w->meta->hit_off = host;
		__atomic_store_n(&w->corrupt, true, __ATOMIC_RELEASE);
	}
	return -THR_EUCLEAN;
}

/* With the layout lock. */
static void tell(struct qcow2 *q, struct qcow2_meta *m)
{
	struct blk_err odd = BLK_ERR_INIT;

	if (m->told || !m->warn)
		return;
	m->told = true;
	blk_fail_str(&odd, -THR_EUCLEAN, BLK_E_QCOW2_WOULD_HIT, m->hit);
	odd.off = m->hit_off;
	blk_err_where(&odd, "Stopped writing", q->blk.file->name);
	m->warn(m->warn_ctx, &odd);
}

int qcow2_guarded(struct qcow2 *q, int err)
{
	struct qcow2_write *w = q->w;

	if (!__atomic_load_n(&w->corrupt, __ATOMIC_ACQUIRE))
		return err;
	thr_mutex_lock(&w->layout);
	if (!(q->h.incompatible & QCOW2_INC_CORRUPT) && q->h.version >= 3)
		qcow2_header_corrupt(q);
	tell(q, w->meta);
	thr_mutex_unlock(&w->layout);
	return err;
}

/* ---- filling the set ------------------------------------------------------------- */

struct filling {
	struct qcow2 *q;
	struct qcow2_meta *m;
	uint8_t *buf; /* CHUNK bytes */
	bool clash;   /* two tables lie in one place */
};

static int put(struct filling *f, uint64_t host)
{
	uint64_t cluster = host >> f->q->h.cluster_bits;

	if (meets_ranges(f->q, host, f->q->cluster_size) || f->m->v[find(f->m, cluster)])
		f->clash = true;
	return cluster ? add(f->q, f->m, cluster) : 0;
}

/* The clusters that a table's entries point to. */
static int put_all(struct filling *f, uint64_t off, uint64_t bytes, uint64_t mask)
{
	int err = 0;

	for (uint64_t at = 0; !err && at < bytes; at += CHUNK) {
		uint32_t n = (uint32_t)THR_MIN(CHUNK, bytes - at);

		err = blk_pread(f->q->blk.file, off + at, f->buf, n);
		for (uint32_t i = 0; !err && i < n; i += 8)
			if (thr_be64(f->buf + i) & mask)
				err = put(f, thr_be64(f->buf + i) & mask);
	}
	return err;
}

static int put_snapshot(void *ctx, const struct qcow2_snapshot *s, struct blk_err *err)
{
	struct filling *f = ctx;
	uint64_t bytes = (uint64_t)s->l1_entries * 8;
	bool clash = f->clash;
	int ret = 0;

	(void)err;
	f->m->snaps_end = s->off + s->bytes;
	if (!(f->m->checks & QCOW2_OV_INACTIVE_L1) || bytes > QCOW2_MAX_L1_BYTES ||
		s->l1_off >> 56)
		return 0;
	for (uint64_t at = 0; !ret && at < bytes; at += f->q->cluster_size)
		ret = put(f, s->l1_off + at);
	f->clash = clash; /* only tables that change can spoil each other */
	return ret;
}

/* Tables that several snapshots share are there once: no clash. */
static int put_inactive(void *ctx, const struct qcow2_snapshot *s, struct blk_err *err)
{
	struct filling *f = ctx;
	uint64_t bytes = (uint64_t)s->l1_entries * 8;
	bool clash = f->clash;
	int ret;

	(void)err;
	if (bytes > QCOW2_MAX_L1_BYTES ||
		!thr_within(s->l1_off, bytes, blk_size(f->q->blk.file)))
		return 0;
	ret = put_all(f, s->l1_off, bytes, QCOW2_L1E_OFF_MASK);
	f->clash = clash;
	return ret;
}

static int fill(struct filling *f, struct blk_err *err)
{
	const struct qcow2_header *h = &f->q->h;
	unsigned checks = f->m->checks;
	int ret = 0;

	/* A snapshot table that cannot be read protects as far as it can. */
	f->m->snaps_end = h->snapshots_off;
	if (checks & (QCOW2_OV_SNAPSHOTS | QCOW2_OV_INACTIVE_L1))
		ret = qcow2_snapshots_walk(f->q, put_snapshot, f, NULL);
	if (ret == -THR_EUCLEAN)
		ret = 0;
	if (!ret && checks & QCOW2_OV_L2)
		ret = put_all(f, h->l1_off, (uint64_t)h->l1_entries * 8, QCOW2_L1E_OFF_MASK);
	if (!ret && checks & QCOW2_OV_REFBLOCK)
		ret = put_all(f, h->reft_off, (uint64_t)h->reft_clusters << h->cluster_bits,
			~QCOW2_REFT_RESERVED);
	if (!ret && checks & QCOW2_OV_INACTIVE_L2)
		ret = qcow2_snapshots_walk(f->q, put_inactive, f, NULL);
	if (ret == -THR_EUCLEAN)
		ret = 0;
	if (ret)
		return blk_fail(err, ret, BLK_E_SYS, 0, 0);
	return f->clash ? blk_fail(err, -THR_EUCLEAN, BLK_E_QCOW2_CORRUPT, 0, 0) : 0;
}

/* ---- options ------------------------------------------------------------------------ */

#define CONSTANT (QCOW2_OV_HEADER | QCOW2_OV_L1 | QCOW2_OV_REFTABLE | QCOW2_OV_SNAPSHOTS)
#define CACHED   (CONSTANT | QCOW2_OV_L2 | QCOW2_OV_REFBLOCK | QCOW2_OV_INACTIVE_L1)

static bool same(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

static int options(const struct blk_opts *o, unsigned *checks, struct blk_err *err)
{
	static const struct {
		const char *key;
		unsigned check;
	} keys[] = {
		{"overlap-check.main-header", QCOW2_OV_HEADER},
		{"overlap-check.active-l1", QCOW2_OV_L1},
		{"overlap-check.active-l2", QCOW2_OV_L2},
		{"overlap-check.refcount-table", QCOW2_OV_REFTABLE},
		{"overlap-check.refcount-block", QCOW2_OV_REFBLOCK},
		{"overlap-check.snapshot-table", QCOW2_OV_SNAPSHOTS},
		{"overlap-check.inactive-l1", QCOW2_OV_INACTIVE_L1},
		{"overlap-check.inactive-l2", QCOW2_OV_INACTIVE_L2},
	};
	const char *s = blk_opt(o, "overlap-check");

	if (!s)
		s = blk_opt(o, "overlap-check.template");
	if (!s || same(s, "cached"))
		*checks = CACHED;
	else if (same(s, "none"))
		*checks = 0;
	else if (same(s, "constant"))
		*checks = CONSTANT;
	else if (same(s, "all"))
		*checks = CACHED | QCOW2_OV_INACTIVE_L2;
	else
		return blk_fail_str(err, -THR_EINVAL, BLK_E_BAD_VALUE, "overlap-check");
	for (unsigned i = 0; i < THR_ARRAY_SIZE(keys); i++) {
		bool on;
		int ret = blk_opt_bool(o, keys[i].key, *checks & keys[i].check, &on, err);

		if (ret)
			return ret;
		*checks = on ? *checks | keys[i].check : *checks & ~keys[i].check;
	}
	return 0;
}

/* ---- from open to close ------------------------------------------------------------ */

int qcow2_meta_open(struct qcow2 *q, const struct fmt_open *o, struct blk_err *err)
{
	struct filling f = {.q = q};
	unsigned checks = 0;
	int ret = options(o->opts, &checks, err);

	if (ret || !checks)
		return ret;
	f.m = thr_zget(q->blk.mem, sizeof(*f.m));
	q->w->meta = f.m;
	f.buf = thr_get(q->blk.mem, CHUNK, 512);
	if (!f.m || !f.buf || resize(q, f.m, 6)) {
		ret = blk_fail(err, -THR_ENOMEM, BLK_E_SYS, 0, 0);
	} else {
		f.m->checks = checks;
		f.m->warn = o->warn;
		f.m->warn_ctx = o->warn_ctx;
		ret = fill(&f, err);
	}
	thr_put(q->blk.mem, f.buf, CHUNK);
	return ret;
}

void qcow2_meta_close(struct qcow2 *q)
{
	struct qcow2_meta *m = q->w->meta;

	if (!m)
		return;
	if (m->v)
		thr_put(q->blk.mem, m->v, sizeof(*m->v) << m->bits);
	thr_put(q->blk.mem, m, sizeof(*m));
	q->w->meta = NULL;
}
