/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/blk_serve_many.c - the NBD server with many requests at a time, with clients that
 * break the protocol or come and go, and without memory.
 */
#include "serve_util.h"

/* ---- many requests, hostile clients
 * ------------------------------------------------------------- */

static void many_in_flight(void **state)
{
	enum { N = 128 }; /* a socket holds that many, whoever reads first */
	struct rig g;
	bool seen[N] = {false};

	(void)state;
	rig_open(&g, BLK_RDWR);
	g.server.memory = 64 << 10;
	start(&g, "disk", false);
	for (unsigned i = 0; i < N; i++)
		ask(&g, NBDP_CMD_READ, 0, i, 4096 * i, 4096);
	for (unsigned i = 0; i < N; i++) {
		uint64_t cookie;

		assert_int_equal(get32(&g), NBDP_SIMPLE_MAGIC);
		assert_int_equal(get32(&g), 0);
		cookie = get64(&g);
		assert_true(cookie < N && !seen[cookie]);
		seen[cookie] = true;
		data_is(&g, 4096 * cookie, 4096);
	}
	leave(&g);
	rig_close(&g);
}

static void bad_magics(void **state)
{
	static const uint8_t junk[64] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
	struct rig g;
	uint8_t b[28] = {0};

	(void)state;
	rig_open(&g, BLK_RDWR);
	greet(&g, 4);
	expect_end(&g);
	leave(&g);
	greet(&g, 3);
	put(&g, junk, sizeof(junk));
	expect_end(&g);
	leave(&g);
	start(&g, "disk", true);
	put(&g, b, sizeof(b));
	expect_end(&g);
	leave(&g);
	/* Too much of a write that is refused. */
	start(&g, "disk", true);
	ask(&g, NBDP_CMD_WRITE, 0, 0, 0, UINT32_MAX);
	expect_end(&g);
	leave(&g);
	rig_close(&g);
}

static void gone_at_any_byte(void **state)
{
	uint8_t whole[28 + 600] = {0}, b[512];
	struct rig g;
	size_t len;

	(void)state;
	rig_open(&g, BLK_RDWR);
	/* in the handshake */
	len = 16 + go_data(b, "disk", 3);
	thr_put_be64(whole, NBDP_OPT_MAGIC);
	thr_put_be32(whole + 8, NBDP_OPT_GO);
	thr_put_be32(whole + 12, (uint32_t)len - 16);
	memcpy(whole + 16, b, len - 16);
	for (size_t cut = 0; cut <= len; cut++) {
		greet(&g, 3);
		put(&g, whole, cut);
		leave(&g);
	}
	/* in a write */
	memset(whole, 0, sizeof(whole));
	thr_put_be32(whole, NBDP_REQUEST_MAGIC);
	thr_put_be16(whole + 6, NBDP_CMD_WRITE);
	thr_put_be32(whole + 24, 600);
	for (size_t cut = 1; cut <= sizeof(whole); cut += 13) {
		start(&g, "disk", cut & 1);
		put(&g, whole, cut);
		leave(&g);
	}
	/* with replies that nobody takes */
	start(&g, "disk", true);
	for (unsigned i = 0; i < 50; i++)
		ask(&g, NBDP_CMD_READ, 0, i, 0, MIB);
	leave(&g);
	start(&g, "disk", false);
	ask(&g, NBDP_CMD_READ, 0, 0, 0, SIZE);
	pass_over(&g, 16 + 100);
	leave(&g);
	rig_close(&g);
}

static void without_memory(void **state)
{
	struct rig g;
	unsigned n, calls;

	(void)state;
	rig_open(&g, BLK_RDWR);
	start(&g, "disk", true);
	assert_int_equal(read_chunks(&g, 0, 3 * MIB, 0), 1);
	send_write(&g, 0, 3 * MIB, 0);
	leave(&g);
	calls = g.purse.calls;
	assert_true(calls > 4);
	for (n = 1; n <= calls; n++) {
		uint8_t b[64], head[16];

		g.purse.calls = 0;
		g.purse.fail_at = n;
		join(&g);
		/* Whatever the server gives up, what was allocated is given back. */
		memset(b, 0, 4);
		(void)send(g.mine, "\0\0\0\3", 4, MSG_NOSIGNAL);
		thr_put_be64(head, NBDP_OPT_MAGIC);
		thr_put_be32(head + 8, NBDP_OPT_GO);
		thr_put_be32(head + 12, go_data(b, "disk", 0));
		(void)send(g.mine, head, 16, MSG_NOSIGNAL);
		(void)send(g.mine, b, go_data(b, "disk", 0), MSG_NOSIGNAL);
		memset(b, 0, 28);
		thr_put_be32(b, NBDP_REQUEST_MAGIC);
		thr_put_be32(b + 24, 3 * MIB);
		(void)send(g.mine, b, 28, MSG_NOSIGNAL);
		thr_put_be16(b + 6, NBDP_CMD_FLUSH);
		thr_put_be32(b + 24, 0);
		(void)send(g.mine, b, 28, MSG_NOSIGNAL);
		thr_put_be16(b + 6, NBDP_CMD_DISC);
		(void)send(g.mine, b, 28, MSG_NOSIGNAL);
		expect_end(&g);
		leave(&g);
	}
	g.purse.fail_at = 0;
	rig_close(&g);
}

/* ---- listening
 * ----------------------------------------------------------------------------------- */

struct listening {
	struct rig *g;
	int stop;
	struct thr_wait done;
	int ret;
};

