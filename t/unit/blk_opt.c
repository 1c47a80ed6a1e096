/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/blk_opt.c - options: sizes as qemu-img 7.2 reads them, words, drivers by
 * name. What qemu-img says to each of the sizes was found by asking it.
 */
#include "blk_util.h"

static const struct {
	const char *s;
	int err;
	uint64_t v;
} sizes[] = {
	{"0", 0, 0},
	{"10", 0, 10},
	{"10b", 0, 10},
	{"10B", 0, 10},
	{"1k", 0, 1024},
	{"1K", 0, 1024},
	{"1m", 0, 1 << 20},
	{"1M", 0, 1 << 20},
	{"1g", 0, 1 << 30},
	{"1T", 0, 1ull << 40},
	{"1P", 0, 1ull << 50},
	{"1E", 0, 1ull << 60},
	{"15E", 0, 15ull << 60},
	{"1.5G", 0, 1610612736},
	{"1.7k", 0, 1741},
	{"0.1k", 0, 102},
	{"0.5b", -THR_EINVAL, 0},
	{"1.0b", 0, 1},
	{"1.0", 0, 1},
	{"1.5", -THR_EINVAL, 0},
	{"5.k", 0, 5120},
	{"0.0000000001G", 0, 0},
	{"7.9E", 0, 9108079886394091110u},
	{" 10", 0, 10},
	{"\t\n10", 0, 10},
	{"+5", 0, 5},
	{"010", 0, 10},
	{"08", 0, 8},
	{"0x10", 0, 16},
	{"0X1F", 0, 31},
	{"0x10k", 0, 16384},
	{"0xffffffffffffffff", 0, UINT64_MAX},
	{"18446744073709551615", 0, UINT64_MAX},
	{"18446744073709551616", -THR_ERANGE, 0},
	{"0x10000000000000000", -THR_ERANGE, 0},
	{"16E", -THR_ERANGE, 0},
	{"15.99999999999999999999999E", -THR_ERANGE, 0},
	{"99999999999999999999", -THR_ERANGE, 0},
	{"", -THR_EINVAL, 0},
	{" ", -THR_EINVAL, 0},
	{".", -THR_EINVAL, 0},
	{".5k", -THR_EINVAL, 0},
	{"k", -THR_EINVAL, 0},
	{"-1", -THR_EINVAL, 0},
	{"-0", -THR_EINVAL, 0},
	{"+-1", -THR_EINVAL, 0},
	{"1e3", -THR_EINVAL, 0},
	{"10 ", -THR_EINVAL, 0},
	{"1kk", -THR_EINVAL, 0},
	{"1kB", -THR_EINVAL, 0},
	{"1G1", -THR_EINVAL, 0},
	{"1,5k", -THR_EINVAL, 0},
	{"1.5.5k", -THR_EINVAL, 0},
	{"0x1.8k", -THR_EINVAL, 0},
	{"0x", -THR_EINVAL, 0},
	{"0xg", -THR_EINVAL, 0},
	{"inf", -THR_EINVAL, 0},
	{"nan", -THR_EINVAL, 0},
	{"1@", -THR_EINVAL, 0},
};

static void t_sizes(void **state)
{
	(void)state;
	for (size_t i = 0; i < THR_ARRAY_SIZE(sizes); i++) {
		uint64_t v = 0;
		int err = blk_parse_size(sizes[i].s, &v);

		if (err != sizes[i].err || (!err && v != sizes[i].v))
			fail_msg("'%s': %d, %llu", sizes[i].s, err, (unsigned long long)v);
	}
}

static struct blk_opt list[] = {
	{"size", "1k"},
	{"lazy", "on"},
	{"file.filename", "x"},
	{"size", "2M"},
	{"bad", "maybe"},
	{"long", "16E"},
	{"off", "false"},
};
static const struct blk_opts opts = {list, THR_ARRAY_SIZE(list)};

