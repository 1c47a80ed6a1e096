/* SPDX-License-Identifier: BSD-2-Clause
 *
 * thr/fiber.c - the life of a fiber: started, run, ended.
 *
 * A stack runs one loop for as long as it is mapped; a fiber is one turn of it.
 * So starting a fiber on a used stack is filling in fn and arg and queueing it,
 * and the frames below it are always alive, as the sanitizers want it.
 *
 * Fibers hand over to each other directly. The scheduler's context is visited at
 * the end of a batch, when nothing is ready, and to put away stacks that must not
 * be touched while they are still being stood on.
 */
#include "thr/priv.h"

static void fiber_end(struct thr_exec *e, struct thr_fiber *f)
{
	e->live--;
	if (THR_LIKELY(!f->spare && e->free.count < CONFIG_THR_STACK_CACHE)) {
		f->next = e->free.head;
		e->free.head = f;
		e->free.count++;
		thr_exec_switch(e, f, thr_exec_next(e));
		return;
	}
	e->dead = f;
	e->cur = NULL;
	thr_exec_switch(e, f, &e->sched);
}

void thr_fiber_main(void *fiber)
{
	struct thr_fiber *f = fiber;

	thr_asan_enter(&f->annot, &f->exec->sched.annot);
	for (;;) {
		f->fn(f->arg);
		fiber_end(f->exec, f);
	}
}

struct thr_fiber *thr_fiber_get(struct thr_exec *e)
{
	struct thr_fiber *f;

	if (THR_UNLIKELY(e != thr_self))
		return thr_stack_get_spare(e);
	f = e->free.head;
	if (THR_LIKELY(f != NULL)) {
		e->free.head = f->next;
		e->free.count--;
		return f;
	}
	f = thr_stack_map();
	if (f)
		f->spare = false;
	return f;
}

void thr_fiber_start(struct thr_exec *e, struct thr_fiber *f)
{
	f->ticket = THR_NO_TICKET;
	f->exec = e;
	if (THR_LIKELY(e == thr_self)) {
		thr_exec_admit(e);
		thr_ready_append(e, f);
		return;
	}
	f->fresh = true;
	if (e->pool)
		thr_pool_hold(e->pool);
	thr_remote_push(e, f);
}

int thr_spawn(struct thr_exec *e, void (*fn)(void *arg), void *arg)
{
	struct thr_fiber *f = thr_fiber_get(e);

	if (THR_UNLIKELY(!f))
		return -THR_ENOMEM;
	f->fn = fn;
	f->arg = arg;
	thr_fiber_start(e, f);
	return 0;
}

bool thr_in_fiber(void)
{
	return thr_self && thr_self->cur;
}

void thr_yield(void)
{
	struct thr_exec *e = thr_self;
	struct thr_fiber *f;

	if (!e || !e->cur)
		return;
	f = e->cur;
	thr_ready_append(e, f);
	thr_fiber_park(e, f);
}

void thr_fiber_ticket(uint64_t ticket)
{
	if (thr_in_fiber())
		thr_self->cur->ticket = ticket;
}

static bool anything_pending(const struct thr_exec *e)
{
	const struct thr_source *s;

	for (s = e->sources; s; s = s->next)
		if (s->pending)
			return true;
	return __atomic_load_n(&e->remote, __ATOMIC_RELAXED);
}

/* What came in from other threads, and whose I/O has completed, may have a lower
 * ticket: the scheduler finds out. */
void thr_give_way(void)
{
	struct thr_exec *e = thr_self;
	struct thr_fiber *f = e ? e->cur : NULL;
	bool pending;

	if (!f || f->ticket == THR_NO_TICKET)
		return;
	pending = anything_pending(e);
	if (!pending && (!e->ready.tickets.root || e->ready.tickets.root->key >= f->ticket))
		return;
	if (pending)
		e->batch = 0;
	thr_ready_push(e, f);
	thr_fiber_park(e, f);
}
