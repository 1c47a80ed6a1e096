/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The metadata cache and its ordering, over a device that writes down what
 * reaches it: "w OFFSET LENGTH" and "f" for a flush.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "fmt/cache.h"

#define SLICE 512u
#define DISK  (64u * SLICE)

struct tape {
	struct blk blk;
	uint8_t disk[DISK];
	char log[1024];
	unsigned reads;
	int fail_write, fail_flush, fail_read;
};

static void note(struct tape *t, const char *what)
{
	strncat(t->log, what, sizeof(t->log) - strlen(t->log) - 1);
}

static int tape_preadv(struct blk *b, struct blk_req *r)
{
	struct tape *t = THR_CONTAINER(b, struct tape, blk);

	t->reads++;
	if (t->fail_read)
		return t->fail_read;
	blk_req_from_buf(r, 0, t->disk + r->off, r->len);
	return 0;
}

static int tape_pwritev(struct blk *b, struct blk_req *r)
{
	struct tape *t = THR_CONTAINER(b, struct tape, blk);
	char s[48];

	if (t->fail_write)
		return t->fail_write;
	snprintf(s, sizeof(s), "w%u+%u ", (unsigned)(r->off / SLICE),
		(unsigned)(r->len / SLICE));
	note(t, s);
	blk_req_to_buf(r, 0, t->disk + r->off, r->len);
	return 0;
}

static int tape_flush(struct blk *b)
{
	struct tape *t = THR_CONTAINER(b, struct tape, blk);

	if (t->fail_flush)
		return t->fail_flush;
	note(t, "f ");
	return 0;
}

static const struct blk_ops tape_ops = {
	.name = "tape",
	.preadv = tape_preadv,
	.pwritev = tape_pwritev,
	.flush = tape_flush,
};

struct rig {
	struct tape tape;
	struct fmt_cache *c;
	struct blk *file;
};

static void rig_open(struct rig *g, unsigned max)
{
	memset(g, 0, sizeof(*g));
	g->file = &g->tape.blk;
	blk_init(g->file, &tape_ops, "tape", BLK_RDWR, &thr_heap);
	blk_set_size(g->file, DISK);
	assert_int_equal(fmt_cache_open(&g->c, SLICE, max, &thr_heap), 0);
	assert_int_equal(fmt_cache_attach(g->c, g->file), 0);
	fmt_cache_lock(g->c);
}

static void rig_close(struct rig *g)
{
	fmt_cache_unlock(g->c);
	fmt_cache_detach(g->c, g->file);
	fmt_cache_close(g->c);
	blk_fini(g->file);
}

static void expect_log(struct rig *g, const char *want)
{
	assert_string_equal(g->tape.log, want);
	g->tape.log[0] = 0;
}

static struct fmt_slice *get(struct rig *g, unsigned n)
{
	struct fmt_slice *s = NULL;

	assert_int_equal(fmt_slice_get(g->c, g->file, n * SLICE, &s), 0);
	return s;
}

/* Changes slice @n; @epoch 0: comes after nothing in particular. */
static void change(struct rig *g, unsigned n, enum fmt_rank rank, uint8_t val, uint64_t epoch)
{
	struct fmt_slice *s = get(g, n);

	memset(s->data, val, SLICE);
	fmt_slice_dirty(g->c, s, rank, 0, SLICE);
	if (epoch)
		fmt_slice_after(g->c, s, epoch);
	fmt_slice_put(g->c, s);
}

static void fresh(struct rig *g, unsigned n, enum fmt_rank rank)
{
	struct fmt_slice *s;

	assert_int_equal(fmt_slice_new(g->c, g->file, n * SLICE, rank, &s), 0);
	fmt_slice_put(g->c, s);
}

static void reads_once(void **state)
{
	struct rig g;
	struct fmt_slice *a, *b;

	(void)state;
	rig_open(&g, 16);
	g.tape.disk[3 * SLICE + 7] = 42;
	a = get(&g, 3);
	assert_int_equal(a->data[7], 42);
	assert_int_equal(fmt_slice_get(g.c, g.file, 3 * SLICE + 100, &b), 0);
	assert_ptr_equal(a, b);
	assert_int_equal(g.tape.reads, 1);
	assert_int_equal(fmt_slice_peek(g.c, g.file, 4 * SLICE, &b), -THR_EAGAIN);
	fmt_slice_put(g.c, a);
	fmt_slice_put(g.c, a);
	rig_close(&g);
}

