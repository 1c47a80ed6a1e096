/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/repair.c - what a repair writes besides single entries: new reference
 * counts, and the header.
 *
 * New counts are laid past everything that the file has and that any entry points
 * to, so that nothing old is overwritten: first a block wherever there is
 * something to count, in order, then the table, then the blocks that count these
 * themselves. All of it is durable before the header, by one write within its
 * first sector, switches to it. Until then the image is what it was.
 */
#include "fmt/barrier.h"
#include "fmt/qcow2/check.h"
#include "fmt/qcow2/write.h"

#define CHUNK QCOW2_CHECK_CHUNK

struct rebuild {
	struct qcow2_checker *k;
	unsigned order, block_bits;
	uint64_t base;  /* first new cluster */
	uint64_t used;  /* new clusters so far */
	uint64_t table; /* first cluster of the table */
	uint64_t table_clusters;
	uint64_t *blocks; /* cluster of each block, 0: none */
	uint64_t nblocks; /* room in blocks: as many as the table has entries */
	uint64_t size;    /* of a device that cannot grow, else UINT64_MAX */
};

int qcow2_ck_write(struct qcow2 *q, uint64_t off, const void *buf, uint32_t len)
{
	return blk_pwrite(q->blk.file, off, buf, len);
}

int qcow2_ck_flush(struct qcow2 *q)
{
	return blk_flush(q->blk.file);
}

int qcow2_ck_settle(struct qcow2 *q)
{
	int err;

	if (!q->w)
		return 0;
	fmt_cache_lock(q->cache);
	err = fmt_cache_flush(q->cache, q->blk.file);
	fmt_cache_unlock(q->cache);
	return err;
}

int qcow2_ck_clean(struct qcow2_checker *k)
{
	struct qcow2 *q = k->q;
	uint64_t bits = q->h.incompatible & ~(uint64_t)(QCOW2_INC_DIRTY | QCOW2_INC_CORRUPT);
	uint8_t p[8];
	int err;

	if (bits == q->h.incompatible)
		return 0;
	thr_put_be64(p, bits);
	err = blk_pwrite(q->blk.file, 72, p, sizeof(p));
	if (!err)
		err = blk_flush(q->blk.file);
	if (err)
		return err;
	q->h.incompatible = bits;
	/* An image with lazy counts that stays open marks itself anew. */
	if (q->w)
		__atomic_store_n(&q->w->dirty, false, __ATOMIC_RELEASE);
	return 0;
}

/* Room for a table that counts everything up to r->base and itself. */
static int size_table(struct rebuild *r)
{
	unsigned bits = r->k->q->h.cluster_bits;
	uint64_t low = (r->base >> r->block_bits) + 1;
	uint64_t most;

	if (low > QCOW2_MAX_REFT_BYTES / 8)
		return -THR_EUCLEAN;
	/* Each table cluster and each block may need room in a block of its own. */
	most = low + (((low >> (bits - 3)) + 2 + low) >> r->block_bits) + 16;
	r->table_clusters = (most * 8 + r->k->q->cluster_mask) >> bits;
	if (r->table_clusters << bits > QCOW2_MAX_REFT_BYTES)
		return -THR_EUCLEAN;
	r->nblocks = r->table_clusters << (bits - 3);
	return 0;
}

static int no_more(struct qcow2_checker *k, void *ctx)
{
	(void)k;
	(void)ctx;
	return 0;
}

/* Where the new clusters go: what an entry points to past the end of the file
 * must not become one of them. */
static int place(struct rebuild *r)
{
	struct qcow2_checker *k = r->k;
	int err;

	r->base = THR_MAX(k->file_clusters, k->highest + 1);
	if (!k->q->blk.file->grows) {
		r->size = k->file_clusters;
		r->base = k->highest + 1;
		return k->hidden ? -THR_EUCLEAN : size_table(r);
	}
	r->size = UINT64_MAX;
	for (unsigned tries = 0; tries < 16; tries++) {
		err = size_table(r);
		if (err)
			return err;
		k->avoid = r->base;
		k->avoid_n = r->nblocks + r->table_clusters;
		err = qcow2_ck_pass(k, QCOW2_CK_SCAN, no_more, NULL);
		if (err || k->avoid == r->base)
			return err;
		r->base = k->avoid;
	}
	return -THR_EUCLEAN;
}

