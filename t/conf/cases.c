/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/conf/cases.c - the conformance suite: every case below for every row of rows.c, in
 * files (conform.c) and with NBD in between (conform_nbd.c).
 */
#include <stdlib.h>
#include <string.h>

#include "cz/cz.h"
#include "t/conf/conf.h"

static void fresh_image_reads_as_its_backing_file(struct conf *c)
{
	conf_compare(c);
}

static void what_is_written_is_read(struct conf *c)
{
	conf_write(c, 0, c->size, 5);
	conf_compare(c);
	conf_reopen(c, 0);
	conf_compare(c);
}

static void edges_hold(struct conf *c)
{
	uint8_t byte = 7;

	conf_write(c, c->size - 1, 1, 200);
	conf_write(c, 0, 1, 201);
	conf_write(c, c->size - 513, 513, 202);
	assert_int_equal(blk_pread(c->b, c->size, &byte, 1), -THR_EINVAL);
	assert_int_equal(blk_pwrite(c->b, c->size, &byte, 1), -THR_EINVAL);
	assert_int_equal(blk_pread(c->b, c->size - 1, c->buf, 2), -THR_EINVAL);
	assert_int_equal(blk_pread(c->b, UINT64_MAX, &byte, 1), -THR_EINVAL);
	assert_int_equal(blk_pwrite(c->b, UINT64_MAX - 3, c->buf, 8), -THR_EINVAL);
	assert_int_equal(blk_size(c->b), c->size);
	conf_compare(c);
}

static void read_only_is_read_only(struct conf *c)
{
	uint8_t byte = 7;
	struct blk_req r = {.off = 0, .len = 512};

	conf_write(c, 1000, 3000, 9);
	conf_reopen(c, 0);
	assert_int_equal(blk_pwrite(c->b, 0, &byte, 1), -THR_EROFS);
	assert_int_equal(blk_zero(c->b, &r), -THR_EROFS);
	assert_int_equal(blk_discard(c->b, &r), -THR_EROFS);
	assert_int_equal(blk_truncate(c->b, c->size + 512, BLK_PREALLOC_OFF, NULL), -THR_EROFS);
	conf_compare(c);
}

static void random_steps_agree_with_the_model(struct conf *c)
{
	unsigned i;

	for (i = 0; i < 300; i++) {
		conf_step(c);
		if (i % 60 == 59) {
			conf_reopen(c, BLK_RDWR);
			conf_compare(c);
		}
	}
	conf_compare(c);
}

static void vectors_are_gathered_and_scattered(struct conf *c)
{
	uint8_t a[700], b[1], d[9000];
	struct thr_iov v[] = {{a, sizeof(a)}, {b, sizeof(b)}, {NULL, 0}, {d, sizeof(d)}};
	struct blk_req r = {.off = 12345, .len = 9000, .iov = v, .niov = 4, .iov_off = 500};

	memset(a, 1, sizeof(a));
	memset(b, 2, sizeof(b));
	memset(d, 3, sizeof(d));
	assert_int_equal(blk_pwritev(c->b, &r), 0);
	memset(c->model + 12345, 1, 200);
	c->model[12345 + 200] = 2;
	memset(c->model + 12345 + 201, 3, 9000 - 201);
	conf_compare(c);
	memset(a, 0, sizeof(a));
	memset(d, 0, sizeof(d));
	assert_int_equal(blk_preadv(c->b, &r), 0);
	assert_int_equal(a[499], 0);
	assert_memory_equal(a + 500, c->model + 12345, 200);
	assert_memory_equal(d, c->model + 12345 + 201, 9000 - 201);
	assert_int_equal(d[9000 - 201], 0);
}

/* Walks the map: it covers the disk without gaps, and says zero only of zeroes. */
static void map_agrees_with_content(struct conf *c)
{
	struct fmt_holes holes = {0};
	uint64_t off = 0;
	unsigned i;

	for (i = 0; i < 60; i++)
		conf_step(c);
	while (off < c->size) {
		struct fmt_map_extent e;

		assert_int_equal(fmt_map(c->b, NULL, off, c->size - off, &holes, &e), 0);
		assert_true(e.len && e.len <= c->size - off);
		assert_int_equal(e.off, off);
		if (e.flags & BLK_EXT_ZERO)
			assert_true(cz_is_zero(c->model + off, e.len));
		off += e.len;
	}
	assert_int_equal(off, c->size);
}

static void whole_zero_reads_zero_and_can_be_written_again(struct conf *c)
{
	conf_write(c, 0, c->size, 50);
	conf_zero(c, 0, c->size, BLK_UNMAP);
	conf_compare(c);
	assert_int_equal(blk_flush(c->b), 0);
	conf_write(c, c->size / 3, c->size / 3, 60);
	conf_reopen(c, BLK_RDWR);
	conf_compare(c);
}

