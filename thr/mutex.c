/* SPDX-License-Identifier: BSD-2-Clause
 *
 * thr/mutex.c - the mutex. Uncontended, one compare-and-swap each way.
 *
 * Under the guard, WAITED means that the queue is not empty, or that a waiter has
 * been taken out of it and is on its way; so nobody sleeps while the mutex is free
 * with nobody else awake to see to it.
 *
 * Unlocking makes the mutex free before the waiter it wakes gets to run, so that a
 * running thread may take it in between: several times faster than handing it to
 * somebody who must first be scheduled, while all others queue up. A waiter that
 * comes too late goes back to the front. One that has been coming too late for a
 * millisecond is handed the mutex, so nobody starves.
 *
 * The last thing an unlock does to the mutex is to make it free: nobody then
 * touches it but who has business with it, and it may be destroyed by the next.
 */
#include "thr/priv.h"

enum mutex_state {
	FREE,
	HELD,
	WAITED,
};

#define PATIENCE_NS 1000000

struct waiter {
	struct thr_wait wait;
	uint64_t since; /* when it was first woken in vain, or 0 */
	bool patient;
	bool granted; /* the mutex is handed over */
};

void thr_mutex_init(struct thr_mutex *m)
{
	memset(m, 0, sizeof(*m));
}

static inline bool change(struct thr_mutex *m, uint32_t *from, uint32_t to, int order)
{
	return __atomic_compare_exchange_n(&m->state, from, to, false, order, __ATOMIC_RELAXED);
}

/* Under the guard: takes the mutex if it is free, else notes that it is waited for. */
static bool claim(struct thr_mutex *m)
{
	uint32_t s = __atomic_load_n(&m->state, __ATOMIC_RELAXED);

	while (s != WAITED) {
		if (s == HELD && change(m, &s, WAITED, __ATOMIC_RELAXED))
			return false;
		if (s == FREE && change(m, &s, m->q.head ? WAITED : HELD, __ATOMIC_ACQUIRE))
			return true;
	}
	return false;
}

/* Under the guard. */
static void enqueue(struct thr_mutex *m, struct waiter *me)
{
	thr_wait_init(&me->wait);
	if (me->since)
		thr_waitq_push_front(&m->q, &me->wait);
	else
		thr_waitq_push(&m->q, &me->wait);
}

static void lock_slow(struct thr_mutex *m)
{
	struct waiter me = {.patient = true};

	for (;;) {
		thr_spin_lock(&m->guard);
		if (claim(m)) {
			thr_spin_unlock(&m->guard);
			return;
		}
		enqueue(m, &me);
		thr_spin_unlock(&m->guard);
		thr_wait_block(&me.wait);
		if (me.granted)
			return;
		if (!me.since)
			me.since = thr_now();
		else if (thr_now() - me.since > PATIENCE_NS)
			me.patient = false;
	}
}

void thr_mutex_lock(struct thr_mutex *m)
{
	uint32_t s = FREE;

	if (THR_UNLIKELY(!change(m, &s, HELD, __ATOMIC_ACQUIRE)))
		lock_slow(m);
}

bool thr_mutex_trylock(struct thr_mutex *m)
{
	uint32_t s = FREE;

	return change(m, &s, HELD, __ATOMIC_ACQUIRE);
}

static void unlock_slow(struct thr_mutex *m)
{
	struct waiter *w;

	thr_spin_lock(&m->guard);
	THR_ASSERT(m->q.head);
	w = THR_CONTAINER(thr_waitq_pop(&m->q), struct waiter, wait);
	if (!w->patient) {
		w->granted = true;
		__atomic_store_n(&m->state, m->q.head ? WAITED : HELD, __ATOMIC_RELAXED);
		thr_spin_unlock(&m->guard);
	} else {
		thr_spin_unlock(&m->guard);
		__atomic_store_n(&m->state, FREE, __ATOMIC_RELEASE);
	}
	thr_wait_wake(&w->wait);
}

void thr_mutex_unlock(struct thr_mutex *m)
{
	uint32_t s = HELD;

	if (THR_UNLIKELY(!change(m, &s, FREE, __ATOMIC_RELEASE))) {
		THR_ASSERT(s == WAITED);
		unlock_slow(m);
	}
}
