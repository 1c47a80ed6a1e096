/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The file driver from a plain thread: what it opens and refuses, short and
 * interrupted system calls, odd lengths with O_DIRECT, holes, zeroing, lengths,
 * limits.
 *
 * The program has its own pread, pwrite and fdatasync, which the library is linked
 * with: they make calls short, interrupt them and count them.
 */
#include "t/unit/file_util.h"

#include <errno.h>
#include <linux/loop.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/uio.h>

#define KIB 1024u
#define MIB (1024u * KIB)

/* ---- system calls that do not do all they are asked for ------------------- */

static struct {
	size_t most;        /* bytes that a call moves, or 0: all */
	unsigned interrupt; /* every so many calls, or 0: none */
	unsigned calls;
	unsigned syncs;
	int sync_errno;
	int write_errno; /* of every call from now on */
} sys;

static bool interrupted(void)
{
	sys.calls++;
	return sys.interrupt && sys.calls % sys.interrupt == 0;
}

static size_t cut(size_t len)
{
	return sys.most && len > sys.most ? sys.most : len;
}

ssize_t pread(int fd, void *buf, size_t len, off_t off)
{
	if (interrupted()) {
		errno = EINTR;
		return -1;
	}
	return preadv(fd, &(struct iovec){buf, cut(len)}, 1, off);
}

ssize_t pwrite(int fd, const void *buf, size_t len, off_t off)
{
	if (interrupted() || sys.write_errno) {
		errno = sys.write_errno ? sys.write_errno : EINTR;
		return -1;
	}
	return pwritev(fd, &(struct iovec){(void *)(uintptr_t)buf, cut(len)}, 1, off);
}

int fdatasync(int fd)
{
	sys.syncs++;
	if (interrupted()) {
		errno = EINTR;
		return -1;
	}
	errno = sys.sync_errno;
	return sys.sync_errno ? -1 : (int)syscall(SYS_fdatasync, fd);
}

static int reset(void **state)
{
	(void)state;
	memset(&sys, 0, sizeof(sys));
	return 0;
}

/* ---- opening ----------------------------------------------------------------- */

static void refused(const char *name, unsigned flags, enum blk_err_id id)
{
	struct blk_err err = BLK_ERR_INIT;
	struct blk *b = NULL;

	assert_true(t_open(&b, name, flags, NULL, &err) < 0);
	assert_int_equal(err.id, id);
	assert_null(b);
}

static void test_missing(void **state)
{
	struct blk_err err = BLK_ERR_INIT;
	struct blk *b = NULL;
	char text[256];

	(void)state;
	assert_int_equal(t_open(&b, "none.img", 0, NULL, &err), -ENOENT);
	blk_err_text(&err, text, sizeof(text));
	assert_string_equal(text, "Could not open 'none.img': No such file or directory");
}

static void test_not_a_file(void **state)
{
	(void)state;
	assert_int_equal(mkdir("dir", 0755), 0);
	assert_int_equal(mkfifo("fifo", 0644), 0);
	refused("dir", 0, BLK_E_NOT_FILE);
	refused("dir", BLK_RDWR, BLK_E_NOT_FILE);
	refused("fifo", 0, BLK_E_NOT_FILE);
	refused("fifo", BLK_RDWR, BLK_E_NOT_FILE);
	refused("/dev/null", BLK_RDWR, BLK_E_NOT_FILE);
	assert_int_equal(blk_create("fifo", 0, BLK_PREALLOC_OFF, &thr_heap, NULL), -EINVAL);
	assert_int_equal(blk_create("dir", 0, BLK_PREALLOC_OFF, &thr_heap, NULL), -EINVAL);
}