static void whole_discard_never_shows_what_is_below(struct conf *c)
{
	conf_write(c, 0, c->size, 50);
	conf_discard(c, 0, c->size);
	assert_int_equal(blk_flush(c->b), 0);
	conf_compare(c);
	conf_reopen(c, BLK_RDWR);
	conf_compare(c);
}

static void grows_with_zeroes(struct conf *c)
{
	uint64_t old = c->size;

	conf_write(c, 0, old, 33);
	if (!conf_resize(c, old + old / 2 / 512 * 512, false, BLK_PREALLOC_OFF)) {
		conf_compare(c);
		return;
	}
	conf_compare(c);
	conf_write(c, old - 100, 1000, 34);
	conf_reopen(c, BLK_RDWR);
	conf_compare(c);
}

static void shrinks_only_when_told(struct conf *c)
{
	struct blk_err err = BLK_ERR_INIT;
	uint64_t old = c->size;

	conf_write(c, 0, old, 33);
	assert_int_not_equal(fmt_resize(c->b, old / 2, false, BLK_PREALLOC_OFF, &err), 0);
	if (!conf_resize(c, old / 1024 * 512, true, BLK_PREALLOC_OFF)) {
		conf_compare(c);
		return;
	}
	conf_compare(c);
	conf_reopen(c, BLK_RDWR);
	conf_compare(c);
	assert_true(conf_resize(c, old, false, BLK_PREALLOC_OFF));
	conf_compare(c);
}

#ifndef CONFIG_THR_NONE
struct writer {
	struct conf *c;
	unsigned id;
};

#define WRITERS 12u

/* Each writer owns every WRITERS-th piece of 3000 bytes: neighbours share sectors
 * and clusters. */
static int writer_run(void *arg)
{
	struct writer *w = arg;
	struct conf *c = w->c;
	uint64_t piece = 3000, off;
	int err = 0;

	for (off = w->id * piece; off < c->size && !err; off += WRITERS * piece) {
		size_t len = (size_t)(off + piece < c->size ? piece : c->size - off);

		err = blk_pwrite(c->b, off, c->model + off, len);
		if (!err && w->id == 0)
			err = blk_flush(c->b);
	}
	return err;
}

static int write_in_parallel(void *arg)
{
	struct conf *c = arg;
	struct thr_pool *pool = thr_pool_self();
	struct writer w[WRITERS];
	struct thr_group g;
	unsigned i;

	thr_group_init(&g);
	for (i = 0; i < WRITERS; i++) {
		w[i] = (struct writer){c, i};
		thr_group_spawn(
			&g, thr_pool_exec(pool, i % thr_pool_count(pool)), writer_run, &w[i]);
	}
	return thr_group_wait(&g);
}

static void parallel_neighbours_lose_nothing(struct conf *c)
{
	struct thr_pool *pool;
	uint64_t i;

	for (i = 0; i < c->size; i++)
		c->model[i] = (uint8_t)(i * 7 + i / 3000);
	assert_int_equal(thr_pool_open(&pool, 2, &thr_heap), 0);
	assert_int_equal(thr_pool_run(pool, write_in_parallel, c), 0);
	thr_pool_close(pool);
	conf_compare(c);
	conf_reopen(c, 0);
	conf_compare(c);
}
#endif

#ifdef CONFIG_FMT_OP_CONVERT
static void converts_to_a_raw_copy(struct conf *c)
{
	struct blk_err err = BLK_ERR_INIT;
	uint8_t *copy = calloc(1, c->size);
	struct blk *mem;
	struct fmt_convert cv = {
		.src = &c->b, .nsrc = 1, .dst_is_zero = true, .sparse = 4096, .fibers = 4};
	unsigned i;

	assert_non_null(copy);
	for (i = 0; i < 40; i++)
		conf_step(c);
	assert_int_equal(blk_mem_open(&mem, copy, c->size, BLK_RDWR, &thr_heap, &err), 0);
	cv.dst = mem;
	assert_int_equal(fmt_convert(&cv, &err), 0);
	blk_close(mem);
	assert_memory_equal(copy, c->model, c->size);
	free(copy);
}
#endif

#define CASE(f)                                                                                \
	{                                                                                      \
#f, f                                                                          \
	}

const struct conf_case conf_cases[] = {
	CASE(fresh_image_reads_as_its_backing_file),
	CASE(what_is_written_is_read),
	CASE(edges_hold),
	CASE(read_only_is_read_only),
	CASE(random_steps_agree_with_the_model),
	CASE(vectors_are_gathered_and_scattered),
	CASE(map_agrees_with_content),
	CASE(whole_zero_reads_zero_and_can_be_written_again),
	CASE(whole_discard_never_shows_what_is_below),
	CASE(grows_with_zeroes),
	CASE(shrinks_only_when_told),
#ifndef CONFIG_THR_NONE
	CASE(parallel_neighbours_lose_nothing),
#endif
#ifdef CONFIG_FMT_OP_CONVERT
	CASE(converts_to_a_raw_copy),
#endif
};
const unsigned conf_ncases = THR_ARRAY_SIZE(conf_cases);
