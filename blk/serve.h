/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/serve.h - what the files of the NBD server share. Private.
 *
 * A connection lives on one executor, and all its fibers with it: one receives, each
 * request is one, and whoever has something to send sends what others have queued too. So
 * a connection has no lock. What connections share (who is there, memory in flight) is in
 * struct srv.
 *
 * Memory: data in flight is bounded by srv->memory for all connections together, but a
 * connection with nothing in flight may always have one request of up to SRV_PIECE, so a
 * client that takes or sends nothing holds up nobody else. Larger requests are done in
 * pieces of that size.
 */
#ifndef BLK_SERVE_H
#define BLK_SERVE_H

#include "blk/nbd_proto.h"
#include "blk/private.h"

#define SRV_PIECE    (2u << 20)
#define SRV_WINDOW   (4u << 20)   /* in flight on one connection, unless it is one request */
#define SRV_INFLIGHT 128          /* requests */
#define SRV_COST     (8u << 10)   /* what a request takes beside its data */
#define SRV_KEEP     (1u << 20)   /* in buffers that a connection keeps for its next requests */
#define SRV_BACKLOG  (256u << 10) /* queued: no further request is taken */
#define SRV_FLUSH    (128u << 10) /* queued: sent at once */
#define SRV_RX       4096u
#define SRV_SNDBUF   (1 << 20) /* of a Unix socket: for the reader to find several replies */
#define SRV_OPT_MAX  (64u << 10)
#define SRV_SKIP_MAX (64u << 20) /* of a bad request: more ends the connection */
#define SRV_CLASSES  10          /* of buffers: 4 KiB << n */
#define SRV_SECOND   1000000000ull

struct srv_conn;

/* Something to send. sent() is the last use of it; it does not wait. */
struct srv_out {
	struct srv_out *next;
	void (*sent)(struct srv_out *o);
	void *arg;
	uint32_t head_len;
	uint8_t head[36];
	const void *data;
	size_t len;
	/* Where @data is NULL and @len is not 0: of this file, or, where that cannot be sent,
	 * read into @buf. */
	int fd;
	uint64_t off;
	void *buf;
};

struct srv_req {
	struct srv_out out;
	struct srv_conn *c;
	struct srv_req *next; /* of those that are not used */
	uint16_t flags, cmd;
	uint64_t cookie, off;
	uint32_t len;
	uint32_t cost;
	void *buf;
	unsigned cls;
};

/* What is known to be data, and to be so until something is zeroed or trimmed. */
struct srv_hint {
	const struct blk_nbd_export *export;
	uint64_t from, to;
};
#define SRV_HINTS 8

struct srv {
	const struct blk_nbd_server *o;
	uint64_t memory;
	uint64_t used; /* atomic: of memory */
	unsigned clients;
	struct thr_pool *pool;
	struct thr_exec *exec;

	struct thr_mutex lock;
	struct thr_cond cond; /* ending, or one less */
	struct srv_conn *conns;
	unsigned nconns;
	unsigned next_exec;
	int waiting[BLK_NBD_WAITING]; /* sockets, a ring */
	unsigned wait_at, nwait;
	bool ending;
	struct thr_mutex hint_lock;
	struct srv_hint hints[SRV_HINTS];
	unsigned next_hint;
	uint32_t forgot;  /* how often */
	uint64_t give_up; /* when the connections that are left are cut */
};

struct srv_conn {
	struct srv *srv;
	struct srv_conn *next, *prev; /* with srv->lock */
	int fd;
	struct thr_fd io;
	void *tls;      /* SSL, or NULL */
	uint64_t until; /* atomic: the end of the handshake; 0: it is over */

	const struct blk_nbd_export *export;
	bool no_zeroes, structured;
	const struct blk_nbd_export *meta; /* whose contexts were chosen */
	uint32_t contexts;                 /* which */

	uint8_t *rx;
	uint32_t rx_at, rx_end;
	bool rx_empty; /* the last read took all that there was */

	struct srv_out *tx, *tx_tail;
	size_t tx_bytes; /* queued */
	size_t tx_done;  /* of the first one */
	bool sending, flush_due;
	bool dead; /* nothing can be sent any more */

	unsigned next_exec; /* that reads for this connection */
	unsigned busy;      /* fibers and requests that use the connection */
	unsigned inflight;
	uint64_t bytes;         /* their cost */
	struct thr_wait *room;  /* the receiver waits for less in flight */
	struct thr_wait *quiet; /* or for nothing to be busy */
	struct srv_req *spare;
	void *kept[SRV_CLASSES]; /* buffers, linked through their first bytes */
	size_t kept_bytes;
};

/* ---- serve.c ----------------------------------------------------------------------- */