static void evicts_the_oldest_and_never_the_pinned(void **state)
{
	struct rig g;
	struct fmt_slice *held, *s;
	unsigned i;

	(void)state;
	rig_open(&g, 4);
	held = get(&g, 0);
	for (i = 1; i < 20; i++)
		fmt_slice_put(g.c, get(&g, i));
	assert_int_equal(g.tape.reads, 20);
	assert_int_equal(fmt_slice_peek(g.c, g.file, 0, &s), 0);
	fmt_slice_put(g.c, s);
	assert_int_equal(fmt_slice_peek(g.c, g.file, 19 * SLICE, &s), 0);
	fmt_slice_put(g.c, s);
	assert_int_equal(fmt_slice_peek(g.c, g.file, 2 * SLICE, &s), -THR_EAGAIN);
	fmt_slice_put(g.c, held);
	rig_close(&g);
}

static void read_errors_are_not_cached(void **state)
{
	struct rig g;
	struct fmt_slice *s;

	(void)state;
	rig_open(&g, 4);
	g.tape.fail_read = -THR_EIO;
	assert_int_equal(fmt_slice_get(g.c, g.file, 0, &s), -THR_EIO);
	g.tape.fail_read = 0;
	fmt_slice_put(g.c, get(&g, 0));
	rig_close(&g);
}

static void past_the_end_reads_zeroes(void **state)
{
	struct rig g;
	struct fmt_slice *s;

	(void)state;
	rig_open(&g, 4);
	assert_int_equal(fmt_slice_get(g.c, g.file, 2 * DISK, &s), 0);
	assert_int_equal(s->data[0] | s->data[SLICE - 1], 0);
	fmt_slice_put(g.c, s);
	rig_close(&g);
}

static void nothing_dirty_costs_nothing(void **state)
{
	struct rig g;

	(void)state;
	rig_open(&g, 16);
	fmt_slice_put(g.c, get(&g, 1));
	assert_int_equal(fmt_cache_flush(g.c, g.file), 0);
	expect_log(&g, "");
	fmt_cache_wrote(g.c, g.file);
	assert_int_equal(fmt_cache_flush(g.c, g.file), 0);
	assert_int_equal(fmt_cache_flush(g.c, g.file), 0);
	expect_log(&g, "f ");
	rig_close(&g);
}

static void ranks_go_in_order_with_one_flush_between(void **state)
{
	struct rig g;

	(void)state;
	rig_open(&g, 32);
	change(&g, 9, FMT_RANK_L1, 1, 0);
	change(&g, 5, FMT_RANK_L2, 1, 0);
	change(&g, 1, FMT_RANK_REFBLOCK, 1, 0);
	assert_int_equal(fmt_cache_flush(g.c, g.file), 0);
	expect_log(&g, "w1+1 f w5+1 f w9+1 f ");
	change(&g, 5, FMT_RANK_L2, 2, 0);
	assert_int_equal(fmt_cache_flush(g.c, g.file), 0);
	expect_log(&g, "w5+1 f ");
	rig_close(&g);
}

static void neighbours_go_out_in_one_write(void **state)
{
	struct rig g;
	unsigned i;
	static const unsigned order[] = {7, 3, 5, 4, 6, 12, 11};

	(void)state;
	rig_open(&g, 32);
	for (i = 0; i < THR_ARRAY_SIZE(order); i++)
		change(&g, order[i], FMT_RANK_L2, (uint8_t)order[i], 0);
	assert_int_equal(fmt_cache_writeback(g.c, g.file), 0);
	expect_log(&g, "w3+5 w11+2 ");
	for (i = 0; i < THR_ARRAY_SIZE(order); i++)
		assert_int_equal(g.tape.disk[order[i] * SLICE], order[i]);
	rig_close(&g);
}

static void data_is_durable_before_its_entry(void **state)
{
	struct rig g;
	uint64_t epoch;

	(void)state;
	rig_open(&g, 32);
	fmt_cache_wrote(g.c, g.file);
	epoch = fmt_cache_epoch(g.c, g.file);
	assert_false(fmt_cache_durable(g.c, g.file, epoch));
	change(&g, 1, FMT_RANK_REFBLOCK, 1, 0);
	change(&g, 5, FMT_RANK_L2, 1, epoch);
	assert_int_equal(fmt_cache_flush(g.c, g.file), 0);
	expect_log(&g, "w1+1 f w5+1 f ");
	assert_true(fmt_cache_durable(g.c, g.file, epoch));
	change(&g, 5, FMT_RANK_L2, 2, fmt_cache_epoch(g.c, g.file));
	assert_int_equal(fmt_cache_flush(g.c, g.file), 0);
	expect_log(&g, "f w5+1 f ");
	rig_close(&g);
}