static void test_options(void **state)
{
	struct blk_opt v[] = {{"driver", "file"}, {"filename", "opt.img"}, {"locking", "off"}};
	struct blk_opts opts = {v, 3};
	struct blk_open o = {.opts = &opts, .mem = &thr_heap};
	struct blk_err err = BLK_ERR_INIT;
	struct blk *b;

	(void)state;
	t_put_file("opt.img", "x", 1);
	assert_int_equal(blk_open(&b, &o, NULL), 0);
	assert_string_equal(b->name, "opt.img");
	blk_close(b);
	v[2].val = "maybe";
	assert_int_equal(blk_open(&b, &o, NULL), -EINVAL);
	v[2].key = "engine";
	assert_int_equal(blk_open(&b, &o, &err), -ENOTSUP);
	assert_int_equal(err.id, BLK_E_NO_ENGINE);
	v[2].val = "sync";
	assert_int_equal(blk_open(&b, &o, NULL), 0);
	blk_close(b);
}

static void test_same(void **state)
{
	struct blk *a, *b, *c;

	(void)state;
	t_put_file("a.img", "a", 1);
	t_put_file("c.img", "c", 1);
	assert_int_equal(link("a.img", "b.img"), 0);
	a = t_must_open("a.img", 0, NULL);
	b = t_must_open("b.img", 0, NULL);
	c = t_must_open("c.img", 0, NULL);
	assert_true(blk_same(a, b));
	assert_false(blk_same(a, c));
	blk_close(a);
	blk_close(b);
	blk_close(c);
}

static void test_empty(void **state)
{
	struct blk_extent e;
	struct blk *b;
	char c = 'x';

	(void)state;
	t_put_file("empty.img", "", 0);
	b = t_must_open("empty.img", BLK_RDWR, NULL);
	assert_int_equal(blk_size(b), 0);
	assert_int_equal(blk_pread(b, 0, &c, 1), -EINVAL);
	assert_true(blk_status(b, 0, 1, &e) < 0);
	assert_int_equal(blk_flush(b), 0);
	assert_int_equal(blk_pwrite(b, 3, "y", 1), 0);
	assert_int_equal(blk_size(b), 4);
	assert_int_equal(blk_pread(b, 2, &c, 1), 0);
	assert_int_equal(c, 0);
	blk_close(b);
}

/* ---- reading and writing -------------------------------------------------------- */

static void test_bounds(void **state)
{
	char buf[16] = "0123456789";
	struct blk *b;

	(void)state;
	t_put_file("bounds.img", buf, 10);
	b = t_must_open("bounds.img", 0, NULL);
	assert_int_equal(blk_pwrite(b, 0, "z", 1), -EROFS);
	assert_int_equal(blk_pread(b, 8, buf, 3), -EINVAL);
	assert_int_equal(blk_pread(b, UINT64_MAX, buf, 3), -EINVAL);
	assert_int_equal(blk_pread(b, 8, buf, 2), 0);
	assert_memory_equal(buf, "89", 2);
	blk_close(b);
	b = t_must_open("bounds.img", BLK_RDWR | BLK_FIXED_SIZE, NULL);
	assert_int_equal(blk_pwrite(b, 9, "zz", 2), -EINVAL);
	assert_int_equal(blk_pwrite(b, 9, "z", 1), 0);
	blk_close(b);
	t_get_file("bounds.img", buf, 10);
	assert_memory_equal(buf, "012345678z", 10);
}

static void test_vectors(void **state)
{
	enum { PIECES = 100, TOTAL = PIECES * (PIECES - 1) / 2 };
	static uint8_t want[TOTAL + 7], got[TOTAL + 7], out[TOTAL + 7];
	struct thr_iov v[PIECES];
	struct blk_req r = {
		.off = 5, .len = TOTAL - 60, .iov = v, .niov = PIECES, .iov_off = 50};
	struct blk *b;
	size_t at = 0;

	(void)state;
	t_noise(want, sizeof(want), 1);
	for (size_t i = 0; i < PIECES; i++) {
		v[i].base = want + at;
		v[i].len = i; /* the first one is empty */
		at += i;
	}
	t_put_file("vec.img", "", 0);
	b = t_must_open("vec.img", BLK_RDWR, NULL);
	assert_int_equal(blk_pwritev(b, &r), 0);
	assert_int_equal(blk_size(b), TOTAL - 55);
	for (size_t i = 0; i < PIECES; i++)
		v[i].base = got + ((uint8_t *)v[i].base - want);
	memset(got, 0xee, sizeof(got));
	assert_int_equal(blk_preadv(b, &r), 0);
	assert_memory_equal(got + 50, want + 50, TOTAL - 60);
	assert_int_equal(got[49], 0xee);
	assert_int_equal(got[TOTAL - 10], 0xee);
	assert_int_equal(blk_pread(b, 5, out, TOTAL - 60), 0);
	assert_memory_equal(out, want + 50, TOTAL - 60);
	blk_close(b);
}

