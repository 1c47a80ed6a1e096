/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/thr_team.h - runs the same function many times at once, as plain threads,
 * as fibers of one or several executors, or as both together.
 *
 * cmocka's assertions leave by longjmp, which only its own thread may do. So what
 * runs in a team uses CHECK(), and team_run() fails the test afterwards.
 */
#ifndef T_THR_TEAM_H
#define T_THR_TEAM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <pthread.h>
#include <cmocka.h>

#include "thr/thr.h"

#define TEAM_MAX 64

static uint32_t team_failures; /* atomic */

#define CHECK(cond)                                                                            \
	do {                                                                                   \
		if (!(cond)) {                                                                 \
			fprintf(stderr, "# %s:%d: %s\n", __FILE__, __LINE__, #cond);           \
			__atomic_fetch_add(&team_failures, 1, __ATOMIC_RELAXED);               \
		}                                                                              \
	} while (0)

static inline void team_verdict(void)
{
	assert_int_equal(__atomic_exchange_n(&team_failures, 0, __ATOMIC_RELAXED), 0);
}

enum team_kind {
	TEAM_THREADS,
	TEAM_FIBERS_1, /* on one executor */
	TEAM_FIBERS_3,
	TEAM_MIXED, /* every third is a thread */
	TEAM_KINDS,
};

struct team_member {
	pthread_t thread;
	bool is_thread;
	int (*fn)(void *arg);
	void *arg;
};

static inline void *team_thread(void *arg)
{
	struct team_member *m = arg;

	CHECK(m->fn(m->arg) == 0);
	return NULL;
}

static inline bool team_wants_thread(enum team_kind kind, unsigned i)
{
	return kind == TEAM_THREADS || (kind == TEAM_MIXED && i % 3 == 2);
}

/* @n times fn(arg). */
static inline void team_run(enum team_kind kind, unsigned n, int (*fn)(void *arg), void *arg)
{
	struct team_member m[TEAM_MAX];
	struct thr_group g;
	struct thr_pool *p;
	unsigned execs = kind == TEAM_FIBERS_1 ? 1 : 3;

	assert_true(n <= TEAM_MAX);
	assert_int_equal(thr_pool_open(&p, execs, &thr_heap), 0);
	thr_group_init(&g);
	for (unsigned i = 0; i < n; i++) {
		m[i].is_thread = team_wants_thread(kind, i);
		m[i].fn = fn;
		m[i].arg = arg;
		if (m[i].is_thread)
			assert_int_equal(
				pthread_create(&m[i].thread, NULL, team_thread, &m[i]), 0);
		else
			assert_int_equal(
				thr_group_spawn(&g, thr_pool_exec(p, i % execs), fn, arg), 0);
	}
	CHECK(thr_group_wait(&g) == 0);
	for (unsigned i = 0; i < n; i++)
		if (m[i].is_thread)
			pthread_join(m[i].thread, NULL);
	thr_pool_close(p);
	team_verdict();
}

/* fn(arg) as a fiber of the first of @execs executors. */
static inline void team_fiber(unsigned execs, int (*fn)(void *arg), void *arg)
{
	struct thr_pool *p;

	assert_int_equal(thr_pool_open(&p, execs, &thr_heap), 0);
	CHECK(thr_pool_run(p, fn, arg) == 0);
	thr_pool_close(p);
	team_verdict();
}

/* A little disorder that is the same in every run. */
static inline uint32_t team_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

/* Address space limits and crashes mean something else there. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEAM_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TEAM_SANITIZED 1
#endif
#endif
#ifndef TEAM_SANITIZED
#define TEAM_SANITIZED 0
#endif

/* True under valgrind, too; its header need not be there. */
static inline bool team_instrumented(void)
{
	const char *preload = getenv("LD_PRELOAD");

	return TEAM_SANITIZED || (preload && strstr(preload, "vgpreload"));
}

#endif
