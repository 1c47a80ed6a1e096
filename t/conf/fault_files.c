/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Fault loops over images that are named: the N-th allocation fails, or the N-th request
 * to the file of the image at the top, while a chain of three images is opened, created
 * onto, converted and read. In a plain thread, and in a fiber, which offloads opening.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "fmt/fmt.h"
#include "t/fixtures/poor.h"

#define SIZE (300u << 10)
#define MANY 5000u

static uint8_t content[SIZE], buf[SIZE];

/* ---- images ----------------------------------------------------------------------- */

static int make(
	const char *name, const char *backing, const struct thr_alloc *mem, struct blk_err *err)
{
	struct blk_opt cluster = {"cluster_size", "4k"};
	struct blk_opts opts = {&cluster, 1};
	struct fmt_create c = {
		.name = name,
		.format = "qcow2",
		.backing = backing,
		.backing_format = strstr(backing, "raw") ? "raw" : "qcow2",
		.opts = &opts,
		.mem = mem,
	};

	return fmt_create(&c, err);
}

static int open_named(struct blk **out, const char *name, unsigned blk_flags,
	const struct blk_opts *opts, const struct thr_alloc *mem, struct blk_err *err)
{
	struct fmt_open o = {
		.name = name,
		.format = "qcow2",
		.blk_flags = blk_flags,
		.opts = opts,
		.mem = mem,
	};

	return fmt_open(out, &o, err);
}

static void put(const char *name, uint64_t off, uint64_t len, uint8_t byte)
{
	struct blk *b;

	assert_int_equal(open_named(&b, name, BLK_RDWR, NULL, &thr_heap, NULL), 0);
	memset(content + off, byte, len);
	assert_int_equal(blk_pwrite(b, off, content + off, len), 0);
	assert_int_equal(fmt_close(b), 0);
}

/* top.q over mid.q over base.raw */
static int chain_make(void **state)
{
	FILE *f = fopen("base.raw", "wb");

	(void)state;
	assert_non_null(f);
	for (unsigned i = 0; i < SIZE; i++)
		content[i] = (uint8_t)(i / 512 | 1);
	assert_int_equal(fwrite(content, 1, SIZE, f), SIZE);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(make("mid.q", "base.raw", &thr_heap, NULL), 0);
	assert_int_equal(make("top.q", "mid.q", &thr_heap, NULL), 0);
	put("mid.q", 50000, 30000, 0x11);
	put("top.q", 70000, 60000, 0x22);
	return 0;
}

/* ---- what is done ------------------------------------------------------------------- */

struct attempt {
	int (*run)(struct attempt *a);
	struct poor mem;
	const struct blk_opts *opts; /* of the device at the top, or NULL */
	struct blk_err e;
	int err;
};

static int open_and_read(struct attempt *a)
{
	struct blk *b;
	int err = open_named(&b, "top.q", 0, a->opts, &a->mem.a, &a->e);

	if (err)
		return err;
	memset(buf, 0, SIZE);
	err = blk_pread(b, 0, buf, SIZE);
	if (!err)
		assert_memory_equal(buf, content, SIZE);
	fmt_close(b);
	return err;
}

/* What was not there is not there after an error. */
static int create(struct attempt *a)
{
	struct blk *b;
	int err = make("new.q", "top.q", &a->mem.a, &a->e);

	if (err) {
		assert_int_not_equal(access("new.q", F_OK), 0);
		return err;
	}
	assert_int_equal(open_named(&b, "new.q", 0, NULL, &thr_heap, NULL), 0);
	assert_int_equal(blk_pread(b, 0, buf, SIZE), 0);
	assert_memory_equal(buf, content, SIZE);
	assert_int_equal(fmt_close(b), 0);
	assert_int_equal(unlink("new.q"), 0);
	return 0;
}

static int convert(struct attempt *a)
{
	struct blk *src, *dst;
	struct fmt_convert cv = {
		.src = &src, .nsrc = 1, .dst_is_zero = true, .sparse = 4096, .fibers = 4};
	int err = open_named(&src, "top.q", 0, a->opts, &a->mem.a, &a->e);

	if (err)
		return err;
	memset(buf, 0, SIZE);
	err = blk_mem_open(&dst, buf, SIZE, BLK_RDWR, &a->mem.a, &a->e);
	if (!err) {
		cv.dst = dst;
		err = fmt_convert(&cv, &a->e);
		blk_close(dst);
	}
	if (!err)
		assert_memory_equal(buf, content, SIZE);
	fmt_close(src);
	return err;
}

