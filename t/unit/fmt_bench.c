/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/fmt_bench.c - the benchmark makes the requests that it was asked for: each once,
 * at its offset, no more at a time than allowed, and flushes where they belong. Seen in
 * the log of a device.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fmt/fmt.h"

#define DISK (1u << 20)

struct rig {
	struct blk *mem, *log;
	struct fmt_bench b;
	struct blk_err err;
};

static void open_rig(struct rig *g)
{
	struct blk_opt v[] = {{"size", "1M"}};
	struct blk_opts opts = {v, 1};
	struct blk_open o = {.driver = "mem",
		.flags = BLK_RDWR | BLK_FIXED_SIZE,
		.opts = &opts,
		.mem = &thr_heap};

	assert_int_equal(blk_open(&g->mem, &o, NULL), 0);
	assert_int_equal(blk_log_open(&g->log, g->mem, NULL, NULL, &thr_heap, NULL), 0);
	g->b.image = g->log;
	g->err.code = 0;
}

static int call(void *arg)
{
	struct rig *g = arg;

	return fmt_bench(&g->b, &g->err);
}

static int run(struct rig *g, unsigned execs)
{
	struct thr_pool *pool;
	int ret;

	if (!execs)
		return call(g);
	assert_int_equal(thr_pool_open(&pool, execs, &thr_heap), 0);
	ret = thr_pool_run(pool, call, g);
	thr_pool_close(pool);
	return ret;
}

static const struct blk_log_entry *entry(const struct rig *g, size_t i)
{
	return blk_log_get(g->log, i);
}

/* How often the log has a write of @len bytes at @off. */
static unsigned writes_at(const struct rig *g, uint64_t off, uint64_t len)
{
	unsigned n = 0;

	for (size_t i = 0; i < blk_log_count(g->log); i++)
		n += entry(g, i)->op == BLK_OP_WRITE && entry(g, i)->off == off &&
		     entry(g, i)->len == len;
	return n;
}

static unsigned count(const struct rig *g, enum blk_op op)
{
	unsigned n = 0;

	for (size_t i = 0; i < blk_log_count(g->log); i++)
		n += entry(g, i)->op == op;
	return n;
}

/* The most writes that were under way at a time. */
static unsigned most_at_once(const struct rig *g)
{
	unsigned most = 0;

	for (size_t i = 0; i < blk_log_count(g->log); i++) {
		unsigned n = 0;

		for (size_t j = 0; j < blk_log_count(g->log); j++)
			n += entry(g, j)->submitted <= entry(g, i)->submitted &&
			     entry(g, j)->completed > entry(g, i)->submitted;
		most = THR_MAX(most, n);
	}
	return most;
}

static void each_once(void **state)
{
	static const unsigned execs[] = {0, 1, 2, 3};

	(void)state;
	for (size_t i = 0; i < THR_ARRAY_SIZE(execs); i++) {
		struct rig g = {.b = {.write = true,
					.pattern = 0x5a,
					.count = 1000,
					.depth = 7,
					.size = 512,
					.step = 1024}};
		uint8_t byte;

		open_rig(&g);
		assert_int_equal(run(&g, execs[i]), 0);
		assert_int_equal(blk_log_count(g.log), 1000);
		for (unsigned n = 0; n < 1000; n++)
			assert_int_equal(writes_at(&g, n * 1024, 512), 1);
		assert_int_equal(blk_pread(g.mem, 999 * 1024 + 511, &byte, 1), 0);
		assert_int_equal(byte, 0x5a);
		assert_int_equal(blk_pread(g.mem, 999 * 1024 + 512, &byte, 1), 0);
		assert_int_equal(byte, 0);
		assert_true(most_at_once(&g) <= 7);
		assert_true(g.b.ns > 0);
		blk_close(g.log);
	}
}

static void from_the_start_again(void **state)
{
	struct rig g = {.b = {.write = true,
				.count = 5,
				.depth = 2,
				.size = 4096,
				.off = DISK - 8192,
				.step = 300 * 1024}};
	static const uint64_t at[] = {1040384, 299008, 606208, 913408, 172032};

	(void)state;
	open_rig(&g);
	assert_int_equal(run(&g, 1), 0);
	assert_int_equal(blk_log_count(g.log), 5);
	for (size_t i = 0; i < THR_ARRAY_SIZE(at); i++)
		assert_int_equal(writes_at(&g, at[i], 4096), 1);
	blk_close(g.log);
}

