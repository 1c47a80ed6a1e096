/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/thr_exec.c - executors and pools: driving one by hand and from a foreign
 * event loop, sources, time, closing while there is work.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "thr_team.h"

static struct thr_exec *open_exec(void)
{
	struct thr_exec *e;

	assert_int_equal(thr_exec_open(&e, &thr_heap), 0);
	return e;
}

static bool readable(int fd, int timeout_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, timeout_ms) == 1;
}

static void add_one(void *arg)
{
	++*(unsigned *)arg;
}

static void add_and_yield(void *arg)
{
	for (int i = 0; i < 10; i++) {
		++*(unsigned *)arg;
		thr_yield();
	}
}

/* ---- driven by hand ---------------------------------------------------------- */

static void run(void **state)
{
	struct thr_exec *e = open_exec();
	unsigned n = 0;

	(void)state;
	thr_exec_run(e);
	assert_int_equal(thr_spawn(e, add_and_yield, &n), 0);
	assert_int_equal(thr_spawn(e, add_and_yield, &n), 0);
	assert_int_equal(n, 0);
	assert_null(thr_exec_self());
	thr_exec_run(e);
	assert_int_equal(n, 20);
	assert_null(thr_exec_self());
	assert_int_equal(thr_spawn(e, add_one, &n), 0);
	thr_exec_run(e);
	assert_int_equal(n, 21);
	thr_exec_close(e);
	thr_exec_close(NULL);
}

static void waits_for(void *arg)
{
	thr_sem_down(arg, 1);
}

static void poll_by_hand(void **state)
{
	struct thr_exec *e = open_exec();
	struct thr_sem s;

	(void)state;
	thr_sem_init(&s, 0);
	assert_int_equal(thr_exec_poll(e, -1), 0);
	assert_int_equal(thr_spawn(e, waits_for, &s), 0);
	assert_int_equal(thr_spawn(e, waits_for, &s), 0);
	assert_int_equal(thr_exec_poll(e, 0), 2);
	assert_int_equal(thr_exec_poll(e, 1000), 2);
	thr_sem_up(&s, 1);
	assert_int_equal(thr_exec_poll(e, -1), 1);
	thr_sem_up(&s, 1);
	assert_int_equal(thr_exec_poll(e, 0), 0);
	thr_exec_close(e);
}

static void never_ends(void *arg)
{
	while (!*(bool *)arg)
		thr_yield();
}

/* The caller's loop gets its share, and is told that there is more. */
static void poll_comes_back(void **state)
{
	struct thr_exec *e = open_exec();
	int fd = thr_exec_fd(e);
	bool stop = false;

	(void)state;
	assert_int_equal(thr_spawn(e, never_ends, &stop), 0);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(thr_exec_poll(e, -1), 1);
		assert_true(readable(fd, 0));
	}
	stop = true;
	assert_int_equal(thr_exec_poll(e, -1), 0);
	assert_false(readable(fd, 0));
	thr_exec_close(e);
}

struct inner {
	struct thr_exec *exec;
	unsigned n;
};

/* A fiber may drive another executor. */
static int nested_body(void *arg)
{
	struct inner *in = arg;
	struct thr_exec *mine = thr_exec_self();

	CHECK(thr_spawn(in->exec, add_and_yield, &in->n) == 0);
	CHECK(thr_spawn(in->exec, add_and_yield, &in->n) == 0);
	thr_exec_run(in->exec);
	CHECK(thr_exec_self() == mine);
	CHECK(thr_in_fiber());
	thr_yield();
	return 0;
}

static void nested(void **state)
{
	struct inner in = {.exec = open_exec()};

	(void)state;
	team_fiber(2, nested_body, &in);
	assert_int_equal(in.n, 20);
	thr_exec_close(in.exec);
}

/* ---- from a foreign event loop -------------------------------------------------- */

struct late {
	struct thr_sem s;
	struct thr_sem go;
};

static void *up_later(void *arg)
{
	struct late *l = arg;

	thr_sem_down(&l->go, 1);
	thr_sem_up(&l->s, 1);
	return NULL;
}

static void fd_tells_of_wake_ups(void **state)
{
	struct thr_exec *e = open_exec();
	int fd = thr_exec_fd(e);
	struct late l;
	pthread_t t;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(thr_exec_fd(e), fd);
	assert_false(readable(fd, 0));
	thr_sem_init(&l.s, 0);
	thr_sem_init(&l.go, 0);
	assert_int_equal(thr_spawn(e, waits_for, &l.s), 0);
	assert_true(readable(fd, 0));
	assert_int_equal(thr_exec_poll(e, 0), 1);
	assert_false(readable(fd, 0));

	assert_int_equal(pthread_create(&t, NULL, up_later, &l), 0);
	thr_sem_up(&l.go, 1);
	assert_true(readable(fd, -1));
	assert_int_equal(thr_exec_poll(e, 0), 0);
	assert_false(readable(fd, 0));
	pthread_join(t, NULL);
	thr_exec_close(e);
}

