/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/order.c - write ordering: dirty slices, write-back in rank order, grouped
 * device flushes. The contract is in fmt/cache.h.
 *
 * A write-back takes a snapshot of all dirty slices at one instant (struct snap,
 * copies in one arena) and writes it in phases. Phase 0 holds the fresh slices
 * and the lowest rank, phase n the rest of rank n. Before a phase is written,
 * one device flush covers what its slices come after: the lower ranks' writes,
 * of this write-back and of earlier ones, and the epochs given by
 * fmt_slice_after(). Since the snapshot is fixed, so is the number of flushes:
 * at most one for each rank, and none where nothing was written in between.
 *
 * Why a fresh slice needs no waiting: what points to it is of higher rank, in
 * this snapshot or a later one, and will wait for the fresh slice's own write,
 * whose epoch is no earlier than any that the slice was told to come after.
 */
#include "fmt/barrier.h"
#include "fmt/cache_priv.h"

/* Dirty parts are written in whole sectors of this size: what a disk can tear. */
#define SECTOR 512u

struct snap {
	struct snap *next;
	struct fmt_slice *slice;
	uint64_t off;
	uint32_t lo, hi;
	uint64_t after;
	uint8_t rank;
	bool fresh;
	uint8_t *buf;
};

struct snapshot {
	struct snap *phase[FMT_RANKS]; /* each sorted by offset */
	void *arena;
	size_t arena_size;
};

/* ---- dirty slices ---------------------------------------------------------- */

static struct fmt_order *order_of(struct fmt_cache *c, const struct blk *file)
{
	struct fmt_order *o = c->orders;

	while (o && o->file != file)
		o = o->next;
	THR_ASSERT(o);
	return o;
}

int fmt_cache_attach(struct fmt_cache *c, struct blk *file)
{
	struct fmt_order *o = thr_zget(c->mem, sizeof(*o));

	if (!o)
		return -THR_ENOMEM;
	o->file = file;
	thr_mutex_lock(&c->lock);
	o->next = c->orders;
	c->orders = o;
	thr_mutex_unlock(&c->lock);
	return 0;
}

void fmt_cache_detach(struct fmt_cache *c, struct blk *file)
{
	struct fmt_order *o, **p = &c->orders;

	thr_mutex_lock(&c->lock);
	o = order_of(c, file);
	THR_ASSERT(!o->wb_running && !o->flushing);
	fmt_cache_forget(c, file, 0, UINT64_MAX);
	while (*p != o)
		p = &(*p)->next;
	*p = o->next;
	thr_mutex_unlock(&c->lock);
	thr_put(c->mem, o, sizeof(*o));
}

void fmt_cache_data(struct fmt_cache *c, struct blk *file, struct blk *data)
{
	order_of(c, file)->data = data;
}

void fmt_cache_lazy(struct fmt_cache *c, struct blk *file, bool lazy)
{
	order_of(c, file)->lazy = lazy;
}

void fmt_slice_dirty(
	struct fmt_cache *c, struct fmt_slice *s, enum fmt_rank rank, uint32_t lo, uint32_t hi)
{
	struct fmt_order *o = s->dirty ? s->order : order_of(c, s->file);

	THR_ASSERT(s->pins && lo < hi && hi <= c->slice_size);
	lo = (uint32_t)thr_align_down(lo, SECTOR);
	hi = (uint32_t)thr_align_up(hi, SECTOR);
	s->rank = (uint8_t)rank;
	if (s->dirty) {
		s->lo = THR_MIN(s->lo, lo);
		s->hi = THR_MAX(s->hi, hi);
		return;
	}
	s->dirty = true;
	s->order = o;
	s->lo = lo;
	s->hi = hi;
	s->after = 0;
	fmt_list_add(&o->dirty, s);
	o->ndirty++;
}

int fmt_slice_new(struct fmt_cache *c, struct blk *file, uint64_t off, enum fmt_rank rank,
	struct fmt_slice **out)
{
	struct fmt_slice *s;

	THR_ASSERT(thr_is_aligned(off, c->slice_size));
	s = fmt_slice_find(c, file, off);
	if (!s)
		s = fmt_slice_take(c, file, off);
	if (!s)
		return -THR_ENOMEM;
	s->err = 0;
	memset(s->data, 0, c->slice_size);
	fmt_slice_dirty(c, s, rank, 0, c->slice_size);
	s->fresh = true;
	*out = s;
	return 0;
}

void fmt_slice_after(struct fmt_cache *c, struct fmt_slice *s, uint64_t epoch)
{
	(void)c;
	THR_ASSERT(s->dirty);
	s->after = THR_MAX(s->after, epoch);
}

bool fmt_cache_pressed(const struct fmt_cache *c)
{
	const struct fmt_order *o;
	uint32_t dirty = 0;

	for (o = c->orders; o; o = o->next)
		dirty += o->ndirty;
	return dirty >= THR_MAX(c->max / 2, 1u);
}

