/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Every engine of the file driver, in a plain thread and in fibers on two executors,
 * with and without O_DIRECT: random requests against a model in memory, more requests
 * at a time than a ring holds, flushes that share, errors, signals, foreign event
 * loops, a kernel that forbids the rings.
 *
 * The program has its own fdatasync, which can be held up and counted.
 */
#include "t/unit/file_util.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#define KIB    1024u
#define STRIPE (64 * KIB)
#define FIBERS 8u
#define LONG   (STRIPE * FIBERS * 2 + 777) /* the last one is odd */

static const char *const engines[] = {"sync", "threads", "aio", "uring", "auto"};

/* NULL, with a line that says why, if it cannot work here. */
static struct blk *try_open(const char *name, unsigned flags, const char *engine)
{
	struct blk_err err = BLK_ERR_INIT;
	struct blk *b = NULL;

	if (!t_open(&b, name, flags, engine, &err))
		return b;
	if (err.id != BLK_E_NO_ENGINE && err.id != BLK_E_NO_DIRECT)
		fail_msg("error %d", err.id);
	print_message("# not here: engine %s, flags %#x\n", engine, flags);
	return NULL;
}

/* ---- random requests against a model ------------------------------------------- */

struct worker {
	struct blk *b;
	uint8_t *model; /* of the whole file; each worker changes its stripe only */
	uint64_t at, len;
	uint64_t seed;
	unsigned ops;
};

static int random_write(struct worker *w, uint64_t off, size_t len, uint8_t *buf)
{
	struct thr_iov v[3];
	struct blk_req r = {.off = off, .len = len, .iov = v, .niov = 3, .iov_off = 1};
	size_t a = t_rand(&w->seed) % len;

	t_noise(w->model + off, len, t_rand(&w->seed));
	memcpy(buf + 1, w->model + off, len);
	v[0] = (struct thr_iov){buf, a + 1};
	v[1] = (struct thr_iov){buf + a + 1, 0};
	v[2] = (struct thr_iov){buf + a + 1, len - a};
	r.flags = t_rand(&w->seed) % 64 ? 0 : BLK_FUA;
	return blk_pwritev(w->b, &r);
}

static int random_zero(struct worker *w, uint64_t off, size_t len)
{
	struct blk_req r = {.off = off, .len = len};

	r.flags = t_rand(&w->seed) % 2 ? BLK_UNMAP : 0;
	memset(w->model + off, 0, len);
	return blk_zero(w->b, &r);
}

static int random_read(struct worker *w, uint64_t off, size_t len, uint8_t *buf)
{
	int ret;

	memset(buf, 0x55, len);
	ret = blk_pread(w->b, off, buf, len);
	if (!ret && memcmp(buf, w->model + off, len))
		ret = -EILSEQ;
	return ret;
}

static int work(void *arg)
{
	struct worker *w = (struct worker *)arg;
	uint8_t *buf = NULL;
	struct blk_extent e;
	int ret = 0;

	if (posix_memalign((void **)&buf, 4096, STRIPE + 4096))
		return -ENOMEM;
	for (unsigned i = 0; !ret && i < w->ops; i++) {
		uint64_t off = w->at + t_rand(&w->seed) % w->len;
		size_t len = 1 + t_rand(&w->seed) % (w->at + w->len - off);
		unsigned what = t_rand(&w->seed) % 32;

		if (what < 16 && len > 4096) {
			off &= ~4095ull;
			len &= ~4095u;
		}
		if (off < w->at)
			continue;
		if (what == 0)
			ret = blk_flush(w->b);
		else if (what == 1)
			ret = random_zero(w, off, len);
		else if (what == 2)
			ret = blk_status(w->b, off, len, &e);
		else if (what % 2)
			ret = random_write(w, off, len, buf);
		else
			ret = random_read(w, off, len, buf);
	}
	free(buf);
	return ret;
}

struct job {
	struct blk *b;
	uint8_t *model;
	unsigned ops;
};

