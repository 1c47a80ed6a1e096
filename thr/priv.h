/* SPDX-License-Identifier: BSD-2-Clause
 *
 * thr/priv.h - fibers and executors as the files of this room see them.
 *
 * What the executor's own thread alone touches needs no atomics: the ready
 * queue, the timers, the free stacks, the count of fibers. Everybody else comes
 * in through `remote` (a wake-up, a new fiber, the order to stop) and `spare`
 * (stacks that other threads took for fibers of this executor).
 */
#ifndef THR_PRIV_H
#define THR_PRIV_H

#include <pthread.h>

#include "thr/thr.h"
#include "thr/annotate.h"
#include "thr/pq.h"
#include "thr/switch.h"

/* ---- spin locks: held for a few instructions, never across a wait --------- */

void thr_spin_wait(struct thr_spin *s);

static inline void thr_spin_lock(struct thr_spin *s)
{
	if (THR_UNLIKELY(__atomic_exchange_n(&s->v, 1, __ATOMIC_ACQUIRE)))
		thr_spin_wait(s);
}

static inline void thr_spin_unlock(struct thr_spin *s)
{
	__atomic_store_n(&s->v, 0, __ATOMIC_RELEASE);
}

/* ---- lists of waiters, under their owner's guard -------------------------- */

static inline void thr_waitq_init(struct thr_waitq *q)
{
	q->head = NULL;
	q->tail = NULL;
}

static inline void thr_waitq_push(struct thr_waitq *q, struct thr_wait *w)
{
	w->next = NULL;
	if (q->head)
		q->tail->next = w;
	else
		q->head = w;
	q->tail = w;
}

static inline void thr_waitq_push_front(struct thr_waitq *q, struct thr_wait *w)
{
	w->next = q->head;
	if (!q->head)
		q->tail = w;
	q->head = w;
}

static inline struct thr_wait *thr_waitq_pop(struct thr_waitq *q)
{
	struct thr_wait *w = q->head;

	if (w)
		q->head = w->next;
	return w;
}

/* Wakes a list that has been taken out of its queue. */
void thr_wait_wake_all(struct thr_wait *w);

/* ---- fibers ---------------------------------------------------------------- */

/* Lives at the top of its stack's mapping, and as long as that. */
struct thr_fiber {
	struct thr_ctx ctx;
	struct thr_fiber *next; /* in the ready queue, a remote queue or a free list */
	uint64_t ticket;
	struct thr_exec *exec;
	void (*fn)(void *arg);
	void *arg;
	bool spare;              /* the stack goes back to exec->spare */
	bool fresh;              /* on its way to an executor that does not count it yet */
	struct thr_pq_node node; /* in the ready queue, when it has a ticket */
	struct thr_group *group;
	int (*member)(void *arg);
	void *member_arg;
	char *map; /* the guard page at the bottom of the mapping */
	struct thr_annot annot;
};

struct thr_stacks {
	struct thr_fiber *head;
	unsigned count;
};

/* A new stack, or NULL. */
struct thr_fiber *thr_stack_map(void);
void thr_stack_unmap(struct thr_fiber *f);
/* From any thread but the executor's: out of the spare ones, or a new one. */
struct thr_fiber *thr_stack_get_spare(struct thr_exec *e);
/* Takes the stack of an ended fiber that is not running any more. */
void thr_stack_put(struct thr_exec *e, struct thr_fiber *f);
void thr_stack_free_all(struct thr_exec *e);

/* ---- executors -------------------------------------------------------------- */

/* Fibers that run before the executor looks at its sources, timers and remote
 * queue again. */
#define THR_BATCH 64

struct thr_ready {
	struct thr_fiber *head, *tail; /* without tickets */
	struct thr_pq tickets;
};

struct thr_exec {
	struct thr_fiber *cur; /* NULL: the scheduler runs */
	unsigned batch;        /* how many fibers may still run in this batch */
	unsigned live;         /* fibers that have not ended */
	struct thr_ready ready;
	struct thr_stacks free;
	struct thr_fiber *dead; /* ended; its stack is put away by the scheduler */
	struct thr_fiber sched; /* the context of the scheduler */
	struct thr_pq timers;
	struct thr_source *sources;
	struct thr_pool *pool;
	bool holds; /* counted in pool->busy */
	bool stop;
	bool armed;   /* whoever finds `remote` asleep writes to wake_fd, once */
	int64_t owed; /* such writes that have not been read yet */
	int wake_fd;
	int bundle_fd; /* epoll: wake_fd, the sources, timer_fd */
	int timer_fd;  /* -1 until thr_exec_fd() asks for it */
	const struct thr_alloc *mem;
	struct thr_fiber stop_order; /* a message in the remote queue */

	_Alignas(64) struct thr_fiber *remote; /* atomic */
	struct thr_spin spare_guard;
	struct thr_stacks spare;
};