static void sleeps(void *arg)
{
	thr_sleep(*(uint64_t *)arg);
}

static void fd_tells_of_timers(void **state)
{
	struct thr_exec *e = open_exec();
	uint64_t ns[] = {3000000, 1000000, 0};
	uint64_t start = thr_now();
	int fd;

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(thr_spawn(e, sleeps, &ns[i]), 0);
	thr_exec_poll(e, 0);
	fd = thr_exec_fd(e); /* the timers are older than it */
	while (thr_exec_poll(e, 0))
		assert_true(readable(fd, -1));
	assert_true(thr_now() - start >= 3000000);
	thr_exec_close(e);
}

/* ---- time -------------------------------------------------------------------------- */

struct sleeper {
	uint64_t ns;
	unsigned place;
	unsigned *next;
};

static void sleep_and_note(void *arg)
{
	struct sleeper *s = arg;
	uint64_t start = thr_now();

	thr_sleep(s->ns);
	CHECK(thr_now() - start >= s->ns);
	s->place = (*s->next)++;
}

static void sleeping(void **state)
{
	struct thr_exec *e = open_exec();
	unsigned next = 0;
	struct sleeper s[] = {{30000000, 9, &next}, {10000000, 9, &next}, {20000000, 9, &next},
		{0, 9, &next}};
	uint64_t before = thr_now();

	(void)state;
	for (size_t i = 0; i < THR_ARRAY_SIZE(s); i++)
		assert_int_equal(thr_spawn(e, sleep_and_note, &s[i]), 0);
	thr_exec_run(e);
	team_verdict();
	assert_int_equal(s[3].place, 0);
	assert_int_equal(s[1].place, 1);
	assert_int_equal(s[2].place, 2);
	assert_int_equal(s[0].place, 3);

	thr_sleep(1000000);
	assert_true(thr_now() - before >= 31000000);
	thr_exec_close(e);
}

/* ---- sources ------------------------------------------------------------------------ */

/* A ring of one: what is asked of it is done by a thread, at once or later. */
struct fake {
	struct thr_source s;
	struct thr_exec *exec;
	struct thr_wait *waiter;
	unsigned runs, sleeps, closed;
};

static const char kind_a, kind_b;

static void fake_run(struct thr_source *s, int64_t timeout_ns)
{
	struct fake *f = THR_CONTAINER(s, struct fake, s);
	struct pollfd p[2] = {
		{.fd = f->s.fd, .events = POLLIN},
		{.fd = thr_exec_wake_fd(f->exec), .events = POLLIN},
	};
	uint64_t n;

	CHECK(thr_exec_self() == f->exec);
	CHECK(!thr_in_fiber());
	f->runs++;
	if (timeout_ns) {
		CHECK(s->can_sleep);
		f->sleeps++;
		poll(p, 2, timeout_ns < 0 ? -1 : (int)(timeout_ns / 1000000 + 1));
	}
	if (read(f->s.fd, &n, sizeof(n)) == sizeof(n)) {
		CHECK(f->waiter != NULL);
		f->s.pending--;
		thr_wait_wake(f->waiter);
	}
}

static void fake_close(struct thr_source *s)
{
	struct fake *f = THR_CONTAINER(s, struct fake, s);

	f->closed++;
	close(f->s.fd);
}

static const struct thr_source_ops fake_ops = {
	.run = fake_run,
	.close = fake_close,
};

static void fake_open(struct fake *f, struct thr_exec *e, const void *key, bool can_sleep)
{
	*f = (struct fake){.exec = e};
	f->s.ops = &fake_ops;
	f->s.key = key;
	f->s.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	f->s.can_sleep = can_sleep;
	CHECK(f->s.fd >= 0);
	CHECK(thr_source_find(e, key) == NULL);
	CHECK(thr_source_add(e, &f->s) == 0);
	CHECK(thr_source_find(e, key) == &f->s);
}

static void *complete(void *arg)
{
	uint64_t one = 1;

	CHECK(write(((struct fake *)arg)->s.fd, &one, sizeof(one)) == sizeof(one));
	return NULL;
}

/* One request: parks until the thread has completed it. */
static void request(struct fake *f)
{
	struct thr_wait w;
	pthread_t t;

	thr_wait_init(&w);
	f->waiter = &w;
	f->s.pending++;
	CHECK(pthread_create(&t, NULL, complete, f) == 0);
	thr_wait_block(&w);
	pthread_join(t, NULL);
}

struct sources {
	struct fake a, b;
	unsigned n;
	bool can_sleep;
};

