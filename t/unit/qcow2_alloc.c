/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Allocation of host clusters: first fit, growing reference counts, a device that
 * is full, tables in reused clusters, and a layout that depends on the order of
 * turns only.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "fmt/qcow2/write.h"
#include "t/fixtures/qcow2_rig.h"

static struct blk *fresh_image(struct blk **disk, const struct geo *geo)
{
	*disk = disk_new();
	image_make(*disk, geo);
	return image_open(disk_lend(*disk, LEND_NO_DISCARD), NULL, 0);
}

static void finish(struct blk *b, struct blk *disk)
{
	assert_int_equal(fmt_close(b), 0);
	image_assert_sound(disk);
	blk_close(disk);
}

/* ---- first fit --------------------------------------------------------------- */

#define CLUSTERS 3000u

struct run {
	uint64_t host, n;
};

static void load_counts(struct qcow2 *q, uint8_t *used)
{
	uint64_t count;

	for (uint64_t i = 0; i < CLUSTERS; i++) {
		assert_int_equal(qcow2_refcount_get(q, i, &count), 0);
		used[i] = count != 0;
	}
}

static uint64_t first_fit(const uint8_t *used, uint64_t n)
{
	uint64_t run = 0;

	for (uint64_t i = 1; i < CLUSTERS; i++) {
		run = used[i] ? 0 : run + 1;
		if (run == n)
			return i + 1 - n;
	}
	return 0;
}

static bool blocks_there(struct qcow2 *q, uint64_t cluster, uint64_t n)
{
	uint64_t off;

	for (uint64_t i = cluster; i < cluster + n; i++) {
		assert_int_equal(qcow2_refblock_get(q, i >> qcow2_refblock_bits(q), &off), 0);
		if (!off)
			return false;
	}
	return true;
}

static void alloc_step(struct qcow2 *q, struct run *r, uint8_t *used, uint64_t *seed)
{
	uint64_t want, expect;
	bool fresh, exact;

	want = rnd(seed, rnd(seed, 4) ? 6 : 90) + 1;
	load_counts(q, used);
	expect = first_fit(used, want);
	exact = expect && blocks_there(q, expect, want);
	assert_int_equal(qcow2_alloc(q, want, &r->host, &fresh), 0);
	r->n = want;
	if (exact)
		assert_int_equal(r->host >> q->h.cluster_bits, expect);
	load_counts(q, used);
	for (uint64_t i = 0; i < want; i++)
		assert_true(used[(r->host >> q->h.cluster_bits) + i]);
}

static void first_fit_of(unsigned order, uint64_t seed)
{
	struct geo geo = {3, 9, order, 1 << 20, 0, 0};
	struct run runs[64] = {{0, 0}};
	uint8_t *used = malloc(CLUSTERS);
	struct blk *disk, *b = fresh_image(&disk, &geo);
	struct qcow2 *q = qcow2_of(b);
	uint64_t live = 0;

	qcow2_layout_lock(q);
	for (unsigned i = 0; i < 200; i++) {
		struct run *r = &runs[rnd(&seed, 64)];

		if (r->n)
			qcow2_unalloc(q, r->host, r->n);
		live -= r->n;
		r->n = 0;
		if (rnd(&seed, 3))
			alloc_step(q, r, used, &seed);
		live += r->n;
	}
	assert_true(live > 0);
	for (unsigned i = 0; i < 64; i++)
		if (runs[i].n)
			qcow2_unalloc(q, runs[i].host, runs[i].n);
	qcow2_layout_unlock(q);
	free(used);
	finish(b, disk);
}

static void test_first_fit(void **state)
{
	(void)state;
	for (unsigned order = 0; order <= 6; order++)
		first_fit_of(order, order + 1);
}

/* ---- growth ------------------------------------------------------------------------ */

/* Every block and the table itself are found where they are counted; a table of 64
 * entries for blocks of 64 counts has to move many times. */
