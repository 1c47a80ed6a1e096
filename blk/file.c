/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/file.c - driver "file": regular files and block devices of the host. This
 * file has the options, opening, creating and the tables; file.h says what the
 * other parts are.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "blk/file.h"
#include "blk/private.h"

static const char *const keys[] = {"filename", "engine", "aio", "locking", NULL};

struct config {
	const char *name;
	const struct file_engine *engine;
	enum file_locking locking;
};

static int get_locking(const struct blk_opts *o, enum file_locking *out, struct blk_err *err)
{
	const char *val = blk_opt(o, "locking");
	bool on;
	int ret;

	*out = FILE_LOCK_AUTO;
	if (!val || !strcmp(val, "auto"))
		return 0;
	ret = blk_opt_bool(o, "locking", true, &on, err);
	*out = on ? FILE_LOCK_ON : FILE_LOCK_OFF;
	return ret;
}

static int get_engine(
	const struct blk_opts *o, const struct file_engine **out, struct blk_err *err)
{
	const char *val = blk_opt(o, "engine");

	*out = &blk_file_engine_auto;
	if (!val)
		val = blk_opt(o, "aio");
	if (!val)
		return 0;
	*out = blk_file_engine_find(val);
	return *out ? 0 : blk_fail_str(err, -ENOTSUP, BLK_E_NO_ENGINE, val);
}

static int configure(const struct blk_open *o, struct config *c, struct blk_err *err)
{
	int ret;

	c->name = blk_opt(o->opts, "filename");
	if (!c->name)
		c->name = o->name;
	if (!c->name)
		return blk_fail_str(err, -EINVAL, BLK_E_NEED_OPTION, "filename");
	ret = get_locking(o->opts, &c->locking, err);
	return ret ? ret : get_engine(o->opts, &c->engine, err);
}

static enum file_lock_for lock_for(unsigned flags)
{
	if (flags & BLK_RDWR)
		return flags & BLK_SHARE ? FILE_LOCK_WRITE_SHARED : FILE_LOCK_WRITE;
	return flags & BLK_SHARE ? FILE_LOCK_READ_SHARED : FILE_LOCK_READ;
}

static size_t bytes(const struct blk_file *f)
{
	return sizeof(*f) + strlen(f->b.name) + 1;
}

static void file_close(struct blk *b)
{
	struct blk_file *f = blk_file(b);

	if (f->padded)
		blk_file_trim(f);
	close(f->fd);
	blk_fini(b);
	thr_put(b->mem, f, bytes(f));
}

static bool file_same(struct blk *a, struct blk *b)
{
	const struct blk_file *x = blk_file(a);
	const struct blk_file *y = blk_file(b);

	return x->device == y->device && x->dev == y->dev && x->ino == y->ino;
}

static const struct blk_ops ops = {
	.name = "file",
	.preadv = blk_file_preadv,
	.pwritev = blk_file_pwritev,
	.zero = blk_file_zero,
	.discard = blk_file_discard,
	.flush = blk_file_flush,
	.status = blk_file_status,
	.truncate = blk_file_truncate,
	.allocated = blk_file_allocated,
	.mtime = blk_file_mtime,
	.prefetch = blk_file_prefetch,
	.same = file_same,
	.close = file_close,
};

static int setup(
	struct blk_file *f, const struct config *c, const struct stat *st, struct blk_err *err)
{
	unsigned flags = f->b.flags;
	int ret = 0;

	if (!(flags & BLK_NO_LOCK))
		ret = blk_file_lock(f->fd, lock_for(flags), c->locking, err);
	if (!ret)
		ret = blk_file_probe(f, st, err);
	if (!ret && f->engine->probe && f->engine->probe(f))
		ret = blk_fail_str(err, -ENOTSUP, BLK_E_NO_ENGINE, f->engine->name);
	if (!ret && !f->device && flags & BLK_SEQUENTIAL)
		posix_fadvise(f->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	return ret;
}

static int open_config(
	struct blk **out, const struct config *c, const struct blk_open *o, struct blk_err *err)
{
	size_t size = strlen(c->name) + 1;
	struct blk_file *f;
	struct stat st;
	int fd;
	int ret = blk_file_open_fd(c->name, o->flags, &fd, &st, err);

