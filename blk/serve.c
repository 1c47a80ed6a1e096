/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/serve.c - the NBD server: who is connected. Accepting, the limit of clients and who
 * waits below it, the spread over executors, and the end.
 * https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md
 *
 * On the caller's executor: a fiber for each listening socket, one that waits for the
 * order to stop, one that looks after the time of handshakes. A connection is taken from
 * the list before its socket is closed, so that whoever holds the lock may shut it down.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "blk/serve.h"

#define HELLO_NS (10 * SRV_SECOND)
#define GRACE_NS (2 * SRV_SECOND)
#define TICK_NS  (SRV_SECOND / 4)
#define FDS_MAX  8

/* ---- a connection ---------------------------------------------------------------------------
 */

static void conn_main(void *arg);

static struct srv_conn *conn_new(struct srv *s, int fd)
{
	const struct thr_alloc *mem = s->o->mem;
	struct srv_conn *c = (struct srv_conn *)thr_zget(mem, sizeof(*c));

	if (!c)
		return NULL;
	c->srv = s;
	c->fd = fd;
	c->until = thr_now() + HELLO_NS;
	c->rx = (uint8_t *)thr_get(mem, SRV_RX, 16);
	if (c->rx)
		return c;
	thr_put(mem, c, sizeof(*c));
	return NULL;
}

static void conn_free(struct srv_conn *c)
{
	const struct thr_alloc *mem = c->srv->o->mem;

	close(c->fd);
	blk_srv_buf_free_all(c);
	thr_put(mem, c->rx, SRV_RX);
	thr_put(mem, c, sizeof(*c));
}

/* With the lock held. */
static void link_conn(struct srv_conn *c)
{
	struct srv *s = c->srv;

	c->next = s->conns;
	if (c->next)
		c->next->prev = c;
	s->conns = c;
	s->nconns++;
}

static void unlink_conn(struct srv_conn *c)
{
	struct srv *s = c->srv;

	if (c->prev)
		c->prev->next = c->next;
	else
		s->conns = c->next;
	if (c->next)
		c->next->prev = c->prev;
}

static void set_up_socket(int fd)
{
	int one = 1, room = SRV_SNDBUF, domain = AF_UNSPEC;
	socklen_t len = sizeof(domain);

	/* Of other kinds of sockets it is not an option. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	/* TCP finds out by itself. */
	if (!getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) && domain == AF_UNIX)
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
}

/* With the lock held; takes @fd. */
static void conn_start(struct srv *s, int fd)
{
	struct srv_conn *c = conn_new(s, fd);
	struct thr_exec *e = s->exec;

	if (!c) {
		close(fd);
		return;
	}
	set_up_socket(fd);
	if (s->pool)
		e = thr_pool_exec(s->pool, s->next_exec++ % thr_pool_count(s->pool));
	link_conn(c);
	if (!thr_spawn(e, conn_main, c))
		return;
	unlink_conn(c);
	s->nconns--;
	conn_free(c);
}

/* The next one that waits, as long as there is a place. With the lock held. */
static void let_in(struct srv *s)
{
	while (s->nwait && s->nconns < s->clients && !s->ending) {
		int fd = s->waiting[s->wait_at];

		s->wait_at = (s->wait_at + 1) % BLK_NBD_WAITING;
		s->nwait--;
		conn_start(s, fd);
	}
}

static void conn_end(struct srv_conn *c, bool served)
{
	struct srv *s = c->srv;

	thr_mutex_lock(&s->lock);
	unlink_conn(c);
	thr_mutex_unlock(&s->lock);
	conn_free(c);
	thr_mutex_lock(&s->lock);
	s->nconns--;
	let_in(s);
	if (served && !s->nconns && !s->o->persistent)
		s->ending = true;
	thr_cond_signal(&s->cond);
	thr_mutex_unlock(&s->lock);
}

static bool conn_serve(struct srv_conn *c)
{
	int err;

	/* sendfile() has no flag for it. */
	if (fcntl(c->fd, F_SETFL, O_NONBLOCK))
		return false;
	err = thr_fd_open(&c->io, c->fd);
	if (err)
		return false;
	err = blk_srv_hello(c);
	if (!err) {
		__atomic_store_n(&c->until, 0, __ATOMIC_RELAXED);
		blk_srv_talk(c);
	}
	blk_srv_tls_end(c);
	thr_fd_close(&c->io);
	return !err;
}

static void conn_main(void *arg)
{
	struct srv_conn *c = (struct srv_conn *)arg;

	conn_end(c, conn_serve(c));
}

/* ---- accepting ------------------------------------------------------------------------------
 */

static void admit(struct srv *s, int fd)
{
	thr_mutex_lock(&s->lock);
	if (s->ending || s->nwait == BLK_NBD_WAITING) {
		close(fd);
	} else {
		s->waiting[(s->wait_at + s->nwait++) % BLK_NBD_WAITING] = fd;
		let_in(s);
	}
	thr_mutex_unlock(&s->lock);
}

struct watch {
	struct srv *s;
	struct thr_fd io;
	int fd;
	bool open;
};

static int accept_all(void *arg)
{
	struct watch *w = (struct watch *)arg;
	int err = 0, fd;

	while (!err) {
		fd = accept4(w->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0)
			admit(w->s, fd);
		else if (errno == EAGAIN || errno == EWOULDBLOCK)
			err = thr_fd_wait(&w->io, THR_FD_IN);
		else if (errno != ECONNABORTED && errno != EINTR)
			thr_sleep(TICK_NS); /* no descriptors left, for instance */
		if (w->io.cancelled)
			err = -ECANCELED;
	}
	return 0;
}

