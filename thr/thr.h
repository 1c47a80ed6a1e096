/* SPDX-License-Identifier: BSD-2-Clause
 *
 * thr/thr.h - fibers, executors and the locks that both fibers and plain
 * threads may use.
 *
 * A fiber is a stackful coroutine. An executor is one OS thread that runs
 * fibers; a fiber stays on its executor for life, so what is per-executor needs
 * no lock. A pool is N executors. Code below reads like blocking code: what
 * would block a thread parks the fiber.
 *
 * "May wait" in a comment: a fiber parks, a plain thread sleeps. Nothing that
 * may wait is called from a source's run() (completion context).
 *
 * With CONFIG_THR_NONE there is one thread of control: locks cost nothing,
 * spawning calls, and a wait that could never end is an assertion (thr/none.h).
 */
#ifndef THR_THR_H
#define THR_THR_H

#include "thr/base.h"

#ifdef CONFIG_THR_NONE
#include "thr/none.h"
#else

#ifdef __cplusplus
extern "C" {
#endif

/* Fields marked "atomic" are plain integers that only this library touches, with
 * the compiler's __atomic operations, so that C and C++ see one layout. */

struct thr_exec;
struct thr_pool;
struct thr_fiber;

/* ---- executors and pools ---------------------------------------------- */

/* Opens a pool of @n executors (0: one for each CPU that we may run on), each
 * on a thread of its own with a stack of 256 KiB. */
int thr_pool_open(struct thr_pool **out, unsigned n, const struct thr_alloc *mem);
unsigned thr_pool_count(const struct thr_pool *p);
struct thr_exec *thr_pool_exec(struct thr_pool *p, unsigned i);
/* Waits until every fiber of the pool has ended, then ends the threads. Called
 * from a plain thread. @p may be NULL. */
void thr_pool_close(struct thr_pool *p);

/* Runs fn(arg) as a fiber on executor 0 and sleeps until it returns; gives its
 * result. For plain threads: this is how a program's main enters. */
int thr_pool_run(struct thr_pool *p, int (*fn)(void *arg), void *arg);

/* Opens an executor without a thread: the caller drives it, from one thread
 * at a time, with thr_exec_run() or from its own event loop. */
int thr_exec_open(struct thr_exec **out, const struct thr_alloc *mem);
/* Runs fibers until none is left. */
void thr_exec_run(struct thr_exec *e);
/* A file descriptor that is readable when thr_exec_poll() has something to do.
 * It belongs to the executor. */
int thr_exec_fd(struct thr_exec *e);
/* Runs what is ready, waiting up to @timeout_ns for something to become ready
 * (0: do not wait, negative: no limit). Returns how many fibers are left. */
unsigned thr_exec_poll(struct thr_exec *e, int64_t timeout_ns);
/* All its fibers have ended. @e may be NULL. */
void thr_exec_close(struct thr_exec *e);

/* The executor that the caller's thread is running, or NULL in a plain
 * thread. */
struct thr_exec *thr_exec_self(void);
/* The pool of the caller's executor, or NULL. */
struct thr_pool *thr_pool_self(void);

/* ---- fibers ------------------------------------------------------------ */

/* Starts fn(arg) as a fiber of @e, from any thread. -ENOMEM when there is no
 * stack for it. The fiber ends when fn returns. Does not wait. */
int thr_spawn(struct thr_exec *e, void (*fn)(void *arg), void *arg);
bool thr_in_fiber(void);
/* Lets the other ready fibers of the executor run, whatever their tickets. A
 * no-op in a plain thread. */
void thr_yield(void);
/* The fiber's place in the run queue: ready fibers with the lowest ticket run
 * first, those without (THR_NO_TICKET, how fibers start) in order of arrival
 * after them. */
#define THR_NO_TICKET   UINT64_MAX
void thr_fiber_ticket(uint64_t ticket);
/* Lets ready fibers of the executor with lower tickets than the caller's run: for who
 * computes long, while those before it may have to pass a turn on. Costs next to nothing
 * where there are none; a no-op without a ticket. */
void thr_give_way(void);

/* One wait for one wake-up: how everything here blocks. It lives on the
 * waiter's stack (or in its request) and may be woken from any thread or
 * completion context, before or after thr_wait_block() is called. */
struct thr_wait {
	struct thr_fiber *fiber; /* NULL: a plain thread */
	struct thr_exec *exec;
	uint32_t state;        /* atomic */
	struct thr_wait *next; /* for the list of whoever keeps it */
};
void thr_wait_init(struct thr_wait *w);  /* for the calling fiber or thread */
void thr_wait_block(struct thr_wait *w); /* returns once woken */
/* Exactly once for each thr_wait_init(); @w may be gone when it returns. */
void thr_wait_wake(struct thr_wait *w);

/* ---- locks: all may wait, none may be held recursively ------------------ */

struct thr_spin {
	uint32_t v; /* atomic: 1 while held */
};

struct thr_waitq {
	struct thr_wait *head, *tail;
};

struct thr_mutex {
	uint32_t state; /* atomic: 0 free, 1 held, 2 held and waited for */
	struct thr_spin guard;
	struct thr_waitq q;
};
/* Who runs may take the mutex before one who waits, but for no more than about a
 * millisecond. The last to unlock it may free it. */
void thr_mutex_init(struct thr_mutex *m);
void thr_mutex_lock(struct thr_mutex *m);
bool thr_mutex_trylock(struct thr_mutex *m);
void thr_mutex_unlock(struct thr_mutex *m); /* by whoever locked it */

struct thr_cond {
	struct thr_spin guard;
	struct thr_waitq q;
};
void thr_cond_init(struct thr_cond *c);
void thr_cond_wait(struct thr_cond *c, struct thr_mutex *m);
void thr_cond_signal(struct thr_cond *c);
void thr_cond_broadcast(struct thr_cond *c);

/* First come, first served, so that writers do not starve. */
struct thr_rwlock {
	struct thr_spin guard;
	uint32_t readers;
	bool writer;
	struct thr_waitq q;
};
void thr_rwlock_init(struct thr_rwlock *l);
void thr_rwlock_rdlock(struct thr_rwlock *l);
void thr_rwlock_rdunlock(struct thr_rwlock *l);
void thr_rwlock_wrlock(struct thr_rwlock *l);
void thr_rwlock_wrunlock(struct thr_rwlock *l);

/* A counting semaphore, first come first served whatever the amounts. */
struct thr_sem {
	struct thr_spin guard;
	uint64_t count;
	struct thr_waitq q;
};
void thr_sem_init(struct thr_sem *s, uint64_t count);
void thr_sem_down(struct thr_sem *s, uint64_t n);
void thr_sem_up(struct thr_sem *s, uint64_t n);

/* Bytes that may be in use at once, admitted in order of arrival. A request for
 * more than the whole is admitted when it is alone. Give back what was taken. */
struct thr_budget {
	struct thr_sem sem;
	uint64_t total;
};
void thr_budget_init(struct thr_budget *b, uint64_t bytes);
void thr_budget_take(struct thr_budget *b, uint64_t n);
void thr_budget_give(struct thr_budget *b, uint64_t n); /* does not wait */

/* ---- tickets: parallel work with an ordered part ------------------------ */

/* Tickets are taken in order (0, 1, 2, ...) and their turns come in that order,
 * whatever order the work finishes in. Every ticket passes its turn on exactly
 * once, also when its work failed or had nothing to do. */
struct thr_seq {
	struct thr_spin guard;
	uint64_t next; /* the next ticket to be taken */
	uint64_t turn; /* whose turn it is */
	bool cancelled;
	struct thr_waitq q;    /* those who wait for their turn, in ticket order */
	struct thr_waitq full; /* those who wait for a ticket */
	uint64_t early[4];     /* bit t % 256: ticket t has passed before its turn */
};
/* A ticket may be at most this far ahead of the one whose turn it is. */
#define THR_SEQ_WINDOW  256
void thr_seq_init(struct thr_seq *s);
/* May wait, until the window has room. */
uint64_t thr_seq_take(struct thr_seq *s);
/* Waits for the turn of @ticket. 0, or -ECANCELED after thr_seq_cancel(); the
 * ticket must be passed on either way. Hold nothing while waiting here. */
int thr_seq_enter(struct thr_seq *s, uint64_t ticket);
/* Passes the turn on; does not wait and need not follow an enter. */
void thr_seq_pass(struct thr_seq *s, uint64_t ticket);
/* From now on thr_seq_enter() fails. Does not wait. */
void thr_seq_cancel(struct thr_seq *s);

/* ---- groups: fibers that are waited for together ------------------------ */

/* The first error that a member returns (by arrival) cancels the group. */
struct thr_group {
	struct thr_spin guard;
	uint32_t left;
	int err;
	bool cancelled; /* atomic */
	struct thr_wait *waiter;
};
void thr_group_init(struct thr_group *g);
/* Starts fn(arg) on @e (NULL: the caller's own executor). In a plain thread
 * with @e NULL, it is called. Returns -ENOMEM and counts it as the group's
 * error when it could not be started. */
int thr_group_spawn(struct thr_group *g, struct thr_exec *e, int (*fn)(void *arg), void *arg);
/* Waits for all members; the group's error, or 0. */
int thr_group_wait(struct thr_group *g);
/* What the members' loops ask. A cancelled member finishes the I/O that it has
 * outstanding and returns. */
static inline bool thr_group_cancelled(struct thr_group *g)
{
	return __atomic_load_n(&g->cancelled, __ATOMIC_RELAXED);
}
void thr_group_cancel(struct thr_group *g, int err);

/* ---- what really blocks, and time --------------------------------------- */

/* Runs fn(arg) on a thread that may block and waits for its result. In a
 * plain thread it is called directly. The threads are shared by the process,
 * started when needed, at most THR_OFFLOAD_MAX, with small stacks. */
#define THR_OFFLOAD_MAX 16
int thr_offload(int (*fn)(void *arg), void *arg);

/* Monotonic time in nanoseconds. */
uint64_t thr_now(void);
/* Waits at least @ns nanoseconds. */
void thr_sleep(uint64_t ns);

/* ---- sources: where completions come from ------------------------------- */

/* A source is one I/O ring of one executor. blk's engines embed it. All calls
 * come from the executor's thread, outside any fiber. */
struct thr_source;
struct thr_source_ops {
	/* Submits what fibers have queued, takes what has completed and wakes
	 * its waiters. With @timeout_ns != 0 (negative: no limit) it may sleep
	 * until something completes, the time is up, or thr_exec_wake_fd() is
	 * readable, whichever comes first. Only an executor with one source
	 * passes a timeout; with several it sleeps on their fds. */
	void (*run)(struct thr_source *s, int64_t timeout_ns);
	void (*close)(struct thr_source *s);
};
struct thr_source {
	const struct thr_source_ops *ops;
	const void *key;  /* identifies the kind of source: the address of a static */
	int fd;           /* readable when something has completed */
	bool can_sleep;   /* run() honours timeout_ns */
	unsigned pending; /* requests queued or in flight; kept by the source */
	struct thr_source *next;
};
/* The source of kind @key on executor @e, or NULL. From @e's own fibers. */
struct thr_source *thr_source_find(struct thr_exec *e, const void *key);
/* Adds one; it is closed with the executor. */
int thr_source_add(struct thr_exec *e, struct thr_source *s);
/* An eventfd that other threads write to wake the executor; who sleeps on
 * behalf of the executor watches it and leaves the reading to it. */
int thr_exec_wake_fd(struct thr_exec *e);

/* ---- waiting for descriptors --------------------------------------------- */

enum thr_fd_dir { THR_FD_IN, THR_FD_OUT };

/* A descriptor (socket, eventfd, signalfd, timerfd; not of a regular file) that fibers of
 * one executor wait for. It is non-blocking: try first, wait when that gives EAGAIN, and
 * then try again, for a wait may end without anything being there. All calls are made by
 * fibers of the executor that opened it. */
struct thr_fd {
	int fd;
	bool ready[2]; /* since the last wait */
	bool hung_up;
	bool cancelled;
	struct thr_wait *waiter[2];
	struct thr_source *src;
};
/* @fd stays the caller's, who closes it after thr_fd_close(). -EPERM for a regular file. */
int thr_fd_open(struct thr_fd *f, int fd);
/* Nobody waits for it. */
void thr_fd_close(struct thr_fd *f);
/* Waits until there is something to read, or the other side has gone; or room to write.
 * One fiber for each direction. 0, or -ECANCELED. */
int thr_fd_wait(struct thr_fd *f, enum thr_fd_dir dir);
/* Ends the waits, and those to come. Does not wait. */
void thr_fd_cancel(struct thr_fd *f);

#ifdef __cplusplus
}
#endif
#endif /* !CONFIG_THR_NONE */
#endif
