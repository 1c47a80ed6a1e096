/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/header.c - the header at the start of the image, and the extensions
 * that follow it in the first cluster.
 *
 * Nothing is used before it has been checked here, and what the checks promise
 * is relied upon everywhere: cluster_bits is 9 to 21; the L1 table is aligned,
 * has an entry for every byte of the disk, at most 32 MiB, and lies within the
 * file; the reference count table likewise with 8 MiB; the two and the first
 * cluster do not overlap; all extensions and the backing file's name lie in the
 * first cluster.
 */
#include "cz/cz.h"
#include "fmt/qcow2/qcow2.h"

#define HEADER_READ (QCOW2_HEADER_V3 + 8) /* up to the compression type and its padding */

/* The value @val of the field at @off cannot be. */
static int bad(struct blk_err *err, enum blk_err_id id, uint64_t off, uint64_t val)
{
	return blk_fail(err, -THR_EINVAL, id, off, val);
}

static uint64_t first_cluster_end(struct blk *file, const struct qcow2_header *h)
{
	return THR_MIN(1ull << h->cluster_bits, blk_size(file));
}

int qcow2_extensions(struct blk *file, const struct qcow2_header *h,
	int (*fn)(void *ctx, uint32_t type, uint64_t off, uint32_t len, struct blk_err *err),
	void *ctx, struct blk_err *err)
{
	uint64_t end = first_cluster_end(file, h);
	uint64_t off = h->header_length;
	uint8_t head[8];

	if (h->backing_len)
		end = THR_MIN(end, h->backing_off);
	while (off + sizeof(head) <= end) {
		uint32_t type, len;
		int ret = blk_pread(file, off, head, sizeof(head));

		if (ret)
			return blk_fail(err, ret, BLK_E_SYS, off, 0);
		type = thr_be32(head);
		len = thr_be32(head + 4);
		if (type == QCOW2_EXT_END)
			return 0;
		off += sizeof(head);
		if (!thr_within(off, len, end))
			return bad(err, BLK_E_QCOW2_EXT_LONG, off - sizeof(head), len);
		ret = fn(ctx, type, off, len, err);
		if (ret)
			return ret;
		off += thr_align_up(len, 8);
	}
	return 0;
}

/* Whether the virtual disk needs no more L1 entries than there are. */
static bool l1_covers(const struct qcow2_header *h)
{
	unsigned entry_bits = h->incompatible & QCOW2_INC_EXTL2 ? 4 : 3;
	unsigned shift = h->cluster_bits + h->cluster_bits - entry_bits;
	uint64_t need = h->size >> shift;

	if (h->size & ((1ull << shift) - 1))
		need++;
	return need <= h->l1_entries;
}

static int check_l1(struct blk *file, const struct qcow2_header *h, struct blk_err *err)
{
	uint64_t cluster = 1ull << h->cluster_bits;
	uint64_t bytes = (uint64_t)h->l1_entries * 8;

	if (h->size > INT64_MAX)
		return blk_fail(err, -THR_EFBIG, BLK_E_QCOW2_SIZE, 24, h->size);
	if (bytes > QCOW2_MAX_L1_BYTES)
		return blk_fail(err, -THR_EFBIG, BLK_E_QCOW2_L1_LARGE, 36, h->l1_entries);
	if (!l1_covers(h))
		return bad(err, BLK_E_QCOW2_L1_SMALL, 36, h->l1_entries);
	if (!bytes)
		return 0;
	if (!thr_is_aligned(h->l1_off, cluster) ||
		!thr_within(h->l1_off, bytes, blk_size(file)))
		return bad(err, BLK_E_QCOW2_L1_OFFSET, 40, h->l1_off);
	if (h->l1_off < cluster)
		return bad(err, BLK_E_QCOW2_OVERLAP, h->l1_off, 0);
	return 0;
}

