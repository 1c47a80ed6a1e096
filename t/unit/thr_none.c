/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/thr_none.c - thr for one thread of control, whatever this configuration
 * has: every call is direct, and a wait that nobody could end is an assertion.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "thr/base.h"
#ifndef CONFIG_THR_NONE
#define CONFIG_THR_NONE 1
#endif
#include "thr/thr.h"

static jmp_buf out;
static volatile unsigned panics;

/* In place of the library's. */
void thr_panic(const char *what)
{
	(void)what;
	panics++;
	longjmp(out, 1);
}

#define assert_panics(statement)                                                               \
	do {                                                                                   \
		unsigned before = panics;                                                      \
                                                                                               \
		if (!setjmp(out)) {                                                            \
			statement;                                                             \
		}                                                                              \
		assert_int_equal(panics, before + 1);                                          \
	} while (0)

static struct thr_mutex m;
static struct thr_rwlock l;
static struct thr_sem s;
static struct thr_budget b;
static struct thr_seq q;
static struct thr_cond c;

static void mutex(void **state)
{
	(void)state;
	thr_mutex_init(&m);
	thr_mutex_lock(&m);
	assert_false(thr_mutex_trylock(&m));
	assert_panics(thr_mutex_lock(&m));
	thr_mutex_unlock(&m);
	assert_panics(thr_mutex_unlock(&m));
	assert_true(thr_mutex_trylock(&m));
	thr_mutex_unlock(&m);
}

static void cond(void **state)
{
	(void)state;
	thr_mutex_init(&m);
	thr_cond_init(&c);
	thr_cond_signal(&c);
	thr_cond_broadcast(&c);
	thr_mutex_lock(&m);
	assert_panics(thr_cond_wait(&c, &m));
}

static void rwlock(void **state)
{
	(void)state;
	thr_rwlock_init(&l);
	thr_rwlock_rdlock(&l);
	thr_rwlock_rdlock(&l);
	assert_panics(thr_rwlock_wrlock(&l));
	thr_rwlock_rdunlock(&l);
	thr_rwlock_rdunlock(&l);
	assert_panics(thr_rwlock_rdunlock(&l));
	thr_rwlock_wrlock(&l);
	assert_panics(thr_rwlock_rdlock(&l));
	assert_panics(thr_rwlock_wrlock(&l));
	thr_rwlock_wrunlock(&l);
	assert_panics(thr_rwlock_wrunlock(&l));
}

static void sem_and_budget(void **state)
{
	(void)state;
	thr_sem_init(&s, 2);
	thr_sem_down(&s, 2);
	assert_panics(thr_sem_down(&s, 1));
	thr_sem_up(&s, 3);
	thr_sem_down(&s, 3);

	thr_budget_init(&b, 100);
	thr_budget_take(&b, 60);
	assert_panics(thr_budget_take(&b, 41));
	thr_budget_take(&b, 40);
	thr_budget_give(&b, 60);
	thr_budget_give(&b, 40);
	thr_budget_take(&b, 1000);
	assert_panics(thr_budget_take(&b, 1));
	thr_budget_give(&b, 1000);
	thr_budget_take(&b, 100);
}

static void seq(void **state)
{
	(void)state;
	thr_seq_init(&q);
	assert_int_equal(thr_seq_take(&q), 0);
	assert_int_equal(thr_seq_take(&q), 1);
	assert_panics(thr_seq_enter(&q, 1));
	assert_panics(thr_seq_pass(&q, 1));
	assert_int_equal(thr_seq_enter(&q, 0), 0);
	thr_seq_pass(&q, 0);
	thr_seq_cancel(&q);
	assert_int_equal(thr_seq_enter(&q, 1), -THR_ECANCELED);
	thr_seq_pass(&q, 1);
}

static int called;

static int count(void *arg)
{
	called++;
	return *(int *)arg;
}

static void group(void **state)
{
	struct thr_group g;
	int fine = 0, first = -THR_EIO, second = -THR_ENOSPC;

	(void)state;
	called = 0;
	thr_group_init(&g);
	assert_int_equal(thr_group_spawn(&g, NULL, count, &fine), 0);
	assert_int_equal(called, 1);
	assert_false(thr_group_cancelled(&g));
	assert_int_equal(thr_group_wait(&g), 0);
	assert_int_equal(thr_group_spawn(&g, NULL, count, &first), 0);
	assert_int_equal(thr_group_spawn(&g, NULL, count, &second), 0);
	assert_true(thr_group_cancelled(&g));
	assert_int_equal(thr_group_wait(&g), -THR_EIO);
	assert_int_equal(called, 3);

	thr_group_init(&g);
	thr_group_cancel(&g, -THR_ECANCELED);
	assert_true(thr_group_cancelled(&g));
	assert_int_equal(thr_group_wait(&g), -THR_ECANCELED);
}

static void the_rest(void **state)
{
	int ret = -THR_EPIPE;

	(void)state;
	called = 0;
	assert_int_equal(thr_offload(count, &ret), -THR_EPIPE);
	assert_int_equal(called, 1);
	assert_null(thr_exec_self());
	assert_null(thr_pool_self());
	assert_int_equal(thr_pool_count(NULL), 1);
	assert_null(thr_pool_exec(NULL, 0));
	assert_false(thr_in_fiber());
	thr_yield();
	thr_fiber_ticket(1);
	thr_fiber_ticket(THR_NO_TICKET);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mutex),
		cmocka_unit_test(cond),
		cmocka_unit_test(rwlock),
		cmocka_unit_test(sem_and_budget),
		cmocka_unit_test(seq),
		cmocka_unit_test(group),
		cmocka_unit_test(the_rest),
	};

	return cmocka_run_group_tests_name("thr_none", tests, NULL, NULL);
}
