/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/file_rw.c - reads and writes: takes a request apart into system calls, and
 * goes on after short ones.
 *
 * With O_DIRECT all of them are whole blocks; file.h says what happens to the last
 * block of an odd length.
 */
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "blk/file.h"

#define IOV_PART 32 /* pieces handed over at a time */

_Static_assert(sizeof(struct thr_iov) == sizeof(struct iovec), "thr_iov is an iovec");
_Static_assert(offsetof(struct thr_iov, base) == offsetof(struct iovec, iov_base), "same");
_Static_assert(offsetof(struct thr_iov, len) == offsetof(struct iovec, iov_len), "same");

/* preadv2() and pwritev2(), which not every C library has. The kernel takes an offset
 * in two halves of its own word, so that the upper one is nothing where that has 64 bits. */
static ssize_t flagged_rw(const struct file_io *io)
{
	long n = syscall(io->write ? SYS_pwritev2 : SYS_preadv2, (long)io->fd, io->iov,
		(long)io->niov, (unsigned long)io->off, (unsigned long)(io->off >> 32),
		(long)io->rwf);

	if (n < 0 && errno == ENOSYS)
		errno = EOPNOTSUPP;
	return n;
}

int64_t blk_file_sys_rw(const struct file_io *io)
{
	ssize_t n;

	do {
		if (io->rwf)
			n = flagged_rw(io);
		else if (io->niov == 1 && io->write)
			n = pwrite(io->fd, io->iov->iov_base, io->iov->iov_len, (off_t)io->off);
		else if (io->niov == 1)
			n = pread(io->fd, io->iov->iov_base, io->iov->iov_len, (off_t)io->off);
		else if (io->write)
			n = pwritev(io->fd, io->iov, io->niov, (off_t)io->off);
		else
			n = preadv(io->fd, io->iov, io->niov, (off_t)io->off);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

struct job {
	const struct file_io *io;
	int64_t n;
};

static int job_run(void *arg)
{
	struct job *j = (struct job *)arg;

	j->n = blk_file_sys_rw(j->io);
	return 0;
}

int64_t blk_file_offload_rw(const struct file_io *io)
{
	struct job j = {.io = io};
	int err = thr_offload(job_run, &j);

	return err ? err : j.n;
}

/* The next part of the request, of as many pieces as fit. */
static void next_io(struct blk_file *f, const struct blk_req *r, uint64_t done,
	struct file_io *io, struct iovec *iov)
{
	const struct thr_iov *v = r->iov;
	uint64_t skip = r->iov_off + done;
	uint64_t left = r->len - done;

	io->fd = f->fd;
	io->off = r->off + done;
	io->iov = iov;
	io->niov = 0;
	io->len = 0;
	for (; skip >= v->len; v++)
		skip -= v->len;
	for (; left && io->niov < IOV_PART; v++, skip = 0) {
		size_t n = (size_t)THR_MIN(left, v->len - skip);

		if (!n)
			continue;
		iov[io->niov].iov_base = (char *)v->base + skip;
		iov[io->niov++].iov_len = n;
		io->len += n;
		left -= n;
	}
}

static int64_t submit(struct blk_file *f, struct file_io *io)
{
	int64_t n;

	if (!thr_in_fiber())
		return blk_file_sys_rw(io);
	n = f->engine->rw(f, io);
	/* An engine that is out of breath: a thread can wait. */
	return n == -EAGAIN || n == -EINTR ? blk_file_offload_rw(io) : n;
}

/* The file ends at @done into the request. What the device never had reads as
 * zeroes (the last block of an odd length); what it has lost is an error. */
static int read_past_end(struct blk_file *f, const struct blk_req *r, uint64_t done)
{
	if (r->off + done < blk_size(&f->b))
		return -EIO;
	blk_req_fill(r, done, 0, (size_t)(r->len - done));
	return 0;
}

int blk_file_preadv(struct blk *b, struct blk_req *r)
{
	struct blk_file *f = blk_file(b);
	struct file_io io = {.write = false};
	struct iovec iov[IOV_PART];
	uint64_t done = 0;

	while (done < r->len) {
		int64_t n;

		next_io(f, r, done, &io, iov);
		n = submit(f, &io);
		if (n < 0)
			return (int)n;
		done += (uint64_t)n;
		/* Short of a block: there is no more, and asking for the rest of
		 * the block would be refused. */
		if (!n || !thr_is_aligned((uint64_t)n, b->align))
			return read_past_end(f, r, done);
	}
	return 0;
}

/* After a write of whole blocks that passes the end. */
static int keep_length(struct blk_file *f)
{
	__atomic_store_n(&f->padded, true, __ATOMIC_RELAXED);
	return f->b.grows ? 0 : blk_file_trim(f);
}

int blk_file_pwritev(struct blk *b, struct blk_req *r)
{
	struct blk_file *f = blk_file(b);
	bool fua = r->flags & BLK_FUA;
	struct file_io io = {.write = true};
	struct iovec iov[IOV_PART];
	uint64_t done = 0;

	if (fua && !file_cannot(f, FILE_NO_DSYNC))
		io.rwf = RWF_DSYNC;
	while (done < r->len) {
		int64_t n;

		next_io(f, r, done, &io, iov);
		n = submit(f, &io);
		if (n == -EOPNOTSUPP && io.rwf) {
			file_set_cannot(f, FILE_NO_DSYNC);
			io.rwf = 0;
			continue;
		}
		if (n <= 0)
			return n ? (int)n : -EIO;
		done += (uint64_t)n;
	}
	if (b->align > 1 && r->off + r->len > blk_size(b)) {
		int err = keep_length(f);

		if (err)
			return err;
	}
	return fua && !io.rwf ? blk_file_flush(b) : 0;
}
