/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Comparing: the first difference is found, by any number of threads; lengths, zeroes
 * and allocation count as they should; errors are told in the order of the images.
 */
#include "t/unit/fmt_util.h"

#define SIZE   (3u << 20)
#define BLOCKS (SIZE / BLOCK)

struct job {
	struct fmt_compare c;
	struct blk_err err;
};

static int compare(void *arg)
{
	struct job *j = arg;

	return fmt_compare(&j->c, &j->err);
}

static int run(struct job *j, struct layer *a, struct layer *b, unsigned threads)
{
	j->c.a = &a->b;
	j->c.b = &b->b;
	j->err = (struct blk_err)BLK_ERR_INIT;
	return in_pool(threads, compare, j);
}

/* The same content, though not in the same kinds of extents: zeroes may be anything. */
static struct layer *disguised(struct layer *from, uint64_t size, uint32_t *seed)
{
	struct layer *l = layer_new(size, NULL);
	uint64_t blocks = THR_MIN(size, blk_size(&from->b)) / BLOCK;

	for (uint64_t i = 0; i < blocks; i++) {
		static const uint8_t zeroes[BLOCK];
		bool data = from->kind[i] == DATA &&
			    memcmp(from->data + i * BLOCK, zeroes, BLOCK) != 0;

		layer_set(l, i, 1, data ? DATA : (enum kind)(rnd(seed) % 3), 0);
		if (data)
			memcpy(l->data + i * BLOCK, from->data + i * BLOCK, BLOCK);
	}
	return l;
}

static const unsigned threads[] = {0, 1, 2, 5};

static void equal_content_is_equal(void **state)
{
	uint32_t seed = 4;

	(void)state;
	for (unsigned i = 0; i < 12; i++) {
		struct layer *a = layer_new(SIZE, NULL);
		struct job j = {0};
		struct layer *b;

		layer_scatter(a, &seed, i % 2 ? 20 : 2000);
		b = disguised(a, SIZE, &seed);
		assert_int_equal(run(&j, a, b, threads[i % 4]), 0);
		assert_int_equal(j.c.result, FMT_SAME);
		assert_false(j.c.warn_size);
		assert_int_equal(a->idle_reads + b->idle_reads, 0);
		layers_close(a);
		layers_close(b);
	}
}

static void the_first_difference_is_found(void **state)
{
	uint32_t seed = 99;

	(void)state;
	for (unsigned i = 0; i < 40; i++) {
		struct layer *a = layer_new(SIZE, NULL);
		uint64_t first = UINT64_MAX;
		struct job j = {0};
		struct layer *b;

		layer_scatter(a, &seed, 300);
		b = disguised(a, SIZE, &seed);
		for (unsigned n = 0; n < 1 + i % 5; n++) {
			uint64_t at = rnd(&seed) % SIZE;

			if (b->kind[at / BLOCK] != DATA)
				layer_set(b, at / BLOCK, 1, DATA, 0);
			b->data[at] ^= 0x40;
			first = THR_MIN(first, at);
		}
		for (unsigned t = 0; t < THR_ARRAY_SIZE(threads); t++) {
			assert_int_equal(run(&j, t % 2 ? a : b, t % 2 ? b : a, threads[t]), 0);
			assert_int_equal(j.c.result, FMT_DIFFERENT);
			assert_false(j.c.allocation);
			assert_int_equal(j.c.offset, first / BLOCK * BLOCK);
		}
		layers_close(a);
		layers_close(b);
	}
}

static void lengths_may_differ_by_zeroes(void **state)
{
	struct layer *a = layer_new(SIZE, NULL);
	struct layer *b = layer_new(SIZE + 100 * BLOCK, NULL);
	struct job j = {0};

	(void)state;
	layer_set(a, 10, 10, DATA, 1);
	layer_set(b, 10, 10, DATA, 1);
	layer_set(b, BLOCKS + 10, 5, DATA, 0);
	for (unsigned t = 0; t < THR_ARRAY_SIZE(threads); t++) {
		assert_int_equal(run(&j, t % 2 ? a : b, t % 2 ? b : a, threads[t]), 0);
		assert_int_equal(j.c.result, FMT_SAME);
		assert_true(j.c.warn_size);
	}
	b->data[(BLOCKS + 14) * BLOCK + 511] = 1;
	assert_int_equal(run(&j, a, b, 2), 0);
	assert_int_equal(j.c.result, FMT_DIFFERENT);
	assert_int_equal(j.c.offset, (BLOCKS + 14) * BLOCK);
	assert_true(j.c.warn_size);
	/* A difference before comes first, and then lengths are not looked at. */
	a->data[15 * BLOCK] = 2;
	assert_int_equal(run(&j, a, b, 2), 0);
	assert_int_equal(j.c.offset, 15 * BLOCK);
	assert_false(j.c.warn_size);
	j.c.strict = true;
	assert_int_equal(run(&j, a, b, 2), 0);
	assert_int_equal(j.c.result, FMT_SIZE_DIFFERS);
	layers_close(a);
	layers_close(b);
}

