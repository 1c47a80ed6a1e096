/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/blk_mem.c - the driver "mem", sparse and of any length, and the fixed
 * memory disk.
 */
#include "blk_util.h"

#define CHUNK 65536u
#define TIB   ((uint64_t)1 << 40)

static struct blk *open_mem(const char *size, unsigned flags, const struct thr_alloc *mem)
{
	struct blk_opt v = {"size", size};
	struct blk_opts opts = {&v, 1};
	struct blk_open o = {
		.driver = "mem", .flags = BLK_RDWR | flags, .opts = &opts, .mem = mem};
	struct blk *b;

	assert_int_equal(blk_open(&b, &o, NULL), 0);
	return b;
}

static uint64_t allocated(struct blk *b)
{
	uint64_t bytes;

	assert_int_equal(blk_allocated(b, &bytes), 0);
	return bytes;
}

static void assert_extent(
	struct blk *b, uint64_t off, uint64_t len, uint64_t is, unsigned flags)
{
	struct blk_extent e;

	assert_int_equal(blk_status(b, off, len, &e), 0);
	assert_int_equal(e.len, is);
	assert_int_equal(e.flags, BLK_EXT_ALLOC | flags);
}

static void t_huge(void **state)
{
	struct purse purse;
	char back[8];
	struct blk *b;

	(void)state;
	purse_init(&purse);
	b = open_mem("4096T", 0, &purse.mem);
	assert_int_equal(blk_size(b), 4096 * TIB);
	assert_extent(b, 0, 4096 * TIB, 4096 * TIB, BLK_EXT_ZERO);
	assert_int_equal(blk_pwrite(b, 4096 * TIB - 3, "end", 3), 0);
	assert_int_equal(blk_pwrite(b, 0, "start", 5), 0);
	assert_int_equal(blk_pwrite(b, TIB - 2, "seam", 4), 0);
	assert_int_equal(allocated(b), 4 * CHUNK);
	assert_int_equal(blk_pread(b, TIB - 4, back, 8), 0);
	assert_memory_equal(back, "\0\0seam\0\0", 8);
	assert_int_equal(blk_pread(b, 4096 * TIB - 5, back, 5), 0);
	assert_memory_equal(back, "\0\0end", 5);

	assert_extent(b, 3, 4096 * TIB - 3, CHUNK - 3, BLK_EXT_DATA);
	assert_extent(b, CHUNK, 4096 * TIB - CHUNK, TIB - 2 * CHUNK, BLK_EXT_ZERO);
	assert_extent(b, TIB - CHUNK, TIB, 2 * CHUNK, BLK_EXT_DATA);
	assert_extent(b, TIB + CHUNK, 4095 * TIB - CHUNK, 4095 * TIB - 2 * CHUNK, BLK_EXT_ZERO);
	assert_extent(b, 4096 * TIB - 1, 1, 1, BLK_EXT_DATA);

	assert_int_equal(zero_at(b, 1, 4096 * TIB - 2, BLK_UNMAP), 0);
	assert_int_equal(allocated(b), 2 * CHUNK);
	assert_int_equal(blk_pread(b, 0, back, 2), 0);
	assert_memory_equal(back, "s\0", 2);
	assert_int_equal(discard_at(b, 0, 4096 * TIB), 0);
	assert_int_equal(allocated(b), 0);
	/* Only the device itself is left. */
	assert_int_equal(purse.live, 1);
	blk_close(b);
	assert_int_equal(purse.live, 0);
}

