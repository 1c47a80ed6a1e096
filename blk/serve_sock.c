/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/serve_sock.c - a connection's bytes, in and out.
 *
 * In: small reads come out of a small buffer, large ones go to their destination and leave
 * what follows in the buffer, in one system call. Out: replies are queued; a fiber that
 * runs after all that are ready now sends them together. A queue that has grown large is
 * sent by who made it so, which keeps its data in the processor's cache. What is in a
 * file's pages is sent from there (serve_file.c).
 */
#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "blk/serve.h"

#define VECS 64

void blk_srv_kill(struct srv_conn *c)
{
	c->dead = true;
	(void)shutdown(c->fd, SHUT_RDWR);
}

static int64_t result(ssize_t n)
{
	if (n >= 0)
		return n;
	return errno == EWOULDBLOCK ? -EAGAIN : -errno;
}

static int64_t try_recv(struct srv_conn *c, struct thr_iov *v, unsigned n, enum thr_fd_dir *dir)
{
	struct msghdr m = {.msg_iov = (struct iovec *)(void *)v, .msg_iovlen = n};

	*dir = THR_FD_IN;
	if (c->tls)
		return blk_srv_tls_recv(c, v->base, v->len, dir);
	return result(recvmsg(c->fd, &m, MSG_DONTWAIT));
}

static int64_t try_send(struct srv_conn *c, struct thr_iov *v, unsigned n, enum thr_fd_dir *dir)
{
	struct msghdr m = {.msg_iov = (struct iovec *)(void *)v, .msg_iovlen = n};

	*dir = THR_FD_OUT;
	if (c->tls)
		return blk_srv_tls_send(c, v, n, dir);
	return result(sendmsg(c->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL));
}

/* Who receives and who sends wait for one direction each. Where TLS wants the other one,
 * which is seldom and for a moment, time passes instead. */
static int wait_for(struct srv_conn *c, enum thr_fd_dir mine, enum thr_fd_dir dir)
{
	if (mine == dir)
		return thr_fd_wait(&c->io, dir);
	thr_sleep(SRV_SECOND / 1000);
	return 0;
}

/* ---- in ---------------------------------------------------------------------------------- */

static int64_t recv_some(struct srv_conn *c, struct thr_iov *v, unsigned n)
{
	size_t room = v[0].len + (n > 1 ? v[1].len : 0);
	enum thr_fd_dir dir = THR_FD_IN;
	int64_t got = -EAGAIN;
	int err = 0;

	while (!err && (got == -EAGAIN || got == -EINTR)) {
		if (c->rx_empty)
			err = wait_for(c, THR_FD_IN, dir);
		if (err)
			return err;
		got = try_recv(c, v, n, &dir);
		c->rx_empty = got == -EAGAIN;
	}
	if (got == 0)
		return -ECONNRESET;
	c->rx_empty = !c->tls && got > 0 && (uint64_t)got < room;
	return got;
}

/* What is still to come, and more if there is. */
static int recv_rest(struct srv_conn *c, uint8_t *buf, size_t len)
{
	while (len) {
		struct thr_iov v[2] = {{buf, len}, {c->rx, SRV_RX}};
		int64_t n = recv_some(c, v, 2);

		if (n < 0)
			return (int)n;
		if ((uint64_t)n > len) {
			c->rx_at = 0;
			c->rx_end = (uint32_t)((size_t)n - len);
			return 0;
		}
		buf += n;
		len -= (size_t)n;
	}
	return 0;
}

int blk_srv_recv(struct srv_conn *c, void *buf, size_t len)
{
	uint8_t *to = (uint8_t *)buf;

	while (len) {
		size_t n = THR_MIN(c->rx_end - c->rx_at, len);

		memcpy(to, c->rx + c->rx_at, n);
		c->rx_at += (uint32_t)n;
		to += n;
		len -= n;
		if (!len)
			return 0;
		if (len >= SRV_RX / 4)
			return recv_rest(c, to, len);
		struct thr_iov v = {c->rx, SRV_RX};
		int64_t got = recv_some(c, &v, 1);

		c->rx_at = 0;
		c->rx_end = got > 0 ? (uint32_t)got : 0;
		if (got < 0)
			return (int)got;
	}
	return 0;
}

int blk_srv_skip(struct srv_conn *c, uint64_t len)
{
	uint8_t buf[512];
	int err = 0;

	while (!err && len) {
		size_t n = (size_t)THR_MIN(len, sizeof(buf));

		err = blk_srv_recv(c, buf, n);
		len -= n;
	}
	return err;
}

/* ---- out --------------------------------------------------------------------------------- */

