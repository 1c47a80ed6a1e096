/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/blk_fault.c - failing requests by rule.
 */
#include "blk_util.h"

struct rig {
	struct strict s;
	struct blk *b;
};

static int setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	strict_open(&r->s, 4096, 4096, 1, &thr_heap);
	r->s.can_zero = true;
	assert_int_equal(blk_fault_open(&r->b, &r->s.b, &thr_heap, NULL), 0);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;

	blk_close(r->b);
	free(r);
	return 0;
}

static int wr(struct rig *r, uint64_t off, size_t len)
{
	static const char data[512] = "................";

	return write_at(r->b, off, data, len, 0, NULL);
}

static int rd(struct rig *r, uint64_t off, size_t len)
{
	char buf[512];

	return blk_pread(r->b, off, buf, len);
}

static void t_nth(void **state)
{
	struct rig *r = *state;
	struct blk_fault f = {.ops = 1u << BLK_OP_WRITE, .nth = 3, .err = -THR_ENOSPC};

	assert_int_equal(blk_fault_add(r->b, &f), 0);
	assert_int_equal(wr(r, 0, 1), 0);
	assert_int_equal(rd(r, 0, 1), 0);
	assert_int_equal(wr(r, 0, 1), 0);
	assert_int_equal(rd(r, 0, 1), 0);
	assert_int_equal(blk_fault_fired(r->b), 0);
	assert_int_equal(wr(r, 0, 1), -THR_ENOSPC);
	assert_int_equal(r->s.writes, 2);
	assert_int_equal(wr(r, 0, 1), 0);
	assert_int_equal(blk_fault_fired(r->b), 1);
	/* For good. */
	f.always = true;
	f.nth = 2;
	assert_int_equal(blk_fault_add(r->b, &f), 0);
	assert_int_equal(wr(r, 0, 1), 0);
	assert_int_equal(wr(r, 0, 1), -THR_ENOSPC);
	assert_int_equal(wr(r, 0, 1), -THR_ENOSPC);
	blk_fault_clear(r->b);
	assert_int_equal(wr(r, 0, 1), 0);
	assert_int_equal(blk_fault_fired(r->b), 3);
}

static void t_kinds(void **state)
{
	struct rig *r = *state;
	struct blk_err err = BLK_ERR_INIT;

	for (int op = BLK_OP_READ; op <= BLK_OP_TRUNCATE; op++) {
		struct blk_fault f = {.ops = 1u << op, .err = -THR_EIO, .always = true};

		assert_int_equal(blk_fault_add(r->b, &f), 0);
		assert_int_equal(rd(r, 0, 1), op == BLK_OP_READ ? -THR_EIO : 0);
		assert_int_equal(wr(r, 0, 1), op == BLK_OP_WRITE ? -THR_EIO : 0);
		assert_int_equal(zero_at(r->b, 0, 1, 0), op == BLK_OP_ZERO ? -THR_EIO : 0);
		assert_int_equal(discard_at(r->b, 0, 1), op == BLK_OP_DISCARD ? -THR_EIO : 0);
		assert_int_equal(blk_truncate(r->b, 1, BLK_PREALLOC_OFF, &err),
			op == BLK_OP_TRUNCATE ? -THR_EIO : -THR_ENOTSUP);
		if (op == BLK_OP_FLUSH)
			assert_int_equal(blk_flush(r->b), -THR_EIO);
		blk_fault_clear(r->b);
	}
	/* A failed flush is failed, whatever the rules say now. */
	assert_int_equal(blk_flush(r->b), -THR_EIO);
	assert_int_equal(r->s.flushes, 0);
}

static void t_range(void **state)
{
	struct rig *r = *state;
	struct blk_fault f = {.off = 100, .len = 50, .err = -THR_EIO, .always = true};

	assert_int_equal(blk_fault_add(r->b, &f), 0);
	assert_int_equal(rd(r, 0, 100), 0);
	assert_int_equal(rd(r, 0, 101), -THR_EIO);
	assert_int_equal(rd(r, 149, 1), -THR_EIO);
	assert_int_equal(rd(r, 150, 10), 0);
	assert_int_equal(wr(r, 90, 100), -THR_EIO);
	assert_int_equal(blk_flush(r->b), 0);
}

static void t_after(void **state)
{
	struct rig *r = *state;
	struct blk_fault f = {
		.ops = 1u << BLK_OP_WRITE, .after = 1000, .err = -THR_ENOSPC, .always = true};

	assert_int_equal(blk_fault_add(r->b, &f), 0);
	assert_int_equal(wr(r, 0, 500), 0);
	assert_int_equal(rd(r, 0, 500), 0);
	assert_int_equal(wr(r, 0, 499), 0);
	assert_int_equal(wr(r, 0, 1), 0);
	assert_int_equal(wr(r, 0, 1), -THR_ENOSPC);
}