static int check_reft(struct blk *file, const struct qcow2_header *h, struct blk_err *err)
{
	uint64_t cluster = 1ull << h->cluster_bits;
	uint64_t bytes = (uint64_t)h->reft_clusters << h->cluster_bits;
	uint64_t l1_bytes = (uint64_t)h->l1_entries * 8;

	if (!h->reft_clusters)
		return bad(err, BLK_E_QCOW2_REFT_NONE, 56, 0);
	if (bytes > QCOW2_MAX_REFT_BYTES)
		return blk_fail(err, -THR_EFBIG, BLK_E_QCOW2_REFT_LARGE, 56, h->reft_clusters);
	if (!thr_is_aligned(h->reft_off, cluster) ||
		!thr_within(h->reft_off, bytes, blk_size(file)))
		return bad(err, BLK_E_QCOW2_REFT_OFFSET, 48, h->reft_off);
	if (h->reft_off < cluster)
		return bad(err, BLK_E_QCOW2_OVERLAP, h->reft_off, 0);
	if (h->reft_off < h->l1_off + l1_bytes && h->l1_off < h->reft_off + bytes)
		return bad(err, BLK_E_QCOW2_OVERLAP, THR_MAX(h->reft_off, h->l1_off), 0);
	return 0;
}

static int check_snapshots(struct blk *file, const struct qcow2_header *h, struct blk_err *err)
{
	uint64_t cluster = 1ull << h->cluster_bits;

	if (!h->snapshots)
		return 0;
	if (h->snapshots > QCOW2_MAX_SNAPSHOTS)
		return blk_fail(err, -THR_EFBIG, BLK_E_QCOW2_SNAPS_MANY, 60, h->snapshots);
	if (h->snapshots_off < cluster || !thr_is_aligned(h->snapshots_off, cluster) ||
		!thr_within(h->snapshots_off, (uint64_t)h->snapshots * QCOW2_SNAPSHOT_MIN,
			blk_size(file)))
		return bad(err, BLK_E_QCOW2_SNAPS_OFFSET, 64, h->snapshots_off);
	return 0;
}

static int check_backing(struct blk *file, struct qcow2_header *h, struct blk_err *err)
{
	if (!h->backing_off || !h->backing_len) {
		h->backing_off = 0;
		h->backing_len = 0;
		return 0;
	}
	if (h->backing_len >= FMT_NAME_MAX)
		return bad(err, BLK_E_QCOW2_BACKING_LONG, 16, h->backing_len);
	if (h->backing_off < h->header_length ||
		!thr_within(h->backing_off, h->backing_len, first_cluster_end(file, h)))
		return bad(err, BLK_E_QCOW2_BACKING_OFFSET, 8, h->backing_off);
	return 0;
}

/* What says how the rest is to be read: features, compression, encryption. */
static int check_features(
	struct blk *file, const struct qcow2_header *h, unsigned flags, struct blk_err *err)
{
	uint64_t missing = h->incompatible & ~QCOW2_INC_KNOWN;
	bool zlib = !(h->incompatible & QCOW2_INC_COMPRESSION);

	if (missing)
		return qcow2_features_fail(file, h, missing, err);
	if (h->autoclear & QCOW2_AUTO_RAW && !(h->incompatible & QCOW2_INC_DATA_FILE))
		return bad(err, BLK_E_QCOW2_RAW_NO_DATA, 88, 0);
	if (h->autoclear & QCOW2_AUTO_RAW && h->backing_len && !(flags & FMT_NO_IO))
		return bad(err, BLK_E_QCOW2_RAW_BACKING, 88, 0);
	if (h->incompatible & QCOW2_INC_EXTL2 && h->cluster_bits < QCOW2_EXTL2_BITS)
		return bad(err, BLK_E_QCOW2_EXTL2_CLUSTER, 20, h->cluster_bits);
	if (zlib != !h->compression_type)
		return bad(
			err, BLK_E_QCOW2_COMPRESSION_BIT, QCOW2_HEADER_V3, h->compression_type);
	if (!cz_codec_name((enum cz_codec_id)h->compression_type))
		return blk_fail(err, -THR_ENOTSUP, BLK_E_QCOW2_COMPRESSION, QCOW2_HEADER_V3,
			h->compression_type);
	if (h->crypt_method > 2)
		return blk_fail(err, -THR_ENOTSUP, BLK_E_QCOW2_CRYPT, 32, h->crypt_method);
	return 0;
}

