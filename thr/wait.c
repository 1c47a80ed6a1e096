/* SPDX-License-Identifier: BSD-2-Clause
 *
 * thr/wait.c - one wait for one wake-up, which everything else is made of.
 *
 * IDLE -> BLOCKED by the waiter, then -> WOKEN by the waker; or IDLE -> WOKEN
 * first, and the waiter does not block. A fiber says BLOCKED before it has left
 * its stack, which is safe: whoever wakes it can only queue it, and its executor
 * takes it out of the queue when it is no longer running it.
 *
 * The waker reads what it needs of the wait before it says WOKEN: from then on
 * the waiter may return and its frame may be gone. A futex wake at an address
 * that is used for something else by then is one spurious wake-up, which every
 * user of a futex expects.
 */
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "thr/priv.h"

enum wait_state {
	IDLE,
	BLOCKED,
	WOKEN,
};

#if defined(__x86_64__) || defined(__i386__)
#define CPU_RELAX() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define CPU_RELAX() __asm__ volatile("yield")
#else
#define CPU_RELAX() __asm__ volatile("" ::: "memory")
#endif

void thr_futex_wait(uint32_t *word, uint32_t value)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

void thr_futex_wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* The holder is a few instructions from letting go, unless its thread has been
 * preempted: then give it the processor. */
void thr_spin_wait(struct thr_spin *s)
{
	unsigned tries = 0;

	do {
		while (__atomic_load_n(&s->v, __ATOMIC_RELAXED)) {
			if (++tries % 128)
				CPU_RELAX();
			else
				sched_yield();
		}
	} while (__atomic_exchange_n(&s->v, 1, __ATOMIC_ACQUIRE));
}

void thr_wait_init(struct thr_wait *w)
{
	w->exec = thr_self;
	w->fiber = thr_self ? thr_self->cur : NULL;
	w->next = NULL;
	__atomic_store_n(&w->state, IDLE, __ATOMIC_RELAXED);
}

static bool say_blocked(struct thr_wait *w)
{
	uint32_t idle = IDLE;

	return __atomic_compare_exchange_n(
		&w->state, &idle, BLOCKED, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE);
}

void thr_wait_block(struct thr_wait *w)
{
	/* The scheduler must not wait. */
	THR_ASSERT(w->fiber || !w->exec);
	if (!say_blocked(w))
		return;
	if (w->fiber) {
		thr_fiber_park(w->exec, w->fiber);
		return;
	}
	while (__atomic_load_n(&w->state, __ATOMIC_ACQUIRE) == BLOCKED)
		thr_futex_wait(&w->state, BLOCKED);
}

void thr_wait_wake(struct thr_wait *w)
{
	struct thr_fiber *f = w->fiber;
	struct thr_exec *e = w->exec;

	if (__atomic_exchange_n(&w->state, WOKEN, __ATOMIC_ACQ_REL) != BLOCKED)
		return;
	if (!f)
		thr_futex_wake(&w->state);
	else if (e == thr_self)
		thr_ready_push(e, f);
	else
		thr_remote_push(e, f);
}

void thr_wait_wake_all(struct thr_wait *w)
{
	while (w) {
		struct thr_wait *next = w->next;

		thr_wait_wake(w);
		w = next;
	}
}
