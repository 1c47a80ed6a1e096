/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/thr_fiber.c - fibers: order of running, tickets, stacks, waits.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "thr_team.h"

/* ---- order ---------------------------------------------------------------- */

static char log_text[256];

static void note(char c)
{
	size_t n = strlen(log_text);

	CHECK(n + 1 < sizeof(log_text));
	log_text[n] = c;
	log_text[n + 1] = 0;
}

static void three_times(void *arg)
{
	for (int i = 0; i < 3; i++) {
		note(*(const char *)arg);
		thr_yield();
	}
}

static int fifo_body(void *arg)
{
	struct thr_exec *e = thr_exec_self();

	(void)arg;
	CHECK(thr_in_fiber());
	for (const char *c = "abc"; *c; c++)
		CHECK(thr_spawn(e, three_times, (void *)(uintptr_t)c) == 0);
	note('.');
	for (int i = 0; i < 4; i++)
		thr_yield();
	return 0;
}

static void first_come_first_run(void **state)
{
	(void)state;
	log_text[0] = 0;
	team_fiber(1, fifo_body, NULL);
	assert_string_equal(log_text, ".abcabcabc");
	assert_false(thr_in_fiber());
	thr_yield();
	assert_false(thr_in_fiber());
	thr_fiber_ticket(3);
}

struct ticketed {
	uint64_t ticket;
	char name;
	struct thr_sem *gate;
};

/* Takes its ticket, and its place with the next wake-up. */
static void with_ticket(void *arg)
{
	struct ticketed *t = arg;

	thr_fiber_ticket(t->ticket);
	thr_sem_down(t->gate, 1);
	note(t->name);
}

static int ticket_body(void *arg)
{
	struct thr_sem gate;
	struct ticketed t[] = {
		{7, 'c', &gate},
		{THR_NO_TICKET, 'x', &gate},
		{3, 'b', &gate},
		{THR_NO_TICKET, 'y', &gate},
		{7, 'd', &gate},
		{0, 'a', &gate},
		{9, 'e', &gate},
	};

	(void)arg;
	thr_sem_init(&gate, 0);
	for (size_t i = 0; i < THR_ARRAY_SIZE(t); i++)
		CHECK(thr_spawn(thr_exec_self(), with_ticket, &t[i]) == 0);
	thr_yield();
	CHECK(log_text[0] == 0);
	thr_sem_up(&gate, THR_ARRAY_SIZE(t));
	for (size_t i = 0; i < 3; i++)
		thr_yield();
	return 0;
}

static void lowest_ticket_runs_first(void **state)
{
	(void)state;
	log_text[0] = 0;
	team_fiber(1, ticket_body, NULL);
	assert_string_equal(log_text, "abcdexy");
}

static int many_tickets_body(void *arg)
{
	enum { N = 200 };
	struct thr_sem gate;
	struct ticketed t[N];

	(void)arg;
	thr_sem_init(&gate, 0);
	for (size_t i = 0; i < N; i++) {
		uint64_t place = i * 37 % N;

		t[i] = (struct ticketed){place, (char)(' ' + place / 4), &gate};
		CHECK(thr_spawn(thr_exec_self(), with_ticket, &t[i]) == 0);
	}
	thr_yield();
	thr_sem_up(&gate, N);
	thr_yield();
	return 0;
}

static void many_tickets(void **state)
{
	(void)state;
	log_text[0] = 0;
	team_fiber(1, many_tickets_body, NULL);
	assert_int_equal(strlen(log_text), 200);
	for (size_t i = 0; i < 200; i++)
		assert_int_equal(log_text[i], ' ' + i / 4);
}

static void ups(void *arg)
{
	thr_sem_up(arg, 1);
}

static bool stop_it;

static void stopper(void *arg)
{
	(void)arg;
	stop_it = true;
}

