/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/op/bench.c - many requests of one size, so many at a time, timed.
 *
 * Each fiber is one place in the queue: it takes the number of the next request, works
 * out its offset from that of its last one, and makes it. Nothing else is done for a
 * request, and nothing is shared but the counter.
 *
 * Flushes come after every so many requests, before the next one is made. With draining
 * the fiber whose request that is waits until all before it have ended, and those after
 * it wait for the flush; without, it flushes and nobody waits.
 */
#include "fmt/drivers.h"

struct run {
	const struct fmt_bench *b;
	struct thr_group group;
	uint64_t next; /* atomic: the number of the next request */
	bool shared;   /* several executors take numbers */
	int err;       /* atomic: the first */
	uint8_t *mem;
	size_t stride;  /* bytes of it for each fiber */
	uint64_t fiber; /* atomic: the next fiber's number */

	/* with flushes that drain */
	struct thr_mutex lock;
	struct thr_cond changed;
	uint64_t ended;  /* requests */
	uint64_t opened; /* requests below this number may be made */
};

static uint64_t take_number(struct run *r)
{
	uint64_t n = __atomic_load_n(&r->next, __ATOMIC_RELAXED);

	if (r->shared)
		return __atomic_fetch_add(&r->next, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&r->next, n + 1, __ATOMIC_RELAXED);
	return n;
}

/* A fiber's own. */
struct place {
	struct thr_iov iov;
	struct blk_req req;
	uint64_t number; /* whose offset is in req */
};

static void open_place(struct place *p, struct run *r)
{
	uint64_t i = __atomic_fetch_add(&r->fiber, 1, __ATOMIC_RELAXED);

	p->iov.base = r->mem + i * r->stride;
	p->iov.len = r->b->size;
	p->req = (struct blk_req){
		.off = r->b->off, .len = r->b->size, .iov = &p->iov, .niov = 1};
	p->number = 0;
}

/* Offsets go on from the start at the end of the disk. The first one stays as it was
 * given, so that one past the end is an error. */
static void set_offset(struct place *p, const struct fmt_bench *b, uint64_t number)
{
	uint64_t size = blk_size(b->image);

	p->req.off += (number - p->number) * b->step;
	if (THR_UNLIKELY(p->req.off >= size && number && size))
		p->req.off %= size;
	p->number = number;
}

static int transfer(const struct fmt_bench *b, const struct place *p)
{
	return b->write ? blk_pwritev(b->image, &p->req) : blk_preadv(b->image, &p->req);
}

static int plain_fiber(void *arg)
{
	struct run *r = arg;
	struct place p;
	uint64_t n;
	int err = 0;

	open_place(&p, r);
	while (!err && !thr_group_cancelled(&r->group) && (n = take_number(r)) < r->b->count) {
		set_offset(&p, r->b, n);
		err = transfer(r->b, &p);
	}
	return err;
}

/* ---- with flushes ----------------------------------------------------------------- */

static bool comes_after_flush(const struct fmt_bench *b, uint64_t n)
{
	return n && n % b->flush_interval == 0;
}

/* Before request @n: its turn to flush, or the end of another's flush. */
static int drain_and_flush(struct run *r, uint64_t n)
{
	bool mine = comes_after_flush(r->b, n);
	int err = 0;

	thr_mutex_lock(&r->lock);
	while (!thr_group_cancelled(&r->group) && (mine ? r->ended < n : r->opened <= n))
		thr_cond_wait(&r->changed, &r->lock);
	thr_mutex_unlock(&r->lock);
	if (!mine || thr_group_cancelled(&r->group))
		return 0;
	err = blk_flush(r->b->image);
	thr_mutex_lock(&r->lock);
	r->opened += r->b->flush_interval;
	thr_cond_broadcast(&r->changed);
	thr_mutex_unlock(&r->lock);
	return err;
}

static int before(struct run *r, uint64_t n)
{
	if (r->b->drain)
		return drain_and_flush(r, n);
	return comes_after_flush(r->b, n) ? blk_flush(r->b->image) : 0;
}

/* One that failed must not leave others waiting for it. */
static void after(struct run *r, int err)
{
	if (!r->b->drain)
		return;
	if (err)
		thr_group_cancel(&r->group, err);
	thr_mutex_lock(&r->lock);
	r->ended++;
	thr_cond_broadcast(&r->changed);
	thr_mutex_unlock(&r->lock);
}

static int flushing_fiber(void *arg)
{
	struct run *r = arg;
	struct place p;
	uint64_t n;
	int err = 0;

	open_place(&p, r);
	while (!err && !thr_group_cancelled(&r->group) && (n = take_number(r)) < r->b->count) {
		set_offset(&p, r->b, n);
		err = before(r, n);
		if (!err && !thr_group_cancelled(&r->group))
			err = transfer(r->b, &p);
		after(r, err);
	}
	return err;
}

/* ---- all of it ------------------------------------------------------------------------ */

static int run_fibers(struct run *r, unsigned fibers)
{
	int (*fn)(void *arg) = r->b->flush_interval ? flushing_fiber : plain_fiber;
	struct thr_pool *pool = thr_pool_self();
	unsigned execs = pool ? thr_pool_count(pool) : 1;

	thr_group_init(&r->group);
	r->shared = execs > 1;
	for (unsigned i = 0; i < fibers; i++)
		if (thr_group_spawn(
			    &r->group, pool ? thr_pool_exec(pool, i % execs) : NULL, fn, r))
			break;
	return thr_group_wait(&r->group);
}

/* What a buffer may need. */
#define BUF_ALIGN 4096

int fmt_bench(struct fmt_bench *b, struct blk_err *err)
{
	/* In a plain thread one fiber does it all, called in place. */
	uint64_t fibers = thr_in_fiber() ? THR_MIN(b->count, (uint64_t)b->depth) : 1;
	struct run r = {.b = b, .opened = b->flush_interval};
	uint64_t bytes, start;
	int code;

	r.stride = (size_t)thr_align_up(THR_MAX(b->size, 1u), BUF_ALIGN);
	if (thr_mul_over(r.stride, THR_MAX(fibers, 1u), &bytes) || bytes > SIZE_MAX)
		return blk_fail(err, -THR_ENOMEM, BLK_E_SYS, 0, 0);
	r.mem = thr_get(b->image->mem, (size_t)bytes, BUF_ALIGN);
	if (!r.mem)
		return blk_fail(err, -THR_ENOMEM, BLK_E_SYS, 0, 0);
	if (b->write)
		memset(r.mem, b->pattern, (size_t)bytes);
	thr_mutex_init(&r.lock);
	thr_cond_init(&r.changed);
	start = thr_now();
	code = run_fibers(&r, (unsigned)fibers);
	b->ns = thr_now() - start;
	thr_put(b->image->mem, r.mem, (size_t)bytes);
	return code ? blk_fail(err, code, BLK_E_SYS, 0, 0) : 0;
}