static void init_worker(const struct job *j, struct worker *w, unsigned i, unsigned n)
{
	w->b = j->b;
	w->model = j->model;
	w->len = LONG / n / 3 * 2 + 1; /* unaligned */
	w->at = i * w->len;
	if (i == n - 1)
		w->len = LONG - w->at;
	if (w->len > STRIPE) {
		w->at += w->len - STRIPE;
		w->len = STRIPE;
	}
	w->seed = i + 1;
	w->ops = j->ops;
}

static int in_fibers(void *arg)
{
	struct job *j = (struct job *)arg;
	struct thr_pool *p = thr_pool_self();
	unsigned n = FIBERS * thr_pool_count(p);
	struct worker *w = calloc(n, sizeof(*w));
	struct thr_group g;
	int ret;

	thr_group_init(&g);
	for (unsigned i = 0; i < n; i++) {
		init_worker(j, &w[i], i, n);
		thr_group_spawn(&g, thr_pool_exec(p, i % thr_pool_count(p)), work, &w[i]);
	}
	ret = thr_group_wait(&g);
	free(w);
	return ret;
}

static int in_thread(struct job *j)
{
	struct worker w;

	init_worker(j, &w, 0, 1);
	return work(&w);
}

static void one_model(const char *engine, unsigned flags, struct thr_pool *pool)
{
	uint8_t *model = malloc(LONG), *got = malloc(LONG);
	struct job j = {.model = model, .ops = 80};

	t_noise(model, LONG, 9);
	t_put_file("model.img", model, LONG);
	j.b = try_open("model.img", BLK_RDWR | flags, engine);
	if (j.b) {
		assert_int_equal(pool ? thr_pool_run(pool, in_fibers, &j) : in_thread(&j), 0);
		assert_int_equal(blk_size(j.b), LONG);
		assert_int_equal(blk_flush(j.b), 0);
		assert_int_equal(blk_pread(j.b, 0, got, LONG), 0);
		assert_memory_equal(got, model, LONG);
		blk_close(j.b);
		t_get_file("model.img", got, LONG);
		assert_memory_equal(got, model, LONG);
	}
	free(model);
	free(got);
}

static void model_all(unsigned flags)
{
	struct thr_pool *pool;

	assert_int_equal(thr_pool_open(&pool, 2, &thr_heap), 0);
	for (size_t i = 0; i < THR_ARRAY_SIZE(engines); i++) {
		one_model(engines[i], flags, NULL);
		one_model(engines[i], flags, pool);
		one_model(engines[i], flags | BLK_FIXED_SIZE, pool);
	}
	thr_pool_close(pool);
}

static void test_model_buffered(void **state)
{
	(void)state;
	model_all(0);
}

static void test_model_direct(void **state)
{
	(void)state;
	if (!t_direct_works())
		t_skip("no O_DIRECT on this file system");
	model_all(BLK_NOCACHE);
}

static void tick(int sig)
{
	(void)sig;
}

static void test_model_signals(void **state)
{
	struct sigaction sa = {.sa_handler = tick};
	struct itimerval every = {{0, 2000}, {0, 2000}};
	struct itimerval never = {{0, 0}, {0, 0}};

	(void)state;
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	model_all(t_direct_works() ? BLK_NOCACHE : 0);
	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_IGN); /* one may be on its way */
}

/* ---- more requests than a ring holds ---------------------------------------------- */

enum { MANY = 700, BLOCK = 4096, TOTAL = MANY * BLOCK };

struct many {
	struct blk *b;
	uint8_t *data;
	uint8_t *got;
	unsigned next;
	bool write;
};

static int one_block(void *arg)
{
	struct many *m = (struct many *)arg;
	unsigned i = m->next++;
	int ret;

	if (m->write)
		return blk_pwrite(m->b, i * BLOCK, m->data + i * BLOCK, BLOCK);
	ret = blk_pread(m->b, i * BLOCK, m->got + i * BLOCK, BLOCK);
	if (!ret && memcmp(m->got + i * BLOCK, m->data + i * BLOCK, BLOCK))
		ret = -EILSEQ;
	return ret;
}

