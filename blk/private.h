/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/private.h - what the files of this room share.
 *
 * Inside the core, "admitted" functions run between blk_enter() and
 * blk_leave(); "device" functions (blk_dev_*) hand a request that is aligned
 * and within bounds to the driver, split at max_io.
 */
#ifndef BLK_PRIVATE_H
#define BLK_PRIVATE_H

#include "blk/blk.h"

/* ---- what several executors share --------------------------------------- */

/* With one thread of control these are plain accesses: a Cortex-M has no 64-bit
 * atomics, and the compiler would call a library for them. */
#ifdef CONFIG_THR_NONE
#define blk_load(p)       (*(p))
#define blk_store(p, v)   (*(p) = (v))
#define blk_or(p, v)      (*(p) |= (v))
#define blk_and(p, v)     (*(p) &= (v))
#define blk_raise(p, v)   (*(p) = THR_MAX(*(p), (v)))
#define blk_set_if0(p, v) (*(p) = *(p) ? *(p) : (v))

static inline uint32_t blk_add(uint32_t *p, uint32_t v)
{
	uint32_t old = *p;

	*p += v;
	return old;
}
#else
#define blk_load(p)     __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define blk_store(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define blk_or(p, v)    __atomic_fetch_or(p, v, __ATOMIC_ACQ_REL)
#define blk_and(p, v)   __atomic_fetch_and(p, v, __ATOMIC_ACQ_REL)
#define blk_add(p, v)   __atomic_fetch_add(p, v, __ATOMIC_ACQ_REL)

/* To the maximum of both. */
static inline void blk_raise(uint64_t *p, uint64_t v)
{
	uint64_t was = __atomic_load_n(p, __ATOMIC_RELAXED);

	while (was < v)
		if (__atomic_compare_exchange_n(
			    p, &was, v, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return;
}

/* The first error stays. */
static inline void blk_set_if0(int *p, int v)
{
	int zero = 0;

	__atomic_compare_exchange_n(p, &zero, v, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}
#endif

/* ---- admission (gate.c) -------------------------------------------------- */

#define BLK_DRAINING (1u << 31)

static inline struct blk_slot *blk_slot(struct blk *b)
{
#ifdef CONFIG_THR_NONE
	return &b->inflight[0];
#else
	uintptr_t e = (uintptr_t)thr_exec_self();

	/* Executors are heap blocks of one size; Fibonacci hashing spreads them. */
	return &b->inflight[(uint32_t)((e >> 4) * 0x9e3779b1u) / (UINT32_MAX / BLK_SLOTS + 1)];
#endif
}

void blk_enter_slow(struct blk *b, struct blk_slot *s);
void blk_leave_slow(struct blk *b);

/* Counts a request in, waiting while a drain is on. The slot goes to
 * blk_leave(). */
static inline struct blk_slot *blk_enter(struct blk *b, unsigned req_flags)
{
	struct blk_slot *s = blk_slot(b);

	if (THR_UNLIKELY(blk_add(&s->n, 1) & BLK_DRAINING) && !(req_flags & BLK_CHILD))
		blk_enter_slow(b, s);
	return s;
}

static inline void blk_leave(struct blk *b, struct blk_slot *s)
{
	if (THR_UNLIKELY(blk_add(&s->n, (uint32_t)-1) & BLK_DRAINING))
		blk_leave_slow(b);
}

/* ---- the core's own -------------------------------------------------------- */

#define BLK_MAX_SIZE ((uint64_t)INT64_MAX)

/* Bytes that a bounce buffer takes at most (or one block, if that is more). */
#define BLK_BOUNCE_MAX (256u << 10)

int blk_dev_read(struct blk *b, const struct blk_req *r);
int blk_dev_write(struct blk *b, const struct blk_req *r);
int blk_dev_zero(struct blk *b, const struct blk_req *r);

/* Whether requests need no attention from widen.c at all. */
static inline bool blk_any_align(const struct blk *b)
{
	return THR_LIKELY((b->align | b->mem_align) == 1);
}

/* widen.c: requests of any alignment, in terms of blk_dev_*(). */
bool blk_mem_aligned(const struct blk *b, const struct blk_req *r);
int blk_widen_read(struct blk *b, const struct blk_req *r);
int blk_widen_write(struct blk *b, const struct blk_req *r);
int blk_widen_zero(struct blk *b, const struct blk_req *r);

/* A request for the first @len bytes of @r from @skip on. */
static inline struct blk_req blk_req_part(const struct blk_req *r, uint64_t skip, uint64_t len)
{
	struct blk_req p = *r;

	p.off += skip;
	p.iov_off += (size_t)skip;
	p.len = len;
	return p;
}

/* A position in the data of a request, for walks from front to back. */
struct blk_cursor {
	const struct thr_iov *v;
	const struct thr_iov *end;
	size_t at; /* bytes of *v that lie behind us */
};
void blk_cursor_init(struct blk_cursor *c, const struct blk_req *r, uint64_t skip);
/* The next contiguous piece, of at most *len bytes; shortens *len to it. */
void *blk_cursor_next(struct blk_cursor *c, size_t *len);

/* ---- words ------------------------------------------------------------------ */

/* Firmware has mem*() and no str*(). */
static inline size_t blk_str_len(const char *s)
{
	size_t n = 0;

	while (s[n])
		n++;
	return n;
}

static inline bool blk_str_starts(const char *s, const char *with)
{
	while (*with && *s == *with) {
		s++;
		with++;
	}
	return !*with;
}

static inline bool blk_str_eq(const char *a, const char *b)
{
	return blk_str_starts(a, b) && !a[blk_str_len(b)];
}

/* ---- for several drivers ------------------------------------------------------ */

/* A filter over @child, which it owns. */
void blk_filter_init(struct blk *b, const struct blk_ops *ops, struct blk *child,
	const struct thr_alloc *mem);
int blk_filter_status(struct blk *b, uint64_t off, uint64_t len, struct blk_extent *e);

/* Waits @ns nanoseconds; only where blk_can_pause. */
extern const bool blk_can_pause;
void blk_pause(uint64_t ns);

/* ---- options and drivers --------------------------------------------------- */

/* The options whose keys start with @prefix, without it; in @v, which has room
 * for @max. -EINVAL when there are more. */
int blk_opts_sub(const struct blk_opts *o, const char *prefix, struct blk_opt *v, unsigned max,
	struct blk_opts *out);
const char *blk_prealloc_name(enum blk_prealloc p);

extern const struct blk_driver blk_file_driver;
extern const struct blk_driver blk_mem_driver;
extern const struct blk_driver blk_null_driver;
extern const struct blk_driver blk_nbd_driver;
extern const struct blk_driver blk_fault_driver;

#endif