/* Or nobody else would ever run. */
static int yield_ticket_body(void *arg)
{
	(void)arg;
	stop_it = false;
	thr_fiber_ticket(0);
	CHECK(thr_spawn(thr_exec_self(), stopper, NULL) == 0);
	thr_yield();
	CHECK(stop_it);
	return 0;
}

static void yield_is_for_everybody(void **state)
{
	(void)state;
	team_fiber(1, yield_ticket_body, NULL);
}

/* ---- stacks ------------------------------------------------------------------ */

static unsigned count_mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned n = 0;
	int c;

	if (!f)
		return 0;
	while ((c = fgetc(f)) != EOF)
		n += c == '\n';
	fclose(f);
	return n;
}

static unsigned ended;

static void waits_a_bit(void *arg)
{
	for (uintptr_t i = 0; i < (uintptr_t)arg % 4; i++)
		thr_yield();
	ended++;
}

/* More at once than are kept. A stack is two mappings, with its guard page. */
static int many_body(void *arg)
{
	unsigned n = *(unsigned *)arg, before = count_mappings();

	ended = 0;
	for (unsigned round = 0; round < 2; round++) {
		for (uintptr_t i = 0; i < n; i++)
			CHECK(thr_spawn(thr_exec_self(), waits_a_bit, (void *)i) == 0);
		while (ended < n * (round + 1))
			thr_yield();
	}
	CHECK(ended == 2 * n);
	CHECK(team_instrumented() ||
		count_mappings() < before + 2 * CONFIG_THR_STACK_CACHE + 100);
	return 0;
}

static void more_fibers_than_are_kept(void **state)
{
	unsigned n = TEAM_SANITIZED ? CONFIG_THR_STACK_CACHE + 10 : 1500;

	(void)state;
	team_fiber(1, many_body, &n);
}

static int reuse_body(void *arg)
{
	struct thr_exec *e = arg ? arg : thr_exec_self();
	unsigned before = 0;

	for (unsigned i = 0; i < 2000; i++) {
		struct thr_sem done;

		thr_sem_init(&done, 0);
		CHECK(thr_spawn(e, ups, &done) == 0);
		thr_sem_down(&done, 1);
		if (i == 10)
			before = count_mappings();
	}
	CHECK(count_mappings() < before + 100);
	return 0;
}

/* Also those of fibers that were started from outside. */
static void stacks_are_used_again(void **state)
{
	struct thr_pool *p;

	(void)state;
	team_fiber(1, reuse_body, NULL);
	assert_int_equal(thr_pool_open(&p, 2, &thr_heap), 0);
	CHECK(thr_pool_run(p, reuse_body, thr_pool_exec(p, 1)) == 0);
	CHECK(reuse_body(thr_pool_exec(p, 0)) == 0);
	thr_pool_close(p);
	team_verdict();
}

/* Recursion, so that no compiler puts it elsewhere. */
static uint64_t use_stack(size_t bytes)
{
	volatile uint8_t frame[1024];

	for (size_t i = 0; i < sizeof(frame); i++)
		frame[i] = (uint8_t)(bytes + i);
	if (bytes < 2 * sizeof(frame))
		return frame[3];
	return use_stack(bytes - sizeof(frame)) + frame[7];
}

static int deep_body(void *arg)
{
	CHECK(use_stack(*(size_t *)arg) != 0);
	return 0;
}

static void whole_stack_can_be_used(void **state)
{
	size_t n = (size_t)CONFIG_THR_STACK_KIB * 1024 * 7 / 8;

	(void)state;
	team_fiber(1, deep_body, &n);
}

static void waits_for(void *arg)
{
	thr_sem_down(arg, 1);
}

/* Overflows by a little, with other stacks mapped all around. */
static int overflow_body(void *arg)
{
	struct thr_sem never;

	thr_sem_init(&never, 0);
	for (int i = 0; i < 50; i++)
		CHECK(thr_spawn(thr_exec_self(), waits_for, &never) == 0);
	thr_yield();
	return deep_body(arg);
}

