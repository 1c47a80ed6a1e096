/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/blk.h - block devices: anything with a length that can be read. A file, a
 * memory disk, an NBD export, and an opened image too, seen as the virtual disk
 * that it holds; so whatever works on a struct blk works on all of them.
 *
 * Offsets are bytes in uint64_t. Functions return 0 or a negative THR_E number.
 * Requests may wait: in a fiber they park it, in a plain thread they block.
 * Requests may be issued from any fiber or thread at the same time; two that
 * overlap and are in flight together have no order between them.
 */
#ifndef BLK_BLK_H
#define BLK_BLK_H

#include "thr/thr.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- errors ---------------------------------------------------------------
 *
 * Functions that a user's mistake can reach take a last parameter struct
 * blk_err *err: owned by the caller, may be NULL. It is filled in when, and only
 * when, the function fails, by the innermost function that knows what was wrong:
 * who passes an error on leaves it alone. Requests (pread and friends) are on
 * the hot path and return the bare number. */

enum blk_err_id {
#define BLK_ERR(id, text) BLK_E_##id,
#include "blk/errlist.h"
#undef BLK_ERR
	BLK_E_COUNT
};

#define BLK_ERR_FILE_MAX 512
#define BLK_ERR_STR_MAX  160

struct blk_err {
	int code; /* negative */
	enum blk_err_id id;
	uint64_t off;
	uint64_t val;
#ifdef CONFIG_BLK_ERR_TEXT
	const char *doing; /* static: "Could not open" */
	char file[BLK_ERR_FILE_MAX];
	char str[BLK_ERR_STR_MAX];
#endif
};

/* clang-format off */
#define BLK_ERR_INIT {0}
/* clang-format on */

/* Each fills in @err if it is not NULL, and returns @code. */
int blk_fail(struct blk_err *err, int code, enum blk_err_id id, uint64_t off, uint64_t val);
int blk_fail_str(struct blk_err *err, int code, enum blk_err_id id, const char *str);
/* Adds what was being done to which file, unless an inner function has. */
void blk_err_where(struct blk_err *err, const char *doing, const char *file);
/* Makes the sentence: "Could not open 'x.qcow2': No such file or directory".
 * Control characters in names are shown as '?'. Returns its length; always
 * terminates. Only with CONFIG_BLK_ERR_TEXT. */
size_t blk_err_text(const struct blk_err *err, char *buf, size_t size);
/* The system's words for an error number of ours, either sign. Static. */
const char *blk_strerror(int code);

/* ---- options ---------------------------------------------------------------
 * Flat key=value pairs with dots for nesting ("file.filename"), as --image-opts
 * and create's -o give them. Not owned by who reads them. */

struct blk_opt {
	const char *key;
	const char *val;
};

struct blk_opts {
	const struct blk_opt *v;
	unsigned n;
};

/* The value of @key, the last one given winning, or NULL. @o may be NULL. */
const char *blk_opt(const struct blk_opts *o, const char *key);
/* "on"/"off"/"yes"/"no"/"true"/"false"; @def where absent. -EINVAL. */
int blk_opt_bool(
	const struct blk_opts *o, const char *key, bool def, bool *out, struct blk_err *err);
/* A number with an optional suffix b, k, M, G, T, P or E (powers of 1024, either
 * case) and an optional fraction ("1.5G"). -EINVAL, -ERANGE. */
int blk_opt_size(const struct blk_opts *o, const char *key, uint64_t def, uint64_t *out,
	struct blk_err *err);
int blk_parse_size(const char *s, uint64_t *out);
/* Fails, naming the first key that is in none of the NULL-terminated @known. */
int blk_opts_known(const struct blk_opts *o, const char *const *known, struct blk_err *err);

/* ---- requests --------------------------------------------------------------- */

struct blk;
struct blk_ops;

/* A place in the order of a parallel job. A driver that decides a layout does it
 * between blk_turn_enter() and blk_turn_leave(); the core passes the turn on
 * when the request ends, if the driver has not. */