static int many_blocks(void *arg)
{
	struct many *m = (struct many *)arg;
	struct thr_group g;

	m->next = 0;
	thr_group_init(&g);
	for (unsigned i = 0; i < MANY; i++)
		thr_group_spawn(&g, NULL, one_block, m);
	return thr_group_wait(&g);
}

static void many_on(const char *engine, unsigned flags, struct thr_pool *pool)
{
	struct many m = {.b = try_open("many.img", BLK_RDWR | flags, engine)};

	if (!m.b)
		return;
	assert_int_equal(posix_memalign((void **)&m.data, BLOCK, 2 * TOTAL), 0);
	m.got = m.data + TOTAL;
	t_noise(m.data, TOTAL, 11);
	m.write = true;
	assert_int_equal(thr_pool_run(pool, many_blocks, &m), 0);
	m.write = false;
	assert_int_equal(thr_pool_run(pool, many_blocks, &m), 0);
	assert_int_equal(blk_size(m.b), TOTAL);
	blk_close(m.b);
	free(m.data);
}

static void test_more_than_a_ring(void **state)
{
	unsigned flags = t_direct_works() ? BLK_NOCACHE : 0;
	struct thr_pool *pool;

	(void)state;
	assert_int_equal(thr_pool_open(&pool, 1, &thr_heap), 0);
	for (size_t i = 0; i < THR_ARRAY_SIZE(engines); i++) {
		t_put_file("many.img", "", 0);
		many_on(engines[i], flags, pool);
		if (flags)
			many_on(engines[i], 0, pool);
	}
	thr_pool_close(pool);
}

/* ---- flushes --------------------------------------------------------------------- */

static struct {
	unsigned calls;  /* atomic */
	bool hold;       /* atomic: the next call waits until it is cleared */
	unsigned inside; /* atomic */
	int error;
} sync_hook;

int fdatasync(int fd)
{
	(void)fd;
	__atomic_fetch_add(&sync_hook.calls, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&sync_hook.inside, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&sync_hook.hold, __ATOMIC_SEQ_CST))
		usleep(100);
	__atomic_store_n(&sync_hook.inside, 0, __ATOMIC_SEQ_CST);
	errno = sync_hook.error;
	return sync_hook.error ? -1 : 0;
}

struct flushes {
	struct blk *b;
	unsigned arrived;
	unsigned failed;
};

static int flusher(void *arg)
{
	struct flushes *f = (struct flushes *)arg;
	int ret;

	f->arrived++;
	ret = blk_flush(f->b);
	if (ret)
		f->failed++;
	return 0;
}

/* One flush is at the device; five more come and share the next one. */
static int share_flush(void *arg)
{
	struct flushes *f = (struct flushes *)arg;
	struct thr_group g;

	thr_group_init(&g);
	__atomic_store_n(&sync_hook.hold, true, __ATOMIC_SEQ_CST);
	thr_group_spawn(&g, NULL, flusher, f);
	while (!__atomic_load_n(&sync_hook.inside, __ATOMIC_SEQ_CST))
		thr_yield();
	for (unsigned i = 0; i < 5; i++)
		thr_group_spawn(&g, NULL, flusher, f);
	while (f->arrived < 6)
		thr_yield();
	__atomic_store_n(&sync_hook.hold, false, __ATOMIC_SEQ_CST);
	return thr_group_wait(&g);
}