/* New clusters read as zeroes: past the end of a file, or made so on a device. */
static int take(struct rebuild *r, uint64_t n, uint64_t *cluster)
{
	struct qcow2 *q = r->k->q;
	struct blk_req z = {.len = n << q->h.cluster_bits};

	*cluster = r->base + r->used;
	r->used += n;
	if (*cluster + n > r->size)
		return -THR_EUCLEAN;
	if (r->size == UINT64_MAX)
		return 0;
	z.off = *cluster << q->h.cluster_bits;
	return blk_zero(q->blk.file, &z);
}

/* Block @i, made if need be. */
static int block(struct rebuild *r, uint64_t i)
{
	if (i >= r->nblocks)
		return -THR_EUCLEAN;
	return r->blocks[i] ? 0 : take(r, 1, &r->blocks[i]);
}

/* The count that @cluster is to have: where some references could not be made
 * out, no cluster becomes free that was not. */
static uint64_t new_count(
	struct qcow2_checker *k, uint64_t cluster, const struct qcow2_counts *s, uint32_t i)
{
	uint64_t refs = qcow2_ck_refs(k, cluster);
	uint64_t old = 0;

	if (!k->hidden || cluster >= k->file_clusters)
		return refs;
	if (s->unknown || k->unknown)
		old = 1;
	else if (s->off)
		old = qcow2_refcount_load(k->counts, k->q->h.refcount_order, s->first + i);
	return THR_MAX(old, refs);
}

/* Counts of clusters that share a chunk, into k->l2 and the file. */
static int write_chunk(struct rebuild *r, uint64_t cluster, const struct qcow2_counts *s)
{
	struct qcow2_checker *k = r->k;
	uint32_t chunk = THR_MIN(k->q->cluster_size, CHUNK);
	uint64_t i = cluster >> r->block_bits;
	uint64_t in_block = cluster & ((1ull << r->block_bits) - 1);
	bool any = false;
	int err;

	memset(k->l2, 0, chunk);
	for (uint32_t j = 0; j < s->n; j++) {
		uint64_t count = new_count(k, cluster + j, s, j);

		any |= count;
		qcow2_refcount_store(k->l2, r->order, s->first + j, count);
	}
	if (!any)
		return 0;
	err = block(r, i);
	if (err)
		return err;
	return blk_pwrite(k->q->blk.file,
		(r->blocks[i] << k->q->h.cluster_bits) +
			((in_block - s->first) << r->order >> 3),
		k->l2, chunk);
}

static int count_window(struct qcow2_checker *k, void *ctx)
{
	struct qcow2_counts s;
	int err = 0;

	for (uint64_t at = 0; !err && at < k->n; at += s.n) {
		qcow2_ck_counts(k, k->lo + at, &s);
		s.n = (uint32_t)THR_MIN(s.n, k->n - at);
		err = write_chunk(ctx, k->lo + at, &s);
	}
	return err;
}

/* Blocks for the new clusters themselves, whose number that may raise. */
static int add_own_blocks(struct rebuild *r)
{
	int err = take(r, r->table_clusters, &r->table);
	uint64_t i = r->base >> r->block_bits;

	for (; !err && i <= (r->base + r->used - 1) >> r->block_bits; i++)
		err = block(r, i);
	return err;
}

/* One reference to each new cluster. */
static int count_own(struct rebuild *r)
{
	struct qcow2 *q = r->k->q;
	uint8_t *buf = r->k->l2;
	uint32_t chunk = THR_MIN(q->cluster_size, CHUNK);
	uint32_t per_chunk = chunk << 3 >> r->order;
	uint64_t end = r->base + r->used;

	for (uint64_t at = r->base; at < end;) {
		uint64_t in_block = at & ((1ull << r->block_bits) - 1);
		uint32_t i = (uint32_t)in_block & (per_chunk - 1);
		uint64_t off = (r->blocks[at >> r->block_bits] << q->h.cluster_bits) +
			       ((in_block - i) << r->order >> 3);
		int err = qcow2_ck_read(q, off, buf, chunk);

		if (err)
			return err;
		for (; i < per_chunk && at < end; i++, at++)
			qcow2_refcount_store(buf, r->order, i, 1);
		err = blk_pwrite(q->blk.file, off, buf, chunk);
		if (err)
			return err;
	}
	return 0;
}

