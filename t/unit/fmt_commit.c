/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Commit: the order in which the base and the overlay are written, and what a cut leaves
 * of an overlay that is being emptied. An overlay of qcow2 stands on a raw base; both are
 * recorded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "t/fixtures/qcow2_rig.h"

#define SIZE (4u << 20)
#define STEP 4096u

struct rig {
	struct blk *base_disk, *top_disk;
	struct blk *base_log, *top_log;
	struct blk *base, *top;
	uint64_t clock, base_flushed, base_written;
};

/* When the base was last written and last flushed. */
static void watch_base(void *arg, const struct blk_log_entry *e)
{
	struct rig *g = arg;

	g->clock++;
	if (e->op == BLK_OP_FLUSH && e->completed != BLK_LOG_NEVER)
		g->base_flushed = g->clock;
	else if (e->op != BLK_OP_FLUSH)
		g->base_written = g->clock;
}

static uint8_t content(uint64_t off)
{
	return (uint8_t)(off / STEP * 13 % 7 ? off / STEP % 251 + 1 : 0);
}

static void fill(struct blk *b, uint64_t off, uint64_t len)
{
	uint8_t *buf = test_malloc(len);

	for (uint64_t at = 0; at < len; at += STEP)
		memset(buf + at, content(off + at), STEP);
	assert_int_equal(blk_pwrite(b, off, buf, len), 0);
	test_free(buf);
}

static void assert_content(struct blk *b)
{
	uint8_t *buf = test_malloc(SIZE);

	assert_int_equal(blk_pread(b, 0, buf, SIZE), 0);
	for (uint64_t at = 0; at < SIZE; at++)
		assert_int_equal(buf[at], content(at & ~(uint64_t)(STEP - 1)));
	test_free(buf);
}

static struct blk *raw_over(struct blk *file)
{
	struct fmt_open o = {.format = "raw", .blk_flags = BLK_RDWR, .mem = &thr_heap};
	struct blk *b;

	assert_int_equal(fmt_open_on(&b, file, &o, NULL), 0);
	return b;
}

/* The base is half as long, has some of it right, and the overlay has the rest. */
static void rig_open(struct rig *g, unsigned version, bool watch)
{
	struct geo geo = {.version = version,
		.cluster_bits = 16,
		.refcount_order = 4,
		.size = SIZE,
		.backing = SIZE / 2};
	struct blk *b;

	memset(g, 0, sizeof(*g));
	g->base_disk = backing_new(SIZE / 2);
	fill(g->base_disk, 0, 512u << 10);
	g->top_disk = disk_new();
	image_make(g->top_disk, &geo);
	b = image_open(disk_lend(g->top_disk, 0), g->base_disk, 0);
	fill(b, 512u << 10, SIZE - (512u << 10));
	assert_int_equal(fmt_close(b), 0);
	assert_int_equal(blk_log_open(&g->base_log, disk_lend(g->base_disk, 0),
				 watch ? watch_base : NULL, g, &thr_heap, NULL),
		0);
	assert_int_equal(blk_log_open(&g->top_log, disk_lend(g->top_disk, 0), NULL, NULL,
				 &thr_heap, NULL),
		0);
	g->base = raw_over(g->base_log);
	g->top = image_open(g->top_log, NULL, 0);
	fmt_set_backing(g->top, g->base);
}

static void rig_close(struct rig *g)
{
	assert_int_equal(fmt_close(g->top), 0);
	image_assert_sound(g->top_disk);
	blk_close(g->top_disk);
	blk_close(g->base_disk);
}

static int commit(struct rig *g, bool keep)
{
	struct fmt_commit c = {.image = g->top, .base = g->base, .keep = keep};
	struct blk_err err = BLK_ERR_INIT;

	return fmt_commit(&c, &err);
}

static void assert_empty(struct blk *top, bool want)
{
	struct blk_extent e;
	bool empty = true;

	for (uint64_t off = 0; off < SIZE; off += e.len) {
		assert_int_equal(blk_status(top, off, SIZE - off, &e), 0);
		empty &= !(e.flags & BLK_EXT_ALLOC);
	}
	assert_int_equal(empty, want);
}

