/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The format raw: whole sectors over a file of any length, and creating.
 */
#include "t/unit/fmt_util.h"

static struct blk *raw_on(struct blk *file, unsigned flags)
{
	struct blk *image;

	assert_int_equal(open_as(&image, file, "raw", flags, NULL), 0);
	return image;
}

static void last_sector_is_filled_up_with_zeroes(void **state)
{
	uint8_t buf[1000], got[1024];
	struct blk_extent e;
	struct blk *file, *raw;

	(void)state;
	memset(buf, 7, sizeof(buf));
	assert_int_equal(blk_mem_open(&file, buf, sizeof(buf), 0, &thr_heap, NULL), 0);
	raw = raw_on(file, 0);
	assert_int_equal(blk_size(raw), 1024);
	assert_int_equal(blk_pread(raw, 0, got, sizeof(got)), 0);
	assert_filled(got, 7, 1000);
	assert_filled(got + 1000, 0, 24);
	assert_int_equal(blk_pread(raw, 999, got, 3), 0);
	assert_memory_equal(got, "\7\0\0", 3);
	assert_int_equal(blk_pread(raw, 1010, got, 14), 0);
	assert_filled(got, 0, 14);
	assert_int_equal(blk_pread(raw, 1010, got, 15), -THR_EINVAL);

	assert_int_equal(blk_status(raw, 0, 1024, &e), 0);
	assert_int_equal(e.len, 1000);
	assert_int_equal(e.flags, BLK_EXT_ALLOC | BLK_EXT_DATA | BLK_EXT_MAPPED);
	assert_int_equal(blk_status(raw, 1001, 23, &e), 0);
	assert_int_equal(e.len, 23);
	assert_int_equal(e.flags, BLK_EXT_ALLOC | BLK_EXT_ZERO | BLK_EXT_MAPPED);
	assert_int_equal(e.map, 1001);
	assert_int_equal(fmt_close(raw), 0);
}

static void writing_the_last_sector_grows_the_file(void **state)
{
	struct blk *file = disk_new("1000", &thr_heap);
	struct blk *raw = raw_on(file, BLK_RDWR);
	uint8_t buf[512], got[512];

	(void)state;
	memset(buf, 3, sizeof(buf));
	assert_int_equal(discard_at(raw, 0, 1024), 0);
	assert_int_equal(discard_at(raw, 1005, 10), 0);
	assert_int_equal(blk_pwrite(raw, 512, buf, 512), 0);
	assert_int_equal(blk_size(file), 1024);
	assert_int_equal(blk_pread(raw, 512, got, 512), 0);
	assert_memory_equal(got, buf, 512);
	assert_int_equal(blk_pwrite(raw, 1024, buf, 1), -THR_EINVAL);
	assert_int_equal(zero_at(raw, 600, 100, BLK_UNMAP), 0);
	assert_int_equal(blk_pread(raw, 512, got, 512), 0);
	assert_filled(got, 3, 88);
	assert_filled(got + 88, 0, 100);
	assert_filled(got + 188, 3, 324);
	assert_int_equal(fmt_close(raw), 0);
}

static void read_only_stays_so(void **state)
{
	struct blk *file = disk_new("4k", &thr_heap);
	struct blk *raw;

	(void)state;
	file->flags &= ~(unsigned)BLK_RDWR;
	raw = raw_on(file, 0);
	assert_int_equal(blk_pwrite(raw, 0, "x", 1), -THR_EROFS);
	assert_int_equal(zero_at(raw, 0, 1, 0), -THR_EROFS);
	assert_int_equal(blk_truncate(raw, 512, BLK_PREALLOC_OFF, NULL), -THR_EROFS);
	assert_int_equal(fmt_close(raw), 0);
}

static void length_changes(void **state)
{
	struct blk *file = disk_new("4k", &thr_heap);
	struct blk *raw = raw_on(file, BLK_RDWR);
	struct blk_err err = BLK_ERR_INIT;

	(void)state;
	assert_int_equal(fmt_resize(raw, 10000, false, BLK_PREALLOC_OFF, &err), 0);
	assert_int_equal(blk_size(file), 10000);
	assert_int_equal(blk_size(raw), 10240);
	assert_int_equal(fmt_resize(raw, 512, false, BLK_PREALLOC_OFF, &err), -THR_EINVAL);
	assert_int_equal(err.id, BLK_E_NEED_SHRINK);
	assert_int_equal(fmt_resize(raw, 512, true, BLK_PREALLOC_FULL, &err), -THR_EINVAL);
	assert_int_equal(err.id, BLK_E_GROW_ONLY);
	assert_int_equal(blk_size(raw), 10240);
	assert_int_equal(fmt_resize(raw, 512, true, BLK_PREALLOC_OFF, &err), 0);
	assert_int_equal(blk_size(file), 512);
	assert_int_equal(
		fmt_resize(raw, UINT64_MAX - 5, false, BLK_PREALLOC_OFF, &err), -THR_EFBIG);
	assert_int_equal(blk_size(raw), 512);
	assert_int_equal(fmt_close(raw), 0);
}

