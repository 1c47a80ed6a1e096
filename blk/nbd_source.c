/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/nbd_source.c - NBD requests on an executor: one source for each executor that
 * uses NBD devices, an epoll of the sockets of the connections where it has a seat,
 * and of the executor's wake eventfd.
 *
 * Fibers queue their requests and park; run() submits them, so that libnbd and what
 * it calls never stand on a fiber's small stack. libnbd calls back on whatever thread
 * moved the connection on. A request counts as pending at its source until its fiber
 * goes on, by which its executor sleeps in run() for as long as it has to.
 *
 * A connection that fails ends all requests in flight on it. So does closing one.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "blk/nbd.h"

struct nbd_seat {
	struct nbd_link *link;
	struct nbd_source *src;
	struct nbd_seat *next_of_link, *next_of_source;
};

struct nbd_source {
	struct thr_source src; /* fd is the epoll */
	pthread_mutex_t lock;  /* of seats */
	struct nbd_seat *seats;
	struct nbd_req *head, *tail; /* to be submitted */
	uint32_t woke;               /* atomic: a request of ours has ended */
	bool again;                  /* there is more to take than run() took */
};

/* Times that run() moves one connection on before it looks at the others. */
#define MOVES 256

static const char key;

/* Who gets or loses a seat, which takes the locks of both sides. */
static pthread_mutex_t seats_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- connections; all with their lock held ---------------------------------------- */

static void watch(struct nbd_link *l, struct nbd_seat *seat, int op)
{
	struct epoll_event ev = {.events = l->want, .data.ptr = seat};

	/* Fails where the descriptor is gone with the connection. */
	(void)epoll_ctl(seat->src->src.fd, op, l->fd, &ev);
}

static void watch_all(struct nbd_link *l, int op)
{
	for (struct nbd_seat *s = l->seats; s; s = s->next_of_link)
		watch(l, s, op);
}

static uint32_t wanted(const struct nbd_link *l)
{
	unsigned dir = libnbd.aio_get_direction(l->h);

	return (dir & LIBNBD_AIO_DIRECTION_READ ? (uint32_t)EPOLLIN : 0) |
	       (dir & LIBNBD_AIO_DIRECTION_WRITE ? (uint32_t)EPOLLOUT : 0);
}

/* The request may be gone when this returns. */
static void finish(struct nbd_req *q, int err)
{
	struct nbd_link *l = q->link;

	if (l && q->submitted) {
		if (q->prev)
			q->prev->next = q->next;
		else
			l->inflight = q->next;
		if (q->next)
			q->next->prev = q->prev;
	}
	q->err = err;
	q->submitted = false;
	if (!err && l && (q->op == NBD_OP_WRITE || q->op == NBD_OP_ZERO) &&
		!(q->flags & LIBNBD_CMD_FLAG_FUA))
		__atomic_fetch_add(&l->dev->writes, 1, __ATOMIC_ACQ_REL);
	__atomic_store_n(&q->src->woke, 1, __ATOMIC_RELEASE);
	thr_wait_wake(&q->wait);
}

static void hang_up(struct nbd_link *l)
{
	watch_all(l, EPOLL_CTL_DEL);
	libnbd.close(l->h);
	l->h = NULL;
	l->fd = -1;
	while (l->inflight)
		finish(l->inflight, -ENOTCONN);
}

static void lose(struct nbd_link *l)
{
	struct blk_nbd *d = l->dev;

	hang_up(l);
	l->lost_at = thr_now();
	if (__atomic_load_n(&d->writes, __ATOMIC_ACQUIRE) !=
		__atomic_load_n(&d->flushed, __ATOMIC_ACQUIRE))
		__atomic_store_n(&d->torn, 1, __ATOMIC_RELEASE);
}

static void settle(struct nbd_link *l)
{
	uint32_t want;

	if (libnbd.aio_is_dead(l->h) || libnbd.aio_is_closed(l->h)) {
		lose(l);
		return;
	}
	want = wanted(l);
	if (want == l->want)
		return;
	l->want = want;
	watch_all(l, EPOLL_CTL_MOD);
}

