/* SPDX-License-Identifier: BSD-2-Clause
 *
 * thr/offload.c - threads for what really blocks, shared by the process.
 *
 * A job is on the stack of the fiber that waits for it. Helpers are started when
 * a job finds none idle, up to THR_OFFLOAD_MAX, and end after some idle seconds;
 * a slot's ended thread is joined when the slot is used again. At exit the idle
 * ones are told to end and joined. One that is still inside a job then, in a
 * process that exits without waiting for it, is left behind.
 */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "thr/priv.h"

#define IDLE_SECONDS 5
/* Name look-ups are the hungriest. */
#define HELPER_STACK_KIB 256

struct job {
	int (*fn)(void *arg);
	void *arg;
	int ret;
	struct job *next;
	struct thr_wait done;
};

enum slot_state {
	EMPTY,
	WORKING,
	RESTING, /* waits for a job */
	ENDED,   /* to be joined */
};

struct slot {
	enum slot_state state;
	pthread_t thread;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t more; /* for idle helpers */
	struct job *head, *tail;
	unsigned queued; /* jobs that no helper has taken */
	unsigned idle;   /* helpers that wait for one */
	unsigned helpers;
	bool set_up;
	bool exiting;
	struct slot slots[THR_OFFLOAD_MAX];
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct job *take_job(void)
{
	struct job *j = pool.head;

	pool.head = j->next;
	pool.queued--;
	return j;
}

/* With the lock held. False: nothing to do for a long time, or ever. */
static bool wait_for_job(struct slot *slot)
{
	struct timespec until;
	int err = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += IDLE_SECONDS;
	slot->state = RESTING;
	pool.idle++;
	while (!pool.head && !pool.exiting && !err)
		err = pthread_cond_timedwait(&pool.more, &pool.lock, &until);
	pool.idle--;
	slot->state = WORKING;
	return pool.head != NULL;
}

static void *helper_main(void *arg)
{
	struct slot *slot = arg;

	pthread_mutex_lock(&pool.lock);
	while (pool.head || wait_for_job(slot)) {
		struct job *j = take_job();

		pthread_mutex_unlock(&pool.lock);
		j->ret = j->fn(j->arg);
		thr_wait_wake(&j->done);
		pthread_mutex_lock(&pool.lock);
	}
	slot->state = ENDED;
	pool.helpers--;
	pthread_mutex_unlock(&pool.lock);
	return NULL;
}

static void end_helpers(void)
{
	unsigned i;

	pthread_mutex_lock(&pool.lock);
	pool.exiting = true;
	pthread_cond_broadcast(&pool.more);
	for (i = 0; i < THR_OFFLOAD_MAX; i++) {
		struct slot *s = &pool.slots[i];

		if (s->state != RESTING && s->state != ENDED)
			continue;
		pthread_mutex_unlock(&pool.lock);
		pthread_join(s->thread, NULL);
		pthread_mutex_lock(&pool.lock);
		s->state = EMPTY;
	}
	pthread_mutex_unlock(&pool.lock);
}

static void set_up(void)
{
	pthread_condattr_t attr;

	pool.set_up = true;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&pool.more, &attr);
	pthread_condattr_destroy(&attr);
	atexit(end_helpers);
}

/* With the lock held. Without another helper the job waits for one of those that
 * there are. */
static void start_helper(void)
{
	struct slot *s = pool.slots;

	while (s->state != EMPTY && s->state != ENDED)
		s++;
	if (s->state == ENDED)
		pthread_join(s->thread, NULL);
	s->state = EMPTY;
	if (thr_thread_start(&s->thread, HELPER_STACK_KIB, helper_main, s))
		return;
	s->state = WORKING;
	pool.helpers++;
}

/* False: there is no helper at all. */
static bool submit(struct job *j)
{
	bool ok;

	pthread_mutex_lock(&pool.lock);
	if (!pool.set_up)
		set_up();
	if (pool.queued + 1 > pool.idle && pool.helpers < THR_OFFLOAD_MAX && !pool.exiting)
		start_helper();
	ok = pool.helpers != 0;
	if (ok) {
		if (pool.head)
			pool.tail->next = j;
		else
			pool.head = j;
		pool.tail = j;
		pool.queued++;
		pthread_cond_signal(&pool.more);
	}
	pthread_mutex_unlock(&pool.lock);
	return ok;
}

int thr_offload(int (*fn)(void *arg), void *arg)
{
	struct job j = {.fn = fn, .arg = arg};

	if (!thr_in_fiber())
		return fn(arg);
	thr_wait_init(&j.done);
	if (!submit(&j))
		return fn(arg);
	thr_wait_block(&j.done);
	return j.ret;
}
