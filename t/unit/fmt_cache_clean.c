/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The metadata cache gives memory back: what has not been used for an interval, and
 * nothing that is dirty, pinned or being written. The time is the test's own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "fmt/cache.h"

#define SLICE  512u
#define SLICES 64u

struct disk {
	struct blk blk;
	uint8_t bytes[SLICES * SLICE];
	unsigned reads;
};

static int disk_preadv(struct blk *b, struct blk_req *r)
{
	struct disk *d = THR_CONTAINER(b, struct disk, blk);

	__atomic_add_fetch(&d->reads, 1, __ATOMIC_RELAXED);
	blk_req_from_buf(r, 0, d->bytes + r->off, r->len);
	thr_yield();
	return 0;
}

static int disk_pwritev(struct blk *b, struct blk_req *r)
{
	struct disk *d = THR_CONTAINER(b, struct disk, blk);

	thr_yield();
	blk_req_to_buf(r, 0, d->bytes + r->off, r->len);
	return 0;
}

static int disk_flush(struct blk *b)
{
	(void)b;
	return 0;
}

static const struct blk_ops disk_ops = {
	.name = "disk",
	.preadv = disk_preadv,
	.pwritev = disk_pwritev,
	.flush = disk_flush,
};

struct rig {
	struct disk disk;
	struct thr_alloc alloc;
	uint64_t bytes; /* atomic: allocated */
	uint64_t clock; /* atomic */
	struct fmt_cache *c;
	struct blk *file;
};

static void *count_get(void *ctx, size_t size, size_t align)
{
	struct rig *g = ctx;
	void *p = thr_get(&thr_heap, size, align);

	assert_non_null(p);
	__atomic_add_fetch(&g->bytes, size, __ATOMIC_RELAXED);
	return p;
}

static void count_put(void *ctx, void *p, size_t size)
{
	struct rig *g = ctx;

	__atomic_sub_fetch(&g->bytes, size, __ATOMIC_RELAXED);
	thr_put(&thr_heap, p, size);
}

static void rig_open(struct rig *g, unsigned max)
{
	memset(g, 0, sizeof(*g));
	g->alloc = (struct thr_alloc){count_get, count_put, g};
	g->file = &g->disk.blk;
	blk_init(g->file, &disk_ops, "disk", BLK_RDWR, &thr_heap);
	blk_set_size(g->file, sizeof(g->disk.bytes));
	for (unsigned i = 0; i < SLICES; i++)
		g->disk.bytes[i * SLICE] = (uint8_t)(i + 1);
	assert_int_equal(fmt_cache_open(&g->c, SLICE, max, &g->alloc), 0);
	assert_int_equal(fmt_cache_attach(g->c, g->file), 0);
}

static void rig_close(struct rig *g)
{
	fmt_cache_detach(g->c, g->file);
	fmt_cache_close(g->c);
	blk_fini(g->file);
	assert_int_equal(g->bytes, 0);
}

static struct fmt_slice *get(struct rig *g, unsigned n)
{
	struct fmt_slice *s = NULL;

	assert_int_equal(fmt_slice_get(g->c, g->file, n * SLICE, &s), 0);
	return s;
}

/* Reads slices [from, to); each holds what the disk has. */
static void use(struct rig *g, unsigned from, unsigned to)
{
	fmt_cache_lock(g->c);
	for (unsigned i = from; i < to; i++) {
		struct fmt_slice *s = get(g, i);

		assert_int_equal(s->data[0], i + 1);
		fmt_slice_put(g->c, s);
	}
	fmt_cache_unlock(g->c);
}

static void the_unused_is_freed(void **state)
{
	struct rig g;
	uint64_t full;

	(void)state;
	rig_open(&g, SLICES);
	use(&g, 0, SLICES);
	full = g.bytes;
	assert_int_equal(fmt_cache_clean(g.c, 1000), 0); /* no interval */
	fmt_cache_interval(g.c, 100);
	assert_int_equal(fmt_cache_clean(g.c, 1000), 0); /* the clock starts */
	assert_int_equal(fmt_cache_clean(g.c, 1100), 0); /* all were used in this period */
	use(&g, 10, 20);
	assert_int_equal(fmt_cache_clean(g.c, 1199), 0); /* not yet */
	assert_int_equal(g.bytes, full);
	assert_true(fmt_cache_clean(g.c, 1200) >= (uint64_t)(SLICES - 10) * SLICE);
	assert_true(g.bytes <= full - (uint64_t)(SLICES - 10) * SLICE);
	g.disk.reads = 0;
	use(&g, 10, 20);
	assert_int_equal(g.disk.reads, 0);
	use(&g, 0, SLICES);
	assert_int_equal(g.disk.reads, SLICES - 10);
	assert_int_equal(g.bytes, full);
	rig_close(&g);
}