/* The fields that only version 3 has. */
static int parse_v3(
	struct blk *file, const uint8_t *p, struct qcow2_header *h, struct blk_err *err)
{
	h->refcount_order = 4;
	h->header_length = QCOW2_HEADER_V2;
	if (h->version == 2)
		return 0;
	if (blk_size(file) < QCOW2_HEADER_V3)
		return bad(err, BLK_E_QCOW2_SHORT, 0, 0);
	h->incompatible = thr_be64(p + 72);
	h->compatible = thr_be64(p + 80);
	h->autoclear = thr_be64(p + 88);
	h->refcount_order = thr_be32(p + 96);
	h->header_length = thr_be32(p + 100);
	if (h->header_length < QCOW2_HEADER_V3)
		return bad(err, BLK_E_QCOW2_HEADER_SHORT, 100, h->header_length);
	if (h->header_length > 1u << h->cluster_bits)
		return bad(err, BLK_E_QCOW2_HEADER_LONG, 100, h->header_length);
	if (h->header_length & 7)
		return bad(err, BLK_E_QCOW2_HEADER_ODD, 100, h->header_length);
	if (h->header_length > blk_size(file))
		return bad(err, BLK_E_QCOW2_SHORT, 0, 0);
	if (h->header_length > QCOW2_HEADER_V3)
		h->compression_type = p[QCOW2_HEADER_V3];
	if (h->refcount_order > 6)
		return bad(err, BLK_E_QCOW2_REFCOUNT_ORDER, 96, h->refcount_order);
	return 0;
}

static int parse(struct blk *file, struct qcow2_header *h, struct blk_err *err)
{
	uint64_t size = blk_size(file);
	uint8_t p[HEADER_READ];
	int ret;

	memset(h, 0, sizeof(*h));
	memset(p, 0, sizeof(p));
	ret = blk_pread(file, 0, p, (size_t)THR_MIN(size, sizeof(p)));
	if (ret)
		return blk_fail(err, ret, BLK_E_SYS, 0, 0);
	if (size < 4 || thr_be32(p) != QCOW2_MAGIC)
		return blk_fail_str(err, -THR_EINVAL, BLK_E_NOT_FORMAT, "qcow2");
	if (size < QCOW2_HEADER_V2)
		return bad(err, BLK_E_QCOW2_SHORT, 0, 0);
	h->version = thr_be32(p + 4);
	h->backing_off = thr_be64(p + 8);
	h->backing_len = thr_be32(p + 16);
	h->cluster_bits = thr_be32(p + 20);
	h->size = thr_be64(p + 24);
	h->crypt_method = thr_be32(p + 32);
	h->l1_entries = thr_be32(p + 36);
	h->l1_off = thr_be64(p + 40);
	h->reft_off = thr_be64(p + 48);
	h->reft_clusters = thr_be32(p + 56);
	h->snapshots = thr_be32(p + 60);
	h->snapshots_off = thr_be64(p + 64);
	if (h->version != 2 && h->version != 3)
		return blk_fail(err, -THR_ENOTSUP, BLK_E_QCOW2_VERSION, 4, h->version);
	if (h->cluster_bits < QCOW2_MIN_CLUSTER_BITS ||
		h->cluster_bits > QCOW2_MAX_CLUSTER_BITS)
		return bad(err, BLK_E_QCOW2_CLUSTER_BITS, 20, h->cluster_bits);
	return parse_v3(file, p, h, err);
}

int qcow2_header_read(
	struct blk *file, unsigned flags, struct qcow2_header *h, struct blk_err *err)
{
	int ret = parse(file, h, err);

	if (!ret)
		ret = check_backing(file, h, err);
	if (!ret)
		ret = check_features(file, h, flags, err);
	if (!ret)
		ret = check_l1(file, h, err);
	if (!ret)
		ret = check_snapshots(file, h, err);
	if (ret)
		return ret;
	ret = check_reft(file, h, flags & FMT_REPAIR ? NULL : err);
	if (ret && (flags & FMT_REPAIR)) {
		h->reft_clusters = 0;
		h->reft_off = 0;
		ret = 0;
	}
	return ret;
}
