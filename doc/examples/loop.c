/* SPDX-License-Identifier: BSD-2-Clause
 *
 * loop - reads a disk image from an event loop of one's own, and from threads.
 *
 *	loop IMAGE
 *
 * The program's loop is poll(): it watches a timer of its own and the descriptor of an
 * executor. Requests are submitted as fibers, their completions come as functions that
 * run in the loop, so nothing here needs a lock. Then two threads that know nothing of
 * fibers read the same open image with plain calls. Prints the sum of all bytes each
 * time.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "fmt/fmt.h"

#define PIECE ((size_t)256 << 10)
#define DEPTH 4 /* requests that are under way at a time */

struct loop {
	struct thr_exec *exec;
	struct blk *disk;
	uint64_t next, sum;
	unsigned busy;
	int err;
};

struct request {
	struct loop *loop;
	uint64_t off;
	size_t len;
	uint8_t buf[PIECE];
};

static uint64_t add_up(const uint8_t *p, size_t len)
{
	uint64_t sum = 0;

	while (len--)
		sum += *p++;
	return sum;
}

/* A completion: called by thr_exec_poll(), in the thread of the loop. */
static void finished(struct request *r, int err)
{
	r->loop->busy--;
	if (err)
		r->loop->err = err;
	else
		r->loop->sum += add_up(r->buf, r->len);
	free(r);
}

static void run_request(void *arg)
{
	struct request *r = arg;

	finished(r, blk_pread(r->loop->disk, r->off, r->buf, r->len));
}

static void submit(struct loop *l)
{
	struct request *r = malloc(sizeof(*r));

	if (!r)
		abort();
	r->loop = l;
	r->off = l->next;
	r->len = (size_t)THR_MIN(PIECE, blk_size(l->disk) - l->next);
	l->next += r->len;
	l->busy++;
	if (thr_spawn(l->exec, run_request, r))
		finished(r, -THR_ENOMEM);
}

static int read_in_loop(struct loop *l)
{
	struct itimerspec every = {{0, 1000000}, {0, 1000000}};
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	struct pollfd fds[2] = {{timer, POLLIN, 0}, {thr_exec_fd(l->exec), POLLIN, 0}};
	uint64_t ticks;

	timerfd_settime(timer, 0, &every, NULL);
	do {
		while (l->busy < DEPTH && l->next < blk_size(l->disk) && !l->err)
			submit(l);
		thr_exec_poll(l->exec, 0);
		if (l->busy && poll(fds, 2, -1) > 0 && fds[0].revents)
			(void)!read(timer, &ticks, sizeof(ticks)); /* work of one's own */
	} while (l->busy || (l->next < blk_size(l->disk) && !l->err));
	close(timer);
	return l->err;
}

/* A half of the disk, by a plain thread: every call blocks until it is done. */
struct half {
	struct blk *disk;
	uint64_t off, end, sum;
	int err;
};

static void *read_half(void *arg)
{
	struct half *h = arg;
	uint8_t *buf = malloc(PIECE);

	h->err = buf ? 0 : -THR_ENOMEM;
	while (!h->err && h->off < h->end) {
		size_t n = (size_t)THR_MIN(PIECE, h->end - h->off);

		h->err = blk_pread(h->disk, h->off, buf, n);
		h->sum += h->err ? 0 : add_up(buf, n);
		h->off += n;
	}
	free(buf);
	return NULL;
}

static int read_in_threads(struct blk *disk, uint64_t *sum)
{
	uint64_t size = blk_size(disk);
	struct half h[2] = {{disk, 0, size / 2, 0, 0}, {disk, size / 2, size, 0, 0}};
	pthread_t thread[2];

	for (int i = 0; i < 2; i++)
		if (pthread_create(&thread[i], NULL, read_half, &h[i]))
			abort();
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	*sum = h[0].sum + h[1].sum;
	return h[0].err ? h[0].err : h[1].err;
}

int main(int argc, char **argv)
{
	struct blk_err err = BLK_ERR_INIT;
	struct fmt_open how = {.name = argv[argc - 1], .mem = &thr_heap};
	struct loop l = {0};
	uint64_t sum;
	char text[1024];
	int code;

	if (fmt_open(&l.disk, &how, &err)) {
		blk_err_text(&err, text, sizeof(text));
		return fprintf(stderr, "%s\n", text), 1;
	}
	code = thr_exec_open(&l.exec, &thr_heap);
	if (!code) {
		code = read_in_loop(&l);
		thr_exec_close(l.exec);
	}
	if (!code)
		code = read_in_threads(l.disk, &sum);
	if (!code)
		printf("%llu %llu\n", (unsigned long long)l.sum, (unsigned long long)sum);
	return fmt_close(l.disk) || code;
}