static int write_table(struct rebuild *r)
{
	struct qcow2 *q = r->k->q;
	uint64_t off = r->table << q->h.cluster_bits;
	uint32_t chunk = THR_MIN(q->cluster_size, CHUNK);
	int err = 0;

	for (uint64_t i = 0; !err && i < r->nblocks; i += chunk / 8, off += chunk) {
		for (uint32_t j = 0; j < chunk / 8; j++)
			thr_put_be64(r->k->l2 + j * 8, r->blocks[i + j] << q->h.cluster_bits);
		err = blk_pwrite(q->blk.file, off, r->k->l2, chunk);
	}
	return err;
}

/* All of the new counts is on its way: makes them the image's. */
static int switch_over(struct rebuild *r, struct blk_err *err)
{
	struct qcow2 *q = r->k->q;
	struct blk *file = q->blk.file;
	uint64_t end = (r->base + r->used) << q->h.cluster_bits;
	uint8_t p[12];
	int ret = 0;

	if (blk_size(file) < end)
		ret = blk_truncate(file, end, BLK_PREALLOC_OFF, err);
	if (!ret && FMT_BARRIER(TABLE_MOVE))
		ret = blk_flush(file);
	if (ret)
		return ret;
	thr_put_be64(p, r->table << q->h.cluster_bits);
	thr_put_be32(p + 8, (uint32_t)r->table_clusters);
	ret = blk_pwrite(file, 48, p, sizeof(p));
	if (!ret)
		ret = blk_flush(file);
	if (ret)
		return ret;
	fmt_cache_lock(q->cache);
	fmt_cache_forget(q->cache, file, 0, UINT64_MAX);
	q->h.reft_off = r->table << q->h.cluster_bits;
	q->h.reft_clusters = (uint32_t)r->table_clusters;
	fmt_cache_unlock(q->cache);
	if (q->w) {
		qcow2_layout_lock(q);
		(void)qcow2_take_fresh(q, r->base, r->used);
		qcow2_layout_unlock(q);
	}
	return 0;
}

int qcow2_ck_rebuild(struct qcow2_checker *k, struct blk_err *err)
{
	struct rebuild r = {.k = k, .order = k->q->h.refcount_order};
	int ret;

	r.block_bits = k->q->h.cluster_bits + 3 - r.order;
	ret = place(&r);
	if (ret)
		return ret;
	r.blocks = thr_zget(k->mem, (size_t)r.nblocks * 8);
	if (!r.blocks)
		return -THR_ENOMEM;
	k->unfixed = false;
	ret = qcow2_ck_pass(k, QCOW2_CK_REBUILD, count_window, &r);
	/* A table that could be read before cannot now: its references are not counted. */
	if (!ret && k->c->check_errors)
		ret = -THR_EUCLEAN;
	if (!ret)
		ret = add_own_blocks(&r);
	if (!ret)
		ret = count_own(&r);
	if (!ret)
		ret = write_table(&r);
	if (!ret)
		ret = switch_over(&r, err);
	if (!ret) {
		k->rebuild = false;
		k->unknown = false;
		k->c->image_end = (r.base + r.used) << k->q->h.cluster_bits;
	}
	thr_put(k->mem, r.blocks, (size_t)r.nblocks * 8);
	return ret;
}

int qcow2_repair_refcounts(struct qcow2 *q, struct blk_err *err)
{
	struct fmt_check c;
	int ret;

	memset(&c, 0, sizeof(c));
	c.fix = FMT_FIX_LEAKS | FMT_FIX_ERRORS;
	ret = qcow2_ck_run(q, &c, QCOW2_CHECK_WINDOW, false, err);
	if (ret || !(c.corruptions || c.check_errors))
		return ret;
	/* What could not be read is not what is wrong with the image. */
	if (c.error)
		return blk_fail(err, c.error, BLK_E_SYS, 0, 0);
	return blk_fail(err, -THR_EUCLEAN, BLK_E_QCOW2_CORRUPT, 72, 0);
}
