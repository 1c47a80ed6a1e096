/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/thr_lock.c - mutex, condition, rwlock, semaphore and budget, between
 * plain threads, fibers of one executor, of several, and all of them.
 */
#include <stdlib.h>

#include "thr_team.h"

#define FOR_ALL_KINDS(kind) for (enum team_kind kind = 0; kind < TEAM_KINDS; kind++)

/* ---- mutex -------------------------------------------------------------------- */

struct guarded {
	struct thr_mutex m;
	unsigned count;
	uint32_t inside; /* atomic */
	uint32_t next;   /* atomic */
};

static int mutex_body(void *arg)
{
	struct guarded *g = arg;
	uint32_t random = __atomic_fetch_add(&g->next, 1, __ATOMIC_RELAXED);

	for (int i = 0; i < 500; i++) {
		if (team_random(&random) % 4)
			thr_mutex_lock(&g->m);
		else
			while (!thr_mutex_trylock(&g->m))
				thr_yield();
		CHECK(__atomic_fetch_add(&g->inside, 1, __ATOMIC_RELAXED) == 0);
		g->count++;
		if (team_random(&random) % 8 == 0)
			thr_yield();
		CHECK(__atomic_fetch_sub(&g->inside, 1, __ATOMIC_RELAXED) == 1);
		thr_mutex_unlock(&g->m);
		if (team_random(&random) % 8 == 0)
			thr_yield();
	}
	return 0;
}

static void mutex_excludes(void **state)
{
	(void)state;
	FOR_ALL_KINDS(kind)
	{
		struct guarded g = {.count = 0};

		thr_mutex_init(&g.m);
		team_run(kind, 9, mutex_body, &g);
		assert_int_equal(g.count, 9 * 500);
		assert_true(thr_mutex_trylock(&g.m));
		assert_false(thr_mutex_trylock(&g.m));
		thr_mutex_unlock(&g.m);
	}
}

struct greedy {
	struct thr_mutex m;
	unsigned got_it;
};

/* Waits with the mutex held and takes it back at once, so that the others never
 * find it free; until it has been handed over. */
static void greedy(void *arg)
{
	struct greedy *g = arg;

	thr_mutex_lock(&g->m);
	do {
		thr_yield();
		thr_mutex_unlock(&g->m);
	} while (thr_mutex_trylock(&g->m));
}

static int wants_it(void *arg)
{
	struct greedy *g = arg;

	thr_mutex_lock(&g->m);
	g->got_it++;
	thr_mutex_unlock(&g->m);
	return 0;
}

static int starving_body(void *arg)
{
	struct greedy *g = arg;
	struct thr_group others;

	CHECK(thr_spawn(thr_exec_self(), greedy, g) == 0);
	thr_yield();
	thr_group_init(&others);
	for (int i = 0; i < 4; i++)
		CHECK(thr_group_spawn(&others, NULL, wants_it, g) == 0);
	return thr_group_wait(&others);
}

static void mutex_does_not_starve(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++) {
		struct greedy g = {.got_it = 0};

		thr_mutex_init(&g.m);
		team_fiber(1, starving_body, &g);
		assert_int_equal(g.got_it, 4);
	}
}

/* An object with a mutex in it, freed by whoever finds that it was the last. */
struct shared {
	struct thr_mutex m;
	unsigned users;
};

static struct shared *objects[200];

static int last_one_frees(void *arg)
{
	uint32_t me = __atomic_fetch_add((uint32_t *)arg, 1, __ATOMIC_RELAXED);

	for (size_t i = 0; i < THR_ARRAY_SIZE(objects); i++) {
		struct shared *o = objects[i];
		bool last;

		thr_mutex_lock(&o->m);
		last = !--o->users;
		if ((i + me) % 7 == 0)
			thr_yield();
		thr_mutex_unlock(&o->m);
		if (last) {
			memset(o, 0xff, sizeof(*o));
			free(o);
		}
	}
	return 0;
}

static void mutex_may_be_freed_by_the_last(void **state)
{
	(void)state;
	FOR_ALL_KINDS(kind)
	{
		uint32_t next = 0;

		for (size_t i = 0; i < THR_ARRAY_SIZE(objects); i++) {
			objects[i] = malloc(sizeof(*objects[i]));
			assert_non_null(objects[i]);
			thr_mutex_init(&objects[i]->m);
			objects[i]->users = 6;
		}
		team_run(kind, 6, last_one_frees, &next);
	}
}

