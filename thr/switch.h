/* SPDX-License-Identifier: BSD-2-Clause
 *
 * thr/switch.h - contexts: what differs between processors. Private. One of
 * switch_x86_64.S, switch_aarch64.S and switch_ucontext.c is built.
 */
#ifndef THR_SWITCH_H
#define THR_SWITCH_H

/* A context that does not run: where its registers were left on its stack. */
struct thr_ctx {
	void *sp;
};

/* Makes @c a context that calls fn(arg) on the stack that ends below @top
 * (aligned to 16). fn does not return. */
void thr_ctx_make(struct thr_ctx *c, void *top, void (*fn)(void *arg), void *arg);

/* Leaves the running context in @from and goes on with @to. Signal masks and
 * floating-point modes are the thread's and stay as they are. */
void thr_ctx_swap(struct thr_ctx *from, struct thr_ctx *to);

#endif
