/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/cache.c - the metadata cache: finding, reading and evicting slices.
 *
 * A slice is in the hash table as long as it lives. It is in the eviction list
 * when it is clean and unpinned, and only then; so taking a slice never waits:
 * the tail of the list is free, and where there is none the cache grows past its
 * size until the extra slices are put back.
 */
#include "fmt/cache_priv.h"

/* Slices that are allocated at once, so that a small cache (firmware) allocates
 * nothing later. */
#define EAGER 8u

void fmt_list_add(struct fmt_slice_list *l, struct fmt_slice *s)
{
	s->prev = NULL;
	s->next = l->head;
	if (l->head)
		l->head->prev = s;
	else
		l->tail = s;
	l->head = s;
}

void fmt_list_del(struct fmt_slice_list *l, struct fmt_slice *s)
{
	if (s->prev)
		s->prev->next = s->next;
	else
		l->head = s->next;
	if (s->next)
		s->next->prev = s->prev;
	else
		l->tail = s->prev;
}

static struct fmt_slice **bucket(struct fmt_cache *c, const struct blk *file, uint64_t off)
{
	uint32_t h = (uint32_t)(off >> c->slice_shift) * 2654435761u;

	h ^= (uint32_t)((uintptr_t)file >> 4) ^ (uint32_t)(off >> 40);
	return &c->hash[(h ^ h >> 15) & c->hash_mask];
}

static void unhash(struct fmt_cache *c, struct fmt_slice *s)
{
	struct fmt_slice **p;

	if (!s->file)
		return;
	p = bucket(c, s->file, s->off);
	while (*p != s)
		p = &(*p)->hash_next;
	*p = s->hash_next;
	s->file = NULL;
}

static bool evictable(const struct fmt_slice *s)
{
	return !s->pins && !s->dirty && !s->writing;
}

static struct fmt_slice *slice_alloc(struct fmt_cache *c)
{
	struct fmt_slice *s = thr_zget(c->mem, sizeof(*s));

	if (!s)
		return NULL;
	s->data = thr_get(c->mem, c->slice_size, 512);
	if (!s->data) {
		thr_put(c->mem, s, sizeof(*s));
		return NULL;
	}
	c->count++;
	return s;
}

static void slice_release(struct fmt_cache *c, struct fmt_slice *s)
{
	c->count--;
	thr_put(c->mem, s->data, c->slice_size);
	thr_put(c->mem, s, sizeof(*s));
}

void fmt_slice_free(struct fmt_cache *c, struct fmt_slice *s)
{
	unhash(c, s);
	slice_release(c, s);
}

void fmt_slice_idle(struct fmt_cache *c, struct fmt_slice *s)
{
	if (!evictable(s))
		return;
	if (c->count > c->max) {
		fmt_slice_free(c, s);
		return;
	}
	fmt_slice_used(c, s);
	fmt_list_add(&c->lru, s);
}

static void pin(struct fmt_cache *c, struct fmt_slice *s)
{
	if (evictable(s))
		fmt_list_del(&c->lru, s);
	s->pins++;
}

static struct fmt_slice *lookup(struct fmt_cache *c, const struct blk *file, uint64_t off)
{
	struct fmt_slice *s = *bucket(c, file, off);

	while (s && (s->off != off || s->file != file))
		s = s->hash_next;
	return s;
}

struct fmt_slice *fmt_slice_take(struct fmt_cache *c, struct blk *file, uint64_t off)
{
	struct fmt_slice *s = NULL, **p;

	if (c->count < c->max || !c->lru.tail)
		s = slice_alloc(c);
	if (!s) {
		s = c->lru.tail;
		if (!s)
			return NULL;
		fmt_list_del(&c->lru, s);
		unhash(c, s);
	}
	s->file = file;
	s->off = off;
	s->pins = 1;
	s->fresh = false;
	s->err = 0;
	p = bucket(c, file, off);
	s->hash_next = *p;
	*p = s;
	return s;
}

struct fmt_slice *fmt_slice_find(struct fmt_cache *c, struct blk *file, uint64_t off)
{
	struct fmt_slice *s = lookup(c, file, off);

	if (!s)
		return NULL;
	pin(c, s);
	while (s->loading)
		thr_cond_wait(&c->changed, &c->lock);
	return s;
}

