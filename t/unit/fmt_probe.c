/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Which format a file has, and what is said of formats that are not there.
 */
#include "t/unit/fmt_util.h"

static const char *probe(const void *head, size_t len, struct blk_err *err)
{
	uint8_t buf[4096] = {0};
	struct blk *file;
	const char *name;

	memcpy(buf, head, len);
	assert_int_equal(blk_mem_open(&file, buf, len, 0, &thr_heap, NULL), 0);
	name = fmt_probe(file, err);
	blk_close(file);
	return name;
}

static void content_decides(void **state)
{
	static const struct {
		const char *head;
		size_t len;
		const char *format;
	} rows[] = {
		{"", 0, "raw"},
		{"x", 1, "raw"},
		{"QFI\xfb", 4, "raw"},
		{"QFI\xfb\0\0\0\1", 8, "raw"},
#ifdef CONFIG_FMT_QCOW2
		{"QFI\xfb\0\0\0\2", 8, "qcow2"},
		{"QFI\xfb\0\0\0\3 and what follows", 24, "qcow2"},
#endif
		{" QFI\xfb\0\0\0\3", 9, "raw"},
	};

	(void)state;
	for (size_t i = 0; i < THR_ARRAY_SIZE(rows); i++)
		assert_string_equal(probe(rows[i].head, rows[i].len, NULL), rows[i].format);
}

static void unreadable_and_no_memory_are_errors(void **state)
{
	struct blk_fault rule = {.ops = 1u << BLK_OP_READ, .err = -THR_EIO};
	struct blk_err err = BLK_ERR_INIT;
	struct blk *disk = disk_new("1M", &thr_heap);
	struct purse purse;
	struct blk *fault;
	uint8_t buf[512];

	(void)state;
	assert_int_equal(blk_fault_open(&fault, disk, &thr_heap, NULL), 0);
	assert_int_equal(blk_fault_add(fault, &rule), 0);
	assert_null(fmt_probe(fault, &err));
	assert_int_equal(err.code, -THR_EIO);
	assert_int_equal(err.id, BLK_E_READ_AT);
	assert_non_null(fmt_probe(fault, &err));
	blk_close(fault);

	purse_init(&purse);
	assert_int_equal(blk_mem_open(&disk, buf, sizeof(buf), 0, &purse.mem, NULL), 0);
	purse.fail_at = purse.calls + 1;
	assert_null(fmt_probe(disk, &err));
	assert_int_equal(err.code, -THR_ENOMEM);
	blk_close(disk);
	assert_int_equal(purse.live, 0);
}

static void format_must_be_there(void **state)
{
	struct fmt_open o = {.mem = &thr_heap};
	struct blk_err err = BLK_ERR_INIT;
	uint8_t buf[1024] = {0};
	struct blk *file, *image;

	(void)state;
	assert_int_equal(blk_mem_open(&file, buf, sizeof(buf), 0, &thr_heap, NULL), 0);
	assert_int_equal(open_as(&image, file, "nothing", 0, &err), -THR_EINVAL);
	assert_int_equal(err.id, BLK_E_NO_FORMAT);
	assert_string_equal(err.str, "nothing");
	o.flags = FMT_NEED_FORMAT;
	assert_int_equal(fmt_open_on(&image, file, &o, &err), -THR_EINVAL);
	assert_int_equal(err.id, BLK_E_FORMAT_NEEDED);
	o.format = "raw";
	assert_int_equal(fmt_open_on(&image, file, &o, &err), 0);
	assert_string_equal(fmt_driver_of(image)->name, "raw");
	assert_null(fmt_driver_of(file));
	assert_int_equal(fmt_close(image), 0);
}

static void options_are_the_formats_or_the_files(void **state)
{
	struct blk_opt v[] = {{"driver", "raw"}, {"file.whatever", "1"}, {"nothing", "2"}};
	struct blk_opts opts = {v, 2};
	struct fmt_open o = {.mem = &thr_heap, .opts = &opts};
	struct blk_err err = BLK_ERR_INIT;
	uint8_t buf[1024] = {0};
	struct blk *file, *image;

	(void)state;
	assert_int_equal(blk_mem_open(&file, buf, sizeof(buf), 0, &thr_heap, NULL), 0);
	opts.n = 3;
	assert_int_equal(fmt_open_on(&image, file, &o, &err), -THR_EINVAL);
	assert_int_equal(err.id, BLK_E_BAD_OPTION);
	assert_string_equal(err.str, "nothing");
	opts.n = 2;
	assert_int_equal(fmt_open_on(&image, file, &o, &err), 0);
	assert_int_equal(fmt_close(image), 0);
}

static void table_of_drivers(void **state)
{
	unsigned n = 0;

	(void)state;
	for (; fmt_driver_nth(n); n++) {
		const struct fmt_driver *d = fmt_driver_nth(n);

		assert_ptr_equal(fmt_driver_find(d->name), d);
		assert_non_null(d->open);
		assert_non_null(d->ops);
	}
	assert_true(n >= 1);
	assert_null(fmt_driver_nth(n + 1));
	assert_null(fmt_driver_find("nothing"));
	assert_null(fmt_driver_find(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(content_decides),
		cmocka_unit_test(unreadable_and_no_memory_are_errors),
		cmocka_unit_test(format_must_be_there),
		cmocka_unit_test(options_are_the_formats_or_the_files),
		cmocka_unit_test(table_of_drivers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