static void listen_fiber(void *arg)
{
	struct listening *l = (struct listening *)arg;

	l->ret = blk_nbd_serve(&l->g->server, NULL);
	thr_wait_wake(&l->done);
}

static int connect_to(struct rig *g, const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct timeval patience = {.tv_sec = 20};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(a.sun_path, path);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	g->mine = fd;
	return fd;
}

static void hello(struct rig *g)
{
	uint8_t b[18];

	get(g, b, 18);
	assert_true(thr_be64(b) == NBDP_MAGIC);
	put(g, "\0\0\0\3", 4);
}

static void clients_come_and_go(void **state)
{
	enum { MANY = 100 };
	struct rig g;
	struct listening l = {.g = &g};
	int fd, first, second, many[MANY], refused = 0;
	char byte;

	(void)state;
	rig_open(&g, BLK_RDWR);
	assert_int_equal(blk_nbd_listen_unix("s", &fd, NULL), 0);
	assert_int_not_equal(blk_nbd_listen_unix("s", &first, NULL), 0);
	l.stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	g.server.fds = &fd;
	g.server.nfds = 1;
	g.server.stop_fd = l.stop;
	g.server.clients = 1;
	thr_wait_init(&l.done);
	assert_int_equal(thr_spawn(thr_pool_exec(g.pool, 0), listen_fiber, &l), 0);

	/* One who only looks does not end it. */
	first = connect_to(&g, "s");
	hello(&g);
	opt(&g, NBDP_OPT_ABORT, NULL, 0);
	expect_end(&g);
	close(first);

	first = connect_to(&g, "s");
	hello(&g);
	choose(&g, "disk");
	/* The second one waits until the first has gone. */
	second = connect_to(&g, "s");
	for (int i = 0; i < MANY; i++)
		many[i] = connect_to(&g, "s");
	/* BLK_NBD_WAITING may wait; the others are refused. */
	for (int i = BLK_NBD_WAITING - 1; i < MANY; i++)
		refused += recv(many[i], &byte, 1, 0) <= 0;
	assert_int_equal(refused, MANY - BLK_NBD_WAITING + 1);
	for (int i = 0; i < MANY; i++)
		close(many[i]);
	assert_int_equal(recv(second, &byte, 1, MSG_DONTWAIT), -1);
	g.mine = first;
	ask(&g, NBDP_CMD_DISC, 0, 0, 0, 0);
	expect_end(&g);
	close(first);
	g.mine = second;
	hello(&g);
	choose(&g, "disk");
	assert_int_equal(change(&g, NBDP_CMD_FLUSH, 0, 0, 0), 0);
	assert_int_equal(write(l.stop, "\1\0\0\0\0\0\0\0", 8), 8);
	expect_end(&g);
	thr_wait_block(&l.done);
	assert_int_equal(l.ret, 0);
	close(second);
	close(fd);
	close(l.stop);
	unlink("s");
	thr_pool_close(g.pool);
	g.pool = NULL;
	assert_int_equal(g.purse.live, 0);
	rig_close(&g);
}

/* Half a request and then nothing more, from each client but one. */
static void silence_holds_nobody_up(void **state)
{
	enum { SILENT = 4 };
	struct rig g;
	struct listening l = {.g = &g};
	uint8_t half[28 + 300] = {0};
	int fd, silent[SILENT], last;

	(void)state;
	rig_open(&g, BLK_RDWR);
	assert_int_equal(blk_nbd_listen_unix("s", &fd, NULL), 0);
	l.stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	g.server.fds = &fd;
	g.server.nfds = 1;
	g.server.stop_fd = l.stop;
	g.server.clients = SILENT + 1;
	g.server.memory = 64 << 10;
	thr_wait_init(&l.done);
	assert_int_equal(thr_spawn(thr_pool_exec(g.pool, 0), listen_fiber, &l), 0);
	thr_put_be32(half, NBDP_REQUEST_MAGIC);
	thr_put_be16(half + 6, NBDP_CMD_WRITE);
	thr_put_be32(half + 24, 600);
	for (unsigned i = 0; i < SILENT; i++) {
		silent[i] = connect_to(&g, "s");
		hello(&g);
		choose(&g, "disk");
		/* Within the header, or within the data. */
		put(&g, half, i & 1 ? 13 : sizeof(half));
	}
	last = connect_to(&g, "s");
	hello(&g);
	choose(&g, "disk");
	for (unsigned i = 0; i < 100; i++) {
		ask(&g, NBDP_CMD_READ, 0, i, 4096 * i, 4096);
		assert_int_equal(simple(&g, i), 0);
		data_is(&g, 4096 * i, 4096);
	}
	assert_int_equal(change(&g, NBDP_CMD_FLUSH, 0, 0, 0), 0);
	assert_int_equal(write(l.stop, "\1\0\0\0\0\0\0\0", 8), 8);
	thr_wait_block(&l.done);
	assert_int_equal(l.ret, 0);
	/* Nothing of a write that has not come whole. */
	for (unsigned i = 0; i < 600; i++)
		assert_int_equal(g.disk[i], (uint8_t)(i * 7));
	for (unsigned i = 0; i < SILENT; i++)
		close(silent[i]);
	close(last);
	close(fd);
	close(l.stop);
	unlink("s");
	thr_pool_close(g.pool);
	g.pool = NULL;
	assert_int_equal(g.purse.live, 0);
	rig_close(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_in_flight),
		cmocka_unit_test(bad_magics),
		cmocka_unit_test(gone_at_any_byte),
		cmocka_unit_test(without_memory),
		cmocka_unit_test(clients_come_and_go),
		cmocka_unit_test(silence_holds_nobody_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
