/* SPDX-License-Identifier: BSD-2-Clause
 *
 * thr/exec.c - executors: what runs next, and where the thread sleeps when
 * nothing does.
 *
 * One turn is: take in what others pushed, wake those whose time has come, run a
 * batch of fibers, run the sources that have something pending. When after that
 * nothing is ready, the thread sleeps: in its source if there is just one and it
 * can, else on an epoll of everything that could wake it.
 */
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "thr/priv.h"

_Thread_local struct thr_exec *thr_self __attribute__((tls_model("initial-exec")));

struct thr_exec *thr_exec_self(void)
{
	return thr_self;
}

/* ---- running ------------------------------------------------------------- */

static bool run_batch(struct thr_exec *e)
{
	struct thr_fiber *f;

	e->batch = THR_BATCH;
	f = thr_exec_next(e);
	if (f == &e->sched)
		return false;
	thr_exec_switch(e, &e->sched, f);
	while (THR_UNLIKELY(e->dead)) {
		f = e->dead;
		e->dead = NULL;
		thr_stack_put(e, f);
		f = thr_exec_next(e);
		if (f != &e->sched)
			thr_exec_switch(e, &e->sched, f);
	}
	return true;
}

static void run_sources(struct thr_exec *e, bool all)
{
	struct thr_source *s;

	for (s = e->sources; s; s = s->next)
		if (s->pending || all)
			s->ops->run(s, 0);
}

/* Returns whether a fiber ran. */
static bool take_turn(struct thr_exec *e)
{
	bool ran;

	thr_remote_drain(e);
	if (e->timers.root)
		thr_timers_expire(e);
	ran = run_batch(e);
	run_sources(e, false);
	return ran;
}

/* ---- sleeping ------------------------------------------------------------ */

static void sleep_on_bundle(struct thr_exec *e, int64_t timeout_ns)
{
	struct pollfd p = {.fd = e->bundle_fd, .events = POLLIN};
	struct timespec ts = {
		.tv_sec = (time_t)(timeout_ns / 1000000000),
		.tv_nsec = (long)(timeout_ns % 1000000000),
	};

	ppoll(&p, 1, timeout_ns < 0 ? NULL : &ts, NULL);
	run_sources(e, true);
}

static void idle(struct thr_exec *e, int64_t timeout_ns)
{
	struct thr_source *s = e->sources;

	timeout_ns = thr_timers_limit(e, timeout_ns);
	if (!timeout_ns || !thr_remote_arm(e))
		return;
	if (s && !s->next && s->can_sleep && s->pending)
		s->ops->run(s, timeout_ns);
	else
		sleep_on_bundle(e, timeout_ns);
}

/* ---- entering and leaving -------------------------------------------------- */

/* Any thread may drive an executor, also one inside a fiber of another. */
static struct thr_exec *enter(struct thr_exec *e)
{
	struct thr_exec *outer = thr_self;

	thr_self = e;
	thr_asan_init(&e->sched.annot, NULL, 0);
	thr_tsan_self(&e->sched.annot);
	return outer;
}

