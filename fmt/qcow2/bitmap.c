/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/bitmap.c - the directory of persistent bitmaps, read only: what they
 * hold is not looked at. A writable open makes them invalid by clearing their
 * autoclear bit.
 */
#include "fmt/qcow2/qcow2.h"

static int read_entry(struct qcow2 *q, uint64_t off, uint64_t left, struct qcow2_bitmap *m,
	uint64_t *bytes, struct blk_err *err)
{
	uint8_t p[QCOW2_BITMAP_MIN];
	uint32_t extra;
	int ret;

	if (left < QCOW2_BITMAP_MIN)
		return blk_fail(err, -THR_EUCLEAN, BLK_E_QCOW2_BITMAP, off, 0);
	ret = blk_pread(q->blk.file, off, p, sizeof(p));
	if (ret)
		return blk_fail(err, ret, BLK_E_SYS, off, 0);
	extra = thr_be32(p + 20);
	m->off = off;
	m->table_off = thr_be64(p);
	m->table_entries = thr_be32(p + 8);
	m->flags = thr_be32(p + 12);
	m->type = p[16];
	m->granularity_bits = p[17];
	m->name_len = thr_be16(p + 18);
	m->name_off = off + QCOW2_BITMAP_MIN + extra;
	*bytes = thr_align_up((uint64_t)QCOW2_BITMAP_MIN + extra + m->name_len, 8);
	if (*bytes > left || m->granularity_bits > 63 || !m->name_len ||
		m->name_len >= FMT_NAME_MAX || !m->table_off ||
		m->table_off & q->cluster_mask || m->table_entries > QCOW2_MAX_BMT_ENTRIES)
		return blk_fail(err, -THR_EUCLEAN, BLK_E_QCOW2_BITMAP, off, 0);
	return 0;
}

int qcow2_bitmaps_walk(struct qcow2 *q,
	int (*fn)(void *ctx, const struct qcow2_bitmap *m, struct blk_err *err), void *ctx,
	struct blk_err *err)
{
	uint64_t done = 0;
	struct qcow2_bitmap m;

	for (uint32_t i = 0; i < q->bitmaps; i++) {
		uint64_t bytes = 0;
		int ret = read_entry(q, q->bitmap_dir_off + done, q->bitmap_dir_size - done, &m,
			&bytes, err);

		if (!ret)
			ret = fn(ctx, &m, err);
		if (ret)
			return ret;
		done += bytes;
	}
	return 0;
}