static int create(struct blk *file, uint64_t size, const char *prealloc, struct blk_err *err)
{
	struct blk_opt v[] = {{"preallocation", prealloc}};
	struct blk_opts opts = {v, prealloc ? 1 : 0};
	struct fmt_create c = {.format = "raw",
		.size = size,
		.has_size = true,
		.opts = &opts,
		.mem = &thr_heap};

	return fmt_driver_find("raw")->create(file, &c, err);
}

static void creating(void **state)
{
	struct blk *file = disk_new("0", &thr_heap);
	struct blk_err err = BLK_ERR_INIT;

	(void)state;
	assert_int_equal(create(file, 1000, NULL, &err), 0);
	assert_int_equal(blk_size(file), 1024);
	assert_int_equal(create(file, 4096, "off", &err), 0);
	assert_int_equal(blk_size(file), 4096);
	assert_int_equal(create(file, 4096, "metadata", &err), -THR_ENOTSUP);
	assert_int_equal(err.id, BLK_E_PREALLOC);
	assert_int_equal(create(file, 4096, "nothing", &err), -THR_EINVAL);
	assert_int_equal(err.id, BLK_E_BAD_VALUE);
	assert_int_equal(create(file, INT64_MAX, NULL, &err), -THR_EFBIG);
	blk_close(file);
}

/* Requests that fail below come back as they are. */
static void errors_come_through(void **state)
{
	struct blk *disk = disk_new("64k", &thr_heap);
	struct blk_err err = BLK_ERR_INIT;
	struct blk *fault, *raw;
	uint8_t buf[512];

	(void)state;
	assert_int_equal(blk_fault_open(&fault, disk, &thr_heap, NULL), 0);
	raw = raw_on(fault, BLK_RDWR);
	for (unsigned op = BLK_OP_READ; op <= BLK_OP_TRUNCATE; op++) {
		struct blk_fault rule = {.ops = 1u << op, .err = -THR_ENOSPC};

		assert_int_equal(blk_fault_add(fault, &rule), 0);
	}
	assert_int_equal(blk_pread(raw, 0, buf, 512), -THR_ENOSPC);
	assert_int_equal(blk_pwrite(raw, 0, buf, 512), -THR_ENOSPC);
	assert_int_equal(zero_at(raw, 0, 512, 0), -THR_ENOSPC);
	assert_int_equal(discard_at(raw, 0, 4096), -THR_ENOSPC);
	assert_int_equal(blk_truncate(raw, 512, BLK_PREALLOC_OFF, &err), -THR_ENOSPC);
	assert_int_equal(blk_size(raw), 65536);
	assert_int_equal(blk_pread(raw, 0, buf, 512), 0);
	assert_int_equal(fmt_close(raw), -THR_ENOSPC); /* the flush */
}

static void no_memory(void **state)
{
	uint8_t buf[512];
	struct fmt_open o = {.format = "raw"};
	struct blk_err err = BLK_ERR_INIT;
	struct blk *file, *raw;
	struct purse purse;

	(void)state;
	purse_init(&purse);
	o.mem = &purse.mem;
	assert_int_equal(blk_mem_open(&file, buf, sizeof(buf), 0, &purse.mem, NULL), 0);
	purse.fail_at = purse.calls + 1;
	assert_int_equal(fmt_open_on(&raw, file, &o, &err), -THR_ENOMEM);
	assert_int_equal(fmt_open_on(&raw, file, &o, &err), 0);
	assert_int_equal(fmt_close(raw), 0);
	assert_int_equal(purse.live, 0);
}

static void info_and_identity(void **state)
{
	struct blk *file = disk_new("64k", &thr_heap);
	struct blk *raw = raw_on(file, 0);
	struct blk *other = raw_on(disk_new("64k", &thr_heap), 0);
	struct fmt_check c = {0};
	struct blk_err err = BLK_ERR_INIT;
	struct fmt_info info;

	(void)state;
	assert_int_equal(fmt_info(raw, &info), 0);
	assert_string_equal(info.format, "raw");
	assert_int_equal(info.virtual_size, 65536);
	assert_int_equal(info.cluster_size, 0);
	assert_false(info.has_backing);
	assert_true(blk_same(raw, raw));
	assert_false(blk_same(raw, other));
	assert_int_equal(fmt_check(raw, &c, &err), -THR_ENOTSUP);
	assert_int_equal(err.id, BLK_E_NO_CHECK);
	assert_int_equal(fmt_info(file, &info), -THR_EINVAL);
	assert_int_equal(fmt_close(raw), 0);
	assert_int_equal(fmt_close(other), 0);
	assert_int_equal(fmt_close(NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(last_sector_is_filled_up_with_zeroes),
		cmocka_unit_test(writing_the_last_sector_grows_the_file),
		cmocka_unit_test(read_only_stays_so),
		cmocka_unit_test(length_changes),
		cmocka_unit_test(creating),
		cmocka_unit_test(errors_come_through),
		cmocka_unit_test(no_memory),
		cmocka_unit_test(info_and_identity),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