/* Before a flush has been submitted all writes before it have ended, and none after it
 * has begun before it has ended. */
static void flushes_drain(void **state)
{
	(void)state;
	for (unsigned execs = 0; execs < 3; execs++) {
		struct rig g = {.b = {.write = true,
					.count = 100,
					.depth = 8,
					.size = 512,
					.step = 512,
					.flush_interval = 9,
					.drain = true}};
		unsigned flushes = 0;

		open_rig(&g);
		assert_int_equal(run(&g, execs), 0);
		assert_int_equal(count(&g, BLK_OP_WRITE), 100);
		assert_int_equal(count(&g, BLK_OP_FLUSH), 11);
		for (size_t i = 0; i < blk_log_count(g.log); i++) {
			const struct blk_log_entry *f = entry(&g, i);

			if (f->op != BLK_OP_FLUSH)
				continue;
			flushes++;
			for (size_t j = 0; j < blk_log_count(g.log); j++) {
				const struct blk_log_entry *w = entry(&g, j);

				if (w->op != BLK_OP_WRITE)
					continue;
				if (w->off / 512 < 9 * flushes)
					assert_true(w->completed < f->submitted);
				else
					assert_true(w->submitted > f->completed);
			}
		}
		blk_close(g.log);
	}
}

static void flushes_without_draining(void **state)
{
	struct rig g = {.b = {.write = true,
				.count = 100,
				.depth = 64,
				.size = 512,
				.step = 512,
				.flush_interval = 9}};

	(void)state;
	open_rig(&g);
	assert_int_equal(run(&g, 2), 0);
	assert_int_equal(count(&g, BLK_OP_WRITE), 100);
	assert_int_equal(count(&g, BLK_OP_FLUSH), 11);
	blk_close(g.log);
}

/* With and without flushes, whoever waits for whom: it ends, with the error. */
static void first_error_ends_it(void **state)
{
	(void)state;
	for (unsigned mode = 0; mode < 3; mode++) {
		struct rig g = {.b = {.write = true,
					.count = 100000,
					.depth = 8,
					.size = 512,
					.step = 512,
					.flush_interval = mode ? 16 : 0,
					.drain = mode == 2}};
		struct blk *fault, *log;
		struct blk_fault rule = {.ops = 1u << BLK_OP_WRITE,
			.nth = 50,
			.err = -THR_ENOSPC,
			.always = true};

		open_rig(&g);
		log = g.log;
		assert_int_equal(blk_fault_open(&fault, log, &thr_heap, NULL), 0);
		assert_int_equal(blk_fault_add(fault, &rule), 0);
		g.b.image = fault;
		assert_int_equal(run(&g, 2), -THR_ENOSPC);
		assert_int_equal(g.err.code, -THR_ENOSPC);
		assert_int_equal(count(&g, BLK_OP_WRITE), 49);
		blk_close(fault);
	}
}

static void past_the_end(void **state)
{
	struct rig g = {.b = {.count = 3, .depth = 1, .size = 512, .off = DISK}};

	(void)state;
	open_rig(&g);
	assert_int_equal(run(&g, 1), -THR_EINVAL);
	assert_int_equal(g.err.code, -THR_EINVAL);
	blk_close(g.log);
}

static void nothing_to_do(void **state)
{
	struct rig g = {.b = {.count = 0, .depth = 4, .size = 512}};

	(void)state;
	open_rig(&g);
	assert_int_equal(run(&g, 1), 0);
	assert_int_equal(run(&g, 0), 0);
	assert_int_equal(blk_log_count(g.log), 0);
	blk_close(g.log);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_once),
		cmocka_unit_test(from_the_start_again),
		cmocka_unit_test(flushes_drain),
		cmocka_unit_test(flushes_without_draining),
		cmocka_unit_test(first_error_ends_it),
		cmocka_unit_test(past_the_end),
		cmocka_unit_test(nothing_to_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