/* It dies, and does not write to its neighbour's. */
static void guard_page(void **state)
{
	size_t n = (size_t)(CONFIG_THR_STACK_KIB + 6) * 1024;
	struct thr_pool *p;
	int status;
	pid_t child;

	(void)state;
	if (team_instrumented())
		skip();
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		struct rlimit none = {0, 0};

		setrlimit(RLIMIT_CORE, &none);
		signal(SIGSEGV, SIG_DFL);
		if (thr_pool_open(&p, 1, &thr_heap))
			_exit(1);
		thr_pool_run(p, overflow_body, &n);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSEGV);
}

/* Runs in a child: out of address space, spawning says so, and goes on. */
static int no_memory_body(void *arg)
{
	struct rlimit tight = {96 << 20, 96 << 20};
	struct thr_sem gate;
	struct ticketed t = {THR_NO_TICKET, '-', &gate};
	unsigned n = 0;
	int err;

	(void)arg;
	log_text[0] = 0;
	thr_sem_init(&gate, 0);
	if (setrlimit(RLIMIT_AS, &tight))
		return 1;
	while (!(err = thr_spawn(thr_exec_self(), with_ticket, &t)) && n < 100000)
		n++;
	if (err != -THR_ENOMEM || !n)
		return 2;
	thr_yield();
	log_text[0] = 0;
	for (unsigned i = 0; i < n; i++) {
		thr_sem_up(&gate, 1);
		thr_yield();
		if (log_text[0] != '-' || log_text[1])
			return 3;
		log_text[0] = 0;
	}
	return thr_spawn(thr_exec_self(), stopper, NULL) ? 4 : 0;
}

