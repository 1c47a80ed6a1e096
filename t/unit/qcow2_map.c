/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/qcow2_map.c - L2 entries decoded, and guest offsets mapped to extents.
 */
#include "t/unit/qcow2_util.h"

/* What a descriptor and a bitmap say of a subcluster. */
static void test_decode_subs(void **state)
{
	static const struct {
		uint64_t entry, bitmap;
		unsigned sub;
		int err;
		enum qcow2_kind kind;
		bool mapped;
	} rows[] = {
		{0, 0, 0, 0, QCOW2_UNALLOCATED, false},
		{0, 1ull << 32, 0, 0, QCOW2_ZERO, false},
		{0, 1ull << 32, 1, 0, QCOW2_UNALLOCATED, false},
		{0, 1, 0, -THR_EUCLEAN, 0, false},
		{1, 0, 0, -THR_EUCLEAN, 0, false},
		{QCOW2_COPIED, 0, 0, -THR_EUCLEAN, 0, false},
		{0x8000 | QCOW2_COPIED, 0, 3, 0, QCOW2_UNALLOCATED, true},
		{0x8000 | QCOW2_COPIED, 8, 3, 0, QCOW2_NORMAL, true},
		{0x8000 | QCOW2_COPIED, 8, 2, 0, QCOW2_UNALLOCATED, true},
		{0x8000 | QCOW2_COPIED, 8ull << 32 | 4, 3, 0, QCOW2_ZERO_ALLOC, true},
		{0x8000 | QCOW2_COPIED, 8ull << 32 | 4, 2, 0, QCOW2_NORMAL, true},
		{0x8000 | QCOW2_COPIED, 1ull << 63, 31, 0, QCOW2_ZERO_ALLOC, true},
		{0x8000 | QCOW2_COPIED, 1ull << 63 | 1u << 31, 0, -THR_EUCLEAN, 0, false},
		{0x8001 | QCOW2_COPIED, 1, 0, -THR_EUCLEAN, 0, false},
		{QCOW2_COMPRESSED | 0x5123, 0, 7, 0, QCOW2_COMPRESSED_CLUSTER, false},
		{QCOW2_COMPRESSED | 0x5123, 1, 0, -THR_EUCLEAN, 0, false},
		{QCOW2_COMPRESSED | 0x5123, 1ull << 32, 0, -THR_EUCLEAN, 0, false},
	};
	struct qcow2 q;

	(void)state;
	memset(&q, 0, sizeof(q));
	q.h.version = 3;
	q.h.cluster_bits = 14;
	q.cluster_size = 1u << 14;
	q.cluster_mask = (1u << 14) - 1;
	q.entry_bits = 4;
	q.unit_bits = 9;
	for (size_t i = 0; i < THR_ARRAY_SIZE(rows); i++) {
		struct qcow2_extent e;
		int ret = qcow2_l2_decode(&q, rows[i].entry, rows[i].bitmap, rows[i].sub, &e);

		if (ret != rows[i].err)
			fprintf(stderr, "# row %zu\n", i);
		assert_int_equal(ret, rows[i].err);
		if (ret)
			continue;
		assert_int_equal(e.kind, rows[i].kind);
		assert_int_equal(e.mapped, rows[i].mapped);
	}
}