static int nap(void *arg)
{
	(void)arg;
	return usleep(1000);
}

static void source_body(void *arg)
{
	struct sources *x = arg;
	struct thr_exec *e = thr_exec_self();

	fake_open(&x->a, e, &kind_a, x->can_sleep);
	if (x->n == 2)
		fake_open(&x->b, e, &kind_b, x->can_sleep);
	for (int i = 0; i < 20; i++) {
		request(&x->a);
		if (x->n == 2)
			request(&x->b);
	}
	/* Other wake-ups come through while a request is pending. */
	x->a.s.pending++;
	thr_sleep(1000000);
	CHECK(thr_offload(nap, NULL) == 0);
	x->a.s.pending--;
}

static void drive_sources(unsigned n, bool can_sleep, bool foreign)
{
	struct thr_exec *e = open_exec();
	struct sources x = {.n = n, .can_sleep = can_sleep};
	int fd = thr_exec_fd(e);

	assert_int_equal(thr_spawn(e, source_body, &x), 0);
	if (foreign)
		while (thr_exec_poll(e, 0))
			assert_true(readable(fd, -1));
	else
		thr_exec_run(e);
	team_verdict();
	assert_true(x.a.runs >= 20);
	assert_true(!x.a.sleeps || (can_sleep && n == 1));
	if (n == 1 && can_sleep && !foreign)
		assert_true(x.a.sleeps > 0);
	assert_int_equal(x.a.closed, 0);
	thr_exec_close(e);
	assert_int_equal(x.a.closed, 1);
	assert_int_equal(x.b.closed, n == 2);
}

static void sources(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= 2; n++)
		for (int can_sleep = 0; can_sleep < 2; can_sleep++)
			for (int foreign = 0; foreign < 2; foreign++)
				drive_sources(n, can_sleep, foreign);
}

/* ---- pools ------------------------------------------------------------------------------ */

static int self_body(void *arg)
{
	struct thr_pool *p = arg;

	CHECK(thr_pool_self() == p);
	CHECK(thr_exec_self() == thr_pool_exec(p, 0));
	return -THR_ERANGE;
}

static void pool(void **state)
{
	struct thr_pool *p;
	cpu_set_t cpus;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
	assert_int_equal(thr_pool_open(&p, 0, &thr_heap), 0);
	assert_int_equal(thr_pool_count(p), CPU_COUNT(&cpus));
	assert_null(thr_pool_self());
	assert_null(thr_exec_self());
	for (int i = 0; i < 100; i++)
		assert_int_equal(thr_pool_run(p, self_body, p), -THR_ERANGE);
	thr_pool_close(p);
	team_verdict();
	thr_pool_close(NULL);
	assert_int_equal(thr_pool_open(&p, UINT32_MAX, &thr_heap), -THR_EINVAL);
}

struct chain {
	struct thr_pool *pool;
	unsigned links;
	unsigned left;
	uint32_t ends; /* atomic */
};

static void chain_link(void *arg)
{
	struct chain *c = arg;

	thr_yield();
	if (!c->left--)
		__atomic_fetch_add(&c->ends, 1, __ATOMIC_RELAXED);
	else
		CHECK(thr_spawn(thr_pool_exec(c->pool, c->left % 3), chain_link, c) == 0);
}

/* Closing waits for fibers that are started meanwhile, wherever they are. */
static void close_waits(void **state)
{
	(void)state;
	for (int round = 0; round < 20; round++) {
		struct chain c[4];
		unsigned i;

		memset(c, 0, sizeof(c));
		assert_int_equal(thr_pool_open(&c[0].pool, 3, &thr_heap), 0);
		for (i = 0; i < 4; i++) {
			c[i].pool = c[0].pool;
			c[i].left = 50 + i;
			assert_int_equal(
				thr_spawn(thr_pool_exec(c[0].pool, i % 3), chain_link, &c[i]),
				0);
		}
		thr_pool_close(c[0].pool);
		for (i = 0; i < 4; i++)
			assert_int_equal(c[i].ends, 1);
	}
	team_verdict();
}

static int touch_stack(void *arg)
{
	volatile char frame[8192];

	for (size_t i = 0; i < sizeof(frame); i += 512)
		frame[i] = 1;
	thr_yield();
	free(malloc(100000));
	return frame[512] - 1 + (arg != NULL);
}

static int sixteen_body(void *arg)
{
	struct thr_pool *p = thr_pool_self();
	struct thr_group g;

	(void)arg;
	for (int round = 0; round < 3; round++) {
		thr_group_init(&g);
		for (unsigned i = 0; i < 800; i++)
			if (thr_group_spawn(&g, thr_pool_exec(p, i % 16), touch_stack, NULL))
				return 1;
		if (thr_group_wait(&g))
			return 2;
	}
	return 0;
}

