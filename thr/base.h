/* SPDX-License-Identifier: BSD-2-Clause
 *
 * thr/base.h - what every room uses: error numbers, the allocator handle,
 * endian loads and stores by byte, checked arithmetic, the I/O vector.
 *
 * Needs nothing but the compiler's own headers and mem*(), so the firmware
 * profile includes it unchanged. Nothing here waits.
 */
#ifndef THR_BASE_H
#define THR_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "thr/config.h" /* generated: the CONFIG_ symbols of this build */

#ifdef __cplusplus
extern "C" {
#endif

/* Functions return 0 (or a count) or one of these, negated. The values are
 * Linux's generic ones, so that errno passes through unchanged on Linux; other
 * C libraries number them differently, which is why they are ours. */
enum thr_errno {
	THR_EPERM = 1,
	THR_ENOENT = 2,
	THR_EINTR = 4,
	THR_EIO = 5,
	THR_ENXIO = 6,
	THR_EBADF = 9,
	THR_EAGAIN = 11,
	THR_ENOMEM = 12,
	THR_EACCES = 13,
	THR_EBUSY = 16,
	THR_EEXIST = 17,
	THR_ENODEV = 19,
	THR_ENOTDIR = 20,
	THR_EISDIR = 21,
	THR_EINVAL = 22,
	THR_EFBIG = 27,
	THR_ENOSPC = 28,
	THR_EROFS = 30,
	THR_EPIPE = 32,
	THR_ERANGE = 34,
	THR_ENAMETOOLONG = 36,
	THR_ELOOP = 40,
	THR_EPROTO = 71,
	THR_EOVERFLOW = 75,
	THR_ELIBACC = 79,
	THR_ENOTSUP = 95,
	THR_ECONNRESET = 104,
	THR_ENOTCONN = 107,
	THR_ESHUTDOWN = 108,
	THR_ETIMEDOUT = 110,
	THR_ECONNREFUSED = 111,
	THR_EUCLEAN = 117, /* an on-disk structure is damaged */
	THR_ECANCELED = 125,
};

/* Where memory comes from. The embedder hands one in at open and it must
 * outlive what was opened with it; a fixed arena will do. get() returns NULL
 * when there is none; the memory is not cleared and aligned to @align, a power
 * of two (at least 16 is given whatever is asked for). put() gets the size that get() was asked
 * for. Both may be called from any thread. */
struct thr_alloc {
	void *(*get)(void *ctx, size_t size, size_t align);
	void (*put)(void *ctx, void *p, size_t size);
	void *ctx;
};

/* The C library's heap. Not in firmware builds. */
extern const struct thr_alloc thr_heap;

static inline void *thr_get(const struct thr_alloc *a, size_t size, size_t align)
{
	return a->get(a->ctx, size, align);
}

/* thr_get() of cleared memory, aligned for any object. */
static inline void *thr_zget(const struct thr_alloc *a, size_t size)
{
	void *p = a->get(a->ctx, size, 16);

	if (p)
		memset(p, 0, size);
	return p;
}

/* @p may be NULL. */
static inline void thr_put(const struct thr_alloc *a, void *p, size_t size)
{
	if (p)
		a->put(a->ctx, p, size);
}

/* Laid out like struct iovec, which the file engines rely on. */
struct thr_iov {
	void *base;
	size_t len;
};

#define THR_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define THR_CONTAINER(ptr, type, member)                                                       \
	((type *)(void *)((char *)(ptr)-offsetof(type, member)))
#define THR_MIN(a, b)   ((a) < (b) ? (a) : (b))
#define THR_MAX(a, b)   ((a) > (b) ? (a) : (b))
#define THR_LIKELY(x)   __builtin_expect(!!(x), 1)
#define THR_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* True and *r unset where the result does not fit: always test it. */
static inline bool thr_add_over(uint64_t a, uint64_t b, uint64_t *r)
{
	return __builtin_add_overflow(a, b, r);
}

static inline bool thr_mul_over(uint64_t a, uint64_t b, uint64_t *r)
{
	return __builtin_mul_overflow(a, b, r);
}

/* [off, off + len) lies within [0, size), with no overflow. */
static inline bool thr_within(uint64_t off, uint64_t len, uint64_t size)
{
	return off <= size && len <= size - off;
}

static inline bool thr_is_pow2(uint64_t v)
{
	return v && !(v & (v - 1));
}

/* @to is a power of two. thr_align_up() wraps at the top of uint64_t: check
 * the value first where it comes from disk. */
static inline uint64_t thr_align_down(uint64_t v, uint64_t to)
{
	return v & ~(to - 1);
}

static inline uint64_t thr_align_up(uint64_t v, uint64_t to)
{
	return (v + (to - 1)) & ~(to - 1);
}

static inline bool thr_is_aligned(uint64_t v, uint64_t to)
{
	return !(v & (to - 1));
}

/* floor(log2(v)); @v is not 0. */
static inline unsigned thr_log2(uint64_t v)
{
	return 63u - (unsigned)__builtin_clzll(v);
}

/* Loads and stores by byte: any alignment, any host byte order. */
static inline uint16_t thr_be16(const void *p)
{
	const uint8_t *b = (const uint8_t *)p;

	return (uint16_t)(b[0] << 8 | b[1]);
}

static inline uint32_t thr_be32(const void *p)
{
	const uint8_t *b = (const uint8_t *)p;

	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static inline uint64_t thr_be64(const void *p)
{
	const uint8_t *b = (const uint8_t *)p;

	return (uint64_t)thr_be32(b) << 32 | thr_be32(b + 4);
}

static inline uint16_t thr_le16(const void *p)
{
	const uint8_t *b = (const uint8_t *)p;

	return (uint16_t)(b[1] << 8 | b[0]);
}

static inline uint32_t thr_le32(const void *p)
{
	const uint8_t *b = (const uint8_t *)p;

	return (uint32_t)b[3] << 24 | (uint32_t)b[2] << 16 | (uint32_t)b[1] << 8 | b[0];
}

static inline uint64_t thr_le64(const void *p)
{
	const uint8_t *b = (const uint8_t *)p;

	return (uint64_t)thr_le32(b + 4) << 32 | thr_le32(b);
}

static inline void thr_put_be16(void *p, uint16_t v)
{
	uint8_t *b = (uint8_t *)p;

	b[0] = (uint8_t)(v >> 8);
	b[1] = (uint8_t)v;
}

static inline void thr_put_be32(void *p, uint32_t v)
{
	uint8_t *b = (uint8_t *)p;

	thr_put_be16(b, (uint16_t)(v >> 16));
	thr_put_be16(b + 2, (uint16_t)v);
}

static inline void thr_put_be64(void *p, uint64_t v)
{
	uint8_t *b = (uint8_t *)p;

	thr_put_be32(b, (uint32_t)(v >> 32));
	thr_put_be32(b + 4, (uint32_t)v);
}

static inline void thr_put_le16(void *p, uint16_t v)
{
	uint8_t *b = (uint8_t *)p;

	b[0] = (uint8_t)v;
	b[1] = (uint8_t)(v >> 8);
}

static inline void thr_put_le32(void *p, uint32_t v)
{
	uint8_t *b = (uint8_t *)p;

	thr_put_le16(b, (uint16_t)v);
	thr_put_le16(b + 2, (uint16_t)(v >> 16));
}

static inline void thr_put_le64(void *p, uint64_t v)
{
	uint8_t *b = (uint8_t *)p;

	thr_put_le32(b, (uint32_t)v);
	thr_put_le32(b + 4, (uint32_t)(v >> 32));
}

/* Our own invariants only, never what a disk or a peer says. Firmware supplies
 * thr_panic(); the host's prints @what and aborts. */
#ifdef __cplusplus
[[noreturn]]
#else
_Noreturn
#endif
void thr_panic(const char *what);

#define THR_STR2(x) #x
#define THR_STR(x)  THR_STR2(x)
#ifdef CONFIG_THR_ASSERT_TEXT
#define THR_WHAT(x) __FILE__ ":" THR_STR(__LINE__) ": " #x
#else
#define THR_WHAT(x) "assertion"
#endif

#define THR_ASSERT(cond)                                                                       \
	do {                                                                                   \
		if (THR_UNLIKELY(!(cond)))                                                     \
			thr_panic(THR_WHAT(cond));                                             \
	} while (0)

#ifdef __cplusplus
}
#endif
#endif
