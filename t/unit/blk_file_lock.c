/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Locks on image files, among opens of one process: they belong to the open file
 * description. t/interop/lock.sh tries them against QEMU's programs.
 */
#include "t/unit/file_util.h"

#include <errno.h>

#define IMAGE "lock.img"

static int setup(void **state)
{
	(void)state;
	t_put_file(IMAGE, "image", 5);
	return 0;
}

static void refused(unsigned flags, enum blk_err_id id)
{
	struct blk_err err = BLK_ERR_INIT;
	struct blk *b = NULL;

	assert_int_equal(t_open(&b, IMAGE, flags, NULL, &err), -EAGAIN);
	assert_int_equal(err.id, id);
}

static void allowed(unsigned flags)
{
	blk_close(t_must_open(IMAGE, flags, NULL));
}

static void test_writer_keeps_others_out(void **state)
{
	struct blk *b = t_must_open(IMAGE, BLK_RDWR, NULL);

	(void)state;
	refused(0, BLK_E_LOCK_SHARED_WRITE);
	refused(BLK_RDWR, BLK_E_LOCK_WRITE);
	refused(BLK_RDWR | BLK_SHARE, BLK_E_LOCK_WRITE);
	allowed(BLK_SHARE);
	allowed(BLK_NO_LOCK);
	allowed(BLK_RDWR | BLK_NO_LOCK);
	blk_close(b);
	allowed(0);
	allowed(BLK_RDWR);
}

static void test_reader_keeps_writers_out(void **state)
{
	struct blk *b = t_must_open(IMAGE, 0, NULL);

	(void)state;
	allowed(0);
	allowed(BLK_SHARE);
	refused(BLK_RDWR, BLK_E_LOCK_WRITE);
	refused(BLK_RDWR | BLK_SHARE, BLK_E_LOCK_WRITE);
	blk_close(b);
	allowed(BLK_RDWR);
}

static void test_shared(void **state)
{
	struct blk *r = t_must_open(IMAGE, BLK_SHARE, NULL);
	struct blk *w;

	(void)state;
	allowed(BLK_RDWR);
	w = t_must_open(IMAGE, BLK_RDWR | BLK_SHARE, NULL);
	allowed(BLK_RDWR | BLK_SHARE);
	refused(0, BLK_E_LOCK_SHARED_WRITE);
	refused(BLK_RDWR, BLK_E_LOCK_SHARED_WRITE);
	blk_close(w);
	blk_close(r);
}

/* A refused open leaves no lock of its own behind. */
static void test_refused_leaves_nothing(void **state)
{
	struct blk *b = t_must_open(IMAGE, 0, NULL);

	(void)state;
	refused(BLK_RDWR, BLK_E_LOCK_WRITE);
	allowed(0);
	blk_close(b);
	allowed(BLK_RDWR);
}

static void test_create(void **state)
{
	struct blk_err err = BLK_ERR_INIT;
	struct blk *b = t_must_open(IMAGE, 0, NULL);
	char buf[5];

	(void)state;
	assert_int_equal(blk_create(IMAGE, 1, BLK_PREALLOC_OFF, &thr_heap, &err), -EAGAIN);
	assert_int_equal(err.id, BLK_E_LOCK_WRITE);
	t_get_file(IMAGE, buf, 5);
	assert_memory_equal(buf, "image", 5);
	blk_close(b);
	assert_int_equal(blk_create(IMAGE, 1, BLK_PREALLOC_OFF, &thr_heap, NULL), 0);
	allowed(BLK_RDWR);
}

static void test_option(void **state)
{
	struct blk_opt v = {"locking", "off"};
	struct blk_opts opts = {&v, 1};
	struct blk_open o = {.name = IMAGE, .flags = BLK_RDWR, .opts = &opts, .mem = &thr_heap};
	struct blk *b = t_must_open(IMAGE, BLK_RDWR, NULL);
	struct blk *c;

	(void)state;
	assert_int_equal(blk_open(&c, &o, NULL), 0);
	blk_close(c);
	v.val = "on";
	assert_int_equal(blk_open(&c, &o, NULL), -EAGAIN);
	v.val = "auto";
	assert_int_equal(blk_open(&c, &o, NULL), -EAGAIN);
	blk_close(b);
}

#ifdef CONFIG_BLK_ERR_TEXT
static void test_sentence(void **state)
{
	struct blk *b = t_must_open(IMAGE, BLK_RDWR, NULL);
	struct blk_err err = BLK_ERR_INIT;
	char text[256];
	struct blk *c;

	(void)state;
	assert_int_equal(t_open(&c, IMAGE, 0, NULL, &err), -EAGAIN);
	blk_err_text(&err, text, sizeof(text));
	assert_non_null(strstr(text, "Could not open 'lock.img': "));
	assert_non_null(strstr(text, "Failed to get shared \"write\" lock"));
	blk_close(b);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_writer_keeps_others_out, setup),
		cmocka_unit_test_setup(test_reader_keeps_writers_out, setup),
		cmocka_unit_test_setup(test_shared, setup),
		cmocka_unit_test_setup(test_refused_leaves_nothing, setup),
		cmocka_unit_test_setup(test_create, setup),
		cmocka_unit_test_setup(test_option, setup),
#ifdef CONFIG_BLK_ERR_TEXT
		cmocka_unit_test_setup(test_sentence, setup),
#endif
	};

	return cmocka_run_group_tests_name("blk_file_lock", tests, NULL, NULL);
}
