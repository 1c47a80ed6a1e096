/* SPDX-License-Identifier: BSD-2-Clause
 *
 * thr/thread.c - starts threads. Signals stay with the program's own threads,
 * but for those that say that this very thread has gone wrong.
 */
#include <signal.h>

#include "thr/priv.h"

static void not_ours(sigset_t *set)
{
	static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
	size_t i;

	sigfillset(set);
	for (i = 0; i < THR_ARRAY_SIZE(own); i++)
		sigdelset(set, own[i]);
}

int thr_thread_start(pthread_t *t, size_t stack_kib, void *(*fn)(void *arg), void *arg)
{
	sigset_t block, old;
	pthread_attr_t attr;
	int err = pthread_attr_init(&attr);

	if (err)
		return -err;
	pthread_attr_setstacksize(&attr, stack_kib * 1024 * THR_STACK_SCALE);
	not_ours(&block);
	pthread_sigmask(SIG_BLOCK, &block, &old);
	err = pthread_create(t, &attr, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return -err;
}
