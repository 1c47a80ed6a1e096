/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/engine_aio.c - engine "aio": Linux AIO through libaio, one context for each
 * executor. Only with O_DIRECT: without it io_submit() does the whole transfer, and
 * the executor waits.
 *
 * Fibers queue control blocks and park; run() submits all of them in one system call.
 * Completions are read from the ring that the kernel maps into the process; only
 * sleeping takes a system call. While it sleeps a poll request (Linux 4.18) watches
 * the executor's wake eventfd.
 *
 * For executors that sleep elsewhere every completion signals an eventfd. It is
 * read only by a run() without a timeout that finds nothing new after another one
 * without, so an executor that sleeps here never reads it.
 */
#include <errno.h>
#include <libaio.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "blk/engine_ring.h"

enum {
	INFLIGHT = 256,
	RING_MAGIC = 0xa10a10a1,
};

/* What an io_context_t points at: part of the kernel's interface since 2.5. */
struct aio_ring {
	uint32_t id;
	uint32_t nr;
	uint32_t head;
	uint32_t tail;
	uint32_t magic;
	uint32_t compat_features;
	uint32_t incompat_features;
	uint32_t header_length;
	struct io_event events[];
};

struct aio_req {
	struct ring_req r;
	struct iocb cb;
};

struct aio {
	struct thr_source src;
	io_context_t ctx;
	struct ring_queue waiting; /* for room in the context */
	unsigned inflight;         /* in the context or in queue */
	unsigned nqueue;
	struct iocb *queue[INFLIGHT + 1];
	struct iocb watch_cb;
	int wake_fd;
	bool watching; /* wake_fd */
	bool stale;    /* src.fd may be readable */
	bool slept;    /* the last run() had a timeout */
};

static const char key;

static void prepare(struct aio *a, struct aio_req *q)
{
	const struct file_io *io = q->r.io;
	int n = io->niov;

	if (n == 1 && io->write)
		io_prep_pwrite(&q->cb, q->r.fd, io->iov->iov_base, io->iov->iov_len,
			(long long)io->off);
	else if (n == 1)
		io_prep_pread(&q->cb, q->r.fd, io->iov->iov_base, io->iov->iov_len,
			(long long)io->off);
	else if (io->write)
		io_prep_pwritev(&q->cb, q->r.fd, io->iov, n, (long long)io->off);
	else
		io_prep_preadv(&q->cb, q->r.fd, io->iov, n, (long long)io->off);
	q->cb.aio_rw_flags = io->rwf;
	q->cb.data = q;
	io_set_eventfd(&q->cb, a->src.fd);
}

static bool put_in(struct aio *a, struct aio_req *q)
{
	if (a->inflight >= INFLIGHT)
		return false;
	a->queue[a->nqueue++] = &q->cb;
	a->inflight++;
	return true;
}

static void put_in_waiting(struct aio *a)
{
	while (a->waiting.head && put_in(a, THR_CONTAINER(a->waiting.head, struct aio_req, r)))
		a->waiting.head = a->waiting.head->next;
}

static void complete(struct aio *a, struct iocb *cb, int64_t res)
{
	if (cb == &a->watch_cb) {
		a->watching = false;
		return;
	}
	a->inflight--;
	a->src.pending--;
	ring_done(&THR_CONTAINER(cb, struct aio_req, cb)->r, res);
}

/* The kernel takes none: what it dislikes gets its error. Where there is nothing to
 * wait for that would make room, or the call itself is forbidden, the fiber goes on
 * with a thread. */
static bool refused(struct aio *a, int err)
{
	struct iocb *cb = a->queue[0];

	if (err == -EINTR || (err == -EAGAIN && a->inflight > a->nqueue))
		return false;
	if (err == -EPERM || err == -ENOSYS)
		err = -EAGAIN;
	a->nqueue--;
	memmove(a->queue, a->queue + 1, a->nqueue * sizeof(*a->queue));
	complete(a, cb, err);
	return true;
}

static void submit(struct aio *a)
{
	while (a->nqueue) {
		int n = io_submit(a->ctx, a->nqueue, a->queue);

		if (n > 0) {
			a->nqueue -= (unsigned)n;
			memmove(a->queue, a->queue + n, a->nqueue * sizeof(*a->queue));
		} else if (!refused(a, n ? n : -EAGAIN)) {
			return;
		}
	}
}

static void take(struct aio *a, const struct io_event *ev)
{
	complete(a, ev->obj, (int64_t)(long)ev->res);
}