static int64_t send_some(struct srv_conn *c, struct thr_iov *v, unsigned n)
{
	enum thr_fd_dir dir;
	int64_t put;
	int err = 0;

	for (;;) {
		put = try_send(c, v, n, &dir);
		if (put != -EAGAIN && put != -EINTR)
			return put;
		err = wait_for(c, THR_FD_OUT, dir);
		if (err)
			return err;
	}
}

int blk_srv_send(struct srv_conn *c, const void *buf, size_t len)
{
	struct thr_iov v = {(void *)(uintptr_t)buf, len};

	while (v.len) {
		int64_t n = send_some(c, &v, 1);

		if (n < 0)
			return (int)n;
		v.base = (uint8_t *)v.base + n;
		v.len -= (size_t)n;
	}
	return 0;
}

static unsigned gather(struct srv_conn *c, struct thr_iov *v)
{
	size_t skip = c->tx_done;
	unsigned n = 0;

	for (struct srv_out *o = c->tx; o && n + 2 <= VECS; o = o->next) {
		if (skip < o->head_len) {
			v[n++] = (struct thr_iov){o->head + skip, o->head_len - skip};
			skip = 0;
		} else {
			skip -= o->head_len;
		}
		if (o->len && !o->data)
			break;
		if (o->len > skip)
			v[n++] = (struct thr_iov){
				(uint8_t *)(uintptr_t)o->data + skip, o->len - skip};
		skip = 0;
	}
	return n;
}

/* What is left of it is read, then. Its head may be out: there is no other way to tell of
 * an error than to hang up. */
static int read_instead(struct srv_conn *c, struct srv_out *o)
{
	int err = blk_pread(c->export->dev, o->off, o->buf, o->len);

	if (!err)
		o->data = o->buf;
	return err;
}

/* Some of the file whose turn it is. */
static int64_t send_file(struct srv_conn *c)
{
	struct srv_out *o = c->tx;
	int64_t n;
	int err;

	for (;;) {
		n = blk_srv_sendfile(c, o, c->tx_done - o->head_len);
		if (n > 0)
			return n;
		if (n != -EAGAIN && n != -EINTR)
			return n == -EPIPE || n == -ECONNRESET ? n : read_instead(c, o);
		err = wait_for(c, THR_FD_OUT, THR_FD_OUT);
		if (err)
			return err;
	}
}

static bool at_file(const struct srv_conn *c)
{
	return c->tx->len && !c->tx->data && c->tx_done >= c->tx->head_len;
}

static void pop(struct srv_conn *c)
{
	struct srv_out *o = c->tx;

	c->tx = o->next;
	c->tx_bytes -= o->head_len + o->len;
	o->sent(o);
}

static void advance(struct srv_conn *c, size_t n)
{
	n += c->tx_done;
	while (c->tx && n >= c->tx->head_len + c->tx->len) {
		n -= c->tx->head_len + c->tx->len;
		pop(c);
	}
	c->tx_done = n;
}

static void flush(struct srv_conn *c)
{
	struct thr_iov v[VECS];
	int64_t n;

	c->sending = true;
	while (c->tx) {
		if (c->dead) {
			pop(c);
			continue;
		}
		n = at_file(c) ? send_file(c) : send_some(c, v, gather(c, v));
		if (n < 0)
			blk_srv_kill(c);
		else
			advance(c, (size_t)n);
	}
	c->sending = false;
}

static void flush_fiber(void *arg)
{
	struct srv_conn *c = (struct srv_conn *)arg;

	c->flush_due = false;
	if (!c->sending)
		flush(c);
	blk_srv_unbusy(c);
}

void blk_srv_queue(struct srv_conn *c, struct srv_out *o)
{
	o->next = NULL;
	if (c->tx)
		c->tx_tail->next = o;
	else
		c->tx = o;
	c->tx_tail = o;
	c->tx_bytes += o->head_len + o->len;
	if (c->sending)
		return;
	if (c->tx_bytes < SRV_FLUSH) {
		if (c->flush_due)
			return;
		c->busy++;
		c->flush_due = true;
		if (!thr_spawn(thr_exec_self(), flush_fiber, c))
			return;
		c->flush_due = false;
		flush(c);
		blk_srv_unbusy(c);
		return;
	}
	/* Replies that are sent may be those of the last request. */
	c->busy++;
	flush(c);
	blk_srv_unbusy(c);
}

static void wake_sender(struct srv_out *o)
{
	thr_wait_wake((struct thr_wait *)o->arg);
}

void blk_srv_queue_wait(struct srv_conn *c, struct srv_out *o)
{
	struct thr_wait w;

	thr_wait_init(&w);
	o->arg = &w;
	o->sent = wake_sender;
	blk_srv_queue(c, o);
	thr_wait_block(&w);
}
