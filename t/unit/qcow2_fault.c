/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Writing qcow2 images while the N-th request to the file, or the N-th allocation
 * of memory, fails: for N = 1, 2, ... until none does. The image is never corrupt
 * after it, and every sector reads as something that was put there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "t/fixtures/qcow2_rig.h"

#define SECTORS 2048u
#define STEPS   40u

/* What a sector may hold: a bit for each value of a byte. */
struct set {
	uint8_t be[32];
};

static void set_add(struct set *s, uint8_t v)
{
	s->be[v / 8] |= (uint8_t)(1u << v % 8);
}

static bool set_has(const struct set *s, uint8_t v)
{
	return s->be[v / 8] >> v % 8 & 1;
}

static void set_only(struct set *s, uint8_t v)
{
	memset(s, 0, sizeof(*s));
	set_add(s, v);
}

static void set_join(struct set *s, const struct set *t)
{
	for (unsigned i = 0; i < sizeof(s->be); i++)
		s->be[i] |= t->be[i];
}

struct rig {
	struct geo geo;
	struct blk *disk, *start, *backing, *fault, *b;
	/* Of each sector: since the last good flush, and now. */
	struct set may[SECTORS], now[SECTORS];
	uint64_t seed;
	unsigned errors;
	uint64_t sizes[STEPS + 1];
	unsigned nsizes;
};

/* ---- memory that fails ----------------------------------------------------------- */

static unsigned mem_left; /* 0: never fails */
static bool mem_failed;

static void *mem_get(void *ctx, size_t size, size_t align)
{
	(void)ctx;
	if (mem_left && !--mem_left) {
		mem_failed = true;
		return NULL;
	}
	return thr_heap.get(thr_heap.ctx, size, align);
}

static void mem_put(void *ctx, void *p, size_t size)
{
	(void)ctx;
	thr_heap.put(thr_heap.ctx, p, size);
}

static const struct thr_alloc poor = {mem_get, mem_put, NULL};

/* ---- steps -------------------------------------------------------------------------- */

static void now_range(struct rig *g, uint64_t at, uint64_t n, uint8_t byte, bool certain)
{
	for (uint64_t i = at; i < at + n; i++) {
		if (certain)
			set_only(&g->now[i], byte);
		else
			set_add(&g->now[i], byte);
		set_add(&g->may[i], byte);
	}
}

static void expect_error(struct rig *g, int err)
{
	if (!err)
		return;
	assert_true(err == -THR_EIO || err == -THR_ENOSPC || err == -THR_ENOMEM);
	g->errors++;
}

static int step_truncate(struct rig *g)
{
	uint64_t size = rnd(&g->seed, SECTORS - 64) + 64, was = blk_size(g->b) / 512;
	int err = blk_truncate(g->b, size * 512, BLK_PREALLOC_OFF, NULL);

	g->sizes[g->nsizes++] = size * 512;
	/* After an error it is either; new and cut parts may be zero from now on. */
	for (uint64_t i = THR_MIN(size, was); i < SECTORS; i++) {
		if (!err && size > was && i >= was && i < size)
			set_only(&g->now[i], 0);
		else
			set_add(&g->now[i], 0);
		set_add(&g->may[i], 0);
	}
	return err;
}

static int step(struct rig *g, uint8_t *buf)
{
	uint64_t size = blk_size(g->b) / 512, at = rnd(&g->seed, (uint32_t)size);
	uint64_t n = rnd(&g->seed, 300) + 1;
	uint32_t what = rnd(&g->seed, 20);
	uint8_t byte = (uint8_t)(1 + rnd(&g->seed, 100));
	struct blk_req r = {.off = at * 512};
	int err;

	n = THR_MIN(n, size - at);
	r.len = n * 512;
	if (what < 9) {
		memset(buf, byte, r.len);
		err = blk_pwrite(g->b, r.off, buf, r.len);
		now_range(g, at, n, byte, !err);
	} else if (what < 12) {
		r.flags = byte & 1 ? BLK_UNMAP : 0;
		err = blk_zero(g->b, &r);
		now_range(g, at, n, 0, !err);
	} else if (what < 15) {
		err = blk_discard(g->b, &r);
		now_range(g, at, n, 0, false);
	} else if (what < 18) {
		err = blk_flush(g->b);
		if (!err)
			memcpy(g->may, g->now, sizeof(g->may));
	} else {
		err = step_truncate(g);
	}
	return err;
}

static void compare(struct rig *g, struct blk *b, const struct set *sets)
{
	uint64_t size = blk_size(b);
	uint8_t *buf = malloc(size);

	assert_int_equal(blk_pread(b, 0, buf, size), 0);
	for (uint64_t i = 0; i < size; i++) {
		if (set_has(&sets[i / 512], buf[i]))
			continue;
		fprintf(stderr, "# sector %llu holds %#x\n", (unsigned long long)i / 512,
			buf[i]);
		fail();
	}
	free(buf);
	(void)g;
}