/* ---- device flushes ---------------------------------------------------------- */

uint64_t fmt_cache_epoch(struct fmt_cache *c, struct blk *file)
{
	return order_of(c, file)->started + 1;
}

bool fmt_cache_durable(struct fmt_cache *c, struct blk *file, uint64_t epoch)
{
	return order_of(c, file)->done >= epoch;
}

void fmt_cache_wrote(struct fmt_cache *c, struct blk *file)
{
	struct fmt_order *o = order_of(c, file);

	o->wrote = o->started + 1;
}

static int fail(struct fmt_order *o, int err)
{
	if (!o->err)
		o->err = err;
	return o->err;
}

/* Returns once flush number @epoch has completed. Whoever finds none in flight
 * submits one; it serves all who are waiting, since all of them came before. */
static int flush_to(struct fmt_cache *c, struct fmt_order *o, uint64_t epoch)
{
	while (o->done < epoch) {
		uint64_t n;
		int err;

		if (o->err)
			return o->err;
		if (o->flushing) {
			thr_cond_wait(&c->changed, &c->lock);
			continue;
		}
		o->flushing = true;
		n = ++o->started;
		thr_mutex_unlock(&c->lock);
		err = o->data ? blk_flush(o->data) : 0;
		if (!err)
			err = blk_flush(o->file);
		thr_mutex_lock(&c->lock);
		o->flushing = false;
		if (err)
			fail(o, err);
		else
			o->done = n;
		thr_cond_broadcast(&c->changed);
	}
	return 0;
}

/* ---- the snapshot --------------------------------------------------------------- */

static struct snap *merge(struct snap *a, struct snap *b)
{
	struct snap *head = NULL, **tail = &head;

	while (a && b) {
		struct snap **least = a->off <= b->off ? &a : &b;

		*tail = *least;
		tail = &(*least)->next;
		*least = *tail;
	}
	*tail = a ? a : b;
	return head;
}

/* Bottom-up merge sort: bin n holds a sorted list of 1 << n, or nothing. */
static struct snap *sort(struct snap *list)
{
	struct snap *bin[32] = {NULL}, *sorted = NULL;
	unsigned i;

	while (list) {
		struct snap *s = list;

		list = s->next;
		s->next = NULL;
		for (i = 0; i < 31 && bin[i]; i++) {
			s = merge(bin[i], s);
			bin[i] = NULL;
		}
		bin[i] = bin[i] ? merge(bin[i], s) : s;
	}
	for (i = 0; i < 32; i++)
		sorted = merge(bin[i], sorted);
	return sorted;
}

static int snapshot_alloc(struct fmt_cache *c, const struct fmt_order *o, struct snapshot *shot)
{
	const struct fmt_slice *s;
	size_t bytes = (size_t)o->ndirty * sizeof(struct snap);

	for (s = o->dirty.head; s; s = s->next)
		bytes += s->hi - s->lo;
	memset(shot, 0, sizeof(*shot));
	shot->arena_size = bytes;
	shot->arena = thr_get(c->mem, bytes, SECTOR);
	return shot->arena ? 0 : -THR_ENOMEM;
}

static void snap_slice(struct snapshot *shot, struct snap *p, struct fmt_slice *s)
{
	unsigned phase = s->fresh ? 0 : s->rank;

	p->slice = s;
	p->off = s->off;
	p->lo = s->lo;
	p->hi = s->hi;
	p->after = s->fresh ? 0 : s->after;
	p->rank = s->rank;
	p->fresh = s->fresh;
	p->next = shot->phase[phase];
	shot->phase[phase] = p;
	s->dirty = false;
	s->fresh = false;
	s->writing = true;
}

/* Takes all dirty slices of @o; they are clean from then on, but stay where they
 * are until written. Copies lie in the order in which they are written, so that
 * neighbours go out in one write. */
static int snapshot_take(struct fmt_cache *c, struct fmt_order *o, struct snapshot *shot)
{
	struct snap *p;
	uint8_t *buf;
	unsigned i;
	int err = snapshot_alloc(c, o, shot);

	if (err)
		return err;
	p = shot->arena;
	buf = (uint8_t *)(p + o->ndirty);
	while (o->dirty.head) {
		struct fmt_slice *s = o->dirty.head;

		fmt_list_del(&o->dirty, s);
		snap_slice(shot, p++, s);
	}
	o->ndirty = 0;
	for (i = 0; i < FMT_RANKS; i++) {
		shot->phase[i] = sort(shot->phase[i]);
		for (p = shot->phase[i]; p; p = p->next) {
			p->buf = buf;
			memcpy(buf, p->slice->data + p->lo, p->hi - p->lo);
			buf += p->hi - p->lo;
		}
	}
	return 0;
}

/* What could not be written is dirty again, with all its dependencies. */
static void snap_restore(struct fmt_cache *c, struct snap *p)
{
	struct fmt_slice *s = p->slice;

	s->pins++;
	fmt_slice_dirty(c, s, p->rank, p->lo, p->hi);
	fmt_slice_after(c, s, p->after);
	s->fresh |= p->fresh;
	s->pins--;
}

