/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/crash/store.c - disks in pages, and the device that shows one.
 */
#include <stdlib.h>

#include "t/crash/store.h"

static uint8_t store_zeroes[STORE_PAGE];

/* Pages that are free: states come and go by the thousand. */
static uint8_t **pool;
static size_t npool, pool_room;

static uint8_t *page_get(void)
{
	uint8_t *p = npool ? pool[--npool] : malloc(STORE_PAGE);

	THR_ASSERT(p);
	return p;
}

static void page_put(uint8_t *p)
{
	if (!p || p == store_zeroes)
		return;
	if (npool == pool_room) {
		pool_room = pool_room * 2 + 64;
		pool = realloc(pool, pool_room * sizeof(*pool));
		THR_ASSERT(pool);
	}
	pool[npool++] = p;
}

struct store *store_new(const struct store *below)
{
	struct store *s = calloc(1, sizeof(*s));

	THR_ASSERT(s);
	s->below = below;
	store_reset(s);
	return s;
}

void store_reset(struct store *s)
{
	for (uint32_t i = 0; i < s->ntouched; i++) {
		page_put(s->page[s->touched[i]]);
		s->page[s->touched[i]] = NULL;
	}
	s->ntouched = 0;
	s->size = s->below ? s->below->size : 0;
}

void store_free(struct store *s)
{
	if (!s)
		return;
	s->below = NULL;
	store_reset(s);
	free(s);
	if (!npool)
		return;
	while (npool)
		free(pool[--npool]);
	free(pool);
	pool = NULL;
	pool_room = 0;
}

static const uint8_t *page_of(const struct store *s, uint64_t i)
{
	for (; s; s = s->below)
		if (s->page[i])
			return s->page[i];
	return store_zeroes;
}

static void page_set(struct store *s, uint32_t i, uint8_t *p)
{
	if (!s->page[i])
		s->touched[s->ntouched++] = i;
	page_put(s->page[i]);
	s->page[i] = p;
}

static uint8_t *page_for_change(struct store *s, uint32_t i)
{
	uint8_t *p = s->page[i];

	if (p && p != store_zeroes)
		return p;
	p = page_get();
	memcpy(p, page_of(s, i), STORE_PAGE);
	page_set(s, i, p);
	return p;
}

void store_read(const struct store *s, uint64_t off, void *buf, uint64_t len)
{
	uint8_t *to = buf;

	while (len) {
		uint64_t in = off % STORE_PAGE, n = THR_MIN(len, STORE_PAGE - in);

		if (off / STORE_PAGE < STORE_PAGES)
			memcpy(to, page_of(s, off / STORE_PAGE) + in, n);
		else
			memset(to, 0, n);
		off += n;
		to += n;
		len -= n;
	}
}

void store_write(struct store *s, uint64_t off, const void *buf, uint64_t len)
{
	const uint8_t *from = buf;

	THR_ASSERT(off + len <= (uint64_t)STORE_PAGES * STORE_PAGE);
	s->size = THR_MAX(s->size, off + len);
	while (len) {
		uint32_t i = (uint32_t)(off / STORE_PAGE);
		uint64_t in = off % STORE_PAGE, n = THR_MIN(len, STORE_PAGE - in);

		if (from)
			memcpy(page_for_change(s, i) + in, from, n);
		else if (n == STORE_PAGE)
			page_set(s, i, store_zeroes);
		else
			memset(page_for_change(s, i) + in, 0, n);
		off += n;
		from += from ? n : 0;
		len -= n;
	}
}

void store_truncate(struct store *s, uint64_t size)
{
	uint64_t was = s->size;

	if (size < was)
		store_write(s, size, NULL, was - size);
	THR_ASSERT(size <= (uint64_t)STORE_PAGES * STORE_PAGE);
	s->size = size;
}

/* ---- the device ------------------------------------------------------------------ */

struct lent {
	struct blk b;
	struct store *s;
	unsigned flags;
	struct fuse *fuse;
};

static struct lent *lent_of(struct blk *b)
{
	return THR_CONTAINER(b, struct lent, b);
}