/* ---- condition ------------------------------------------------------------------- */

/* A queue of four places, with as many who put as take. */
struct queue {
	struct thr_mutex m;
	struct thr_cond not_full, not_empty;
	unsigned used;
	uint64_t in, out;
	uint32_t next; /* atomic */
};

static void put(struct queue *q, unsigned i)
{
	thr_mutex_lock(&q->m);
	while (q->used == 4)
		thr_cond_wait(&q->not_full, &q->m);
	q->used++;
	q->in += i;
	thr_cond_signal(&q->not_empty);
	thr_mutex_unlock(&q->m);
}

static void take(struct queue *q, unsigned i)
{
	thr_mutex_lock(&q->m);
	while (!q->used)
		thr_cond_wait(&q->not_empty, &q->m);
	q->used--;
	q->out += i;
	thr_mutex_unlock(&q->m);
	thr_cond_signal(&q->not_full);
}

static int queue_body(void *arg)
{
	struct queue *q = arg;
	uint32_t me = __atomic_fetch_add(&q->next, 1, __ATOMIC_RELAXED);

	for (unsigned i = 0; i < 400; i++) {
		if (me % 2)
			put(q, i);
		else
			take(q, i);
	}
	return 0;
}

static void cond_signal(void **state)
{
	(void)state;
	FOR_ALL_KINDS(kind)
	{
		struct queue q = {.used = 0};

		thr_mutex_init(&q.m);
		thr_cond_init(&q.not_full);
		thr_cond_init(&q.not_empty);
		team_run(kind, 10, queue_body, &q);
		assert_int_equal(q.used, 0);
		assert_true(q.in == q.out && q.in == 5 * 399 * 200);
	}
}

struct barrier {
	struct thr_mutex m;
	struct thr_cond c;
	unsigned n, arrived, round;
};

static int barrier_body(void *arg)
{
	struct barrier *b = arg;

	for (unsigned round = 0; round < 100; round++) {
		thr_mutex_lock(&b->m);
		CHECK(b->round == round);
		if (++b->arrived == b->n) {
			b->arrived = 0;
			b->round++;
			thr_cond_broadcast(&b->c);
		}
		while (b->round == round)
			thr_cond_wait(&b->c, &b->m);
		thr_mutex_unlock(&b->m);
	}
	return 0;
}

static void cond_broadcast(void **state)
{
	(void)state;
	FOR_ALL_KINDS(kind)
	{
		struct barrier b = {.n = 8};

		thr_mutex_init(&b.m);
		thr_cond_init(&b.c);
		team_run(kind, b.n, barrier_body, &b);
		assert_int_equal(b.round, 100);
	}
}

/* ---- rwlock ------------------------------------------------------------------------ */

struct table {
	struct thr_rwlock l;
	unsigned a, b;    /* equal, to readers */
	uint32_t readers; /* atomic */
	uint32_t next;    /* atomic */
};

static void read_table(struct table *t, bool linger)
{
	thr_rwlock_rdlock(&t->l);
	__atomic_fetch_add(&t->readers, 1, __ATOMIC_RELAXED);
	if (linger)
		thr_yield();
	CHECK(t->a == t->b);
	__atomic_fetch_sub(&t->readers, 1, __ATOMIC_RELAXED);
	thr_rwlock_rdunlock(&t->l);
}

static void write_table(struct table *t, bool linger)
{
	thr_rwlock_wrlock(&t->l);
	CHECK(__atomic_load_n(&t->readers, __ATOMIC_RELAXED) == 0);
	t->a++;
	if (linger)
		thr_yield();
	t->b++;
	thr_rwlock_wrunlock(&t->l);
}

static int rwlock_body(void *arg)
{
	struct table *t = arg;
	uint32_t random = __atomic_fetch_add(&t->next, 1, __ATOMIC_RELAXED);

	for (int i = 0; i < 300; i++) {
		bool linger = team_random(&random) % 3 == 0;

		if (i % 3 == 0)
			write_table(t, linger);
		else
			read_table(t, linger);
	}
	return 0;
}

