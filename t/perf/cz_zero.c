/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/perf/cz_zero.c - the zero scan, against a scan by bytes and words as kernels
 * have it and against reading the same memory, alternately. Prints for each size
 * the mean of the rates in GB/s, their deviation in percent, and the ratio to the
 * scan by words.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cz/cz.h"

#define ROUNDS 9
#define TOTAL  ((size_t)256 << 20)

typedef uint64_t word __attribute__((may_alias));

/* Stops at the first word that is not zero, one word at a time. */
static bool baseline(const void *p, size_t len)
{
	const word *w = p;

	for (size_t i = 0; i < len / sizeof(*w); i++) {
		if (w[i])
			return false;
	}
	return true;
}

/* Reads everything and decides at the end: what the memory can give. */
static bool read_all(const void *p, size_t len)
{
	typedef uint64_t vec __attribute__((vector_size(16), may_alias));
	const vec *v = p;
	vec a = {0}, b = {0};

	for (size_t i = 0; i < len / sizeof(*v); i += 8) {
		a |= v[i] | v[i + 1] | v[i + 2] | v[i + 3];
		b |= v[i + 4] | v[i + 5] | v[i + 6] | v[i + 7];
	}
	a |= b;
	return !(a[0] | a[1]);
}

static bool run_of_4k(const void *p, size_t len)
{
	bool zero;

	return cz_zero_run(p, len, 4096, &zero) == len && zero;
}

static const struct {
	const char *name;
	bool (*scan)(const void *p, size_t len);
} scans[] = {
	{"by words", baseline},
	{"read all", read_all},
	{"cz_is_zero", cz_is_zero},
	{"cz_zero_run 4K", run_of_4k},
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* GB/s over @total bytes in buffers of @size that follow one another. */
static double rate(bool (*scan)(const void *, size_t), const char *p, size_t size, size_t total)
{
	double start = now();

	for (size_t off = 0; off + size <= total; off += size) {
		if (!scan(p + (size >= TOTAL ? 0 : off % (4 * size)), size))
			abort();
	}
	return (double)total / (now() - start) / 1e9;
}

/* By Newton, so that no libm is needed. */
static double root(double v)
{
	double r = v > 1 ? v : 1;

	for (int i = 0; i < 60; i++)
		r = (r + v / r) / 2;
	return v > 0 ? r : 0;
}

int main(void)
{
	static const size_t sizes[] = {512, 4096, 65536, 2 << 20, TOTAL};
	char *p = aligned_alloc(4096, TOTAL);

	if (!p)
		return 77;
	memset(p, 0, TOTAL);
	printf("%-10s %-16s %8s %6s %6s\n", "bytes", "scan", "GB/s", "dev %", "ratio");
	for (size_t s = 0; s < THR_ARRAY_SIZE(sizes); s++) {
		double r[THR_ARRAY_SIZE(scans)][ROUNDS], base = 0;

		for (int i = 0; i < ROUNDS; i++) {
			for (size_t k = 0; k < THR_ARRAY_SIZE(scans); k++)
				r[k][i] = rate(scans[k].scan, p, sizes[s], TOTAL);
		}
		for (size_t k = 0; k < THR_ARRAY_SIZE(scans); k++) {
			double mean = 0, var = 0;

			for (int i = 0; i < ROUNDS; i++)
				mean += r[k][i] / ROUNDS;
			for (int i = 0; i < ROUNDS; i++)
				var += (r[k][i] - mean) * (r[k][i] - mean) / ROUNDS;
			if (!k)
				base = mean;
			printf("%-10zu %-16s %8.1f %6.1f %6.2f\n", sizes[s], scans[k].name,
				mean, 100 * root(var) / mean, mean / base);
		}
	}
	free(p);
	return 0;
}