struct thr_pool {
	const struct thr_alloc *mem;
	unsigned n;
	/* Atomic futex word: executors that have fibers, and fibers on their way to
	 * another executor. Nothing runs and nothing can start when it is 0. */
	uint32_t busy;
	struct thr_worker *workers;
};

extern _Thread_local struct thr_exec *thr_self __attribute__((tls_model("initial-exec")));

static inline bool thr_ready_empty(const struct thr_exec *e)
{
	return !e->ready.head && !e->ready.tickets.root;
}

/* At the end of those without a ticket, whether @f has one or not. */
static inline void thr_ready_append(struct thr_exec *e, struct thr_fiber *f)
{
	f->next = NULL;
	if (e->ready.head)
		e->ready.tail->next = f;
	else
		e->ready.head = f;
	e->ready.tail = f;
}

static inline void thr_ready_push(struct thr_exec *e, struct thr_fiber *f)
{
	if (THR_LIKELY(f->ticket == THR_NO_TICKET))
		thr_ready_append(e, f);
	else
		thr_pq_push(&e->ready.tickets, &f->node, f->ticket);
}

static inline struct thr_fiber *thr_ready_pop(struct thr_exec *e)
{
	struct thr_fiber *f = e->ready.head;

	if (THR_UNLIKELY(e->ready.tickets.root != NULL))
		return THR_CONTAINER(thr_pq_pop(&e->ready.tickets), struct thr_fiber, node);
	if (f)
		e->ready.head = f->next;
	return f;
}

/* Who runs next: a ready fiber, or the scheduler at the end of the batch and when
 * something has come in, since others may wait for those who wait there. */
static inline struct thr_fiber *thr_exec_next(struct thr_exec *e)
{
	struct thr_fiber *f = NULL;

	if (THR_LIKELY(e->batch && !__atomic_load_n(&e->remote, __ATOMIC_RELAXED))) {
		e->batch--;
		f = thr_ready_pop(e);
	}
	e->cur = f;
	return THR_LIKELY(f != NULL) ? f : &e->sched;
}

/* Leaves @from for @to; returns when somebody comes back to @from. */
static inline void thr_exec_switch(
	struct thr_exec *e, struct thr_fiber *from, struct thr_fiber *to)
{
	thr_asan_leave(&from->annot, &to->annot);
	thr_tsan_switch(&to->annot);
	thr_ctx_swap(&from->ctx, &to->ctx);
	thr_asan_enter(&from->annot, &e->sched.annot);
}

/* The calling fiber stops here until it is made ready. */
static inline void thr_fiber_park(struct thr_exec *e, struct thr_fiber *f)
{
	struct thr_fiber *next = thr_exec_next(e);

	if (next != f)
		thr_exec_switch(e, f, next);
}

/* What a new stack runs: the fibers that are given to it, one after the other. */
void thr_fiber_main(void *fiber);
/* A fiber for @e, or NULL; fn and arg are to be filled in. */
struct thr_fiber *thr_fiber_get(struct thr_exec *e);
void thr_fiber_start(struct thr_exec *e, struct thr_fiber *f);

/* What the pool's threads run until they are told to stop. */
void thr_exec_serve(struct thr_exec *e);
/* On the thread that ran it. */
void thr_exec_close_sources(struct thr_exec *e);
/* @e has fibers now, so the pool is not to end. */
void thr_exec_occupy(struct thr_exec *e);

/* Counts one fiber more; on the executor's own thread. */
static inline void thr_exec_admit(struct thr_exec *e)
{
	if (THR_UNLIKELY(!e->live++))
		thr_exec_occupy(e);
}

/* Hands @f to the executor's thread, from any other. */
void thr_remote_push(struct thr_exec *e, struct thr_fiber *f);
/* Takes in what others have pushed. */
void thr_remote_drain(struct thr_exec *e);
/* From now on whoever pushes writes to wake_fd. False: there is something in the
 * queue already. */
bool thr_remote_arm(struct thr_exec *e);
/* Makes wake_fd readable. */
void thr_remote_kick(struct thr_exec *e);
/* No write to wake_fd is outstanding when it returns. */
void thr_remote_settle(struct thr_exec *e);

/* Fibers and executors as the pool counts them. */
void thr_pool_hold(struct thr_pool *p);
void thr_pool_release(struct thr_pool *p);

/* Wakes those whose time has come. */
void thr_timers_expire(struct thr_exec *e);
/* @timeout_ns, or less if a timer is due earlier. */
int64_t thr_timers_limit(struct thr_exec *e, int64_t timeout_ns);

/* A thread of the library's: a small stack, and no signals. */
int thr_thread_start(pthread_t *t, size_t stack_kib, void *(*fn)(void *arg), void *arg);

/* Sleeps while *word is @value, perhaps less. */
void thr_futex_wait(uint32_t *word, uint32_t value);
void thr_futex_wake(uint32_t *word);

#endif
