/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/qcow2_traps_read.c - what implementations of qcow2 get wrong when they
 * read or check; each test is named for its trap.
 */
#include "t/unit/qcow2_util.h"

#include "cz/cz.h"

#ifdef CONFIG_CZ_DEFLATE
#include <zlib.h>
#endif

#define K 4096ull

static struct fmt_check check(struct im *m)
{
	struct blk *b = im_open(m);
	struct fmt_check c;

	memset(&c, 0, sizeof(c));
	assert_int_equal(fmt_check(b, &c, NULL), 0);
	fmt_close(b);
	return c;
}

/* Nothing here is an external data file: host offset 0 is no data cluster. */
static void trap_02_offset_0_with_copied(void **state)
{
	struct fmt_check c;
	uint8_t buf[8];
	struct blk *b;
	struct im m;

	(void)state;
	im_new(&m, 3, 12, 4, 16, 1 << 20);
	im_l2(&m, 0, QCOW2_COPIED);
	c = check(&m);
	assert_int_equal(c.corruptions, 1);
	b = im_open(&m);
	assert_int_equal(blk_pread(b, 0, buf, sizeof(buf)), -THR_EUCLEAN);
	fmt_close(b);
	im_free(&m);
}

#ifdef CONFIG_CZ_DEFLATE

static size_t deflated(uint8_t *dst, size_t room, int byte, size_t len)
{
	uint8_t *src = malloc(len);
	z_stream z;

	memset(src, byte, len);
	memset(&z, 0, sizeof(z));
	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, -12, 9, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_in = src;
	z.avail_in = (uInt)len;
	z.next_out = dst;
	z.avail_out = (uInt)room;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	free(src);
	return room - z.avail_out;
}

/* The sectors of a compressed cluster may pass the end of the file, which need not
 * be aligned to anything; and they are counted from the offset's own sector. */
static void trap_04_compressed_at_the_end(void **state)
{
	uint8_t data[200], buf[4096];
	size_t n = deflated(data, sizeof(data), 0x5a, 4096);
	struct fmt_check c;
	struct blk *b;
	struct im m;

	(void)state;
	assert_true(n < 100);
	for (unsigned back = (unsigned)n; back < 600; back += 37) {
		im_new(&m, 3, 12, 4, 6, 1 << 20);
		m.size -= 10;
		memcpy(m.p + m.size - back, data, n);
		/* One sector more than there is. */
		im_l2(&m, 3, QCOW2_COMPRESSED | 1ull << 58 | (m.size - back));
		im_count(&m, 5, 1);
		b = im_open(&m);
		assert_int_equal(blk_pread(b, 3 * K, buf, K), 0);
		for (unsigned i = 0; i < K; i++)
			assert_int_equal(buf[i], 0x5a);
		fmt_close(b);
		c = check(&m);
		assert_int_equal(c.leaks, 0);
		/* Unless they pass into a cluster that is not counted. */
		assert_int_equal(c.corruptions, (m.size - back) / 512 + 1 > (6 * K - 1) / 512);
		im_free(&m);
	}
}

/* In every cluster size the count's width is right: clusters at odd places. */
static void trap_04_width_of_the_sector_count(void **state)
{
	(void)state;
	for (unsigned bits = 9; bits <= 21; bits++) {
		uint32_t cluster = 1u << bits;
		uint8_t *data = malloc(cluster), *buf = malloc(cluster);
		size_t n = deflated(data, cluster, 0x33, cluster);
		struct blk *b;
		struct im m;

		im_new(&m, 3, bits, 4, 10, 4ull << bits);
		for (unsigned i = 0; i < 4; i++) {
			uint64_t off = im_host(&m, IM_DATA) + i * (n + 300) + 7;
			uint64_t more = (off + n - 1) / 512 - off / 512;

			memcpy(m.p + off, data, n);
			im_l2(&m, i, QCOW2_COMPRESSED | more << (70 - bits) | off);
		}
		b = im_open(&m);
		for (unsigned i = 0; i < 4; i++) {
			assert_int_equal(blk_pread(b, (uint64_t)i << bits, buf, cluster), 0);
			assert_int_equal(buf[0], 0x33);
			assert_memory_equal(buf, buf + 1, cluster - 1);
		}
		fmt_close(b);
		im_free(&m);
		free(data);
		free(buf);
	}
}
#endif

