/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Resizing qcow2 images: what is new reads as zeroes, whatever lies below or was
 * left over; what is cut off is given back; preallocation.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "t/fixtures/qcow2_rig.h"

struct rig {
	struct blk *disk, *backing, *b;
};

static void rig_open(struct rig *g, const struct geo *geo)
{
	g->disk = disk_new();
	g->backing = geo->backing ? backing_new(geo->backing) : NULL;
	image_make(g->disk, geo);
	g->b = image_open(disk_lend(g->disk, 0), g->backing, 0);
}

static void rig_reopen(struct rig *g)
{
	assert_int_equal(fmt_close(g->b), 0);
	image_assert_sound(g->disk);
	g->b = image_open(disk_lend(g->disk, 0), g->backing, 0);
}

static void rig_close(struct rig *g)
{
	rig_reopen(g);
	assert_int_equal(fmt_close(g->b), 0);
	blk_close(g->disk);
	blk_close(g->backing);
}

static void resize(struct rig *g, uint64_t size)
{
	assert_int_equal(blk_truncate(g->b, size, BLK_PREALLOC_OFF, NULL), 0);
	assert_int_equal(blk_size(g->b), size);
}

/* All of a range is @byte, or as the backing disk where @byte is negative. */
static void expect(struct rig *g, uint64_t off, size_t len, int byte)
{
	uint8_t *buf = malloc(len);

	assert_int_equal(blk_pread(g->b, off, buf, len), 0);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(buf[i], byte < 0 ? backing_byte(off + i) : byte);
	free(buf);
}

static const struct geo geos[] = {
	{3, 16, 4, 1000 << 10, 0, 0},
	{3, 9, 4, 1000 << 10, 0, 0},
	{3, 12, 0, 1000 << 10, 0, 0},
	{2, 12, 4, 1000 << 10, 0, 0},
	{3, 12, 4, 1000 << 10, 0, GEO_LAZY},
	{3, 16, 4, 1000 << 10, 3 << 20, 0},
	{2, 12, 4, 1000 << 10, 3 << 20, 0},
	{3, 9, 6, 1000 << 10, 3 << 20, 0},
};

/* Also over a backing disk that is longer than the overlay, in both versions. */
static void trap_06_grow_over_backing(void **state)
{
	(void)state;
	for (unsigned i = 0; i < THR_ARRAY_SIZE(geos); i++) {
		uint64_t old = geos[i].size;
		int before = geos[i].backing ? -1 : 0;
		struct rig g;

		rig_open(&g, &geos[i]);
		disk_put(g.b, 0, 512, 9);
		disk_put(g.b, old - 512, 512, 8);
		resize(&g, 2500 << 10);
		expect(&g, 512, old - 1024, before);
		expect(&g, old - 512, 512, 8);
		expect(&g, old, (2500 << 10) - old, 0);
		rig_reopen(&g);
		assert_int_equal(blk_size(g.b), 2500 << 10);
		expect(&g, old, (2500 << 10) - old, 0);
		resize(&g, 6 << 20);
		disk_put(g.b, (6 << 20) - 512, 512, 7);
		expect(&g, 2500 << 10, (6 << 20) - (2500 << 10) - 512, 0);
		expect(&g, (6 << 20) - 512, 512, 7);
		rig_close(&g);
	}
}

static void test_shrink(void **state)
{
	(void)state;
	for (unsigned i = 0; i < THR_ARRAY_SIZE(geos); i++) {
		uint64_t old = geos[i].size, file;
		struct rig g;

		rig_open(&g, &geos[i]);
		disk_put(g.b, 0, old, 5);
		assert_int_equal(blk_flush(g.b), 0);
		file = blk_size(g.disk);
		resize(&g, 100 << 10);
		expect(&g, 0, 100 << 10, 5);
		/* The file is cut too. */
		assert_true(blk_size(g.disk) < file - (700 << 10));
		rig_reopen(&g);
		expect(&g, 0, 100 << 10, 5);
		resize(&g, 2 << 20);
		expect(&g, 0, 100 << 10, 5);
		expect(&g, 100 << 10, (2 << 20) - (100 << 10), 0);
		disk_put(g.b, 200 << 10, 300 << 10, 6);
		expect(&g, 200 << 10, 300 << 10, 6);
		expect(&g, 500 << 10, (2 << 20) - (500 << 10), 0);
		rig_close(&g);
	}
}

