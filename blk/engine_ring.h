/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/engine_ring.h - what the engines with rings share. Private.
 *
 * A request is on the stack of the fiber that waits for it. A ring belongs to one
 * executor, so nothing here needs a lock. A request goes straight into the ring if
 * it has room and nobody waits for that, else to the end of the queue.
 */
#ifndef BLK_ENGINE_RING_H
#define BLK_ENGINE_RING_H

#include "blk/file.h"

#if defined(CONFIG_THR_VALGRIND) && defined(__has_include)
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#endif
#endif
#ifndef VALGRIND_MAKE_MEM_DEFINED
#define VALGRIND_MAKE_MEM_DEFINED(p, n) ((void)(p), (void)(n))
#endif

struct ring_req {
	const struct file_io *io; /* NULL: fdatasync() */
	int fd;
	int64_t res;
	struct thr_wait wait;
	struct ring_req *next;
};

struct ring_queue {
	struct ring_req *head, *tail;
};

static inline void ring_queue_push(struct ring_queue *q, struct ring_req *r)
{
	r->next = NULL;
	if (q->head)
		q->tail->next = r;
	else
		q->head = r;
	q->tail = r;
}

/* valgrind does not see what the kernel writes after the system call. */
static inline void ring_tell_valgrind(const struct file_io *io, size_t left)
{
	for (int i = 0; left && i < io->niov; i++) {
		size_t n = THR_MIN(left, io->iov[i].iov_len);

		VALGRIND_MAKE_MEM_DEFINED(io->iov[i].iov_base, n);
		left -= n;
	}
}

static inline void ring_done(struct ring_req *r, int64_t res)
{
	if (res > 0 && r->io && !r->io->write)
		ring_tell_valgrind(r->io, (size_t)res);
	r->res = res;
	thr_wait_wake(&r->wait);
}

#endif
