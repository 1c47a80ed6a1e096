/* SPDX-License-Identifier: BSD-2-Clause
 *
 * thr/annotate.h - tells valgrind, ASan and TSan about fiber stacks. Private.
 *
 * Each hook is empty where its tool is not compiled in. valgrind's requests are
 * made once for each stack, not for each fiber; TSan gets one of its fibers for
 * each stack, because creating one costs milliseconds.
 */
#ifndef THR_ANNOTATE_H
#define THR_ANNOTATE_H

#include "thr/base.h"

#if defined(__SANITIZE_ADDRESS__)
#define THR_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define THR_ASAN 1
#endif
#endif
#ifndef THR_ASAN
#define THR_ASAN 0
#endif

#if defined(__SANITIZE_THREAD__)
#define THR_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THR_TSAN 1
#endif
#endif
#ifndef THR_TSAN
#define THR_TSAN 0
#endif

#if defined(CONFIG_THR_VALGRIND) && defined(__has_include)
#if __has_include(<valgrind/valgrind.h>)
#define THR_VALGRIND 1
#endif
#endif
#ifndef THR_VALGRIND
#define THR_VALGRIND 0
#endif

/* Instrumented frames are several times as large. */
#if THR_ASAN || THR_TSAN
#define THR_STACK_SCALE 4
#else
#define THR_STACK_SCALE 1
#endif

/* What the tools know a stack by. @bottom and @size are its bounds. */
struct thr_annot {
#if THR_ASAN
	void *fake;
	const void *bottom;
	size_t size;
#endif
#if THR_TSAN
	void *tsan;
#endif
#if THR_VALGRIND
	unsigned valgrind;
#endif
	char unused;
};

#if THR_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>

static inline void thr_asan_init(struct thr_annot *a, const void *bottom, size_t size)
{
	a->fake = NULL;
	a->bottom = bottom;
	a->size = size;
}

/* The memory may hold what frames left behind. */
static inline void thr_asan_fini(struct thr_annot *a)
{
	__asan_unpoison_memory_region(a->bottom, a->size);
}

static inline void thr_asan_leave(struct thr_annot *from, struct thr_annot *to)
{
	__sanitizer_start_switch_fiber(&from->fake, to->bottom, to->size);
}

/* @sched's bounds are learnt from the switches that come from it, since any
 * thread may drive an executor. */
static inline void thr_asan_enter(struct thr_annot *me, struct thr_annot *sched)
{
	const void *bottom;
	size_t size;

	__sanitizer_finish_switch_fiber(me->fake, &bottom, &size);
	if (me != sched && !sched->bottom) {
		sched->bottom = bottom;
		sched->size = size;
	}
}
#else
static inline void thr_asan_init(struct thr_annot *a, const void *bottom, size_t size)
{
	(void)a;
	(void)bottom;
	(void)size;
}

static inline void thr_asan_fini(struct thr_annot *a)
{
	(void)a;
}

static inline void thr_asan_leave(struct thr_annot *from, struct thr_annot *to)
{
	(void)from;
	(void)to;
}

static inline void thr_asan_enter(struct thr_annot *me, struct thr_annot *sched)
{
	(void)me;
	(void)sched;
}
#endif

#if THR_TSAN
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);

static inline void thr_tsan_init(struct thr_annot *a)
{
	a->tsan = __tsan_create_fiber(0);
}

static inline void thr_tsan_self(struct thr_annot *a)
{
	a->tsan = __tsan_get_current_fiber();
}

static inline void thr_tsan_fini(struct thr_annot *a)
{
	__tsan_destroy_fiber(a->tsan);
}

static inline void thr_tsan_switch(struct thr_annot *to)
{
	__tsan_switch_to_fiber(to->tsan, 0);
}
#else
static inline void thr_tsan_init(struct thr_annot *a)
{
	(void)a;
}

static inline void thr_tsan_self(struct thr_annot *a)
{
	(void)a;
}

static inline void thr_tsan_fini(struct thr_annot *a)
{
	(void)a;
}

static inline void thr_tsan_switch(struct thr_annot *to)
{
	(void)to;
}
#endif

#if THR_VALGRIND
#include <valgrind/valgrind.h>

static inline void thr_valgrind_init(struct thr_annot *a, char *bottom, size_t size)
{
	a->valgrind = (unsigned)VALGRIND_STACK_REGISTER(bottom, bottom + size);
}

static inline void thr_valgrind_fini(struct thr_annot *a)
{
	VALGRIND_STACK_DEREGISTER(a->valgrind);
}
#else
static inline void thr_valgrind_init(struct thr_annot *a, char *bottom, size_t size)
{
	(void)a;
	(void)bottom;
	(void)size;
}

static inline void thr_valgrind_fini(struct thr_annot *a)
{
	(void)a;
}
#endif

#endif
