/* SPDX-License-Identifier: BSD-2-Clause
 *
 * thr/rwlock.c - the readers-writer lock, first come, first served: a reader that
 * arrives after a waiting writer waits behind it. Whoever unlocks hands the lock
 * to the writer at the front, or to all readers up to the next writer.
 */
#include "thr/priv.h"

struct waiter {
	struct thr_wait wait;
	bool write;
};

void thr_rwlock_init(struct thr_rwlock *l)
{
	memset(l, 0, sizeof(*l));
}

static bool admit(struct thr_rwlock *l, bool write)
{
	if (l->writer || (write && l->readers))
		return false;
	if (write)
		l->writer = true;
	else
		l->readers++;
	return true;
}

static void lock(struct thr_rwlock *l, bool write)
{
	struct waiter me;

	thr_spin_lock(&l->guard);
	if (!l->q.head && admit(l, write)) {
		thr_spin_unlock(&l->guard);
		return;
	}
	me.write = write;
	thr_wait_init(&me.wait);
	thr_waitq_push(&l->q, &me.wait);
	thr_spin_unlock(&l->guard);
	thr_wait_block(&me.wait);
}

/* Under the guard: takes those out of the queue who have the lock now. */
static struct thr_wait *admit_waiting(struct thr_rwlock *l)
{
	struct thr_waitq in;

	thr_waitq_init(&in);
	while (l->q.head) {
		struct waiter *w = THR_CONTAINER(l->q.head, struct waiter, wait);

		if (!admit(l, w->write))
			break;
		thr_waitq_push(&in, thr_waitq_pop(&l->q));
	}
	return in.head;
}

static void unlock(struct thr_rwlock *l, bool write)
{
	struct thr_wait *in;

	thr_spin_lock(&l->guard);
	THR_ASSERT(write ? l->writer : l->readers != 0);
	if (write)
		l->writer = false;
	else
		l->readers--;
	in = admit_waiting(l);
	thr_spin_unlock(&l->guard);
	thr_wait_wake_all(in);
}

void thr_rwlock_rdlock(struct thr_rwlock *l)
{
	lock(l, false);
}

void thr_rwlock_rdunlock(struct thr_rwlock *l)
{
	unlock(l, false);
}

void thr_rwlock_wrlock(struct thr_rwlock *l)
{
	lock(l, true);
}

void thr_rwlock_wrunlock(struct thr_rwlock *l)
{
	unlock(l, true);
}