static void trap_04_compressed_is_never_copied(void **state)
{
	struct qcow2_extent e;
	struct fmt_check c;
	struct blk *b;
	struct im m;

	(void)state;
	im_new(&m, 3, 12, 4, 16, 1 << 20);
	im_l2(&m, 0, QCOW2_COMPRESSED | QCOW2_COPIED | im_host(&m, 5));
	im_count(&m, 5, 1);
	b = im_open(&m);
	assert_int_equal(qcow2_map(qcow2_of(b), 0, K, &e), 0);
	assert_int_equal(e.kind, QCOW2_COMPRESSED_CLUSTER);
	assert_false(e.copied); /* so that nobody writes in place */
	fmt_close(b);
	c = check(&m);
	assert_int_equal(c.corruptions, 1);
	im_free(&m);
}

/* All host clusters that a compressed cluster spans are referenced by it. */
static void trap_04_compressed_spans_clusters(void **state)
{
	struct fmt_check c;
	struct im m;

	(void)state;
	im_new(&m, 3, 12, 4, 16, 1 << 20);
	im_l2(&m, 0, QCOW2_COMPRESSED | 2ull << 58 | (im_host(&m, 6) - 600));
	im_count(&m, 5, 1);
	im_count(&m, 6, 1);
	c = check(&m);
	assert_int_equal(c.corruptions | c.leaks, 0);
	im_count(&m, 6, 0);
	c = check(&m);
	assert_int_equal(c.corruptions, 1);
	im_free(&m);
}

/* Entries past the virtual size hold a saved state: they count, but are no disk. */
static void trap_08_l1_larger_than_the_disk(void **state)
{
	struct fmt_check c;
	struct blk *b;
	struct im m;

	(void)state;
	im_new(&m, 3, 12, 4, 16, 1 << 20);
	im_be32(&m, 36, 5);
	im_be64(&m, im_host(&m, 3) + 32, im_host(&m, 5) | QCOW2_COPIED);
	im_be64(&m, im_host(&m, 5), im_host(&m, 6) | QCOW2_COPIED);
	im_count(&m, 5, 1);
	im_count(&m, 6, 1);
	c = check(&m);
	assert_int_equal(c.corruptions | c.leaks, 0);
	assert_int_equal(c.allocated_clusters, 1);
	assert_int_equal(c.total_clusters, 256);
	b = im_open(&m);
	assert_int_equal(blk_size(b), 1 << 20);
	fmt_close(b);
	im_free(&m);
}

