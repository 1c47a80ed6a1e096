/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Requests per second and processor time per request of the file driver's engines.
 *
 *   file_bench [-b] [-w] [-r] [-e ENGINE] [-d DEPTH] [-c COUNT] [-s SIZE] FILE
 *
 * -b buffered (else O_DIRECT), -w writes, -r at random (else one after the other,
 * as `qemu-img bench` does), -d requests at a time, from one executor. Prints
 *
 *   ENGINE req/s USER-us SYSTEM-us
 *
 * with the processor time for each request. Without FILE: every engine, on a file
 * of its own in the folder $B.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "blk/blk.h"

struct bench {
	const char *file;
	const char *engine;
	bool buffered, write, random;
	unsigned depth;
	unsigned long count;
	size_t size;

	struct blk *b;
	unsigned long next;
	uint64_t seed;
};

static int lane(void *arg)
{
	struct bench *t = (struct bench *)arg;
	uint64_t blocks = blk_size(t->b) / t->size;
	void *buf = NULL;
	int ret = 0;

	if (posix_memalign(&buf, 4096, t->size))
		return -THR_ENOMEM;
	memset(buf, 0x5a, t->size);
	while (!ret && t->next < t->count) {
		uint64_t at = t->next++;

		if (t->random) {
			t->seed = t->seed * 6364136223846793005u + 1442695040888963407u;
			at = t->seed >> 33;
		}
		at = at % blocks * t->size;
		ret = t->write ? blk_pwrite(t->b, at, buf, t->size)
			       : blk_pread(t->b, at, buf, t->size);
	}
	free(buf);
	return ret;
}

static int lanes(void *arg)
{
	struct bench *t = (struct bench *)arg;
	struct thr_group g;

	thr_group_init(&g);
	for (unsigned i = 0; i < t->depth; i++)
		thr_group_spawn(&g, NULL, lane, t);
	return thr_group_wait(&g);
}

static double seconds(struct timeval v)
{
	return (double)v.tv_sec + (double)v.tv_usec * 1e-6;
}

static int open_it(struct bench *t)
{
	struct blk_opt v = {"engine", t->engine};
	struct blk_opts opts = {&v, 1};
	struct blk_err err = BLK_ERR_INIT;
	struct blk_open o = {
		.name = t->file,
		.driver = "file",
		.flags = (t->buffered ? 0 : BLK_NOCACHE) | (t->write ? BLK_RDWR : 0),
		.opts = &opts,
		.mem = &thr_heap,
	};
	char text[1024];

	if (!blk_open(&t->b, &o, &err))
		return 0;
	blk_err_text(&err, text, sizeof(text));
	printf("%-8s %s\n", t->engine, text);
	return -1;
}

static int run(struct bench *t)
{
	struct rusage a, z;
	struct thr_pool *p;
	double per = 1e6 / (double)t->count;
	uint64_t ns;
	int ret;

	if (open_it(t))
		return 1;
	if (thr_pool_open(&p, 1, &thr_heap))
		return 1;
	t->next = 0;
	t->seed = 1;
	getrusage(RUSAGE_SELF, &a);
	ns = thr_now();
	ret = thr_pool_run(p, lanes, t);
	ns = thr_now() - ns;
	getrusage(RUSAGE_SELF, &z);
	thr_pool_close(p);
	blk_close(t->b);
	if (ret)
		printf("%-8s error %d\n", t->engine, ret);
	else
		printf("%-8s %9.0f req/s   user %6.3f us   system %6.3f us\n", t->engine,
			(double)t->count / (double)ns * 1e9,
			(seconds(z.ru_utime) - seconds(a.ru_utime)) * per,
			(seconds(z.ru_stime) - seconds(a.ru_stime)) * per);
	return ret != 0;
}

static int run_all(struct bench *t)
{
	static const char *const engines[] = {"sync", "threads", "aio", "uring", "auto"};
	const char *dir = getenv("B");
	char name[4096];

	snprintf(name, sizeof(name), "%s/file_bench.img", dir ? dir : ".");
	t->file = name;
	if (blk_create(t->file, 64 << 20, BLK_PREALLOC_FULL, &thr_heap, NULL))
		return 1;
	for (int mode = 0; mode < 4; mode++) {
		t->buffered = mode & 1;
		t->write = mode & 2;
		printf("%s %s of %zu bytes, %u at a time%s\n",
			t->buffered ? "buffered" : "O_DIRECT", t->write ? "writes" : "reads",
			t->size, t->depth, t->random ? ", at random" : "");
		for (size_t i = 0; i < THR_ARRAY_SIZE(engines); i++) {
			t->engine = engines[i];
			run(t);
		}
	}
	unlink(t->file);
	return 0;
}

int main(int argc, char **argv)
{
	struct bench t = {.engine = "auto", .depth = 64, .count = 20000, .size = 4096};
	int c;

	while ((c = getopt(argc, argv, "bwre:d:c:s:")) != -1) {
		switch (c) {
		case 'b':
			t.buffered = true;
			break;
		case 'w':
			t.write = true;
			break;
		case 'r':
			t.random = true;
			break;
		case 'e':
			t.engine = optarg;
			break;
		case 'd':
			t.depth = (unsigned)strtoul(optarg, NULL, 0);
			break;
		case 'c':
			t.count = strtoul(optarg, NULL, 0);
			break;
		case 's':
			t.size = strtoul(optarg, NULL, 0);
			break;
		default:
			return 2;
		}
	}
	if (optind == argc)
		return run_all(&t);
	t.file = argv[optind];
	return run(&t);
}
