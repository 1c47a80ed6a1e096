/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/file_space.c - what a file takes up: zeroing and discarding by fallocate(),
 * length, preallocation.
 *
 * Nothing here changes a file's length downwards but blk_file_truncate(): writes that
 * grow the file may be in flight, and cutting off what they wrote would lose it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "blk/file.h"

#define FILL_STEP (1u << 20)

struct space {
	struct blk_file *f;
	uint64_t off;
	uint64_t len;
	unsigned flags; /* of the request */
};

static int offload(struct blk_file *f, int (*fn)(void *arg), void *arg)
{
	return f->memory ? fn(arg) : thr_offload(fn, arg);
}

/* -ENOTSUP where neither the kernel nor the file system knows how. */
static int sys_fallocate(int fd, int mode, uint64_t off, uint64_t len)
{
	while (fallocate(fd, mode, (off_t)off, (off_t)len)) {
		switch (errno) {
		case EINTR:
			continue;
		case EOPNOTSUPP:
		case ENOSYS:
		case ENODEV:
		case ENOTTY:
			return -ENOTSUP;
		default:
			return -errno;
		}
	}
	return 0;
}

static int try_mode(struct blk_file *f, int mode, uint32_t cannot, uint64_t off, uint64_t len)
{
	int err = file_cannot(f, cannot) ? -ENOTSUP : sys_fallocate(f->fd, mode, off, len);

	if (err == -ENOTSUP)
		file_set_cannot(f, cannot);
	return err;
}

static int punch(struct blk_file *f, uint64_t off, uint64_t len)
{
	return try_mode(f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, FILE_NO_PUNCH, off, len);
}

/* The byte at the end is in the range that is being zeroed, so that this harms no
 * write that grows the file meanwhile, as ftruncate() would. */
static int reach(struct blk_file *f, uint64_t end)
{
	if (end <= blk_size(&f->b))
		return 0;
	return sys_fallocate(f->fd, 0, end - 1, 1);
}

static int zero_keep(struct blk_file *f, const struct space *s)
{
	bool grow = s->off + s->len > blk_size(&f->b);
	int err;

	/* On a block device this writes zeroes if it must. */
	if (f->device && s->flags & BLK_NO_FALLBACK)
		return -ENOTSUP;
	err = try_mode(f, FALLOC_FL_ZERO_RANGE | (grow ? 0 : FALLOC_FL_KEEP_SIZE),
		FILE_NO_ZERO_RANGE, s->off, s->len);
	if (err != -ENOTSUP || f->device)
		return err;
	/* tmpfs digs, but does not zero: dig, then reserve again. */
	err = punch(f, s->off, s->len);
	if (!err)
		err = sys_fallocate(f->fd, grow ? 0 : FALLOC_FL_KEEP_SIZE, s->off, s->len);
	return err;
}

static int zero_run(void *arg)
{
	const struct space *s = (const struct space *)arg;
	struct blk_file *f = s->f;
	int err = -ENOTSUP;

	if (s->flags & BLK_UNMAP)
		err = punch(f, s->off, s->len);
	if (!err)
		return reach(f, s->off + s->len);
	return err == -ENOTSUP ? zero_keep(f, s) : err;
}

int blk_file_zero(struct blk *b, struct blk_req *r)
{
	struct blk_file *f = blk_file(b);
	struct space s = {.f = f, .off = r->off, .len = r->len, .flags = r->flags};
	uint64_t size = blk_size(b);
	int err;

	/* The last block of an odd length. */
	if (!b->grows && s.off + s.len > size)
		s.len = size - s.off;
	if (f->device && !thr_is_aligned(s.off | s.len, 512))
		return -ENOTSUP;
	err = offload(f, zero_run, &s);
	if (!err && r->flags & BLK_FUA)
		err = blk_file_flush(b);
	return err;
}

static int discard_run(void *arg)
{
	const struct space *s = (const struct space *)arg;
	uint64_t range[2] = {s->off, s->len};

	if (!s->f->device)
		return punch(s->f, s->off, s->len);
	if (!ioctl(s->f->fd, BLKDISCARD, range))
		return 0;
	return errno == ENOTTY || errno == EINVAL ? -ENOTSUP : -errno;
}