struct blk_turn {
	struct thr_seq *seq;
	uint64_t ticket;
	bool passed;
};
/* @t may be NULL: then both do nothing. Hold no lock, range or pinned slot when
 * entering. -ECANCELED. */
int blk_turn_enter(struct blk_turn *t);
void blk_turn_leave(struct blk_turn *t); /* passes it on; may be called again */

enum blk_req_flags {
	BLK_FUA = 1u << 0,         /* durable when it returns */
	BLK_UNMAP = 1u << 1,       /* zero: may deallocate */
	BLK_NO_FALLBACK = 1u << 2, /* zero: fail with -ENOTSUP rather than write zeroes */
	BLK_COMPRESS = 1u << 3, /* write: store compressed; -ENOTSUP, -EINVAL off its units */
	BLK_EOF_ZERO = 1u << 4, /* read: what lies past the end reads as zeroes */
	BLK_CHILD = 1u << 5,    /* made by a request that was admitted already: passes drains */
};

/* Drivers pass parts of a request on by copying it and moving off, len and
 * iov_off; the vector itself is never copied or changed. */
struct blk_req {
	uint64_t off;
	uint64_t len;              /* read and write: at most BLK_MAX_IO. 0 is a no-op */
	const struct thr_iov *iov; /* NULL for zero and discard */
	unsigned niov;
	size_t iov_off; /* the data starts this many bytes into the vector */
	unsigned flags;
	struct blk_turn *turn; /* writes: NULL where order does not matter */
};
#define BLK_MAX_IO (1u << 30)

/* -EINVAL past the end, without BLK_EOF_ZERO. */
int blk_preadv(struct blk *b, const struct blk_req *r);
/* Past the end, a device that grows is extended; another gives -EINVAL. -EROFS
 * without BLK_RDWR. An unaligned write to a device with block sizes takes
 * memory for the blocks at its ends. Passes its turn on whatever happens. */
int blk_pwritev(struct blk *b, const struct blk_req *r);
/* Makes a range read as zeroes, by the cheapest means that the device has; falls
 * back to writing them. len may be anything up to the device's length. */
int blk_zero(struct blk *b, const struct blk_req *r);
/* Says that the content is no longer needed. What it reads as afterwards is the
 * driver's (never backing data that was hidden before). Parts of blocks at the
 * ends are left alone; a device that cannot is a success. */
int blk_discard(struct blk *b, const struct blk_req *r);
/* Everything that was written before the call survives a power cut after it. A
 * flush that failed is failed for good until the device is opened again. */
int blk_flush(struct blk *b);

/* One buffer, no flags. */
int blk_pread(struct blk *b, uint64_t off, void *buf, size_t len);
int blk_pwrite(struct blk *b, uint64_t off, const void *buf, size_t len);

enum blk_extent_flags {
	BLK_EXT_ALLOC = 1u << 0,  /* decided by this layer; else its backing's, or zeroes */
	BLK_EXT_DATA = 1u << 1,   /* bytes are stored somewhere */
	BLK_EXT_ZERO = 1u << 2,   /* reads as zeroes */
	BLK_EXT_MAPPED = 1u << 3, /* lies unchanged in blk_map_file(b), from map on */
	BLK_EXT_COMPRESSED = 1u << 4,
};

struct blk_extent {
	uint64_t len; /* at least 1, at most what was asked for */
	unsigned flags;
	uint64_t map;
};

/* What this one layer knows about the bytes from @off on: the longest extent,
 * up to @len, that the driver can tell at little cost. @len is not 0 and the
 * range lies within the device. Ask once for an extent, not once for a cluster. */
int blk_status(struct blk *b, uint64_t off, uint64_t len, struct blk_extent *e);

enum blk_prealloc {
	BLK_PREALLOC_OFF,
	BLK_PREALLOC_METADATA,
	BLK_PREALLOC_FALLOC,
	BLK_PREALLOC_FULL
};

