/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/thr_seq.c - tickets: turns come in order whatever order the work ends in,
 * passing early, the window, cancelling.
 */
#include <stdlib.h>

#include "thr_team.h"

#define FOR_ALL_KINDS(kind) for (enum team_kind kind = 0; kind < TEAM_KINDS; kind++)
#define JOBS                1000

struct work {
	struct thr_seq seq;
	uint64_t done[JOBS]; /* tickets in the order of their turns */
	unsigned n;
	uint32_t left;      /* atomic */
	uint64_t cancel_at; /* ticket */
};

static void some_yields(uint64_t ticket)
{
	uint32_t random = (uint32_t)ticket;

	for (uint32_t n = team_random(&random) % 5; n--;)
		thr_yield();
}

/* A job for each ticket: every seventh has nothing to do and passes at once. */
static int in_turn(void *arg)
{
	struct work *w = arg;

	for (;;) {
		uint64_t ticket = thr_seq_take(&w->seq);
		int err;

		if (ticket >= JOBS) {
			thr_seq_pass(&w->seq, ticket);
			return 0;
		}
		thr_fiber_ticket(ticket);
		some_yields(ticket);
		if (ticket % 7 == 3) {
			thr_seq_pass(&w->seq, ticket);
			continue;
		}
		err = thr_seq_enter(&w->seq, ticket);
		CHECK(err == 0 || (err == -THR_ECANCELED && ticket >= w->cancel_at));
		if (!err)
			w->done[w->n++] = ticket; /* the turn is the lock */
		if (ticket == w->cancel_at)
			thr_seq_cancel(&w->seq);
		thr_seq_pass(&w->seq, ticket);
	}
}

static void turns_come_in_order(void **state)
{
	(void)state;
	FOR_ALL_KINDS(kind)
	{
		struct work *w = calloc(1, sizeof(*w));
		uint64_t ticket = 0;

		assert_non_null(w);
		thr_seq_init(&w->seq);
		w->cancel_at = UINT64_MAX;
		team_run(kind, 12, in_turn, w);
		for (unsigned i = 0; i < w->n; i++, ticket++) {
			ticket += ticket % 7 == 3;
			assert_int_equal(w->done[i], ticket);
		}
		assert_int_equal(ticket, JOBS);
		assert_int_equal(w->seq.turn, w->seq.next);
		free(w);
	}
}

static void cancelling_lets_all_through(void **state)
{
	(void)state;
	FOR_ALL_KINDS(kind)
	{
		struct work *w = calloc(1, sizeof(*w));

		assert_non_null(w);
		thr_seq_init(&w->seq);
		w->cancel_at = 501;
		team_run(kind, 12, in_turn, w);
		assert_int_equal(w->done[w->n - 1], 501);
		assert_int_equal(w->seq.turn, w->seq.next);
		assert_true(w->seq.next >= JOBS);
		free(w);
	}
}

/* ---- the window -------------------------------------------------------------------- */

struct window {
	struct thr_seq seq;
	struct thr_sem some; /* up: a waiter has something to say */
	unsigned taken;
	uint64_t last;
};

static void take_one(void *arg)
{
	struct window *w = arg;
	uint64_t ticket = thr_seq_take(&w->seq);

	CHECK(ticket > w->last);
	w->last = ticket;
	w->taken++;
	thr_sem_up(&w->some, 1);
}