static void trap_09_snapshots_have_their_own(void **state)
{
	struct fmt_snapshot s;
	struct fmt_check c;
	struct fmt_info info;
	struct blk *b;
	struct im m;
	uint64_t at;

	(void)state;
	im_new(&m, 3, 12, 4, 16, 1 << 20);
	at = im_host(&m, 10);
	im_be32(&m, 60, 2);
	im_be64(&m, 64, at);
	im_count(&m, 10, 1);
	/* L1 of 600 entries in clusters 11 and 12, whose last leads to 13. */
	im_be64(&m, at, im_host(&m, 11));
	im_be32(&m, at + 8, 600);
	im_be16(&m, at + 12, 2);
	im_be16(&m, at + 14, 5);
	im_be32(&m, at + 16, 1000000000);
	im_be32(&m, at + 20, 123456789);
	im_be64(&m, at + 24, 5000000001ull);
	im_be32(&m, at + 32, 77); /* the 32-bit size is not meant */
	im_be32(&m, at + 36, 24);
	im_be64(&m, at + 40, 5ull << 32);
	im_be64(&m, at + 48, 3ull << 30);
	im_be64(&m, at + 56, 42);
	memcpy(m.p + at + 64, "17first", 7);
	im_be64(&m, im_host(&m, 11) + 599 * 8, im_host(&m, 13));
	for (unsigned i = 11; i < 14; i++)
		im_count(&m, i, 1);
	at += 72;
	im_be64(&m, at, im_host(&m, 14));
	im_be32(&m, at + 8, 1);
	im_be16(&m, at + 12, 1);
	im_be32(&m, at + 36, 16);
	memcpy(m.p + at + 56, "x", 1);
	im_count(&m, 14, 1);

	c = check(&m);
	assert_int_equal(c.corruptions | c.leaks, 0);
	assert_int_equal(im_try(&m, FMT_NO_IO, 0, NULL, &b, NULL), 0);
	assert_int_equal(fmt_info(b, &info), 0);
	assert_int_equal(info.snapshots, 2);
	assert_int_equal(info.snapshot(b, 0, &s), 0);
	assert_string_equal(s.id, "17");
	assert_string_equal(s.name, "first");
	assert_int_equal(s.date_sec, 1000000000);
	assert_int_equal(s.date_nsec, 123456789);
	assert_int_equal(s.vm_clock_nsec, 5000000001ull);
	assert_int_equal(s.vm_state_size, 5ull << 32);
	assert_int_equal(s.disk_size, 3ull << 30);
	assert_int_equal(s.icount, 42);
	assert_int_equal(info.snapshot(b, 1, &s), 0);
	assert_string_equal(s.id, "x");
	assert_string_equal(s.name, "");
	assert_true(s.icount == UINT64_MAX);
	assert_int_equal(info.snapshot(b, 2, &s), -THR_ENOENT);
	fmt_close(b);
	im_free(&m);
}

static void trap_10_a_block_describes_itself(void **state)
{
	struct fmt_check c;
	struct im m;

	(void)state;
	im_new(&m, 3, 9, 6, 80, 1 << 14);
	/* Block 1 counts clusters 64 to 127, and is cluster 70. */
	im_be64(&m, im_host(&m, 1) + 8, im_host(&m, 70));
	im_be64(&m, im_host(&m, 70) + 6 * 8, 1);
	c = check(&m);
	assert_int_equal(c.corruptions | c.leaks, 0);
	im_be64(&m, im_host(&m, 70) + 6 * 8, 0);
	c = check(&m);
	assert_int_equal(c.corruptions, 1);
	im_free(&m);
}

static void trap_11_compression_type(void **state)
{
	static const struct {
		uint32_t length;
		uint8_t type;
		bool bit;
		unsigned id;
	} rows[] = {
		{104, 0, false, BLK_E_NONE},
		/* The byte is no field, but the start of an extension's type. */
		{104, 1, false, BLK_E_NONE},
		{104, 1, true, BLK_E_QCOW2_COMPRESSION_BIT},
		{112, 0, false, BLK_E_NONE},
		{112, 1, false, BLK_E_QCOW2_COMPRESSION_BIT},
		{112, 0, true, BLK_E_QCOW2_COMPRESSION_BIT},
		{112, 2, true, BLK_E_QCOW2_COMPRESSION},
		{112, 255, true, BLK_E_QCOW2_COMPRESSION},
#ifdef CONFIG_CZ_ZSTD
		{112, 1, true, BLK_E_NONE},
		{120, 1, true, BLK_E_NONE},
#else
		{112, 1, true, BLK_E_NOT_BUILT},
#endif
	};

	(void)state;
	for (size_t i = 0; i < THR_ARRAY_SIZE(rows); i++) {
		struct im m;

		im_new(&m, 3, 12, 4, 16, 1 << 20);
		im_be32(&m, 100, rows[i].length);
		m.p[104] = rows[i].type;
		im_be64(&m, 72, rows[i].bit ? QCOW2_INC_COMPRESSION : 0);
		assert_int_equal(im_error(&m, 0, NULL), rows[i].id);
		im_free(&m);
	}
}

