/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/blk_null.c - the driver "null".
 */
#include "blk_util.h"

static struct blk *open_null(const char *key, const char *val)
{
	struct blk_opt v = {key, val};
	struct blk_opts opts = {&v, 1};
	struct blk_open o = {
		.name = "null-co://", .flags = BLK_RDWR, .opts = &opts, .mem = &thr_heap};
	struct blk *b;

	return blk_open(&b, &o, NULL) ? NULL : b;
}

static void t_zeroes(void **state)
{
	struct blk *b = open_null("size", "1E");
	struct blk_extent e;
	char buf[100];
	uint64_t bytes = 1;

	(void)state;
	assert_non_null(b);
	assert_int_equal(blk_size(b), (uint64_t)1 << 60);
	memset(buf, 1, sizeof(buf));
	assert_int_equal(blk_pwrite(b, 7, buf, sizeof(buf)), 0);
	assert_int_equal(blk_pread(b, 7, buf, sizeof(buf)), 0);
	assert_filled(buf, 0, sizeof(buf));
	assert_int_equal(blk_status(b, 9, 1000, &e), 0);
	assert_int_equal(e.len, 1000);
	assert_int_equal(e.flags, BLK_EXT_ALLOC | BLK_EXT_ZERO);
	assert_int_equal(zero_at(b, 0, (uint64_t)1 << 60, 0), 0);
	assert_int_equal(discard_at(b, 0, (uint64_t)1 << 60), 0);
	assert_int_equal(blk_flush(b), 0);
	assert_int_equal(blk_allocated(b, &bytes), 0);
	assert_int_equal(bytes, 0);
	assert_int_equal(blk_truncate(b, 10, BLK_PREALLOC_FULL, NULL), 0);
	assert_int_equal(blk_size(b), 10);
	assert_int_equal(blk_pread(b, 7, buf, 4), -THR_EINVAL);
	blk_close(b);
}

static void t_options(void **state)
{
	struct blk *b = open_null("read-zeroes", "off");
	struct blk_extent e;
	char buf[100];

	(void)state;
	assert_non_null(b);
	assert_int_equal(blk_size(b), 1 << 30);
	memset(buf, 1, sizeof(buf));
	assert_int_equal(blk_pread(b, 7, buf, sizeof(buf)), 0);
	assert_filled(buf, 1, sizeof(buf));
	assert_int_equal(blk_status(b, 9, 1000, &e), 0);
	assert_int_equal(e.flags, BLK_EXT_ALLOC | BLK_EXT_DATA);
	blk_close(b);
	assert_null(open_null("size", "8E"));
	assert_null(open_null("sice", "1"));
	assert_null(open_null("read-zeroes", "2"));
	assert_null(open_null("latency-ns", "-2"));
}

#ifdef CONFIG_THR_NONE
static void t_latency(void **state)
{
	(void)state;
	assert_null(open_null("latency-ns", "1000"));
}
#else
static void t_latency(void **state)
{
	struct blk *b = open_null("latency-ns", "2000000");
	uint64_t begun = thr_now();
	char c;

	(void)state;
	assert_non_null(b);
	assert_int_equal(blk_pread(b, 0, &c, 1), 0);
	assert_int_equal(blk_pwrite(b, 0, &c, 1), 0);
	assert_int_equal(blk_flush(b), 0);
	/* At least that long; how much longer is the machine's. */
	assert_true(thr_now() - begun >= 6000000);
	blk_close(b);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_zeroes),
		cmocka_unit_test(t_options),
		cmocka_unit_test(t_latency),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
