/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/file_status.c - which bytes of a file are holes (lseek SEEK_DATA, SEEK_HOLE).
 *
 * Answers are not kept: a write by anybody would make them wrong, and who asks
 * once per extent gains nothing. lseek() moves the position of the description, which
 * nothing else here uses.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "blk/file.h"

struct seek {
	struct blk_file *f;
	uint64_t off;
	uint64_t len;
	struct blk_extent *e;
};

static void extent(struct blk_extent *e, uint64_t len, bool data)
{
	e->len = len;
	e->flags = BLK_EXT_ALLOC | (data ? BLK_EXT_DATA : BLK_EXT_ZERO);
	e->map = 0;
}

/* No data from off on: a hole up to the end, unless that has come closer. Then what
 * is missing counts as data, whose reading is the error that it should be. */
static void hole_to_end(struct seek *s)
{
	struct stat st;
	uint64_t size;

	if (fstat(s->f->fd, &st) || (uint64_t)st.st_size <= s->off) {
		extent(s->e, s->len, true);
		return;
	}
	size = (uint64_t)st.st_size;
	extent(s->e, THR_MIN(s->len, size - s->off), false);
}

static int seek(void *arg)
{
	struct seek *s = (struct seek *)arg;
	off_t at = lseek(s->f->fd, (off_t)s->off, SEEK_DATA);

	if (at < 0 && errno == ENXIO) {
		hole_to_end(s);
		return 0;
	}
	if (at < 0)
		return -errno;
	if ((uint64_t)at > s->off) {
		extent(s->e, THR_MIN(s->len, (uint64_t)at - s->off), false);
		return 0;
	}
	at = lseek(s->f->fd, (off_t)s->off, SEEK_HOLE);
	/* Another process has dug: that it was data a moment ago is no error. */
	if (at < 0 || (uint64_t)at <= s->off)
		extent(s->e, s->len, true);
	else
		extent(s->e, THR_MIN(s->len, (uint64_t)at - s->off), true);
	return 0;
}

int blk_file_status(struct blk *b, uint64_t off, uint64_t len, struct blk_extent *e)
{
	struct blk_file *f = blk_file(b);
	struct seek s = {.f = f, .off = off, .len = len, .e = e};
	int err;

	if (f->device || file_cannot(f, FILE_NO_SEEK)) {
		extent(e, len, true);
		return 0;
	}
	/* A local file system answers from memory; its rare read of a metadata
	 * block is cheaper than sending every question to another thread. */
	err = f->remote ? thr_offload(seek, &s) : seek(&s);
	if (err == -EINVAL || err == -ENOTSUP) {
		file_set_cannot(f, FILE_NO_SEEK);
		extent(e, len, true);
		return 0;
	}
	return err;
}

int blk_file_allocated(struct blk *b, uint64_t *bytes)
{
	struct stat st;

	if (fstat(blk_file(b)->fd, &st))
		return -errno;
	*bytes = (uint64_t)st.st_blocks * 512;
	return 0;
}

/* A block device has none that says anything about its content. */
int blk_file_mtime(struct blk *b, int64_t *seconds)
{
	struct stat st;

	if (fstat(blk_file(b)->fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOTSUP;
	*seconds = (int64_t)st.st_mtime;
	return 0;
}

/* Past the cache there is no place for it. */
int blk_file_prefetch(struct blk *b, uint64_t off, uint64_t len)
{
	struct blk_file *f = blk_file(b);

	if (f->direct)
		return -ENOTSUP;
	return -posix_fadvise(f->fd, (off_t)off, (off_t)len, POSIX_FADV_WILLNEED);
}
