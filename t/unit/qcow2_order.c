/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The order in which a qcow2 image is written: how many writes and flushes each kind
 * of change takes, and what waits for requests in flight.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "t/fixtures/qcow2_rig.h"

/* ---- writes and flushes, counted ------------------------------------------------ */

struct rig {
	struct blk *disk, *backing, *log, *b;
	size_t seen;
};

static void rig_open(struct rig *g, const struct geo *geo)
{
	memset(g, 0, sizeof(*g));
	g->disk = disk_new();
	if (geo->backing)
		g->backing = backing_new(geo->backing);
	image_make(g->disk, geo);
	assert_int_equal(
		blk_log_open(&g->log, disk_lend(g->disk, 0), NULL, NULL, &thr_heap, NULL), 0);
	g->b = image_open(g->log, g->backing, 0);
	/* The first flush is for what others have left. */
	assert_int_equal(blk_flush(g->b), 0);
	g->seen = blk_log_count(g->log);
}

static void rig_close(struct rig *g)
{
	assert_int_equal(fmt_close(g->b), 0);
	image_assert_sound(g->disk);
	blk_close(g->disk);
	blk_close(g->backing);
}

/* What was done since the last call: w a write, z zeroing, d a discard, t a
 * truncation, f a flush; then the number of clusters where it is not one. */
static const char *done(struct rig *g)
{
	static char s[512];
	size_t n = blk_log_count(g->log);

	s[0] = 0;
	for (; g->seen < n; g->seen++) {
		char c = "rwzdft"[blk_log_get(g->log, g->seen)->op];

		snprintf(s + strlen(s), sizeof(s) - strlen(s), "%c", c);
	}
	return s;
}

static void flush(struct rig *g)
{
	assert_int_equal(blk_flush(g->b), 0);
}

#define K (64u << 10)

static void test_counts(void **state)
{
	static const struct geo geo = {3, 16, 4, 64 << 20, 0, 0};
	struct rig g;

	(void)state;
	rig_open(&g, &geo);
	flush(&g);
	assert_string_equal(done(&g), "");
	/* Data; counts and the new table together, flushed before what points there. */
	disk_put(g.b, 0, K, 1);
	assert_string_equal(done(&g), "w");
	flush(&g);
	assert_string_equal(done(&g), "wwfwf");
	/* In place. */
	disk_put(g.b, 512, 512, 2);
	flush(&g);
	assert_string_equal(done(&g), "wf");
	flush(&g);
	assert_string_equal(done(&g), "");
	/* 16 clusters are one write, and cost no more flushes than one. */
	disk_put(g.b, K, 16 * K, 3);
	flush(&g);
	assert_string_equal(done(&g), "wwfwf");
	/* 20 of them, here and there, neither. */
	for (unsigned i = 0; i < 20; i++)
		disk_put(g.b, (40 + 2 * i) * K, 512, 4);
	assert_string_equal(done(&g), "wwwwwwwwwwwwwwwwwwww");
	flush(&g);
	assert_string_equal(done(&g), "wfwf");
	rig_close(&g);
}

static void test_counts_lazy(void **state)
{
	static const struct geo geo = {3, 16, 4, 64 << 20, 0, GEO_LAZY};
	struct rig g;

	(void)state;
	rig_open(&g, &geo);
	disk_put(g.b, 0, K, 1);
	assert_string_equal(done(&g), "wfw"); /* the dirty bit first */
	flush(&g);
	assert_string_equal(done(&g), "wwfwf");
	disk_put(g.b, K, K, 1);
	flush(&g);
	/* The entry still waits for its data, but not for counts. */
	assert_string_equal(done(&g), "wwfwf");
	rig_close(&g);
}

#ifdef CONFIG_FMT_QCOW2_CHECK
/* A repair of an image that stays open clears the bit; the next change sets it again. */
static void test_lazy_repaired(void **state)
{
	static const struct geo geo = {3, 16, 4, 64 << 20, 0, GEO_LAZY};
	struct fmt_check ck = {.fix = FMT_FIX_LEAKS | FMT_FIX_ERRORS};
	uint8_t bits[8];
	struct rig g;

	(void)state;
	rig_open(&g, &geo);
	disk_put(g.b, 0, K, 1);
	assert_int_equal(blk_pread(g.disk, 72, bits, 8), 0);
	assert_int_equal(bits[7] & 1, 1);
	assert_int_equal(fmt_check(g.b, &ck, NULL), 0);
	assert_int_equal(blk_pread(g.disk, 72, bits, 8), 0);
	assert_int_equal(bits[7] & 1, 0);
	disk_put(g.b, K, K, 1);
	assert_int_equal(blk_pread(g.disk, 72, bits, 8), 0);
	assert_int_equal(bits[7] & 1, 1);
	rig_close(&g);
}
#endif

