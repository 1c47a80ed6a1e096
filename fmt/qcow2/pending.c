/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/pending.c - requests in flight, and dropped clusters on their way to
 * being free.
 *
 * A cluster that a table does not point to any more may still be the one that the
 * durable table points to, and requests that have mapped it may still be reading
 * or writing it. So it waits, in order of dropping, for two things: a flush that
 * began after the change, and the end of every request that began before it. Only
 * then is its count decremented; if that makes it 0 the space is given back to the
 * host first, and it is free after. A crash in between leaks it.
 *
 * Requests are counted in generations. Each enters the current one; the next one
 * begins when the one before the current has emptied, so that two counters do. A
 * drop is stamped with the current generation: whatever mapped the cluster entered
 * that one or an earlier one.
 *
 * Decrements happen in a flush (or at close), so that what is free depends on the
 * order of requests and flushes only.
 */
#include "fmt/barrier.h"
#include "fmt/qcow2/write.h"

/* With one thread of control nothing is atomic; a 32-bit processor could not do it. */
#ifdef CONFIG_THR_NONE
#define gen_now(w)      ((w)->gen)
#define gen_begin(w, v) ((w)->gen = (v))
#else
#define gen_now(w)      __atomic_load_n(&(w)->gen, __ATOMIC_SEQ_CST)
#define gen_begin(w, v) __atomic_store_n(&(w)->gen, v, __ATOMIC_SEQ_CST)
#endif

struct dropped {
	uint64_t cluster, n;
	uint64_t seq, gen;
	unsigned flags;
};

#define PIECE 65536u /* clusters */

/* A part of the list, first in first out. */
#define PART 100u
struct qcow2_drops {
	struct qcow2_drops *next;
	unsigned head, tail;
	struct dropped v[PART];
};

/* ---- generations ------------------------------------------------------------- */

unsigned qcow2_enter(struct qcow2 *q)
{
	struct qcow2_write *w = q->w;

	if (!w)
		return 0;
	for (;;) {
		uint64_t gen = gen_now(w);
		unsigned slot = (unsigned)gen & 1;

		__atomic_fetch_add(&w->users[slot], 1, __ATOMIC_SEQ_CST);
		if (gen_now(w) == gen)
			return slot;
		qcow2_exit(q, slot);
	}
}

void qcow2_exit(struct qcow2 *q, unsigned cookie)
{
	struct qcow2_write *w = q->w;

	if (!w)
		return;
	__atomic_fetch_sub(&w->users[cookie], 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&w->waiting, __ATOMIC_SEQ_CST)) {
		thr_mutex_lock(&w->idle_lock);
		thr_cond_broadcast(&w->idle);
		thr_mutex_unlock(&w->idle_lock);
	}
}

/* Whether all requests of generation @gen and before have ended; begins a new one
 * where that is in the way. With idle_lock. */
static bool gen_over(struct qcow2_write *w, uint64_t gen)
{
	for (;;) {
		uint64_t now = w->gen;

		if (gen + 1 < now)
			return true;
		if (__atomic_load_n(&w->users[(now - 1) & 1], __ATOMIC_SEQ_CST))
			return false;
		if (gen < now)
			return true;
		gen_begin(w, now + 1);
	}
}

static bool is_over(struct qcow2_write *w, uint64_t gen)
{
	bool over;

	thr_mutex_lock(&w->idle_lock);
	over = gen_over(w, gen);
	thr_mutex_unlock(&w->idle_lock);
	return over;
}

static void wait_over(struct qcow2_write *w, uint64_t gen)
{
	thr_mutex_lock(&w->idle_lock);
	__atomic_fetch_add(&w->waiting, 1, __ATOMIC_SEQ_CST);
	while (!gen_over(w, gen))
		thr_cond_wait(&w->idle, &w->idle_lock);
	__atomic_fetch_sub(&w->waiting, 1, __ATOMIC_SEQ_CST);
	thr_mutex_unlock(&w->idle_lock);
}

/* ---- the list, under the cache's lock ---------------------------------------------- */

static struct qcow2_drops *part_for_one(struct qcow2 *q)
{
	struct qcow2_write *w = q->w;
	struct qcow2_drops *p = w->newest;

	if (p && p->tail < PART)
		return p;
	p = thr_get(q->blk.mem, sizeof(*p), 16);
	if (!p)
		return NULL;
	p->next = NULL;
	p->head = 0;
	p->tail = 0;
	if (w->newest)
		w->newest->next = p;
	else
		w->oldest = p;
	w->newest = p;
	return p;
}

static bool part_is_empty(const struct qcow2_drops *p)
{
	return p->head == p->tail;
}

void qcow2_drop(struct qcow2 *q, uint64_t host, uint64_t n, unsigned flags)
{
	struct qcow2_write *w = q->w;
	uint64_t cluster = host >> q->h.cluster_bits;
	uint64_t gen = gen_now(w);
	struct qcow2_drops *p = w->newest;
	struct dropped *d = p && !part_is_empty(p) ? &p->v[p->tail - 1] : NULL;

	w->dropped++;
	if (w->packed && w->packed >> q->h.cluster_bits >= cluster &&
		w->packed >> q->h.cluster_bits < cluster + n)
		w->packed = 0;
	if (d && d->cluster + d->n == cluster && d->flags == flags) {
		d->n += n;
		d->seq = w->dropped;
		d->gen = gen;
		return;
	}
	p = part_for_one(q);
	if (!p)
		return;
	d = &p->v[p->tail++];
	d->cluster = cluster;
	d->n = n;
	d->flags = flags;
	d->seq = w->dropped;
	d->gen = gen;
	w->ndrops++;
}