/* "off", "metadata", "falloc", "full"; -EINVAL. */
int blk_prealloc_parse(const char *s, enum blk_prealloc *out);
/* Changes the length. New bytes read as zeroes. */
int blk_truncate(struct blk *b, uint64_t size, enum blk_prealloc p, struct blk_err *err);
/* Bytes that the device takes up in its host; -ENOTSUP. */
int blk_allocated(struct blk *b, uint64_t *bytes);
/* When its content was last changed, in seconds since 1970; -ENOTSUP. */
int blk_mtime(struct blk *b, int64_t *seconds);
/* A hint that the range will be read soon: an NBD server is told (NBD_CMD_CACHE), the kernel
 * reads ahead in a file. -ENOTSUP where nobody could act on it, as below a format that puts
 * data elsewhere: reading it would do. May wait. Not in firmware. */
int blk_prefetch(struct blk *b, uint64_t off, uint64_t len);

/* Waits until no request is in flight and holds new ones back until
 * blk_drain_end(). Never inside a request. Drain the device at the top: what it
 * stands on is then quiet too, while the other way round its requests would go
 * on. Not during a job whose writes have turns: one that is held back would
 * keep those waiting that were let in. */
void blk_drain_begin(struct blk *b);
void blk_drain_end(struct blk *b);

/* ---- devices ----------------------------------------------------------------- */

enum blk_open_flags {
	BLK_RDWR = 1u << 0,
	BLK_NOCACHE = 1u << 1,      /* O_DIRECT */
	BLK_NOFLUSH = 1u << 2,      /* cache=unsafe: flushes do nothing */
	BLK_WRITETHROUGH = 1u << 3, /* every write is durable when it returns */
	BLK_SHARE = 1u << 4,        /* -U: others may have it open for writing */
	BLK_NO_LOCK = 1u << 5,
	BLK_FIXED_SIZE = 1u << 6, /* writes past the end fail; without it they extend a file */
	BLK_SEQUENTIAL = 1u << 7, /* a hint for read-ahead */
};

/* "none", "writeback", "writethrough", "directsync", "unsafe": sets or clears the
 * three cache bits of *flags and leaves the others. -EINVAL. */
int blk_cache_parse(const char *s, unsigned *flags);

struct blk_open {
	const char *name;   /* a file name or URI; NULL where opts have it all */
	const char *driver; /* NULL: told from the name */
	unsigned flags;
	const struct blk_opts *opts; /* of the driver; may be NULL */
	const struct thr_alloc *mem; /* must outlive the device */
};

/* Opens a device by name or driver. On success *out is the caller's, who calls
 * blk_close(). May wait. */
int blk_open(struct blk **out, const struct blk_open *o, struct blk_err *err);
/* No request is in flight. Does not flush. @b may be NULL. */
void blk_close(struct blk *b);

/* Makes (or empties) a file of @size bytes. */
int blk_create(const char *name, uint64_t size, enum blk_prealloc p,
	const struct thr_alloc *mem, struct blk_err *err);

/* A fixed memory disk over the caller's buffer, for embedders and tests; the
 * buffer is not owned. Writable with BLK_RDWR; never grows. */
int blk_mem_open(struct blk **out, void *buf, uint64_t size, unsigned flags,
	const struct thr_alloc *mem, struct blk_err *err);

/* Memory disks, null devices and faults by name: blk_open() with .driver =
 *   "mem"    size=N: sparse memory, as large as one likes; grows, unless
 *	      BLK_FIXED_SIZE. Discarded and zeroed chunks are given back.
 *   "null"   (or a name "null-co://") size=N (1G), read-zeroes=on|off (on; off
 *	      leaves buffers as they are), latency-ns=N for each request.
 *   "fault"  file.KEY=VALUE..., the device below, and one rule: op=, nth=, offset=,
 *	      length=, after=, error=, partial=, latency-ns=, always=on|off, called as
 *	      in struct blk_fault; error takes "EIO", "ENOSPC" or a number.
 *   "nbd"    (or a name nbd://HOST[:PORT]/EXPORT, nbd+unix:///EXPORT?socket=PATH,
 *	      nbd+vsock://, with TLS nbds:..., nbd:HOST:PORT[:exportname=EXPORT],
 *	      nbd:unix:PATH[:exportname=EXPORT]; in BLK_NBD) server.type=unix|inet|vsock,
 *	      server.path=, server.host=, server.port=, server.cid=, export=;
 *	      tls=off|allow|require, tls-certificates=DIR, tls-psk-file=,
 *	      tls-username=, tls-verify-peer=on|off; connections=N (8), as many as
 *	      executors at most; open-timeout=, reconnect-delay=SECONDS (0). Requests
 *	      give -ENOTCONN once the connection is lost. After a new connection, a
 *	      flush fails if writes were not flushed that had ended on an old one. */

