/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/blk_util.h - what the tests of blk share: an allocator that counts and
 * fails, and a driver that holds the core to its contract.
 */
#ifndef BLK_UTIL_H
#define BLK_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "blk/blk.h"

/* ---- an allocator that counts and fails when told ----------------------------- */

struct purse {
	unsigned calls;
	unsigned fail_at; /* 0: never */
	int live;
	struct thr_alloc mem;
};

static inline void *purse_get(void *ctx, size_t size, size_t align)
{
	struct purse *p = ctx;
	void *q;

	if (__atomic_add_fetch(&p->calls, 1, __ATOMIC_RELAXED) == p->fail_at)
		return NULL;
	if (posix_memalign(&q, THR_MAX(align, 16u), THR_MAX(size, 1u)))
		return NULL;
	memset(q, 0xa5, size);
	__atomic_add_fetch(&p->live, 1, __ATOMIC_RELAXED);
	return q;
}

static inline void purse_put(void *ctx, void *q, size_t size)
{
	struct purse *p = ctx;

	memset(q, 0x5a, size);
	__atomic_sub_fetch(&p->live, 1, __ATOMIC_RELAXED);
	free(q);
}

static inline void purse_init(struct purse *p)
{
	*p = (struct purse){.mem = {purse_get, purse_put, p}};
}

/* ---- a strict driver ------------------------------------------------------------ */

/* Memory whose driver checks that each request keeps to the contract, gives way in
 * the middle of everything so that requests interleave, and counts. */
struct strict {
	struct blk b;
	uint8_t *buf;
	size_t cap;
	unsigned reads, writes, zeroes, discards, flushes;
	unsigned inside;     /* requests in the driver now */
	uint64_t longest;    /* request of all, from one thread */
	unsigned last_flags; /* of the last write or zero */
	uint64_t last_off, last_len;
	bool can_zero;
	int fail; /* what all requests return, if not 0 */
	/* Called in the middle of each write, if not NULL. */
	int (*in_write)(struct strict *s, struct blk_req *r);
	void *arg;
};

static inline struct strict *strict_of(struct blk *b)
{
	return THR_CONTAINER(b, struct strict, b);
}

static inline void strict_check_mem(struct blk *b, const struct blk_req *r)
{
	uint64_t at = 0;

	while (at < r->len) {
		size_t n = (size_t)(r->len - at);
		void *p = blk_req_piece(r, at, &n);

		assert_true(thr_is_aligned((uintptr_t)p, b->mem_align));
		at += n;
		if (b->mem_align > 1 && at < r->len)
			assert_true(thr_is_aligned(n, THR_MAX(b->align, b->mem_align)));
	}
}

static inline void strict_check(
	struct blk *b, const struct blk_req *r, uint64_t max, bool write)
{
	struct strict *s = strict_of(b);
	uint64_t size = thr_align_up(blk_size(b), b->align);

	assert_true(r->len > 0 && r->len <= max);
	assert_true(thr_is_aligned(r->off | r->len, b->align));
	assert_true(r->flags & BLK_CHILD);
	if (!write || !b->grows)
		assert_true(thr_within(r->off, r->len, size));
	assert_true(thr_within(r->off, r->len, s->cap));
	if (r->iov)
		strict_check_mem(b, r);
	if (r->len > __atomic_load_n(&s->longest, __ATOMIC_RELAXED))
		__atomic_store_n(&s->longest, r->len, __ATOMIC_RELAXED);
}

static inline int strict_begin(struct blk *b)
{
	struct strict *s = strict_of(b);

	__atomic_add_fetch(&s->inside, 1, __ATOMIC_SEQ_CST);
	thr_yield();
	return s->fail;
}

static inline int strict_end(struct blk *b, int err, unsigned *count)
{
	struct strict *s = strict_of(b);

	thr_yield();
	__atomic_add_fetch(count, 1, __ATOMIC_RELAXED);
	__atomic_sub_fetch(&s->inside, 1, __ATOMIC_SEQ_CST);
	return err;
}

/* The disk, byte by byte, as relaxed atomics: a widened read may meet a neighbour's
 * write that puts back the very bytes that it is after, which a disk does not mind
 * and TSan need not. They order nothing, so what the core fails to order shows. */