static void test_short_and_interrupted(void **state)
{
	static uint8_t want[10000], got[10000];
	struct blk *b;

	(void)state;
	t_noise(want, sizeof(want), 2);
	t_put_file("short.img", "", 0);
	b = t_must_open("short.img", BLK_RDWR, NULL);
	sys.most = 77;
	sys.interrupt = 3;
	assert_int_equal(blk_pwrite(b, 100, want, sizeof(want)), 0);
	assert_true(sys.calls >= sizeof(want) / 77);
	assert_int_equal(blk_pread(b, 100, got, sizeof(got)), 0);
	assert_memory_equal(got, want, sizeof(want));
	sys.interrupt = 2;
	assert_int_equal(blk_flush(b), 0);
	assert_int_equal(blk_truncate(b, 20000, BLK_PREALLOC_FULL, NULL), 0);
	blk_close(b);
	assert_true(t_stored("short.img") >= 19000);
}

static void test_errors_come_through(void **state)
{
	struct blk *b;

	(void)state;
	t_put_file("err.img", "abcd", 4);
	b = t_must_open("err.img", BLK_RDWR, NULL);
	sys.write_errno = EIO;
	assert_int_equal(blk_pwrite(b, 0, "x", 1), -EIO);
	sys.write_errno = ENOSPC;
	assert_int_equal(blk_pwrite(b, 10, "x", 1), -ENOSPC);
	assert_int_equal(blk_size(b), 4);
	blk_close(b);
}

static void test_failed_flush_stays(void **state)
{
	struct blk *b;

	(void)state;
	t_put_file("sync.img", "abcd", 4);
	b = t_must_open("sync.img", BLK_RDWR, NULL);
	assert_int_equal(blk_flush(b), 0);
	sys.sync_errno = EIO;
	assert_int_equal(blk_flush(b), -EIO);
	sys.sync_errno = 0;
	sys.syncs = 0;
	assert_int_equal(b->ops->flush(b), -EIO);
	assert_int_equal(sys.syncs, 0);
	blk_close(b);
	b = t_must_open("sync.img", BLK_RDWR, NULL);
	assert_int_equal(blk_flush(b), 0);
	assert_int_equal(sys.syncs, 1);
	blk_close(b);
}

static void test_durable_writes(void **state)
{
	struct thr_iov v = {.base = "fua", .len = 3};
	struct blk_req r = {.off = 1, .len = 3, .iov = &v, .niov = 1, .flags = BLK_FUA};
	char buf[4];
	struct blk *b;

	(void)state;
	t_put_file("fua.img", "0123", 4);
	b = t_must_open("fua.img", BLK_RDWR | BLK_WRITETHROUGH, NULL);
	assert_int_equal(blk_pwritev(b, &r), 0);
	r.iov = NULL;
	r.len = 1;
	r.off = 0;
	assert_int_equal(blk_zero(b, &r), 0);
	blk_close(b);
	t_get_file("fua.img", buf, 4);
	assert_memory_equal(buf, "\0fua", 4);
}

static void tick(int sig)
{
	(void)sig;
}