/* Takes the oldest drop off the list if what it waits for has come. */
static bool take(struct qcow2 *q, struct dropped *d)
{
	struct qcow2_write *w = q->w;
	struct qcow2_drops *p = w->oldest;

	if (!p || part_is_empty(p))
		return false;
	*d = p->v[p->head];
	if (FMT_BARRIER(DROP_BEFORE_REUSE) && d->seq > w->durable)
		return false;
	if (!is_over(w, d->gen))
		return false;
	/* Only where that barrier is left out. Here, as w->durable is the lock's. */
	if (d->seq > w->durable)
		d->flags &= ~QCOW2_PUNCH;
	p->head++;
	w->ndrops--;
	if (part_is_empty(p)) {
		w->oldest = p->next;
		if (!w->oldest)
			w->newest = NULL;
		thr_put(q->blk.mem, p, sizeof(*p));
	}
	return true;
}

void qcow2_drops_free(struct qcow2 *q)
{
	struct qcow2_drops *p = q->w->oldest;

	while (p) {
		struct qcow2_drops *next = p->next;

		thr_put(q->blk.mem, p, sizeof(*p));
		p = next;
	}
	q->w->oldest = NULL;
	q->w->newest = NULL;
}

/* ---- settling -------------------------------------------------------------------------- */

/* How many clusters, at most @n, have the count 1 from @cluster on; or, where the
 * first has not, how many have not. With the cache's lock (drops). */
static int run_of_ones(struct qcow2 *q, uint64_t cluster, uint64_t n, uint64_t *len, bool *ones)
{
	uint64_t count;

	for (*len = 0; *len < n; ++*len) {
		int err = qcow2_refcount_get(q, cluster + *len, &count);

		if (err)
			return err;
		if (!*len)
			*ones = count == 1;
		else if ((count == 1) != *ones)
			break;
	}
	return 0;
}

/* Gives back to the host what will be free. Nobody else can get there: its count is
 * 1 until we take that. That it fails harms nothing. */
static void punch(struct qcow2 *q, const struct dropped *d)
{
	uint64_t at, n;
	bool ones = false;

	for (at = 0; at < d->n; at += n) {
		struct blk_req r = {.flags = BLK_CHILD};
		int err;

		fmt_cache_lock(q->cache);
		err = run_of_ones(q, d->cluster + at, d->n - at, &n, &ones);
		fmt_cache_unlock(q->cache);
		if (err)
			return;
		if (!ones)
			continue;
		r.off = (d->cluster + at) << q->h.cluster_bits;
		r.len = n << q->h.cluster_bits;
		if (r.off >= blk_size(q->blk.file))
			continue;
		r.len = THR_MIN(r.len, blk_size(q->blk.file) - r.off);
		if (blk_discard(q->blk.file, &r))
			return;
	}
}

/* A count that cannot be decremented is a leak: the flush was good all the same.
 * In pieces, so that nobody waits long for the lock. */
static void settle_one(struct qcow2 *q, struct dropped d)
{
	uint64_t end = d.cluster + d.n;

	for (; d.cluster < end; d.cluster += d.n) {
		d.n = THR_MIN(end - d.cluster, PIECE);
		if (d.flags & QCOW2_PUNCH)
			punch(q, &d);
		qcow2_layout_lock(q);
		qcow2_refcount_dec(q, d.cluster, d.n);
		qcow2_layout_unlock(q);
	}
}

static void settle(struct qcow2 *q)
{
	struct dropped d;

	for (;;) {
		bool got;

		fmt_cache_lock(q->cache);
		got = take(q, &d);
		fmt_cache_unlock(q->cache);
		if (!got)
			return;
		settle_one(q, d);
	}
}

int qcow2_flush(struct blk *b)
{
	struct qcow2 *q = qcow2_of(b);
	struct qcow2_write *w = q->w;
	int err = __atomic_load_n(&w->err, __ATOMIC_ACQUIRE);
	uint64_t seq;

	if (err)
		return err;
	fmt_cache_lock(q->cache);
	seq = w->dropped;
	err = fmt_cache_flush(q->cache, q->blk.file);
	if (!err)
		w->durable = THR_MAX(w->durable, seq);
	fmt_cache_unlock(q->cache);
	if (!err)
		settle(q);
	return err;
}

/* In a build that is made to fail: drops are punched that are not durable yet. */
static void punch_early(struct qcow2 *q)
{
	struct dropped d[PART];
	unsigned n = 0, i;

	fmt_cache_lock(q->cache);
	for (const struct qcow2_drops *p = q->w->oldest; p; p = p->next)
		for (i = p->head; i < p->tail && n < PART; i++)
			if (p->v[i].flags & QCOW2_PUNCH)
				d[n++] = p->v[i];
	fmt_cache_unlock(q->cache);
	for (i = 0; i < n; i++)
		punch(q, &d[i]);
}

int qcow2_drops_bound(struct qcow2 *q)
{
	struct qcow2_write *w = q->w;
	uint64_t gen;
	bool full;

	if (!FMT_BARRIER(DROP_BEFORE_REUSE))
		settle(q);
	if (!FMT_BARRIER(PUNCH_AFTER_DROP))
		punch_early(q);
	fmt_cache_lock(q->cache);
	full = w->ndrops > QCOW2_DROPS_MAX;
	gen = gen_now(w);
	fmt_cache_unlock(q->cache);
	if (!full)
		return 0;
	wait_over(w, gen);
	return qcow2_flush(&q->blk);
}
