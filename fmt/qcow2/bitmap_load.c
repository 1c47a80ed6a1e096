/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/bitmap_load.c - what a persistent bitmap holds, taken into memory. An entry of
 * its table is the offset of a cluster of bits (bits 9 to 55), or 0 with bit 0 for one
 * value of all that the cluster would hold. Bit n of the bitmap is bit n % 8 of byte n / 8.
 */
#include "fmt/qcow2/qcow2.h"

#define ENTRY_OFF   0x00fffffffffffe00ull
#define ENTRY_ONES  1ull
#define TABLE_PIECE 512u

struct find {
	struct qcow2 *q;
	const char *name;
	struct qcow2_bitmap found;
	bool any;
};

static int match(void *ctx, const struct qcow2_bitmap *m, struct blk_err *err)
{
	struct find *f = (struct find *)ctx;
	char name[FMT_NAME_MAX];
	int ret;

	if (f->any || m->name_len != strlen(f->name))
		return 0;
	ret = blk_pread(f->q->blk.file, m->name_off, name, m->name_len);
	if (ret)
		return blk_fail(err, ret, BLK_E_SYS, m->name_off, 0);
	if (!memcmp(name, f->name, m->name_len)) {
		f->found = *m;
		f->any = true;
	}
	return 0;
}

/* The part of the bitmap that one entry of the table decides. */
static int load_part(struct qcow2 *q, uint64_t entry, uint8_t *to, size_t len)
{
	uint64_t off = entry & ENTRY_OFF;

	if (!off) {
		memset(to, entry & ENTRY_ONES ? 0xff : 0, len);
		return entry & ~ENTRY_ONES ? -THR_EUCLEAN : 0;
	}
	if (entry & ~ENTRY_OFF || off & q->cluster_mask)
		return -THR_EUCLEAN;
	return blk_pread(q->blk.file, off, to, len);
}

static int load(struct qcow2 *q, const struct qcow2_bitmap *d, struct fmt_bitmap *m,
	struct blk_err *err)
{
	size_t cluster = (size_t)q->cluster_mask + 1, done = 0;
	uint8_t table[TABLE_PIECE];
	int ret = 0;

	for (uint32_t i = 0; !ret && i < d->table_entries && done < m->bytes; i++) {
		uint64_t at = d->table_off + 8ull * i;
		size_t n = THR_MIN(cluster, m->bytes - done);
		size_t left = 8 * (size_t)THR_MIN(d->table_entries - i, TABLE_PIECE / 8);

		if (!(i % (TABLE_PIECE / 8)))
			ret = blk_pread(q->blk.file, at, table, left);
		if (!ret)
			ret = load_part(q, thr_be64(table + i % (TABLE_PIECE / 8) * 8),
				m->bits + done, n);
		if (ret)
			return blk_fail(err, ret, BLK_E_QCOW2_BITMAP, at, 0);
		done += n;
	}
	return done < m->bytes ? blk_fail(err, -THR_EUCLEAN, BLK_E_QCOW2_BITMAP, d->off, 0) : 0;
}

int qcow2_bitmap_load(
	struct blk *b, const char *name, struct fmt_bitmap *m, struct blk_err *err)
{
	struct qcow2 *q = THR_CONTAINER(b, struct qcow2, blk);
	struct find f = {.q = q, .name = name};
	uint64_t bits;
	int ret = qcow2_bitmaps_walk(q, match, &f, err);

	if (ret)
		return ret;
	if (!f.any)
		return blk_fail_str(err, -THR_ENOENT, BLK_E_NO_BITMAP, name);
	if (f.found.flags & QCOW2_BM_IN_USE || f.found.type != QCOW2_BM_DIRTY)
		return blk_fail_str(err, -THR_EINVAL, BLK_E_BITMAP_IN_USE, name);
	m->granularity_bits = f.found.granularity_bits;
	bits = (m->size >> m->granularity_bits) + 1;
	if (bits / 8 + 1 > FMT_BITMAP_MAX)
		return blk_fail_str(err, -THR_EFBIG, BLK_E_BITMAP_LARGE, name);
	m->bytes = (size_t)((((m->size + (1ull << m->granularity_bits) - 1) >>
				     m->granularity_bits) +
				    7) /
			    8);
	if (!m->bytes)
		return 0;
	m->bits = (uint8_t *)thr_get(m->mem, m->bytes, 16);
	if (!m->bits)
		return blk_fail(err, -THR_ENOMEM, BLK_E_SYS, 0, m->bytes);
	ret = load(q, &f.found, m, err);
	if (ret)
		fmt_bitmap_close(m);
	return ret;
}
