/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/engine_uring.c - engine "uring": io_uring, one ring for each executor.
 *
 * Fibers fill in submission entries and park; run() hands all of them to the
 * kernel, sleeps if it may, and takes what has completed, in one system call. While
 * it sleeps a poll request in the ring watches the executor's wake eventfd.
 *
 * The executors of a pool are driven by their own thread for life, so their rings
 * may have a single issuer, whose completions are worked off when it asks for
 * them: no interrupt of the thread, and more of them at a time.
 *
 * Who sleeps elsewhere is told by an eventfd (such a ring's own descriptor does not
 * wake a poll). Completions signal it only after a run() without a timeout, and
 * it is read only by a run() that finds nothing new after another one without:
 * so an executor that sleeps here has nothing to do with it.
 */
#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "blk/engine_ring.h"

enum {
	ENTRIES = 256,
	/* In the kernel at a time, of ENTRIES * 4 completions: none is ever
	 * without a place. */
	INFLIGHT = ENTRIES * 2,
};

struct uring {
	struct thr_source src;
	struct io_uring ring;
	struct ring_queue waiting; /* for room in the ring */
	unsigned inflight;         /* those in the ring, submitted or not */
	int wake_fd;
	bool watching; /* wake_fd */
	bool stale;    /* src.fd may be readable */
	bool slept;    /* the last run() had a timeout */
	bool dead;     /* the kernel refuses everything: seccomp, most likely */
};

static const char key;

static void prepare(struct ring_req *r, struct io_uring_sqe *sqe)
{
	const struct file_io *io = r->io;

	if (!io) {
		io_uring_prep_fsync(sqe, r->fd, IORING_FSYNC_DATASYNC);
	} else {
		unsigned n = (unsigned)io->niov;
		const struct iovec *v = io->iov;

		if (n == 1 && io->write)
			io_uring_prep_write(
				sqe, r->fd, v->iov_base, (unsigned)v->iov_len, io->off);
		else if (n == 1)
			io_uring_prep_read(
				sqe, r->fd, v->iov_base, (unsigned)v->iov_len, io->off);
		else if (io->write)
			io_uring_prep_writev(sqe, r->fd, v, n, io->off);
		else
			io_uring_prep_readv(sqe, r->fd, v, n, io->off);
		sqe->rw_flags = io->rwf;
	}
	io_uring_sqe_set_data(sqe, r);
}

static bool put_in(struct uring *u, struct ring_req *r)
{
	struct io_uring_sqe *sqe;

	if (u->inflight >= INFLIGHT)
		return false;
	sqe = io_uring_get_sqe(&u->ring);
	if (!sqe)
		return false;
	prepare(r, sqe);
	u->inflight++;
	return true;
}

static void put_in_waiting(struct uring *u)
{
	while (u->waiting.head && put_in(u, u->waiting.head))
		u->waiting.head = u->waiting.head->next;
}

static void complete(struct uring *u, struct ring_req *r, int64_t res)
{
	u->inflight--;
	u->src.pending--;
	ring_done(r, res);
}

/* Wakes whose request has completed; how many there were, a wake-up of the executor
 * included. */
static unsigned reap(struct uring *u)
{
	struct io_uring_cqe *cqe;
	unsigned head;
	unsigned n = 0;

	io_uring_for_each_cqe(&u->ring, head, cqe)
	{
		struct ring_req *r = (struct ring_req *)io_uring_cqe_get_data(cqe);

		n++;
		if (r)
			complete(u, r, cqe->res);
		else
			u->watching = false;
	}
	io_uring_cq_advance(&u->ring, n);
	return n;
}

/* What was not taken by the kernel goes back to its fibers, which go on with
 * threads, as will everybody after them. */
static void die(struct uring *u)
{
	struct io_uring_sq *sq = &u->ring.sq;
	struct ring_req *r;

	u->dead = true;
	for (unsigned i = *sq->khead; i != sq->sqe_tail; i++) {
		r = (struct ring_req *)(uintptr_t)sq->sqes[i & (*sq->kring_entries - 1)]
			    .user_data;
		if (r)
			complete(u, r, -EAGAIN);
	}
	while (u->waiting.head) {
		r = u->waiting.head;
		u->waiting.head = r->next;
		u->src.pending--;
		ring_done(r, -EAGAIN);
	}
}

static void watch(struct uring *u)
{
	struct io_uring_sqe *sqe;

	if (u->watching)
		return;
	sqe = io_uring_get_sqe(&u->ring);
	if (!sqe)
		return;
	io_uring_prep_poll_add(sqe, u->wake_fd, POLLIN);
	io_uring_sqe_set_data(sqe, NULL);
	u->watching = true;
}

static int enter_and_wait(struct uring *u, int64_t timeout_ns)
{
	struct io_uring_cqe *cqe;
	struct __kernel_timespec ts = {
		.tv_sec = timeout_ns / 1000000000,
		.tv_nsec = timeout_ns % 1000000000,
	};

	if (timeout_ns < 0)
		return io_uring_submit_and_wait(&u->ring, 1);
	return io_uring_submit_and_wait_timeout(&u->ring, &cqe, 1, &ts, NULL);
}

