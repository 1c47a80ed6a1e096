/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/file.h - what the parts of the file driver share. Private.
 *
 * One open file description serves all rings and threads, because it carries the
 * locks.
 *
 * With O_DIRECT the last block of a file whose length is no multiple of the block
 * size is written whole, and the file cut to its length again: at once where it has
 * a fixed size; else when it is closed, since cutting while writes that grow it are in
 * flight would lose what they wrote. Until then the file is padded with zeroes. (A
 * second description without O_DIRECT could write the odd bytes alone, but the page
 * cache is not kept right next to direct writes that are in flight.)
 */
#ifndef BLK_FILE_H
#define BLK_FILE_H

#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "blk/blk.h"

/* Linux's; not every C library names them. */
#ifndef RWF_DSYNC
#define RWF_DSYNC 0x2
#endif
#ifndef RWF_NOWAIT
#define RWF_NOWAIT 0x8
#endif

/* One system call's worth of a request. */
struct file_io {
	int fd;
	bool write;
	int rwf; /* RWF_ flags */
	const struct iovec *iov;
	int niov;
	uint64_t off;
	size_t len; /* of the vector */
};

struct blk_file;

/* How reads and writes get to the kernel. Only called in fibers; a plain thread
 * makes the system call itself. */
struct file_engine {
	const char *name;
	const char *alias; /* qemu's name for it, or NULL */
	/* Whether it works in this process for this file; NULL: always. */
	int (*probe)(struct blk_file *f);
	/* Bytes moved, which may be fewer than asked for, or a negative error.
	 * -EAGAIN: a thread has to do it. */
	int64_t (*rw)(struct blk_file *f, struct file_io *io);
	/* fdatasync(), in the same way. NULL: a thread does it. */
	int (*sync)(struct blk_file *f);
};

/* Facts that a first attempt has found out, set once and never taken back. */
enum file_cannot {
	FILE_NO_ZERO_RANGE = 1u << 0,
	FILE_NO_PUNCH = 1u << 1,
	FILE_NO_SEEK = 1u << 2,
	FILE_NO_NOWAIT = 1u << 3, /* RWF_NOWAIT */
	FILE_NO_DSYNC = 1u << 4,  /* RWF_DSYNC */
	FILE_NO_URING = 1u << 5,
	FILE_NO_AIO = 1u << 6,
};

struct blk_file {
	struct blk b;
	int fd;
	const struct file_engine *engine;
	bool direct;
	bool device;     /* a block device */
	bool remote;     /* on a network file system: metadata calls may take long */
	bool memory;     /* tmpfs: no call ever waits for a disk */
	bool padded;     /* atomic: to be cut to its length when it is closed */
	uint32_t cannot; /* atomic: enum file_cannot */
	dev_t dev;       /* what file it is; the device's number for a block device */
	ino_t ino;

	struct thr_mutex write_lock; /* of writes into the cache, see engine_auto.c */

	/* Flushes: generations, of which one at a time is at the device. */
	struct thr_mutex flush_lock;
	struct thr_cond flush_cond;
	uint64_t flush_next; /* the generation that has not been submitted yet */
	uint64_t flush_done; /* all generations up to this have ended */
	bool flushing;
	int flush_err; /* the first failure, for good */
};

static inline struct blk_file *blk_file(struct blk *b)
{
	return (struct blk_file *)(void *)b;
}

static inline bool file_cannot(struct blk_file *f, uint32_t what)
{
	return __atomic_load_n(&f->cannot, __ATOMIC_RELAXED) & what;
}

static inline void file_set_cannot(struct blk_file *f, uint32_t what)
{
	__atomic_fetch_or(&f->cannot, what, __ATOMIC_RELAXED);
}

/* file_open.c: a file descriptor that is a regular file or a block device. No
 * other kind is opened, so that nothing hangs and no tape rewinds. */
int blk_file_open_fd(
	const char *name, unsigned flags, int *fd, struct stat *st, struct blk_err *err);
/* Size, kind and alignments of an open file. */
int blk_file_probe(struct blk_file *f, const struct stat *st, struct blk_err *err);
int blk_file_size(int fd, const struct stat *st, uint64_t *size);

/* file_rw.c */
int blk_file_preadv(struct blk *b, struct blk_req *r);
int blk_file_pwritev(struct blk *b, struct blk_req *r);
/* The plain system call. */
int64_t blk_file_sys_rw(const struct file_io *io);
/* The same on a thread that may block. */
int64_t blk_file_offload_rw(const struct file_io *io);

/* file_flush.c */
void blk_file_flush_init(struct blk_file *f);
int blk_file_flush(struct blk *b);

/* file_space.c */
int blk_file_zero(struct blk *b, struct blk_req *r);
int blk_file_discard(struct blk *b, struct blk_req *r);
int blk_file_truncate(struct blk *b, uint64_t size, enum blk_prealloc p, struct blk_err *err);
/* Gives an open regular file its length; what is new is allocated as @p says, in
 * writes of whole blocks of @align. */
struct file_resize {
	int fd;
	uint32_t align;
	uint64_t from;
	uint64_t to;
	enum blk_prealloc p;
	const struct thr_alloc *mem;
};
int blk_file_resize(struct file_resize *z, struct blk_err *err);
/* Cuts a padded file to its length. */
int blk_file_trim(struct blk_file *f);

/* file_status.c */
int blk_file_status(struct blk *b, uint64_t off, uint64_t len, struct blk_extent *e);
int blk_file_allocated(struct blk *b, uint64_t *bytes);
int blk_file_mtime(struct blk *b, int64_t *seconds);
int blk_file_prefetch(struct blk *b, uint64_t off, uint64_t len);

/* lock.c: the locks that QEMU takes. */
enum file_locking { FILE_LOCK_OFF, FILE_LOCK_ON, FILE_LOCK_AUTO };
enum file_lock_for {
	FILE_LOCK_READ,
	FILE_LOCK_READ_SHARED,
	FILE_LOCK_WRITE,
	FILE_LOCK_WRITE_SHARED,
	FILE_LOCK_CREATE, /* until the caller closes @fd */
};
int blk_file_lock(
	int fd, enum file_lock_for what, enum file_locking locking, struct blk_err *err);

/* engine_*.c */
extern const struct file_engine blk_file_engine_sync;
extern const struct file_engine blk_file_engine_threads;
extern const struct file_engine blk_file_engine_aio;
extern const struct file_engine blk_file_engine_uring;
extern const struct file_engine blk_file_engine_auto;
/* NULL: there is none of that name in this build. */
const struct file_engine *blk_file_engine_find(const char *name);

#endif
