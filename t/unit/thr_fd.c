/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/thr_fd.c - fibers that wait for descriptors: both directions, a peer that hangs
 * up, cancelling, and an event that comes before anybody waits.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "thr_team.h"

#define TOTAL (4u << 20)

static void pair(int sv[2])
{
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sv));
}

struct side {
	int fd;
	bool sends;
};

/* One sends and one receives numbered bytes, through a socket that holds few. */
static int move(void *arg)
{
	struct side *s = (struct side *)arg;
	struct thr_fd f;
	size_t done = 0;
	uint8_t buf[3000];

	CHECK(thr_fd_open(&f, s->fd) == 0);
	while (done < TOTAL) {
		ssize_t n;

		for (size_t i = 0; s->sends && i < sizeof(buf); i++)
			buf[i] = (uint8_t)((done + i) % 251);
		n = s->sends ? send(s->fd, buf, THR_MIN(sizeof(buf), TOTAL - done), 0)
			     : recv(s->fd, buf, sizeof(buf), 0);
		if (n < 0) {
			CHECK(errno == EAGAIN);
			CHECK(thr_fd_wait(&f, s->sends ? THR_FD_OUT : THR_FD_IN) == 0);
			continue;
		}
		for (ssize_t i = 0; !s->sends && i < n; i++)
			if (buf[i] != (done + (size_t)i) % 251) {
				CHECK(false);
				return 0;
			}
		done += (size_t)n;
	}
	thr_fd_close(&f);
	return 0;
}

static int both_ways(void *arg)
{
	struct thr_pool *p = thr_pool_self();
	struct thr_group g;
	int sv[2];
	struct side a, b;

	(void)arg;
	pair(sv);
	a = (struct side){sv[0], true};
	b = (struct side){sv[1], false};
	thr_group_init(&g);
	CHECK(thr_group_spawn(&g, NULL, move, &a) == 0);
	CHECK(thr_group_spawn(&g, p ? thr_pool_exec(p, 0) : NULL, move, &b) == 0);
	CHECK(thr_group_wait(&g) == 0);
	close(sv[0]);
	close(sv[1]);
	return 0;
}

static void moves_data(void **state)
{
	(void)state;
	team_run(TEAM_FIBERS_1, 4, both_ways, NULL);
	team_run(TEAM_FIBERS_3, 6, both_ways, NULL);
}

static int poke(void *arg)
{
	struct thr_fd *f = (struct thr_fd *)arg;

	thr_sleep(2000000);
	thr_fd_cancel(f);
	return 0;
}

static int hang_up(void *arg)
{
	int *fd = (int *)arg;

	thr_sleep(2000000);
	close(*fd);
	return 0;
}

static int ends_body(void *arg)
{
	struct thr_group g;
	struct thr_fd f;
	int sv[2];
	char c;

	(void)arg;
	pair(sv);
	CHECK(thr_fd_open(&f, sv[0]) == 0);
	/* There is room from the beginning, and what is there before the wait ends it. */
	CHECK(thr_fd_wait(&f, THR_FD_OUT) == 0);
	CHECK(write(sv[1], "x", 1) == 1);
	CHECK(thr_fd_wait(&f, THR_FD_IN) == 0);
	CHECK(read(sv[0], &c, 1) == 1 && c == 'x');
	/* A peer that goes ends this wait and all that follow. */
	thr_group_init(&g);
	CHECK(thr_group_spawn(&g, NULL, hang_up, &sv[1]) == 0);
	while (read(sv[0], &c, 1) < 0)
		CHECK(thr_fd_wait(&f, THR_FD_IN) == 0);
	CHECK(thr_fd_wait(&f, THR_FD_IN) == 0);
	CHECK(thr_fd_wait(&f, THR_FD_IN) == 0);
	CHECK(thr_group_wait(&g) == 0);
	thr_fd_close(&f);
	close(sv[0]);
	return 0;
}

static void ends(void **state)
{
	(void)state;
	team_run(TEAM_FIBERS_1, 8, ends_body, NULL);
	team_run(TEAM_FIBERS_3, 9, ends_body, NULL);
}

static int cancel_body(void *arg)
{
	struct thr_group g;
	struct thr_fd f;
	int sv[2], file;

	(void)arg;
	pair(sv);
	CHECK(thr_fd_open(&f, sv[0]) == 0);
	thr_group_init(&g);
	CHECK(thr_group_spawn(&g, NULL, poke, &f) == 0);
	while (!thr_fd_wait(&f, THR_FD_IN))
		;
	CHECK(thr_fd_wait(&f, THR_FD_IN) == -THR_ECANCELED);
	CHECK(thr_fd_wait(&f, THR_FD_OUT) == -THR_ECANCELED);
	CHECK(thr_group_wait(&g) == 0);
	thr_fd_close(&f);
	close(sv[0]);
	close(sv[1]);
	file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	CHECK(thr_fd_open(&f, file) == -THR_EPERM);
	close(file);
	return 0;
}

static void cancels(void **state)
{
	(void)state;
	team_run(TEAM_FIBERS_3, 9, cancel_body, NULL);
}

/* An event loop of somebody else's. */
static void spawn_move(void *arg)
{
	CHECK(both_ways(arg) == 0);
}

static void foreign_loop(void **state)
{
	struct thr_exec *e;

	(void)state;
	assert_int_equal(thr_exec_open(&e, &thr_heap), 0);
	assert_int_equal(thr_spawn(e, spawn_move, NULL), 0);
	while (thr_exec_poll(e, 1000000000))
		;
	thr_exec_close(e);
	team_verdict();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(moves_data),
		cmocka_unit_test(ends),
		cmocka_unit_test(cancels),
		cmocka_unit_test(foreign_loop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