static void settle(struct uring *u)
{
	uint64_t n;

	u->stale = false;
	if (read(u->src.fd, &n, sizeof(n)) < 0 && errno != EAGAIN)
		thr_panic("cannot read an eventfd");
}

static int submit(struct uring *u, int64_t timeout_ns)
{
	if (u->dead)
		return 0;
	if (timeout_ns)
		watch(u);
	/* Who may not watch may not sleep either. */
	if (timeout_ns && u->watching) {
		io_uring_cq_eventfd_toggle(&u->ring, false);
		return enter_and_wait(u, timeout_ns);
	}
	io_uring_cq_eventfd_toggle(&u->ring, true);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return io_uring_submit(&u->ring);
}

static void run(struct thr_source *s, int64_t timeout_ns)
{
	struct uring *u = THR_CONTAINER(s, struct uring, src);
	unsigned n;
	int ret;

	put_in_waiting(u);
	ret = submit(u, timeout_ns);
	n = reap(u);
	if (n) {
		u->stale = true;
	} else if (u->stale && !u->slept && !timeout_ns) {
		settle(u);
		ret = submit(u, 0);
		reap(u);
	}
	u->slept = timeout_ns != 0;
	if (ret < 0 && ret != -EINTR && ret != -EAGAIN && ret != -EBUSY && ret != -ETIME)
		die(u);
}

static void close_ring(struct thr_source *s)
{
	struct uring *u = THR_CONTAINER(s, struct uring, src);

	io_uring_queue_exit(&u->ring);
	close(u->src.fd);
	thr_put(&thr_heap, u, sizeof(*u));
}

static const struct thr_source_ops source_ops = {
	.run = run,
	.close = close_ring,
};

static int init_ring(struct io_uring *ring)
{
	unsigned base = IORING_SETUP_CLAMP | IORING_SETUP_CQSIZE;
	unsigned single = IORING_SETUP_SUBMIT_ALL | IORING_SETUP_SINGLE_ISSUER |
			  IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG;
	struct io_uring_params p = {.flags = base | single, .cq_entries = ENTRIES * 4};
	int ret = -EINVAL;

	if (thr_pool_self())
		ret = io_uring_queue_init_params(ENTRIES, ring, &p);
	if (ret == -EINVAL) {
		memset(&p, 0, sizeof(p));
		p.flags = base;
		p.cq_entries = ENTRIES * 4;
		ret = io_uring_queue_init_params(ENTRIES, ring, &p);
	} else if (!ret) {
		io_uring_register_ring_fd(ring);
	}
	return ret;
}

static struct uring *open_ring(struct thr_exec *e)
{
	struct uring *u = (struct uring *)thr_zget(&thr_heap, sizeof(*u));

	if (!u)
		return NULL;
	u->src.ops = &source_ops;
	u->src.key = &key;
	u->src.can_sleep = true;
	u->wake_fd = thr_exec_wake_fd(e);
	u->src.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (u->src.fd < 0 || init_ring(&u->ring)) {
		if (u->src.fd >= 0)
			close(u->src.fd);
		thr_put(&thr_heap, u, sizeof(*u));
		return NULL;
	}
	if (io_uring_register_eventfd(&u->ring, u->src.fd) || thr_source_add(e, &u->src)) {
		close_ring(&u->src);
		return NULL;
	}
	return u;
}

static struct uring *ring_of(struct blk_file *f)
{
	struct thr_exec *e = thr_exec_self();
	struct thr_source *s = thr_source_find(e, &key);
	struct uring *u;

	if (THR_LIKELY(s != NULL)) {
		u = THR_CONTAINER(s, struct uring, src);
		return u->dead ? NULL : u;
	}
	u = open_ring(e);
	if (!u)
		file_set_cannot(f, FILE_NO_URING);
	return u;
}

/* -EAGAIN: there is no ring. */
static int64_t request(struct blk_file *f, const struct file_io *io)
{
	struct uring *u = file_cannot(f, FILE_NO_URING) ? NULL : ring_of(f);
	struct ring_req r = {.io = io, .fd = f->fd};

	if (!u)
		return -EAGAIN;
	thr_wait_init(&r.wait);
	u->src.pending++;
	if (u->waiting.head || !put_in(u, &r))
		ring_queue_push(&u->waiting, &r);
	thr_wait_block(&r.wait);
	/* The thread that submitted it, one of several that drive the executor, has
	 * ended. */
	return r.res == -ECANCELED ? -EAGAIN : r.res;
}

static int64_t uring_rw(struct blk_file *f, struct file_io *io)
{
	return request(f, io);
}

static int uring_sync(struct blk_file *f)
{
	return (int)request(f, NULL);
}

static int uring_probe(struct blk_file *f)
{
	struct io_uring ring;
	int ret = io_uring_queue_init(2, &ring, 0);

	(void)f;
	if (!ret)
		io_uring_queue_exit(&ring);
	return ret;
}

const struct file_engine blk_file_engine_uring = {
	.name = "uring",
	.alias = "io_uring",
	.probe = uring_probe,
	.rw = uring_rw,
	.sync = uring_sync,
};
