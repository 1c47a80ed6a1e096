/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/blk_log.c - recording requests: order, data, what a flush covers, and
 * doing chosen entries again.
 */
#include "blk_util.h"

struct rig {
	struct purse purse;
	struct strict s;
	struct blk *log;
	uint8_t copy[4096];
	struct blk *to;
	struct thr_pool *pool;
	/* For requests held in flight. */
	unsigned hold;
	unsigned sunk;
	uint8_t sunk_byte;
};

static int setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	purse_init(&r->purse);
	strict_open(&r->s, 4096, 4096, 1, &thr_heap);
	r->s.can_zero = true;
	r->s.arg = r;
	assert_int_equal(blk_log_open(&r->log, &r->s.b, NULL, NULL, &r->purse.mem, NULL), 0);
	assert_int_equal(blk_mem_open(&r->to, r->copy, 4096, BLK_RDWR, &thr_heap, NULL), 0);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;

	blk_close(r->log);
	blk_close(r->to);
	assert_int_equal(r->purse.live, 0);
	free(r);
	return 0;
}

static void t_record(void **state)
{
	struct rig *r = *state;
	const struct blk_log_entry *e;
	char c;

	assert_int_equal(blk_size(r->log), 4096);
	assert_int_equal(blk_log_count(r->log), 0);
	assert_int_equal(write_at(r->log, 10, "data", 4, BLK_FUA, NULL), 0);
	assert_int_equal(blk_pread(r->log, 11, &c, 1), 0);
	assert_int_equal(c, 'a');
	assert_int_equal(zero_at(r->log, 20, 30, BLK_UNMAP), 0);
	assert_int_equal(discard_at(r->log, 40, 50), 0);
	assert_int_equal(blk_flush(r->log), 0);
	assert_int_equal(blk_truncate(r->log, 50, BLK_PREALLOC_OFF, NULL), -THR_ENOTSUP);
	r->s.fail = -THR_EIO;
	assert_int_equal(write_at(r->log, 10, "x", 1, 0, NULL), -THR_EIO);

	assert_int_equal(blk_log_count(r->log), 6);
	e = blk_log_get(r->log, 0);
	assert_int_equal(e->op, BLK_OP_WRITE);
	assert_int_equal(e->off, 10);
	assert_int_equal(e->len, 4);
	assert_int_equal(e->flags, BLK_FUA);
	assert_memory_equal(e->data, "data", 4);
	assert_int_equal(e->submitted, 1);
	assert_int_equal(e->completed, 2);
	assert_int_equal(e->err, 0);
	e = blk_log_get(r->log, 1);
	assert_int_equal(e->op, BLK_OP_ZERO);
	assert_int_equal(e->flags, BLK_UNMAP);
	assert_int_equal(e->len, 30);
	assert_null(e->data);
	assert_int_equal(e->submitted, 3);
	assert_int_equal(blk_log_get(r->log, 2)->op, BLK_OP_DISCARD);
	assert_int_equal(blk_log_get(r->log, 3)->op, BLK_OP_FLUSH);
	e = blk_log_get(r->log, 4);
	assert_int_equal(e->op, BLK_OP_TRUNCATE);
	assert_int_equal(e->off, 50);
	assert_int_equal(e->err, -THR_ENOTSUP);
	assert_int_equal(blk_log_get(r->log, 5)->err, -THR_EIO);
	assert_int_equal(blk_log_now(r->log), 12);
	/* The FUA write was durable below by a flush, the log flushed once. */
	assert_int_equal(r->s.flushes, 2);
}

static void t_fate(void **state)
{
	struct rig *r = *state;

	/* 1-2 write, 3-4 flush, 5-6 write, 7-8 FUA write, 9-10 flush that fails. */
	assert_int_equal(write_at(r->log, 0, "a", 1, 0, NULL), 0);
	assert_int_equal(blk_flush(r->log), 0);
	assert_int_equal(write_at(r->log, 0, "b", 1, 0, NULL), 0);
	assert_int_equal(write_at(r->log, 0, "c", 1, BLK_FUA, NULL), 0);
	r->s.fail = -THR_EIO;
	assert_int_equal(blk_flush(r->log), -THR_EIO);

	assert_int_equal(blk_log_fate(r->log, 0, 0), BLK_LOG_NOT_YET);
	assert_int_equal(blk_log_fate(r->log, 0, 1), BLK_LOG_MAYBE);
	assert_int_equal(blk_log_fate(r->log, 0, 2), BLK_LOG_MAYBE);
	assert_int_equal(blk_log_fate(r->log, 0, 3), BLK_LOG_MAYBE);
	assert_int_equal(blk_log_fate(r->log, 0, 4), BLK_LOG_DURABLE);
	assert_int_equal(blk_log_fate(r->log, 2, 4), BLK_LOG_NOT_YET);
	assert_int_equal(blk_log_fate(r->log, 2, 10), BLK_LOG_MAYBE);
	assert_int_equal(blk_log_fate(r->log, 3, 7), BLK_LOG_MAYBE);
	assert_int_equal(blk_log_fate(r->log, 3, 8), BLK_LOG_DURABLE);
}

static bool pick_even(void *arg, size_t i, const struct blk_log_entry *e)
{
	(void)arg;
	(void)e;
	return i % 2 == 0;
}