	if (ret)
		return ret;
	f = (struct blk_file *)thr_zget(o->mem, sizeof(*f) + size);
	if (!f) {
		close(fd);
		return blk_fail(err, -ENOMEM, BLK_E_SYS, 0, 0);
	}
	memcpy(f + 1, c->name, size);
	blk_init(&f->b, &ops, (const char *)(f + 1), o->flags, o->mem);
	f->fd = fd;
	f->direct = o->flags & BLK_NOCACHE;
	f->engine = c->engine;
	thr_mutex_init(&f->write_lock);
	blk_file_flush_init(f);
	ret = setup(f, c, &st, err);
	if (ret) {
		file_close(&f->b);
		return ret;
	}
	*out = &f->b;
	return 0;
}

static int file_open(struct blk **out, const struct blk_open *o, struct blk_err *err)
{
	struct config c = {0};
	int ret = configure(o, &c, err);

	if (!ret)
		ret = open_config(out, &c, o, err);
	if (!c.name)
		c.name = o->name;
	if (ret && c.name)
		blk_err_where(err, "Could not open", c.name);
	return ret;
}

/* *made: the file is new, and goes again if it cannot be finished. */
static int create_fd(
	const char *name, int *fd, bool *made, struct stat *st, struct blk_err *err)
{
	int how = O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;

	if (!stat(name, st) && !S_ISREG(st->st_mode) && !S_ISBLK(st->st_mode))
		return blk_fail(err, -EINVAL, BLK_E_NOT_FILE, 0, 0);
	*fd = open(name, how | O_EXCL, 0644);
	*made = *fd >= 0;
	if (*fd < 0 && errno == EEXIST)
		*fd = open(name, how, 0644);
	if (*fd < 0 || fstat(*fd, st)) {
		int code = -errno;

		if (*fd >= 0)
			close(*fd);
		return blk_fail(err, code, BLK_E_SYS, 0, 0);
	}
	if (!S_ISREG(st->st_mode) && !S_ISBLK(st->st_mode)) {
		close(*fd);
		return blk_fail(err, -EINVAL, BLK_E_NOT_FILE, 0, 0);
	}
	return 0;
}

static int create_device(int fd, const struct stat *st, uint64_t size, struct blk_err *err)
{
	uint64_t have;
	int ret = blk_file_size(fd, st, &have);

	if (ret)
		return blk_fail_str(err, ret, BLK_E_SYS_WHAT, "Could not get the size");
	if (have < size)
		return blk_fail_str(
			err, -ENOSPC, BLK_E_SYS_WHAT, "The block device is too small");
	return 0;
}

static int create_regular(int fd, const struct stat *st, uint64_t size, enum blk_prealloc p,
	const struct thr_alloc *mem, struct blk_err *err)
{
	struct file_resize empty = {
		.fd = fd, .align = 1, .from = (uint64_t)st->st_size, .mem = mem};
	struct file_resize grow = {.fd = fd, .align = 1, .to = size, .p = p, .mem = mem};
	int ret = blk_file_resize(&empty, err);

	return ret ? ret : blk_file_resize(&grow, err);
}

static int file_create(const char *name, uint64_t size, enum blk_prealloc p,
	const struct thr_alloc *mem, struct blk_err *err)
{
	struct stat st;
	bool made = false;
	int fd = -1;
	int ret;

	ret = create_fd(name, &fd, &made, &st, err);
	if (ret)
		goto out;
	ret = blk_file_lock(fd, FILE_LOCK_CREATE, FILE_LOCK_AUTO, err);
	if (!ret && S_ISBLK(st.st_mode))
		ret = create_device(fd, &st, size, err);
	else if (!ret)
		ret = create_regular(fd, &st, size, p, mem, err);
	if (ret && made)
		unlink(name);
	close(fd);
out:
	if (ret)
		blk_err_where(err, "Could not create", name);
	return ret;
}

const struct blk_driver blk_file_driver = {
	.name = "file",
	.keys = keys,
	.open = file_open,
	.create = file_create,
};