static inline void strict_copy(uint8_t *to, const uint8_t *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		__atomic_store_n(
			&to[i], __atomic_load_n(&from[i], __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

static inline void strict_move(struct strict *s, const struct blk_req *r, bool write)
{
	for (uint64_t at = 0; at < r->len;) {
		size_t n = (size_t)(r->len - at);
		uint8_t *p = blk_req_piece(r, at, &n);
		uint8_t *disk = s->buf + r->off + at;

		strict_copy(write ? disk : p, write ? p : disk, n);
		at += n;
	}
}

static inline int strict_preadv(struct blk *b, struct blk_req *r)
{
	struct strict *s = strict_of(b);
	int err = strict_begin(b);

	strict_check(b, r, b->max_io, false);
	assert_int_equal(r->flags, BLK_CHILD);
	if (!err)
		strict_move(s, r, false);
	return strict_end(b, err, &s->reads);
}

static inline void strict_note(struct strict *s, const struct blk_req *r)
{
	__atomic_store_n(&s->last_flags, r->flags, __ATOMIC_RELAXED);
	__atomic_store_n(&s->last_off, r->off, __ATOMIC_RELAXED);
	__atomic_store_n(&s->last_len, r->len, __ATOMIC_RELAXED);
}

static inline int strict_pwritev(struct blk *b, struct blk_req *r)
{
	struct strict *s = strict_of(b);
	int err = strict_begin(b);

	strict_check(b, r, b->max_io, true);
	strict_note(s, r);
	if (!err && s->in_write)
		err = s->in_write(s, r);
	if (!err)
		strict_move(s, r, true);
	return strict_end(b, err, &s->writes);
}

static inline int strict_zero(struct blk *b, struct blk_req *r)
{
	struct strict *s = strict_of(b);
	int err = strict_begin(b);

	strict_check(b, r, UINT64_MAX, true);
	assert_null(r->iov);
	strict_note(s, r);
	if (!err && !s->can_zero)
		err = -THR_ENOTSUP;
	for (uint64_t i = 0; !err && i < r->len; i++)
		__atomic_store_n(&s->buf[r->off + i], 0, __ATOMIC_RELAXED);
	return strict_end(b, err, &s->zeroes);
}

static inline int strict_discard(struct blk *b, struct blk_req *r)
{
	struct strict *s = strict_of(b);
	int err = strict_begin(b);

	strict_check(b, r, UINT64_MAX, false);
	strict_note(s, r);
	if (!err)
		memset(s->buf + r->off, 0xdd, (size_t)r->len);
	return strict_end(b, err, &s->discards);
}

static inline int strict_flush(struct blk *b)
{
	struct strict *s = strict_of(b);

	return strict_end(b, strict_begin(b), &s->flushes);
}

static inline void strict_close(struct blk *b)
{
	struct strict *s = strict_of(b);

	blk_fini(b);
	free(s->buf);
	s->buf = NULL;
}

static const struct blk_ops strict_ops = {
	.name = "strict",
	.preadv = strict_preadv,
	.pwritev = strict_pwritev,
	.zero = strict_zero,
	.discard = strict_discard,
	.flush = strict_flush,
	.close = strict_close,
};

/* @cap bytes of memory that the driver has; the device is @size long. */
static inline void strict_open(struct strict *s, size_t cap, uint64_t size, uint32_t align,
	const struct thr_alloc *mem)
{
	memset(s, 0, sizeof(*s));
	blk_init(&s->b, &strict_ops, "strict", BLK_RDWR, mem);
	s->b.align = align;
	s->b.zero_align = align;
	s->b.mem_align = align;
	s->buf = calloc(1, cap);
	assert_non_null(s->buf);
	s->cap = cap;
	blk_set_size(&s->b, size);
}

/* ---- data ------------------------------------------------------------------------ */

static inline uint32_t rnd(uint32_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return *seed;
}

static inline void assert_filled(const void *p, int byte, size_t n)
{
	const uint8_t *b = p;

	for (size_t i = 0; i < n; i++)
		if (b[i] != byte)
			fail_msg("byte %zu is 0x%02x, not 0x%02x", i, b[i], byte);
}

static inline int zero_at(struct blk *b, uint64_t off, uint64_t len, unsigned flags)
{
	struct blk_req r = {.off = off, .len = len, .flags = flags};

	return blk_zero(b, &r);
}

static inline int discard_at(struct blk *b, uint64_t off, uint64_t len)
{
	struct blk_req r = {.off = off, .len = len};

	return blk_discard(b, &r);
}

static inline int write_at(struct blk *b, uint64_t off, const void *buf, size_t len,
	unsigned flags, struct blk_turn *t)
{
	struct thr_iov v = {.base = (void *)(uintptr_t)buf, .len = len};
	struct blk_req r = {
		.off = off, .len = len, .iov = &v, .niov = 1, .flags = flags, .turn = t};

	return blk_pwritev(b, &r);
}

#endif