#ifndef CONFIG_THR_NONE
/* The exports of an NBD server (CONFIG_BLK_NBD), which @o names as blk_open() has
 * it. Calls each() for them in order until it returns something else than 0, which
 * is the result then. May wait; each() may too. */
int blk_nbd_list(const struct blk_open *o,
	int (*each)(void *arg, const char *name, const char *description), void *arg,
	struct blk_err *err);
#endif

/* ---- serving by NBD (CONFIG_BLK_NBD_SERVER) -------------------------------------------
 * https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md, fixed newstyle. */

#ifndef CONFIG_THR_NONE
/* A metadata context of block status. */
struct blk_nbd_context {
	const char *name; /* "base:allocation", "qemu:dirty-bitmap:NAME"; has a colon */
	/* Says what @flags hold for @off, and for how many bytes from there on they do: *n,
	 * at least 1, and more than @len is allowed. May wait; many may ask at a time. */
	int (*status)(void *arg, uint64_t off, uint64_t len, uint64_t *n, uint32_t *flags);
	void *arg;
};
#define BLK_NBD_CONTEXTS_MAX 32

/* Flags of base:allocation. */
#define BLK_NBD_HOLE (1u << 0)
#define BLK_NBD_ZERO (1u << 1)

/* What becomes of writes of zeroes only. */
enum blk_nbd_detect { BLK_NBD_DETECT_OFF, BLK_NBD_DETECT_ON, BLK_NBD_DETECT_UNMAP };

struct blk_nbd_export {
	struct blk *dev;         /* stays the caller's */
	struct blk *plain;       /* what has the same bytes at the same offsets: a raw image's
				  * file, which is sent without copying it; or NULL */
	const char *name;        /* "" is the default export */
	const char *description; /* or NULL */
	bool read_only;          /* for everyone; so is what is not open for writing */
	bool keep_space;         /* trim does nothing, and zeroes stay allocated */
	enum blk_nbd_detect detect;
	/* Where base:allocation is not among them, it is told from blk_status(). */
	const struct blk_nbd_context *contexts;
	unsigned ncontexts;
};

struct blk_nbd_tls;

struct blk_nbd_server {
	const struct blk_nbd_export *exports;
	unsigned nexports;
	const int *fds; /* listening sockets, which stay the caller's */
	unsigned nfds;
	int stop_fd;             /* the server ends when it is readable; -1: none */
	unsigned clients;        /* connections served at a time; 0: BLK_NBD_CLIENTS_MAX */
	bool persistent;         /* else it ends when the last client has gone */
	uint64_t memory;         /* bytes of data in flight; 0: 64 MiB */
	struct blk_nbd_tls *tls; /* NULL: none; else nobody is served without it */
	/* Called four times a second, busy or not, in a fiber; NULL: not. */
	void (*tick)(void *ctx);
	void *tick_ctx;
	const struct thr_alloc *mem;
};
/* Each connection takes up to 2 MiB of memory, whatever it has not been given of @memory.
 * Those over @clients wait, BLK_NBD_WAITING of them; more are closed at once. */
#define BLK_NBD_CLIENTS_MAX 256
#define BLK_NBD_WAITING     64

/* Serves until told to stop, or until the last client that had chosen an export has gone;
 * requests under way then end first, and clients have two seconds to take the replies.
 * Nothing is flushed. Called from a fiber; connections are spread over the executors of
 * its pool. A client that breaks the protocol is disconnected; one that has chosen no
 * export after ten seconds too. Flushes cover what was written on any connection. */