static void snapshot_end(struct fmt_cache *c, struct snapshot *shot, int err)
{
	struct snap *p;
	unsigned i;

	for (i = 0; i < FMT_RANKS; i++) {
		for (p = shot->phase[i]; p; p = p->next) {
			if (err)
				snap_restore(c, p);
			p->slice->writing = false;
			fmt_slice_idle(c, p->slice);
		}
	}
	thr_put(c->mem, shot->arena, shot->arena_size);
}

/* ---- write-back --------------------------------------------------------------------- */

/* Writes the run that begins at *@p and moves *@p behind it. */
static int write_run(struct blk *file, struct snap **p)
{
	struct snap *first = *p, *last = first;
	struct thr_iov iov;
	struct blk_req r = {
		.off = first->off + first->lo, .iov = &iov, .niov = 1, .flags = BLK_CHILD};

	while (last->next && last->next->off + last->next->lo == last->off + last->hi &&
		last->next->buf == last->buf + (last->hi - last->lo))
		last = last->next;
	iov.base = first->buf;
	iov.len = (size_t)(last->buf - first->buf) + (last->hi - last->lo);
	r.len = iov.len;
	*p = last->next;
	return blk_pwritev(file, &r);
}

/* The flush that must complete before a phase may be written. */
static uint64_t phase_after(const struct fmt_order *o, const struct snap *p, unsigned phase)
{
	uint64_t after = 0;
	bool lazy = o->lazy || !FMT_BARRIER(REFCOUNT_BEFORE_L2);
	unsigned rank = lazy && phase >= FMT_RANK_L2 ? FMT_RANK_L2 : 0;

	if (!FMT_BARRIER(TABLE_BEFORE_ENTRY) &&
		(phase == FMT_RANK_REFTABLE || phase == FMT_RANK_L1))
		rank = phase;
	for (; rank < phase; rank++)
		after = THR_MAX(after, o->rank_wrote[rank]);
	for (; p; p = p->next)
		after = THR_MAX(after, p->after);
	return after;
}

static int write_phase(
	struct fmt_cache *c, struct fmt_order *o, struct snap *list, unsigned phase)
{
	struct snap *p = list;
	int err = flush_to(c, o, phase_after(o, list, phase));

	if (err)
		return err;
	thr_mutex_unlock(&c->lock);
	while (p && !err)
		err = write_run(o->file, &p);
	thr_mutex_lock(&c->lock);
	if (err)
		return err;
	o->wrote = o->started + 1;
	for (p = list; p; p = p->next)
		o->rank_wrote[p->rank] = o->wrote;
	return 0;
}

/* In a build that is made to fail: what is to be flushed before any phase is flushed
 * before all, so that no flush for another reason comes between two of them. */
static int flush_early(struct fmt_cache *c, struct fmt_order *o, const struct snapshot *shot)
{
	uint64_t after = 0;

	for (unsigned i = 0; i < FMT_RANKS; i++)
		for (const struct snap *p = shot->phase[i]; p; p = p->next)
			after = THR_MAX(after, p->after);
	return flush_to(c, o, after);
}

static int write_back(struct fmt_cache *c, struct fmt_order *o)
{
	struct snapshot shot;
	unsigned i;
	int err;

	if (!o->ndirty)
		return 0;
	err = snapshot_take(c, o, &shot);
	if (err)
		return err;
	if (!FMT_BARRIER(REFCOUNT_BEFORE_L2) || !FMT_BARRIER(TABLE_BEFORE_ENTRY))
		err = flush_early(c, o, &shot);
	for (i = 0; i < FMT_RANKS && !err; i++) {
		if (shot.phase[i])
			err = write_phase(c, o, shot.phase[i], i);
	}
	snapshot_end(c, &shot, err);
	return err ? fail(o, err) : 0;
}

/* Joins a write-back that has not begun, or begins one. */
static int write_back_join(struct fmt_cache *c, struct fmt_order *o)
{
	uint64_t mine = o->wb_started + 1;

	while (o->wb_done < mine) {
		uint64_t n;
		int err;

		if (o->err)
			return o->err;
		if (o->wb_running) {
			thr_cond_wait(&c->changed, &c->lock);
			continue;
		}
		o->wb_running = true;
		n = ++o->wb_started;
		err = write_back(c, o);
		o->wb_running = false;
		if (!err)
			o->wb_done = n;
		thr_cond_broadcast(&c->changed);
		if (err)
			return err;
	}
	return 0;
}

int fmt_cache_writeback(struct fmt_cache *c, struct blk *file)
{
	return write_back_join(c, order_of(c, file));
}

int fmt_cache_flush(struct fmt_cache *c, struct blk *file)
{
	struct fmt_order *o = order_of(c, file);
	int err = write_back_join(c, o);

	return err ? err : flush_to(c, o, o->wrote);
}