/* True: there may be more. TLS may hold back what poll() does not see, which
 * nbd_poll() knows of. */
static bool move_on(struct nbd_link *l)
{
	unsigned moves = 0;
	bool more = false;

	pthread_mutex_lock(&l->lock);
	if (l->h) {
		while (moves < MOVES && libnbd.poll(l->h, 0) > 0)
			moves++;
		more = moves == MOVES;
		settle(l);
	}
	pthread_mutex_unlock(&l->lock);
	return more;
}

/* ---- requests ------------------------------------------------------------------------- */

static int completed(void *arg, int *error)
{
	finish((struct nbd_req *)arg, -*error);
	return 1;
}

static int got_extents(
	void *arg, const char *context, uint64_t off, uint32_t *v, size_t n, int *error)
{
	struct nbd_req *q = (struct nbd_req *)arg;

	(void)error;
	if (n < 2 || off != q->off || strcmp(context, LIBNBD_CONTEXT_BASE_ALLOCATION))
		return 0;
	q->extent_len = v[0];
	q->extent_flags = v[1];
	return 0;
}

static int64_t issue(struct nbd_handle *h, struct nbd_req *q)
{
	nbd_completion_callback done = {.callback = completed, .user_data = q};
	nbd_extent_callback extents = {.callback = got_extents, .user_data = q};

	switch (q->op) {
	case NBD_OP_READ:
		return libnbd.aio_pread(h, q->buf, (size_t)q->len, q->off, done, q->flags);
	case NBD_OP_WRITE:
		return libnbd.aio_pwrite(h, q->buf, (size_t)q->len, q->off, done, q->flags);
	case NBD_OP_ZERO:
		return libnbd.aio_zero(h, q->len, q->off, done, q->flags);
	case NBD_OP_TRIM:
		return libnbd.aio_trim(h, q->len, q->off, done, q->flags);
	case NBD_OP_CACHE:
		return libnbd.aio_cache(h, q->len, q->off, done, q->flags);
	case NBD_OP_FLUSH:
		return libnbd.aio_flush(h, done, q->flags);
	case NBD_OP_STATUS:
		return libnbd.aio_block_status(h, q->len, q->off, extents, done, q->flags);
	}
	return -1;
}

static void submit(struct nbd_req *q)
{
	struct nbd_link *l = q->link;
	int err;

	pthread_mutex_lock(&l->lock);
	q->gen = l->gen;
	if (!l->h) {
		finish(q, -ENOTCONN);
		pthread_mutex_unlock(&l->lock);
		return;
	}
	q->submitted = true;
	q->prev = NULL;
	q->next = l->inflight;
	if (q->next)
		q->next->prev = q;
	l->inflight = q;
	/* Our own fibers do not run before run() returns: q is still there. */
	if (issue(l->h, q) < 0 && q->submitted) {
		err = libnbd.get_errno();
		if (!libnbd.aio_is_dead(l->h) && !libnbd.aio_is_closed(l->h))
			finish(q, err ? -err : -EIO);
	}
	settle(l);
	pthread_mutex_unlock(&l->lock);
}

static void submit_all(struct nbd_source *s)
{
	struct nbd_req *q;

	while ((q = s->head)) {
		s->head = q->next;
		submit(q);
	}
}

/* ---- the source ------------------------------------------------------------------------ */

