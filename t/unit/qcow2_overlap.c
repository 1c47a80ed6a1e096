/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Damaged tables that would have us write over metadata: nothing is written, the
 * corrupt bit is set, and a repair clears it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "t/fixtures/qcow2_rig.h"

#define CL     4096u
#define COPIED (1ull << 63)
#define OFF    0x00fffffffffffe00ull

static int put(struct blk *b, uint64_t off, uint8_t v)
{
	uint8_t p[CL];

	memset(p, v, sizeof(p));
	return blk_pwrite(b, off, p, sizeof(p));
}

static int zero(struct blk *b, uint64_t off)
{
	struct blk_req r = {.off = off, .len = CL, .flags = BLK_UNMAP};

	return blk_zero(b, &r);
}

/* Guest clusters 0 and 1 have data; the disk has two L2 tables. */
static struct blk *make(void)
{
	static const struct geo geo = {3, 12, 4, 4 << 20, 0, 0};
	struct blk *disk = disk_new(), *b;

	image_make(disk, &geo);
	b = image_open(disk_lend(disk, 0), NULL, 0);
	assert_int_equal(put(b, 0, 1), 0);
	assert_int_equal(put(b, CL, 2), 0);
	assert_int_equal(put(b, 2 << 20, 3), 0);
	assert_int_equal(fmt_close(b), 0);
	return disk;
}

static uint64_t l1(struct blk *disk)
{
	return disk_get64(disk, 40);
}

static uint64_t l2(struct blk *disk, unsigned i)
{
	return disk_get64(disk, l1(disk) + i * 8) & OFF;
}

static uint64_t reftable(struct blk *disk)
{
	return disk_get64(disk, 48);
}

static uint64_t refblock(struct blk *disk)
{
	return disk_get64(disk, reftable(disk));
}

static struct {
	unsigned n;
	struct blk_err last;
} told;

static void warn(void *ctx, const struct blk_err *odd)
{
	(void)ctx;
	told.n++;
	told.last = *odd;
}

static int try(struct blk *disk, const char *check, struct blk **b, struct blk_err *err)
{
	struct blk_opt v = {"overlap-check", check};
	struct blk_opts opts = {&v, 1};
	struct fmt_open o = {.format = "qcow2",
		.blk_flags = BLK_RDWR,
		.opts = &opts,
		.warn = warn,
		.mem = &thr_heap};
	struct blk *file = disk_lend(disk, LEND_NO_DISCARD);
	int ret = fmt_open_on(b, file, &o, err);

	if (ret)
		blk_close(file);
	return ret;
}

static bool is_corrupt(struct blk *disk)
{
	return disk_get64(disk, 72) & 2;
}

static void repaired(struct blk *disk)
{
	struct fmt_check c;
	struct blk *b = image_open(disk_lend(disk, 0), NULL, FMT_REPAIR);

	memset(&c, 0, sizeof(c));
	c.fix = FMT_FIX_LEAKS | FMT_FIX_ERRORS;
	assert_int_equal(fmt_check(b, &c, NULL), 0);
	assert_int_equal(fmt_close(b), 0);
	assert_false(is_corrupt(disk));
	b = image_open(disk_lend(disk, 0), NULL, 0);
	assert_int_equal(put(b, CL, 7), 0);
	assert_int_equal(fmt_close(b), 0);
}

/* The first request says what is wrong, no other one writes anything, and what is there
 * can still be read. */
static void stopped(struct blk *disk, int (*op)(struct blk *b), uint64_t meta)
{
	uint8_t before[CL], after[CL], v;
	struct fmt_info info;
	struct blk *b, *file;
	struct fmt_open o = {.format = "qcow2", .mem = &thr_heap};
	struct blk_err err = BLK_ERR_INIT;

	assert_int_equal(blk_pread(disk, meta, before, CL), 0);
	told.n = 0;
	assert_int_equal(try(disk, "cached", &b, NULL), 0);
	assert_false(is_corrupt(disk));
	assert_int_equal(told.n, 0);
	assert_int_equal(op(b), -THR_EUCLEAN);
	assert_true(is_corrupt(disk));
	assert_int_equal(told.last.id, BLK_E_QCOW2_WOULD_HIT);
	assert_int_equal(told.last.off / CL, meta / CL);
#ifdef CONFIG_BLK_ERR_TEXT
	assert_true(*told.last.str);
#endif
	assert_int_equal(put(b, CL, 9), -THR_EIO);
	assert_int_equal(zero(b, CL), -THR_EIO);
	assert_int_equal(blk_flush(b), -THR_EIO);
	assert_int_equal(told.n, 1);
	assert_int_equal(blk_pread(b, CL, &v, 1), 0);
	assert_int_equal(v, 2);
	assert_int_equal(fmt_info(b, &info), 0);
	assert_true(info.corrupt);
	fmt_close(b);
	assert_int_equal(blk_pread(disk, meta, after, CL), 0);
	/* The header has the bit. */
	assert_memory_equal(before + (meta ? 0 : 80), after + (meta ? 0 : 80), CL - 80);
	assert_int_equal(try(disk, "cached", &b, &err), -THR_EUCLEAN);
	assert_int_equal(err.id, BLK_E_QCOW2_CORRUPT);
	file = disk_lend(disk, 0);
	assert_int_equal(fmt_open_on(&b, file, &o, NULL), 0);
	assert_int_equal(blk_pread(b, CL, &v, 1), 0);
	assert_int_equal(v, 2);
	fmt_close(b);
	repaired(disk);
}

