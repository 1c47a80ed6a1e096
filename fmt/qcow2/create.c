/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/create.c - new images.
 *
 * The layout is fixed by the options and the size alone:
 *
 *   header | reference count table | its blocks | L1 table | LUKS header | L2 tables | data
 *
 * where the LUKS header is there with encryption and the last two with preallocation
 * only. What is encrypted and preallocated is said to be zero: clusters of zeroes are not. The
 * reference count table is large enough for the image when all of it is allocated, up to
 * REFT_ROOM, so that it need not move; blocks are made for what is there. The
 * header is written last, so that no half-made image can be opened.
 */
#include "cz/cz.h"
#include "fmt/qcow2/create.h"

#define CHUNK     (64u << 10)
#define REFT_ROOM (64u << 10)

uint64_t qcow2_plan_clusters(const struct qcow2_plan *p, uint64_t bytes)
{
	uint64_t mask = (1ull << p->h.cluster_bits) - 1;

	return (bytes >> p->h.cluster_bits) + !!(bytes & mask);
}

unsigned qcow2_plan_entry_bits(const struct qcow2_plan *p)
{
	return p->h.incompatible & QCOW2_INC_EXTL2 ? 4 : 3;
}

void qcow2_plan_refcounts(struct qcow2_plan *p, uint64_t others)
{
	unsigned block_bits = p->h.cluster_bits + 3 - p->h.refcount_order;
	uint64_t blocks = 0, reft = p->reft;

	for (;;) {
		uint64_t total = others + blocks + reft;

		p->blocks = (total + (1ull << block_bits) - 1) >> block_bits;
		p->reft = THR_MAX(reft, qcow2_plan_clusters(p, p->blocks * 8));
		if (p->blocks == blocks && p->reft == reft)
			return;
		blocks = p->blocks;
		reft = p->reft;
	}
}

/* How many clusters of what, and where. */
static int layout(struct qcow2_plan *p, struct blk_err *err)
{
	unsigned bits = p->h.cluster_bits;
	uint64_t disk = qcow2_plan_clusters(p, p->h.size), data = p->data_file ? 0 : disk;
	uint64_t l2 = qcow2_plan_clusters(p, disk << qcow2_plan_entry_bits(p));
	uint64_t l1 = qcow2_plan_clusters(p, THR_MAX(l2, 1u) * 8);
	uint64_t room = THR_MAX(REFT_ROOM >> bits, 1u);
	bool all = p->prealloc != BLK_PREALLOC_OFF;

	if (l2 * 8 > QCOW2_MAX_L1_BYTES)
		return blk_fail(err, -THR_EFBIG, BLK_E_QCOW2_TOO_LARGE, 0, p->h.size);
	p->reft = 0;
	qcow2_plan_refcounts(p, 1 + l1 + p->crypt + l2 + data);
	if (!all) {
		p->reft = THR_MIN(p->reft, room);
		qcow2_plan_refcounts(p, 1 + l1 + p->crypt);
	}
	p->l1 = l1;
	p->l2 = all ? l2 : 0;
	p->total = 1 + p->reft + p->blocks + l1 + p->crypt + (all ? l2 + data : 0);
	if (p->reft << bits > QCOW2_MAX_REFT_BYTES || p->total >> (55 - bits))
		return blk_fail(err, -THR_EFBIG, BLK_E_QCOW2_TOO_LARGE, 0, p->h.size);
	p->h.reft_off = 1ull << bits;
	p->h.reft_clusters = (uint32_t)p->reft;
	p->h.l1_off = (1 + p->reft + p->blocks) << bits;
	p->h.l1_entries = (uint32_t)THR_MAX(l2, 1u);
	p->crypt_off = p->h.l1_off + (l1 << bits);
	return 0;
}

/* ---- tables, written from start to end through one buffer ---- */

struct stream {
	struct blk *file;
	uint64_t off;
	uint8_t *buf;
	size_t fill;
	int err;
};

static void drain(struct stream *s)
{
	if (!s->err && s->fill)
		s->err = blk_pwrite(s->file, s->off, s->buf, s->fill);
	s->off += s->fill;
	s->fill = 0;
}

static void emit64(struct stream *s, uint64_t v)
{
	thr_put_be64(s->buf + s->fill, v);
	s->fill += 8;
	if (s->fill == CHUNK)
		drain(s);
}

/* @n table entries that point to one cluster after the other. */
static void emit_run(struct stream *s, const struct qcow2_plan *p, uint64_t at, uint64_t first,
	uint64_t n, uint64_t flags)
{
	drain(s);
	s->off = at << p->h.cluster_bits;
	for (uint64_t i = 0; i < n && !s->err; i++)
		emit64(s, (first + i) << p->h.cluster_bits | flags);
}

/* Extended entries for all of the disk: the clusters are there, and no subcluster is
 * allocated, so that it reads as zeroes whatever they hold. */
static void emit_extended(
	struct stream *s, const struct qcow2_plan *p, uint64_t at, uint64_t first)
{
	uint64_t n = qcow2_plan_clusters(p, p->h.size);

	drain(s);
	s->off = at << p->h.cluster_bits;
	for (uint64_t i = 0; i < n && !s->err; i++) {
		emit64(s, (first + i) << p->h.cluster_bits | QCOW2_COPIED);
		emit64(s, 0);
	}
}