/* The contexts of an export: base:allocation first, whether it is given or not. */
unsigned blk_srv_context_count(const struct blk_nbd_export *e);
const struct blk_nbd_context *blk_srv_context(
	const struct blk_nbd_export *e, unsigned i, struct blk_nbd_context *own);
bool blk_srv_read_only(const struct blk_nbd_export *e);

/* ---- serve_sock.c: all may wait ------------------------------------------------------ */

/* Exactly @len bytes; -ECONNRESET when the client has gone. */
int blk_srv_recv(struct srv_conn *c, void *buf, size_t len);
int blk_srv_skip(struct srv_conn *c, uint64_t len);
/* All of it, before anything is queued. */
int blk_srv_send(struct srv_conn *c, const void *buf, size_t len);
/* Takes @o; it is sent soon, or dropped if the connection is dead. */
void blk_srv_queue(struct srv_conn *c, struct srv_out *o);
/* The same, and waits until it is sent. @o is on the caller's stack. */
void blk_srv_queue_wait(struct srv_conn *c, struct srv_out *o);
/* Ends the connection; does not wait. */
void blk_srv_kill(struct srv_conn *c);

/* ---- serve_buf.c -------------------------------------------------------------------- */

/* At least @len, at most SRV_PIECE, bytes; NULL. */
void *blk_srv_buf_get(struct srv_conn *c, size_t len, unsigned *cls);
void blk_srv_buf_put(struct srv_conn *c, void *buf, unsigned cls);
void blk_srv_buf_free_all(struct srv_conn *c);
/* A request, counted with @bytes of data; waits for its place. NULL: no memory. */
struct srv_req *blk_srv_req_get(struct srv_conn *c, size_t bytes);
/* Does not wait. */
void blk_srv_req_put(struct srv_req *r);
static inline void blk_srv_unbusy(struct srv_conn *c)
{
	struct thr_wait *w = c->quiet;

	if (--c->busy || !w)
		return;
	c->quiet = NULL;
	thr_wait_wake(w);
}

/* ---- serve_hello.c, serve_meta.c: the handshake ---------------------------------------- */

/* 0: an export has been chosen. */
int blk_srv_hello(struct srv_conn *c);
/* @len, at most 16, bytes of data, and @text (or NULL), cut where it is too long. */
int blk_srv_reply(struct srv_conn *c, uint32_t opt, uint32_t type, const void *data, size_t len,
	const char *text);
const struct blk_nbd_export *blk_srv_find(const struct srv *s, const void *name, size_t len);
int blk_srv_meta(struct srv_conn *c, uint32_t opt, const uint8_t *data, size_t len);

/* ---- serve_talk.c: requests and replies ------------------------------------------------ */

/* Until the client says goodbye, or breaks the protocol. */
void blk_srv_talk(struct srv_conn *c);
/* The NBD protocol's number for ours. */
uint32_t blk_srv_error(int err);
/* The reply without data, or with the error of that number; takes @r. */
void blk_srv_finish(struct srv_req *r, uint32_t error);
void blk_srv_chunk(struct srv_out *o, const struct srv_req *r, unsigned flags, unsigned type,
	uint32_t len);

/* ---- serve_read.c, serve_status.c: take @r, in a fiber -------------------------------- */

void blk_srv_read(struct srv_req *r);
/* A simple reply to a read that is longer than a buffer, while nothing else is busy. */
int blk_srv_large_read(struct srv_conn *c, const struct srv_req *h);
void blk_srv_status(struct srv_req *r);
/* What base:allocation says; *n may be more than @len. May wait. */
int blk_srv_allocation(
	struct srv_conn *c, uint64_t off, uint64_t len, uint64_t *n, uint32_t *flags);
/* Something may have become zeroes. */
void blk_srv_forget(struct srv_conn *c);

/* ---- serve_file.c ----------------------------------------------------------------------- */

/* The file that has this part of the export in memory, worth to be sent from there; or -1. */
int blk_srv_file(const struct srv_conn *c, uint64_t off, uint64_t len);
/* As send(), of what is left of the file's part after @done. Does not wait. */
int64_t blk_srv_sendfile(struct srv_conn *c, const struct srv_out *o, size_t done);

/* ---- serve_tls.c ------------------------------------------------------------------------ */

/* Shakes hands on the connection, from then on encrypted. */
int blk_srv_tls_start(struct srv_conn *c);
void blk_srv_tls_end(struct srv_conn *c);
/* As recv() and send(): bytes, 0 at the end, -EAGAIN with the direction to wait for. */
int64_t blk_srv_tls_recv(struct srv_conn *c, void *buf, size_t len, enum thr_fd_dir *dir);
int64_t blk_srv_tls_send(
	struct srv_conn *c, const struct thr_iov *v, unsigned n, enum thr_fd_dir *dir);

#endif