int blk_nbd_serve(const struct blk_nbd_server *s, struct blk_err *err);
/* Serves the one connection @fd, a connected stream socket, on the caller's executor, and
 * returns when it has ended. @fd is closed. */
int blk_nbd_serve_one(const struct blk_nbd_server *s, int fd);

/* @len bytes of @whole from @off on, as a device of its own, of which nothing is known but
 * what blk_status() says. @whole stays the caller's and is closed after it. -EINVAL. */
int blk_nbd_part_open(struct blk **out, struct blk *whole, uint64_t off, uint64_t len,
	const struct thr_alloc *mem, struct blk_err *err);

/* Listening sockets. An old socket file that nobody listens on is replaced. A @host of
 * NULL is the loopback, "" every address; *n sockets, at most @max. May wait. */
int blk_nbd_listen_unix(const char *path, int *fd, struct blk_err *err);
int blk_nbd_listen_tcp(const char *host, const char *port, int *fds, unsigned max, unsigned *n,
	struct blk_err *err);

/* Credentials for TLS (CONFIG_BLK_NBD_SERVER_TLS), in a folder and under the names that
 * QEMU's objects use: ca-cert.pem, server-cert.pem, server-key.pem; keys.psk. */
struct blk_nbd_tls_open {
	const char *dir;
	bool psk;         /* shared keys; else X.509 */
	bool verify_peer; /* X.509: clients need a certificate of that authority */
	const struct thr_alloc *mem;
};
int blk_nbd_tls_open(
	struct blk_nbd_tls **out, const struct blk_nbd_tls_open *o, struct blk_err *err);
void blk_nbd_tls_close(struct blk_nbd_tls *t); /* may be NULL */
#endif

uint64_t blk_size(const struct blk *b);
/* Whether both are the same object in the host: the same device and inode. */
bool blk_same(struct blk *a, struct blk *b);

/* ---- recording and failing requests (CONFIG_BLK_LOG, CONFIG_BLK_FAULT) ---------
 * Two drivers that stand on another device, own it once opened, and close it. */

enum blk_op {
	BLK_OP_READ,
	BLK_OP_WRITE,
	BLK_OP_ZERO,
	BLK_OP_DISCARD,
	BLK_OP_FLUSH,
	BLK_OP_TRUNCATE, /* off is the new length */
};

#define BLK_LOG_NEVER UINT64_MAX

/* One request that changes something. Submissions and completions are steps of
 * one clock that starts at 1, so they can be compared. */
struct blk_log_entry {
	enum blk_op op;
	unsigned flags; /* enum blk_req_flags */
	uint64_t off, len;
	const void *data; /* len bytes; NULL if not a write */
	uint64_t submitted;
	uint64_t completed; /* BLK_LOG_NEVER while in flight */
	int err;
};

/* Called at a request's submission and again at its completion, one call at a
 * time; the entry is gone after the second. Must not wait. */
typedef void blk_log_sink(void *arg, const struct blk_log_entry *e);

/* With @sink NULL the log is kept in memory of @mem. On failure the caller still
 * has @child. A write that cannot be recorded fails with -ENOMEM, not written. */
int blk_log_open(struct blk **out, struct blk *child, blk_log_sink *sink, void *arg,
	const struct thr_alloc *mem, struct blk_err *err);
/* How many there are, and each, in order of submission. Valid until the device
 * is closed; a caller looks while no request is in flight. */
size_t blk_log_count(struct blk *log);
const struct blk_log_entry *blk_log_get(struct blk *log, size_t i);
/* The present time: that of the last step. */
uint64_t blk_log_now(struct blk *log);

enum blk_log_fate {
	BLK_LOG_NOT_YET, /* submitted after the cut: must not be seen */
	BLK_LOG_MAYBE,   /* may be lost, whole or in part */
	BLK_LOG_DURABLE, /* must have survived */
};
/* What a power cut just after step @at does to entry @i. A flush covers what was
 * completed before the flush was submitted, and counts once it has succeeded. */
