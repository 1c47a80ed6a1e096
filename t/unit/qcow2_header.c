/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/qcow2_header.c - every field of the header with values that cannot be,
 * one at a time; extensions; what is let through for info and for repair.
 */
#include "t/unit/qcow2_util.h"

/* A build without encryption says so, whatever else is wrong. */
#ifdef CONFIG_FMT_LUKS
#define ENCRYPTED(id) id
#else
#define ENCRYPTED(id) BLK_E_NOT_BUILT
#endif

struct field {
	const char *what;
	unsigned off, width;
	uint64_t val;
	unsigned id; /* BLK_E_NONE: opens */
};

#define CL 4096ull

static const struct field fields[] = {
	{"magic", 0, 4, 0x514649fa, BLK_E_NOT_FORMAT},
	{"version 1", 4, 4, 1, BLK_E_QCOW2_VERSION},
	{"version 4", 4, 4, 4, BLK_E_QCOW2_VERSION},
	{"cluster_bits 8", 20, 4, 8, BLK_E_QCOW2_CLUSTER_BITS},
	{"cluster_bits 22", 20, 4, 22, BLK_E_QCOW2_CLUSTER_BITS},
	{"cluster_bits 2^32-1", 20, 4, UINT32_MAX, BLK_E_QCOW2_CLUSTER_BITS},
	{"size 2^63", 24, 8, 1ull << 63, BLK_E_QCOW2_SIZE},
	{"size 2^64-1", 24, 8, UINT64_MAX, BLK_E_QCOW2_SIZE},
	{"size past L1", 24, 8, (2ull << 20) + 1, BLK_E_QCOW2_L1_SMALL},
	{"size up to L1", 24, 8, 2ull << 20, BLK_E_NONE},
	{"size 2^62", 24, 8, 1ull << 62, BLK_E_QCOW2_L1_SMALL},
	{"crypt 1", 32, 4, 1, ENCRYPTED(BLK_E_CIPHER_SECRET)},
	{"crypt 2", 32, 4, 2, ENCRYPTED(BLK_E_QCOW2_CRYPT_EXT)},
	{"crypt 3", 32, 4, 3, BLK_E_QCOW2_CRYPT},
	{"no L1 entries", 36, 4, 0, BLK_E_QCOW2_L1_SMALL},
	{"L1 of 32 MiB and more", 36, 4, (32u << 17) + 1, BLK_E_QCOW2_L1_LARGE},
	{"L1 entries 2^32-1", 36, 4, UINT32_MAX, BLK_E_QCOW2_L1_LARGE},
	{"L1 past the end", 36, 4, 32u << 17, BLK_E_QCOW2_L1_OFFSET},
	{"L1 unaligned", 40, 8, 3 * CL + 512, BLK_E_QCOW2_L1_OFFSET},
	{"L1 at the end", 40, 8, 16 * CL, BLK_E_QCOW2_L1_OFFSET},
	{"L1 far away", 40, 8, UINT64_MAX & ~(CL - 1), BLK_E_QCOW2_L1_OFFSET},
	{"L1 in the header", 40, 8, 0, BLK_E_QCOW2_OVERLAP},
	{"L1 on the reftable", 40, 8, CL, BLK_E_QCOW2_OVERLAP},
	{"reftable unaligned", 48, 8, CL + 8, BLK_E_QCOW2_REFT_OFFSET},
	{"reftable past the end", 48, 8, 16 * CL, BLK_E_QCOW2_REFT_OFFSET},
	{"reftable far away", 48, 8, 1ull << 63, BLK_E_QCOW2_REFT_OFFSET},
	{"reftable in the header", 48, 8, 0, BLK_E_QCOW2_OVERLAP},
	{"reftable on L1", 48, 8, 3 * CL, BLK_E_QCOW2_OVERLAP},
	{"no reftable", 56, 4, 0, BLK_E_QCOW2_REFT_NONE},
	{"reftable over L1", 56, 4, 3, BLK_E_QCOW2_OVERLAP},
	{"reftable beyond the file", 56, 4, 2048, BLK_E_QCOW2_REFT_OFFSET},
	{"reftable of 8 MiB and more", 56, 4, 2049, BLK_E_QCOW2_REFT_LARGE},
	{"reftable clusters 2^32-1", 56, 4, UINT32_MAX, BLK_E_QCOW2_REFT_LARGE},
	{"snapshots without a table", 60, 4, 1, BLK_E_QCOW2_SNAPS_OFFSET},
	{"too many snapshots", 60, 4, 65537, BLK_E_QCOW2_SNAPS_MANY},
	{"snapshot offset without snapshots", 64, 8, 12345, BLK_E_NONE},
	{"external data file", 72, 8, 4, BLK_E_QCOW2_DATA_NONE},
	{"compression bit alone", 72, 8, 8, BLK_E_QCOW2_COMPRESSION_BIT},
	{"extended L2 with small clusters", 72, 8, 16, BLK_E_QCOW2_EXTL2_CLUSTER},
	{"feature 5", 72, 8, 32, BLK_E_QCOW2_FEATURES},
	{"feature 63", 72, 8, 1ull << 63, BLK_E_QCOW2_FEATURES},
	{"dirty", 72, 8, 1, BLK_E_NONE},
	{"corrupt, read-only", 72, 8, 2, BLK_E_NONE},
	{"any compatible feature", 80, 8, UINT64_MAX, BLK_E_NONE},
	{"any unknown autoclear feature", 88, 8, UINT64_MAX - 3, BLK_E_NONE},
	{"raw data without a data file", 88, 8, 2, BLK_E_QCOW2_RAW_NO_DATA},
	{"bitmaps without extension", 88, 8, 1, BLK_E_QCOW2_BITMAPS_NONE},
	{"refcount order 7", 96, 4, 7, BLK_E_QCOW2_REFCOUNT_ORDER},
	{"refcount order 2^31", 96, 4, 1u << 31, BLK_E_QCOW2_REFCOUNT_ORDER},
	{"header length 0", 100, 4, 0, BLK_E_QCOW2_HEADER_SHORT},
	{"header length 96", 100, 4, 96, BLK_E_QCOW2_HEADER_SHORT},
	{"header length 108", 100, 4, 108, BLK_E_QCOW2_HEADER_ODD},
	{"header length past the cluster", 100, 4, 4104, BLK_E_QCOW2_HEADER_LONG},
	{"header length 2^32-1", 100, 4, UINT32_MAX, BLK_E_QCOW2_HEADER_LONG},
	{"header length of a cluster", 100, 4, 4096, BLK_E_NONE},
};