static int rig_open(struct rig *g, const struct thr_alloc *mem)
{
	struct fmt_open o = {.format = "qcow2", .blk_flags = BLK_RDWR, .mem = mem};
	int err;

	g->disk = disk_copy(g->start);
	assert_int_equal(blk_fault_open(&g->fault, disk_lend(g->disk, 0), &thr_heap, NULL), 0);
	err = fmt_open_on(&g->b, g->fault, &o, NULL);
	if (err) {
		blk_close(g->fault);
		return err;
	}
	if (g->backing)
		fmt_set_backing(g->b, disk_lend(g->backing, 0));
	return 0;
}

static void forget(struct rig *g, uint64_t seed)
{
	g->seed = seed;
	g->errors = 0;
	g->nsizes = 1;
	g->sizes[0] = g->geo.size;
	for (uint64_t i = 0; i < SECTORS; i++) {
		set_only(&g->now[i], i * 512 < g->geo.backing ? backing_byte(i * 512) : 0);
		g->may[i] = g->now[i];
	}
}

/* After it all: opened anew, without faults. */
static void aftermath(struct rig *g)
{
	struct verdict v = image_verify(g->disk, false);
	uint8_t flags[8];
	bool known = false, dirty;
	struct blk *b;

	assert_int_equal(blk_pread(g->disk, 72, flags, 8), 0);
	dirty = g->geo.flags & GEO_LAZY && flags[7] & 1;
	if (v.bad && !dirty)
		image_verify(g->disk, true);
	assert_true(!v.bad || dirty);
	for (unsigned i = 0; i < SECTORS; i++)
		set_join(&g->may[i], &g->now[i]);
	b = image_open(disk_lend(g->disk, 0), g->backing, 0);
	for (unsigned i = 0; i < g->nsizes; i++)
		known |= g->sizes[i] == blk_size(b);
	assert_true(known);
	compare(g, b, g->may);
	assert_int_equal(fmt_close(b), 0);
	assert_int_equal(image_verify(g->disk, true).bad, 0);
	blk_close(g->disk);
}

/* The whole workload with one fault; whether it came. */
static bool run_io(struct rig *g, uint64_t nth, int err)
{
	struct blk_fault rule = {.nth = nth, .err = err};
	uint8_t *buf = malloc(SECTORS * 512);
	uint64_t fired;

	forget(g, 5);
	assert_int_equal(rig_open(g, &thr_heap), 0);
	assert_int_equal(blk_fault_add(g->fault, &rule), 0);
	for (unsigned i = 0; i < STEPS; i++)
		expect_error(g, step(g, buf));
	if (!blk_fault_fired(g->fault))
		assert_int_equal(g->errors, 0);
	fired = blk_fault_fired(g->fault);
	blk_fault_clear(g->fault);
	/* What it says of itself is right, as long as it is open. */
	compare(g, g->b, g->now);
	fmt_close(g->b);
	aftermath(g);
	free(buf);
	return fired;
}

static bool run_mem(struct rig *g, unsigned nth)
{
	uint8_t *buf = malloc(SECTORS * 512);

	forget(g, 6);
	mem_failed = false;
	mem_left = nth;
	if (rig_open(g, &poor) == 0) {
		for (unsigned i = 0; i < STEPS; i++)
			expect_error(g, step(g, buf));
		mem_left = 0;
		compare(g, g->b, g->now);
		fmt_close(g->b);
	}
	mem_left = 0;
	aftermath(g);
	free(buf);
	return mem_failed;
}

static const struct geo geos[] = {
	{3, 12, 4, 700 << 10, 0, 0},
	{3, 9, 6, 700 << 10, 500 << 10, 0},
	{2, 12, 4, 700 << 10, 3 << 20, 0},
	{3, 12, 4, 700 << 10, 500 << 10, GEO_LAZY},
	{3, 14, 4, 700 << 10, 500 << 10, GEO_EXTENDED},
};

static void make(struct rig *g, const struct geo *geo)
{
	memset(g, 0, sizeof(*g));
	g->geo = *geo;
	g->start = disk_new();
	image_make(g->start, geo);
	if (geo->backing)
		g->backing = backing_new(geo->backing);
}

static void unmake(struct rig *g)
{
	blk_close(g->start);
	blk_close(g->backing);
}

/* Every one under make t; every few under valgrind and sanitizers. */
static unsigned stride(void)
{
	const char *w = getenv("W"), *s = getenv("S");

	return w && *w ? 29 : s && *s ? 5 : 1;
}

static void test_io(void **state)
{
	struct rig *g = malloc(sizeof(*g));

	(void)state;
	for (unsigned i = 0; i < THR_ARRAY_SIZE(geos); i++) {
		uint64_t n = 1;

		if (geos[i].flags & GEO_LAZY && !fmt_driver_find("qcow2")->check)
			continue;
		make(g, &geos[i]);
		while (run_io(g, n, n % 2 ? -THR_EIO : -THR_ENOSPC))
			n += stride();
		assert_true(n > 50);
		unmake(g);
	}
	free(g);
}

static void test_memory(void **state)
{
	struct rig *g = malloc(sizeof(*g));

	(void)state;
	for (unsigned i = 0; i < THR_ARRAY_SIZE(geos); i++) {
		unsigned n = 1;

		if (geos[i].flags & GEO_LAZY && !fmt_driver_find("qcow2")->check)
			continue;
		make(g, &geos[i]);
		while (run_mem(g, n))
			n += stride();
		assert_true(n > 5);
		unmake(g);
	}
	free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_io),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