static unsigned reap(struct aio *a)
{
	struct aio_ring *ring = (struct aio_ring *)(void *)a->ctx;
	uint32_t head = ring->head;
	uint32_t tail = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
	unsigned n = 0;

	while (head != tail) {
		struct io_event ev = ring->events[head];

		head = head + 1 == ring->nr ? 0 : head + 1;
		/* Before the waiter submits again into the place. */
		__atomic_store_n(&ring->head, head, __ATOMIC_RELEASE);
		take(a, &ev);
		n++;
	}
	if (n)
		a->stale = true;
	return n;
}

static void watch(struct aio *a)
{
	if (a->watching)
		return;
	io_prep_poll(&a->watch_cb, a->wake_fd, POLLIN);
	a->queue[a->nqueue++] = &a->watch_cb;
	a->watching = true;
}

static void wait(struct aio *a, int64_t timeout_ns)
{
	struct io_event ev;
	struct timespec ts = {
		.tv_sec = (time_t)(timeout_ns / 1000000000),
		.tv_nsec = (long)(timeout_ns % 1000000000),
	};

	if (io_getevents(a->ctx, 1, 1, &ev, timeout_ns < 0 ? NULL : &ts) == 1)
		take(a, &ev);
}

static void settle(struct aio *a)
{
	uint64_t n;

	a->stale = false;
	if (read(a->src.fd, &n, sizeof(n)) < 0 && errno != EAGAIN)
		thr_panic("cannot read an eventfd");
}

static void run(struct thr_source *s, int64_t timeout_ns)
{
	struct aio *a = THR_CONTAINER(s, struct aio, src);
	unsigned n;

	put_in_waiting(a);
	if (timeout_ns)
		watch(a);
	submit(a);
	n = reap(a);
	if (!n && timeout_ns && a->watching && !a->nqueue) {
		wait(a, timeout_ns);
		reap(a);
	} else if (!n && !timeout_ns && a->stale && !a->slept) {
		settle(a);
		reap(a);
	}
	a->slept = timeout_ns != 0;
}

static void close_context(struct thr_source *s)
{
	struct aio *a = THR_CONTAINER(s, struct aio, src);

	if (a->ctx)
		io_destroy(a->ctx);
	if (a->src.fd >= 0)
		close(a->src.fd);
	thr_put(&thr_heap, a, sizeof(*a));
}

static const struct thr_source_ops source_ops = {
	.run = run,
	.close = close_context,
};

static int init_context(struct aio *a)
{
	struct aio_ring *ring;
	int ret;

	a->src.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (a->src.fd < 0)
		return -errno;
	ret = io_setup(INFLIGHT + 1, &a->ctx);
	if (ret)
		return ret;
	ring = (struct aio_ring *)(void *)a->ctx;
	if (ring->magic != RING_MAGIC)
		return -ENOSYS;
	/* valgrind believes it to be smaller. */
	VALGRIND_MAKE_MEM_DEFINED(ring, sizeof(*ring) + ring->nr * sizeof(*ring->events));
	watch(a);
	submit(a);
	return a->watching ? 0 : -ENOSYS;
}

static struct aio *open_context(struct thr_exec *e)
{
	struct aio *a = (struct aio *)thr_zget(&thr_heap, sizeof(*a));

	if (!a)
		return NULL;
	a->src.ops = &source_ops;
	a->src.key = &key;
	a->src.can_sleep = true;
	a->wake_fd = thr_exec_wake_fd(e);
	if (init_context(a) || thr_source_add(e, &a->src)) {
		close_context(&a->src);
		return NULL;
	}
	return a;
}

static struct aio *context_of(struct blk_file *f)
{
	struct thr_exec *e = thr_exec_self();
	struct thr_source *s = thr_source_find(e, &key);
	struct aio *a;

	if (THR_LIKELY(s != NULL))
		return THR_CONTAINER(s, struct aio, src);
	a = open_context(e);
	if (!a)
		file_set_cannot(f, FILE_NO_AIO);
	return a;
}

/* -EAGAIN: there is no context. */
static int64_t aio_rw(struct blk_file *f, struct file_io *io)
{
	struct aio *a = file_cannot(f, FILE_NO_AIO) ? NULL : context_of(f);
	struct aio_req q = {.r.io = io, .r.fd = f->fd};

	if (!a)
		return -EAGAIN;
	thr_wait_init(&q.r.wait);
	prepare(a, &q);
	a->src.pending++;
	if (a->waiting.head || !put_in(a, &q))
		ring_queue_push(&a->waiting, &q.r);
	thr_wait_block(&q.r.wait);
	return q.r.res;
}

static int aio_probe(struct blk_file *f)
{
	io_context_t ctx = NULL;
	int ret;

	if (!f->direct)
		return -EINVAL;
	ret = io_setup(1, &ctx);
	if (!ret)
		io_destroy(ctx);
	return ret;
}

const struct file_engine blk_file_engine_aio = {
	.name = "aio",
	.alias = "native",
	.probe = aio_probe,
	.rw = aio_rw,
};