static void put(struct im *m, const struct field *f)
{
	if (f->width == 4)
		im_be32(m, f->off, (uint32_t)f->val);
	else
		im_be64(m, f->off, f->val);
}

static void test_fields(void **state)
{
	(void)state;
	for (size_t i = 0; i < THR_ARRAY_SIZE(fields); i++) {
		struct blk_err err;
		struct im m;
		unsigned id;

		im_new(&m, 3, 12, 4, 16, 1 << 20);
		put(&m, &fields[i]);
		id = im_error(&m, 0, &err);
		if (id != fields[i].id)
			fprintf(stderr, "# %s: %u\n", fields[i].what, id);
		assert_int_equal(id, fields[i].id);
		im_free(&m);
	}
}

/* Version 2 has nothing from byte 72 on, whatever is there. */
static void test_v2_is_short(void **state)
{
	struct qcow2 *q;
	struct blk *b;
	struct im m;

	(void)state;
	im_new(&m, 2, 12, 4, 16, 1 << 20);
	im_be64(&m, 72, 0); /* the end of the extensions */
	memset(m.p + 80, 0xff, 32);
	b = im_open(&m);
	q = qcow2_of(b);
	assert_int_equal(q->h.header_length, 72);
	assert_int_equal(q->h.refcount_order, 4);
	assert_int_equal(q->h.incompatible | q->h.compatible | q->h.autoclear, 0);
	fmt_close(b);
	im_free(&m);
}

static void test_every_length(void **state)
{
	struct im m;
	uint64_t size;

	(void)state;
	for (unsigned version = 2; version <= 3; version++) {
		im_new(&m, version, 12, 4, 16, 1 << 20);
		size = m.size;
		for (m.size = 0; m.size < 4 * CL; m.size += m.size < 256 ? 1 : 500)
			if (m.size < 3 * CL + 8)
				assert_int_not_equal(im_error(&m, 0, NULL), BLK_E_NONE);
		m.size = 3 * CL + 8;
		assert_int_equal(im_error(&m, 0, NULL), BLK_E_NONE);
		m.size = size;
		im_free(&m);
	}
}

