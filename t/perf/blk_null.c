/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/perf/blk_null.c - what a request costs before a driver does anything: 4 KiB
 * reads and writes of a null device, from a plain thread, from fibers of one
 * executor, and from two executors at once. "nothing" is the loop alone.
 */
#include <stdio.h>
#include <stdlib.h>

#include "blk/blk.h"

#define ROUNDS   5
#define REQUESTS 2000000u
#define FIBERS   64

struct job {
	struct blk *b;
	unsigned requests;
	bool write;
};

static char buf[4096];

static int requests(void *arg)
{
	const struct job *j = arg;

	for (unsigned i = 0; i < j->requests; i++) {
		uint64_t off = (uint64_t)(i & 0xffff) * sizeof(buf);
		int err = j->write ? blk_pwrite(j->b, off, buf, sizeof(buf))
				   : blk_pread(j->b, off, buf, sizeof(buf));

		if (err)
			return err;
	}
	return 0;
}

static int nothing(void *arg)
{
	const struct job *j = arg;

	for (unsigned i = 0; i < j->requests; i++)
		__asm__ volatile("" : : "r"(&i) : "memory");
	return 0;
}

struct spread {
	struct job j;
	struct thr_pool *pool;
	unsigned execs;
};

static int spread(void *arg)
{
	struct spread *s = arg;
	struct thr_group g;

	thr_group_init(&g);
	for (unsigned i = 0; i < FIBERS; i++)
		thr_group_spawn(&g, thr_pool_exec(s->pool, i % s->execs), requests, &s->j);
	return thr_group_wait(&g);
}

static int in_fibers(void *arg)
{
	struct spread *s = arg;

	return thr_pool_run(s->pool, spread, s);
}

/* The best of some rounds: what a machine that others use too can do. */
static void measure(const char *what, int (*fn)(void *arg), void *arg)
{
	double best = 1e9;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t t = thr_now();
		double ns;

		if (fn(arg)) {
			fprintf(stderr, "blk_null: %s failed\n", what);
			exit(1);
		}
		ns = (double)(thr_now() - t) / REQUESTS;
		if (ns < best)
			best = ns;
	}
	printf("blk_null  %-28s %7.1f ns/request\n", what, best);
}

int main(void)
{
	struct blk_opt v[] = {{"size", "1G"}, {"read-zeroes", "off"}};
	struct blk_opts opts = {v, 2};
	struct blk_open o = {
		.driver = "null", .flags = BLK_RDWR, .opts = &opts, .mem = &thr_heap};
	struct job j = {.requests = REQUESTS};
	struct spread s = {.j = {.requests = REQUESTS / FIBERS}};

	if (blk_open(&j.b, &o, NULL) || thr_pool_open(&s.pool, 2, &thr_heap)) {
		fprintf(stderr, "blk_null: could not set up\n");
		return 1;
	}
	s.j.b = j.b;
	measure("nothing", nothing, &j);
	measure("read, plain thread", requests, &j);
	j.write = true;
	measure("write, plain thread", requests, &j);
	s.execs = 1;
	measure("read, 64 fibers", in_fibers, &s);
	s.execs = 2;
	measure("read, 64 fibers, 2 executors", in_fibers, &s);
	thr_pool_close(s.pool);
	blk_close(j.b);
	return 0;
}
