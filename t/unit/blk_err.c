/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/blk_err.c - errors and their sentences.
 */
#include <errno.h>

#include "blk_util.h"

static void t_fail(void **state)
{
	struct blk_err e = BLK_ERR_INIT;

	(void)state;
	assert_int_equal(blk_fail(&e, -THR_EIO, BLK_E_FILE_SHRANK, 10, 20), -THR_EIO);
	assert_int_equal(e.code, -THR_EIO);
	assert_int_equal(e.id, BLK_E_FILE_SHRANK);
	assert_int_equal(e.off, 10);
	assert_int_equal(e.val, 20);
	assert_int_equal(blk_fail(NULL, -THR_EIO, BLK_E_SYS, 0, 0), -THR_EIO);
	assert_int_equal(blk_fail_str(NULL, -THR_EIO, BLK_E_SYS, "x"), -THR_EIO);
	blk_err_where(NULL, "Could not open", "x");
}

#ifdef CONFIG_BLK_ERR_TEXT
static const char *text(const struct blk_err *e)
{
	static char buf[1024];
	size_t n;

	memset(buf, '#', sizeof(buf));
	n = blk_err_text(e, buf, sizeof(buf));
	assert_int_equal(n, strlen(buf));
	return buf;
}

static void t_sentence(void **state)
{
	struct blk_err e = BLK_ERR_INIT;

	(void)state;
	assert_string_equal(text(&e), "Success");
	blk_fail(&e, -THR_ENOENT, BLK_E_SYS, 0, 0);
	assert_string_equal(text(&e), "No such file or directory");
	blk_err_where(&e, "Could not open", "x.qcow2");
	assert_string_equal(text(&e), "Could not open 'x.qcow2': No such file or directory");
	/* Who knows less adds nothing. */
	blk_err_where(&e, "Could not convert", "y");
	assert_string_equal(text(&e), "Could not open 'x.qcow2': No such file or directory");
	/* A new error has nothing of the old one. */
	blk_fail_str(&e, -THR_EINVAL, BLK_E_BAD_OPTION, "sise");
	assert_string_equal(text(&e), "Invalid parameter 'sise'");
	blk_fail(&e, -THR_EIO, BLK_E_FILE_SHRANK, UINT64_MAX, 0);
	blk_err_where(&e, "Could not read the image", NULL);
	assert_string_equal(text(&e),
		"Could not read the image: "
		"The file has shrunk: it ends before offset 18446744073709551615");
	e.off = 0;
	e.doing = NULL;
	assert_string_equal(text(&e), "The file has shrunk: it ends before offset 0");
	e.off = 1002030;
	assert_string_equal(text(&e), "The file has shrunk: it ends before offset 1002030");
	blk_fail_str(&e, -THR_EBUSY, BLK_E_SYS_WHAT, NULL);
	assert_string_equal(text(&e), ": Device or resource busy");
}

static void t_control(void **state)
{
	struct blk_err e = BLK_ERR_INIT;

	(void)state;
	blk_fail_str(&e, -THR_EINVAL, BLK_E_BAD_OPTION,
		"a\x1b[31mb\n\x7f\xc2\x9b"
		"2J\xc3\xa9");
	blk_err_where(&e, "Could not open", "\r\xc2\x85%s");
	assert_string_equal(
		text(&e), "Could not open '??%s': Invalid parameter 'a?[31mb???2J\xc3\xa9'");
}

static void t_long(void **state)
{
	struct blk_err e = BLK_ERR_INIT;
	char name[2000], out[64];

	(void)state;
	memset(name, 'd', sizeof(name));
	memcpy(name + sizeof(name) - 9, "/a.qcow2", 9);
	blk_fail_str(&e, -THR_EINVAL, BLK_E_BAD_OPTION, name);
	assert_int_equal(strlen(e.str), BLK_ERR_STR_MAX - 1);
	blk_err_where(&e, "Could not open", name);
	assert_int_equal(strlen(e.file), BLK_ERR_FILE_MAX - 1);
	assert_memory_equal(e.file, "...dd", 5);
	assert_string_equal(e.file + BLK_ERR_FILE_MAX - 9, "/a.qcow2");
	/* Cut, but terminated. */
	memset(out, '#', sizeof(out));
	assert_int_equal(blk_err_text(&e, out, 16), 15);
	assert_string_equal(out, "Could not open ");
	assert_int_equal(out[16], '#');
	assert_int_equal(blk_err_text(&e, out, 1), 0);
	assert_int_equal(out[0], 0);
	assert_int_equal(blk_err_text(&e, NULL, 0), 0);
}

/* One line, no full stop, and every conversion known. */
static void t_all(void **state)
{
	struct blk_err e = BLK_ERR_INIT;

	(void)state;
	for (int id = 0; id < BLK_E_COUNT; id++) {
		const char *s;

		blk_fail_str(&e, -THR_EIO, (enum blk_err_id)id, "str");
		e.off = 123;
		e.val = 0xabc;
		s = text(&e);
		assert_true(strlen(s) > 3);
		assert_null(strchr(s, '\n'));
		assert_null(strchr(s, '%'));
		assert_true(s[strlen(s) - 1] != '.');
	}
}

/* Our numbers are Linux's, and so are the words. */
static void t_strerror(void **state)
{
	static const int codes[] = {0, EPERM, ENOENT, EINTR, EIO, ENXIO, EBADF, EAGAIN, ENOMEM,
		EACCES, EBUSY, EEXIST, ENODEV, ENOTDIR, EISDIR, EINVAL, EFBIG, ENOSPC, EROFS,
		EPIPE, ERANGE, ENAMETOOLONG, ELOOP, EPROTO, EOVERFLOW, EOPNOTSUPP, ETIMEDOUT,
		EUCLEAN, ECANCELED};

	(void)state;
	for (size_t i = 0; i < THR_ARRAY_SIZE(codes); i++) {
		assert_string_equal(blk_strerror(codes[i]), strerror(codes[i]));
		assert_string_equal(blk_strerror(-codes[i]), strerror(codes[i]));
	}
	assert_string_equal(blk_strerror(9999), "Unknown error");
	assert_string_equal(blk_strerror(INT32_MIN), "Unknown error");
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_fail),
#ifdef CONFIG_BLK_ERR_TEXT
		cmocka_unit_test(t_sentence),
		cmocka_unit_test(t_control),
		cmocka_unit_test(t_long),
		cmocka_unit_test(t_all),
		cmocka_unit_test(t_strerror),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
