/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/thr_base.c - what thr/base.h gives to everyone.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "thr/base.h"

static void heap(void **state)
{
	(void)state;
	for (size_t align = 1; align <= 65536; align *= 2) {
		uint8_t *p = thr_get(&thr_heap, 3 * align, align);

		assert_non_null(p);
		assert_int_equal((uintptr_t)p % THR_MAX(align, 16), 0);
		memset(p, 0xa5, 3 * align);
		thr_put(&thr_heap, p, 3 * align);
	}
	thr_put(&thr_heap, NULL, 100);
}

static void *dirty_get(void *ctx, size_t size, size_t align)
{
	size_t *got = ctx;
	void *p = malloc(size);

	assert_int_equal(align, 16);
	*got = size;
	if (p)
		memset(p, 0xff, size);
	return p;
}

static void *none_get(void *ctx, size_t size, size_t align)
{
	(void)ctx;
	(void)size;
	(void)align;
	return NULL;
}

static void dirty_put(void *ctx, void *p, size_t size)
{
	size_t *got = ctx;

	assert_int_equal(*got, size);
	*got = 0;
	free(p);
}

static void zget(void **state)
{
	size_t got = 0;
	struct thr_alloc dirty = {.get = dirty_get, .put = dirty_put, .ctx = &got};
	struct thr_alloc none = {.get = none_get, .put = dirty_put, .ctx = &got};
	uint8_t *p = thr_zget(&dirty, 100);

	(void)state;
	assert_non_null(p);
	for (size_t i = 0; i < 100; i++)
		assert_int_equal(p[i], 0);
	thr_put(&dirty, p, 100);
	assert_int_equal(got, 0);
	assert_null(thr_zget(&none, 100));
}

static void arithmetic(void **state)
{
	uint64_t r;

	(void)state;
	assert_false(thr_add_over(UINT64_MAX - 1, 1, &r));
	assert_true(r == UINT64_MAX);
	assert_true(thr_add_over(UINT64_MAX, 1, &r));
	assert_false(thr_mul_over(UINT32_MAX, UINT32_MAX, &r));
	assert_true(r == (uint64_t)UINT32_MAX * UINT32_MAX);
	assert_true(thr_mul_over((uint64_t)1 << 32, (uint64_t)1 << 32, &r));

	assert_true(thr_within(0, 0, 0));
	assert_true(thr_within(10, 90, 100));
	assert_true(thr_within(100, 0, 100));
	assert_false(thr_within(10, 91, 100));
	assert_false(thr_within(101, 0, 100));
	assert_false(thr_within(UINT64_MAX, 2, 100));
	assert_false(thr_within(2, UINT64_MAX, 100));
	assert_true(thr_within(1, UINT64_MAX - 1, UINT64_MAX));

	assert_false(thr_is_pow2(0));
	assert_true(thr_is_pow2(1));
	assert_false(thr_is_pow2(6));
	assert_true(thr_is_pow2((uint64_t)1 << 63));

	assert_int_equal(thr_align_down(4097, 4096), 4096);
	assert_int_equal(thr_align_up(4097, 4096), 8192);
	assert_int_equal(thr_align_up(4096, 4096), 4096);
	assert_int_equal(thr_align_up(0, 4096), 0);
	assert_true(thr_is_aligned(8192, 4096));
	assert_false(thr_is_aligned(8193, 4096));

	assert_int_equal(thr_log2(1), 0);
	assert_int_equal(thr_log2(4095), 11);
	assert_int_equal(thr_log2(4096), 12);
	assert_int_equal(thr_log2(UINT64_MAX), 63);
	assert_int_equal(THR_MIN(3, 4), 3);
	assert_int_equal(THR_MAX(3, 4), 4);
}

/* At every alignment. */
static void endian(void **state)
{
	static const uint8_t bytes[8] = {0x81, 0x92, 0xa3, 0xb4, 0xc5, 0xd6, 0xe7, 0xf8};
	uint8_t in[16], out[16];

	(void)state;
	for (size_t at = 0; at < 8; at++) {
		memcpy(in + at, bytes, 8);
		assert_int_equal(thr_be16(in + at), 0x8192);
		assert_int_equal(thr_be32(in + at), 0x8192a3b4);
		assert_true(thr_be64(in + at) == 0x8192a3b4c5d6e7f8);
		assert_int_equal(thr_le16(in + at), 0x9281);
		assert_int_equal(thr_le32(in + at), 0xb4a39281);
		assert_true(thr_le64(in + at) == 0xf8e7d6c5b4a39281);

		memset(out, 0, sizeof(out));
		thr_put_be16(out + at, 0x8192);
		assert_memory_equal(out + at, bytes, 2);
		thr_put_be32(out + at, 0x8192a3b4);
		assert_memory_equal(out + at, bytes, 4);
		thr_put_be64(out + at, 0x8192a3b4c5d6e7f8);
		assert_memory_equal(out + at, bytes, 8);

		memset(out, 0, sizeof(out));
		thr_put_le16(out + at, 0x9281);
		assert_memory_equal(out + at, bytes, 2);
		assert_int_equal(out[at + 2], 0);
		thr_put_le32(out + at, 0xb4a39281);
		assert_memory_equal(out + at, bytes, 4);
		thr_put_le64(out + at, 0xf8e7d6c5b4a39281);
		assert_memory_equal(out + at, bytes, 8);
	}
}

struct outer {
	char pad[24];
	int inner;
};

static void container(void **state)
{
	struct outer o[3];

	(void)state;
	assert_ptr_equal(THR_CONTAINER(&o[1].inner, struct outer, inner), &o[1]);
	assert_int_equal(THR_ARRAY_SIZE(o), 3);
}

/* An assertion that fails says where, and aborts. */
static void panic(void **state)
{
	char text[256] = "";
	int fds[2], status;
	pid_t child;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		dup2(fds[1], STDERR_FILENO);
		signal(SIGABRT, SIG_DFL);
		THR_ASSERT(1 + 1 == 2);
		THR_ASSERT(1 + 1 == 3);
		_exit(0);
	}
	close(fds[1]);
	assert_true(read(fds[0], text, sizeof(text) - 1) > 0);
	close(fds[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
#ifdef CONFIG_THR_ASSERT_TEXT
	assert_non_null(strstr(text, "thr_base.c"));
	assert_non_null(strstr(text, "1 + 1 == 3"));
#else
	assert_non_null(strstr(text, "assertion"));
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heap),
		cmocka_unit_test(zget),
		cmocka_unit_test(arithmetic),
		cmocka_unit_test(endian),
		cmocka_unit_test(container),
		cmocka_unit_test(panic),
	};

	return cmocka_run_group_tests_name("thr_base", tests, NULL, NULL);
}
