/* SPDX-License-Identifier: BSD-2-Clause
 *
 * thr/remote.c - how other threads reach an executor: a lock-free stack of
 * fibers, pushed by anybody and taken whole by the executor.
 *
 * Its head is NULL (empty, the executor will look again by itself), ASLEEP (empty,
 * and the executor is about to sleep or sleeps) or the last fiber pushed. Whoever
 * replaces ASLEEP writes to wake_fd; so there is one write for each sleep, and
 * none while the executor is busy. The executor knows from what it takes out
 * whether such a write is on its way; it counts them as owed until it has read
 * them, and does not end before it has.
 */
#include <poll.h>
#include <unistd.h>

#include "thr/priv.h"

static struct thr_fiber asleep;
#define ASLEEP (&asleep)

void thr_remote_push(struct thr_exec *e, struct thr_fiber *f)
{
	uint64_t one = 1;
	int fd = e->wake_fd; /* @e may be gone once @f is in */
	struct thr_fiber *old = __atomic_load_n(&e->remote, __ATOMIC_RELAXED);

	do {
		f->next = old == ASLEEP ? NULL : old;
	} while (!__atomic_compare_exchange_n(
		&e->remote, &old, f, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
	if (old == ASLEEP && write(fd, &one, sizeof(one)) != sizeof(one))
		thr_panic("cannot write to an eventfd");
}

void thr_remote_kick(struct thr_exec *e)
{
	uint64_t one = 1;

	e->owed++;
	if (write(e->wake_fd, &one, sizeof(one)) != sizeof(one))
		thr_panic("cannot write to an eventfd");
}

static void read_owed(struct thr_exec *e)
{
	uint64_t n;

	if (read(e->wake_fd, &n, sizeof(n)) == sizeof(n))
		e->owed -= (int64_t)n;
}

static void deliver(struct thr_exec *e, struct thr_fiber *f)
{
	if (f == &e->stop_order) {
		e->stop = true;
		return;
	}
	if (f->fresh) {
		f->fresh = false;
		thr_exec_admit(e);
		if (e->pool)
			thr_pool_release(e->pool);
	}
	thr_ready_push(e, f);
}

/* In the order in which they were pushed. */
static void deliver_all(struct thr_exec *e, struct thr_fiber *last)
{
	struct thr_fiber *list = NULL;

	while (last) {
		struct thr_fiber *f = last;

		last = f->next;
		f->next = list;
		list = f;
	}
	while (list) {
		struct thr_fiber *f = list;

		list = f->next;
		deliver(e, f);
	}
}

void thr_remote_drain(struct thr_exec *e)
{
	struct thr_fiber *last;

	if (e->owed)
		read_owed(e);
	if (!__atomic_load_n(&e->remote, __ATOMIC_RELAXED))
		return;
	last = __atomic_exchange_n(&e->remote, NULL, __ATOMIC_ACQUIRE);
	if (e->armed) {
		e->armed = false;
		if (last == ASLEEP)
			return;
		e->owed++;
		read_owed(e);
	}
	deliver_all(e, last);
}

bool thr_remote_arm(struct thr_exec *e)
{
	struct thr_fiber *none = NULL;

	e->armed = __atomic_compare_exchange_n(
		&e->remote, &none, ASLEEP, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
	return e->armed;
}

void thr_remote_settle(struct thr_exec *e)
{
	struct pollfd p = {.fd = e->wake_fd, .events = POLLIN};

	while (e->owed) {
		poll(&p, 1, -1);
		read_owed(e);
	}
}