static void load(struct fmt_cache *c, struct fmt_slice *s)
{
	struct thr_iov iov = {s->data, c->slice_size};
	struct blk_req r = {
		.off = s->off,
		.len = c->slice_size,
		.iov = &iov,
		.niov = 1,
		.flags = BLK_EOF_ZERO | BLK_CHILD,
	};
	int err;

	s->loading = true;
	thr_mutex_unlock(&c->lock);
	err = blk_preadv(s->file, &r);
	thr_mutex_lock(&c->lock);
	s->err = err;
	s->loading = false;
	thr_cond_broadcast(&c->changed);
}

int fmt_slice_get(struct fmt_cache *c, struct blk *file, uint64_t off, struct fmt_slice **out)
{
	struct fmt_slice *s;
	int err;

	off = thr_align_down(off, c->slice_size);
	s = fmt_slice_find(c, file, off);
	if (!s) {
		s = fmt_slice_take(c, file, off);
		if (!s)
			return -THR_ENOMEM;
		load(c, s);
	}
	err = s->err;
	if (err)
		fmt_slice_put(c, s);
	else
		*out = s;
	return err;
}

int fmt_slice_peek(struct fmt_cache *c, struct blk *file, uint64_t off, struct fmt_slice **out)
{
	struct fmt_slice *s = lookup(c, file, thr_align_down(off, c->slice_size));

	if (!s || s->loading || s->err)
		return -THR_EAGAIN;
	pin(c, s);
	*out = s;
	return 0;
}

void fmt_slice_put(struct fmt_cache *c, struct fmt_slice *s)
{
	THR_ASSERT(s->pins);
	s->pins--;
	if (s->pins)
		return;
	if (s->err)
		fmt_slice_free(c, s);
	else
		fmt_slice_idle(c, s);
}

/* Leaves a slice whose snapshot is being written where it is: it ends in the
 * eviction list, and nobody asks for it. */
static void forget(struct fmt_cache *c, struct fmt_slice *s)
{
	THR_ASSERT(!s->pins);
	if (s->dirty) {
		fmt_list_del(&s->order->dirty, s);
		s->order->ndirty--;
		s->dirty = false;
	} else if (!s->writing) {
		fmt_list_del(&c->lru, s);
	}
	if (!s->writing)
		fmt_slice_free(c, s);
}

void fmt_cache_forget(struct fmt_cache *c, struct blk *file, uint64_t off, uint64_t len)
{
	uint32_t i;

	for (i = 0; i <= c->hash_mask; i++) {
		struct fmt_slice *s = c->hash[i];

		while (s) {
			struct fmt_slice *next = s->hash_next;

			if (s->file == file && s->off >= off && s->off - off < len)
				forget(c, s);
			s = next;
		}
	}
}

void fmt_cache_lock(struct fmt_cache *c)
{
	thr_mutex_lock(&c->lock);
}

void fmt_cache_unlock(struct fmt_cache *c)
{
	thr_mutex_unlock(&c->lock);
}

uint32_t fmt_cache_slice_size(const struct fmt_cache *c)
{
	return c->slice_size;
}

static int alloc_eagerly(struct fmt_cache *c)
{
	while (c->count < THR_MIN(c->max, EAGER)) {
		struct fmt_slice *s = slice_alloc(c);

		if (!s)
			return -THR_ENOMEM;
		fmt_list_add(&c->lru, s);
	}
	return 0;
}

int fmt_cache_open(
	struct fmt_cache **out, uint32_t slice_size, uint32_t max, const struct thr_alloc *mem)
{
	struct fmt_cache *c = thr_zget(mem, sizeof(*c));

	if (!c)
		return -THR_ENOMEM;
	THR_ASSERT(thr_is_pow2(slice_size) && slice_size >= 512 && max);
	c->mem = mem;
	c->slice_size = slice_size;
	c->slice_shift = thr_log2(slice_size);
	c->max = max;
	c->hash_mask = (2u << thr_log2(max)) - 1;
	thr_mutex_init(&c->lock);
	thr_cond_init(&c->changed);
	c->hash = thr_zget(mem, (c->hash_mask + 1) * sizeof(*c->hash));
	if (!c->hash || alloc_eagerly(c)) {
		fmt_cache_close(c);
		return -THR_ENOMEM;
	}
	*out = c;
	return 0;
}

void fmt_cache_close(struct fmt_cache *c)
{
	if (!c)
		return;
	while (c->lru.head) {
		struct fmt_slice *s = c->lru.head;

		fmt_list_del(&c->lru, s);
		slice_release(c, s);
	}
	THR_ASSERT(!c->count && !c->orders);
	thr_put(c->mem, c->hash, (c->hash_mask + 1) * sizeof(*c->hash));
	thr_put(c->mem, c, sizeof(*c));
}
