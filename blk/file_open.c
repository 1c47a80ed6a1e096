/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/file_open.c - opens a file and finds out what it is: its kind, its length and
 * what O_DIRECT demands of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/stat.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "blk/file.h"

/* Since Linux 6.1; the headers may be older. */
#ifndef STATX_DIOALIGN
#define STATX_DIOALIGN 0x2000u
#endif
#ifndef CIFS_SUPER_MAGIC
#define CIFS_SUPER_MAGIC 0xff534d42
#endif
#ifndef SMB2_SUPER_MAGIC
#define SMB2_SUPER_MAGIC 0xfe534d42
#endif
#ifndef CEPH_SUPER_MAGIC
#define CEPH_SUPER_MAGIC 0x00c36400
#endif
#ifndef FUSE_SUPER_MAGIC
#define FUSE_SUPER_MAGIC 0x65735546
#endif

enum {
	DIRECT_MAX = 65536, /* a block size above this is not believed */
	DIRECT_SAFE = 4096, /* what to demand where nobody can tell */
	GRAIN = 4096,       /* of holes, where the file system does not say */
};

static bool our_kind(const struct stat *st)
{
	return S_ISREG(st->st_mode) || S_ISBLK(st->st_mode);
}

static int not_file(struct blk_err *err)
{
	return blk_fail(err, -EINVAL, BLK_E_NOT_FILE, 0, 0);
}

int blk_file_open_fd(
	const char *name, unsigned flags, int *out, struct stat *st, struct blk_err *err)
{
	int how = (flags & BLK_RDWR ? O_RDWR : O_RDONLY) | (flags & BLK_NOCACHE ? O_DIRECT : 0);
	int fd;

	if (stat(name, st))
		return blk_fail(err, -errno, BLK_E_SYS, 0, 0);
	if (!our_kind(st))
		return not_file(err);
	/* The name may stand for another file by now: O_NONBLOCK keeps a FIFO
	 * from holding us up. On a file it would make io_uring give up early. */
	fd = open(name, how | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0) {
		int code = -errno;

		if (code == -EINVAL && flags & BLK_NOCACHE)
			return blk_fail(err, -EINVAL, BLK_E_NO_DIRECT, 0, 0);
		return blk_fail(err, code, BLK_E_SYS, 0, 0);
	}
	if (fstat(fd, st) || !our_kind(st)) {
		close(fd);
		return not_file(err);
	}
	if (fcntl(fd, F_SETFL, how)) {
		int code = -errno;

		close(fd);
		return blk_fail(err, code, BLK_E_SYS, 0, 0);
	}
	*out = fd;
	return 0;
}

int blk_file_size(int fd, const struct stat *st, uint64_t *size)
{
	if (S_ISREG(st->st_mode)) {
		*size = (uint64_t)st->st_size;
		return 0;
	}
	return ioctl(fd, BLKGETSIZE64, size) ? -errno : 0;
}

static bool ask_statx(int fd, uint32_t *align, uint32_t *mem)
{
	struct statx sx;

	memset(&sx, 0, sizeof(sx));
	if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &sx))
		return false;
	if (!(sx.stx_mask & STATX_DIOALIGN) || !sx.stx_dio_offset_align)
		return false;
	*align = sx.stx_dio_offset_align;
	*mem = sx.stx_dio_mem_align;
	return true;
}

/* The smallest block that can be read. An empty file tells nothing: the kernel may
 * see that there is nothing to read before it sees that the block is too small. */
static int try_reads(struct blk_file *f, uint32_t *align)
{
	char *buf = (char *)thr_get(f->b.mem, DIRECT_SAFE, DIRECT_SAFE);
	uint32_t n = 1;

	if (!buf)
		return -ENOMEM;
	while (n < DIRECT_SAFE && pread(f->fd, buf, n, 0) != (ssize_t)n)
		n = n == 1 ? 512 : n * 2;
	thr_put(f->b.mem, buf, DIRECT_SAFE);
	*align = n;
	return 0;
}

static int probe_direct(struct blk_file *f)
{
	uint32_t align = 0;
	uint32_t mem = 0;
	int sector;

	if (!ask_statx(f->fd, &align, &mem)) {
		if (f->device && !ioctl(f->fd, BLKSSZGET, &sector))
			align = (uint32_t)sector;
		else if (try_reads(f, &align))
			return -ENOMEM;
		mem = align;
	}
	if (!thr_is_pow2(align) || align > DIRECT_MAX)
		align = DIRECT_SAFE;
	if (!thr_is_pow2(mem) || mem > DIRECT_MAX)
		mem = DIRECT_SAFE;
	f->b.align = align;
	f->b.mem_align = mem;
	return 0;
}

static void probe_fs(struct blk_file *f)
{
	struct statfs fs;

	if (f->device || fstatfs(f->fd, &fs))
		return;
	switch ((uint32_t)fs.f_type) {
	case TMPFS_MAGIC:
		f->memory = true;
		break;
	case NFS_SUPER_MAGIC:
	case CIFS_SUPER_MAGIC:
	case SMB2_SUPER_MAGIC:
	case SMB_SUPER_MAGIC:
	case CEPH_SUPER_MAGIC:
	case FUSE_SUPER_MAGIC:
	case V9FS_MAGIC:
		f->remote = true;
		break;
	}
}

int blk_file_probe(struct blk_file *f, const struct stat *st, struct blk_err *err)
{
	uint32_t grain = GRAIN;
	uint64_t size;
	int code = blk_file_size(f->fd, st, &size);

	if (code)
		return blk_fail_str(err, code, BLK_E_SYS_WHAT, "Could not get the size");
	f->device = S_ISBLK(st->st_mode);
	f->dev = f->device ? st->st_rdev : st->st_dev;
	f->ino = f->device ? 0 : st->st_ino;
	f->b.fua = true;
	f->b.grows = !f->device && !(f->b.flags & BLK_FIXED_SIZE);
	blk_set_size(&f->b, size);
	probe_fs(f);

	if (f->direct) {
		code = probe_direct(f);
		if (code)
			return blk_fail(err, code, BLK_E_SYS, 0, 0);
	}
	if (thr_is_pow2((uint64_t)st->st_blksize) && st->st_blksize <= DIRECT_MAX)
		grain = (uint32_t)st->st_blksize;
	f->b.zero_align = THR_MAX(grain, f->b.align);
	return 0;
}