static void trap_12_copied_means_exactly_one(void **state)
{
	(void)state;
	for (unsigned count = 0; count < 4; count++) {
		for (unsigned copied = 0; copied < 2; copied++) {
			uint64_t flag = copied ? QCOW2_COPIED : 0;
			struct fmt_check c;
			struct im m;

			/* A data cluster. */
			im_new(&m, 3, 12, 4, 16, 1 << 20);
			im_l2(&m, 0, im_host(&m, 5) | flag);
			im_count(&m, 5, count);
			c = check(&m);
			assert_int_equal(c.corruptions, !count + ((count == 1) != copied));
			assert_int_equal(c.leaks, count > 1);
			im_count(&m, 5, 1);
			im_l2(&m, 0, im_host(&m, 5) | QCOW2_COPIED);
			/* An L2 table, by its L1 entry. */
			im_be64(&m, im_host(&m, 3), im_host(&m, 4) | flag);
			im_count(&m, 4, count);
			c = check(&m);
			assert_int_equal(c.corruptions, !count + ((count == 1) != copied));
			assert_int_equal(c.leaks, count > 1);
			im_free(&m);
		}
	}
}

static void trap_14_v2_has_no_zero_flag(void **state)
{
	struct fmt_check c;
	uint8_t buf[8];
	struct blk *b;
	struct im m;

	(void)state;
	for (unsigned version = 2; version <= 3; version++) {
		int want = version == 2 ? -THR_EUCLEAN : 0;

		im_new(&m, version, 12, 4, 16, 1 << 20);
		im_map(&m, 0, 5);
		im_l2(&m, 0, im_host(&m, 5) | QCOW2_COPIED | 1);
		im_l2(&m, 1, 1);
		b = im_open(&m);
		assert_int_equal(blk_pread(b, 0, buf, sizeof(buf)), want);
		assert_int_equal(blk_pread(b, K, buf, sizeof(buf)), want);
		fmt_close(b);
		c = check(&m);
		assert_int_equal(c.corruptions, version == 2 ? 2 : 0);
		im_free(&m);
	}
}

static void trap_15_header_length(void **state)
{
	static const struct {
		uint32_t length;
		unsigned id;
	} rows[] = {
		{72, BLK_E_QCOW2_HEADER_SHORT},
		{103, BLK_E_QCOW2_HEADER_SHORT},
		{104, BLK_E_NONE},
		{112, BLK_E_NONE},
		{256, BLK_E_NONE},
		{4096, BLK_E_NONE},
		{4104, BLK_E_QCOW2_HEADER_LONG},
	};

	(void)state;
	for (size_t i = 0; i < THR_ARRAY_SIZE(rows); i++) {
		struct im m;

		im_new(&m, 3, 12, 4, 16, 1 << 20);
		im_be32(&m, 100, rows[i].length);
		assert_int_equal(im_error(&m, 0, NULL), rows[i].id);
		im_free(&m);
	}
}

static void trap_17_counts_from_the_least_bit(void **state)
{
	static const struct {
		unsigned order;
		uint8_t byte; /* the first five clusters are used once */
		uint8_t next;
	} rows[] = {{0, 0x1f, 0}, {1, 0x55, 0x01}, {2, 0x11, 0x11}};

	(void)state;
	for (size_t i = 0; i < THR_ARRAY_SIZE(rows); i++) {
		struct fmt_check c;
		struct im m;

		im_new(&m, 3, 12, rows[i].order, 16, 1 << 20);
		assert_int_equal(m.p[2 * K], rows[i].byte);
		assert_int_equal(m.p[2 * K + 1], rows[i].next);
		c = check(&m);
		assert_int_equal(c.corruptions | c.leaks, 0);
		/* The same in the other order is wrong. */
		m.p[2 * K] = rows[i].order == 0 ? 0xf8 : rows[i].order == 1 ? 0xaa : 0x88;
		c = check(&m);
		assert_true(c.corruptions + c.leaks > 0);
		im_free(&m);
	}
}

#ifdef CONFIG_BLK_MEM_SPARSE

struct meter {
	size_t now, peak;
};

static void *meter_get(void *ctx, size_t size, size_t align)
{
	struct meter *t = ctx;

	t->now += size;
	t->peak = THR_MAX(t->peak, t->now);
	return thr_get(&thr_heap, size, align);
}

static void meter_put(void *ctx, void *p, size_t size)
{
	struct meter *t = ctx;

	t->now -= size;
	thr_put(&thr_heap, p, size);
}