static void t_partial(void **state)
{
	struct rig *r = *state;
	struct blk_fault f = {.err = -THR_EIO, .partial = 6};

	assert_int_equal(blk_fault_add(r->b, &f), 0);
	assert_int_equal(wr(r, 0, 16), -THR_EIO);
	assert_memory_equal(r->s.buf, "......\0\0\0", 9);
	/* The first of two rules decides, and both count. */
	f = (struct blk_fault){.err = -THR_EPERM, .nth = 1};
	assert_int_equal(blk_fault_add(r->b, &f), 0);
	f = (struct blk_fault){.err = -THR_EACCES, .nth = 2};
	assert_int_equal(blk_fault_add(r->b, &f), 0);
	assert_int_equal(wr(r, 0, 1), -THR_EPERM);
	assert_int_equal(wr(r, 0, 1), -THR_EACCES);
	assert_int_equal(wr(r, 0, 1), 0);
}

#ifdef CONFIG_BLK_MEM_SPARSE
static int open_with(struct blk **b, struct blk_opt *v, unsigned n, const struct thr_alloc *mem,
	struct blk_err *err)
{
	struct blk_opts opts = {v, n};
	struct blk_open o = {.driver = "fault", .flags = BLK_RDWR, .opts = &opts, .mem = mem};

	return blk_open(b, &o, err);
}

static void t_options(void **state)
{
	struct blk_opt v[] = {
		{"file.driver", "mem"},
		{"file.size", "1M"},
		{"op", "write"},
		{"nth", "2"},
		{"error", "ENOSPC"},
		{"always", "on"},
	};
	struct blk_opt number = {"error", "13"};
	struct blk_err err = BLK_ERR_INIT;
	struct blk *b;

	(void)state;
	assert_int_equal(open_with(&b, v, THR_ARRAY_SIZE(v), &thr_heap, &err), 0);
	assert_int_equal(blk_size(b), 1 << 20);
	assert_int_equal(blk_pwrite(b, 0, "x", 1), 0);
	assert_int_equal(blk_pwrite(b, 0, "x", 1), -THR_ENOSPC);
	assert_int_equal(blk_pwrite(b, 0, "x", 1), -THR_ENOSPC);
	blk_close(b);
	v[3] = number;
	v[4].val = "EIO";
	v[3].key = "offset";
	assert_int_equal(open_with(&b, v, 5, &thr_heap, &err), 0);
	assert_int_equal(blk_pwrite(b, 0, "x", 1), -THR_EIO);
	assert_int_equal(blk_pwrite(b, 0, "x", 1), 0);
	blk_close(b);
	v[2] = number;
	assert_int_equal(open_with(&b, v, 3, &thr_heap, &err), 0);
	assert_int_equal(blk_pwrite(b, 0, "x", 1), -THR_EACCES);
	blk_close(b);

	v[2] = (struct blk_opt){"op", "wipe"};
	assert_int_equal(open_with(&b, v, 3, &thr_heap, &err), -THR_EINVAL);
	assert_int_equal(err.id, BLK_E_BAD_VALUE);
	v[2] = (struct blk_opt){"error", "5000"};
	assert_int_equal(open_with(&b, v, 3, &thr_heap, &err), -THR_EINVAL);
	v[2] = (struct blk_opt){"errors", "5"};
	assert_int_equal(open_with(&b, v, 3, &thr_heap, &err), -THR_EINVAL);
	assert_int_equal(err.id, BLK_E_BAD_OPTION);
	v[2] = (struct blk_opt){"file.sise", "5"};
	assert_int_equal(open_with(&b, v, 3, &thr_heap, &err), -THR_EINVAL);
	assert_int_equal(err.id, BLK_E_BAD_OPTION);
	assert_int_equal(open_with(&b, v, 0, &thr_heap, &err), -THR_EINVAL);
	assert_int_equal(err.id, BLK_E_NEED_OPTION);
}

static void t_no_memory(void **state)
{
	struct blk_opt v[] = {{"file.driver", "mem"}, {"error", "EIO"}};
	struct purse purse;
	unsigned failed = 0;

	(void)state;
	for (;; failed++) {
		struct blk *b;
		int err;

		purse_init(&purse);
		purse.fail_at = failed + 1;
		err = open_with(&b, v, 2, &purse.mem, NULL);
		if (!err)
			blk_close(b);
		assert_int_equal(purse.live, 0);
		if (!err)
			break;
		assert_int_equal(err, -THR_ENOMEM);
	}
	/* The device below, the filter, the rule. */
	assert_int_equal(failed, 3);
}
#endif

#ifndef CONFIG_THR_NONE
static void t_latency(void **state)
{
	struct rig *r = *state;
	struct blk_fault f = {.latency_ns = 3000000};
	uint64_t begun = thr_now();

	assert_int_equal(blk_fault_add(r->b, &f), 0);
	assert_int_equal(wr(r, 0, 1), 0);
	assert_true(thr_now() - begun >= 3000000);
	assert_int_equal(r->s.writes, 1);
	assert_int_equal(blk_fault_fired(r->b), 1);
}
#endif

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(t_nth),
		TEST(t_kinds),
		TEST(t_range),
		TEST(t_after),
		TEST(t_partial),
#ifdef CONFIG_BLK_MEM_SPARSE
		TEST(t_options),
		TEST(t_no_memory),
#endif
#ifndef CONFIG_THR_NONE
		TEST(t_latency),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