static void test_names_of_features(void **state)
{
	struct blk_err err;
	char text[512];
	struct im m;

	(void)state;
	im_new(&m, 3, 12, 4, 16, 1 << 20);
	im_be64(&m, 72, 1ull << 5 | 1ull << 7 | 1ull << 40 | 1 << 4);
	im_be32(&m, 104, QCOW2_EXT_FEATURES);
	im_be32(&m, 108, 48 * 4);
	m.p[112] = 0;
	m.p[113] = 7;
	memcpy(m.p + 114, "time travel", 12);
	m.p[160] = 1; /* a compatible feature of that number: not meant */
	m.p[161] = 5;
	memcpy(m.p + 162, "wrong", 6);
	m.p[208] = 0;
	m.p[209] = 5;
	memset(m.p + 210, 'x', 46); /* not terminated */
	m.p[256] = 0;
	m.p[257] = 200;
	memcpy(m.p + 258, "bit 200", 8);
	assert_int_equal(im_error(&m, 0, &err), BLK_E_QCOW2_FEATURES);
	blk_err_text(&err, text, sizeof(text));
	assert_non_null(strstr(text, "Unsupported qcow2 feature(s): time travel, "
				     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx, "
				     "unknown incompatible feature 40"));
	im_free(&m);
}

static void extension(struct im *m, uint64_t at, uint32_t type, uint32_t len)
{
	im_be32(m, at, type);
	im_be32(m, at + 4, len);
}

static void test_extensions(void **state)
{
	struct im m;

	(void)state;
	im_new(&m, 3, 12, 4, 16, 1 << 20);
	/* Unknown ones are skipped, up to the very end of the cluster. */
	extension(&m, 104, 0x12345678, 1);
	extension(&m, 120, 0x12345678, 4096 - 128);
	assert_int_equal(im_error(&m, 0, NULL), BLK_E_NONE);
	extension(&m, 120, 0x12345678, 4096 - 127);
	assert_int_equal(im_error(&m, 0, NULL), BLK_E_QCOW2_EXT_LONG);
	extension(&m, 120, 0x12345678, UINT32_MAX);
	assert_int_equal(im_error(&m, 0, NULL), BLK_E_QCOW2_EXT_LONG);
	/* After the end marker anything may follow. */
	extension(&m, 120, 0, 0);
	extension(&m, 128, 0x12345678, UINT32_MAX);
	assert_int_equal(im_error(&m, 0, NULL), BLK_E_NONE);
	im_free(&m);
}

static void test_backing(void **state)
{
	const char *name, *format;
	struct blk *b;
	struct im m;

	(void)state;
	im_new(&m, 3, 12, 4, 16, 1 << 20);
	extension(&m, 104, QCOW2_EXT_BACKING_FORMAT, 3);
	memcpy(m.p + 112, "raw", 3);
	im_be64(&m, 8, 4096 - 1023);
	im_be32(&m, 16, 1023);
	memset(m.p + 4096 - 1023, 'n', 1023);
	b = im_open(&m);
	assert_int_equal(fmt_driver_of(b)->backing(b, &name, &format), 0);
	assert_int_equal(strlen(name), 1023);
	assert_string_equal(format, "raw");
	fmt_close(b);

	im_be32(&m, 16, 1024);
	assert_int_equal(im_error(&m, 0, NULL), BLK_E_QCOW2_BACKING_LONG);
	im_be32(&m, 16, UINT32_MAX);
	assert_int_equal(im_error(&m, 0, NULL), BLK_E_QCOW2_BACKING_LONG);
	im_be32(&m, 16, 1023);
	im_be64(&m, 8, 4096 - 1022);
	assert_int_equal(im_error(&m, 0, NULL), BLK_E_QCOW2_BACKING_OFFSET);
	im_be64(&m, 8, UINT64_MAX - 3);
	assert_int_equal(im_error(&m, 0, NULL), BLK_E_QCOW2_BACKING_OFFSET);
	im_be64(&m, 8, 103);
	assert_int_equal(im_error(&m, 0, NULL), BLK_E_QCOW2_BACKING_OFFSET);
	im_be64(&m, 8, 2048);
	im_be32(&m, 16, 3);
	memcpy(m.p + 2048, "a\0b", 3);
	assert_int_equal(im_error(&m, 0, NULL), BLK_E_QCOW2_NUL);
	/* An extension may not reach into the name. */
	memcpy(m.p + 2048, "abc", 3);
	extension(&m, 120, 0x12345678, 2048 - 127);
	assert_int_equal(im_error(&m, 0, NULL), BLK_E_QCOW2_EXT_LONG);
	extension(&m, 120, 0x12345678, 2048 - 128);
	assert_int_equal(im_error(&m, 0, NULL), BLK_E_NONE);
	/* The format's name has a limit too. */
	extension(&m, 120, 0, 0);
	extension(&m, 104, QCOW2_EXT_BACKING_FORMAT, FMT_FORMAT_MAX);
	assert_int_equal(im_error(&m, 0, NULL), BLK_E_QCOW2_BACKING_FORMAT);
	im_free(&m);
}