static void t_opts(void **state)
{
	struct blk_err err = BLK_ERR_INIT;
	uint64_t n;
	bool b;

	(void)state;
	assert_null(blk_opt(NULL, "size"));
	assert_null(blk_opt(&opts, "siz"));
	assert_null(blk_opt(&opts, "sizes"));
	assert_string_equal(blk_opt(&opts, "size"), "2M");
	assert_int_equal(blk_opt_size(&opts, "size", 7, &n, &err), 0);
	assert_int_equal(n, 2 << 20);
	assert_int_equal(blk_opt_size(&opts, "none", 7, &n, &err), 0);
	assert_int_equal(n, 7);
	assert_int_equal(blk_opt_size(&opts, "bad", 7, &n, &err), -THR_EINVAL);
	assert_int_equal(err.id, BLK_E_BAD_VALUE);
	assert_int_equal(blk_opt_size(&opts, "long", 7, &n, &err), -THR_ERANGE);

	assert_int_equal(blk_opt_bool(&opts, "lazy", false, &b, &err), 0);
	assert_true(b);
	assert_int_equal(blk_opt_bool(&opts, "off", true, &b, &err), 0);
	assert_false(b);
	assert_int_equal(blk_opt_bool(&opts, "none", true, &b, &err), 0);
	assert_true(b);
	err = (struct blk_err)BLK_ERR_INIT;
	assert_int_equal(blk_opt_bool(&opts, "bad", true, &b, &err), -THR_EINVAL);
	assert_int_equal(err.code, -THR_EINVAL);
}

static void t_bools(void **state)
{
	static const char *const yes[] = {"on", "yes", "true", "y"};
	static const char *const no[] = {"off", "no", "false", "n"};
	static const char *const bad[] = {"ON", "1", "0", "", "onn", "o"};
	struct blk_opt v = {"k", NULL};
	struct blk_opts o = {&v, 1};
	bool b;

	(void)state;
	for (size_t i = 0; i < THR_ARRAY_SIZE(yes); i++) {
		v.val = yes[i];
		assert_int_equal(blk_opt_bool(&o, "k", false, &b, NULL), 0);
		assert_true(b);
	}
	for (size_t i = 0; i < THR_ARRAY_SIZE(no); i++) {
		v.val = no[i];
		assert_int_equal(blk_opt_bool(&o, "k", true, &b, NULL), 0);
		assert_false(b);
	}
	for (size_t i = 0; i < THR_ARRAY_SIZE(bad); i++) {
		v.val = bad[i];
		assert_int_equal(blk_opt_bool(&o, "k", true, &b, NULL), -THR_EINVAL);
	}
}

static void t_known(void **state)
{
	static const char *const some[] = {"size", "lazy", "file.filename", NULL};
	static const char *const all[] = {
		"long", "off", "bad", "size", "lazy", "file.filename", NULL};
	struct blk_err err = BLK_ERR_INIT;

	(void)state;
	assert_int_equal(blk_opts_known(NULL, some, &err), 0);
	assert_int_equal(blk_opts_known(&opts, all, &err), 0);
	assert_int_equal(blk_opts_known(&opts, some, &err), -THR_EINVAL);
	assert_int_equal(err.id, BLK_E_BAD_OPTION);
#ifdef CONFIG_BLK_ERR_TEXT
	assert_string_equal(err.str, "bad");
#endif
}

static void t_words(void **state)
{
	enum blk_prealloc p;
	unsigned f = BLK_RDWR | BLK_NOFLUSH;

	(void)state;
	assert_int_equal(blk_prealloc_parse("off", &p), 0);
	assert_int_equal(p, BLK_PREALLOC_OFF);
	assert_int_equal(blk_prealloc_parse("metadata", &p), 0);
	assert_int_equal(p, BLK_PREALLOC_METADATA);
	assert_int_equal(blk_prealloc_parse("falloc", &p), 0);
	assert_int_equal(p, BLK_PREALLOC_FALLOC);
	assert_int_equal(blk_prealloc_parse("full", &p), 0);
	assert_int_equal(p, BLK_PREALLOC_FULL);
	assert_int_equal(blk_prealloc_parse("Full", &p), -THR_EINVAL);

	assert_int_equal(blk_cache_parse("none", &f), 0);
	assert_int_equal(f, BLK_RDWR | BLK_NOCACHE);
	assert_int_equal(blk_cache_parse("writeback", &f), 0);
	assert_int_equal(f, BLK_RDWR);
	assert_int_equal(blk_cache_parse("writethrough", &f), 0);
	assert_int_equal(f, BLK_RDWR | BLK_WRITETHROUGH);
	assert_int_equal(blk_cache_parse("directsync", &f), 0);
	assert_int_equal(f, BLK_RDWR | BLK_NOCACHE | BLK_WRITETHROUGH);
	assert_int_equal(blk_cache_parse("unsafe", &f), 0);
	assert_int_equal(f, BLK_RDWR | BLK_NOFLUSH);
	assert_int_equal(blk_cache_parse("fast", &f), -THR_EINVAL);
	assert_int_equal(f, BLK_RDWR | BLK_NOFLUSH);
}

