/* SPDX-License-Identifier: BSD-2-Clause
 *
 * thr/sleep.c - time, and the timers of an executor. A timer is on the stack of
 * the fiber that sleeps and always runs out, so there is nothing to cancel.
 */
#include <errno.h>
#include <time.h>

#include "thr/priv.h"

#define NS_PER_S 1000000000u

struct timer {
	struct thr_pq_node node; /* key: when it is due */
	struct thr_wait wait;
};

void thr_timers_expire(struct thr_exec *e)
{
	uint64_t now = thr_now();

	while (e->timers.root && e->timers.root->key <= now) {
		struct thr_pq_node *n = thr_pq_pop(&e->timers);

		thr_wait_wake(&THR_CONTAINER(n, struct timer, node)->wait);
	}
}

int64_t thr_timers_limit(struct thr_exec *e, int64_t timeout_ns)
{
	uint64_t now, due;

	if (!e->timers.root)
		return timeout_ns;
	now = thr_now();
	due = e->timers.root->key;
	if (due <= now)
		return 0;
	if (timeout_ns < 0 || (uint64_t)timeout_ns > due - now)
		return (int64_t)THR_MIN(due - now, (uint64_t)INT64_MAX);
	return timeout_ns;
}

static void sleep_thread(uint64_t until)
{
	struct timespec ts = {
		.tv_sec = (time_t)(until / NS_PER_S),
		.tv_nsec = (long)(until % NS_PER_S),
	};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

void thr_sleep(uint64_t ns)
{
	struct timer t;
	uint64_t until;

	if (thr_add_over(thr_now(), ns, &until) || until > INT64_MAX)
		until = INT64_MAX;
	if (!thr_in_fiber()) {
		sleep_thread(until);
		return;
	}
	thr_wait_init(&t.wait);
	thr_pq_push(&t.wait.exec->timers, &t.node, until);
	thr_wait_block(&t.wait);
}
