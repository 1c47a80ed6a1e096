/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/serve_file.c - replies out of a file's pages in memory, by sendfile(): without a
 * copy into a buffer, and to a Unix socket without one out of it (Linux 6.5).
 *
 * Only what is in memory is sent so, for there is nobody to wait for the disk: on tmpfs
 * that is everything, elsewhere cachestat() tells. What is given up again meanwhile is
 * waited for here, once. A write that overtakes a reply on its way is one that was not
 * ordered after the read, which may show either.
 */
#include <errno.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "blk/file.h"
#include "blk/serve.h"

/* Less is copied as fast, and leaves with others in one call. */
#define FILE_FROM (64u << 10)

#define CACHESTAT 451 /* on all machines; not every C library names it */
#define PAGE      4096u

/* Linux's struct cachestat_range and struct cachestat. */
struct range {
	uint64_t off, len;
};

struct pages {
	uint64_t cached, dirty, writeback, evicted, lately_evicted;
};

static bool in_memory(const struct blk_file *f, uint64_t off, uint64_t len)
{
	struct range r = {off, len};
	struct pages p;
	uint64_t first = off / PAGE, last = (off + len - 1) / PAGE;

	if (f->memory)
		return true;
	return !syscall(CACHESTAT, f->fd, &r, &p, 0) && p.cached > last - first;
}

int blk_srv_file(const struct srv_conn *c, uint64_t off, uint64_t len)
{
	struct blk *b = c->export->plain;
	struct blk_file *f;

	if (!b || b->ops->preadv != blk_file_preadv || c->tls || len < FILE_FROM)
		return -1;
	f = blk_file(b);
	if (f->direct || f->device || f->remote || !thr_within(off, len, blk_size(b)))
		return -1;
	return in_memory(f, off, len) ? f->fd : -1;
}

int64_t blk_srv_sendfile(struct srv_conn *c, const struct srv_out *o, size_t done)
{
	off_t at = (off_t)(o->off + done);
	ssize_t n = sendfile(c->fd, o->fd, &at, o->len - done);

	if (n >= 0)
		return n;
	return errno == EWOULDBLOCK ? -EAGAIN : -errno;
}