static int write_0(struct blk *b)
{
	return put(b, 0, 8);
}

static int zero_0(struct blk *b)
{
	return zero(b, 0);
}

static int write_new(struct blk *b)
{
	return put(b, 64 << 10, 8);
}

/* An L2 entry that points at a table. */
static void test_data_over_tables(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 10; i++) {
		struct blk *disk = make();
		uint64_t at[] = {
			l1(disk), l2(disk, 0), l2(disk, 1), reftable(disk), refblock(disk)};

		disk_put64(disk, l2(disk, 0), at[i / 2] | COPIED);
		stopped(disk, i & 1 ? zero_0 : write_0, at[i / 2]);
		blk_close(disk);
	}
}

/* A cluster of a table that the counts call free. */
static void test_free_tables(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		struct blk *disk = make();
		uint64_t at[] = {
			l1(disk), l2(disk, 0), l2(disk, 1), reftable(disk), refblock(disk)};
		uint8_t none[2] = {0, 0};

		assert_int_equal(blk_pwrite(disk, refblock(disk) + at[i] / CL * 2, none, 2), 0);
		stopped(disk, write_new, at[i]);
		blk_close(disk);
	}
}

/* Two tables in one place: refused before anything is written. */
static void test_tables_on_tables(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct blk *disk = make(), *b;
		uint64_t at[] = {l1(disk), l2(disk, 0), reftable(disk), refblock(disk)};
		struct blk_err err = BLK_ERR_INIT;

		disk_put64(disk, l1(disk) + 8, at[i] | COPIED);
		assert_int_equal(try(disk, "cached", &b, &err), -THR_EUCLEAN);
		assert_int_equal(err.id, BLK_E_QCOW2_CORRUPT);
		blk_close(disk);
	}
}

static void test_options(void **state)
{
	static const struct {
		const char *check;
		int l1, l2; /* what a write over such a table returns */
	} rows[] = {
		{"none", 0, 0},
		{"constant", -THR_EUCLEAN, 0},
		{"cached", -THR_EUCLEAN, -THR_EUCLEAN},
		{"all", -THR_EUCLEAN, -THR_EUCLEAN},
	};
	struct blk_err err = BLK_ERR_INIT;
	struct blk *disk, *b;

	(void)state;
	for (unsigned i = 0; i < THR_ARRAY_SIZE(rows); i++) {
		for (unsigned k = 0; k < 2; k++) {
			disk = make();
			disk_put64(disk, l2(disk, 0), (k ? l2(disk, 1) : l1(disk)) | COPIED);
			assert_int_equal(try(disk, rows[i].check, &b, NULL), 0);
			assert_int_equal(put(b, 0, 8), k ? rows[i].l2 : rows[i].l1);
			fmt_close(b);
			blk_close(disk);
		}
	}
	disk = make();
	assert_int_equal(try(disk, "some", &b, &err), -THR_EINVAL);
	assert_int_equal(err.id, BLK_E_BAD_VALUE);
	blk_close(disk);
}

/* Tables that come and go leave no trace: their clusters may be data later. */
static void test_comes_and_goes(void **state)
{
	static const struct geo geo = {3, 9, 6, 64 << 10, 0, 0};
	struct blk *disk = disk_new(), *b;
	uint8_t p[2048];

	(void)state;
	image_make(disk, &geo);
	assert_int_equal(try(disk, "all", &b, NULL), 0);
	for (unsigned round = 0; round < 6; round++) {
		uint64_t size = (1 + round % 3) << 20, off;

		assert_int_equal(blk_truncate(b, size, BLK_PREALLOC_OFF, NULL), 0);
		memset(p, (int)round + 1, sizeof(p));
		for (off = 0; off < size; off += sizeof(p))
			assert_int_equal(blk_pwrite(b, off, p, sizeof(p)), 0);
		assert_int_equal(blk_flush(b), 0);
		assert_int_equal(blk_truncate(b, 32 << 10, BLK_PREALLOC_OFF, NULL), 0);
		assert_int_equal(blk_flush(b), 0);
	}
	assert_int_equal(fmt_close(b), 0);
	image_assert_sound(disk);
	assert_false(is_corrupt(disk));
	blk_close(disk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_data_over_tables),
		cmocka_unit_test(test_free_tables),
		cmocka_unit_test(test_tables_on_tables),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_comes_and_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
