/* SPDX-License-Identifier: BSD-2-Clause
 *
 * thr/seq.c - tickets and turns.
 *
 * turn <= every ticket that has not passed < next <= turn + THR_SEQ_WINDOW. A
 * ticket that passes before its turn leaves a bit, and its turn is skipped when it
 * comes. So passing never waits, and a cancelled job drains in any order.
 */
#include "thr/priv.h"

struct waiter {
	struct thr_wait wait;
	uint64_t ticket;
};

static struct waiter *waiter(struct thr_wait *w)
{
	return THR_CONTAINER(w, struct waiter, wait);
}

void thr_seq_init(struct thr_seq *s)
{
	memset(s, 0, sizeof(*s));
}

uint64_t thr_seq_take(struct thr_seq *s)
{
	struct waiter me;

	thr_spin_lock(&s->guard);
	if (s->next - s->turn < THR_SEQ_WINDOW) {
		uint64_t ticket = s->next++;

		thr_spin_unlock(&s->guard);
		return ticket;
	}
	thr_wait_init(&me.wait);
	thr_waitq_push(&s->full, &me.wait);
	thr_spin_unlock(&s->guard);
	thr_wait_block(&me.wait);
	return me.ticket;
}

/* In ticket order; most often at the end. */
static void insert(struct thr_waitq *q, struct waiter *me)
{
	struct thr_wait **at = &q->head;

	if (!q->head || waiter(q->tail)->ticket < me->ticket) {
		thr_waitq_push(q, &me->wait);
		return;
	}
	while (waiter(*at)->ticket < me->ticket)
		at = &(*at)->next;
	me->wait.next = *at;
	*at = &me->wait;
}

int thr_seq_enter(struct thr_seq *s, uint64_t ticket)
{
	struct waiter me;
	bool cancelled;

	thr_spin_lock(&s->guard);
	THR_ASSERT(ticket >= s->turn && ticket < s->next);
	cancelled = s->cancelled;
	if (cancelled || s->turn == ticket) {
		thr_spin_unlock(&s->guard);
		return cancelled ? -THR_ECANCELED : 0;
	}
	me.ticket = ticket;
	thr_wait_init(&me.wait);
	insert(&s->q, &me);
	thr_spin_unlock(&s->guard);
	thr_wait_block(&me.wait);

	thr_spin_lock(&s->guard);
	cancelled = s->cancelled;
	thr_spin_unlock(&s->guard);
	return cancelled ? -THR_ECANCELED : 0;
}

static uint64_t *word_of(struct thr_seq *s, uint64_t ticket)
{
	return &s->early[ticket % THR_SEQ_WINDOW / 64];
}

static uint64_t bit_of(uint64_t ticket)
{
	return (uint64_t)1 << ticket % 64;
}

/* Moves the turn on past those who have passed already. */
static void advance(struct thr_seq *s)
{
	s->turn++;
	while (*word_of(s, s->turn) & bit_of(s->turn)) {
		*word_of(s, s->turn) &= ~bit_of(s->turn);
		s->turn++;
	}
}

/* Takes those out of the queues who need not wait any more. */
static struct thr_wait *admit(struct thr_seq *s)
{
	struct thr_waitq in;

	thr_waitq_init(&in);
	if (s->q.head && waiter(s->q.head)->ticket == s->turn)
		thr_waitq_push(&in, thr_waitq_pop(&s->q));
	while (s->full.head && s->next - s->turn < THR_SEQ_WINDOW) {
		struct thr_wait *w = thr_waitq_pop(&s->full);

		waiter(w)->ticket = s->next++;
		thr_waitq_push(&in, w);
	}
	return in.head;
}

void thr_seq_pass(struct thr_seq *s, uint64_t ticket)
{
	struct thr_wait *in = NULL;

	thr_spin_lock(&s->guard);
	THR_ASSERT(ticket >= s->turn && ticket < s->next);
	THR_ASSERT(!(*word_of(s, ticket) & bit_of(ticket)));
	if (ticket == s->turn) {
		advance(s);
		in = admit(s);
	} else {
		*word_of(s, ticket) |= bit_of(ticket);
	}
	thr_spin_unlock(&s->guard);
	thr_wait_wake_all(in);
}

void thr_seq_cancel(struct thr_seq *s)
{
	struct thr_wait *all;

	thr_spin_lock(&s->guard);
	s->cancelled = true;
	all = s->q.head;
	thr_waitq_init(&s->q);
	thr_spin_unlock(&s->guard);
	thr_wait_wake_all(all);
}