static void order_holds_across_write_backs(void **state)
{
	struct rig g;

	(void)state;
	rig_open(&g, 32);
	change(&g, 1, FMT_RANK_REFBLOCK, 1, 0);
	assert_int_equal(fmt_cache_writeback(g.c, g.file), 0);
	change(&g, 5, FMT_RANK_L2, 1, 0);
	assert_int_equal(fmt_cache_writeback(g.c, g.file), 0);
	expect_log(&g, "w1+1 f w5+1 ");
	assert_int_equal(fmt_cache_flush(g.c, g.file), 0);
	expect_log(&g, "f ");
	rig_close(&g);
}

static void fresh_tables_do_not_wait_but_are_waited_for(void **state)
{
	struct rig g;

	(void)state;
	rig_open(&g, 32);
	fresh(&g, 5, FMT_RANK_L2);
	change(&g, 5, FMT_RANK_L2, 3, fmt_cache_epoch(g.c, g.file));
	change(&g, 1, FMT_RANK_REFBLOCK, 1, 0);
	change(&g, 9, FMT_RANK_L1, 1, 0);
	assert_int_equal(fmt_cache_flush(g.c, g.file), 0);
	expect_log(&g, "w1+1 w5+1 f w9+1 f ");
	change(&g, 5, FMT_RANK_L2, 4, fmt_cache_epoch(g.c, g.file));
	assert_int_equal(fmt_cache_writeback(g.c, g.file), 0);
	expect_log(&g, "f w5+1 ");
	rig_close(&g);
}

static void lazy_tables_do_not_wait_for_counts(void **state)
{
	struct rig g;

	(void)state;
	rig_open(&g, 32);
	fmt_cache_lazy(g.c, g.file, true);
	change(&g, 1, FMT_RANK_REFBLOCK, 1, 0);
	change(&g, 5, FMT_RANK_L2, 1, 0);
	change(&g, 9, FMT_RANK_L1, 1, 0);
	assert_int_equal(fmt_cache_flush(g.c, g.file), 0);
	expect_log(&g, "w1+1 w5+1 f w9+1 f ");
	rig_close(&g);
}

static void only_changed_sectors_are_written(void **state)
{
	struct rig g;
	struct fmt_cache *c;
	struct fmt_slice *s;

	(void)state;
	rig_open(&g, 8);
	assert_int_equal(fmt_cache_open(&c, 8 * SLICE, 4, &thr_heap), 0);
	assert_int_equal(fmt_cache_attach(c, g.file), 0);
	fmt_cache_lock(c);
	assert_int_equal(fmt_slice_get(c, g.file, 8 * SLICE, &s), 0);
	s->data[2 * SLICE + 8] = 1;
	fmt_slice_dirty(c, s, FMT_RANK_L2, 2 * SLICE + 8, 2 * SLICE + 16);
	fmt_slice_put(c, s);
	assert_int_equal(fmt_cache_writeback(c, g.file), 0);
	expect_log(&g, "w10+1 ");
	fmt_cache_unlock(c);
	fmt_cache_detach(c, g.file);
	fmt_cache_close(c);
	rig_close(&g);
}

static void dirty_slices_press_and_survive_pressure(void **state)
{
	struct rig g;
	unsigned i;

	(void)state;
	rig_open(&g, 8);
	for (i = 0; i < 12; i++) {
		assert_int_equal(fmt_cache_pressed(g.c), i >= 4);
		change(&g, i, FMT_RANK_L2, (uint8_t)(i + 1), 0);
	}
	assert_int_equal(fmt_cache_writeback(g.c, g.file), 0);
	assert_false(fmt_cache_pressed(g.c));
	for (i = 0; i < 12; i++)
		assert_int_equal(g.tape.disk[i * SLICE], i + 1);
	rig_close(&g);
}

static void a_failed_write_stays_dirty_and_fails_for_good(void **state)
{
	struct rig g;
	struct fmt_slice *s;

	(void)state;
	rig_open(&g, 8);
	change(&g, 1, FMT_RANK_L2, 7, 0);
	g.tape.fail_write = -THR_ENOSPC;
	assert_int_equal(fmt_cache_flush(g.c, g.file), -THR_ENOSPC);
	g.tape.fail_write = 0;
	assert_int_equal(fmt_cache_flush(g.c, g.file), -THR_ENOSPC);
	expect_log(&g, "");
	s = get(&g, 1);
	assert_int_equal(s->data[0], 7);
	assert_true(s->dirty);
	fmt_slice_put(g.c, s);
	rig_close(&g);
}