static void t_grow(void **state)
{
	struct blk *b = open_mem("0", 0, &thr_heap);
	uint8_t buf[300];

	(void)state;
	memset(buf, 1, sizeof(buf));
	assert_int_equal(blk_size(b), 0);
	assert_int_equal(blk_pwrite(b, 100, buf, 300), 0);
	assert_int_equal(blk_size(b), 400);
	assert_int_equal(zero_at(b, 1000, 24, 0), 0);
	assert_int_equal(blk_size(b), 1024);
	/* What a shrink cuts off comes back as zeroes. */
	assert_int_equal(blk_truncate(b, 200, BLK_PREALLOC_OFF, NULL), 0);
	assert_int_equal(blk_truncate(b, 2 * CHUNK, BLK_PREALLOC_OFF, NULL), 0);
	assert_int_equal(blk_pread(b, 100, buf, 300), 0);
	assert_filled(buf, 1, 100);
	assert_filled(buf + 100, 0, 200);
	assert_int_equal(blk_truncate(b, 1, BLK_PREALLOC_FULL, NULL), -THR_ENOTSUP);
	assert_int_equal(blk_truncate(b, UINT64_MAX, BLK_PREALLOC_OFF, NULL), -THR_EFBIG);
	assert_int_equal(blk_size(b), 2 * CHUNK);
	blk_close(b);

	b = open_mem("1k", BLK_FIXED_SIZE, &thr_heap);
	assert_int_equal(blk_pwrite(b, 1000, buf, 300), -THR_EINVAL);
	blk_close(b);
}

static void t_options(void **state)
{
	struct blk_opt v = {"size", "9E"};
	struct blk_opts opts = {&v, 1};
	struct blk_open o = {.driver = "mem", .opts = &opts, .mem = &thr_heap};
	struct blk_err err = BLK_ERR_INIT;
	struct blk *b;

	(void)state;
	assert_int_equal(blk_open(&b, &o, &err), -THR_EFBIG);
	v.val = "x";
	assert_int_equal(blk_open(&b, &o, &err), -THR_EINVAL);
	assert_int_equal(err.id, BLK_E_BAD_VALUE);
}

/* Random operations beside a flat model, over a few chunks. */
static void t_model(void **state)
{
	size_t size = 5 * CHUNK + 77;
	uint8_t *model = calloc(1, size), *buf = malloc(size);
	struct blk *b = open_mem("0", 0, &thr_heap);
	uint32_t seed = 5;

	(void)state;
	assert_int_equal(blk_truncate(b, size, BLK_PREALLOC_OFF, NULL), 0);
	for (int i = 0; i < 2000; i++) {
		uint64_t off = rnd(&seed) % size;
		size_t len = 1 + rnd(&seed) % THR_MIN(size - off, 3 * CHUNK);

		switch (rnd(&seed) % 4) {
		case 0:
			memset(model + off, 0, len);
			assert_int_equal(zero_at(b, off, len, 0), 0);
			break;
		case 1:
			memset(model + off, (int)(seed & 255), len);
			assert_int_equal(blk_pwrite(b, off, model + off, len), 0);
			break;
		case 2:
			memset(model + off, 0, len);
			assert_int_equal(discard_at(b, off, len), 0);
			break;
		default:
			assert_int_equal(blk_pread(b, off, buf, len), 0);
			assert_memory_equal(buf, model + off, len);
		}
	}
	for (uint64_t at = 0; at < size;) {
		struct blk_extent e;

		assert_int_equal(blk_status(b, at, size - at, &e), 0);
		if (e.flags & BLK_EXT_ZERO)
			assert_filled(model + at, 0, (size_t)e.len);
		at += e.len;
	}
	blk_close(b);
	free(model);
	free(buf);
}

static void t_no_memory(void **state)
{
	static char data[3 * CHUNK], back[3 * CHUNK];
	struct purse purse;
	unsigned failed = 0;

	(void)state;
	memset(data, 4, sizeof(data));
	for (unsigned n = 1;; n++) {
		struct blk_opt v = {"size", "1T"};
		struct blk_opts opts = {&v, 1};
		struct blk_open o = {
			.driver = "mem", .flags = BLK_RDWR, .opts = &opts, .mem = &purse.mem};
		struct blk *b;
		int err;

		purse_init(&purse);
		purse.fail_at = n;
		err = blk_open(&b, &o, NULL);
		if (!err) {
			err = blk_pwrite(b, CHUNK / 2, data, sizeof(data));
			if (!err)
				err = blk_pwrite(b, TIB / 2, data, 1);
			purse.fail_at = 0;
			assert_int_equal(blk_pread(b, CHUNK / 2, back, sizeof(back)), 0);
			if (!err)
				assert_memory_equal(data, back, sizeof(back));
			blk_close(b);
		}
		assert_int_equal(purse.live, 0);
		if (!err)
			break;
		assert_int_equal(err, -THR_ENOMEM);
		failed++;
	}
	assert_true(failed > 6);
}