static void test_decode(void **state)
{
	static const struct {
		unsigned version;
		uint64_t entry;
		int err;
		enum qcow2_kind kind;
		uint64_t host;
		bool copied;
	} rows[] = {
		{3, 0, 0, QCOW2_UNALLOCATED, 0, false},
		{3, 1, 0, QCOW2_ZERO, 0, false},
		{3, 0x5000, 0, QCOW2_NORMAL, 0x5000, false},
		{3, 0x5000 | QCOW2_COPIED, 0, QCOW2_NORMAL, 0x5000, true},
		{3, 0x5001 | QCOW2_COPIED, 0, QCOW2_ZERO_ALLOC, 0x5000, true},
		{3, 0x00fffffffffff000, 0, QCOW2_NORMAL, 0x00fffffffffff000, false},
		{3, QCOW2_COPIED, -THR_EUCLEAN, 0, 0, false},
		{3, 0x5200, -THR_EUCLEAN, 0, 0, false},
		{3, 0x5002, -THR_EUCLEAN, 0, 0, false},
		{3, 0x5100, -THR_EUCLEAN, 0, 0, false},
		{3, 1ull << 56, -THR_EUCLEAN, 0, 0, false},
		{3, 0x5000 | 1ull << 61, -THR_EUCLEAN, 0, 0, false},
		{2, 0, 0, QCOW2_UNALLOCATED, 0, false},
		{2, 0x5000 | QCOW2_COPIED, 0, QCOW2_NORMAL, 0x5000, true},
		{2, 1, -THR_EUCLEAN, 0, 0, false},
		{2, 0x5001 | QCOW2_COPIED, -THR_EUCLEAN, 0, 0, false},
		{3, QCOW2_COMPRESSED | 0x5123, 0, QCOW2_COMPRESSED_CLUSTER, 0x5123, false},
		{2, QCOW2_COMPRESSED | 0x5123, 0, QCOW2_COMPRESSED_CLUSTER, 0x5123, false},
		{3, QCOW2_COMPRESSED, -THR_EUCLEAN, 0, 0, false},
		{3, QCOW2_COMPRESSED | 1ull << 56, -THR_EUCLEAN, 0, 0, false},
	};

	(void)state;
	for (size_t i = 0; i < THR_ARRAY_SIZE(rows); i++) {
		struct qcow2 q;
		struct qcow2_extent e;
		int ret;

		memset(&q, 0, sizeof(q));
		q.h.version = rows[i].version;
		q.h.cluster_bits = 12;
		q.cluster_size = 4096;
		q.cluster_mask = 4095;
		ret = qcow2_l2_decode(&q, rows[i].entry, 0, 0, &e);
		if (ret != rows[i].err)
			fprintf(stderr, "# row %zu\n", i);
		assert_int_equal(ret, rows[i].err);
		if (ret)
			continue;
		assert_int_equal(e.kind, rows[i].kind);
		assert_int_equal(e.host, rows[i].host);
		assert_int_equal(e.copied, rows[i].copied);
	}
}

/* The offset's width depends on the cluster size, and sectors are 512 bytes. */
static void test_compressed_range(void **state)
{
	(void)state;
	for (unsigned bits = 9; bits <= 21; bits++) {
		unsigned x = 62 - (bits - 8);
		uint64_t most = (1ull << (bits - 8)) - 1;
		struct qcow2 q;
		uint64_t off;
		uint32_t len;

		memset(&q, 0, sizeof(q));
		q.h.cluster_bits = bits;
		qcow2_compressed_range(&q, QCOW2_COMPRESSED | 0x1234, &off, &len);
		assert_int_equal(off, 0x1234);
		assert_int_equal(len, 512 - 0x34);
		qcow2_compressed_range(&q, QCOW2_COMPRESSED | most << x | 0x1fff, &off, &len);
		assert_int_equal(off, 0x1fff);
		assert_int_equal(len, (most + 1) * 512 - 511);
		qcow2_compressed_range(&q, QCOW2_COMPRESSED | 1ull << x | 0x200, &off, &len);
		assert_int_equal(off, 0x200);
		assert_int_equal(len, 1024);
	}
}

static void expect(struct blk *b, uint64_t off, uint64_t len, enum qcow2_kind kind, uint64_t n,
	uint64_t host)
{
	struct qcow2_extent e;

	assert_int_equal(qcow2_map(qcow2_of(b), off, len, &e), 0);
	if (e.kind != kind || e.len != n)
		fprintf(stderr, "# %#llx: kind %u, %llu bytes\n", (unsigned long long)off,
			e.kind, (unsigned long long)e.len);
	assert_int_equal(e.kind, kind);
	assert_int_equal(e.len, n);
	if (kind == QCOW2_NORMAL || kind == QCOW2_ZERO_ALLOC)
		assert_int_equal(e.host, host);
}

#define K 4096ull

