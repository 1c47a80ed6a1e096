/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/perf/cz_bench.h - what the benchmarks of cz share: processor time, since other
 * programs may run on this machine, and means with their deviation.
 */
#ifndef CZ_BENCH_H
#define CZ_BENCH_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cz/cz.h"

#define BENCH_ROUNDS 5

static inline double bench_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

struct bench {
	double v[BENCH_ROUNDS];
};

static inline double bench_mean(const struct bench *b)
{
	double sum = 0;

	for (int i = 0; i < BENCH_ROUNDS; i++)
		sum += b->v[i];
	return sum / BENCH_ROUNDS;
}

/* In percent; the root by Newton, so that no libm is needed. */
static inline double bench_dev(const struct bench *b)
{
	double mean = bench_mean(b), var = 0, r = 1;

	for (int i = 0; i < BENCH_ROUNDS; i++)
		var += (b->v[i] - mean) * (b->v[i] - mean) / BENCH_ROUNDS;
	for (int i = 0; i < 80 && var > 0; i++)
		r = (r + var / r) / 2;
	return var > 0 ? 100 * r / mean : 0;
}

static inline void *bench_get(size_t size)
{
	void *p = aligned_alloc(64, (size + 63) / 64 * 64);

	if (!p)
		exit(77);
	return p;
}

/* What cannot fail here did. */
static inline void bench_must(int err)
{
	if (err < 0) {
		fprintf(stderr, "error %d\n", -err);
		exit(1);
	}
}

#endif