static void test_signals(void **state)
{
	struct sigaction sa = {.sa_handler = tick};
	struct itimerval every = {{0, 2000}, {0, 2000}};
	struct itimerval never = {{0, 0}, {0, 0}};
	uint8_t *want = malloc(MIB), *got = malloc(MIB);
	struct blk *b;

	(void)state;
	assert_int_equal(blk_create("sig.img", 4 * MIB, BLK_PREALLOC_OFF, &thr_heap, NULL), 0);
	b = t_must_open("sig.img", BLK_RDWR, NULL);
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	for (uint64_t i = 0; i < 4; i++) {
		t_noise(want, MIB, i);
		assert_int_equal(blk_pwrite(b, i * MIB, want, MIB), 0);
		assert_int_equal(blk_flush(b), 0);
		assert_int_equal(blk_pread(b, i * MIB, got, MIB), 0);
		assert_memory_equal(got, want, MIB);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_IGN); /* one may be on its way */
	blk_close(b);
	free(want);
	free(got);
}

/* ---- O_DIRECT ----------------------------------------------------------------- */

static void direct_tail(unsigned flags, uint64_t size)
{
	static uint8_t model[8192], got[8192];
	struct blk *b;
	uint64_t seed = size;

	t_noise(model, sizeof(model), size);
	t_put_file("tail.img", model, size);
	b = t_must_open("tail.img", BLK_RDWR | BLK_NOCACHE | flags, NULL);
	assert_int_equal(blk_size(b), size);
	assert_int_equal(blk_pread(b, 0, got, size), 0);
	assert_memory_equal(got, model, size);
	for (unsigned i = 0; i < 50; i++) {
		uint64_t off = t_rand(&seed) % size;
		size_t len = t_rand(&seed) % (size - off) + 1;

		if (i % 2)
			off = size - len;
		t_noise(model + off, len, seed);
		assert_int_equal(blk_pwrite(b, off, model + off, len), 0);
		assert_int_equal(blk_pread(b, 0, got, size), 0);
		assert_memory_equal(got, model, size);
	}
	assert_int_equal(blk_size(b), size);
	blk_close(b);
	t_get_file("tail.img", got, size);
	assert_memory_equal(got, model, size);
}

static void test_direct_tail(void **state)
{
	static const uint64_t sizes[] = {1, 511, 512, 513, 1000, 4095, 4096, 4097, 8000};

	(void)state;
	if (!t_direct_works())
		t_skip("no O_DIRECT on this file system");
	for (size_t i = 0; i < THR_ARRAY_SIZE(sizes); i++) {
		direct_tail(0, sizes[i]);
		direct_tail(BLK_FIXED_SIZE, sizes[i]);
	}
}

static void test_direct_grows(void **state)
{
	static uint8_t model[20000], got[20000];
	struct blk *b;
	size_t at = 0;

	(void)state;
	if (!t_direct_works())
		t_skip("no O_DIRECT on this file system");
	t_noise(model, sizeof(model), 3);
	t_put_file("grow.img", "", 0);
	b = t_must_open("grow.img", BLK_RDWR | BLK_NOCACHE, NULL);
	for (size_t len = 1; at < sizeof(model); at += len, len = len * 3 + 1) {
		if (len > sizeof(model) - at)
			len = sizeof(model) - at;
		assert_int_equal(blk_pwrite(b, at, model + at, len), 0);
		assert_int_equal(blk_size(b), at + len);
	}
	assert_int_equal(blk_truncate(b, 15001, BLK_PREALLOC_OFF, NULL), 0);
	assert_int_equal(blk_truncate(b, 17001, BLK_PREALLOC_FULL, NULL), 0);
	assert_int_equal(blk_pwrite(b, 17001, "end", 3), 0);
	blk_close(b);
	memset(model + 15001, 0, 2000);
	memcpy(model + 17001, "end", 3);
	t_get_file("grow.img", got, 17004);
	assert_memory_equal(got, model, 17004);
	/* Who else has made it longer keeps what he wrote. */
	b = t_must_open("grow.img", BLK_RDWR | BLK_NOCACHE, NULL);
	assert_int_equal(blk_pwrite(b, 17004, "!", 1), 0);
	assert_int_equal(truncate("grow.img", 40000), 0);
	blk_close(b);
	assert_true(truncate("grow.img", 40000) == 0);
}