static void rwlock_excludes(void **state)
{
	(void)state;
	FOR_ALL_KINDS(kind)
	{
		struct table t = {.a = 0};

		thr_rwlock_init(&t.l);
		team_run(kind, 9, rwlock_body, &t);
		assert_int_equal(t.a, 9 * 100);
		assert_int_equal(t.b, 9 * 100);
	}
}

struct sharing {
	struct thr_rwlock l;
	bool got;
};

static void shares(void *arg)
{
	struct sharing *s = arg;

	thr_rwlock_rdlock(&s->l);
	s->got = true;
	thr_rwlock_rdunlock(&s->l);
}

static int sharing_body(void *arg)
{
	struct sharing s = {.got = false};

	(void)arg;
	thr_rwlock_init(&s.l);
	thr_rwlock_rdlock(&s.l);
	CHECK(thr_spawn(thr_exec_self(), shares, &s) == 0);
	thr_yield();
	CHECK(s.got);
	thr_rwlock_rdunlock(&s.l);
	return 0;
}

static void rwlock_readers_share(void **state)
{
	(void)state;
	team_fiber(1, sharing_body, NULL);
}

static char order[32];

struct queuer {
	struct thr_rwlock *l;
	struct thr_sem *s;
	struct thr_budget *b;
	uint64_t n;
	char name;
};

static void note(char name)
{
	size_t n = strlen(order);

	CHECK(n + 1 < sizeof(order));
	order[n] = name;
	order[n + 1] = 0;
}

static void reads(void *arg)
{
	struct queuer *q = arg;

	thr_rwlock_rdlock(q->l);
	note(q->name);
	thr_yield();
	note(q->name);
	thr_rwlock_rdunlock(q->l);
}

static void writes(void *arg)
{
	struct queuer *q = arg;

	thr_rwlock_wrlock(q->l);
	note(q->name);
	thr_yield();
	note(q->name);
	thr_rwlock_wrunlock(q->l);
}

/* Readers that come after a waiting writer do not pass it. */
static int rwlock_order_body(void *arg)
{
	struct thr_rwlock l;
	struct queuer q[] = {
		{.l = &l, .name = 'a'},
		{.l = &l, .name = 'W'},
		{.l = &l, .name = 'b'},
		{.l = &l, .name = 'c'},
		{.l = &l, .name = 'X'},
		{.l = &l, .name = 'd'},
	};

	(void)arg;
	thr_rwlock_init(&l);
	thr_rwlock_rdlock(&l);
	for (size_t i = 0; i < THR_ARRAY_SIZE(q); i++)
		CHECK(thr_spawn(thr_exec_self(), q[i].name < 'a' ? writes : reads, &q[i]) == 0);
	for (int i = 0; i < 4; i++)
		thr_yield();
	CHECK(!strcmp(order, "aa"));
	thr_rwlock_rdunlock(&l);
	for (int i = 0; i < 20; i++)
		thr_yield();
	return 0;
}

static void rwlock_is_fair(void **state)
{
	(void)state;
	order[0] = 0;
	team_fiber(1, rwlock_order_body, NULL);
	assert_string_equal(order, "aaWWbcbcXXdd");
}

/* ---- semaphore and budget ------------------------------------------------------------- */

struct pot {
	struct thr_sem s;
	struct thr_budget b;
	uint64_t used; /* atomic */
	uint32_t next; /* atomic */
};

static int sem_body(void *arg)
{
	struct pot *p = arg;
	uint32_t random = __atomic_fetch_add(&p->next, 1, __ATOMIC_RELAXED);

	for (int i = 0; i < 300; i++) {
		uint64_t n = team_random(&random) % 6;

		thr_sem_down(&p->s, n);
		CHECK(__atomic_add_fetch(&p->used, n, __ATOMIC_RELAXED) <= 7);
		if (n % 2)
			thr_yield();
		__atomic_fetch_sub(&p->used, n, __ATOMIC_RELAXED);
		thr_sem_up(&p->s, n);
	}
	return 0;
}

