/* SPDX-License-Identifier: BSD-2-Clause
 *
 * thr/fd.c - waiting for descriptors: one source for each executor that does, an epoll
 * of them all and of the executor's wake eventfd.
 *
 * Edges are kept: what has become ready since the last wait ends the next one at once,
 * so nothing that happens between a read that found nothing and the wait is lost. A peer
 * that has hung up ends every wait for input from then on, because there is no second
 * edge for that.
 */
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "thr/priv.h"

#define EVENTS 64

struct fd_source {
	struct thr_source src; /* fd is the epoll */
	const struct thr_alloc *mem;
};

static const char key;

static void make_ready(struct thr_fd *f, enum thr_fd_dir dir)
{
	struct thr_wait *w = f->waiter[dir];

	f->ready[dir] = true;
	f->waiter[dir] = NULL;
	if (w)
		thr_wait_wake(w);
}

static void take_event(struct thr_fd *f, uint32_t ev)
{
	const uint32_t gone = EPOLLRDHUP | EPOLLHUP | EPOLLERR;

	f->hung_up |= (ev & gone) != 0;
	if (ev & (EPOLLIN | gone))
		make_ready(f, THR_FD_IN);
	if (ev & (EPOLLOUT | EPOLLHUP | EPOLLERR))
		make_ready(f, THR_FD_OUT);
}

static void sleep_on(int fd, int64_t timeout_ns)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	struct timespec ts = {
		.tv_sec = (time_t)(timeout_ns / 1000000000),
		.tv_nsec = (long)(timeout_ns % 1000000000),
	};

	(void)ppoll(&p, 1, &ts, NULL);
}

static void run(struct thr_source *s, int64_t timeout_ns)
{
	struct epoll_event ev[EVENTS];
	int n;

	if (timeout_ns > 0)
		sleep_on(s->fd, timeout_ns);
	n = epoll_wait(s->fd, ev, EVENTS, timeout_ns < 0 ? -1 : 0);
	for (int i = 0; i < n; i++)
		if (ev[i].data.ptr)
			take_event((struct thr_fd *)ev[i].data.ptr, ev[i].events);
}

static void close_source(struct thr_source *s)
{
	struct fd_source *fs = THR_CONTAINER(s, struct fd_source, src);

	close(s->fd);
	thr_put(fs->mem, fs, sizeof(*fs));
}

static const struct thr_source_ops source_ops = {
	.run = run,
	.close = close_source,
};

static int open_source(struct thr_exec *e, struct thr_source **out)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = NULL};
	struct fd_source *fs = thr_zget(e->mem, sizeof(*fs));
	int err = 0;

	if (!fs)
		return -THR_ENOMEM;
	fs->mem = e->mem;
	fs->src.ops = &source_ops;
	fs->src.key = &key;
	fs->src.can_sleep = true;
	fs->src.fd = epoll_create1(EPOLL_CLOEXEC);
	if (fs->src.fd < 0 || epoll_ctl(fs->src.fd, EPOLL_CTL_ADD, e->wake_fd, &ev))
		err = -errno;
	if (!err)
		err = thr_source_add(e, &fs->src);
	if (!err) {
		*out = &fs->src;
		return 0;
	}
	if (fs->src.fd >= 0)
		close(fs->src.fd);
	thr_put(e->mem, fs, sizeof(*fs));
	return err;
}

int thr_fd_open(struct thr_fd *f, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET};
	struct thr_exec *e = thr_self;
	int err = 0;

	THR_ASSERT(thr_in_fiber());
	memset(f, 0, sizeof(*f));
	f->fd = fd;
	f->src = thr_source_find(e, &key);
	if (!f->src)
		err = open_source(e, &f->src);
	if (err)
		return err;
	ev.data.ptr = f;
	return epoll_ctl(f->src->fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

void thr_fd_close(struct thr_fd *f)
{
	THR_ASSERT(!f->waiter[THR_FD_IN] && !f->waiter[THR_FD_OUT]);
	(void)epoll_ctl(f->src->fd, EPOLL_CTL_DEL, f->fd, NULL);
}

int thr_fd_wait(struct thr_fd *f, enum thr_fd_dir dir)
{
	struct thr_wait w;

	THR_ASSERT(!f->waiter[dir]);
	if (!f->ready[dir] && !f->cancelled && !(dir == THR_FD_IN && f->hung_up)) {
		thr_wait_init(&w);
		f->waiter[dir] = &w;
		f->src->pending++;
		thr_wait_block(&w);
		f->src->pending--;
	}
	f->ready[dir] = false;
	return f->cancelled ? -THR_ECANCELED : 0;
}

void thr_fd_cancel(struct thr_fd *f)
{
	f->cancelled = true;
	make_ready(f, THR_FD_IN);
	make_ready(f, THR_FD_OUT);
}