static void arm_timer_fd(struct thr_exec *e)
{
	struct itimerspec when = {.it_value = {0, 0}};
	uint64_t due;

	if (e->timer_fd < 0)
		return;
	if (e->timers.root) {
		due = e->timers.root->key;
		when.it_value.tv_sec = (time_t)(due / 1000000000);
		when.it_value.tv_nsec = (long)(due % 1000000000);
	}
	timerfd_settime(e->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

/* thr_exec_fd() is readable from now on as soon as there is something to do. */
static void leave(struct thr_exec *e, struct thr_exec *outer)
{
	arm_timer_fd(e);
	if (!thr_ready_empty(e) || !thr_remote_arm(e))
		thr_remote_kick(e);
	thr_self = outer;
}

void thr_exec_run(struct thr_exec *e)
{
	struct thr_exec *outer = enter(e);

	take_turn(e);
	while (e->live) {
		if (thr_ready_empty(e))
			idle(e, -1);
		take_turn(e);
	}
	leave(e, outer);
}

void thr_exec_serve(struct thr_exec *e)
{
	struct thr_exec *outer = enter(e);

	for (;;) {
		take_turn(e);
		if (!thr_ready_empty(e))
			continue;
		if (!e->live && e->holds) {
			e->holds = false;
			thr_pool_release(e->pool);
		}
		if (e->stop)
			break;
		idle(e, -1);
	}
	thr_exec_close_sources(e);
	leave(e, outer);
}

static bool has_work(struct thr_exec *e)
{
	return !thr_ready_empty(e) || __atomic_load_n(&e->remote, __ATOMIC_RELAXED);
}

unsigned thr_exec_poll(struct thr_exec *e, int64_t timeout_ns)
{
	/* So that fibers that never wait leave the caller's loop its share. */
	unsigned turns = 16;
	struct thr_exec *outer = enter(e);

	run_sources(e, true);
	if (!take_turn(e) && e->live && timeout_ns && !has_work(e)) {
		idle(e, timeout_ns);
		take_turn(e);
	}
	while (has_work(e) && turns--)
		take_turn(e);
	leave(e, outer);
	return e->live;
}

int thr_exec_fd(struct thr_exec *e)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int fd;

	if (e->timer_fd >= 0)
		return e->bundle_fd;
	fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (epoll_ctl(e->bundle_fd, EPOLL_CTL_ADD, fd, &ev)) {
		int err = -errno;

		close(fd);
		return err;
	}
	e->timer_fd = fd;
	arm_timer_fd(e);
	return e->bundle_fd;
}

int thr_exec_wake_fd(struct thr_exec *e)
{
	return e->wake_fd;
}

/* ---- sources --------------------------------------------------------------- */

struct thr_source *thr_source_find(struct thr_exec *e, const void *key)
{
	struct thr_source *s = e->sources;

	while (s && s->key != key)
		s = s->next;
	return s;
}

int thr_source_add(struct thr_exec *e, struct thr_source *s)
{
	struct epoll_event ev = {.events = EPOLLIN};

	if (epoll_ctl(e->bundle_fd, EPOLL_CTL_ADD, s->fd, &ev))
		return -errno;
	s->next = e->sources;
	e->sources = s;
	return 0;
}

void thr_exec_close_sources(struct thr_exec *e)
{
	while (e->sources) {
		struct thr_source *s = e->sources;

		e->sources = s->next;
		epoll_ctl(e->bundle_fd, EPOLL_CTL_DEL, s->fd, NULL);
		s->ops->close(s);
	}
}

/* ---- opening and closing ---------------------------------------------------- */

void thr_exec_occupy(struct thr_exec *e)
{
	if (e->pool && !e->holds) {
		e->holds = true;
		thr_pool_hold(e->pool);
	}
}

static int open_fds(struct thr_exec *e)
{
	struct epoll_event ev = {.events = EPOLLIN};

	e->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (e->wake_fd < 0)
		return -errno;
	e->bundle_fd = epoll_create1(EPOLL_CLOEXEC);
	if (e->bundle_fd < 0)
		return -errno;
	if (epoll_ctl(e->bundle_fd, EPOLL_CTL_ADD, e->wake_fd, &ev))
		return -errno;
	return 0;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

int thr_exec_open(struct thr_exec **out, const struct thr_alloc *mem)
{
	struct thr_exec *e = thr_get(mem, sizeof(*e), _Alignof(struct thr_exec));
	int err;

	if (!e)
		return -THR_ENOMEM;
	memset(e, 0, sizeof(*e));
	e->mem = mem;
	e->wake_fd = -1;
	e->bundle_fd = -1;
	e->timer_fd = -1;
	err = open_fds(e);
	if (err) {
		close_fd(e->wake_fd);
		close_fd(e->bundle_fd);
		thr_put(mem, e, sizeof(*e));
		return err;
	}
	thr_remote_arm(e);
	*out = e;
	return 0;
}

void thr_exec_close(struct thr_exec *e)
{
	if (!e)
		return;
	THR_ASSERT(!e->live && !e->cur && thr_ready_empty(e));
	thr_exec_close_sources(e);
	thr_remote_settle(e);
	thr_stack_free_all(e);
	close_fd(e->timer_fd);
	close_fd(e->bundle_fd);
	close_fd(e->wake_fd);
	thr_put(e->mem, e, sizeof(*e));
}