static void strictly_allocation_counts(void **state)
{
	struct layer *a = layer_new(SIZE, NULL);
	struct layer *b = layer_new(SIZE, NULL);
	struct job j = {.c = {.strict = true}};

	(void)state;
	layer_set(a, 100, 10, DATA, 1);
	layer_set(b, 100, 10, DATA, 1);
	layer_set(a, 200, 100, ZERO, 0);
	layer_set(b, 200, 100, ZERO, 0);
	a->step = 7;
	assert_int_equal(run(&j, a, b, 2), 0);
	assert_int_equal(j.c.result, FMT_SAME);
	layer_set(b, 250, 5, ABSENT, 0);
	for (unsigned t = 0; t < THR_ARRAY_SIZE(threads); t++) {
		assert_int_equal(run(&j, a, b, threads[t]), 0);
		assert_int_equal(j.c.result, FMT_DIFFERENT);
		assert_true(j.c.allocation);
		assert_int_equal(j.c.offset, 250 * BLOCK);
	}
	/* Content before it comes first. */
	b->data[101 * BLOCK + 3] = 0;
	assert_int_equal(run(&j, a, b, 2), 0);
	assert_int_equal(j.c.result, FMT_DIFFERENT);
	assert_false(j.c.allocation);
	assert_int_equal(j.c.offset, 101 * BLOCK);
	j.c.strict = false;
	b->data[101 * BLOCK + 3] = 1;
	assert_int_equal(run(&j, a, b, 2), 0);
	assert_int_equal(j.c.result, FMT_SAME);
	assert_false(j.c.allocation);
	layers_close(a);
	layers_close(b);
}

static void errors_come_in_order_too(void **state)
{
	struct layer *a = layer_new(SIZE, NULL);
	struct layer *b = layer_new(SIZE, NULL);
	struct job j = {0};

	(void)state;
	layer_set(a, 0, BLOCKS, DATA, 1);
	layer_set(b, 0, BLOCKS, DATA, 1);
	b->fail_status = 3000;
	for (unsigned t = 0; t < THR_ARRAY_SIZE(threads); t++) {
		assert_int_equal(run(&j, a, b, threads[t]), -THR_EUCLEAN);
		assert_int_equal(j.err.id, BLK_E_MAP_AT);
		assert_int_equal(j.err.off, 3000 * BLOCK);
	}
	/* What is found before it counts, what lies behind it does not. */
	b->data[2999 * BLOCK] = 2;
	assert_int_equal(run(&j, a, b, 2), 0);
	assert_int_equal(j.c.result, FMT_DIFFERENT);
	assert_int_equal(j.c.offset, 2999 * BLOCK);
	b->data[2999 * BLOCK] = 1;
	b->data[3001 * BLOCK] = 2;
	assert_int_equal(run(&j, a, b, 2), -THR_EUCLEAN);
	layers_close(a);
	layers_close(b);
}

static void reads_that_fail_are_told(void **state)
{
	struct blk_fault rule = {.ops = 1u << BLK_OP_READ,
		.off = 1 << 20,
		.len = 1,
		.err = -THR_EIO,
		.always = true};
	struct blk *disk = disk_new("3M", &thr_heap);
	struct layer *a = layer_new(SIZE, NULL);
	struct blk *fault;
	struct job j = {0};

	(void)state;
	layer_set(a, 0, BLOCKS, DATA, 0);
	assert_int_equal(blk_fault_open(&fault, disk, &thr_heap, NULL), 0);
	assert_int_equal(blk_fault_add(fault, &rule), 0);
	j.c.a = &a->b;
	j.c.b = fault;
	for (unsigned t = 0; t < THR_ARRAY_SIZE(threads); t++) {
		/* Written, so that the map does not say that it is zero. */
		assert_int_equal(blk_pwrite(fault, 1 << 20, "\0", 1), 0);
		assert_int_equal(in_pool(threads[t], compare, &j), -THR_EIO);
		assert_int_equal(j.err.id, BLK_E_READ_AT);
		assert_int_equal(j.err.off, 1 << 20);
	}
	blk_close(fault);
	layers_close(a);
}

static void any_allocation_may_fail(void **state)
{
	struct layer *a = layer_new(SIZE, NULL);
	struct layer *b = layer_new(SIZE, NULL);
	unsigned n = 0, errors = 0;
	struct purse p;

	(void)state;
	layer_set(a, 0, BLOCKS, DATA, 1);
	layer_set(b, 0, BLOCKS, DATA, 1);
	do {
		struct job j = {0};
		int ret;

		purse_init(&p);
		p.fail_at = ++n;
		a->b.mem = &p.mem;
		ret = run(&j, a, b, n % 2 ? 2 : 0);
		assert_int_equal(p.live, 0);
		assert_true(ret == 0 || ret == -THR_ENOMEM);
		if (ret)
			assert_int_equal(j.err.code, -THR_ENOMEM);
		else
			assert_int_equal(j.c.result, FMT_SAME);
		errors += ret != 0;
	} while (p.calls >= p.fail_at);
	assert_true(errors);
	a->b.mem = &thr_heap;
	layers_close(a);
	layers_close(b);
}

static void progress_goes_up_to_the_end(void **state)
{
	uint32_t seed = 4;
	struct layer *a = layer_new(SIZE, NULL);
	struct layer *b;

	(void)state;
	layer_scatter(a, &seed, 500);
	b = disguised(a, SIZE - 512, &seed);
	for (unsigned t = 0; t < THR_ARRAY_SIZE(threads); t++) {
		struct seen s = {0};
		struct job j = {.c = {.progress = {see, &s}}};

		layer_set(a, BLOCKS - 1, 1, ABSENT, 0);
		assert_int_equal(run(&j, a, b, threads[t]), 0);
		assert_int_equal(j.c.result, FMT_SAME);
		assert_int_equal(s.last, SIZE);
		assert_int_equal(s.total, SIZE);
	}
	layers_close(a);
	layers_close(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_content_is_equal),
		cmocka_unit_test(the_first_difference_is_found),
		cmocka_unit_test(lengths_may_differ_by_zeroes),
		cmocka_unit_test(strictly_allocation_counts),
		cmocka_unit_test(errors_come_in_order_too),
		cmocka_unit_test(reads_that_fail_are_told),
		cmocka_unit_test(any_allocation_may_fail),
		cmocka_unit_test(progress_goes_up_to_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
