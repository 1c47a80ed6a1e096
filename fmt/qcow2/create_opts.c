/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/create_opts.c - the options of a new image.
 */
#include "cz/cz.h"
#include "fmt/qcow2/create.h"

/* In the order in which create reports them. */
const struct fmt_opt qcow2_create_opts[] = {
	{"encryption", FMT_OPT_BOOL, "Encrypt the image with format 'aes' (not supported)",
		NULL},
	{"encrypt.format", FMT_OPT_STRING, "Encrypt the image, format choices: 'luks'", NULL},
	{"encrypt.key-secret", FMT_OPT_STRING, "ID of secret providing the LUKS passphrase",
		NULL},
	{"encrypt.cipher-alg", FMT_OPT_STRING, "Name of encryption cipher algorithm", NULL},
	{"encrypt.cipher-mode", FMT_OPT_STRING, "Name of encryption cipher mode", NULL},
	{"encrypt.ivgen-alg", FMT_OPT_STRING, "Name of IV generator algorithm", NULL},
	{"encrypt.ivgen-hash-alg", FMT_OPT_STRING, "Name of IV generator hash algorithm", NULL},
	{"encrypt.hash-alg", FMT_OPT_STRING, "Name of encryption hash algorithm", NULL},
	{"encrypt.iter-time", FMT_OPT_NUMBER, "Time to spend in PBKDF in milliseconds", NULL},
	{"cluster_size", FMT_OPT_SIZE, "qcow2 cluster size", "65536"},
	{"extended_l2", FMT_OPT_BOOL, "Extended L2 tables", "off"},
	{"preallocation", FMT_OPT_STRING,
		"Preallocation mode (allowed values: off, metadata, falloc, full)", NULL},
	{"compression_type", FMT_OPT_STRING,
		"Compression method used for image cluster compression", "zlib"},
	{"compression_level", FMT_OPT_NUMBER,
		"How hard convert -c compresses, not stored in the image", NULL},
	{"size", FMT_OPT_SIZE, "Virtual disk size", NULL},
	{"compat", FMT_OPT_STRING, "Compatibility level (v2 [0.10] or v3 [1.1])", NULL},
	{"backing_file", FMT_OPT_STRING, "File name of a base image", NULL},
	{"backing_fmt", FMT_OPT_STRING, "Image format of the base image", NULL},
	{"data_file", FMT_OPT_STRING, "File name of an external data file", NULL},
	{"data_file_raw", FMT_OPT_BOOL, "The external data file must stay valid as a raw image",
		NULL},
	{"lazy_refcounts", FMT_OPT_BOOL, "Postpone refcount updates", "off"},
	{"refcount_bits", FMT_OPT_NUMBER, "Width of a reference count entry in bits", "16"},
	{NULL, FMT_OPT_BOOL, NULL, NULL},
};

