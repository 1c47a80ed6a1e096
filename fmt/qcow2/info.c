/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/info.c - what info says about an image.
 */
#include "cz/cz.h"
#include "fmt/qcow2/qcow2.h"

int qcow2_info(struct blk *b, struct fmt_info *info)
{
	struct qcow2 *q = qcow2_of(b);

	info->format = "qcow2";
	info->virtual_size = q->h.size;
	info->cluster_size = q->cluster_size;
	info->vm_state_off = thr_align_up(q->h.size, (uint64_t)q->cluster_size << q->l2_bits);
	info->has_backing = q->backing;
	info->backing = q->backing;
	info->backing_format = q->backing_format;
	info->encrypted = q->h.crypt_method;
	info->dirty = q->h.incompatible & QCOW2_INC_DIRTY;
	info->corrupt = q->h.incompatible & QCOW2_INC_CORRUPT;
	info->snapshots = q->h.snapshots;
	info->snapshot = qcow2_snapshot_nth;
	return 0;
}

/* A string that lies in the file: longer ones are cut. */
static void put_string(
	struct qcow2 *q, struct fmt_sink *s, const char *key, uint64_t off, uint32_t len)
{
	char buf[FMT_NAME_MAX];

	len = THR_MIN(len, (uint32_t)sizeof(buf) - 1);
	if (blk_pread(q->blk.file, off, buf, len))
		return;
	buf[len] = 0;
	s->str(s, key, buf);
}

struct bitmap_ctx {
	struct qcow2 *q;
	struct fmt_sink *s;
};

static int put_bitmap(void *ctx, const struct qcow2_bitmap *m, struct blk_err *err)
{
	struct bitmap_ctx *c = ctx;
	struct fmt_sink *s = c->s;

	(void)err;
	s->open(s, NULL, false);
	s->open(s, "flags", true);
	if (m->flags & QCOW2_BM_IN_USE)
		s->str(s, NULL, "in-use");
	if (m->flags & QCOW2_BM_AUTO)
		s->str(s, NULL, "auto");
	s->close(s);
	put_string(c->q, s, "name", m->name_off, m->name_len);
	s->num(s, "granularity", 1ull << m->granularity_bits);
	s->close(s);
	return 0;
}

static void put_v3(struct qcow2 *q, struct fmt_sink *s)
{
	struct bitmap_ctx c = {q, s};

	s->flag(s, "lazy-refcounts", q->h.compatible & QCOW2_COMPAT_LAZY);
	if (q->bitmaps) {
		s->open(s, "bitmaps", true);
		(void)qcow2_bitmaps_walk(q, put_bitmap, &c, NULL);
		s->close(s);
	}
	s->num(s, "refcount-bits", 1u << q->h.refcount_order);
	if (qcow2_encrypted(q))
		qcow2_crypt_props(q, s);
	if (q->h.incompatible & QCOW2_INC_DATA_FILE) {
		if (q->data_file_len)
			put_string(q, s, "data-file", q->data_file_off, q->data_file_len);
		s->flag(s, "data-file-raw", q->h.autoclear & QCOW2_AUTO_RAW);
	}
	s->flag(s, "corrupt", q->h.incompatible & QCOW2_INC_CORRUPT);
	s->flag(s, "extended-l2", q->h.incompatible & QCOW2_INC_EXTL2);
}

void qcow2_props(struct blk *b, struct fmt_sink *s)
{
	struct qcow2 *q = qcow2_of(b);

	s->str(s, "compat", q->h.version == 2 ? "0.10" : "1.1");
	s->str(s, "compression-type", cz_codec_name((enum cz_codec_id)q->h.compression_type));
	if (q->h.version == 2) {
		s->num(s, "refcount-bits", 16);
		if (qcow2_encrypted(q))
			qcow2_crypt_props(q, s);
	} else {
		put_v3(q, s);
	}
}