/* Every cluster of the file is used once. */
static void emit_counts(struct stream *s, const struct qcow2_plan *p, uint64_t at)
{
	unsigned order = p->h.refcount_order;
	uint64_t chunk = (uint64_t)CHUNK << 3 >> order;

	drain(s);
	s->off = at << p->h.cluster_bits;
	for (uint64_t done = 0; done < p->total && !s->err;) {
		uint32_t n = (uint32_t)THR_MIN(chunk, p->total - done);

		memset(s->buf, 0, CHUNK);
		for (uint32_t i = 0; i < n; i++)
			qcow2_refcount_store(s->buf, order, i, 1);
		s->fill = (size_t)((((uint64_t)n << order) + 7) >> 3);
		drain(s);
		done += n;
	}
}

static int write_tables(
	struct blk *file, const struct qcow2_plan *p, const struct thr_alloc *mem)
{
	uint64_t blocks = 1 + p->reft, l1 = blocks + p->blocks;
	uint64_t l2 = l1 + p->l1 + p->crypt, zero = p->crypt ? QCOW2_L2E_ZERO : 0;
	struct stream s = {.file = file, .buf = (uint8_t *)thr_get(mem, CHUNK, 512)};

	if (!s.buf)
		return -THR_ENOMEM;
	emit_run(&s, p, 1, blocks, p->blocks, 0);
	emit_counts(&s, p, blocks);
	if (p->l2) {
		uint64_t data = p->data_file ? 0 : l2 + p->l2;

		emit_run(&s, p, l1, l2, p->l2, QCOW2_COPIED);
		if (qcow2_plan_entry_bits(p) == 4)
			emit_extended(&s, p, l2, data);
		else
			emit_run(&s, p, l2, data, qcow2_plan_clusters(p, p->h.size),
				QCOW2_COPIED | zero);
	}
	drain(&s);
	thr_put(mem, s.buf, CHUNK);
	return s.err;
}

/* Space that reads as zeroes: a file grows, a device of fixed size is cleared. */
static int make_room(struct blk *file, const struct qcow2_plan *p, struct blk_err *err)
{
	struct blk_req r = {.len = p->total << p->h.cluster_bits};
	enum blk_prealloc how = p->prealloc;
	int ret;

	if (how == BLK_PREALLOC_METADATA || p->data_file)
		how = BLK_PREALLOC_OFF;
	if (file->grows && blk_size(file) <= r.len)
		return blk_truncate(file, r.len, how, err);
	if (blk_size(file) < r.len)
		return blk_fail(err, -THR_ENOSPC, BLK_E_QCOW2_NO_ROOM, 0, r.len);
	if (how == BLK_PREALLOC_OFF)
		r.flags = BLK_UNMAP;
	ret = blk_zero(file, &r);
	return ret ? blk_fail(err, ret, BLK_E_SYS, 0, 0) : 0;
}

/* The guest's data, all zeroes, in a file of its own. */
static int make_data(struct blk *data, const struct qcow2_plan *p, struct blk_err *err)
{
	enum blk_prealloc how = p->prealloc == BLK_PREALLOC_METADATA ? BLK_PREALLOC_OFF
								     : p->prealloc;
	int ret;

	if (!p->data_file)
		return 0;
	if (!data)
		return blk_fail(err, -THR_EINVAL, BLK_E_QCOW2_DATA_NONE, 0, 0);
	if (data->grows) {
		ret = blk_truncate(data, p->h.size, how, err);
		if (ret)
			return ret;
	} else {
		struct blk_req r = {.len = p->h.size, .flags = BLK_UNMAP};

		if (blk_size(data) < p->h.size)
			return blk_fail(err, -THR_ENOSPC, BLK_E_QCOW2_NO_ROOM, 0, p->h.size);
		ret = p->h.size ? blk_zero(data, &r) : 0;
	}
	if (!ret)
		ret = blk_flush(data);
	return ret ? blk_fail(err, ret, BLK_E_SYS, 0, 0) : 0;
}

static int write_all(
	struct blk *file, struct qcow2_plan *p, const struct fmt_create *c, struct blk_err *err)
{
	int ret = make_room(file, p, err);

	if (!ret)
		ret = qcow2_plan_crypt_write(file, p, c, err);
	if (ret)
		return ret;
	ret = write_tables(file, p, c->mem);
	if (!ret)
		ret = blk_pwrite(file, 0, p->head, p->head_len);
	if (!ret)
		ret = blk_flush(file);
	return ret ? blk_fail(err, ret, BLK_E_SYS, 0, 0) : 0;
}

int qcow2_create(struct blk *file, const struct fmt_create *c, struct blk_err *err)
{
	struct qcow2_plan p;
	int ret = qcow2_plan_options(&p, c, err);

	if (!ret)
		ret = qcow2_plan_crypt(&p, c, err);
	if (!ret)
		ret = layout(&p, err);
	if (!ret)
		ret = qcow2_plan_header(&p, c, err);
	if (!ret) {
		ret = make_data(c->data, &p, err);
		if (!ret)
			ret = write_all(file, &p, c, err);
		thr_put(c->mem, p.head, p.head_size);
	}
	qcow2_plan_crypt_free(&p, c->mem);
	return ret;
}