static int try_open(
	const char *name, const char *driver, const struct blk_opts *o, struct blk_err *e)
{
	struct blk_open p = {.name = name, .driver = driver, .opts = o, .mem = &thr_heap};
	struct blk *b = NULL;
	int err = blk_open(&b, &p, e);

	blk_close(b);
	return err;
}

static void t_drivers(void **state)
{
	struct blk_opt by[] = {{"driver", "mem"}, {"size", "1M"}};
	struct blk_opt no_file[] = {{"size", "1M"}};
	struct blk_opts by_opt = {by, 2}, none = {no_file, 1};
	struct blk_err err = BLK_ERR_INIT;

	(void)state;
	assert_int_equal(try_open("x", "foo", NULL, &err), -THR_EINVAL);
	assert_int_equal(err.id, BLK_E_NO_DRIVER);
	assert_int_equal(try_open("json:{}", NULL, NULL, &err), -THR_EINVAL);
	assert_int_equal(err.id, BLK_E_JSON_HERE);
	assert_int_equal(try_open(NULL, NULL, &none, &err), -THR_EINVAL);
	assert_int_equal(err.id, BLK_E_NEED_OPTION);
	assert_int_equal(
		blk_create("json:{}", 1, BLK_PREALLOC_OFF, &thr_heap, &err), -THR_EINVAL);
	assert_null(blk_driver_find("foo"));
#ifdef CONFIG_BLK_MEM_SPARSE
	assert_non_null(blk_driver_find("mem"));
	assert_int_equal(try_open(NULL, NULL, &by_opt, &err), 0);
	by[1].key = "sise";
	assert_int_equal(try_open(NULL, NULL, &by_opt, &err), -THR_EINVAL);
	assert_int_equal(err.id, BLK_E_BAD_OPTION);
#else
	assert_int_equal(try_open(NULL, NULL, &by_opt, &err), -THR_ENOTSUP);
	assert_int_equal(err.id, BLK_E_NOT_BUILT);
#endif
#ifdef CONFIG_BLK_NULL
	assert_int_equal(try_open("null-co://", NULL, NULL, &err), 0);
	assert_int_equal(
		blk_create("null-co://", 1, BLK_PREALLOC_OFF, &thr_heap, &err), -THR_ENOTSUP);
	assert_int_equal(err.id, BLK_E_SYS);
#endif
#ifdef CONFIG_BLK_FILE
	assert_int_equal(try_open("none-such", NULL, NULL, &err), -THR_ENOENT);
	assert_int_equal(try_open("file:none-such", NULL, NULL, &err), -THR_ENOENT);
	assert_int_equal(blk_create("file:made", 5, BLK_PREALLOC_OFF, &thr_heap, &err), 0);
	assert_int_equal(try_open("made", NULL, NULL, &err), 0);
	assert_int_equal(try_open("file:made", NULL, NULL, &err), 0);
	assert_int_equal(remove("made"), 0);
#ifdef CONFIG_BLK_ERR_TEXT
	{
		char text[200];

		assert_int_equal(try_open("none-such", NULL, NULL, &err), -THR_ENOENT);
		blk_err_text(&err, text, sizeof(text));
		assert_string_equal(
			text, "Could not open 'none-such': No such file or directory");
	}
#endif
#else
	assert_int_equal(try_open("none-such", NULL, NULL, &err), -THR_ENOTSUP);
	assert_int_equal(err.id, BLK_E_NOT_BUILT);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_sizes),
		cmocka_unit_test(t_opts),
		cmocka_unit_test(t_bools),
		cmocka_unit_test(t_known),
		cmocka_unit_test(t_words),
		cmocka_unit_test(t_drivers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