/* A size that is no multiple of the cluster size, down and up again: nothing of
 * what the last cluster held comes back. */
static void test_last_cluster(void **state)
{
	(void)state;
	for (unsigned i = 0; i < THR_ARRAY_SIZE(geos); i++) {
		struct rig g;

		rig_open(&g, &geos[i]);
		disk_put(g.b, 0, 512 << 10, 5);
		resize(&g, (384 << 10) + 512);
		resize(&g, (384 << 10) + 1536);
		expect(&g, 0, (384 << 10) + 512, 5);
		expect(&g, (384 << 10) + 512, 1024, 0);
		rig_close(&g);
	}
}

/* Mappings past the end, as a cut between the two halves of shrinking leaves. */
static void test_leftovers(void **state)
{
	(void)state;
	for (unsigned i = 0; i < THR_ARRAY_SIZE(geos); i++) {
		uint64_t old = geos[i].size;
		uint8_t p[8];
		struct rig g;

		rig_open(&g, &geos[i]);
		disk_put(g.b, 0, old, 5);
		assert_int_equal(fmt_close(g.b), 0);
		thr_put_be64(p, 64 << 10);
		assert_int_equal(blk_pwrite(g.disk, 24, p, 8), 0);
		g.b = image_open(disk_lend(g.disk, 0), g.backing, 0);
		resize(&g, old);
		expect(&g, 0, 64 << 10, 5);
		expect(&g, 64 << 10, old - (64 << 10), 0);
		rig_close(&g);
	}
}

static void test_preallocation(void **state)
{
	(void)state;
	for (unsigned i = 0; i < THR_ARRAY_SIZE(geos); i++) {
		for (int p = BLK_PREALLOC_METADATA; p <= BLK_PREALLOC_FULL; p++) {
			uint64_t old = geos[i].size, size = 5 << 20, at;
			struct blk_extent e;
			struct rig g;

			rig_open(&g, &geos[i]);
			disk_put(g.b, 8192, 512, 4);
			assert_int_equal(
				blk_truncate(g.b, size, (enum blk_prealloc)p, NULL), 0);
			assert_true(blk_size(g.disk) >= size - old);
			for (at = (old + 65535) & ~65535ull; at < size; at += e.len) {
				assert_int_equal(blk_status(g.b, at, size - at, &e), 0);
				assert_true(e.flags & BLK_EXT_MAPPED);
			}
			expect(&g, old, size - old, 0);
			expect(&g, 8192, 512, 4);
			disk_put(g.b, size - 4096, 4096, 3);
			rig_reopen(&g);
			expect(&g, old, size - old - 4096, 0);
			expect(&g, size - 4096, 4096, 3);
			rig_close(&g);
		}
	}
}

/* Far past what the first L1 table can map. */
static void test_large(void **state)
{
	static const struct geo geo = {3, 16, 4, 1 << 20, 0, 0};
	struct rig g;

	(void)state;
	rig_open(&g, &geo);
	disk_put(g.b, 0, 512, 1);
	resize(&g, 64ull << 40);
	disk_put(g.b, (64ull << 40) - 4096, 4096, 2);
	rig_reopen(&g);
	expect(&g, 0, 512, 1);
	expect(&g, (64ull << 40) - 4096, 4096, 2);
	expect(&g, 32ull << 40, 1 << 20, 0);
	resize(&g, 1 << 20);
	rig_reopen(&g);
	expect(&g, 0, 512, 1);
	assert_int_equal(blk_truncate(g.b, 1ull << 62, BLK_PREALLOC_OFF, NULL), -THR_EFBIG);
	assert_int_equal(blk_truncate(g.b, 1000, BLK_PREALLOC_OFF, NULL), -THR_EINVAL);
	rig_close(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trap_06_grow_over_backing),
		cmocka_unit_test(test_shrink),
		cmocka_unit_test(test_last_cluster),
		cmocka_unit_test(test_leftovers),
		cmocka_unit_test(test_preallocation),
		cmocka_unit_test(test_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