static void test_growth(void **state)
{
	static const struct geo geo = {3, 9, 6, 64 << 10, 0, 0};
	struct blk *disk, *b = fresh_image(&disk, &geo);
	struct qcow2 *q = qcow2_of(b);
	uint32_t before = q->h.reft_clusters;
	uint64_t size = 24 << 20;
	uint8_t buf[512];

	(void)state;
	assert_int_equal(blk_truncate(b, size, BLK_PREALLOC_OFF, NULL), 0);
	for (uint64_t off = 0; off < size; off += 256 << 10)
		disk_put(b, off, 256 << 10, (uint8_t)(1 + (off >> 18)));
	assert_true(q->h.reft_clusters > 4 * before);
	assert_int_equal(blk_flush(b), 0);
	assert_int_equal(fmt_close(b), 0);
	image_assert_sound(disk);
	b = image_open(disk_lend(disk, 0), NULL, 0);
	for (uint64_t off = 0; off < size; off += 512) {
		assert_int_equal(blk_pread(b, off, buf, 512), 0);
		assert_int_equal(buf[0], (uint8_t)(1 + (off >> 18)));
		assert_int_equal(buf[511], buf[0]);
	}
	finish(b, disk);
}

/* One request that needs more blocks than a block has counts. */
static void test_large_run(void **state)
{
	static const struct geo geo = {3, 9, 6, 8 << 20, 0, 0};
	struct blk *disk, *b = fresh_image(&disk, &geo);
	struct blk_extent e;

	(void)state;
	disk_put(b, 0, 4 << 20, 5);
	assert_int_equal(blk_status(b, 0, 32 << 10, &e), 0);
	assert_int_equal(e.len, 32 << 10);
	finish(b, disk);
}

/* ---- a full device -------------------------------------------------------------------- */

static void test_full(void **state)
{
	static const struct geo geo = {3, 12, 4, 16 << 20, 0, 0};
	uint64_t size = 4 << 20, at = 0;
	uint8_t *mem = calloc(1, size), buf[8192];
	struct blk *disk, *b;
	struct blk_req r = {.len = 1 << 20};
	int err = 0;

	(void)state;
	assert_int_equal(blk_mem_open(&disk, mem, size, BLK_RDWR, &thr_heap, NULL), 0);
	image_make(disk, &geo);
	b = image_open(disk_lend(disk, 0), NULL, 0);
	memset(buf, 1, sizeof(buf));
	for (; !err; at += sizeof(buf))
		err = blk_pwrite(b, at, buf, sizeof(buf));
	assert_int_equal(err, -THR_ENOSPC);
	assert_true(at > 3 << 20);
	/* What was given back can be had again. */
	assert_int_equal(blk_discard(b, &r), 0);
	assert_int_equal(blk_pwrite(b, 8 << 20, buf, sizeof(buf)), -THR_ENOSPC);
	assert_int_equal(blk_flush(b), 0);
	assert_int_equal(blk_pwrite(b, 8 << 20, buf, sizeof(buf)), 0);
	assert_int_equal(blk_pread(b, (2 << 20), buf, 512), 0);
	assert_int_equal(buf[0], 1);
	finish(b, disk);
	free(mem);
}

/* ---- reuse ------------------------------------------------------------------------------- */

/* A cluster full of data becomes an L2 table, and one with a hole a data cluster:
 * nothing of what was there shows. */
static void test_reuse(void **state)
{
	static const struct geo geo = {3, 16, 4, 2ull << 30, 0, 0};
	struct blk *disk, *b = fresh_image(&disk, &geo);
	struct blk_req r = {.len = 64 << 10};
	struct blk_extent e;
	uint64_t first;
	uint8_t buf[1024];

	(void)state;
	disk_put(b, 0, 128 << 10, 0xff);
	assert_int_equal(blk_status(b, 0, 512, &e), 0);
	first = e.map;
	r.len = 128 << 10;
	assert_int_equal(blk_discard(b, &r), 0);
	assert_int_equal(blk_flush(b), 0);
	disk_put(b, 1ull << 30, 512, 7);
	assert_int_equal(blk_status(b, 1ull << 30, 512, &e), 0);
	assert_int_equal(e.map, first + (64 << 10)); /* the table took the first */
	assert_int_equal(blk_pread(b, 1ull << 30, buf, 1024), 0);
	assert_int_equal(buf[0], 7);
	assert_int_equal(buf[512], 0);
	assert_int_equal(fmt_close(b), 0);
	b = image_open(disk_lend(disk, 0), NULL, 0);
	assert_int_equal(blk_status(b, (1ull << 30) + (64 << 10), 1 << 29, &e), 0);
	assert_int_equal(e.flags & (BLK_EXT_ALLOC | BLK_EXT_DATA), 0);
	assert_int_equal(e.len, 1 << 29);
	finish(b, disk);
}