/* Also over more periods than a byte can count. */
static void what_is_used_stays(void **state)
{
	struct rig g;
	uint64_t now;

	(void)state;
	rig_open(&g, SLICES);
	fmt_cache_interval(g.c, 10);
	use(&g, 0, 8);
	g.disk.reads = 0;
	for (now = 10; now < 6000; now += 10) {
		use(&g, 0, 8);
		fmt_cache_clean(g.c, now);
	}
	assert_int_equal(g.disk.reads, 0);
	assert_true(fmt_cache_clean(g.c, now) >= 8 * SLICE);
	rig_close(&g);
}

static void the_dirty_and_the_pinned_stay(void **state)
{
	struct rig g;
	struct fmt_slice *pinned, *dirty, *s;
	uint64_t now;

	(void)state;
	rig_open(&g, SLICES);
	fmt_cache_interval(g.c, 10);
	use(&g, 0, SLICES);
	fmt_cache_lock(g.c);
	pinned = get(&g, 3);
	dirty = get(&g, 5);
	dirty->data[0] = 77;
	fmt_slice_dirty(g.c, dirty, FMT_RANK_L2, 0, 1);
	fmt_slice_put(g.c, dirty);
	fmt_cache_unlock(g.c);
	for (now = 10; now < 100; now += 10)
		fmt_cache_clean(g.c, now);

	g.disk.reads = 0;
	fmt_cache_lock(g.c);
	assert_int_equal(fmt_slice_peek(g.c, g.file, 2 * SLICE, &s), -THR_EAGAIN);
	assert_int_equal(pinned->data[0], 4);
	s = get(&g, 5);
	assert_ptr_equal(s, dirty);
	assert_int_equal(s->data[0], 77);
	fmt_slice_put(g.c, s);
	assert_int_equal(g.disk.reads, 0);
	fmt_slice_put(g.c, pinned);
	assert_int_equal(fmt_cache_flush(g.c, g.file), 0);
	fmt_cache_unlock(g.c);
	assert_int_equal(g.disk.bytes[5 * SLICE], 77);
	assert_int_equal(fmt_cache_clean(g.c, now), 0);
	assert_true(fmt_cache_clean(g.c, now + 10) >= 2 * SLICE);
	rig_close(&g);
}

#ifdef CONFIG_THR_FIBERS
#define FIBERS 6u
#define ROUNDS 300u

struct worker {
	struct rig *g;
	unsigned n;
};

static int count_up(void *arg)
{
	struct worker *w = arg;
	struct rig *g = w->g;

	for (unsigned i = 0; i < ROUNDS; i++) {
		unsigned n = (i * 7 + w->n * 5) % SLICES;
		struct fmt_slice *s;

		fmt_cache_lock(g->c);
		s = get(g, n);
		thr_put_be32(s->data + 4, thr_be32(s->data + 4) + 1);
		fmt_slice_dirty(g->c, s, FMT_RANK_L2, 0, 8);
		fmt_slice_put(g->c, s);
		if (i % 16 == w->n)
			assert_int_equal(fmt_cache_flush(g->c, g->file), 0);
		fmt_cache_unlock(g->c);
		fmt_cache_clean(g->c, __atomic_add_fetch(&g->clock, 1, __ATOMIC_RELAXED));
		thr_yield();
	}
	return 0;
}

static int spread(void *arg)
{
	struct worker w[FIBERS];
	struct thr_group grp;

	thr_group_init(&grp);
	for (unsigned i = 0; i < FIBERS; i++) {
		struct thr_pool *p = thr_pool_self();

		w[i] = (struct worker){arg, i};
		assert_int_equal(thr_group_spawn(&grp, thr_pool_exec(p, i % thr_pool_count(p)),
					 count_up, &w[i]),
			0);
	}
	return thr_group_wait(&grp);
}

/* Nothing that was counted is lost, however often the cache is emptied meanwhile. */
static void fibers_lose_nothing(void **state)
{
	struct thr_pool *p;
	struct rig g;
	uint32_t sum = 0;

	(void)state;
	rig_open(&g, 16);
	fmt_cache_interval(g.c, 2);
	assert_int_equal(thr_pool_open(&p, 3, &thr_heap), 0);
	assert_int_equal(thr_pool_run(p, spread, &g), 0);
	thr_pool_close(p);
	fmt_cache_lock(g.c);
	assert_int_equal(fmt_cache_flush(g.c, g.file), 0);
	fmt_cache_unlock(g.c);
	for (unsigned i = 0; i < SLICES; i++) {
		assert_int_equal(g.disk.bytes[i * SLICE], i + 1);
		sum += thr_be32(g.disk.bytes + i * SLICE + 4);
	}
	assert_int_equal(sum, FIBERS * ROUNDS);
	rig_close(&g);
}
#endif

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_unused_is_freed),
		cmocka_unit_test(what_is_used_stays),
		cmocka_unit_test(the_dirty_and_the_pinned_stay),
#ifdef CONFIG_THR_FIBERS
		cmocka_unit_test(fibers_lose_nothing),
#endif
	};

	return cmocka_run_group_tests_name("fmt_cache_clean", tests, NULL, NULL);
}