static void t_replay(void **state)
{
	struct rig *r = *state;
	uint8_t all[4096];

	for (unsigned i = 0; i < 600; i++) {
		uint8_t buf[32];

		memset(buf, (int)i & 255, sizeof(buf));
		assert_int_equal(write_at(r->log, (i * 37) % 4000, buf, 32, 0, NULL), 0);
	}
	assert_int_equal(zero_at(r->log, 100, 200, 0), 0);
	memcpy(all, r->s.buf, sizeof(all));
	assert_int_equal(blk_log_replay(r->log, r->to, NULL, NULL), 0);
	assert_memory_equal(r->copy, all, sizeof(all));

	memset(r->copy, 0, sizeof(r->copy));
	assert_int_equal(blk_log_replay(r->log, r->to, pick_even, NULL), 0);
	assert_memory_not_equal(r->copy, all, sizeof(all));
	assert_filled(r->copy + 100, 0, 200);

	/* A torn write. */
	memset(r->copy, 0xcc, sizeof(r->copy));
	assert_int_equal(blk_log_apply(blk_log_get(r->log, 1), 16, 8, r->to), 0);
	assert_filled(r->copy + 37 + 16, 1, 8);
	assert_filled(r->copy, 0xcc, 37 + 16);
	assert_filled(r->copy + 37 + 24, 0xcc, 4096 - 37 - 24);
}

static void sink(void *arg, const struct blk_log_entry *e)
{
	struct rig *r = arg;

	r->sunk++;
	if (e->completed == BLK_LOG_NEVER)
		assert_int_equal(e->submitted, r->sunk);
	else
		assert_int_equal(e->completed, r->sunk);
	if (e->data)
		r->sunk_byte = *(const uint8_t *)e->data;
}

static void t_sink(void **state)
{
	struct rig *r = *state;
	struct strict s;
	struct blk *log;

	strict_open(&s, 4096, 4096, 512, &thr_heap);
	assert_int_equal(blk_log_open(&log, &s.b, sink, r, &r->purse.mem, NULL), 0);
	assert_int_equal(write_at(log, 10, "data", 4, 0, NULL), 0);
	assert_int_equal(r->sunk, 2);
	assert_int_equal(r->sunk_byte, 'd');
	assert_int_equal(blk_flush(log), 0);
	assert_int_equal(r->sunk, 4);
	assert_int_equal(blk_log_count(log), 0);
	assert_memory_equal(s.buf + 10, "data", 4);
	blk_close(log);
}

static void t_status(void **state)
{
	struct rig *r = *state;
	struct blk_extent e;

	assert_int_equal(blk_status(r->log, 100, 200, &e), 0);
	assert_int_equal(e.flags, BLK_EXT_ALLOC | BLK_EXT_DATA | BLK_EXT_MAPPED);
	assert_int_equal(e.map, 100);
	assert_int_equal(e.len, 200);
	assert_true(blk_same(r->log, &r->s.b));
}

static void t_no_memory(void **state)
{
	struct rig *r = *state;
	unsigned failed = 0;

	for (unsigned n = 1;; n++) {
		struct strict s;
		struct blk *log;
		int err;

		strict_open(&s, 4096, 4096, 1, &thr_heap);
		r->purse.calls = 0;
		r->purse.fail_at = n;
		err = blk_log_open(&log, &s.b, NULL, NULL, &r->purse.mem, NULL);
		if (!err) {
			for (int i = 0; !err && i < 300; i++) {
				unsigned writes = s.writes;

				err = write_at(log, 0, "data", 4, 0, NULL);
				/* What could not be recorded was not written. */
				assert_int_equal(s.writes, writes + !err);
			}
			blk_close(log);
		} else {
			blk_close(&s.b);
		}
		if (!err)
			break;
		assert_int_equal(err, -THR_ENOMEM);
		/* The writes all look alike: the first and the last few will do. */
		n += n == 5 ? 290 : 0;
		failed++;
	}
	assert_true(failed > 5);
	r->purse.fail_at = 0;
}

#ifndef CONFIG_THR_NONE
/* A write that is in flight when a flush is submitted is not covered by it. */
static int held_write(struct strict *s, struct blk_req *req)
{
	struct rig *r = s->arg;

	(void)req;
	while (__atomic_load_n(&r->hold, __ATOMIC_SEQ_CST))
		thr_yield();
	return 0;
}

static int late_write(void *arg)
{
	struct rig *r = arg;

	return write_at(r->log, 0, "late", 4, 0, NULL);
}

static int overlap(void *arg)
{
	struct rig *r = arg;
	struct thr_group g;
	int err;

	r->hold = 1;
	r->s.in_write = held_write;
	thr_group_init(&g);
	thr_group_spawn(&g, NULL, late_write, r);
	while (!r->s.inside)
		thr_yield();
	err = blk_flush(r->log);
	r->hold = 0;
	thr_group_wait(&g);
	return err ? err : blk_flush(r->log);
}

static void t_overlap(void **state)
{
	struct rig *r = *state;

	assert_int_equal(thr_pool_open(&r->pool, 1, &thr_heap), 0);
	assert_int_equal(thr_pool_run(r->pool, overlap, r), 0);
	thr_pool_close(r->pool);
	/* 1 write in, 2-3 flush, 4 write out, 5-6 flush. */
	assert_int_equal(blk_log_get(r->log, 0)->submitted, 1);
	assert_int_equal(blk_log_get(r->log, 0)->completed, 4);
	assert_int_equal(blk_log_get(r->log, 1)->completed, 3);
	assert_int_equal(blk_log_fate(r->log, 0, 3), BLK_LOG_MAYBE);
	assert_int_equal(blk_log_fate(r->log, 0, 5), BLK_LOG_MAYBE);
	assert_int_equal(blk_log_fate(r->log, 0, 6), BLK_LOG_DURABLE);
}
#endif

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(t_record),
		TEST(t_fate),
		TEST(t_replay),
		TEST(t_sink),
		TEST(t_status),
		TEST(t_no_memory),
#ifndef CONFIG_THR_NONE
		TEST(t_overlap),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
