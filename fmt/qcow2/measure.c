/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/measure.c - the size of an image that is not there yet. All tables are
 * counted that a fully allocated image has; an empty disk has no L1 table here.
 */
#include "fmt/qcow2/create.h"

int qcow2_measure(const struct fmt_create *c, struct fmt_layout *l, struct blk_err *err)
{
	struct qcow2_plan p;
	uint64_t data, others;
	int ret = qcow2_plan_options(&p, c, err);

	if (!ret)
		ret = qcow2_plan_crypt(&p, c, err);
	qcow2_plan_crypt_free(&p, c->mem);
	if (ret)
		return ret;
	data = qcow2_plan_clusters(&p, p.h.size);
	p.l2 = qcow2_plan_clusters(&p, data << qcow2_plan_entry_bits(&p));
	if (p.l2 * 8 > QCOW2_MAX_L1_BYTES)
		return blk_fail(err, -THR_EFBIG, BLK_E_QCOW2_TOO_LARGE, 0, p.h.size);
	p.l1 = qcow2_plan_clusters(&p, p.l2 * 8);
	others = 1 + p.l1 + p.l2 + p.crypt;
	qcow2_plan_refcounts(&p, others + data);
	l->metadata = (others + p.blocks + p.reft) << p.h.cluster_bits;
	l->data = data << p.h.cluster_bits;
	l->cluster = 1u << p.h.cluster_bits;
	l->preallocated = p.prealloc == BLK_PREALLOC_FALLOC || p.prealloc == BLK_PREALLOC_FULL;
	l->bitmaps = p.h.version >= 3;
	return 0;
}

struct sum {
	uint64_t disk;
	uint32_t cluster;
	uint64_t tables, dir; /* bytes */
};

static int add_bitmap(void *ctx, const struct qcow2_bitmap *m, struct blk_err *err)
{
	struct sum *s = ctx;
	uint64_t bits = (s->disk >> m->granularity_bits) +
			!!(s->disk & ((1ull << m->granularity_bits) - 1));
	uint64_t bytes = thr_align_up((bits + 7) >> 3, s->cluster);
	uint64_t table = thr_align_up(bytes / s->cluster * 8, s->cluster);

	(void)err;
	s->tables += bytes + table;
	s->dir += thr_align_up(QCOW2_BITMAP_MIN + (uint64_t)m->name_len, 8);
	return 0;
}

/* What the bitmaps of @b take in an image with clusters of @cluster bytes. */
int qcow2_bitmaps_size(struct blk *b, uint32_t cluster, uint64_t *bytes, struct blk_err *err)
{
	struct qcow2 *q = qcow2_of(b);
	struct sum s = {.disk = q->h.size, .cluster = cluster};
	int ret;

	if (q->h.version < 3)
		return -THR_ENOTSUP;
	ret = qcow2_bitmaps_walk(q, add_bitmap, &s, err);
	*bytes = s.tables + thr_align_up(s.dir, cluster);
	return ret;
}