static void test_bitmaps_extension(void **state)
{
	static const struct field bad[] = {
		{"none", 112, 4, 0, 0},
		{"65536", 112, 4, 65536, 0},
		{"reserved", 116, 4, 1, 0},
		{"directory too small", 120, 8, 47, 0},
		{"directory too large", 120, 8, (64u << 20) + 8, 0},
		{"directory unaligned", 128, 8, 5 * CL + 8, 0},
		{"directory at 0", 128, 8, 0, 0},
		{"directory past the end", 128, 8, 16 * CL, 0},
		{"length", 108, 4, 32, 0},
	};
	struct im m;

	(void)state;
	im_new(&m, 3, 12, 4, 16, 1 << 20);
	for (size_t i = 0; i <= THR_ARRAY_SIZE(bad); i++) {
		im_be64(&m, 88, 1);
		extension(&m, 104, QCOW2_EXT_BITMAPS, 24);
		im_be32(&m, 112, 2);
		im_be32(&m, 116, 0);
		im_be64(&m, 120, 64);
		im_be64(&m, 128, 5 * CL);
		if (i < THR_ARRAY_SIZE(bad))
			put(&m, &bad[i]);
		assert_int_equal(im_error(&m, 0, NULL),
			i < THR_ARRAY_SIZE(bad) ? BLK_E_QCOW2_BITMAPS : BLK_E_NONE);
		/* Without its autoclear bit it is not looked at. */
		im_be64(&m, 88, 0);
		assert_int_equal(im_error(&m, 0, NULL), BLK_E_NONE);
	}
	im_free(&m);
}

/* Info shows what cannot be read yet, but nothing that nobody knows. */
static void test_no_io(void **state)
{
	struct fmt_info info;
	struct blk *b;
	struct im m;

	(void)state;
	im_new(&m, 3, 14, 4, 16, 1 << 20);
	im_be64(&m, 72, QCOW2_INC_EXTL2 | QCOW2_INC_DATA_FILE | QCOW2_INC_DIRTY);
	im_be32(&m, 32, 1);
	assert_int_equal(im_try(&m, FMT_NO_IO, 0, NULL, &b, NULL), 0);
	assert_int_equal(fmt_info(b, &info), 0);
	assert_true(info.encrypted);
	assert_true(info.dirty);
	assert_false(info.corrupt);
	assert_int_equal(info.cluster_size, 16384);
	assert_int_equal(info.virtual_size, 1 << 20);
	fmt_close(b);
	im_be64(&m, 72, 32);
	assert_int_equal(im_error(&m, FMT_NO_IO, NULL), BLK_E_QCOW2_FEATURES);
	im_be64(&m, 72, 0);
	im_be32(&m, 32, 3);
	assert_int_equal(im_error(&m, FMT_NO_IO, NULL), BLK_E_QCOW2_CRYPT);
	im_free(&m);
}

/* Repair makes reference counts anew, so it opens images without. */
static void test_repair(void **state)
{
	struct im m;

	(void)state;
	im_new(&m, 3, 12, 4, 16, 1 << 20);
	im_be64(&m, 48, 17 * CL);
	assert_int_equal(im_error(&m, 0, NULL), BLK_E_QCOW2_REFT_OFFSET);
	assert_int_equal(im_error(&m, FMT_REPAIR, NULL), BLK_E_NONE);
	im_be64(&m, 40, 17 * CL);
	assert_int_equal(im_error(&m, FMT_REPAIR, NULL), BLK_E_QCOW2_L1_OFFSET);
	im_free(&m);
}

static void test_probe(void **state)
{
	const char *other;
	struct blk *file;
	struct im m;

	(void)state;
	im_new(&m, 3, 12, 4, 16, 1 << 20);
	assert_int_equal(blk_mem_open(&file, m.p, m.size, 0, &thr_heap, NULL), 0);
	assert_string_equal(fmt_probe(file, NULL), "qcow2");
	/* The first version of the format has another header. */
	im_be32(&m, 4, 1);
	other = fmt_probe(file, NULL);
	assert_true(!other || strcmp(other, "qcow2") != 0);
	blk_close(file);
	im_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_v2_is_short),
		cmocka_unit_test(test_every_length),
		cmocka_unit_test(test_names_of_features),
		cmocka_unit_test(test_extensions),
		cmocka_unit_test(test_backing),
		cmocka_unit_test(test_bitmaps_extension),
		cmocka_unit_test(test_no_io),
		cmocka_unit_test(test_repair),
		cmocka_unit_test(test_probe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