static int enter(struct lent *l, bool changes)
{
	struct fuse *f = l->fuse;

	if (l->flags & STORE_YIELD && thr_in_fiber())
		thr_yield();
	if (f && changes && f->left && !--f->left)
		f->dead = true;
	return f && f->dead ? -THR_EIO : 0;
}

static int leave(struct lent *l, int err)
{
	if (l->flags & STORE_YIELD && thr_in_fiber())
		thr_yield();
	return err;
}

static int lent_preadv(struct blk *b, struct blk_req *r)
{
	struct lent *l = lent_of(b);
	int err = enter(l, false);

	for (uint64_t at = 0; !err && at < r->len;) {
		size_t n = (size_t)(r->len - at);
		void *p = blk_req_piece(r, at, &n);

		store_read(l->s, r->off + at, p, n);
		at += n;
	}
	return leave(l, err);
}

static int lent_pwritev(struct blk *b, struct blk_req *r)
{
	struct lent *l = lent_of(b);
	int err = enter(l, true);

	for (uint64_t at = 0; !err && at < r->len;) {
		size_t n = (size_t)(r->len - at);
		void *p = blk_req_piece(r, at, &n);

		store_write(l->s, r->off + at, p, n);
		at += n;
	}
	return leave(l, err);
}

static int lent_zero(struct blk *b, struct blk_req *r)
{
	struct lent *l = lent_of(b);
	int err = enter(l, true);

	if (!err)
		store_write(l->s, r->off, NULL, r->len);
	return leave(l, err);
}

static int lent_discard(struct blk *b, struct blk_req *r)
{
	struct lent *l = lent_of(b);
	int err = enter(l, true);

	if (!err && !(l->flags & STORE_STALE))
		store_write(l->s, r->off, NULL, r->len);
	return leave(l, err);
}

static int lent_flush(struct blk *b)
{
	return leave(lent_of(b), enter(lent_of(b), true));
}

static int lent_truncate(struct blk *b, uint64_t size, enum blk_prealloc p, struct blk_err *err)
{
	struct lent *l = lent_of(b);
	int code = enter(l, true);

	(void)p;
	if (code)
		return blk_fail(err, code, BLK_E_SYS, 0, size);
	store_truncate(l->s, size);
	blk_set_size(b, size);
	return leave(l, 0);
}

static int lent_status(struct blk *b, uint64_t off, uint64_t len, struct blk_extent *e)
{
	const struct store *s = lent_of(b)->s;
	bool zero = page_of(s, off / STORE_PAGE) == store_zeroes;
	uint64_t end = off - off % STORE_PAGE + STORE_PAGE;

	while (end < off + len && (page_of(s, end / STORE_PAGE) == store_zeroes) == zero)
		end += STORE_PAGE;
	e->len = THR_MIN(len, end - off);
	e->map = off;
	e->flags = BLK_EXT_ALLOC | BLK_EXT_MAPPED | (zero ? BLK_EXT_ZERO : BLK_EXT_DATA);
	return 0;
}

static void lent_close(struct blk *b)
{
	blk_fini(b);
	free(lent_of(b));
}

static const struct blk_ops lent_ops = {
	.name = "store",
	.preadv = lent_preadv,
	.pwritev = lent_pwritev,
	.zero = lent_zero,
	.discard = lent_discard,
	.flush = lent_flush,
	.status = lent_status,
	.truncate = lent_truncate,
	.close = lent_close,
};

struct blk *store_lend(struct store *s, unsigned flags, unsigned blk_flags, struct fuse *f)
{
	struct lent *l = calloc(1, sizeof(*l));

	THR_ASSERT(l);
	blk_init(&l->b, &lent_ops, "image", blk_flags, &thr_heap);
	blk_set_size(&l->b, s->size);
	/* So that no flush comes between a write and its being done. */
	l->b.fua = true;
	l->b.grows = !(flags & STORE_FIXED);
	l->s = s;
	l->flags = flags;
	l->fuse = f;
	return &l->b;
}