/* ---- loops --------------------------------------------------------------------------- */

static void in_fiber(void *arg)
{
	struct attempt *a = arg;

	a->err = a->run(a);
}

static void attempt(struct attempt *a, bool fiber)
{
	struct thr_exec *e;

	memset(&a->e, 0, sizeof(a->e));
	if (!fiber) {
		a->err = a->run(a);
	} else {
		assert_int_equal(thr_exec_open(&e, &thr_heap), 0);
		assert_int_equal(thr_spawn(e, in_fiber, a), 0);
		thr_exec_run(e);
		thr_exec_close(e);
	}
	assert_int_equal(a->mem.live, 0);
	if (a->e.code)
		assert_int_equal(a->e.code, a->err);
}

/* Every error has its sentence. */
static void judge_error(const struct attempt *a, int want)
{
	char text[1024];

	if (!a->err)
		return;
	assert_int_equal(a->err, want);
	assert_true(!a->e.code || blk_err_text(&a->e, text, sizeof(text)) > 8);
}

static void allocation_loop(int (*run)(struct attempt *a), bool fiber, bool always)
{
	struct attempt a = {.run = run};
	uint64_t n = 0;

	do {
		poor_init(&a.mem);
		poor_arm(&a.mem, ++n, always);
		attempt(&a, fiber);
		judge_error(&a, -THR_ENOMEM);
		assert_in_range(n, 1, MANY);
	} while (a.mem.failed);
	assert_int_equal(a.err, 0);
	assert_true(n > 3);
}

static void allocations(int (*run)(struct attempt *a))
{
	allocation_loop(run, false, false);
	allocation_loop(run, false, true);
	allocation_loop(run, true, false);
	allocation_loop(run, true, true);
}

static void requests(int (*run)(struct attempt *a), bool fiber)
{
	char nth[24];
	struct blk_opt v[] = {
		{"file.driver", "fault"},
		{"file.file.filename", "top.q"},
		{"file.error", "EIO"},
		{"file.nth", nth},
	};
	struct blk_opts opts = {v, 4};
	struct attempt a = {.run = run, .opts = &opts};
	uint64_t n = 0;

	do {
		snprintf(nth, sizeof(nth), "%llu", (unsigned long long)++n);
		poor_init(&a.mem);
		attempt(&a, fiber);
		judge_error(&a, -THR_EIO);
		assert_in_range(n, 1, MANY);
	} while (a.err);
	assert_true(n > 3);
}

static void allocations_while_opening_and_reading(void **state)
{
	(void)state;
	allocations(open_and_read);
}

static void requests_while_opening_and_reading(void **state)
{
	(void)state;
	requests(open_and_read, false);
	requests(open_and_read, true);
}

static void allocations_while_creating(void **state)
{
	(void)state;
	allocations(create);
}

static void allocations_while_converting(void **state)
{
	(void)state;
	allocations(convert);
}

static void requests_while_converting(void **state)
{
	(void)state;
	requests(convert, false);
	requests(convert, true);
}

/* A file that was there stays. */
static void failed_create_over_a_file(void **state)
{
	struct blk_err err = BLK_ERR_INIT;
	struct poor mem;
	int ret;

	(void)state;
	assert_int_equal(make("there.q", "base.raw", &thr_heap, NULL), 0);
	poor_init(&mem);
	poor_arm(&mem, 1, true);
	ret = make("there.q", "base.raw", &mem.a, &err);
	assert_int_equal(ret, -THR_ENOMEM);
	assert_int_equal(err.code, -THR_ENOMEM);
	assert_int_equal(access("there.q", F_OK), 0);
	assert_int_equal(unlink("there.q"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(allocations_while_opening_and_reading),
		cmocka_unit_test(requests_while_opening_and_reading),
		cmocka_unit_test(allocations_while_creating),
		cmocka_unit_test(failed_create_over_a_file),
		cmocka_unit_test(allocations_while_converting),
		cmocka_unit_test(requests_while_converting),
	};

	return cmocka_run_group_tests(tests, chain_make, NULL) != 0;
}