static void sem_counts(void **state)
{
	(void)state;
	FOR_ALL_KINDS(kind)
	{
		struct pot p = {.used = 0};

		thr_sem_init(&p.s, 7);
		team_run(kind, 9, sem_body, &p);
		assert_int_equal(p.s.count, 7);
	}
}

static int budget_body(void *arg)
{
	struct pot *p = arg;
	uint32_t random = __atomic_fetch_add(&p->next, 1, __ATOMIC_RELAXED);

	for (int i = 0; i < 300; i++) {
		uint64_t n = 1 + team_random(&random) % 130;
		uint64_t used;

		thr_budget_take(&p->b, n);
		used = __atomic_add_fetch(&p->used, n, __ATOMIC_RELAXED);
		CHECK(used <= 100 || used == n); /* too much only on its own */
		if (n % 2)
			thr_yield();
		__atomic_fetch_sub(&p->used, n, __ATOMIC_RELAXED);
		thr_budget_give(&p->b, n);
	}
	return 0;
}

static void budget_bounds(void **state)
{
	(void)state;
	FOR_ALL_KINDS(kind)
	{
		struct pot p = {.used = 0};

		thr_budget_init(&p.b, 100);
		team_run(kind, 9, budget_body, &p);
		thr_budget_take(&p.b, 100);
		thr_budget_give(&p.b, 100);
	}
}

static void downs(void *arg)
{
	struct queuer *q = arg;

	thr_sem_down(q->s, q->n);
	note(q->name);
}

static int sem_order_body(void *arg)
{
	struct thr_sem s;
	struct queuer q[] = {
		{.s = &s, .n = 5, .name = 'a'},
		{.s = &s, .n = 1, .name = 'b'},
		{.s = &s, .n = 3, .name = 'c'},
	};

	(void)arg;
	thr_sem_init(&s, 2);
	for (size_t i = 0; i < THR_ARRAY_SIZE(q); i++)
		CHECK(thr_spawn(thr_exec_self(), downs, &q[i]) == 0);
	for (int i = 0; i < 7; i++) {
		thr_yield();
		thr_yield();
		CHECK(strlen(order) == (i >= 3) + (i >= 4) + 0u);
		thr_sem_up(&s, 1);
	}
	thr_yield();
	return 0;
}

/* Nobody overtakes, however little they want. */
static void sem_is_fair(void **state)
{
	(void)state;
	order[0] = 0;
	team_fiber(1, sem_order_body, NULL);
	assert_string_equal(order, "abc");
}

static void takes(void *arg)
{
	struct queuer *q = arg;

	thr_budget_take(q->b, q->n);
	note(q->name);
}

static int budget_order_body(void *arg)
{
	struct thr_budget b;
	struct queuer q[] = {
		{.b = &b, .n = 1000, .name = 'a'},
		{.b = &b, .n = 1, .name = 'b'},
	};

	(void)arg;
	thr_budget_init(&b, 100);
	thr_budget_take(&b, 10);
	CHECK(thr_spawn(thr_exec_self(), takes, &q[0]) == 0);
	CHECK(thr_spawn(thr_exec_self(), takes, &q[1]) == 0);
	thr_yield();
	CHECK(!strcmp(order, ""));
	thr_budget_give(&b, 10);
	thr_yield();
	CHECK(!strcmp(order, "a"));
	thr_budget_give(&b, 1000);
	thr_yield();
	CHECK(!strcmp(order, "ab"));
	thr_budget_give(&b, 1);
	return 0;
}

static void budget_is_fair(void **state)
{
	(void)state;
	order[0] = 0;
	team_fiber(1, budget_order_body, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mutex_excludes),
		cmocka_unit_test(mutex_does_not_starve),
		cmocka_unit_test(mutex_may_be_freed_by_the_last),
		cmocka_unit_test(cond_signal),
		cmocka_unit_test(cond_broadcast),
		cmocka_unit_test(rwlock_excludes),
		cmocka_unit_test(rwlock_readers_share),
		cmocka_unit_test(rwlock_is_fair),
		cmocka_unit_test(sem_counts),
		cmocka_unit_test(sem_is_fair),
		cmocka_unit_test(budget_bounds),
		cmocka_unit_test(budget_is_fair),
	};

	return cmocka_run_group_tests_name("thr_lock", tests, NULL, NULL);
}
