/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/blk_range.c - range locks: who excludes whom, in what order they are
 * granted, and that many fibers on several executors keep apart.
 */
#include "blk_util.h"

#define FIBERS 48
#define EXECS  3
#define CELLS  64u

struct job {
	struct thr_pool *pool;
	struct blk_ranges set;
	unsigned next;
	int16_t users[CELLS]; /* -1: exclusive; else how many share it */
	/* For the test of the order. */
	char order[16];
	unsigned n;
};

static void step(struct job *j, char c)
{
	j->order[j->n++] = c;
}

struct want {
	struct job *j;
	uint64_t off, len;
	bool shared;
	char name;
};

static int wanting(void *arg)
{
	struct want *w = arg;
	struct blk_range r;

	blk_range_lock(&w->j->set, &r, w->off, w->len, w->shared);
	step(w->j, w->name);
	blk_range_unlock(&w->j->set, &r);
	return 0;
}

static int order(void *arg)
{
	struct job *j = arg;
	struct want w[] = {
		{j, 10, 10, true, 'a'},  /* shares with the holder */
		{j, 15, 1, false, 'b'},  /* waits for it */
		{j, 15, 1, true, 'c'},   /* could share, but b was there first */
		{j, 20, 5, false, 'd'},  /* next to it */
		{j, 0, 100, false, 'e'}, /* waits for all */
		{j, 90, 1, true, 'f'},   /* free, but for e */
		{j, 100, 1, false, 'g'}, /* free */
	};
	struct blk_range held;
	struct thr_group g;

	blk_range_lock(&j->set, &held, 10, 10, true);
	thr_group_init(&g);
	for (unsigned i = 0; i < THR_ARRAY_SIZE(w); i++)
		thr_group_spawn(&g, NULL, wanting, &w[i]);
	for (int i = 0; i < 20; i++)
		thr_yield();
	step(j, '|');
	blk_range_unlock(&j->set, &held);
	return thr_group_wait(&g);
}

static void t_order(void **state)
{
	struct job *j = *state;

	assert_int_equal(thr_pool_run(j->pool, order, j), 0);
	assert_string_equal(j->order, "adg|bcef");
	assert_null(j->set.head);
	assert_null(j->set.tail);
}

/* The top of the address space, and locks that only touch. */
static void t_edges(void **state)
{
	struct job *j = *state;
	struct blk_range a, b, c, d;

	blk_range_lock(&j->set, &a, UINT64_MAX - 9, 10, false);
	blk_range_lock(&j->set, &b, UINT64_MAX - 10, 1, false);
	blk_range_lock(&j->set, &c, 0, 1, false);
	blk_range_lock(&j->set, &d, 1, UINT64_MAX - 11, false);
	assert_true(a.granted && b.granted && c.granted && d.granted);
	blk_range_unlock(&j->set, &b);
	blk_range_unlock(&j->set, &d);
	blk_range_unlock(&j->set, &a);
	blk_range_unlock(&j->set, &c);
	assert_null(j->set.head);
	assert_null(j->set.tail);
}

/* What the lock promises, kept count of in cells that only their holders touch. */
static int use(struct job *j, unsigned first, unsigned n, bool shared)
{
	int bad = 0;

	for (unsigned i = first; i < first + n; i++) {
		if (shared) {
			bad |= __atomic_fetch_add(&j->users[i], 1, __ATOMIC_RELAXED) < 0;
		} else {
			bad |= j->users[i] != 0;
			j->users[i] = -1;
		}
	}
	thr_yield();
	for (unsigned i = first; i < first + n; i++) {
		if (shared)
			bad |= __atomic_fetch_sub(&j->users[i], 1, __ATOMIC_RELAXED) < 1;
		else
			j->users[i] = 0;
	}
	return bad ? -THR_EBUSY : 0;
}

static int stress_fiber(void *arg)
{
	struct job *j = arg;
	uint32_t seed = 1 + __atomic_fetch_add(&j->next, 1, __ATOMIC_RELAXED);
	int err = 0;

	for (int i = 0; !err && i < 200; i++) {
		unsigned first = rnd(&seed) % CELLS;
		unsigned n = 1 + rnd(&seed) % THR_MIN(8, CELLS - first);
		bool shared = rnd(&seed) % 2;
		struct blk_range r;

		blk_range_lock(&j->set, &r, first, n, shared);
		err = use(j, first, n, shared);
		blk_range_unlock(&j->set, &r);
	}
	return err;
}

static int stress(void *arg)
{
	struct job *j = arg;
	struct thr_group g;

	thr_group_init(&g);
	for (unsigned i = 0; i < FIBERS; i++)
		thr_group_spawn(&g, thr_pool_exec(j->pool, i % EXECS), stress_fiber, j);
	return thr_group_wait(&g);
}

static void t_stress(void **state)
{
	struct job *j = *state;

	assert_int_equal(thr_pool_run(j->pool, stress, j), 0);
	assert_null(j->set.head);
}

static int setup(void **state)
{
	struct job *j = calloc(1, sizeof(*j));

	blk_ranges_init(&j->set);
	*state = j;
	return thr_pool_open(&j->pool, EXECS, &thr_heap);
}

static int teardown(void **state)
{
	struct job *j = *state;

	thr_pool_close(j->pool);
	free(j);
	return 0;
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(t_order),
		TEST(t_edges),
		TEST(t_stress),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
