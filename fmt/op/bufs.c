/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/op/bufs.c - buffers that the workers of an operation share.
 */
#include "fmt/op/bufs.h"

void fmt_bufs_init(struct fmt_bufs *s, unsigned n, size_t size, const struct thr_alloc *mem)
{
	THR_ASSERT(n && n <= FMT_BUFS_MAX);
	memset(s, 0, sizeof(*s));
	s->mem = mem;
	s->size = size;
	s->idle = UINT64_MAX >> (FMT_BUFS_MAX - n);
}

void fmt_bufs_fini(struct fmt_bufs *s)
{
	for (unsigned i = 0; i < FMT_BUFS_MAX; i++)
		thr_put(s->mem, s->buf[i], s->size);
}

void fmt_bufs_give(struct fmt_bufs *s, unsigned number)
{
	__atomic_fetch_or(&s->idle, 1ull << number, __ATOMIC_RELEASE);
}

void *fmt_bufs_take(struct fmt_bufs *s, unsigned *number)
{
	uint64_t idle = __atomic_load_n(&s->idle, __ATOMIC_RELAXED);
	unsigned i;

	do {
		THR_ASSERT(idle);
		i = (unsigned)__builtin_ctzll(idle);
	} while (!__atomic_compare_exchange_n(
		&s->idle, &idle, idle & (idle - 1), true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
	if (!s->buf[i])
		s->buf[i] = thr_get(s->mem, s->size, 4096);
	if (!s->buf[i]) {
		fmt_bufs_give(s, i);
		return NULL;
	}
	*number = i;
	return s->buf[i];
}