/* Whole blocks of the file system: zeroing the rest would be a write. */
int blk_file_discard(struct blk *b, struct blk_req *r)
{
	struct blk_file *f = blk_file(b);
	struct space s = {.f = f, .off = thr_align_up(r->off, b->zero_align)};
	uint64_t end = r->off + r->len;

	if (file_cannot(f, FILE_NO_PUNCH))
		return -ENOTSUP;
	if (end < blk_size(b) || f->device)
		end = thr_align_down(end, b->zero_align);
	if (s.off >= end)
		return 0;
	s.len = end - s.off;
	return offload(f, discard_run, &s);
}

static int set_length(int fd, uint64_t size)
{
	while (ftruncate(fd, (off_t)size)) {
		if (errno != EINTR)
			return -errno;
	}
	return 0;
}

/* Blocks that lie partly before @from have data and are there already. */
static int fill(const struct file_resize *z)
{
	char *buf = (char *)thr_get(z->mem, FILL_STEP, 4096);
	uint64_t at = thr_align_up(z->from, z->align);
	uint64_t end = thr_align_up(z->to, z->align);
	int err = set_length(z->fd, z->to);

	if (!buf)
		return -ENOMEM;
	memset(buf, 0, FILL_STEP);
	while (!err && at < end) {
		size_t len = (size_t)THR_MIN(end - at, FILL_STEP - (at & (FILL_STEP - 1)));
		ssize_t n = pwrite(z->fd, buf, len, (off_t)at);

		if (n > 0)
			at += (uint64_t)n;
		else if (!n || errno != EINTR)
			err = n ? -errno : -EIO;
	}
	thr_put(z->mem, buf, FILL_STEP);
	return err ? err : set_length(z->fd, z->to);
}

static int resize_run(void *arg)
{
	const struct file_resize *z = (const struct file_resize *)arg;
	int err = -ENOTSUP;

	if (z->p == BLK_PREALLOC_OFF || z->to <= z->from)
		return set_length(z->fd, z->to);
	if (z->p == BLK_PREALLOC_FALLOC)
		err = sys_fallocate(z->fd, 0, z->from, z->to - z->from);
	if (err == -ENOTSUP)
		err = fill(z);
	if (err)
		set_length(z->fd, z->from);
	return err;
}

int blk_file_resize(struct file_resize *z, struct blk_err *err)
{
	int ret;

	if (z->p == BLK_PREALLOC_METADATA)
		return blk_fail_str(err, -ENOTSUP, BLK_E_PREALLOC, "metadata");
	if (z->p != BLK_PREALLOC_OFF && z->to < z->from)
		return blk_fail_str(err, -ENOTSUP, BLK_E_SYS_WHAT,
			"Preallocation can't be used for shrinking files");
	ret = thr_offload(resize_run, z);
	return ret ? blk_fail(err, ret, BLK_E_SYS, 0, z->to) : 0;
}

int blk_file_truncate(struct blk *b, uint64_t size, enum blk_prealloc p, struct blk_err *err)
{
	struct blk_file *f = blk_file(b);
	struct file_resize z = {
		.fd = f->fd,
		.align = b->align,
		.from = blk_size(b),
		.to = size,
		.p = p,
		.mem = b->mem,
	};
	int ret;

	if (f->device && size == z.from)
		return 0;
	if (f->device)
		return blk_fail_str(
			err, -ENOTSUP, BLK_E_SYS_WHAT, "A block device cannot be resized");
	ret = blk_file_resize(&z, err);
	if (!ret)
		blk_set_size(b, size);
	return ret;
}

static int trim_run(void *arg)
{
	struct blk_file *f = (struct blk_file *)arg;
	uint64_t size = blk_size(&f->b);
	struct stat st;

	/* No more than the padding: who knows who has made it longer. */
	if (fstat(f->fd, &st))
		return -errno;
	if ((uint64_t)st.st_size <= size ||
		(uint64_t)st.st_size > thr_align_up(size, f->b.align))
		return 0;
	return set_length(f->fd, size);
}

int blk_file_trim(struct blk_file *f)
{
	return offload(f, trim_run, f);
}