/* ---- turns ----------------------------------------------------------------------------------
 */

#define CHUNKS 48u
#define CHUNK  (256u << 10)

struct par {
	struct blk *b;
	struct thr_seq seq;
	uint32_t failures; /* atomic */
	bool yield;
};

static uint64_t chunk_at(uint64_t ticket)
{
	return ticket * 7 % CHUNKS * CHUNK;
}

static int par_member(void *arg)
{
	struct par *p = arg;
	uint8_t *buf = malloc(CHUNK);

	for (;;) {
		struct blk_turn turn = {.seq = &p->seq};
		struct thr_iov v = {buf, CHUNK};
		struct blk_req r = {.len = CHUNK, .iov = &v, .niov = 1, .turn = &turn};
		int err;

		turn.ticket = thr_seq_take(&p->seq);
		if (turn.ticket >= CHUNKS) {
			blk_turn_leave(&turn);
			break;
		}
		r.off = chunk_at(turn.ticket);
		memset(buf, (int)(turn.ticket + 1), CHUNK);
		for (uint64_t i = 0; p->yield && i < turn.ticket % 5; i++)
			thr_yield();
		if (turn.ticket % 9 == 4)
			err = blk_zero(p->b, &r);
		else if (turn.ticket % 9 == 5)
			err = blk_discard(p->b, &r);
		else
			err = blk_pwritev(p->b, &r);
		if (err)
			__atomic_fetch_add(&p->failures, 1, __ATOMIC_RELAXED);
	}
	free(buf);
	return 0;
}

static int par_run(void *arg)
{
	struct thr_pool *pool = thr_pool_self();
	struct thr_group g;

	thr_group_init(&g);
	for (unsigned i = 0; i < 6; i++)
		thr_group_spawn(&g, thr_pool_exec(pool, i % 2), par_member, arg);
	return thr_group_wait(&g);
}

static struct blk *par_image(const struct geo *geo, bool parallel)
{
	struct blk *disk = disk_new(), *backing = NULL;
	struct par p = {.yield = parallel};
	struct thr_pool *pool;

	if (geo->backing)
		backing = backing_new(geo->backing);
	image_make(disk, geo);
	p.b = image_open(disk_lend(disk, parallel ? LEND_YIELD : 0), backing, 0);
	thr_seq_init(&p.seq);
	if (parallel) {
		assert_int_equal(thr_pool_open(&pool, 2, &thr_heap), 0);
		assert_int_equal(thr_pool_run(pool, par_run, &p), 0);
		thr_pool_close(pool);
	} else {
		par_member(&p);
	}
	assert_int_equal(p.failures, 0);
	assert_int_equal(fmt_close(p.b), 0);
	image_assert_sound(disk);
	blk_close(backing);
	return disk;
}

/* The same bytes in the file, whatever order the work finished in. */
static void test_turns(void **state)
{
	static const struct geo geos[] = {
		{3, 16, 4, CHUNKS * CHUNK, 0, 0},
		{3, 9, 4, CHUNKS * CHUNK, 0, 0},
		{3, 12, 6, CHUNKS * CHUNK, 5 << 20, 0},
		{2, 12, 4, CHUNKS * CHUNK, 5 << 20, 0},
	};

	(void)state;
	for (unsigned i = 0; i < THR_ARRAY_SIZE(geos); i++) {
		struct blk *one = par_image(&geos[i], false);
		uint64_t size = blk_size(one);
		uint8_t *a = malloc(size), *b = malloc(size);

		assert_int_equal(blk_pread(one, 0, a, size), 0);
		for (unsigned k = 0; k < 3; k++) {
			struct blk *many = par_image(&geos[i], true);

			assert_int_equal(blk_size(many), size);
			assert_int_equal(blk_pread(many, 0, b, size), 0);
			assert_int_equal(memcmp(a, b, size), 0);
			blk_close(many);
		}
		blk_close(one);
		free(a);
		free(b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_fit),
		cmocka_unit_test(test_growth),
		cmocka_unit_test(test_large_run),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_reuse),
		cmocka_unit_test(test_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