static int window_body(void *arg)
{
	struct window *w = arg;
	uint64_t t;

	for (t = 0; t < THR_SEQ_WINDOW; t++)
		CHECK(thr_seq_take(&w->seq) == t);
	w->last = t - 1;
	for (int i = 0; i < 5; i++)
		CHECK(thr_spawn(thr_exec_self(), take_one, w) == 0);
	thr_yield();
	CHECK(w->taken == 0);

	/* Those in the middle make no room; the first one does for all of them. */
	thr_seq_pass(&w->seq, 2);
	thr_seq_pass(&w->seq, 1);
	thr_yield();
	CHECK(w->taken == 0);
	thr_seq_pass(&w->seq, 0);
	thr_sem_down(&w->some, 3);
	CHECK(w->taken == 3);
	CHECK(w->last == THR_SEQ_WINDOW + 2);

	/* All the others, last first. */
	for (t = THR_SEQ_WINDOW + 2; t > 3; t--)
		thr_seq_pass(&w->seq, t);
	CHECK(w->taken == 3);
	CHECK(thr_seq_enter(&w->seq, 3) == 0);
	thr_seq_pass(&w->seq, 3);
	thr_sem_down(&w->some, 2);
	CHECK(w->taken == 5);
	CHECK(w->seq.turn == THR_SEQ_WINDOW + 3);
	thr_seq_pass(&w->seq, THR_SEQ_WINDOW + 4);
	thr_seq_pass(&w->seq, THR_SEQ_WINDOW + 3);
	CHECK(w->seq.turn == THR_SEQ_WINDOW + 5);
	for (int i = 0; i < 4; i++)
		CHECK(w->seq.early[i] == 0);
	return 0;
}

static void window_is_bounded(void **state)
{
	struct window w = {.taken = 0};

	(void)state;
	thr_seq_init(&w.seq);
	thr_sem_init(&w.some, 0);
	team_fiber(1, window_body, &w);
}

static int hoard_body(void *arg)
{
	struct work *w = arg;

	for (;;) {
		uint64_t first = thr_seq_take(&w->seq), second = thr_seq_take(&w->seq);

		some_yields(first);
		thr_seq_pass(&w->seq, second);
		CHECK(thr_seq_enter(&w->seq, first) == 0);
		thr_seq_pass(&w->seq, first);
		if (first >= JOBS)
			return 0;
	}
}

/* Many more tickets than the window is wide, two at a time. */
static void window_slides(void **state)
{
	(void)state;
	FOR_ALL_KINDS(kind)
	{
		struct work *w = calloc(1, sizeof(*w));

		assert_non_null(w);
		thr_seq_init(&w->seq);
		team_run(kind, 40, hoard_body, w);
		assert_int_equal(w->seq.turn, w->seq.next);
		free(w);
	}
}

/* ---- cancelling wakes those who wait --------------------------------------------------- */

struct waiter {
	struct thr_seq *seq;
	uint64_t ticket;
	int ret;
	struct thr_sem *done;
};

static void enters(void *arg)
{
	struct waiter *w = arg;

	w->ret = thr_seq_enter(w->seq, w->ticket);
	thr_seq_pass(w->seq, w->ticket);
	thr_sem_up(w->done, 1);
}

static int cancel_body(void *arg)
{
	struct thr_pool *p = thr_pool_self();
	struct waiter w[20];
	struct thr_seq seq;
	struct thr_sem done;

	(void)arg;
	thr_seq_init(&seq);
	thr_sem_init(&done, 0);
	CHECK(thr_seq_take(&seq) == 0);
	for (unsigned i = 0; i < 20; i++) {
		w[i] = (struct waiter){
			.seq = &seq, .ticket = thr_seq_take(&seq), .done = &done};
		CHECK(thr_spawn(thr_pool_exec(p, i % 2), enters, &w[i]) == 0);
	}
	thr_yield();
	thr_seq_cancel(&seq);
	thr_sem_down(&done, 20);
	for (unsigned i = 0; i < 20; i++)
		CHECK(w[i].ret == -THR_ECANCELED);
	CHECK(seq.turn == 0);
	CHECK(thr_seq_enter(&seq, 0) == -THR_ECANCELED);
	thr_seq_pass(&seq, 0);
	CHECK(seq.turn == 21);
	return 0;
}

static void cancelling_wakes(void **state)
{
	(void)state;
	team_fiber(2, cancel_body, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(turns_come_in_order),
		cmocka_unit_test(cancelling_lets_all_through),
		cmocka_unit_test(window_is_bounded),
		cmocka_unit_test(window_slides),
		cmocka_unit_test(cancelling_wakes),
	};

	return cmocka_run_group_tests_name("thr_seq", tests, NULL, NULL);
}
