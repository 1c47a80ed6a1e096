/* SPDX-License-Identifier: BSD-2-Clause
 *
 * thr/sem.c - the counting semaphore and the byte budget. A small request never
 * overtakes a large one that came first, so the large one's turn comes.
 */
#include "thr/priv.h"

struct waiter {
	struct thr_wait wait;
	uint64_t n;
};

void thr_sem_init(struct thr_sem *s, uint64_t count)
{
	memset(s, 0, sizeof(*s));
	s->count = count;
}

void thr_sem_down(struct thr_sem *s, uint64_t n)
{
	struct waiter me;

	thr_spin_lock(&s->guard);
	if (!s->q.head && s->count >= n) {
		s->count -= n;
		thr_spin_unlock(&s->guard);
		return;
	}
	me.n = n;
	thr_wait_init(&me.wait);
	thr_waitq_push(&s->q, &me.wait);
	thr_spin_unlock(&s->guard);
	thr_wait_block(&me.wait);
}

void thr_sem_up(struct thr_sem *s, uint64_t n)
{
	struct thr_waitq in;

	thr_waitq_init(&in);
	thr_spin_lock(&s->guard);
	s->count += n;
	while (s->q.head) {
		struct waiter *w = THR_CONTAINER(s->q.head, struct waiter, wait);

		if (w->n > s->count)
			break;
		s->count -= w->n;
		thr_waitq_push(&in, thr_waitq_pop(&s->q));
	}
	thr_spin_unlock(&s->guard);
	thr_wait_wake_all(in.head);
}

void thr_budget_init(struct thr_budget *b, uint64_t bytes)
{
	thr_sem_init(&b->sem, bytes);
	b->total = bytes;
}

void thr_budget_take(struct thr_budget *b, uint64_t n)
{
	thr_sem_down(&b->sem, THR_MIN(n, b->total));
}

void thr_budget_give(struct thr_budget *b, uint64_t n)
{
	thr_sem_up(&b->sem, THR_MIN(n, b->total));
}
