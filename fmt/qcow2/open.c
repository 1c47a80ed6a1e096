/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/open.c - the driver table, opening and closing.
 *
 * Opening for reading looks at the header and its extensions only; tables are
 * read when they are needed, and checked then.
 */
#include "cz/cz.h"
#include "fmt/qcow2/qcow2.h"

/* Memory for the tables of an image that brings no cache. */
#define CACHE_BYTES ((uint64_t)CONFIG_FMT_CACHE_KIB << 10)
#ifdef CONFIG_HOSTED
#define CACHE_SLICE 4096u
#define CACHE_LEAST (128u << 10)
#else
#define CACHE_SLICE 512u
#define CACHE_LEAST CACHE_SLICE
#endif

static int load_format(struct qcow2 *q, uint64_t off, uint32_t len, struct blk_err *err)
{
	int ret;

	if (!len || len >= FMT_FORMAT_MAX)
		return blk_fail(err, -THR_EINVAL, BLK_E_QCOW2_BACKING_FORMAT, off, len);
	if (!q->backing_format)
		q->backing_format = thr_zget(q->blk.mem, FMT_FORMAT_MAX);
	if (!q->backing_format)
		return blk_fail(err, -THR_ENOMEM, BLK_E_SYS, 0, 0);
	memset(q->backing_format, 0, FMT_FORMAT_MAX);
	ret = blk_pread(q->blk.file, off, q->backing_format, len);
	if (ret)
		return blk_fail(err, ret, BLK_E_SYS, off, 0);
	if (memchr(q->backing_format, 0, len))
		return blk_fail(err, -THR_EINVAL, BLK_E_QCOW2_BACKING_FORMAT, off, len);
	return 0;
}

static int load_bitmaps(struct qcow2 *q, uint64_t off, uint32_t len, struct blk_err *err)
{
	uint8_t p[24];
	uint32_t n;
	int ret;

	if (len != sizeof(p))
		return blk_fail(err, -THR_EINVAL, BLK_E_QCOW2_BITMAPS, off, len);
	ret = blk_pread(q->blk.file, off, p, sizeof(p));
	if (ret)
		return blk_fail(err, ret, BLK_E_SYS, off, 0);
	n = thr_be32(p);
	q->bitmap_dir_size = thr_be64(p + 8);
	q->bitmap_dir_off = thr_be64(p + 16);
	if (!n || n > QCOW2_MAX_BITMAPS || thr_be32(p + 4) ||
		q->bitmap_dir_size < (uint64_t)n * QCOW2_BITMAP_MIN ||
		q->bitmap_dir_size > QCOW2_MAX_BITMAP_DIR || !q->bitmap_dir_off ||
		q->bitmap_dir_off & q->cluster_mask ||
		!thr_within(q->bitmap_dir_off, q->bitmap_dir_size, blk_size(q->blk.file)))
		return blk_fail(err, -THR_EINVAL, BLK_E_QCOW2_BITMAPS, off, len);
	q->bitmaps = n;
	return 0;
}

static int extension(void *ctx, uint32_t type, uint64_t off, uint32_t len, struct blk_err *err)
{
	struct qcow2 *q = ctx;

	switch (type) {
	case QCOW2_EXT_BACKING_FORMAT:
		return q->h.backing_len ? load_format(q, off, len, err) : 0;
	case QCOW2_EXT_CRYPTO:
		return qcow2_crypt_extension(q, off, len, err);
	case QCOW2_EXT_DATA_FILE:
		q->data_file_off = off;
		q->data_file_len = len;
		return 0;
	case QCOW2_EXT_BITMAPS:
		if (!(q->h.autoclear & QCOW2_AUTO_BITMAPS))
			return 0;
		return load_bitmaps(q, off, len, err);
	default:
		return 0;
	}
}