static void test_direct_refused(void **state)
{
	struct blk_err err = BLK_ERR_INIT;
	struct blk *b;
	int fd = open("/proc/version", O_RDONLY | O_DIRECT);

	(void)state;
	if (fd >= 0 || errno != EINVAL)
		t_skip("no file here that refuses O_DIRECT");
	assert_int_equal(t_open(&b, "/proc/version", BLK_NOCACHE, NULL, &err), -EINVAL);
	assert_int_equal(err.id, BLK_E_NO_DIRECT);
}

/* ---- holes, zeroes, length ------------------------------------------------------ */

static bool holes_work(void)
{
	int fd = open("hole.probe", O_RDWR | O_CREAT, 0644);
	bool ok = fd >= 0 && !ftruncate(fd, MIB) && lseek(fd, 0, SEEK_DATA) < 0 &&
		  errno == ENXIO;

	close(fd);
	unlink("hole.probe");
	return ok;
}

static void expect_extent(struct blk *b, uint64_t off, uint64_t len, uint64_t want, bool data)
{
	struct blk_extent e;

	assert_int_equal(blk_status(b, off, len, &e), 0);
	assert_int_equal(e.len, want);
	assert_int_equal(e.flags, BLK_EXT_ALLOC | (data ? BLK_EXT_DATA : BLK_EXT_ZERO));
}

static void test_holes(void **state)
{
	static uint8_t buf[64 * KIB];
	struct blk_req r = {.off = MIB, .len = 32 * KIB};
	struct blk *b;

	(void)state;
	if (!holes_work())
		t_skip("no holes on this file system");
	assert_int_equal(blk_create("hole.img", 4 * MIB, BLK_PREALLOC_OFF, &thr_heap, NULL), 0);
	b = t_must_open("hole.img", BLK_RDWR, NULL);
	memset(buf, 1, sizeof(buf));
	assert_int_equal(blk_pwrite(b, MIB, buf, sizeof(buf)), 0);
	expect_extent(b, 0, 4 * MIB, MIB, false);
	expect_extent(b, 4096, 8192, 8192, false);
	expect_extent(b, MIB, 3 * MIB, 64 * KIB, true);
	expect_extent(b, MIB + 1, 100, 100, true);
	expect_extent(b, MIB + 64 * KIB, 3 * MIB - 64 * KIB, 3 * MIB - 64 * KIB, false);
	assert_int_equal(blk_discard(b, &r), 0);
	expect_extent(b, MIB, MIB, 32 * KIB, false);
	expect_extent(b, MIB + 32 * KIB, MIB, 32 * KIB, true);
	/* Too small for a block of the file system: nothing happens. */
	r.off = MIB + 32 * KIB + 1;
	r.len = 100;
	assert_int_equal(blk_discard(b, &r), 0);
	assert_int_equal(blk_pread(b, r.off, buf, 1), 0);
	assert_int_equal(buf[0], 1);
	blk_close(b);
}

static void zero_in(unsigned flags, unsigned req_flags)
{
	static uint8_t model[512 * KIB], got[512 * KIB];
	struct blk_req r = {.off = 10000, .len = 300000, .flags = req_flags};
	struct blk *b;
	int ret;

	t_noise(model, sizeof(model), 4);
	t_put_file("zero.img", model, 400000);
	b = t_must_open("zero.img", BLK_RDWR | flags, NULL);
	ret = blk_zero(b, &r);
	if (ret == -ENOTSUP && req_flags & BLK_NO_FALLBACK) {
		blk_close(b);
		return;
	}
	assert_int_equal(ret, 0);
	memset(model + 10000, 0, 300000);
	/* Growing by zeroes, odd and even. */
	r.off = 399000;
	r.len = 2000;
	assert_int_equal(blk_zero(b, &r), 0);
	r.off = 410000;
	r.len = 51200;
	assert_int_equal(blk_zero(b, &r), 0);
	assert_int_equal(blk_size(b), 461200);
	memset(model + 399000, 0, sizeof(model) - 399000);
	assert_int_equal(blk_pread(b, 0, got, 461200), 0);
	assert_memory_equal(got, model, 461200);
	blk_close(b);
	t_get_file("zero.img", got, 461200);
	assert_memory_equal(got, model, 461200);
}

