/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/engine_auto.c - the table of engines, and engine "auto", which takes the best
 * one that works here.
 *
 * What is in the page cache, or on tmpfs, is copied on the spot: a read with
 * RWF_NOWAIT either does that or says that the disk is needed. Buffered writes are a
 * copy too. Whatever needs the disk goes to io_uring, else, with O_DIRECT, to Linux
 * AIO, else to threads. An engine that cannot be set up (seccomp, limits) is not tried
 * again for this file.
 */
#include <errno.h>

#include "blk/file.h"

static const struct file_engine *const engines[] = {
	&blk_file_engine_auto,
	&blk_file_engine_sync,
#ifdef CONFIG_BLK_FILE_THREADS
	&blk_file_engine_threads,
#endif
#ifdef CONFIG_BLK_FILE_AIO
	&blk_file_engine_aio,
#endif
#ifdef CONFIG_BLK_FILE_URING
	&blk_file_engine_uring,
#endif
};

const struct file_engine *blk_file_engine_find(const char *name)
{
	for (size_t i = 0; i < THR_ARRAY_SIZE(engines); i++) {
		const struct file_engine *e = engines[i];

		if (!strcmp(name, e->name) || (e->alias && !strcmp(name, e->alias)))
			return e;
	}
	return NULL;
}

/* For what needs the disk, the best first. */
static const struct rank {
	const struct file_engine *engine;
	uint32_t cannot;
	bool direct_only;
} ranks[] = {
#ifdef CONFIG_BLK_FILE_URING
	{&blk_file_engine_uring, FILE_NO_URING, false},
#endif
#ifdef CONFIG_BLK_FILE_AIO
	{&blk_file_engine_aio, FILE_NO_AIO, true},
#endif
	{NULL, 0, false},
};

static const struct rank *best(struct blk_file *f)
{
	const struct rank *r = ranks;

	while (r->engine && (file_cannot(f, r->cannot) || (r->direct_only && !f->direct)))
		r++;
	return r;
}

/* Out of the cache, or -EAGAIN. */
static int64_t cached_read(struct blk_file *f, struct file_io *io)
{
	int64_t n;

	if (file_cannot(f, FILE_NO_NOWAIT))
		return -EAGAIN;
	io->rwf = RWF_NOWAIT;
	n = blk_file_sys_rw(io);
	io->rwf = 0;
	if (n == -EOPNOTSUPP) {
		file_set_cannot(f, FILE_NO_NOWAIT);
		return -EAGAIN;
	}
	return n;
}

/* Into the cache. The kernel lets one writer at a time into a regular file and has
 * the others spin, processor and all: they had better park here, so that their
 * executors go on reading. */
static int64_t copied_write(struct blk_file *f, struct file_io *io)
{
	int64_t n;

	if (f->device)
		return blk_file_sys_rw(io);
	thr_mutex_lock(&f->write_lock);
	n = blk_file_sys_rw(io);
	thr_mutex_unlock(&f->write_lock);
	return n;
}

static int64_t auto_rw(struct blk_file *f, struct file_io *io)
{
	const struct rank *r;
	int64_t n = -EAGAIN;

	if (io->write && !io->rwf && !f->direct)
		return copied_write(f, io);
	if (f->memory)
		return blk_file_sys_rw(io);
	if (!f->direct && !io->write)
		n = cached_read(f, io);
	for (r = best(f); n == -EAGAIN && r->engine; r = best(f)) {
		n = r->engine->rw(f, io);
		if (!file_cannot(f, r->cannot))
			break;
	}
	return n;
}

static int auto_sync(struct blk_file *f)
{
	const struct rank *r = best(f);

	return r->engine && r->engine->sync ? r->engine->sync(f) : -EAGAIN;
}

const struct file_engine blk_file_engine_auto = {
	.name = "auto",
	.rw = auto_rw,
	.sync = auto_sync,
};
