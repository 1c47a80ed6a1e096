/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/file_flush.c - one fdatasync() serves all flushes that wait for it.
 *
 * A flush covers what completed before it was submitted, so a request may join only
 * one that has not been submitted yet: everybody waits for generation flush_next,
 * and whoever finds the device idle submits that generation and opens another.
 *
 * After a failed fdatasync() Linux has dropped the pages or marked them clean: a
 * second one would succeed although the data is lost. So the failure stays until
 * the file is opened again.
 */
#include <errno.h>
#include <unistd.h>

#include "blk/file.h"

void blk_file_flush_init(struct blk_file *f)
{
	thr_mutex_init(&f->flush_lock);
	thr_cond_init(&f->flush_cond);
	f->flush_next = 1;
}

static int sys_sync(void *arg)
{
	const struct blk_file *f = (const struct blk_file *)arg;

	while (fdatasync(f->fd)) {
		if (errno != EINTR)
			return -errno;
	}
	return 0;
}

static int device_sync(struct blk_file *f)
{
	int err = -EAGAIN;

	if (thr_in_fiber() && f->engine->sync)
		err = f->engine->sync(f);
	return err == -EAGAIN || err == -EINTR ? thr_offload(sys_sync, f) : err;
}

/* Called and returns with flush_lock held. */
static void lead(struct blk_file *f)
{
	uint64_t gen = f->flush_next++;
	int err = f->flush_err;

	f->flushing = true;
	thr_mutex_unlock(&f->flush_lock);
	if (!err)
		err = device_sync(f);
	thr_mutex_lock(&f->flush_lock);
	f->flushing = false;
	f->flush_done = gen;
	if (!f->flush_err)
		f->flush_err = err;
	thr_cond_broadcast(&f->flush_cond);
}

int blk_file_flush(struct blk *b)
{
	struct blk_file *f = blk_file(b);
	uint64_t gen;
	int err;

	thr_mutex_lock(&f->flush_lock);
	gen = f->flush_next;
	while (f->flush_done < gen) {
		if (f->flushing)
			thr_cond_wait(&f->flush_cond, &f->flush_lock);
		else
			lead(f);
	}
	err = f->flush_err;
	thr_mutex_unlock(&f->flush_lock);
	return err;
}
