/* SPDX-License-Identifier: BSD-2-Clause
 *
 * thr/switch_ucontext.c - contexts for every other processor, through the C
 * library. A resting context's sp points at the ucontext_t in its stack's
 * topmost frame.
 */
#include <ucontext.h>

#include "thr/base.h"
#include "thr/switch.h"

/* What a new context starts with, on top of its stack. */
struct start {
	ucontext_t u;
	void (*fn)(void *arg);
	void *arg;
};

/* makecontext() passes ints only: a pointer goes in halves. */
static void begin(unsigned high, unsigned low)
{
	struct start *s = (struct start *)(uintptr_t)((uint64_t)high << 32 | low);

	s->fn(s->arg);
	thr_panic("a fiber's main has returned");
}

void thr_ctx_make(struct thr_ctx *c, void *top, void (*fn)(void *arg), void *arg)
{
	size_t size = (sizeof(struct start) + 63) & ~(size_t)63;
	struct start *s = (struct start *)(void *)((char *)top - size);
	uint64_t at = (uintptr_t)s;
	/* Only its end matters; the guard page is the bottom. */
	size_t room = 8192;

	getcontext(&s->u);
	s->fn = fn;
	s->arg = arg;
	s->u.uc_link = NULL;
	s->u.uc_stack.ss_sp = (char *)s - room;
	s->u.uc_stack.ss_size = room;
	makecontext(
		&s->u, (void (*)(void))(void *)begin, 2, (unsigned)(at >> 32), (unsigned)at);
	c->sp = &s->u;
}

void thr_ctx_swap(struct thr_ctx *from, struct thr_ctx *to)
{
	ucontext_t here;

	from->sp = &here;
	if (swapcontext(&here, to->sp))
		thr_panic("swapcontext failed");
}