static void sixteen_executors_in_1_gib(void **state)
{
	struct rlimit gib = {1 << 30, 1 << 30};
	struct thr_pool *p;
	int status;
	pid_t child;

	(void)state;
	if (team_instrumented())
		skip();
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		if (setrlimit(RLIMIT_AS, &gib) || thr_pool_open(&p, 16, &thr_heap))
			_exit(10);
		status = thr_pool_run(p, sixteen_body, NULL);
		thr_pool_close(p);
		_exit(status);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- what can fail fails cleanly ----------------------------------------------------------
 */

static unsigned gets_left;
static size_t in_use;

static void *failing_get(void *ctx, size_t size, size_t align)
{
	void *p = gets_left ? thr_get(&thr_heap, size, align) : NULL;

	(void)ctx;
	gets_left -= gets_left != 0;
	in_use += p ? size : 0;
	return p;
}

static void failing_put(void *ctx, void *p, size_t size)
{
	(void)ctx;
	in_use -= size;
	thr_put(&thr_heap, p, size);
}

static const struct thr_alloc failing = {.get = failing_get, .put = failing_put};

static void open_without_memory(void **state)
{
	struct thr_exec *e;
	struct thr_pool *p = NULL;
	unsigned n;

	(void)state;
	gets_left = 0;
	assert_int_equal(thr_exec_open(&e, &failing), -THR_ENOMEM);
	for (n = 0; !p && n < 20; n++) {
		int err;

		gets_left = n;
		err = thr_pool_open(&p, 3, &failing);
		assert_true(err == 0 || err == -THR_ENOMEM);
		assert_true((err == 0) == (p != NULL));
		assert_true(p || in_use == 0);
	}
	assert_int_equal(n, 6); /* the pool, its table, three executors */
	thr_pool_close(p);
	assert_int_equal(in_use, 0);
}

static void open_without_fds(void **state)
{
	struct rlimit old, few;
	struct thr_pool *p;
	struct thr_exec *e;
	unsigned fails = 0;
	int err;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	few = old;
	for (few.rlim_cur = 3; few.rlim_cur < 40; few.rlim_cur++) {
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		err = thr_pool_open(&p, 2, &thr_heap);
		fails += err != 0;
		if (!err)
			thr_pool_close(p);
		else
			assert_int_equal(err, -EMFILE);
		if (!thr_exec_open(&e, &thr_heap)) {
			int fd = thr_exec_fd(e);

			assert_true(fd >= 0 || fd == -EMFILE);
			thr_exec_close(e);
		}
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_true(fails > 0 && fails < 37);
}

/* ---- giving way ------------------------------------------------------------------ */

struct rank {
	struct thr_sem sem;
	uint64_t ticket;
	bool ran;
};

static void rank_wait(void *arg)
{
	struct rank *r = arg;

	thr_fiber_ticket(r->ticket);
	thr_sem_down(&r->sem, 1);
	r->ran = true;
}

static void rank_compute(void *arg)
{
	struct rank *r = arg; /* before the caller, and after it */

	thr_fiber_ticket(5);
	thr_yield();
	thr_sem_up(&r[1].sem, 1);
	thr_give_way();
	assert_false(r[1].ran);
	thr_sem_up(&r[0].sem, 1);
	thr_give_way();
	assert_true(r[0].ran);
	assert_false(r[1].ran);
}

static void test_give_way(void **state)
{
	struct rank r[2] = {{.ticket = 3}, {.ticket = 7}};
	struct thr_exec *e;

	(void)state;
	thr_give_way(); /* a plain thread */
	assert_int_equal(thr_exec_open(&e, &thr_heap), 0);
	for (unsigned i = 0; i < 2; i++) {
		thr_sem_init(&r[i].sem, 0);
		assert_int_equal(thr_spawn(e, rank_wait, &r[i]), 0);
	}
	assert_int_equal(thr_spawn(e, rank_compute, r), 0);
	thr_exec_run(e);
	assert_true(r[1].ran);
	thr_exec_close(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* These fork: before there are threads that are left running. */
		cmocka_unit_test(sixteen_executors_in_1_gib),
		cmocka_unit_test(run),
		cmocka_unit_test(poll_by_hand),
		cmocka_unit_test(poll_comes_back),
		cmocka_unit_test(nested),
		cmocka_unit_test(fd_tells_of_wake_ups),
		cmocka_unit_test(fd_tells_of_timers),
		cmocka_unit_test(sleeping),
		cmocka_unit_test(sources),
		cmocka_unit_test(pool),
		cmocka_unit_test(close_waits),
		cmocka_unit_test(open_without_memory),
		cmocka_unit_test(open_without_fds),
		cmocka_unit_test(test_give_way),
	};

	return cmocka_run_group_tests_name("thr_exec", tests, NULL, NULL);
}
