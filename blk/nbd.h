/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/nbd.h - what the files of the driver "nbd" share. Private.
 *
 * A device has one connection (struct nbd_link), or several where the server says
 * that a flush on one covers all of them. Each executor that uses the device has a
 * seat at one connection; executors share a connection where there are more of them.
 * Whoever has a seat may submit to the connection and take what arrives on it,
 * whosever request that is.
 *
 * Locks, in this order: the process's lock of seats, a source's, a connection's. All
 * are held for moments only, and by the thread, never over a wait of a fiber.
 */
#ifndef BLK_NBD_H
#define BLK_NBD_H

#include <pthread.h>

#include "blk/nbd_lib.h"
#include "blk/private.h"

/* ---- where the server is (nbd_name.c) ----------------------------------------- */

enum nbd_tls {
	NBD_TLS_UNSET,
	NBD_TLS_OFF,
	NBD_TLS_ALLOW,
	NBD_TLS_REQUIRE,
};

/* One of uri, path, cid (with port), host (with port) is given. Strings that are
 * not are NULL; export is never. */
struct nbd_target {
	const char *uri, *path, *cid, *host, *port;
	const char *export;
	const char *tls_certificates, *tls_psk_file, *tls_username;
	enum nbd_tls tls;
	bool tls_verify;
	uint32_t reconnect_delay, open_timeout; /* seconds */
	uint32_t connections;                   /* at most */
	const char *name;                       /* for messages */
	char *text;                             /* all strings, size bytes */
	size_t size, used;
};

#define NBD_MAX_LINKS 16

int blk_nbd_target_init(struct nbd_target *t, const struct blk_open *o, struct blk_err *err);
void blk_nbd_target_fini(struct nbd_target *t, const struct thr_alloc *mem);
bool blk_nbd_target_same(const struct nbd_target *a, const struct nbd_target *b);
extern const char *const blk_nbd_keys[];

/* ---- connecting (nbd_dial.c) -------------------------------------------------- */

/* What an export is and can do. */
struct nbd_traits {
	uint64_t size;
	uint64_t min, pref, max; /* block sizes; 0 where the server names none */
	bool read_only, multi, extents;
	bool flush, fua, trim, zero, fast_zero, cache;
	bool tls;
};

struct nbd_dial {
	const struct nbd_target *to;
	uint64_t until;       /* gives up then; on the clock of thr_now() */
	bool reached;         /* there is a server */
	struct nbd_handle *h; /* the result */
	struct nbd_traits traits;
	char text[160]; /* what was wrong */
};

/* Connects and negotiates. May wait. */
int blk_nbd_dial(struct nbd_dial *d);
/* Whether another try may do better than this one, which gave @code. */
bool blk_nbd_passing(const struct nbd_dial *d, int code);

/* ---- requests (nbd_source.c) ---------------------------------------------------- */

struct blk_nbd;
struct nbd_source;
struct nbd_seat;

enum nbd_op {
	NBD_OP_READ,
	NBD_OP_WRITE,
	NBD_OP_ZERO,
	NBD_OP_TRIM,
	NBD_OP_CACHE,
	NBD_OP_FLUSH,
	NBD_OP_STATUS,
};

/* On the stack of the fiber that waits for it. */
struct nbd_req {
	enum nbd_op op;
	uint32_t flags; /* LIBNBD_CMD_FLAG_ */
	uint64_t off, len;
	void *buf;
	uint32_t extent_len, extent_flags; /* of the first extent; status */

	int err;
	unsigned gen; /* the connection's that it went to */
	bool submitted;
	bool plain; /* of a plain thread */
	struct nbd_link *link;
	struct nbd_source *src;
	struct thr_wait wait;
	struct nbd_req *next, *prev;
};

struct nbd_link {
	struct blk_nbd *dev;
	pthread_mutex_t lock;
	struct nbd_handle *h; /* NULL: not connected */
	unsigned gen;         /* which connection of this link it is; 0: none yet */
	int fd;
	uint32_t want;          /* what every seat watches it for: EPOLLIN, EPOLLOUT */
	struct nbd_seat *seats; /* who watches it */
	struct nbd_req *inflight;
	uint64_t lost_at, tried_at;
	struct thr_mutex dialling;
};

struct blk_nbd {
	struct blk b;
	struct nbd_target to;
	struct nbd_traits traits;
	unsigned nlinks;
	unsigned next_link;
	struct thr_mutex seating;

	/* Plain threads take turns at driving this executor. */
	struct thr_mutex plain_lock;
	struct thr_exec *plain;

	uint64_t writes;  /* atomic: those that succeeded and that a flush must cover */
	uint64_t flushed; /* atomic: how many of them a flush has covered */
	uint32_t torn;    /* atomic: a connection was lost before they were flushed */
	struct nbd_link links[NBD_MAX_LINKS];
};

void blk_nbd_link_init(struct nbd_link *l, struct blk_nbd *d);
/* Takes @h, with a first connection or after one was lost. */
void blk_nbd_link_use(struct nbd_link *l, struct nbd_handle *h);
void blk_nbd_link_fini(struct nbd_link *l);

/* Does a request, over a new connection where the old one was lost and the options
 * allow it. May wait; from a plain thread too. */
int blk_nbd_request(struct blk_nbd *d, struct nbd_req *q);
/* The same, in a fiber (nbd_revive.c). */
int blk_nbd_insist(struct blk_nbd *d, struct nbd_req *q);
/* A connection that works. */
int blk_nbd_revive(struct nbd_link *l, unsigned lost_gen);
/* One time, in a fiber. -ENOTCONN: the connection was lost, or there is none. */
int blk_nbd_try(struct blk_nbd *d, struct nbd_req *q);

#endif