static void test_flushes_share(void **state)
{
	struct flushes f = {.arrived = 0};
	struct thr_pool *pool;

	(void)state;
	t_put_file("flush.img", "x", 1);
	f.b = t_must_open("flush.img", BLK_RDWR, "sync");
	assert_int_equal(thr_pool_open(&pool, 1, &thr_heap), 0);
	sync_hook.calls = 0;
	assert_int_equal(thr_pool_run(pool, share_flush, &f), 0);
	assert_int_equal(sync_hook.calls, 2);
	assert_int_equal(f.failed, 0);
	f.arrived = 0;
	sync_hook.error = EIO;
	assert_int_equal(thr_pool_run(pool, share_flush, &f), 0);
	/* All that came before the failure was known share it; none asks again. */
	assert_int_equal(sync_hook.calls, 3);
	assert_int_equal(f.failed, 6);
	sync_hook.error = 0;
	assert_int_equal(blk_flush(f.b), -EIO);
	assert_int_equal(sync_hook.calls, 3);
	blk_close(f.b);
	thr_pool_close(pool);
}

/* ---- errors ---------------------------------------------------------------------- */

static int past_the_end(void *arg)
{
	struct blk *b = (struct blk *)arg;
	static uint8_t buf[8192] __attribute__((aligned(4096)));

	if (blk_pread(b, 0, buf, 4096))
		return 1;
	if (blk_pread(b, 4096, buf, 8192) != -EIO)
		return 2;
	return blk_pread(b, 40960, buf, 4096) == -EIO ? 0 : 3;
}

static int beyond_limit(void *arg)
{
	struct blk *b = (struct blk *)arg;
	static uint8_t buf[65536] __attribute__((aligned(4096)));
	int ret = blk_pwrite(b, 65536, buf, sizeof(buf));

	return ret == -EFBIG ? 0 : ret ? ret : 1;
}

static void errors_on(const char *engine, unsigned flags, struct thr_pool *pool)
{
	static uint8_t data[65536];
	struct rlimit old, low;
	struct blk *b;
	int ret;

	t_put_file("gone.img", data, sizeof(data));
	b = try_open("gone.img", BLK_RDWR | flags, engine);
	if (!b)
		return;
	assert_int_equal(truncate("gone.img", 8192), 0);
	assert_int_equal(thr_pool_run(pool, past_the_end, b), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	low = old;
	low.rlim_cur = 98304;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	ret = thr_pool_run(pool, beyond_limit, b);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(ret, 0);
	assert_int_equal(blk_size(b), 65536);
	blk_close(b);
}

static void test_errors(void **state)
{
	struct thr_pool *pool;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(thr_pool_open(&pool, 1, &thr_heap), 0);
	for (size_t i = 0; i < THR_ARRAY_SIZE(engines); i++) {
		errors_on(engines[i], 0, pool);
		if (t_direct_works())
			errors_on(engines[i], BLK_NOCACHE, pool);
	}
	thr_pool_close(pool);
	signal(SIGXFSZ, SIG_DFL);
}

/* ---- a foreign event loop ---------------------------------------------------------- */

static void looped(void *arg)
{
	struct many *m = (struct many *)arg;

	for (unsigned i = 0; i < 20; i++) {
		int ret = one_block(m);

		if (ret)
			fail_msg("request %u: %d", i, ret);
	}
}

static void test_foreign_loop(void **state)
{
	unsigned flags = t_direct_works() ? BLK_NOCACHE : 0;
	struct many m = {.write = true};
	struct thr_exec *e;

	(void)state;
	assert_int_equal(posix_memalign((void **)&m.data, BLOCK, TOTAL), 0);
	memset(m.data, 3, TOTAL);
	for (size_t i = 0; i < THR_ARRAY_SIZE(engines); i++) {
		struct pollfd p = {.events = POLLIN};

		t_put_file("loop.img", "", 0);
		m.b = try_open("loop.img", BLK_RDWR | flags, engines[i]);
		if (!m.b)
			continue;
		m.next = 0;
		assert_int_equal(thr_exec_open(&e, &thr_heap), 0);
		p.fd = thr_exec_fd(e);
		for (unsigned k = 0; k < 10; k++)
			assert_int_equal(thr_spawn(e, looped, &m), 0);
		while (thr_exec_poll(e, 0))
			assert_int_equal(poll(&p, 1, 20000), 1);
		thr_exec_close(e);
		assert_int_equal(blk_size(m.b), 200 * BLOCK);
		blk_close(m.b);
	}
	free(m.data);
}

/* ---- a kernel that says no ----------------------------------------------------------- */

/* From now on @a and @b are not implemented, in all threads of the process. */
static bool forbid(int a, int b)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)a, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)b, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {THR_ARRAY_SIZE(code), code};

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &prog);
}