static void test_zero(void **state)
{
	(void)state;
	zero_in(0, 0);
	zero_in(0, BLK_UNMAP);
	zero_in(0, BLK_NO_FALLBACK);
	zero_in(0, BLK_NO_FALLBACK | BLK_UNMAP);
	if (!t_direct_works())
		return;
	zero_in(BLK_NOCACHE, 0);
	zero_in(BLK_NOCACHE, BLK_UNMAP);
}

static void test_zero_keeps_or_frees(void **state)
{
	static uint8_t buf[MIB];
	struct blk_req r = {.off = 0, .len = MIB};
	struct blk *b;

	(void)state;
	if (!holes_work())
		t_skip("no holes on this file system");
	memset(buf, 1, sizeof(buf));
	t_put_file("keep.img", buf, sizeof(buf));
	b = t_must_open("keep.img", BLK_RDWR, NULL);
	assert_int_equal(blk_zero(b, &r), 0);
	assert_int_equal(blk_flush(b), 0);
	assert_true(t_stored("keep.img") >= MIB);
	r.flags = BLK_UNMAP;
	assert_int_equal(blk_zero(b, &r), 0);
	assert_int_equal(blk_flush(b), 0);
	assert_true(t_stored("keep.img") < MIB / 2);
	blk_close(b);
}

static void test_preallocation(void **state)
{
	struct blk_err err = BLK_ERR_INIT;
	uint64_t bytes;
	struct blk *b;

	(void)state;
	assert_int_equal(blk_create("pre.img", MIB, BLK_PREALLOC_FALLOC, &thr_heap, NULL), 0);
	assert_true(t_stored("pre.img") >= MIB);
	assert_int_equal(blk_create("pre.img", MIB + 1, BLK_PREALLOC_FULL, &thr_heap, NULL), 0);
	assert_true(t_stored("pre.img") >= MIB);
	b = t_must_open("pre.img", BLK_RDWR, NULL);
	assert_int_equal(blk_size(b), MIB + 1);
	assert_int_equal(blk_truncate(b, 3 * MIB, BLK_PREALLOC_FALLOC, NULL), 0);
	assert_int_equal(blk_allocated(b, &bytes), 0);
	assert_true(bytes >= 3 * MIB);
	assert_int_equal(blk_truncate(b, 4 * MIB, BLK_PREALLOC_METADATA, &err), -ENOTSUP);
	assert_int_equal(err.id, BLK_E_PREALLOC);
	assert_int_equal(blk_truncate(b, MIB, BLK_PREALLOC_FULL, NULL), -ENOTSUP);
	assert_int_equal(blk_size(b), 3 * MIB);
	assert_int_equal(blk_truncate(b, 5, BLK_PREALLOC_OFF, NULL), 0);
	assert_int_equal(blk_size(b), 5);
	blk_close(b);
	assert_int_equal(blk_create("pre.img", 0, BLK_PREALLOC_OFF, &thr_heap, NULL), 0);
	assert_int_equal(t_stored("pre.img"), 0);
	/* What cannot be finished is not left behind. */
	assert_true(
		blk_create("no.img", UINT64_MAX / 2, BLK_PREALLOC_FALLOC, &thr_heap, NULL) < 0);
	assert_int_equal(access("no.img", F_OK), -1);
}

static void test_truncate_zeroes(void **state)
{
	static uint8_t got[3000], want[3000];
	struct blk *b;

	(void)state;
	memset(want, 7, sizeof(want));
	t_put_file("cut.img", want, sizeof(want));
	b = t_must_open("cut.img", BLK_RDWR, NULL);
	assert_int_equal(blk_truncate(b, 700, BLK_PREALLOC_OFF, NULL), 0);
	assert_int_equal(blk_truncate(b, 3000, BLK_PREALLOC_OFF, NULL), 0);
	memset(want + 700, 0, 2300);
	assert_int_equal(blk_pread(b, 0, got, 3000), 0);
	assert_memory_equal(got, want, 3000);
	blk_close(b);
}