static bool is(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

static int version(struct qcow2_header *h, const struct blk_opts *o, struct blk_err *err)
{
	const char *s = blk_opt(o, "compat");

	h->version = 3;
	h->header_length = QCOW2_HEADER_V3 + 8;
	if (!s || is(s, "1.1") || is(s, "v3"))
		return 0;
	if (!is(s, "0.10") && !is(s, "v2"))
		return blk_fail_str(err, -THR_EINVAL, BLK_E_BAD_VALUE, "compat");
	h->version = 2;
	h->header_length = QCOW2_HEADER_V2;
	return 0;
}

static int needs_v3(const char *key, struct blk_err *err)
{
	return blk_fail_str(err, -THR_EINVAL, BLK_E_QCOW2_NEEDS_V3, key);
}

static int cluster_size(struct qcow2_header *h, const struct blk_opts *o, struct blk_err *err)
{
	uint64_t v;
	int ret = blk_opt_size(o, "cluster_size", 65536, &v, err);

	if (ret)
		return ret;
	if (!thr_is_pow2(v) || v < 1u << QCOW2_MIN_CLUSTER_BITS ||
		v > 1u << QCOW2_MAX_CLUSTER_BITS)
		return blk_fail(err, -THR_EINVAL, BLK_E_QCOW2_CLUSTER_SIZE, 0, v);
	h->cluster_bits = thr_log2(v);
	return 0;
}

static int extended(struct qcow2_header *h, const struct blk_opts *o, struct blk_err *err)
{
	bool on;
	int ret = blk_opt_bool(o, "extended_l2", false, &on, err);

	if (ret || !on)
		return ret;
	if (h->version < 3)
		return needs_v3("extended_l2", err);
	if (h->cluster_bits < QCOW2_EXTL2_BITS)
		return blk_fail(
			err, -THR_EINVAL, BLK_E_QCOW2_EXTL2_CLUSTER, 0, 1u << h->cluster_bits);
	h->incompatible |= QCOW2_INC_EXTL2;
	return 0;
}

static int refcounts(struct qcow2_header *h, const struct blk_opts *o, struct blk_err *err)
{
	bool lazy;
	uint64_t bits;
	int ret = blk_opt_size(o, "refcount_bits", 16, &bits, err);

	if (!ret)
		ret = blk_opt_bool(o, "lazy_refcounts", false, &lazy, err);
	if (ret)
		return ret;
	if (!thr_is_pow2(bits) || bits > 64)
		return blk_fail(err, -THR_EINVAL, BLK_E_QCOW2_REFCOUNT_BITS, 0, bits);
	if (h->version < 3 && bits != 16)
		return needs_v3("refcount_bits", err);
	if (h->version < 3 && lazy)
		return needs_v3("lazy_refcounts", err);
	h->refcount_order = thr_log2(bits);
	if (lazy)
		h->compatible |= QCOW2_COMPAT_LAZY;
	return 0;
}

static int compression(struct qcow2_header *h, const struct blk_opts *o, struct blk_err *err)
{
	const char *s = blk_opt(o, "compression_type");

	if (!s || is(s, "zlib"))
		return 0;
	if (!is(s, "zstd"))
		return blk_fail_str(err, -THR_EINVAL, BLK_E_BAD_VALUE, "compression_type");
	if (h->version < 3)
		return needs_v3("compression_type", err);
	if (!cz_codec_find(CZ_ZSTD))
		return blk_fail_str(
			err, -THR_ENOTSUP, BLK_E_NOT_BUILT, cz_codec_symbol(CZ_ZSTD));
	h->compression_type = CZ_ZSTD;
	h->incompatible |= QCOW2_INC_COMPRESSION;
	return 0;
}

/* Of what is compressed right after the image has been made, by who makes it. */
static int level(const struct qcow2_header *h, const struct blk_opts *o, struct blk_err *err)
{
	const char *s = blk_opt(o, "compression_level");
	struct blk_opt one = {"compression-level", s};
	struct blk_opts list = {&one, 1};
	int unused;

	return s ? qcow2_opt_level(&list, cz_codec_find((enum cz_codec_id)h->compression_type),
			   &unused, err)
		 : 0;
}

static int preallocation(
	enum blk_prealloc *out, const struct fmt_create *c, struct blk_err *err)
{
	const char *s = blk_opt(c->opts, "preallocation");

	*out = BLK_PREALLOC_OFF;
	if (s && blk_prealloc_parse(s, out))
		return blk_fail_str(err, -THR_EINVAL, BLK_E_BAD_VALUE, "preallocation");
	if (*out != BLK_PREALLOC_OFF && c->backing)
		return blk_fail(err, -THR_EINVAL, BLK_E_QCOW2_PREALLOC_BACKING, 0, 0);
	return 0;
}

static int data_file(struct qcow2_plan *p, const struct fmt_create *c, struct blk_err *err)
{
	bool raw;
	int ret = blk_opt_bool(c->opts, "data_file_raw", false, &raw, err);

	p->data_file = blk_opt(c->opts, "data_file");
	if (p->data_file && !*p->data_file)
		p->data_file = NULL;
	if (ret)
		return ret;
	if (p->data_file && p->h.version < 3)
		return needs_v3("data_file", err);
	if (raw && !p->data_file)
		return blk_fail(err, -THR_EINVAL, BLK_E_QCOW2_RAW_NO_DATA, 0, 0);
	if (raw && c->backing)
		return blk_fail(err, -THR_EINVAL, BLK_E_QCOW2_RAW_BACKING, 0, 0);
	if (p->data_file)
		p->h.incompatible |= QCOW2_INC_DATA_FILE;
	if (raw)
		p->h.autoclear |= QCOW2_AUTO_RAW;
	/* Who reads the file without our tables finds all of the disk there. */
	if (raw && p->prealloc == BLK_PREALLOC_OFF)
		p->prealloc = BLK_PREALLOC_METADATA;
	return 0;
}

int qcow2_plan_options(struct qcow2_plan *p, const struct fmt_create *c, struct blk_err *err)
{
	int ret;

	memset(p, 0, sizeof(*p));
	if (c->size > INT64_MAX - 511)
		return blk_fail(err, -THR_EFBIG, BLK_E_QCOW2_TOO_LARGE, 0, c->size);
	p->h.size = thr_align_up(c->size, 512);
	ret = version(&p->h, c->opts, err);
	if (!ret)
		ret = cluster_size(&p->h, c->opts, err);
	if (!ret)
		ret = extended(&p->h, c->opts, err);
	if (!ret)
		ret = refcounts(&p->h, c->opts, err);
	if (!ret)
		ret = compression(&p->h, c->opts, err);
	if (!ret)
		ret = level(&p->h, c->opts, err);
	if (!ret)
		ret = preallocation(&p->prealloc, c, err);
	if (!ret)
		ret = data_file(p, c, err);
	return ret;
}
