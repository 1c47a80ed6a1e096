/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/perf/thr.c - what fibers, locks and tickets cost. Each line is the best of
 * several rounds, because what disturbs a round only ever adds to it, and the
 * mean and deviation beside it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "thr/thr.h"

#define ROUNDS 9

struct bench {
	const char *name;
	unsigned long n; /* operations in a round */
	void (*run)(unsigned long n);
};

static struct thr_exec *exec;

/* ---- one executor ------------------------------------------------------- */

static unsigned long ended;

static void empty(void *arg)
{
	(void)arg;
	ended++;
}

/* One at a time: the spawner lets each run before it starts the next. */
static void spawn_one(unsigned long n)
{
	while (n--) {
		if (thr_spawn(exec, empty, NULL))
			abort();
		thr_yield();
	}
}

static void spawn_batch(unsigned long n, unsigned batch)
{
	for (; n; n -= batch) {
		for (unsigned i = 0; i < batch; i++)
			if (thr_spawn(exec, empty, NULL))
				abort();
		thr_yield();
	}
}

static void spawn_32(unsigned long n)
{
	spawn_batch(n, 32);
}

static void spawn_256(unsigned long n)
{
	spawn_batch(n, 256);
}

static unsigned long left;

static void yielder(void *arg)
{
	(void)arg;
	while (left) {
		left--;
		thr_yield();
	}
}

static void switch_among(unsigned long n, unsigned fibers)
{
	left = n;
	for (unsigned i = 1; i < fibers; i++)
		if (thr_spawn(exec, yielder, NULL))
			abort();
	yielder(NULL);
	for (unsigned i = 0; i < 4; i++)
		thr_yield();
}

static void switch_2(unsigned long n)
{
	switch_among(n, 2);
}

static void switch_256(unsigned long n)
{
	switch_among(n, 256);
}

static void park_and_wake(unsigned long n)
{
	while (n--) {
		struct thr_wait w;

		thr_wait_init(&w);
		thr_wait_wake(&w);
		thr_wait_block(&w);
	}
}

static struct thr_sem ping, pong;

static void ponger(void *arg)
{
	unsigned long n = *(unsigned long *)arg;

	while (n--) {
		thr_sem_down(&ping, 1);
		thr_sem_up(&pong, 1);
	}
}

static void sem_ping_pong(unsigned long n)
{
	thr_sem_init(&ping, 0);
	thr_sem_init(&pong, 0);
	if (thr_spawn(exec, ponger, &n))
		abort();
	for (unsigned long i = n; i--;) {
		thr_sem_up(&ping, 1);
		thr_sem_down(&pong, 1);
	}
}

static void mutex(unsigned long n)
{
	struct thr_mutex m;

	thr_mutex_init(&m);
	while (n--) {
		thr_mutex_lock(&m);
		thr_mutex_unlock(&m);
	}
}

static void rwlock(unsigned long n)
{
	struct thr_rwlock l;

	thr_rwlock_init(&l);
	while (n--) {
		thr_rwlock_rdlock(&l);
		thr_rwlock_rdunlock(&l);
	}
}

static void seq(unsigned long n)
{
	struct thr_seq s;

	thr_seq_init(&s);
	while (n--) {
		uint64_t t = thr_seq_take(&s);

		if (thr_seq_enter(&s, t))
			abort();
		thr_seq_pass(&s, t);
	}
}

static int nothing(void *arg)
{
	(void)arg;
	return 0;
}

static void group_of_8(unsigned long n)
{
	for (; n; n -= 8) {
		struct thr_group g;

		thr_group_init(&g);
		for (unsigned i = 0; i < 8; i++)
			if (thr_group_spawn(&g, NULL, nothing, NULL))
				abort();
		if (thr_group_wait(&g))
			abort();
	}
}

static void offload(unsigned long n)
{
	while (n--)
		if (thr_offload(nothing, NULL))
			abort();
}

/* ---- several executors ---------------------------------------------------- */

static void remote_spawn(unsigned long n)
{
	struct thr_pool *p = thr_pool_self();

	while (n--) {
		struct thr_group g;

		thr_group_init(&g);
		if (thr_group_spawn(&g, thr_pool_exec(p, 1), nothing, NULL) ||
			thr_group_wait(&g))
			abort();
	}
}