/* ---- what goes wrong outside ------------------------------------------------------ */

static void shrink(unsigned flags)
{
	static uint8_t buf[64 * KIB];
	struct blk_extent e;
	struct blk *b;

	memset(buf, 1, sizeof(buf));
	t_put_file("shrunk.img", buf, sizeof(buf));
	b = t_must_open("shrunk.img", flags, NULL);
	assert_int_equal(truncate("shrunk.img", 10000), 0);
	assert_int_equal(blk_pread(b, 0, buf, 8192), 0);
	assert_int_equal(blk_pread(b, 8192, buf, 8192), -EIO);
	assert_int_equal(blk_pread(b, 32768, buf, 4096), -EIO);
	assert_int_equal(blk_status(b, 40000, 1000, &e), 0);
	assert_true(e.flags & BLK_EXT_DATA);
	blk_close(b);
}

static void test_shrinks_under_us(void **state)
{
	(void)state;
	shrink(0);
	if (t_direct_works())
		shrink(BLK_NOCACHE);
}

static void test_size_limit(void **state)
{
	static uint8_t buf[64 * KIB];
	struct rlimit old, low;
	struct blk *b;
	int ret;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	memset(buf, 1, sizeof(buf));
	t_put_file("limit.img", "", 0);
	b = t_must_open("limit.img", BLK_RDWR, NULL);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	low = old;
	low.rlim_cur = 100000;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	ret = blk_pwrite(b, 65536, buf, sizeof(buf));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(ret, -EFBIG);
	assert_int_equal(blk_size(b), 0);
	assert_int_equal(blk_pwrite(b, 65536, buf, sizeof(buf)), 0);
	blk_close(b);
	signal(SIGXFSZ, SIG_DFL);
}

static void test_disk_full(void **state)
{
	static uint8_t buf[256 * KIB];
	struct blk *b;
	int ret;

	(void)state;
	assert_int_equal(mkdir("tiny", 0755), 0);
	if (mount("tmpfs", "tiny", "tmpfs", 0, "size=128k"))
		t_skip("may not mount a tmpfs");
	t_put_file("tiny/full.img", "", 0);
	b = t_must_open("tiny/full.img", BLK_RDWR, NULL);
	ret = blk_pwrite(b, 0, buf, sizeof(buf));
	blk_close(b);
	if (!ret || access("tiny/full.img", F_OK))
		ret = 1;
	if (ret == -ENOSPC)
		ret = blk_create("tiny/pre.img", MIB, BLK_PREALLOC_FALLOC, &thr_heap, NULL);
	if (ret == -ENOSPC)
		ret = blk_create("tiny/pre.img", MIB, BLK_PREALLOC_FULL, &thr_heap, NULL);
	assert_int_equal(umount("tiny"), 0);
	assert_int_equal(ret, -ENOSPC);
}

/* ---- block devices ------------------------------------------------------------------ */

/* A loop device over @file; -1 where there are none. */
static int loop_open(const char *file, char *name, size_t size)
{
	int ctl = open("/dev/loop-control", O_RDWR);
	int n = ctl < 0 ? -1 : ioctl(ctl, LOOP_CTL_GET_FREE);
	struct loop_info64 info = {.lo_flags = LO_FLAGS_AUTOCLEAR};
	int fd = -1, back;

	if (ctl >= 0)
		close(ctl);
	if (n < 0)
		return -1;
	snprintf(name, size, "/dev/loop%d", n);
	back = open(file, O_RDWR);
	fd = open(name, O_RDWR);
	if (fd >= 0 && ioctl(fd, LOOP_SET_FD, back)) {
		close(fd);
		fd = -1;
	}
	/* Gone with the last descriptor, also of a test that fails. */
	if (fd >= 0)
		ioctl(fd, LOOP_SET_STATUS64, &info);
	close(back);
	return fd;
}