static int blocks_on(const char *engine, unsigned flags, struct thr_pool *pool)
{
	struct many m = {.write = true};
	int ret = t_open(&m.b, "many.img", BLK_RDWR | flags, engine, NULL);

	if (ret)
		return ret;
	if (posix_memalign((void **)&m.data, BLOCK, 2 * TOTAL))
		return -ENOMEM;
	m.got = m.data + TOTAL;
	t_noise(m.data, TOTAL, 12);
	ret = thr_pool_run(pool, many_blocks, &m);
	m.write = false;
	if (!ret)
		ret = thr_pool_run(pool, many_blocks, &m);
	blk_close(m.b);
	free(m.data);
	return ret;
}

/* In a child: 77 if there is no seccomp. */
static int child_without_rings(unsigned flags)
{
	struct thr_pool *pool;
	struct blk_err err = BLK_ERR_INIT;
	struct blk *b;

	if (!forbid(SYS_io_uring_setup, SYS_io_setup))
		return 77;
	if (thr_pool_open(&pool, 1, &thr_heap))
		return 1;
#ifdef CONFIG_BLK_FILE_URING
	if (!t_open(&b, "many.img", flags, "uring", &err) || err.id != BLK_E_NO_ENGINE)
		return 2;
#endif
#ifdef CONFIG_BLK_FILE_AIO
	if (!t_open(&b, "many.img", flags, "aio", &err) || err.id != BLK_E_NO_ENGINE)
		return 3;
#endif
	if (blocks_on("auto", flags, pool))
		return 4;
	thr_pool_close(pool);
	(void)b;
	(void)err;
	return 0;
}

/* In a child: the rings are there, and then refuse to work. */
static int child_with_dead_rings(unsigned flags)
{
	static const char *const with_rings[] = {"aio", "uring", "auto"};
	struct thr_pool *pool;

	if (thr_pool_open(&pool, 1, &thr_heap))
		return 1;
	for (size_t i = 0; i < THR_ARRAY_SIZE(with_rings); i++)
		blocks_on(with_rings[i], flags, pool);
	if (!forbid(SYS_io_uring_enter, SYS_io_submit)) {
		thr_pool_close(pool);
		return 77;
	}
	for (size_t i = 0; i < THR_ARRAY_SIZE(with_rings); i++) {
		int ret = blocks_on(with_rings[i], flags, pool);

		if (ret && ret != -ENOTSUP) {
			print_message("# %s: %d\n", with_rings[i], ret);
			return 3;
		}
	}
	thr_pool_close(pool);
	return 0;
}

static void in_child(int (*fn)(unsigned flags))
{
	unsigned flags = t_direct_works() ? BLK_NOCACHE : 0;
	int status;
	pid_t pid;

	t_put_file("many.img", "", 0);
	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(fn(flags));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		t_skip("no seccomp here");
	assert_int_equal(status, 0);
}

static void test_rings_forbidden(void **state)
{
	(void)state;
	in_child(child_without_rings);
}

static void test_rings_die(void **state)
{
	(void)state;
	in_child(child_with_dead_rings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* The children first: no threads yet. */
		cmocka_unit_test(test_rings_forbidden),
		cmocka_unit_test(test_rings_die),
		cmocka_unit_test(test_model_buffered),
		cmocka_unit_test(test_model_direct),
		cmocka_unit_test(test_model_signals),
		cmocka_unit_test(test_more_than_a_ring),
		cmocka_unit_test(test_flushes_share),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_foreign_loop),
	};

	return cmocka_run_group_tests_name("blk_engine", tests, NULL, NULL);
}
