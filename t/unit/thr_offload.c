/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/thr_offload.c - blocking work on threads of its own.
 */
#include <stdlib.h>
#include <unistd.h>

#include "thr_team.h"

struct call {
	pthread_t ran_on;
	bool was_fiber;
	int ret;
};

static int look(void *arg)
{
	struct call *c = arg;

	c->ran_on = pthread_self();
	c->was_fiber = thr_in_fiber() || thr_exec_self();
	return c->ret;
}

static int elsewhere_body(void *arg)
{
	pthread_t me = pthread_self();

	(void)arg;
	for (int i = 0; i < 200; i++) {
		struct call c = {.ret = -i};

		CHECK(thr_offload(look, &c) == -i);
		CHECK(!pthread_equal(c.ran_on, me));
		CHECK(!c.was_fiber);
		CHECK(pthread_equal(pthread_self(), me));
	}
	return 0;
}

static void runs_elsewhere(void **state)
{
	(void)state;
	team_run(TEAM_FIBERS_1, 3, elsewhere_body, NULL);
	team_run(TEAM_FIBERS_3, 30, elsewhere_body, NULL);
}

static int direct_body(void *arg)
{
	struct call c = {.ret = 7};

	(void)arg;
	CHECK(thr_offload(look, &c) == 7);
	CHECK(pthread_equal(c.ran_on, pthread_self()));
	return 0;
}

static void direct_in_a_thread(void **state)
{
	(void)state;
	team_run(TEAM_THREADS, 3, direct_body, NULL);
}

struct crowd {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned inside, most, done, wanted;
};

/* Holds its thread until as many as there can be are inside. */
static int gather(void *arg)
{
	struct crowd *c = arg;

	pthread_mutex_lock(&c->lock);
	c->inside++;
	c->most = THR_MAX(c->most, c->inside);
	pthread_cond_broadcast(&c->changed);
	while (c->most < c->wanted)
		pthread_cond_wait(&c->changed, &c->lock);
	c->inside--;
	c->done++;
	pthread_mutex_unlock(&c->lock);
	return 0;
}

static int crowd_body(void *arg)
{
	return thr_offload(gather, arg);
}

/* Sixteen block at once, and no more; the others wait their turn, and the
 * executor goes on meanwhile. */
static void many_at_once(void **state)
{
	struct crowd c = {
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.changed = PTHREAD_COND_INITIALIZER,
		.wanted = THR_OFFLOAD_MAX,
	};

	(void)state;
	team_run(TEAM_FIBERS_1, 50, crowd_body, &c);
	assert_int_equal(c.most, THR_OFFLOAD_MAX);
	assert_int_equal(c.done, 50);
}

static int nested(void *arg)
{
	return thr_offload(look, arg);
}

static int nested_body(void *arg)
{
	struct call c = {.ret = 5};

	(void)arg;
	CHECK(thr_offload(nested, &c) == 5);
	return 0;
}

static void within_itself(void **state)
{
	(void)state;
	team_run(TEAM_FIBERS_3, 20, nested_body, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_elsewhere),
		cmocka_unit_test(direct_in_a_thread),
		cmocka_unit_test(many_at_once),
		cmocka_unit_test(within_itself),
	};

	return cmocka_run_group_tests_name("thr_offload", tests, NULL, NULL);
}