/* A run ends where the kind, the host's contiguity or the COPIED flag does. */
static void runs(struct fmt_cache *cache)
{
	struct blk *b;
	struct im m;

	im_new(&m, 3, 12, 4, 128, 4 << 20);
	for (unsigned i = 0; i < 100; i++)
		im_map(&m, i, IM_DATA + i);
	im_l2(&m, 70, im_host(&m, IM_DATA + 70)); /* not COPIED */
	im_l2(&m, 90, im_host(&m, 120) | QCOW2_COPIED);
	for (unsigned i = 100; i < 200; i++)
		im_l2(&m, i, 1);
	im_l2(&m, 200, im_host(&m, 110) | QCOW2_COPIED | 1);
	im_l2(&m, 201, im_host(&m, 111) | QCOW2_COPIED | 1);
	im_l2(&m, 202, QCOW2_COMPRESSED | im_host(&m, 112));
	im_l2(&m, 203, QCOW2_COMPRESSED | im_host(&m, 112));
	im_l2(&m, 511, im_host(&m, 113) | QCOW2_COPIED);
	assert_int_equal(im_try(&m, 0, 0, cache, &b, NULL), 0);
	assert_ptr_equal(qcow2_of(b)->own_cache ? NULL : qcow2_of(b)->cache, cache);

	expect(b, 0, 4 << 20, QCOW2_NORMAL, 70 * K, 5 * K);
	expect(b, 1, 10, QCOW2_NORMAL, 10, 5 * K + 1);
	expect(b, 3 * K + 5, 4 << 18, QCOW2_NORMAL, 67 * K - 5, 8 * K + 5);
	expect(b, 63 * K, 2 * K, QCOW2_NORMAL, 2 * K, 68 * K);
	expect(b, 70 * K, 4 << 18, QCOW2_NORMAL, K, 75 * K);
	expect(b, 71 * K, 4 << 18, QCOW2_NORMAL, 19 * K, 76 * K);
	expect(b, 90 * K, 4 << 18, QCOW2_NORMAL, K, 120 * K);
	expect(b, 91 * K, 4 << 18, QCOW2_NORMAL, 9 * K, 96 * K);
	expect(b, 100 * K, 4 << 18, QCOW2_ZERO, 100 * K, 0);
	expect(b, 200 * K + 7, 4 << 18, QCOW2_ZERO_ALLOC, 2 * K - 7, 110 * K + 7);
	expect(b, 202 * K, 4 << 18, QCOW2_COMPRESSED_CLUSTER, K, 0);
	expect(b, 203 * K + 100, 4 << 18, QCOW2_COMPRESSED_CLUSTER, K - 100, 0);
	expect(b, 204 * K, 4 << 20, QCOW2_UNALLOCATED, 307 * K, 0);
	expect(b, 511 * K, 10 * K, QCOW2_NORMAL, K, 113 * K);
	/* The second half has no L2 table. */
	expect(b, 2 << 20, 2 << 20, QCOW2_UNALLOCATED, 2 << 20, 0);
	fmt_close(b);
	im_free(&m);
}

static void test_runs(void **state)
{
	(void)state;
	runs(NULL);
}

/* The smallest slices: an L2 table is eight of them. */
static void test_slices(void **state)
{
	struct fmt_cache *c;

	(void)state;
	assert_int_equal(fmt_cache_open(&c, 512, 4, &thr_heap), 0);
	runs(c);
	runs(c); /* nothing of the first image is left */
	fmt_cache_close(c);
}

/* A slice that is larger than a cluster would hold data as well. */
static void test_large_slices_refused(void **state)
{
	struct fmt_cache *c;
	struct blk *b;
	struct im m;

	(void)state;
	assert_int_equal(fmt_cache_open(&c, 8192, 4, &thr_heap), 0);
	im_new(&m, 3, 12, 4, 16, 1 << 20);
	assert_int_equal(im_try(&m, 0, 0, c, &b, NULL), 0);
	assert_true(qcow2_of(b)->own_cache);
	fmt_close(b);
	im_free(&m);
	fmt_cache_close(c);
}

/* Missing L2 tables are taken in one step, however many there are. */
static void test_missing_tables(void **state)
{
	uint64_t size = 100000ull * (2 << 20);
	struct blk_extent x;
	struct blk *b;
	struct im m;

	(void)state;
	im_new(&m, 3, 12, 4, 400, size);
	im_be64(&m, im_host(&m, 3), 0);
	im_be64(&m, im_host(&m, 3) + 99999 * 8, im_host(&m, 390) | QCOW2_COPIED);
	im_be64(&m, im_host(&m, 390), im_host(&m, 391) | QCOW2_COPIED);
	b = im_open(&m);
	expect(b, 5, size - 5, QCOW2_UNALLOCATED, 99999ull * (2 << 20) - 5, 0);
	expect(b, 99999ull * (2 << 20), 2 << 20, QCOW2_NORMAL, K, 391 * K);
	assert_int_equal(blk_status(b, 5, size - 5, &x), 0);
	assert_int_equal(x.len, 99999ull * (2 << 20) - 5);
	assert_int_equal(x.flags, 0);
	fmt_close(b);
	im_free(&m);
}

