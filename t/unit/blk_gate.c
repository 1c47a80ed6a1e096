/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/blk_gate.c - drains: nothing is in flight after one has begun, nothing
 * new gets in before it ends, and what a request does on its behalf passes.
 */
#include "blk_util.h"

#define FIBERS 32
#define EXECS  3

struct job {
	struct thr_pool *pool;
	struct strict s;
	bool stop;
	bool drained;  /* nobody may be inside */
	unsigned next; /* writers take their bytes here */
	unsigned done;
	unsigned drains;
};

static int check_alone(struct strict *s, struct blk_req *r)
{
	struct job *j = s->arg;

	(void)r;
	return __atomic_load_n(&j->drained, __ATOMIC_SEQ_CST) ? -THR_EBUSY : 0;
}

static int writer(void *arg)
{
	struct job *j = arg;
	unsigned me = __atomic_fetch_add(&j->next, 1, __ATOMIC_SEQ_CST);
	int err = 0;

	while (!err && !__atomic_load_n(&j->stop, __ATOMIC_SEQ_CST)) {
		err = blk_pwrite(&j->s.b, me, "x", 1);
		__atomic_add_fetch(&j->done, 1, __ATOMIC_SEQ_CST);
		thr_yield();
	}
	return err;
}

static unsigned inside(struct job *j)
{
	return __atomic_load_n(&j->s.inside, __ATOMIC_SEQ_CST);
}

static int drain_once(struct job *j)
{
	unsigned done, was = __atomic_load_n(&j->done, __ATOMIC_SEQ_CST);

	blk_drain_begin(&j->s.b);
	__atomic_store_n(&j->drained, true, __ATOMIC_SEQ_CST);
	if (inside(j))
		return -THR_EBUSY;
	for (int i = 0; i < 5; i++)
		thr_yield();
	if (inside(j))
		return -THR_EBUSY;
	__atomic_store_n(&j->drained, false, __ATOMIC_SEQ_CST);
	blk_drain_end(&j->s.b);
	/* And on they go. */
	do {
		thr_yield();
		done = __atomic_load_n(&j->done, __ATOMIC_SEQ_CST);
	} while (done < was + 4 * FIBERS);
	return 0;
}

static int drainer(void *arg)
{
	struct job *j = arg;
	int err = 0;

	for (unsigned i = 0; !err && i < j->drains; i++)
		err = drain_once(j);
	__atomic_store_n(&j->stop, true, __ATOMIC_SEQ_CST);
	return err;
}

static int all(void *arg)
{
	struct job *j = arg;
	struct thr_group g;

	thr_group_init(&g);
	for (unsigned i = 0; i < FIBERS; i++)
		thr_group_spawn(&g, thr_pool_exec(j->pool, i % EXECS), writer, j);
	thr_group_spawn(&g, thr_pool_exec(j->pool, 1), drainer, j);
	return thr_group_wait(&g);
}

static int setup(void **state)
{
	struct job *j = calloc(1, sizeof(*j));

	strict_open(&j->s, FIBERS, FIBERS, 1, &thr_heap);
	j->s.arg = j;
	j->s.in_write = check_alone;
	j->drains = 30;
	*state = j;
	return thr_pool_open(&j->pool, EXECS, &thr_heap);
}

static int teardown(void **state)
{
	struct job *j = *state;

	thr_pool_close(j->pool);
	blk_close(&j->s.b);
	free(j);
	return 0;
}

static void t_drain(void **state)
{
	struct job *j = *state;

	assert_int_equal(thr_pool_run(j->pool, all, j), 0);
}

/* Drains within drains: open only when the last has ended. */
static int late_writer(void *arg)
{
	struct job *j = arg;
	int err = blk_pwrite(&j->s.b, 0, "x", 1);

	__atomic_add_fetch(&j->done, 1, __ATOMIC_SEQ_CST);
	return err;
}

static int nested(void *arg)
{
	struct job *j = arg;
	struct thr_group g;

	blk_drain_begin(&j->s.b);
	blk_drain_begin(&j->s.b);
	thr_group_init(&g);
	thr_group_spawn(&g, NULL, late_writer, j);
	for (int i = 0; i < 10; i++)
		thr_yield();
	blk_drain_end(&j->s.b);
	for (int i = 0; i < 10; i++)
		thr_yield();
	if (j->done)
		return -THR_EBUSY;
	blk_drain_end(&j->s.b);
	return thr_group_wait(&g);
}

static void t_nested(void **state)
{
	struct job *j = *state;

	assert_int_equal(thr_pool_run(j->pool, nested, j), 0);
	assert_int_equal(j->done, 1);
}

/* A write that, in the middle of a drain, needs a read of the same device. */
static int read_on_behalf(struct strict *s, struct blk_req *w)
{
	struct job *j = s->arg;
	struct thr_iov v = {.base = &(char){0}, .len = 1};
	struct blk_req r = {.len = 1, .iov = &v, .niov = 1, .flags = BLK_CHILD};

	(void)w;
	/* The top bit: a drain is on. */
	while (!(__atomic_load_n(&j->s.b.inflight[BLK_SLOTS - 1].n, __ATOMIC_SEQ_CST) >> 31))
		thr_yield();
	return blk_preadv(&s->b, &r);
}

static int child_drainer(void *arg)
{
	struct job *j = arg;

	while (!inside(j))
		thr_yield();
	blk_drain_begin(&j->s.b);
	if (j->s.reads == 1 && j->s.writes == 1 && !inside(j))
		__atomic_add_fetch(&j->done, 1, __ATOMIC_SEQ_CST);
	blk_drain_end(&j->s.b);
	return 0;
}

static int child(void *arg)
{
	struct job *j = arg;
	struct thr_group g;

	thr_group_init(&g);
	thr_group_spawn(&g, thr_pool_exec(j->pool, 0), child_drainer, j);
	thr_group_spawn(&g, thr_pool_exec(j->pool, 1), late_writer, j);
	return thr_group_wait(&g);
}

static void t_child(void **state)
{
	struct job *j = *state;

	j->s.in_write = read_on_behalf;
	assert_int_equal(thr_pool_run(j->pool, child, j), 0);
	assert_int_equal(j->done, 2);
}

/* From a plain thread, while fibers write. */
static int writers(void *arg)
{
	struct job *j = arg;
	struct thr_group g;

	thr_group_init(&g);
	for (unsigned i = 0; i < FIBERS; i++)
		thr_group_spawn(&g, thr_pool_exec(j->pool, i % EXECS), writer, j);
	return thr_group_wait(&g);
}

static void start_writers(void *arg)
{
	struct job *j = arg;

	if (writers(j))
		__atomic_store_n(&j->drains, 0, __ATOMIC_SEQ_CST);
}

static void t_plain_thread(void **state)
{
	struct job *j = *state;

	assert_int_equal(thr_spawn(thr_pool_exec(j->pool, 0), start_writers, j), 0);
	assert_int_equal(drainer(j), 0);
	thr_pool_close(j->pool);
	j->pool = NULL;
	assert_int_equal(j->drains, 30);
	assert_int_equal(inside(j), 0);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(t_drain),
		TEST(t_nested),
		TEST(t_child),
		TEST(t_plain_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