static bool take_events(struct nbd_source *s, const struct epoll_event *ev, int n)
{
	bool more = false;

	for (struct nbd_seat *seat = s->seats; seat; seat = seat->next_of_source) {
		bool ready = s->again;

		for (int i = 0; i < n && !ready; i++)
			ready = ev[i].data.ptr == seat;
		if (ready)
			more |= move_on(seat->link);
	}
	return more;
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

static void run(struct thr_source *src, int64_t timeout_ns)
{
	struct nbd_source *s = THR_CONTAINER(src, struct nbd_source, src);
	struct epoll_event ev[NBD_MAX_LINKS];
	int n;

	submit_all(s);
	if (s->again || __atomic_exchange_n(&s->woke, 0, __ATOMIC_ACQ_REL))
		timeout_ns = 0;
	if (timeout_ns > 0)
		sleep_on(src->fd, timeout_ns);
	n = epoll_wait(src->fd, ev, NBD_MAX_LINKS, timeout_ns < 0 ? -1 : 0);
	if (n <= 0 && !s->again)
		return;
	pthread_mutex_lock(&s->lock);
	s->again = take_events(s, ev, n);
	pthread_mutex_unlock(&s->lock);
}

/* With the lock of seats held. */
static void leave_seat(struct nbd_seat *seat)
{
	struct nbd_source *s = seat->src;
	struct nbd_link *l = seat->link;
	struct nbd_seat **p;

	pthread_mutex_lock(&s->lock);
	pthread_mutex_lock(&l->lock);
	if (l->h)
		watch(l, seat, EPOLL_CTL_DEL);
	for (p = &l->seats; *p != seat; p = &(*p)->next_of_link)
		;
	*p = seat->next_of_link;
	for (p = &s->seats; *p != seat; p = &(*p)->next_of_source)
		;
	*p = seat->next_of_source;
	pthread_mutex_unlock(&l->lock);
	pthread_mutex_unlock(&s->lock);
	thr_put(&thr_heap, seat, sizeof(*seat));
}

static void close_source(struct thr_source *src)
{
	struct nbd_source *s = THR_CONTAINER(src, struct nbd_source, src);

	pthread_mutex_lock(&seats_lock);
	while (s->seats)
		leave_seat(s->seats);
	pthread_mutex_unlock(&seats_lock);
	close(src->fd);
	pthread_mutex_destroy(&s->lock);
	thr_put(&thr_heap, s, sizeof(*s));
}

static const struct thr_source_ops source_ops = {
	.run = run,
	.close = close_source,
};

static struct nbd_source *open_source(struct thr_exec *e)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = NULL};
	struct nbd_source *s = (struct nbd_source *)thr_zget(&thr_heap, sizeof(*s));

	if (!s)
		return NULL;
	s->src.ops = &source_ops;
	s->src.key = &key;
	s->src.can_sleep = true;
	pthread_mutex_init(&s->lock, NULL);
	s->src.fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->src.fd >= 0 && !epoll_ctl(s->src.fd, EPOLL_CTL_ADD, thr_exec_wake_fd(e), &ev) &&
		!thr_source_add(e, &s->src))
		return s;
	if (s->src.fd >= 0)
		close(s->src.fd);
	pthread_mutex_destroy(&s->lock);
	thr_put(&thr_heap, s, sizeof(*s));
	return NULL;
}

static struct nbd_source *source_here(void)
{
	struct thr_exec *e = thr_exec_self();
	struct thr_source *s = thr_source_find(e, &key);

	return s ? THR_CONTAINER(s, struct nbd_source, src) : open_source(e);
}

/* ---- seats --------------------------------------------------------------------------------
 */

static struct nbd_link *link_of(struct nbd_source *s, const struct blk_nbd *d)
{
	struct nbd_link *l = NULL;

	pthread_mutex_lock(&s->lock);
	for (struct nbd_seat *seat = s->seats; seat && !l; seat = seat->next_of_source)
		if (seat->link->dev == d)
			l = seat->link;
	pthread_mutex_unlock(&s->lock);
	return l;
}

static int take_seat(struct nbd_source *s, struct nbd_link *l)
{
	struct nbd_seat *seat = (struct nbd_seat *)thr_zget(&thr_heap, sizeof(*seat));

	if (!seat)
		return -ENOMEM;
	seat->link = l;
	seat->src = s;
	pthread_mutex_lock(&seats_lock);
	pthread_mutex_lock(&s->lock);
	pthread_mutex_lock(&l->lock);
	seat->next_of_link = l->seats;
	l->seats = seat;
	seat->next_of_source = s->seats;
	s->seats = seat;
	if (l->h)
		watch(l, seat, EPOLL_CTL_ADD);
	pthread_mutex_unlock(&l->lock);
	pthread_mutex_unlock(&s->lock);
	pthread_mutex_unlock(&seats_lock);
	return 0;
}