/* ---- the order to stop, and time
 * -------------------------------------------------------------- */

static void set_ending(struct srv *s)
{
	thr_mutex_lock(&s->lock);
	s->ending = true;
	thr_cond_signal(&s->cond);
	thr_mutex_unlock(&s->lock);
}

static int await_stop(void *arg)
{
	struct watch *w = (struct watch *)arg;

	if (!thr_fd_wait(&w->io, THR_FD_IN))
		set_ending(w->s);
	return 0;
}

static void look_at(struct srv *s)
{
	uint64_t now = thr_now();

	thr_mutex_lock(&s->lock);
	for (struct srv_conn *c = s->conns; c; c = c->next) {
		uint64_t until = __atomic_load_n(&c->until, __ATOMIC_RELAXED);

		if ((until && until < now) || (s->give_up && s->give_up < now))
			(void)shutdown(c->fd, SHUT_RDWR);
	}
	thr_mutex_unlock(&s->lock);
}

static int keep_time(void *arg)
{
	struct watch *w = (struct watch *)arg;
	uint64_t ticks;

	while (!thr_fd_wait(&w->io, THR_FD_IN))
		if (read(w->fd, &ticks, sizeof(ticks)) == sizeof(ticks)) {
			look_at(w->s);
			if (w->s->o->tick)
				w->s->o->tick(w->s->o->tick_ctx);
		}
	return 0;
}

/* ---- from the beginning to the end
 * ------------------------------------------------------------ */

static void cut_off(struct srv *s)
{
	s->give_up = thr_now() + GRACE_NS;
	for (; s->nwait; s->nwait--) {
		close(s->waiting[s->wait_at]);
		s->wait_at = (s->wait_at + 1) % BLK_NBD_WAITING;
	}
	for (struct srv_conn *c = s->conns; c; c = c->next)
		(void)shutdown(c->fd, SHUT_RD);
}

static void await_end(struct srv *s)
{
	thr_mutex_lock(&s->lock);
	while (!s->ending)
		thr_cond_wait(&s->cond, &s->lock);
	cut_off(s);
	while (s->nconns)
		thr_cond_wait(&s->cond, &s->lock);
	thr_mutex_unlock(&s->lock);
}

static int open_timer(void)
{
	struct itimerspec t = {
		.it_value = {0, TICK_NS},
		.it_interval = {0, TICK_NS},
	};
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

	if (fd >= 0)
		timerfd_settime(fd, 0, &t, NULL);
	return fd;
}

static int watch_fd(
	struct watch *w, struct srv *s, int fd, struct thr_group *g, int (*fn)(void *arg))
{
	int err;

	w->s = s;
	w->fd = fd;
	err = thr_fd_open(&w->io, fd);
	if (err)
		return err;
	w->open = true;
	return thr_group_spawn(g, NULL, fn, w);
}

static void init(struct srv *s, const struct blk_nbd_server *o)
{
	memset(s, 0, sizeof(*s));
	s->o = o;
	s->memory = o->memory ? o->memory : 64u << 20;
	s->clients = o->clients ? THR_MIN(o->clients, BLK_NBD_CLIENTS_MAX)
				: BLK_NBD_CLIENTS_MAX;
	s->exec = thr_exec_self();
	s->pool = thr_pool_self();
	thr_mutex_init(&s->lock);
	thr_mutex_init(&s->hint_lock);
	thr_cond_init(&s->cond);
}

int blk_nbd_serve(const struct blk_nbd_server *o, struct blk_err *err)
{
	struct watch w[FDS_MAX + 2] = {0};
	struct thr_group g;
	struct srv s;
	int timer, code = 0;

	THR_ASSERT(thr_in_fiber());
	if (!o->nfds || o->nfds > FDS_MAX)
		return blk_fail(err, -EINVAL, BLK_E_SYS, 0, o->nfds);
	init(&s, o);
	timer = open_timer();
	if (timer < 0)
		return blk_fail(err, -errno, BLK_E_SYS, 0, 0);
	thr_group_init(&g);
	code = watch_fd(&w[0], &s, timer, &g, keep_time);
	if (!code && o->stop_fd >= 0)
		code = watch_fd(&w[1], &s, o->stop_fd, &g, await_stop);
	for (unsigned i = 0; !code && i < o->nfds; i++)
		code = watch_fd(&w[2 + i], &s, o->fds[i], &g, accept_all);
	if (code)
		set_ending(&s);
	await_end(&s);
	for (unsigned i = 0; i < THR_ARRAY_SIZE(w); i++)
		if (w[i].open)
			thr_fd_cancel(&w[i].io);
	(void)thr_group_wait(&g);
	for (unsigned i = 0; i < THR_ARRAY_SIZE(w); i++)
		if (w[i].open)
			thr_fd_close(&w[i].io);
	close(timer);
	return code ? blk_fail(err, code, BLK_E_SYS, 0, 0) : 0;
}

int blk_nbd_serve_one(const struct blk_nbd_server *o, int fd)
{
	struct srv_conn *c;
	struct srv s;

	THR_ASSERT(thr_in_fiber());
	init(&s, o);
	c = conn_new(&s, fd);
	if (!c) {
		close(fd);
		return -ENOMEM;
	}
	thr_mutex_lock(&s.lock);
	link_conn(c);
	thr_mutex_unlock(&s.lock);
	conn_main(c);
	return 0;
}