static void test_counts_cow(void **state)
{
	static const struct geo geo = {3, 16, 4, 64 << 20, 64 << 20, 0};
	struct rig g;

	(void)state;
	rig_open(&g, &geo);
	/* One write for data and copy. */
	disk_put(g.b, 1024, 512, 1);
	flush(&g);
	assert_string_equal(done(&g), "wwwfwf");
	/* A zero flag costs no data and no allocation. */
	disk_zero(g.b, 4 * K, K, 0);
	flush(&g);
	assert_string_equal(done(&g), "wf");
	disk_zero(g.b, 4 * K, K, 0);
	disk_zero(g.b, 4 * K + 512, 512, 0);
	flush(&g);
	assert_string_equal(done(&g), "");
	rig_close(&g);
}

static void test_nothing(void **state)
{
	static const struct geo geo = {3, 16, 4, 64ull << 40, 0, 0};
	struct rig g;

	(void)state;
	rig_open(&g, &geo);
	disk_discard(g.b, 0, geo.size);
	disk_zero(g.b, 0, geo.size, BLK_UNMAP);
	disk_zero(g.b, 12345, 777, 0);
	disk_discard(g.b, 12345, 7777777);
	flush(&g);
	assert_string_equal(done(&g), "");
	rig_close(&g);
}

/* The count goes down, and the cluster is punched, only after the flush that made
 * the change durable; it is used again only after that. */
static void test_drop(void **state)
{
	static const struct geo geo = {3, 16, 4, 64 << 20, 0, 0};
	struct blk_extent e;
	uint64_t first;
	struct rig g;

	(void)state;
	rig_open(&g, &geo);
	disk_put(g.b, 0, K, 1);
	flush(&g);
	assert_int_equal(blk_status(g.b, 0, K, &e), 0);
	first = e.map;
	done(&g);
	disk_discard(g.b, 0, K);
	disk_put(g.b, 2 * K, K, 2); /* not into the dropped cluster */
	assert_int_equal(blk_status(g.b, 2 * K, K, &e), 0);
	assert_int_not_equal(e.map, first);
	assert_string_equal(done(&g), "w");
	flush(&g);
	assert_string_equal(done(&g), "wfwfd");
	disk_put(g.b, 3 * K, K, 3);
	assert_int_equal(blk_status(g.b, 3 * K, K, &e), 0);
	assert_int_equal(e.map, first);
	flush(&g);
	assert_string_equal(done(&g), "wwfwf");
	rig_close(&g);
}

/* ---- requests in flight ---------------------------------------------------------- */

struct held {
	struct rig *g;
	struct blk *file;
	uint64_t first; /* the host cluster of the first guest cluster */
	bool write;
	bool over;
	uint8_t buf[512];
};

static uint64_t host_of(struct rig *g, uint64_t off)
{
	struct blk_extent e;

	assert_int_equal(blk_status(g->b, off, 512, &e), 0);
	return e.flags & BLK_EXT_MAPPED ? e.map : 0;
}

static void held_request(void *arg)
{
	struct held *h = arg;

	if (h->write)
		assert_int_equal(blk_pwrite(h->g->b, 0, h->buf, 512), 0);
	else
		assert_int_equal(blk_pread(h->g->b, 0, h->buf, 512), 0);
	h->over = true;
}

/* While a request that has mapped a cluster is under way the cluster is not used
 * again, however often the change that dropped it is flushed. */
static void held_others(void *arg)
{
	struct held *h = arg;

	while (!disk_held(h->file))
		thr_yield();
	disk_discard(h->g->b, 0, K);
	flush(h->g);
	flush(h->g);
	disk_put(h->g->b, K, K, 9);
	assert_int_not_equal(host_of(h->g, K), h->first);
	assert_false(h->over);
	disk_let_go(h->file);
	while (!h->over)
		thr_yield();
	disk_put(h->g->b, 2 * K, K, 9);
	assert_int_not_equal(host_of(h->g, 2 * K), h->first);
	flush(h->g);
	disk_put(h->g->b, 3 * K, K, 9);
	assert_int_equal(host_of(h->g, 3 * K), h->first);
}

static void run_two(void (*a)(void *), void (*b)(void *), void *arg)
{
	struct thr_exec *e;

	assert_int_equal(thr_exec_open(&e, &thr_heap), 0);
	assert_int_equal(thr_spawn(e, a, arg), 0);
	assert_int_equal(thr_spawn(e, b, arg), 0);
	thr_exec_run(e);
	thr_exec_close(e);
}