/* The next connection that is there; the first one is. A server may well refuse the
 * others. */
static struct nbd_link *pick_link(struct blk_nbd *d, bool plain)
{
	struct nbd_link *l = d->links;

	if (plain)
		return l;
	l += d->next_link++ % d->nlinks;
	if (l->gen || !blk_nbd_revive(l, 0))
		return l;
	d->nlinks = (unsigned)(l - d->links);
	return d->links;
}

static int seat_here(struct blk_nbd *d, struct nbd_source *s, bool plain, struct nbd_link **out)
{
	int err = 0;

	*out = link_of(s, d);
	if (THR_LIKELY(*out != NULL))
		return 0;
	thr_mutex_lock(&d->seating);
	*out = link_of(s, d);
	if (!*out) {
		*out = pick_link(d, plain);
		err = take_seat(s, *out);
	}
	thr_mutex_unlock(&d->seating);
	return err;
}

int blk_nbd_try(struct blk_nbd *d, struct nbd_req *q)
{
	struct nbd_source *s = source_here();
	int err = s ? seat_here(d, s, q->plain, &q->link) : -ENOMEM;

	if (err)
		return err;
	q->src = s;
	q->next = NULL;
	q->submitted = false;
	thr_wait_init(&q->wait);
	if (s->head)
		s->tail->next = q;
	else
		s->head = q;
	s->tail = q;
	s->src.pending++;
	thr_wait_block(&q->wait);
	s->src.pending--;
	return q->err;
}

/* ---- for plain threads ----------------------------------------------------------------- */

struct plain {
	struct blk_nbd *d;
	struct nbd_req *q;
	int err;
};

static void plain_fiber(void *arg)
{
	struct plain *p = (struct plain *)arg;

	p->err = blk_nbd_insist(p->d, p->q);
}

static int plain_request(struct blk_nbd *d, struct nbd_req *q)
{
	struct plain p = {.d = d, .q = q};
	int err = 0;

	q->plain = true;
	thr_mutex_lock(&d->plain_lock);
	if (!d->plain)
		err = thr_exec_open(&d->plain, &thr_heap);
	if (!err)
		err = thr_spawn(d->plain, plain_fiber, &p);
	if (!err)
		thr_exec_run(d->plain);
	thr_mutex_unlock(&d->plain_lock);
	return err ? err : p.err;
}

int blk_nbd_request(struct blk_nbd *d, struct nbd_req *q)
{
	return thr_in_fiber() ? blk_nbd_insist(d, q) : plain_request(d, q);
}

/* ---- links --------------------------------------------------------------------------------
 */

void blk_nbd_link_init(struct nbd_link *l, struct blk_nbd *d)
{
	l->dev = d;
	l->fd = -1;
	pthread_mutex_init(&l->lock, NULL);
	thr_mutex_init(&l->dialling);
}

void blk_nbd_link_use(struct nbd_link *l, struct nbd_handle *h)
{
	pthread_mutex_lock(&l->lock);
	l->h = h;
	l->gen++;
	l->fd = libnbd.aio_get_fd(h);
	l->want = wanted(l);
	watch_all(l, EPOLL_CTL_ADD);
	pthread_mutex_unlock(&l->lock);
}

void blk_nbd_link_fini(struct nbd_link *l)
{
	pthread_mutex_lock(&seats_lock);
	while (l->seats)
		leave_seat(l->seats);
	pthread_mutex_unlock(&seats_lock);
	pthread_mutex_lock(&l->lock);
	if (l->h) {
		(void)libnbd.aio_disconnect(l->h, 0);
		hang_up(l);
	}
	pthread_mutex_unlock(&l->lock);
	pthread_mutex_destroy(&l->lock);
}
