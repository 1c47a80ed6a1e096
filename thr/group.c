/* SPDX-License-Identifier: BSD-2-Clause
 *
 * thr/group.c - fibers that are waited for together. A member's function and
 * argument are kept in its fiber, so nothing is allocated.
 */
#include "thr/priv.h"

void thr_group_init(struct thr_group *g)
{
	memset(g, 0, sizeof(*g));
}

/* Under the guard. */
static void fail(struct thr_group *g, int err)
{
	if (!g->err)
		g->err = err;
	__atomic_store_n(&g->cancelled, true, __ATOMIC_RELAXED);
}

void thr_group_cancel(struct thr_group *g, int err)
{
	thr_spin_lock(&g->guard);
	fail(g, err);
	thr_spin_unlock(&g->guard);
}

/* The group may be gone once the guard is released with nobody left. */
static void leave(struct thr_group *g, int err)
{
	struct thr_wait *waiter = NULL;

	thr_spin_lock(&g->guard);
	if (err)
		fail(g, err);
	if (!--g->left)
		waiter = g->waiter;
	thr_spin_unlock(&g->guard);
	if (waiter)
		thr_wait_wake(waiter);
}

static void run_member(void *fiber)
{
	struct thr_fiber *f = fiber;
	struct thr_group *g = f->group;

	leave(g, f->member(f->member_arg));
}

static void join(struct thr_group *g)
{
	thr_spin_lock(&g->guard);
	g->left++;
	thr_spin_unlock(&g->guard);
}

int thr_group_spawn(struct thr_group *g, struct thr_exec *e, int (*fn)(void *arg), void *arg)
{
	struct thr_fiber *f;

	join(g);
	if (!e)
		e = thr_self;
	if (!e) {
		leave(g, fn(arg));
		return 0;
	}
	f = thr_fiber_get(e);
	if (!f) {
		leave(g, -THR_ENOMEM);
		return -THR_ENOMEM;
	}
	f->fn = run_member;
	f->arg = f;
	f->group = g;
	f->member = fn;
	f->member_arg = arg;
	thr_fiber_start(e, f);
	return 0;
}

int thr_group_wait(struct thr_group *g)
{
	struct thr_wait w;
	bool wait;
	int err;

	thr_wait_init(&w);
	thr_spin_lock(&g->guard);
	wait = g->left != 0;
	g->waiter = wait ? &w : NULL;
	thr_spin_unlock(&g->guard);
	if (wait)
		thr_wait_block(&w);
	thr_spin_lock(&g->guard);
	g->waiter = NULL;
	err = g->err;
	thr_spin_unlock(&g->guard);
	return err;
}