static void t_fixed(void **state)
{
	uint8_t store[64] = {0}, other[64];
	struct blk *a, *b, *c;

	(void)state;
	assert_int_equal(blk_mem_open(&a, store, 64, BLK_RDWR, &thr_heap, NULL), 0);
	assert_int_equal(blk_mem_open(&b, store, 64, 0, &thr_heap, NULL), 0);
	assert_int_equal(blk_mem_open(&c, other, 64, 0, &thr_heap, NULL), 0);
	assert_true(blk_same(a, b));
	assert_false(blk_same(a, c));
	assert_int_equal(blk_pwrite(a, 60, "abcd", 4), 0);
	assert_memory_equal(store + 60, "abcd", 4);
	assert_int_equal(zero_at(a, 61, 2, 0), 0);
	assert_memory_equal(store + 60, "a\0\0d", 4);
	assert_int_equal(blk_pwrite(a, 61, "abcd", 4), -THR_EINVAL);
	assert_int_equal(blk_flush(a), 0);
	assert_int_equal(allocated(a), 64);
	assert_extent(a, 0, 64, 64, BLK_EXT_DATA);
	blk_close(a);
	blk_close(b);
	blk_close(c);
}

#ifndef CONFIG_THR_NONE
/* Writers, discarders and readers on several executors, each on its own stripe
 * of every chunk; discards only of chunks that nobody else uses. */
#define FIBERS 16

struct job {
	struct thr_pool *pool;
	struct blk *b;
	unsigned next;
};

static int stripe(void *arg)
{
	struct job *j = arg;
	unsigned me = __atomic_fetch_add(&j->next, 1, __ATOMIC_RELAXED);
	char data[512], back[512];
	int err = 0;

	memset(data, (int)me + 1, sizeof(data));
	for (uint64_t i = 0; !err && i < 50; i++) {
		uint64_t shared = i * CHUNK + me * 512;
		uint64_t own = (100 + me * 50 + i) * CHUNK;

		err = blk_pwrite(j->b, shared, data, 512);
		if (!err)
			err = blk_pwrite(j->b, own, data, 512);
		if (!err)
			err = discard_at(j->b, own, CHUNK);
		if (!err)
			err = blk_pread(j->b, own, back, 512);
		if (!err && back[0])
			err = -THR_EUCLEAN;
		if (!err)
			err = blk_pread(j->b, shared, back, 512);
		if (!err && memcmp(data, back, 512))
			err = -THR_EUCLEAN;
	}
	return err;
}

static int stripes(void *arg)
{
	struct job *j = arg;
	struct thr_group g;

	thr_group_init(&g);
	for (unsigned i = 0; i < FIBERS; i++)
		thr_group_spawn(&g, thr_pool_exec(j->pool, i % 3), stripe, j);
	return thr_group_wait(&g);
}

static void t_parallel(void **state)
{
	struct job j = {.b = open_mem("1G", 0, &thr_heap)};

	(void)state;
	assert_int_equal(thr_pool_open(&j.pool, 3, &thr_heap), 0);
	assert_int_equal(thr_pool_run(j.pool, stripes, &j), 0);
	thr_pool_close(j.pool);
	assert_int_equal(allocated(j.b), 50 * CHUNK);
	blk_close(j.b);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_huge),
		cmocka_unit_test(t_grow),
		cmocka_unit_test(t_options),
		cmocka_unit_test(t_model),
		cmocka_unit_test(t_no_memory),
		cmocka_unit_test(t_fixed),
#ifndef CONFIG_THR_NONE
		cmocka_unit_test(t_parallel),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