enum blk_log_fate blk_log_fate(struct blk *log, size_t i, uint64_t at);

/* Does @len bytes of entry @e, from byte @skip of it on, to @to. */
int blk_log_apply(const struct blk_log_entry *e, uint64_t skip, uint64_t len, struct blk *to);
/* Does to @to every entry that @pick takes (NULL: all that succeeded), in order of
 * submission. */
int blk_log_replay(struct blk *log, struct blk *to,
	bool (*pick)(void *arg, size_t i, const struct blk_log_entry *e), void *arg);

/* A rule: which requests it meets, and what happens to them. All conditions that
 * are given must hold. The first rule that meets a request decides. */
struct blk_fault {
	unsigned ops;        /* bits 1u << enum blk_op; 0: all */
	uint64_t nth;        /* from the nth matching request on, counted from 1; 0 is 1 */
	uint64_t off, len;   /* those that touch this range; len 0: everywhere */
	uint64_t after;      /* those before which that many bytes have matched */
	int err;             /* what it returns; 0: goes on as if nothing had been */
	uint64_t partial;    /* with err: so many bytes of it are done nevertheless */
	uint64_t latency_ns; /* waits so long first */
	bool always;         /* else it fires once */
};

/* On failure the caller still has @child. */
int blk_fault_open(
	struct blk **out, struct blk *child, const struct thr_alloc *mem, struct blk_err *err);
/* Copies the rule. -ENOMEM. */
int blk_fault_add(struct blk *fault, const struct blk_fault *rule);
void blk_fault_clear(struct blk *fault);
/* How often a rule has fired, of all that were ever added. */
uint64_t blk_fault_fired(struct blk *fault);

/* ---- for drivers --------------------------------------------------------------- */

/* A set of byte ranges in use. Locking one waits until no locked range overlaps
 * it (where one of the two is exclusive), first come first served. */
struct blk_range {
	uint64_t off, len;
	bool shared;
	bool granted;
	struct blk_range *next;
#ifndef CONFIG_THR_NONE
	struct thr_wait wait;
#endif
};
struct blk_ranges {
	struct thr_mutex guard;
	struct blk_range *head, *tail;
};
void blk_ranges_init(struct blk_ranges *s);
/* @r lives with the caller until unlocked. May wait. */
void blk_range_lock(
	struct blk_ranges *s, struct blk_range *r, uint64_t off, uint64_t len, bool shared);
void blk_range_unlock(struct blk_ranges *s, struct blk_range *r);

/* A driver: one static const table at the bottom of its file, with only what it
 * implements; the core supplies the rest. Requests arrive checked: within the
 * device (writes and zeroing on a growing device excepted: they extend it, and the
 * core then raises b->size), not empty, aligned to b->align in offset and length
 * and to b->mem_align in memory, reads and writes at most b->max_io long, and
 * without overlapping read-modify-write cycles. Where b->size is no multiple of
 * b->align, the last block passes the end: there reads give zeroes, and what is
 * written is zeroes, which need not be stored.
 *
 * Their flags are the driver's to look at: BLK_FUA only if b->fua, and always
 * BLK_CHILD, as parts that are passed on to other devices must have it. A turn is
 * handed on as it is: what a driver passes on must not carry it, or the child
 * passes it on early. Drivers that use turns leave align 1 and max_io alone. */