static void the_base_gets_all_of_it(void **state)
{
	struct rig g;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		rig_open(&g, i & 1 ? 2 : 3, true);
		assert_int_equal(commit(&g, i & 2), 0);
		assert_int_equal(blk_size(g.base), SIZE);
		assert_true(g.base_flushed > g.base_written);
		assert_content(g.base);
		assert_content(g.top);
		assert_empty(g.top, !(i & 2));
		if (i & 2)
			assert_int_equal(blk_log_count(g.top_log), 0);
		rig_close(&g);
	}
}

/* The base is durable when the overlay changes for the first time: the overlay's device
 * fails that change, and the base is looked at then. */
static void the_base_is_durable_first(void **state)
{
	struct blk_fault rule = {.ops = ~(1u << BLK_OP_READ | 1u << BLK_OP_FLUSH),
		.err = -THR_EIO,
		.always = true};
	struct blk *faulty;
	struct rig g;

	(void)state;
	rig_open(&g, 3, true);
	g.top->backing = NULL;
	assert_int_equal(fmt_close(g.top), 0);
	assert_int_equal(blk_fault_open(&faulty, disk_lend(g.top_disk, 0), &thr_heap, NULL), 0);
	assert_int_equal(blk_fault_add(faulty, &rule), 0);
	g.top = image_open(faulty, NULL, 0);
	fmt_set_backing(g.top, g.base);
	assert_int_equal(commit(&g, false), -THR_EIO);
	assert_true(g.base_flushed > g.base_written);
	assert_content(g.base);
	assert_content(g.top);
	(void)fmt_close(g.top);
	blk_close(g.top_disk);
	blk_close(g.base_disk);
}

/* A state that a cut may leave: what had to survive, and some of the rest. */
static void cut(struct blk *log, struct blk *to, uint64_t at, uint64_t *seed)
{
	for (size_t i = 0; i < blk_log_count(log); i++) {
		const struct blk_log_entry *e = blk_log_get(log, i);
		enum blk_log_fate fate = blk_log_fate(log, i, at);

		if (e->op != BLK_OP_FLUSH &&
			(fate == BLK_LOG_DURABLE || (fate == BLK_LOG_MAYBE && rnd(seed, 2))))
			assert_int_equal(blk_log_apply(e, 0, e->len, to), 0);
	}
}

/* Whatever part of the overlay has been given up, the guest sees no difference. */
static void a_cut_while_emptying_shows_nothing(void **state)
{
	uint64_t seed = 1;
	unsigned states = 0;

	(void)state;
	for (unsigned version = 2; version <= 3; version++) {
		struct blk *before;
		struct rig g;

		rig_open(&g, version, false);
		before = disk_copy(g.top_disk);
		assert_int_equal(commit(&g, false), 0);
		for (uint64_t at = 0; at <= blk_log_now(g.top_log); at++) {
			struct blk *disk = disk_copy(before);
			struct blk *b;

			cut(g.top_log, disk, at, &seed);
			assert_int_equal(image_verify(disk, true).bad, 0);
			b = image_open(disk_lend(disk, 0), g.base_disk, 0);
			assert_content(b);
			assert_int_equal(fmt_close(b), 0);
			blk_close(disk);
			states++;
		}
		blk_close(before);
		rig_close(&g);
	}
	assert_true(states > 4);
}

/* A base that cannot be written: the overlay is not touched. */
static void an_error_leaves_the_overlay(void **state)
{
	struct blk_fault rule = {.ops = 1u << BLK_OP_WRITE, .err = -THR_ENOSPC, .always = true};
	struct blk *faulty;
	struct rig g;

	(void)state;
	rig_open(&g, 3, true);
	g.top->backing = NULL;
	blk_close(g.base);
	assert_int_equal(
		blk_fault_open(&faulty, disk_lend(g.base_disk, 0), &thr_heap, NULL), 0);
	assert_int_equal(blk_fault_add(faulty, &rule), 0);
	g.base = raw_over(faulty);
	fmt_set_backing(g.top, g.base);
	assert_int_equal(commit(&g, false), -THR_ENOSPC);
	assert_int_equal(blk_log_count(g.top_log), 0);
	rig_close(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_base_gets_all_of_it),
		cmocka_unit_test(the_base_is_durable_first),
		cmocka_unit_test(a_cut_while_emptying_shows_nothing),
		cmocka_unit_test(an_error_leaves_the_overlay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