static void test_bad_tables(void **state)
{
	static const uint64_t bad[] = {
		4 * K + 512,                                    /* not aligned */
		4 * K | 1,                                      /* reserved bits */
		4 * K | 1ull << 56, 4 * K | 1ull << 62, 16 * K, /* at the end of the file */
		0x00fffffffffff000ull,                          /* far away */
	};
	struct qcow2_extent e;
	uint8_t buf[16];
	struct blk *b;
	struct im m;

	(void)state;
	im_new(&m, 3, 12, 4, 16, 4 << 20);
	for (size_t i = 0; i < THR_ARRAY_SIZE(bad); i++) {
		im_be64(&m, im_host(&m, 3), bad[i] | QCOW2_COPIED);
		b = im_open(&m);
		assert_int_equal(qcow2_map(qcow2_of(b), 0, K, &e), -THR_EUCLEAN);
		assert_int_equal(blk_pread(b, 0, buf, sizeof(buf)), -THR_EUCLEAN);
		/* The other half of the disk is sound. */
		assert_int_equal(blk_pread(b, 2 << 20, buf, sizeof(buf)), 0);
		fmt_close(b);
	}
	im_free(&m);
}

/* What status says, and what it puts together. */
static void test_status(void **state)
{
	struct blk_extent x;
	struct blk *b;
	struct im m;

	(void)state;
	im_new(&m, 3, 9, 4, 300, 128 << 10); /* 64 entries in an L2 table */
	im_be64(&m, im_host(&m, 3) + 8, im_host(&m, 200) | QCOW2_COPIED);
	for (unsigned i = 0; i < 64; i++)
		im_map(&m, i, 10 + i);
	im_be64(&m, im_host(&m, 200), im_host(&m, 74) | QCOW2_COPIED);
	for (unsigned i = 1; i < 9; i++)
		im_be64(&m, im_host(&m, 200) + i * 8, QCOW2_COMPRESSED | im_host(&m, 210 + i));
	im_be64(&m, im_host(&m, 200) + 72, 1);
	im_be64(&m, im_host(&m, 200) + 80, im_host(&m, 220) | 1);
	b = im_open(&m);
	assert_int_equal(blk_status(b, 0, 128 << 10, &x), 0);
	assert_int_equal(x.flags, BLK_EXT_ALLOC | BLK_EXT_DATA | BLK_EXT_MAPPED);
	assert_int_equal(x.len, 65 * 512);
	assert_int_equal(x.map, 10 * 512);
	assert_int_equal(blk_status(b, 65 * 512, 64 << 10, &x), 0);
	assert_int_equal(x.flags, BLK_EXT_ALLOC | BLK_EXT_DATA | BLK_EXT_COMPRESSED);
	assert_int_equal(x.len, 8 * 512);
	assert_int_equal(blk_status(b, 73 * 512, 64 << 10, &x), 0);
	assert_int_equal(x.flags, BLK_EXT_ALLOC | BLK_EXT_ZERO);
	assert_int_equal(x.len, 512);
	assert_int_equal(blk_status(b, 74 * 512, 64 << 10, &x), 0);
	assert_int_equal(x.flags, BLK_EXT_ALLOC | BLK_EXT_ZERO | BLK_EXT_MAPPED);
	assert_int_equal(x.map, 220 * 512);
	assert_int_equal(blk_status(b, 75 * 512, 128 * 512, &x), 0);
	assert_int_equal(x.flags, 0);
	assert_int_equal(x.len, 128 * 512);
	fmt_close(b);
	im_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decode),
		cmocka_unit_test(test_decode_subs),
		cmocka_unit_test(test_compressed_range),
		cmocka_unit_test(test_runs),
		cmocka_unit_test(test_slices),
		cmocka_unit_test(test_large_slices_refused),
		cmocka_unit_test(test_missing_tables),
		cmocka_unit_test(test_bad_tables),
		cmocka_unit_test(test_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