struct blk_ops {
	const char *name;
	int (*preadv)(struct blk *b, struct blk_req *r);
	int (*pwritev)(struct blk *b, struct blk_req *r);
	bool compress; /* pwritev knows BLK_COMPRESS; the core refuses it elsewhere */
	/* -ENOTSUP: the core writes zeroes instead. */
	int (*zero)(struct blk *b, struct blk_req *r);
	int (*discard)(struct blk *b, struct blk_req *r);
	int (*flush)(struct blk *b);
	/* Default: one extent of data, mapped if b->file. */
	int (*status)(struct blk *b, uint64_t off, uint64_t len, struct blk_extent *e);
	/* Sets b->size by blk_set_size(). */
	int (*truncate)(struct blk *b, uint64_t size, enum blk_prealloc p, struct blk_err *err);
	/* Default: b->file's. */
	int (*allocated)(struct blk *b, uint64_t *bytes);
	/* Default: b->file's. */
	int (*mtime)(struct blk *b, int64_t *seconds);
	/* Default: -ENOTSUP. */
	int (*prefetch)(struct blk *b, uint64_t off, uint64_t len);
	bool (*same)(struct blk *a, struct blk *b);
	/* Frees the driver's whole struct, b included, and closes b->file. */
	void (*close)(struct blk *b);
};

/* Requests in flight, counted by executor so that executors do not contend for
 * a cache line. The top bit says that a drain is on. */
#ifdef CONFIG_THR_NONE
#define BLK_SLOTS 1
struct blk_slot {
	uint32_t n;
};
#else
#define BLK_SLOTS 16
struct blk_slot {
	uint32_t n;
	uint32_t pad[15];
};
#endif

/* First member of every driver's own struct; set up by blk_init(). */
struct blk {
	const struct blk_ops *ops;
	const struct thr_alloc *mem;
	const char *name;    /* for messages; lives as long as the device */
	uint64_t size;       /* use blk_size() and blk_set_size() */
	uint32_t align;      /* block size of offsets and lengths: a power of two, at least 1 */
	uint32_t zero_align; /* grain of zero and discard, for planning; at least align */
	uint32_t mem_align;
	uint32_t max_io;     /* the core splits larger reads and writes */
	unsigned flags;      /* enum blk_open_flags */
	bool turns;          /* uses turns though it has blocks: the core enters them first */
	bool grows;          /* writes may pass the end and extend it */
	bool fua;            /* the driver does BLK_FUA itself; else the core flushes */
	struct blk *file;    /* what a format or filter stands on, or NULL */
	struct blk *data;    /* what holds the data of a format, if that is not file; or NULL */
	struct blk *backing; /* where unallocated extents are looked up, or NULL */

	/* the core's */
	struct blk_ranges ranges; /* writes in flight, where align > 1 */
	struct blk_slot inflight[BLK_SLOTS];
	uint32_t drained;
	struct thr_mutex drain_lock;
	struct thr_cond drain_cond;
	int flush_err;
};

/* Fills in defaults: align 1, mem_align 1, max_io BLK_MAX_IO, size 0. */
void blk_init(struct blk *b, const struct blk_ops *ops, const char *name, unsigned flags,
	const struct thr_alloc *mem);
/* What blk_init() holds; the driver's close calls it before freeing. */
void blk_fini(struct blk *b);
void blk_set_size(struct blk *b, uint64_t size);

/* What extents that are BLK_EXT_MAPPED lie in. */
static inline struct blk *blk_map_file(const struct blk *b)
{
	return b->data ? b->data : b->file;
}

/* A row of the table of openers, which is built from the configuration. */
struct blk_driver {
	const char *name;
	const char *const *keys; /* its options, NULL-terminated; "file." takes all such */
	int (*open)(struct blk **out, const struct blk_open *o, struct blk_err *err);
	int (*create)(const char *name, uint64_t size, enum blk_prealloc p,
		const struct thr_alloc *mem, struct blk_err *err);
};
const struct blk_driver *blk_driver_find(const char *name);

/* Copies between a flat buffer and the data of a request. */
void blk_req_to_buf(const struct blk_req *r, uint64_t skip, void *buf, size_t len);
void blk_req_from_buf(const struct blk_req *r, uint64_t skip, const void *buf, size_t len);
void blk_req_fill(const struct blk_req *r, uint64_t skip, uint8_t byte, size_t len);
/* The next contiguous piece of the data at @skip: its address, *len shortened. */
void *blk_req_piece(const struct blk_req *r, uint64_t skip, size_t *len);

#ifdef __cplusplus
}
#endif
#endif
