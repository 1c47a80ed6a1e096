/* SPDX-License-Identifier: BSD-2-Clause
 *
 * thr/pool.c - executors with threads of their own.
 *
 * pool->busy counts the executors that have fibers and the fibers that are on
 * their way to another executor. A fiber is started by a fiber (whose executor
 * counts) or from outside (whose caller knows better than to close the pool), so
 * once busy is 0 nothing can start any more and the threads are told to stop.
 */
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "thr/priv.h"

#define THREAD_STACK_KIB 256

struct thr_worker {
	struct thr_exec *exec;
	pthread_t thread;
	bool running;
};

void thr_pool_hold(struct thr_pool *p)
{
	__atomic_fetch_add(&p->busy, 1, __ATOMIC_RELAXED);
}

void thr_pool_release(struct thr_pool *p)
{
	if (__atomic_sub_fetch(&p->busy, 1, __ATOMIC_ACQ_REL) == 0)
		thr_futex_wake(&p->busy);
}

static unsigned count_cpus(void)
{
	cpu_set_t set;
	long n;

	if (!sched_getaffinity(0, sizeof(set), &set))
		return (unsigned)THR_MAX(CPU_COUNT(&set), 1);
	n = sysconf(_SC_NPROCESSORS_ONLN); /* more than a cpu_set_t has room for */
	return (unsigned)THR_MAX(n, 1);
}

static void *worker_main(void *arg)
{
	struct thr_worker *w = arg;

	thr_exec_serve(w->exec);
	return NULL;
}

static void name_worker(struct thr_worker *w, unsigned i)
{
	char name[] = "thr-000";

	i %= 1000;
	name[4] = (char)('0' + i / 100);
	name[5] = (char)('0' + i / 10 % 10);
	name[6] = (char)('0' + i % 10);
	pthread_setname_np(w->thread, name);
}

static int open_worker(struct thr_pool *p, unsigned i)
{
	struct thr_worker *w = &p->workers[i];
	int err = thr_exec_open(&w->exec, p->mem);

	if (err)
		return err;
	w->exec->pool = p;
	err = thr_thread_start(&w->thread, THREAD_STACK_KIB, worker_main, w);
	if (err)
		return err;
	w->running = true;
	name_worker(w, i);
	return 0;
}

/* Each of the C library's arenas takes 64 MiB of address space, by default eight
 * for each processor. */
static void keep_arenas_few(void)
{
#ifdef M_ARENA_MAX
	mallopt(M_ARENA_MAX, 2);
#endif
}

int thr_pool_open(struct thr_pool **out, unsigned n, const struct thr_alloc *mem)
{
	struct thr_pool *p;
	unsigned i;
	int err;

	keep_arenas_few();
	if (!n)
		n = count_cpus();
	if (n > UINT_MAX / 2 / sizeof(struct thr_worker))
		return -THR_EINVAL;
	p = thr_zget(mem, sizeof(*p));
	if (!p)
		return -THR_ENOMEM;
	p->mem = mem;
	p->n = n;
	p->workers = thr_zget(mem, n * sizeof(*p->workers));
	if (!p->workers) {
		thr_put(mem, p, sizeof(*p));
		return -THR_ENOMEM;
	}
	for (i = 0; i < n; i++) {
		err = open_worker(p, i);
		if (err) {
			thr_pool_close(p);
			return err;
		}
	}
	*out = p;
	return 0;
}

unsigned thr_pool_count(const struct thr_pool *p)
{
	return p->n;
}

struct thr_exec *thr_pool_exec(struct thr_pool *p, unsigned i)
{
	THR_ASSERT(i < p->n);
	return p->workers[i].exec;
}

struct thr_pool *thr_pool_self(void)
{
	return thr_self ? thr_self->pool : NULL;
}

static void wait_until_idle(struct thr_pool *p)
{
	uint32_t busy;

	while ((busy = __atomic_load_n(&p->busy, __ATOMIC_ACQUIRE)))
		thr_futex_wait(&p->busy, busy);
}

void thr_pool_close(struct thr_pool *p)
{
	unsigned i;

	if (!p)
		return;
	wait_until_idle(p);
	for (i = 0; i < p->n; i++) {
		struct thr_worker *w = &p->workers[i];

		if (w->running) {
			thr_remote_push(w->exec, &w->exec->stop_order);
			pthread_join(w->thread, NULL);
		}
		thr_exec_close(w->exec);
	}
	thr_put(p->mem, p->workers, p->n * sizeof(*p->workers));
	thr_put(p->mem, p, sizeof(*p));
}

struct call {
	int (*fn)(void *arg);
	void *arg;
	int ret;
	struct thr_wait done;
};

static void run_call(void *arg)
{
	struct call *c = arg;

	c->ret = c->fn(c->arg);
	thr_wait_wake(&c->done);
}

int thr_pool_run(struct thr_pool *p, int (*fn)(void *arg), void *arg)
{
	struct call c = {.fn = fn, .arg = arg};
	int err;

	thr_wait_init(&c.done);
	err = thr_spawn(thr_pool_exec(p, 0), run_call, &c);
	if (err)
		return err;
	thr_wait_block(&c.done);
	return c.ret;
}
