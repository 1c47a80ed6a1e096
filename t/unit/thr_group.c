/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/thr_group.c - fibers that are waited for together.
 */
#include <stdlib.h>

#include "thr_team.h"

struct job {
	struct thr_group *g;
	uint32_t *ran; /* atomic */
	unsigned yields;
	int ret;
};

static int work(void *arg)
{
	struct job *j = arg;

	for (unsigned i = 0; i < j->yields; i++)
		thr_yield();
	__atomic_fetch_add(j->ran, 1, __ATOMIC_RELAXED);
	return j->ret;
}

/* Members here and on the other executors; groups within groups. */
static int all_fine_body(void *arg)
{
	struct thr_pool *p = thr_pool_self();
	unsigned depth = *(unsigned *)arg;
	struct thr_group g;
	struct job j[24];
	uint32_t ran = 0;

	thr_group_init(&g);
	CHECK(thr_group_wait(&g) == 0);
	for (unsigned i = 0; i < 24; i++) {
		struct thr_exec *e = i % 4 == 3 ? NULL : thr_pool_exec(p, i % 3);

		j[i] = (struct job){.g = &g, .ran = &ran, .yields = i % 5};
		CHECK(thr_group_spawn(&g, e, work, &j[i]) == 0);
	}
	if (depth) {
		depth--;
		for (unsigned i = 0; i < 3; i++)
			CHECK(thr_group_spawn(&g, thr_pool_exec(p, i), all_fine_body, &depth) ==
				0);
	}
	CHECK(thr_group_wait(&g) == 0);
	CHECK(!thr_group_cancelled(&g));
	CHECK(ran == 24);

	/* The same group again. */
	CHECK(thr_group_spawn(&g, NULL, work, &j[0]) == 0);
	CHECK(thr_group_wait(&g) == 0);
	CHECK(ran == 25);
	return 0;
}

static void waits_for_all(void **state)
{
	unsigned depth = 2;

	(void)state;
	team_fiber(3, all_fine_body, &depth);
}

static int until_cancelled(void *arg)
{
	struct job *j = arg;

	while (!thr_group_cancelled(j->g))
		thr_sleep(100000);
	__atomic_fetch_add(j->ran, 1, __ATOMIC_RELAXED);
	return -THR_ECANCELED;
}

static int error_body(void *arg)
{
	struct thr_pool *p = thr_pool_self();
	struct thr_group g;
	uint32_t ran = 0;
	struct job loop = {.g = &g, .ran = &ran};
	struct job fails = {.g = &g, .ran = &ran, .yields = 3, .ret = -THR_ENOSPC};

	(void)arg;
	thr_group_init(&g);
	for (unsigned i = 0; i < 9; i++)
		CHECK(thr_group_spawn(&g, thr_pool_exec(p, i % 3), until_cancelled, &loop) ==
			0);
	CHECK(thr_group_spawn(&g, thr_pool_exec(p, 1), work, &fails) == 0);
	CHECK(thr_group_wait(&g) == -THR_ENOSPC);
	CHECK(thr_group_cancelled(&g));
	CHECK(ran == 10);
	return 0;
}

static void first_error_cancels(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++)
		team_fiber(3, error_body, NULL);
}

static int cancel_body(void *arg)
{
	struct thr_group g;
	uint32_t ran = 0;
	struct job loop = {.g = &g, .ran = &ran};

	(void)arg;
	thr_group_init(&g);
	CHECK(thr_group_spawn(&g, NULL, until_cancelled, &loop) == 0);
	thr_yield();
	thr_group_cancel(&g, -THR_EIO);
	thr_group_cancel(&g, -THR_EPIPE);
	CHECK(thr_group_wait(&g) == -THR_EIO);
	CHECK(ran == 1);
	return 0;
}

static void cancelled_from_outside(void **state)
{
	(void)state;
	team_fiber(1, cancel_body, NULL);
}

/* A plain thread calls what has no executor, and waits for what has. */
static int thread_body(void *arg)
{
	struct thr_pool *p = arg;
	struct thr_group g;
	uint32_t ran = 0;
	struct job j = {.g = &g, .ran = &ran, .yields = 2};
	struct job fails = {.g = &g, .ran = &ran, .ret = -THR_EIO};

	for (int round = 0; round < 50; round++) {
		ran = 0;
		thr_group_init(&g);
		CHECK(thr_group_spawn(&g, NULL, work, &j) == 0);
		CHECK(ran == 1);
		for (unsigned i = 0; i < 10; i++)
			CHECK(thr_group_spawn(&g, thr_pool_exec(p, i % 2), work, &j) == 0);
		CHECK(thr_group_wait(&g) == 0);
		CHECK(ran == 11);
		CHECK(thr_group_spawn(&g, NULL, work, &fails) == 0);
		CHECK(thr_group_wait(&g) == -THR_EIO);
	}
	return 0;
}

static void from_threads(void **state)
{
	struct thr_pool *p;

	(void)state;
	assert_int_equal(thr_pool_open(&p, 2, &thr_heap), 0);
	team_run(TEAM_THREADS, 4, thread_body, p);
	thr_pool_close(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_for_all),
		cmocka_unit_test(first_error_cancels),
		cmocka_unit_test(cancelled_from_outside),
		cmocka_unit_test(from_threads),
	};

	return cmocka_run_group_tests_name("thr_group", tests, NULL, NULL);
}