/* 64 TiB in clusters of 64 KiB, with something at the far end: less than 64 MiB of
 * memory, and all of it is looked at. */
static void trap_18_windows(void **state)
{
	static const struct blk_opt size = {"size", "64T"};
	struct blk_opts opts = {&size, 1};
	struct blk_open o = {
		.driver = "mem", .flags = BLK_RDWR, .opts = &opts, .mem = &thr_heap};
	struct meter t = {0};
	struct thr_alloc mem = {meter_get, meter_put, &t};
	struct fmt_open fo = {.format = "qcow2", .mem = &mem};
	uint64_t last = (64ull << 40) - (1 << 16);
	struct blk *disk, *b;
	struct fmt_check c;
	uint8_t entry[8];
	struct im m;

	(void)state;
	/* The table of 64 TiB / 2 GiB blocks is four clusters; L1 is sixteen. */
	im_new(&m, 3, 16, 4, 32, 64ull << 40);
	im_be64(&m, 40, im_host(&m, 8));
	im_be64(&m, 48, im_host(&m, 3));
	im_be32(&m, 56, 4);
	memset(m.p + im_host(&m, 1), 0, 1 << 16);
	memset(m.p + im_host(&m, 3), 0, 2 << 16);
	im_be64(&m, im_host(&m, 3), im_host(&m, 2));
	/* Guest cluster 0 lies in the file's last cluster, counted by the last block. */
	im_be64(&m, im_host(&m, 8), im_host(&m, 24) | QCOW2_COPIED);
	im_be64(&m, im_host(&m, 24), last | QCOW2_COPIED);
	im_be64(&m, im_host(&m, 3) + 32767 * 8, im_host(&m, 25));
	im_be16(&m, im_host(&m, 25) + 32767 * 2, 1);
	memset(m.p + im_host(&m, 2), 0, 1 << 16);
	im_count(&m, 0, 1);
	for (unsigned i = 2; i < 26; i++)
		im_count(&m, i, i != 7);
	assert_int_equal(blk_open(&disk, &o, NULL), 0);
	assert_int_equal(blk_pwrite(disk, 0, m.p, (size_t)m.size), 0);
	im_free(&m);

	assert_int_equal(fmt_open_on(&b, disk, &fo, NULL), 0);
	memset(&c, 0, sizeof(c));
	assert_int_equal(fmt_check(b, &c, NULL), 0);
	assert_int_equal(c.corruptions | c.leaks | c.check_errors, 0);
	assert_true(c.image_end == 64ull << 40);
	/* The COPIED flag is compared in the last window as well. */
	thr_put_be64(entry, last);
	assert_int_equal(blk_pwrite(disk, 24 << 16, entry, sizeof(entry)), 0);
	memset(&c, 0, sizeof(c));
	assert_int_equal(fmt_check(b, &c, NULL), 0);
	assert_int_equal(c.corruptions, 1);
	assert_true(t.peak < 64u << 20);
	assert_true(t.peak > 20u << 20); /* that is what has been measured */
	fmt_close(b);
	assert_int_equal(t.now, 0);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trap_02_offset_0_with_copied),
#ifdef CONFIG_CZ_DEFLATE
		cmocka_unit_test(trap_04_compressed_at_the_end),
		cmocka_unit_test(trap_04_width_of_the_sector_count),
#endif
		cmocka_unit_test(trap_04_compressed_is_never_copied),
		cmocka_unit_test(trap_04_compressed_spans_clusters),
		cmocka_unit_test(trap_08_l1_larger_than_the_disk),
		cmocka_unit_test(trap_09_snapshots_have_their_own),
		cmocka_unit_test(trap_10_a_block_describes_itself),
		cmocka_unit_test(trap_11_compression_type),
		cmocka_unit_test(trap_12_copied_means_exactly_one),
		cmocka_unit_test(trap_14_v2_has_no_zero_flag),
		cmocka_unit_test(trap_15_header_length),
		cmocka_unit_test(trap_17_counts_from_the_least_bit),
#ifdef CONFIG_BLK_MEM_SPARSE
		cmocka_unit_test(trap_18_windows),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