static void no_memory_for_stacks(void **state)
{
	struct thr_pool *p;
	int status;
	pid_t child;

	(void)state;
	if (team_instrumented())
		skip();
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		if (thr_pool_open(&p, 1, &thr_heap))
			_exit(10);
		status = thr_pool_run(p, no_memory_body, NULL);
		thr_pool_close(p);
		_exit(status);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- registers ------------------------------------------------------------------ */

/* Keeps more values alive than there are registers, and switches in between. */
static double mix(double seed, bool with_switches)
{
	double a = seed, b = seed + 1, c = seed + 2, d = seed + 3, e = seed + 4;
	uint64_t i = (uint64_t)seed, j = i + 1, k = i + 2, l = i + 3, m = i + 4, n = i + 5;

	for (int round = 0; round < 50; round++) {
		a = a * 0.5 + b;
		i += j * 3;
		if (with_switches)
			thr_yield();
		b = b * 0.25 + c;
		c = c * 0.75 - d;
		j ^= k << 1;
		k += l;
		if (with_switches)
			thr_yield();
		d = d * 0.125 + e;
		e = e * 0.5 + a;
		l ^= m >> 1;
		m += n;
		n ^= i;
	}
	return a + b + c + d + e + (double)((i ^ j ^ k ^ l ^ m ^ n) & 0xffff);
}

static int mix_body(void *arg)
{
	uint32_t me = __atomic_fetch_add((uint32_t *)arg, 1, __ATOMIC_RELAXED);

	CHECK(mix(me, true) == mix(me, false)); /* the same operations, the same bits */
	return 0;
}

static void registers_survive(void **state)
{
	uint32_t next = 0;

	(void)state;
	team_run(TEAM_FIBERS_1, 20, mix_body, &next);
	team_run(TEAM_FIBERS_3, 20, mix_body, &next);
}

/* ---- waits ------------------------------------------------------------------------ */

struct waiting {
	struct thr_wait w;
	struct thr_sem ready;
	unsigned rounds;
};

static void *wake_from_thread(void *arg)
{
	struct waiting *x = arg;

	for (unsigned i = 0; i < x->rounds; i++) {
		thr_sem_down(&x->ready, 1);
		thr_wait_wake(&x->w);
	}
	return NULL;
}

/* Early and late wake-ups, as they come. */
static int wait_body(void *arg)
{
	struct waiting x = {.rounds = 1000};
	uint32_t random = 1;
	pthread_t t;

	(void)arg;
	thr_sem_init(&x.ready, 0);
	CHECK(pthread_create(&t, NULL, wake_from_thread, &x) == 0);
	for (unsigned i = 0; i < x.rounds; i++) {
		thr_wait_init(&x.w);
		thr_sem_up(&x.ready, 1);
		for (unsigned spin = team_random(&random) % 300; spin--;)
			__asm__ volatile("");
		thr_wait_block(&x.w);
	}
	pthread_join(t, NULL);

	thr_wait_init(&x.w);
	thr_wait_wake(&x.w);
	thr_wait_block(&x.w);
	return 0;
}

static void woken_from_a_thread(void **state)
{
	(void)state;
	team_run(TEAM_THREADS, 1, wait_body, NULL);
	team_run(TEAM_FIBERS_1, 1, wait_body, NULL);
	team_run(TEAM_FIBERS_3, 3, wait_body, NULL);
}

struct busy {
	struct thr_sem s;
	bool waiting, woken;
	uint32_t pushed; /* atomic */
};

static void waits_for_push(void *arg)
{
	struct busy *b = arg;

	b->waiting = true;
	thr_sem_down(&b->s, 1);
	b->woken = true;
}

static void *push(void *arg)
{
	struct busy *b = arg;

	thr_sem_up(&b->s, 1);
	__atomic_store_n(&b->pushed, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* An executor that is never idle looks at the next switch. */
static int busy_body(void *arg)
{
	for (int round = 0; round < 20; round++) {
		struct busy b = {.waiting = false};
		unsigned late = 0;
		pthread_t t;

		(void)arg;
		thr_sem_init(&b.s, 0);
		CHECK(thr_spawn(thr_exec_self(), waits_for_push, &b) == 0);
		while (!b.waiting)
			thr_yield();
		CHECK(pthread_create(&t, NULL, push, &b) == 0);
		while (!b.woken) {
			late += __atomic_load_n(&b.pushed, __ATOMIC_ACQUIRE);
			thr_yield();
		}
		CHECK(late <= 2);
		pthread_join(t, NULL);
	}
	return 0;
}

static void woken_while_busy(void **state)
{
	(void)state;
	team_fiber(1, busy_body, NULL);
}

/* ---- several executors -------------------------------------------------------------- */

static void scattered(void *arg)
{
	struct thr_sem *done = arg;

	thr_yield();
	thr_sem_up(done, 1);
}

/* Everybody starts fibers everywhere. */
static int scatter_body(void *arg)
{
	struct thr_pool *p = thr_pool_self();
	struct thr_sem done;

	(void)arg;
	CHECK(p != NULL);
	thr_sem_init(&done, 0);
	for (unsigned i = 0; i < 200; i++)
		CHECK(thr_spawn(thr_pool_exec(p, i % thr_pool_count(p)), scattered, &done) ==
			0);
	thr_sem_down(&done, 200);
	return 0;
}

static void started_from_anywhere(void **state)
{
	(void)state;
	team_run(TEAM_FIBERS_3, 9, scatter_body, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* These fork: before there are threads that are left running. */
		cmocka_unit_test(guard_page),
		cmocka_unit_test(no_memory_for_stacks),
		cmocka_unit_test(first_come_first_run),
		cmocka_unit_test(lowest_ticket_runs_first),
		cmocka_unit_test(many_tickets),
		cmocka_unit_test(yield_is_for_everybody),
		cmocka_unit_test(more_fibers_than_are_kept),
		cmocka_unit_test(stacks_are_used_again),
		cmocka_unit_test(whole_stack_can_be_used),
		cmocka_unit_test(registers_survive),
		cmocka_unit_test(woken_from_a_thread),
		cmocka_unit_test(woken_while_busy),
		cmocka_unit_test(started_from_anywhere),
	};

	return cmocka_run_group_tests_name("thr_fiber", tests, NULL, NULL);
}
