/* SPDX-License-Identifier: BSD-2-Clause
 *
 * thr/cond.c - the condition variable. A waiter is in the queue before it gives
 * up the mutex, so whoever changes the condition under the mutex finds it there.
 * There are no spurious wake-ups, but the condition may have changed again.
 */
#include "thr/priv.h"

void thr_cond_init(struct thr_cond *c)
{
	memset(c, 0, sizeof(*c));
}

void thr_cond_wait(struct thr_cond *c, struct thr_mutex *m)
{
	struct thr_wait w;

	thr_wait_init(&w);
	thr_spin_lock(&c->guard);
	thr_waitq_push(&c->q, &w);
	thr_spin_unlock(&c->guard);
	thr_mutex_unlock(m);
	thr_wait_block(&w);
	thr_mutex_lock(m);
}

void thr_cond_signal(struct thr_cond *c)
{
	struct thr_wait *w;

	thr_spin_lock(&c->guard);
	w = thr_waitq_pop(&c->q);
	thr_spin_unlock(&c->guard);
	if (w)
		thr_wait_wake(w);
}

void thr_cond_broadcast(struct thr_cond *c)
{
	struct thr_wait *all;

	thr_spin_lock(&c->guard);
	all = c->q.head;
	thr_waitq_init(&c->q);
	thr_spin_unlock(&c->guard);
	thr_wait_wake_all(all);
}