static int load_backing(struct qcow2 *q, struct blk_err *err)
{
	int ret;

	if (!q->h.backing_len)
		return 0;
	q->backing = thr_zget(q->blk.mem, q->h.backing_len + 1);
	if (!q->backing)
		return blk_fail(err, -THR_ENOMEM, BLK_E_SYS, 0, 0);
	ret = blk_pread(q->blk.file, q->h.backing_off, q->backing, q->h.backing_len);
	if (ret)
		return blk_fail(err, ret, BLK_E_SYS, q->h.backing_off, 0);
	if (memchr(q->backing, 0, q->h.backing_len))
		return blk_fail(err, -THR_EINVAL, BLK_E_QCOW2_NUL, q->h.backing_off, 0);
	return 0;
}

/* A slice that is larger than a cluster would hold data too, and go stale. */
static int attach_cache(struct qcow2 *q, const struct fmt_open *o, struct blk_err *err)
{
	uint32_t slice = THR_MIN(q->cluster_size, CACHE_SLICE);
	uint64_t bytes;
	int ret = qcow2_opt_cache(o->opts, &bytes, err);

	if (ret)
		return ret;
	if (o->cache && !bytes && fmt_cache_slice_size(o->cache) <= q->cluster_size) {
		q->cache = o->cache;
		return 0;
	}
	bytes = THR_MIN(THR_MAX(bytes ? bytes : CACHE_BYTES, CACHE_LEAST), 1u << 31);
	ret = fmt_cache_open(&q->cache, slice, (uint32_t)bytes / slice, q->blk.mem);
	if (ret)
		return blk_fail(err, ret, BLK_E_SYS, 0, 0);
	q->own_cache = true;
	return qcow2_opt_clean(q, o->opts, err);
}

/* The codec of a compression type that the header announces must be there; zlib
 * is announced by every image, whether it has compressed clusters or not. */
static int attach_codec(struct qcow2 *q, struct blk_err *err)
{
	enum cz_codec_id id = (enum cz_codec_id)q->h.compression_type;
	int ret;

	q->codec = cz_codec_find(id);
	if (!q->codec && q->h.compression_type)
		return blk_fail_str(err, -THR_ENOTSUP, BLK_E_NOT_BUILT, cz_codec_symbol(id));
	ret = qcow2_codecs_open(q);
	return ret ? blk_fail(err, ret, BLK_E_SYS, 0, 0) : 0;
}

static void release(struct qcow2 *q)
{
	const struct thr_alloc *mem = q->blk.mem;

	qcow2_codecs_close(q);
	qcow2_crypt_close(q);
	if (q->own_cache) {
		fmt_cache_close(q->cache);
	} else if (q->cache) {
		fmt_cache_lock(q->cache);
		fmt_cache_forget(q->cache, q->blk.file, 0, UINT64_MAX);
		fmt_cache_unlock(q->cache);
	}
	thr_put(mem, q->snaps, q->snaps_bytes);
	thr_put(mem, q->backing, q->h.backing_len + 1);
	thr_put(mem, q->backing_format, FMT_FORMAT_MAX);
	blk_fini(&q->blk);
	thr_put(mem, q, sizeof(*q));
}

void qcow2_close(struct blk *b)
{
	struct qcow2 *q = qcow2_of(b);
	struct blk *file = b->file, *data = b->data;

	qcow2_write_close(q);
	release(q);
	blk_close(data);
	blk_close(file);
}

static int load_header(struct qcow2 *q, const struct fmt_open *o, struct blk_err *err)
{
	struct blk *file = q->blk.file;
	int ret = qcow2_header_read(file, o->flags, &q->h, err);

	if (ret)
		return ret;
	q->cluster_size = 1u << q->h.cluster_bits;
	q->cluster_mask = q->cluster_size - 1;
	q->entry_bits = q->h.incompatible & QCOW2_INC_EXTL2 ? 4 : 3;
	q->l2_bits = q->h.cluster_bits - q->entry_bits;
	q->unit_bits = q->h.cluster_bits - (qcow2_extended(q) ? QCOW2_SUB_SHIFT : 0);
	q->unit_mask = (1u << q->unit_bits) - 1;
	q->blk.zero_align = q->unit_mask + 1;
	blk_set_size(&q->blk, q->h.size);
	ret = load_backing(q, err);
	if (!ret)
		ret = qcow2_extensions(file, &q->h, extension, q, err);
	if (!ret && q->h.autoclear & QCOW2_AUTO_BITMAPS && !q->bitmaps &&
		!(o->flags & FMT_REPAIR))
		ret = blk_fail(err, -THR_EINVAL, BLK_E_QCOW2_BITMAPS_NONE, 88, 0);
	/* Info lists them. */
	if (!ret && o->flags & FMT_NO_IO)
		ret = qcow2_snapshots_walk(q, NULL, NULL, err);
	return ret;
}

