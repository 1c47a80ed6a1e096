/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/blk_nbd_io.c - the driver "nbd" against nbdkit: requests of threads and of
 * fibers of several executors, over one connection and over several; block sizes,
 * errors, servers that die with requests in flight and come back.
 *
 * Whether a request has reached the server by the time that it is killed makes no
 * difference to what is expected.
 */
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "blk_util.h"
#include "thr_team.h"

#define MIB  (1u << 20)
#define SOCK "sock"

/* ---- servers ------------------------------------------------------------------- */

#define ARGS_MAX 16

static pid_t start(const char *const *args)
{
	const char *argv[ARGS_MAX + 8] = {"nbdkit", "-f", "-U", SOCK, "--exit-with-parent"};
	int n = 5;
	pid_t pid;

	while (*args)
		argv[n++] = *args++;
	(void)unlink(SOCK);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		execvp(argv[0], (char **)(uintptr_t)argv);
		_exit(127);
	}
	return pid;
}
#define START(...) start((const char *const[]){__VA_ARGS__, NULL})

static void stop(pid_t pid, int sig)
{
	assert_int_equal(kill(pid, sig), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static int try_open(
	struct blk **b, unsigned flags, const char *key, const char *val, struct blk_err *err)
{
	const struct blk_opt v[] = {{"path", SOCK}, {"open-timeout", "20"}, {key, val}};
	struct blk_opts opts = {.v = v, .n = key ? 3 : 2};
	struct blk_open o = {.driver = "nbd", .flags = flags, .opts = &opts, .mem = &thr_heap};

	return blk_open(b, &o, err);
}

static struct blk *open_with(const char *key, const char *val)
{
	struct blk_err err = BLK_ERR_INIT;
	struct blk *b = NULL;
	int code = try_open(&b, BLK_RDWR, key, val, &err);

	if (code) {
#ifdef CONFIG_BLK_ERR_TEXT
		char text[1024];

		blk_err_text(&err, text, sizeof(text));
		print_message("# %s\n", text);
#endif
		fail();
	}
	return b;
}

/* ---- many at once ---------------------------------------------------------------- */

#define PART  (MIB / 2)
#define TURNS 12

struct crowd {
	struct blk *b;
	uint32_t next;
};

static void fill(uint8_t *buf, size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++)
		buf[i] = (uint8_t)(team_random(&seed) >> 4);
}

/* Each has a part of the disk to itself. */
static int member(void *arg)
{
	struct crowd *c = (struct crowd *)arg;
	uint32_t who = __atomic_fetch_add(&c->next, 1, __ATOMIC_RELAXED);
	uint64_t base = (uint64_t)who * PART;
	uint8_t *model = (uint8_t *)calloc(1, PART), *buf = (uint8_t *)malloc(PART);
	uint32_t seed = who + 1;

	for (int i = 0; i < TURNS; i++) {
		size_t off = team_random(&seed) % PART;
		size_t len = 1 + team_random(&seed) % (PART - off);
		struct thr_iov v[2] = {{buf, len / 3}, {buf + len / 3, len - len / 3}};
		struct blk_req r = {.off = base + off, .len = len, .iov = v, .niov = 2};

		switch (team_random(&seed) % 4) {
		case 0:
			r.iov = NULL;
			r.flags = i % 2 ? BLK_UNMAP : 0u;
			memset(model + off, 0, len);
			CHECK(blk_zero(c->b, &r) == 0);
			break;
		case 1:
			CHECK(blk_flush(c->b) == 0);
			break;
		default:
			r.flags = i % 3 ? 0u : BLK_FUA;
			fill(model + off, len, seed);
			memcpy(buf, model + off, len);
			CHECK(blk_pwritev(c->b, &r) == 0);
		}
		r = (struct blk_req){.off = base, .len = PART, .iov = v, .niov = 2};
		v[0] = (struct thr_iov){buf, PART / 5};
		v[1] = (struct thr_iov){buf + PART / 5, PART - PART / 5};
		memset(buf, 0xee, PART);
		CHECK(blk_preadv(c->b, &r) == 0);
		CHECK(!memcmp(buf, model, PART));
	}
	free(model);
	free(buf);
	return 0;
}

#define CROWD 12

static void crowd(const char *connections)
{
	for (int kind = TEAM_THREADS; kind < TEAM_KINDS; kind++) {
		pid_t pid = START("memory", "32M");
		struct crowd c = {.b = open_with("connections", connections)};

		team_run((enum team_kind)kind, CROWD, member, &c);
		/* The executors are gone; others come. */
		c.next = CROWD;
		team_run(TEAM_FIBERS_3, CROWD, member, &c);
		blk_close(c.b);
		stop(pid, SIGTERM);
	}
}

static void t_one_connection(void **state)
{
	(void)state;
	crowd("1");
}

static void t_connections(void **state)
{
	(void)state;
	crowd("8");
}

static void t_blocks(void **state)
{
	pid_t pid = START("--filter=blocksize-policy", "memory", "4M", "blocksize-minimum=4k",
		"blocksize-preferred=64k", "blocksize-maximum=128k",
		"blocksize-error-policy=error");
	struct crowd c = {.b = open_with(NULL, NULL)};

	(void)state;
	assert_int_equal(c.b->align, 4096);
	assert_int_equal(c.b->zero_align, 65536);
	assert_int_equal(c.b->max_io, 131072);
	team_run(TEAM_FIBERS_3, 6, member, &c);
	assert_int_equal(member(&c), 0);
	team_verdict();
	blk_close(c.b);
	stop(pid, SIGTERM);
}

/* ---- what it is and can do --------------------------------------------------------- */

static void t_status(void **state)
{
	pid_t pid = START("memory", "1G");
	struct blk *b = open_with(NULL, NULL);
	struct blk_req all = {.len = 1u << 30, .flags = BLK_UNMAP};
	struct blk_extent e;
	uint8_t buf[512];

	(void)state;
	memset(buf, 7, sizeof(buf));
	assert_true(blk_size(b) == 1u << 30);
	assert_int_equal(blk_status(b, 5, (1u << 30) - 5, &e), 0);
	assert_true(e.len == (1u << 30) - 5);
	assert_int_equal(e.flags, BLK_EXT_ALLOC | BLK_EXT_ZERO);
	assert_int_equal(blk_pwrite(b, 512 * MIB, buf, sizeof(buf)), 0);
	assert_int_equal(blk_status(b, 0, 1u << 30, &e), 0);
	assert_true(e.len <= 512 * MIB);
	assert_int_equal(e.flags, BLK_EXT_ALLOC | BLK_EXT_ZERO);
	assert_int_equal(blk_status(b, 512 * MIB, MIB, &e), 0);
	assert_int_equal(e.flags, BLK_EXT_ALLOC | BLK_EXT_DATA);
	assert_int_equal(blk_zero(b, &all), 0);
	assert_int_equal(blk_status(b, 512 * MIB, MIB, &e), 0);
	assert_int_equal(e.flags, BLK_EXT_ALLOC | BLK_EXT_ZERO);
	assert_int_equal(blk_discard(b, &all), 0);
	assert_int_equal(blk_pread(b, (1u << 30) - 1, buf, 2), -THR_EINVAL);
	assert_int_equal(blk_flush(b), 0);
	blk_close(b);
	stop(pid, SIGTERM);
}

static void t_read_only(void **state)
{
	pid_t pid = START("-r", "memory", "1M");
	struct blk_err err = BLK_ERR_INIT;
	struct blk *b;
	char c;

	(void)state;
	assert_int_equal(try_open(&b, BLK_RDWR, NULL, NULL, &err), -THR_EACCES);
	assert_int_equal(err.id, BLK_E_READ_ONLY);
	assert_int_equal(try_open(&b, 0, NULL, NULL, &err), 0);
	assert_int_equal(blk_pread(b, MIB - 1, &c, 1), 0);
	assert_int_equal(blk_pwrite(b, 0, &c, 1), -THR_EROFS);
	blk_close(b);
	stop(pid, SIGTERM);
}

/* A server that can do nothing but read and write. */
static void t_bare(void **state)
{
	pid_t pid = START("--filter=nozero", "--filter=fua", "--filter=noextents",
		"--filter=nocache", "memory", "1M");
	struct blk *b = open_with(NULL, NULL);
	struct blk_req r = {.off = 3, .len = 1000, .flags = BLK_NO_FALLBACK};
	struct blk_extent e;
	uint8_t buf[1003];

	(void)state;
	memset(buf, 7, sizeof(buf));
	assert_false(b->fua);
	assert_int_equal(blk_pwrite(b, 0, buf, sizeof(buf)), 0);
	assert_int_equal(blk_zero(b, &r), -THR_ENOTSUP);
	r.flags = BLK_FUA;
	assert_int_equal(blk_zero(b, &r), 0);
	assert_int_equal(blk_pread(b, 0, buf, sizeof(buf)), 0);
	assert_int_equal(buf[2], 7);
	assert_int_equal(buf[3], 0);
	assert_int_equal(buf[1002], 0);
	assert_int_equal(blk_status(b, 9, MIB - 9, &e), 0);
	assert_int_equal(e.flags, BLK_EXT_ALLOC | BLK_EXT_DATA);
	assert_true(e.len == MIB - 9);
	blk_close(b);
	stop(pid, SIGTERM);
}

static void t_errors(void **state)
{
	pid_t pid = START("--filter=error", "memory", "1M", "error-pwrite=ENOSPC",
		"error-pwrite-rate=100%", "error-pread=EIO", "error-pread-rate=100%",
		"error-extents=EIO", "error-extents-rate=100%");
	struct blk *b = open_with(NULL, NULL);
	struct blk_extent e;
	char buf[64] = {0};

	(void)state;
	assert_int_equal(blk_pwrite(b, 0, buf, sizeof(buf)), -THR_ENOSPC);
	assert_int_equal(blk_pread(b, 0, buf, sizeof(buf)), -THR_EIO);
	assert_int_equal(blk_status(b, 0, MIB, &e), -THR_EIO);
	assert_int_equal(blk_flush(b), 0);
	blk_close(b);
	stop(pid, SIGTERM);
}

static int name_of(void *arg, const char *name, const char *description)
{
	char *all = (char *)arg;

	(void)description;
	strcat(strcat(all, name), ";");
	return all[0] == 'q';
}

static void t_list(void **state)
{
	const struct blk_opt v[] = {{"path", SOCK}};
	struct blk_opts opts = {.v = v, .n = 1};
	struct blk_open o = {.opts = &opts, .mem = &thr_heap};
	char all[256] = "";
	struct blk *b;
	FILE *f;
	pid_t pid;

	(void)state;
	assert_int_equal(mkdir("dir", 0700), 0);
	f = fopen("dir/one", "w");
	assert_non_null(f);
	fclose(f);
	pid = START("file", "dir=dir");
	/* It is there once it says that there is no such export. */
	assert_int_not_equal(try_open(&b, 0, "export", "two", NULL), 0);
	assert_int_equal(blk_nbd_list(&o, name_of, all, NULL), 0);
	assert_string_equal(all, "one;");
	strcpy(all, "q");
	assert_int_equal(blk_nbd_list(&o, name_of, all, NULL), 1);
	stop(pid, SIGTERM);
	assert_true(blk_nbd_list(&o, name_of, all, NULL) < 0);
}

/* ---- servers that die ------------------------------------------------------------------ */

struct victim {
	struct blk *b;
	uint32_t started;
	int want;
};

static int hang(void *arg)
{
	struct victim *v = (struct victim *)arg;
	uint8_t buf[4096];

	memset(buf, 0, sizeof(buf));
	__atomic_fetch_add(&v->started, 1, __ATOMIC_RELAXED);
	CHECK(blk_pread(v->b, 8192, buf, sizeof(buf)) == v->want);
	CHECK(v->want || buf[17] == 0x42);
	return 0;
}

/* Fibers of several executors and the thread that kills. */
static void kill_under(struct victim *v, pid_t *pid, const char *const *again)
{
	struct thr_pool *p;
	struct thr_group g;

	assert_int_equal(thr_pool_open(&p, 3, &thr_heap), 0);
	thr_group_init(&g);
	for (unsigned i = 0; i < 9; i++)
		assert_int_equal(thr_group_spawn(&g, thr_pool_exec(p, i % 3), hang, v), 0);
	while (__atomic_load_n(&v->started, __ATOMIC_RELAXED) < 9)
		thr_sleep(1000000);
	stop(*pid, SIGKILL);
	*pid = again ? start(again) : 0;
	CHECK(thr_group_wait(&g) == 0);
	thr_pool_close(p);
	team_verdict();
}

static void t_killed(void **state)
{
	pid_t pid = START("--filter=delay", "memory", "1M", "rdelay=50");
	struct victim v = {.b = open_with(NULL, NULL), .want = -THR_ENOTCONN};
	char c;

	(void)state;
	kill_under(&v, &pid, NULL);
	assert_int_equal(blk_pread(v.b, 0, &c, 1), -THR_ENOTCONN);
	blk_close(v.b);
}

static void make_disk(void)
{
	FILE *f = fopen("disk", "w");

	assert_non_null(f);
	for (unsigned i = 0; i < MIB; i++)
		fputc(0x42, f);
	assert_int_equal(fclose(f), 0);
}

static void t_back_again(void **state)
{
	static const char *const again[] = {"file", "disk", NULL};
	struct victim v = {.want = 0};
	struct blk_req r = {.len = 512};
	char c = 1;
	pid_t pid;

	(void)state;
	make_disk();
	pid = START("--filter=delay", "file", "disk", "rdelay=50");
	v.b = open_with("reconnect-delay", "20");
	kill_under(&v, &pid, again);
	/* Nothing was written, so nothing is lost. */
	assert_int_equal(blk_flush(v.b), 0);
	assert_int_equal(blk_pwrite(v.b, 0, &c, 1), 0);
	assert_int_equal(blk_flush(v.b), 0);
	stop(pid, SIGKILL);
	pid = start(again);
	assert_int_equal(blk_pread(v.b, 0, &c, 1), 0);
	assert_int_equal(c, 1);
	assert_int_equal(blk_flush(v.b), 0);
	/* A write that no flush has covered. */
	assert_int_equal(blk_zero(v.b, &r), 0);
	stop(pid, SIGKILL);
	pid = start(again);
	assert_int_equal(blk_pread(v.b, 0, &c, 1), 0);
	assert_int_equal(blk_flush(v.b), -THR_EIO);
	blk_close(v.b);
	stop(pid, SIGTERM);
}

/* Another disk than before is not gone on with. */
static void t_other_disk(void **state)
{
	pid_t pid = START("memory", "1M");
	struct blk *b = open_with("reconnect-delay", "20");
	char c;

	(void)state;
	stop(pid, SIGKILL);
	pid = START("memory", "2M");
	assert_int_equal(blk_pread(b, 0, &c, 1), -THR_ENOTCONN);
	blk_close(b);
	stop(pid, SIGTERM);
}

/* ---- hints ---------------------------------------------------------------------------- */

static bool log_has(const char *words)
{
	char line[512];
	bool found = false;
	FILE *f = fopen("kit.log", "r");

	assert_non_null(f);
	while (!found && fgets(line, sizeof(line), f))
		found = strstr(line, words);
	fclose(f);
	return found;
}

static void t_prefetch(void **state)
{
	struct blk *b;
	pid_t pid;

	(void)state;
	pid = START("--filter=log", "--filter=blocksize-policy", "memory", "1M",
		"logfile=kit.log", "blocksize-minimum=4096", "blocksize-preferred=4096",
		"blocksize-maximum=64K", "blocksize-error-policy=error");
	b = open_with(NULL, NULL);
	assert_int_equal(blk_prefetch(b, 5000, 4000), 0);
	assert_int_equal(blk_prefetch(b, MIB, 1), -THR_EINVAL);
	blk_close(b);
	stop(pid, SIGTERM);
	assert_true(log_has("Cache id=1 offset=0x1000 count=0x2000"));

	pid = START("--filter=nocache", "memory", "1M", "cachemode=none");
	b = open_with(NULL, NULL);
	assert_int_equal(blk_prefetch(b, 0, 4096), -THR_ENOTSUP);
	blk_close(b);
	stop(pid, SIGTERM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_one_connection),
		cmocka_unit_test(t_connections),
		cmocka_unit_test(t_blocks),
		cmocka_unit_test(t_status),
		cmocka_unit_test(t_read_only),
		cmocka_unit_test(t_bare),
		cmocka_unit_test(t_errors),
		cmocka_unit_test(t_list),
		cmocka_unit_test(t_prefetch),
		cmocka_unit_test(t_killed),
		cmocka_unit_test(t_back_again),
		cmocka_unit_test(t_other_disk),
	};

	if (system("nbdkit --version >/dev/null 2>&1")) {
		puts("1..0 # SKIP nbdkit is not installed");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