static void a_failed_flush_fails_for_good(void **state)
{
	struct rig g;

	(void)state;
	rig_open(&g, 8);
	change(&g, 1, FMT_RANK_REFBLOCK, 7, 0);
	change(&g, 2, FMT_RANK_L2, 7, 0);
	g.tape.fail_flush = -THR_EIO;
	assert_int_equal(fmt_cache_flush(g.c, g.file), -THR_EIO);
	g.tape.fail_flush = 0;
	assert_int_equal(fmt_cache_flush(g.c, g.file), -THR_EIO);
	expect_log(&g, "w1+1 ");
	rig_close(&g);
}

static void forgotten_tables_are_not_written(void **state)
{
	struct rig g;
	struct fmt_slice *s;

	(void)state;
	rig_open(&g, 8);
	change(&g, 1, FMT_RANK_L1, 7, 0);
	change(&g, 2, FMT_RANK_L1, 7, 0);
	change(&g, 3, FMT_RANK_L1, 7, 0);
	fmt_cache_forget(g.c, g.file, 1 * SLICE, 2 * SLICE);
	assert_int_equal(fmt_cache_flush(g.c, g.file), 0);
	expect_log(&g, "w3+1 f ");
	s = get(&g, 2);
	assert_int_equal(s->data[0], 0);
	fmt_slice_put(g.c, s);
	rig_close(&g);
}

/* The n-th allocation fails, for every n until none does. */
struct scarce {
	struct thr_alloc alloc;
	unsigned left, live;
};

static void *scarce_get(void *ctx, size_t size, size_t align)
{
	struct scarce *s = ctx;
	void *p;

	if (!s->left)
		return NULL;
	s->left--;
	p = thr_get(&thr_heap, size, align);
	s->live += p != NULL;
	return p;
}

static void scarce_put(void *ctx, void *p, size_t size)
{
	struct scarce *s = ctx;

	s->live--;
	thr_put(&thr_heap, p, size);
}

static int cache_job(struct scarce *s, struct tape *t)
{
	struct fmt_cache *c;
	struct fmt_slice *sl;
	int err = fmt_cache_open(&c, SLICE, 16, &s->alloc);
	unsigned i;

	if (err)
		return err;
	err = fmt_cache_attach(c, &t->blk);
	if (err)
		goto out;
	fmt_cache_lock(c);
	for (i = 0; i < 12 && !err; i++) {
		err = fmt_slice_new(c, &t->blk, i * SLICE, FMT_RANK_L2, &sl);
		if (!err)
			fmt_slice_put(c, sl);
	}
	if (!err)
		err = fmt_cache_flush(c, &t->blk);
	fmt_cache_unlock(c);
	fmt_cache_detach(c, &t->blk);
out:
	fmt_cache_close(c);
	return err;
}

static void survives_any_failed_allocation(void **state)
{
	struct rig g;
	unsigned n;
	int err = -1;

	(void)state;
	rig_open(&g, 4);
	for (n = 0; n < 1000 && err; n++) {
		struct scarce s = {{scarce_get, scarce_put, &s}, n, 0};

		err = cache_job(&s, &g.tape);
		assert_true(!err || err == -THR_ENOMEM);
		assert_int_equal(s.live, 0);
	}
	assert_int_equal(err, 0);
	assert_true(n > 10);
	rig_close(&g);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_once),
		cmocka_unit_test(evicts_the_oldest_and_never_the_pinned),
		cmocka_unit_test(read_errors_are_not_cached),
		cmocka_unit_test(past_the_end_reads_zeroes),
		cmocka_unit_test(nothing_dirty_costs_nothing),
		cmocka_unit_test(ranks_go_in_order_with_one_flush_between),
		cmocka_unit_test(neighbours_go_out_in_one_write),
		cmocka_unit_test(data_is_durable_before_its_entry),
		cmocka_unit_test(order_holds_across_write_backs),
		cmocka_unit_test(fresh_tables_do_not_wait_but_are_waited_for),
		cmocka_unit_test(lazy_tables_do_not_wait_for_counts),
		cmocka_unit_test(only_changed_sectors_are_written),
		cmocka_unit_test(dirty_slices_press_and_survive_pressure),
		cmocka_unit_test(a_failed_write_stays_dirty_and_fails_for_good),
		cmocka_unit_test(a_failed_flush_fails_for_good),
		cmocka_unit_test(forgotten_tables_are_not_written),
		cmocka_unit_test(survives_any_failed_allocation),
	};

	return cmocka_run_group_tests_name("fmt_cache", tests, NULL, NULL);
}