static void remote_spawn_64(unsigned long n)
{
	struct thr_pool *p = thr_pool_self();

	for (; n; n -= 64) {
		struct thr_group g;

		thr_group_init(&g);
		for (unsigned i = 0; i < 64; i++)
			if (thr_group_spawn(&g, thr_pool_exec(p, 1), nothing, NULL))
				abort();
		if (thr_group_wait(&g))
			abort();
	}
}

struct contended {
	struct thr_mutex m;
	unsigned long each;
	unsigned long count;
};

static int contend(void *arg)
{
	struct contended *c = arg;

	for (unsigned long i = 0; i < c->each; i++) {
		thr_mutex_lock(&c->m);
		c->count++;
		thr_mutex_unlock(&c->m);
	}
	return 0;
}

static void contended_mutex(unsigned long n)
{
	struct thr_pool *p = thr_pool_self();
	struct contended c = {.each = n / 8};
	struct thr_group g;

	thr_mutex_init(&c.m);
	thr_group_init(&g);
	for (unsigned i = 0; i < 8; i++)
		if (thr_group_spawn(&g, thr_pool_exec(p, i % 2), contend, &c))
			abort();
	if (thr_group_wait(&g) || c.count != c.each * 8)
		abort();
}

/* ---- measuring ------------------------------------------------------------ */

/* By Newton, so that no libm is needed. */
static double root(double v)
{
	double r = v > 1 ? v : 1;

	for (int i = 0; i < 60; i++)
		r = (r + v / r) / 2;
	return v > 0 ? r : 0;
}

static void measure(const struct bench *b)
{
	double best = 1e30, mean = 0, var = 0, ns[ROUNDS];

	b->run(b->n / 8 / 256 * 256 + 256);
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t start = thr_now();

		b->run(b->n);
		ns[i] = (double)(thr_now() - start) / (double)b->n;
		best = THR_MIN(best, ns[i]);
		mean += ns[i] / ROUNDS;
	}
	for (unsigned i = 0; i < ROUNDS; i++)
		var += (ns[i] - mean) * (ns[i] - mean) / ROUNDS;
	printf("  %-44s %9.1f %9.1f +- %.1f\n", b->name, best, mean, root(var));
	fflush(stdout);
}

static const struct bench benches[] = {
	{"create, run and end a fiber, one at a time", 1 << 20, spawn_one},
	{"create, run and end a fiber, 32 at a time", 1 << 20, spawn_32},
	{"create, run and end a fiber, 256 at a time", 1 << 20, spawn_256},
	{"switch between 2 fibers", 1 << 22, switch_2},
	{"switch among 256 fibers", 1 << 22, switch_256},
	{"wake and wait, nothing to wait for", 1 << 20, park_and_wake},
	{"ping-pong through two semaphores", 1 << 20, sem_ping_pong},
	{"lock and unlock a mutex", 1 << 22, mutex},
	{"lock and unlock a rwlock for reading", 1 << 22, rwlock},
	{"take, enter and pass a ticket", 1 << 22, seq},
	{"a member of a group of 8, on this executor", 1 << 20, group_of_8},
	{"offload", 1 << 12, offload},
	{"start a fiber on another executor and wait", 1 << 13, remote_spawn},
	{"the same, 64 at a time", 1 << 16, remote_spawn_64},
	{"mutex, 8 fibers of 2 executors contend", 1 << 16, contended_mutex},
};

static int run_all(void *arg)
{
	(void)arg;
	exec = thr_exec_self();
	printf("thr: nanoseconds each %33s %9s\n", "best", "mean");
	for (size_t i = 0; i < THR_ARRAY_SIZE(benches); i++)
		measure(&benches[i]);
	return 0;
}

int main(void)
{
	struct thr_pool *p;
	int err = thr_pool_open(&p, 2, &thr_heap);

	if (err) {
		fprintf(stderr, "cannot open a pool: error %d\n", -err);
		return 1;
	}
	err = thr_pool_run(p, run_all, NULL);
	thr_pool_close(p);
	return err != 0;
}