static void held_open(struct held *h, struct rig *g)
{
	static const struct geo geo = {3, 16, 4, 64 << 20, 0, 0};

	memset(h, 0, sizeof(*h));
	memset(g, 0, sizeof(*g));
	g->disk = disk_new();
	image_make(g->disk, &geo);
	h->g = g;
	h->file = disk_lend(g->disk, 0);
	g->b = image_open(h->file, NULL, 0);
	disk_put(g->b, 0, K, 1);
	flush(g);
	h->first = host_of(g, 0);
}

static void test_in_flight(void **state)
{
	struct held h;
	struct rig g;

	(void)state;
	for (int write = 0; write < 2; write++) {
		held_open(&h, &g);
		h.write = write;
		memset(h.buf, 7, sizeof(h.buf));
		disk_hold(h.file, write ? BLK_OP_WRITE : BLK_OP_READ, h.first, K);
		run_two(held_request, held_others, &h);
		assert_true(h.over);
		assert_int_equal(h.buf[0], write ? 7 : 1);
		rig_close(&g);
	}
}

static void held_flush(void *arg)
{
	struct held *h = arg;

	disk_put(h->g->b, 8 * K, K, 2);
	flush(h->g);
	h->over = true;
}

/* What is dropped while a flush is under way waits for the next one. */
static void drop_meanwhile(void *arg)
{
	struct held *h = arg;

	while (!disk_held(h->file))
		thr_yield();
	disk_discard(h->g->b, 0, K);
	disk_let_go(h->file);
	while (!h->over)
		thr_yield();
	disk_put(h->g->b, K, K, 9);
	assert_int_not_equal(host_of(h->g, K), h->first);
	flush(h->g);
	disk_put(h->g->b, 2 * K, K, 9);
	assert_int_equal(host_of(h->g, 2 * K), h->first);
}

static void test_drop_in_flush(void **state)
{
	struct held h;
	struct rig g;

	(void)state;
	held_open(&h, &g);
	disk_hold(h.file, BLK_OP_FLUSH, 0, 1);
	run_two(held_flush, drop_meanwhile, &h);
	assert_true(h.over);
	rig_close(&g);
}

/* ---- many who flush -------------------------------------------------------------- */

#define GROUP 16u

struct group {
	struct rig g;
	struct blk *file;
	unsigned began, wrote, over;
};

static void group_flush(void *arg)
{
	struct group *p = arg;

	disk_put(p->g.b, p->began++ * K, K, 1);
	p->wrote++;
	flush(&p->g);
	p->over++;
}

/* The first flush is under way; the others come meanwhile. */
static void group_let_go(void *arg)
{
	struct group *p = arg;

	while (p->wrote < GROUP || !disk_held(p->file))
		thr_yield();
	for (unsigned i = 0; i < 10; i++)
		thr_yield();
	assert_int_equal(p->over, 0);
	disk_let_go(p->file);
}

/* However many wait, they are served together: two device flushes for the one that came
 * first, two for all the others. */
static void test_group(void **state)
{
	static const struct geo geo = {3, 16, 4, 64 << 20, 0, 0};
	struct thr_exec *e;
	struct group p;
	unsigned flushes = 0;

	(void)state;
	memset(&p, 0, sizeof(p));
	p.g.disk = disk_new();
	image_make(p.g.disk, &geo);
	p.file = disk_lend(p.g.disk, 0);
	assert_int_equal(blk_log_open(&p.g.log, p.file, NULL, NULL, &thr_heap, NULL), 0);
	p.g.b = image_open(p.g.log, NULL, 0);
	disk_hold(p.file, BLK_OP_FLUSH, 0, 1);
	assert_int_equal(thr_exec_open(&e, &thr_heap), 0);
	for (unsigned i = 0; i < GROUP; i++)
		assert_int_equal(thr_spawn(e, group_flush, &p), 0);
	assert_int_equal(thr_spawn(e, group_let_go, &p), 0);
	thr_exec_run(e);
	thr_exec_close(e);
	assert_int_equal(p.over, GROUP);
	for (const char *s = done(&p.g); *s; s++)
		flushes += *s == 'f';
	assert_int_equal(flushes, 4);
	rig_close(&p.g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_counts_lazy),
#ifdef CONFIG_FMT_QCOW2_CHECK
		cmocka_unit_test(test_lazy_repaired),
#endif
		cmocka_unit_test(test_counts_cow),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_drop),
		cmocka_unit_test(test_in_flight),
		cmocka_unit_test(test_drop_in_flush),
		cmocka_unit_test(test_group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