static void device_in(const char *name, unsigned flags)
{
	static uint8_t model[MIB], got[MIB];
	struct blk_req r = {.off = 4096, .len = 65536};
	struct blk_extent e;
	struct blk *b;

	t_noise(model, MIB, 21);
	b = t_must_open(name, BLK_RDWR | flags, NULL);
	assert_int_equal(blk_size(b), MIB);
	assert_int_equal(blk_pwrite(b, 0, model, MIB), 0);
	t_noise(model + 777, 5000, 22);
	assert_int_equal(blk_pwrite(b, 777, model + 777, 5000), 0);
	assert_int_equal(blk_zero(b, &r), 0);
	r.off = 131073;
	r.flags = BLK_UNMAP;
	assert_int_equal(blk_zero(b, &r), 0);
	memset(model + 4096, 0, 65536);
	memset(model + 131073, 0, 65536);
	assert_int_equal(blk_flush(b), 0);
	assert_int_equal(blk_pread(b, 0, got, MIB), 0);
	assert_memory_equal(got, model, MIB);
	r.off = 512 * KIB;
	assert_int_equal(blk_discard(b, &r), 0);
	assert_int_equal(blk_pread(b, 0, got, 512 * KIB), 0);
	assert_memory_equal(got, model, 512 * KIB);
	assert_int_equal(blk_status(b, 0, MIB, &e), 0);
	assert_int_equal(e.len, MIB);
	assert_int_equal(blk_pwrite(b, MIB - 1, "xy", 2), -EINVAL);
	assert_int_equal(blk_truncate(b, MIB, BLK_PREALLOC_OFF, NULL), 0);
	assert_int_equal(blk_truncate(b, MIB / 2, BLK_PREALLOC_OFF, NULL), -ENOTSUP);
	assert_true(blk_same(b, b));
	blk_close(b);
}

static void test_block_device(void **state)
{
	char name[32];
	int fd;

	(void)state;
	assert_int_equal(blk_create("loop.img", MIB, BLK_PREALLOC_FULL, &thr_heap, NULL), 0);
	fd = loop_open("loop.img", name, sizeof(name));
	if (fd < 0)
		t_skip("no loop devices here");
	device_in(name, 0);
	device_in(name, BLK_NOCACHE);
	assert_int_equal(blk_create(name, MIB, BLK_PREALLOC_OFF, &thr_heap, NULL), 0);
	assert_int_equal(blk_create(name, MIB + 1, BLK_PREALLOC_OFF, &thr_heap, NULL), -ENOSPC);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_missing, reset),
		cmocka_unit_test_setup(test_not_a_file, reset),
		cmocka_unit_test_setup(test_options, reset),
		cmocka_unit_test_setup(test_same, reset),
		cmocka_unit_test_setup(test_empty, reset),
		cmocka_unit_test_setup(test_bounds, reset),
		cmocka_unit_test_setup(test_vectors, reset),
		cmocka_unit_test_setup(test_short_and_interrupted, reset),
		cmocka_unit_test_setup(test_errors_come_through, reset),
		cmocka_unit_test_setup(test_failed_flush_stays, reset),
		cmocka_unit_test_setup(test_durable_writes, reset),
		cmocka_unit_test_setup(test_signals, reset),
		cmocka_unit_test_setup(test_direct_tail, reset),
		cmocka_unit_test_setup(test_direct_grows, reset),
		cmocka_unit_test_setup(test_direct_refused, reset),
		cmocka_unit_test_setup(test_holes, reset),
		cmocka_unit_test_setup(test_zero, reset),
		cmocka_unit_test_setup(test_zero_keeps_or_frees, reset),
		cmocka_unit_test_setup(test_preallocation, reset),
		cmocka_unit_test_setup(test_truncate_zeroes, reset),
		cmocka_unit_test_setup(test_shrinks_under_us, reset),
		cmocka_unit_test_setup(test_size_limit, reset),
		cmocka_unit_test_setup(test_disk_full, reset),
		cmocka_unit_test_setup(test_block_device, reset),
	};

	return cmocka_run_group_tests_name("blk_file", tests, NULL, NULL);
}
