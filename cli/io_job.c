/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/io_job.c - requests: run in fibers of the session's executor, reported outside of
 * them, where there is more stack.
 */
#include <stdlib.h>

#include "cli/io.h"

int io_job_buffer(struct io *io, struct io_job *j, const uint64_t *lens, unsigned n, int fill)
{
	uint64_t len = 0;

	for (unsigned i = 0; i < n; i++)
		len += lens[i];
	j->r.len = len;
	j->buf = io_buf_get(io, len, fill);
	j->iov = calloc(n, sizeof(*j->iov));
	if (!j->buf || !j->iov) {
		cli_no_memory();
		return -1;
	}
	len = 0;
	for (unsigned i = 0; i < n; i++) {
		j->iov[i] = (struct thr_iov){.base = j->buf + len, .len = lens[i]};
		len += lens[i];
	}
	j->r.iov = j->iov;
	j->r.niov = n;
	j->io = io;
	return 0;
}

void io_job_free(struct io_job *j)
{
	if (j->buf)
		io_buf_put(j->io, j->buf);
	free(j->iov);
}

/* ---- running ------------------------------------------------------------------ */

/* In parts that a request may be long. */
static int transfer(struct io_job *j)
{
	struct blk *b = j->io->image;
	struct blk_req part = j->r;
	uint64_t done = 0;
	int err;

	do {
		part.off = j->r.off + done;
		part.iov_off = (size_t)done;
		part.len = THR_MIN(j->r.len - done, (uint64_t)BLK_MAX_IO);
		err = j->kind == IO_READ ? blk_preadv(b, &part) : blk_pwritev(b, &part);
		done += part.len;
	} while (!err && done < j->r.len);
	return err;
}

static int work(struct io_job *j)
{
	struct blk *b = j->io->image;

	switch (j->kind) {
	case IO_READ:
	case IO_WRITE:
		return transfer(j);
	case IO_ZERO:
		return blk_zero(b, &j->r);
	case IO_DISCARD:
		return j->io->no_discard ? 0 : blk_discard(b, &j->r);
	case IO_FLUSH:
		return blk_flush(b);
	case IO_CALL:
		return j->call(j->arg);
	}
	return -THR_EINVAL;
}

static void fiber(void *arg)
{
	struct io_job *j = arg;

	j->start = thr_now();
	j->err = work(j);
	j->end = thr_now();
	j->done = true;
	if (!j->async)
		return;
	j->next = NULL;
	*j->io->ended_tail = j;
	j->io->ended_tail = &j->next;
}

static int spawn(struct io *io, struct io_job *j)
{
	int err;

	j->io = io;
	j->done = false;
	err = thr_spawn(io->exec, fiber, j);
	if (err)
		cli_error("%s", blk_strerror(err));
	return err ? -1 : 0;
}

static int run(struct io *io, struct io_job *j)
{
	if (spawn(io, j))
		return -1;
	while (!j->done)
		thr_exec_poll(io->exec, -1);
	return 0;
}

/* ---- reporting ----------------------------------------------------------------- */

static const char *verb(enum io_kind kind)
{
	static const char *const verbs[] = {
		[IO_READ] = "read",
		[IO_WRITE] = "wrote",
		[IO_ZERO] = "wrote",
		[IO_DISCARD] = "discard",
	};

	return verbs[kind];
}

/* Within the disk, what is invalid is the place of compressed data. */
static const char *why(const struct io_job *j)
{
	bool within = thr_within(j->r.off, j->r.len, blk_size(j->io->image));

	return j->r.flags & BLK_COMPRESS && within ? blk_strerror(j->err) : io_strerror(j->err);
}

/* 0, or -1 if the request has failed or the pattern was not there. */
static int report(struct io_job *j)
{
	int ret = 0;

	if (j->err) {
		printf("%s failed: %s\n", j->failed, why(j));
		return -1;
	}
	if (j->check && !io_buf_is(j->buf + j->check_off, j->pattern, j->check_len)) {
		printf("Pattern verification failed at offset %llu, %llu bytes\n",
			(unsigned long long)(j->r.off + j->check_off),
			(unsigned long long)j->check_len);
		ret = -1;
	}
	if (j->quiet)
		return ret;
	if (j->dump)
		io_buf_dump(j->buf, j->r.off, j->r.len);
	io_report(verb(j->kind), j->end - j->start, j->r.off, j->r.len, j->machine);
	return ret;
}

int io_job_run(struct io *io, struct io_job *j)
{
	int ret = run(io, j);

	if (!ret)
		ret = report(j);
	io_job_reap(io);
	return ret;
}

int io_call(struct io *io, int (*fn)(void *arg), void *arg)
{
	struct io_job j = {.kind = IO_CALL, .call = fn, .arg = arg};
	int ret = run(io, &j) ? -THR_ENOMEM : j.err;

	io_job_reap(io);
	return ret;
}

int io_job_start(struct io *io, struct io_job *j)
{
	struct io_job *own = malloc(sizeof(*own));

	if (!own) {
		cli_no_memory();
		return -1;
	}
	*own = *j;
	own->async = true;
	if (spawn(io, own)) {
		free(own);
		return -1;
	}
	io->running++;
	j->buf = NULL;
	j->iov = NULL;
	return 0;
}

void io_job_reap(struct io *io)
{
	while (io->ended) {
		struct io_job *j = io->ended;

		io->ended = j->next;
		if (!io->ended)
			io->ended_tail = &io->ended;
		io->running--;
		report(j);
		io_job_free(j);
		free(j);
	}
}

void io_job_drain(struct io *io)
{
	io_job_reap(io);
	while (io->running) {
		thr_exec_poll(io->exec, -1);
		io_job_reap(io);
	}
}