static int qcow2_open(
	struct blk **out, struct blk *file, const struct fmt_open *o, struct blk_err *err)
{
	struct qcow2 *q = thr_zget(o->mem, sizeof(*q));
	int ret;

	if (!q)
		return blk_fail(err, -THR_ENOMEM, BLK_E_SYS, 0, 0);
	blk_init(&q->blk, &qcow2_ops, file->name, o->blk_flags, o->mem);
	q->blk.file = file;
	q->data = file;
	ret = load_header(q, o, err);
	if (!ret && qcow2_encrypted(q))
		ret = qcow2_crypt_open(q, o, err);
	if (ret || o->flags & FMT_NO_IO)
		goto out;
	if (o->blk_flags & BLK_RDWR && q->h.incompatible & QCOW2_INC_CORRUPT &&
		!(o->flags & FMT_REPAIR)) {
		ret = blk_fail(err, -THR_EUCLEAN, BLK_E_QCOW2_CORRUPT, 72, 0);
		goto out;
	}
	ret = qcow2_data_open(q, o, err);
	if (!ret)
		ret = attach_cache(q, o, err);
	if (!ret)
		ret = attach_codec(q, err);
	if (!ret && o->blk_flags & BLK_RDWR)
		ret = qcow2_write_open(q, o, err);
out:
	if (ret) {
		if (q->blk.data != o->data)
			blk_close(q->blk.data);
		release(q);
	} else {
		*out = &q->blk;
	}
	return ret;
}

/* Version 1 has the same magic and is another format. */
static int qcow2_probe(const uint8_t *head, size_t len, uint64_t size)
{
	(void)size;
	if (len < 8 || thr_be32(head) != QCOW2_MAGIC || thr_be32(head + 4) < 2)
		return 0;
	return 100;
}

static int qcow2_backing(struct blk *b, const char **name, const char **format)
{
	struct qcow2 *q = qcow2_of(b);

	if (!q->backing)
		return -THR_ENOENT;
	*name = q->backing;
	*format = q->backing_format ? q->backing_format : "";
	return 0;
}

/* Of an encrypted image; another has no use for it. */
const struct blk_ops qcow2_ops = {
	.name = "qcow2",
	.preadv = qcow2_preadv,
	.status = qcow2_status,
	.close = qcow2_close,
};

const struct fmt_driver fmt_qcow2_driver = {
	.name = "qcow2",
	.ops = &qcow2_ops,
	.probe = qcow2_probe,
	.open = qcow2_open,
	.backing = qcow2_backing,
#ifdef CONFIG_HOSTED
	.info = qcow2_info,
	.props = qcow2_props,
	.select = qcow2_snapshot_select,
	.open_opts = qcow2_open_opts,
	.tidy = qcow2_tidy,
	.bitmap = qcow2_bitmap_load,
#endif
#ifdef CONFIG_FMT_QCOW2_WRITE
	.empty = qcow2_empty,
	.compress = qcow2_compress,
#ifdef CONFIG_HOSTED
	.amend = qcow2_amend,
	.amend_opts = qcow2_amend_opts,
#endif
#endif
#ifdef CONFIG_FMT_QCOW2_CREATE
	.create = qcow2_create,
	.create_opts = qcow2_create_opts,
	.measure = qcow2_measure,
	.bitmaps = qcow2_bitmaps_size,
#endif
#ifdef CONFIG_FMT_QCOW2_CHECK
	.check = qcow2_check,
#endif
};
