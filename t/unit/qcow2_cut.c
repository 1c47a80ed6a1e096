/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a power cut leaves of a qcow2 image: a seeded workload is recorded; states that a
 * cut may leave are built from the record, each is opened, checked by code that is not the
 * library's (t/fixtures/qcow2_verify.c), and every sector compared with what it may hold.
 * t/crash has more kinds of cuts and of images, and uses the library's check.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "t/fixtures/cut.h"
#include "t/fixtures/qcow2_rig.h"

enum what { WRITE, PACK, ZERO, DISCARD, FLUSH, RESIZE };

struct op {
	enum what what;
	unsigned fiber;
	uint64_t sector, n; /* what it changes; of a resize also the new size */
	uint64_t size;
	uint8_t byte;
	uint8_t *left;         /* a discard: what it left, a byte for each sector */
	uint64_t began, ended; /* on the clock of the log */
	unsigned first, last;  /* the order of beginnings and ends, for equal times */
	bool durable;          /* at the cut that is looked at */
};

#define OPS     100u
#define SECTORS 4096u

struct crash {
	struct geo geo;
	unsigned fibers;
	struct blk *disk, *backing, *log, *b, *start;
	struct op op[OPS];
	unsigned nops; /* those that have begun */
	unsigned ticks;
	bool stale; /* discards leave the bytes that were there */
	uint64_t seed;
	uint64_t at;
	unsigned mode;
};

static uint64_t size_of(const struct crash *c)
{
	return blk_size(c->b) / 512;
}

static void do_discard(struct crash *c, struct op *o, struct blk_req *r, uint8_t *buf)
{
	assert_int_equal(blk_discard(c->b, r), 0);
	assert_int_equal(blk_pread(c->b, r->off, buf, r->len), 0);
	o->left = malloc(o->n);
	for (uint64_t i = 0; i < o->n; i++)
		o->left[i] = buf[i * 512];
}

static void do_resize(struct crash *c, struct op *o)
{
	uint64_t was = size_of(c);

	assert_int_equal(blk_truncate(c->b, o->size * 512, BLK_PREALLOC_OFF, NULL), 0);
	o->sector = was;
	o->byte = 0;
	o->n = o->size > was ? o->size - was : 0;
}

static void carry_out(struct crash *c, struct op *o)
{
	struct blk_req r = {.off = o->sector * 512, .len = o->n * 512};
	uint8_t *buf = malloc(SECTORS * 512);
	struct thr_iov v = {buf, r.len};

	o->began = blk_log_now(c->log);
	o->ended = UINT64_MAX;
	o->first = ++c->ticks;
	memset(buf, o->byte, r.len);
	if (o->what == WRITE || o->what == PACK) {
		r.iov = &v;
		r.niov = 1;
		r.flags = o->what == PACK ? BLK_COMPRESS : 0;
		assert_int_equal(blk_pwritev(c->b, &r), 0);
	} else if (o->what == ZERO) {
		r.flags = o->byte & 1 ? BLK_UNMAP : 0;
		assert_int_equal(blk_zero(c->b, &r), 0);
		o->byte = 0;
	} else if (o->what == DISCARD) {
		do_discard(c, o, &r, buf);
	} else if (o->what == FLUSH) {
		o->n = 0;
		assert_int_equal(blk_flush(c->b), 0);
	} else {
		do_resize(c, o);
	}
	o->ended = blk_log_now(c->log);
	o->last = ++c->ticks;
	free(buf);
}

/* Those around it which the fiber has; otherwise it is a plain write. */
static void whole_clusters(const struct crash *c, struct op *o, uint64_t first, uint64_t end)
{
	uint64_t cluster = 1u << (c->geo.cluster_bits - 9);
	uint64_t from = o->sector / cluster * cluster;
	uint64_t to = thr_align_up(o->sector + o->n, cluster);
	uint32_t unit;

	if (from < first || to > end || fmt_driver_of(c->b)->compress(c->b, &unit, NULL)) {
		o->what = WRITE;
		return;
	}
	o->sector = from;
	o->n = to - from;
}

/* Each fiber has a part of the disk for itself, and there a few clusters that are
 * hit again and again. */
static void choose(struct crash *c, struct op *o, unsigned fiber)
{
	static const enum what kinds[] = {WRITE, WRITE, WRITE, PACK, PACK, PACK, ZERO, ZERO,
		DISCARD, FLUSH, FLUSH, FLUSH, RESIZE};
	uint32_t cluster = c->b->zero_align / 512;
	uint64_t part = size_of(c) / c->fibers, first = part * fiber;

	memset(o, 0, sizeof(*o));
	o->fiber = fiber;
	o->what = kinds[rnd(&c->seed, THR_ARRAY_SIZE(kinds) - (c->fibers > 1))];
	o->byte = (uint8_t)(1 + rnd(&c->seed, 127));
	o->size = rnd(&c->seed, SECTORS - 64) + 64;
	if (rnd(&c->seed, 2))
		part = THR_MIN(part, 4 * cluster);
	o->sector = first + rnd(&c->seed, (uint32_t)part);
	o->n = rnd(&c->seed, rnd(&c->seed, 4) ? 2 * cluster + 2 : 24 * cluster) + 1;
	o->n = THR_MIN(o->n, first + part - o->sector);
	if (o->what == PACK)
		whole_clusters(c, o, first, first + part);
	if (o->what == RESIZE)
		o->n = 0;
}

struct worker {
	struct crash *c;
	unsigned fiber;
};

static void work(void *arg)
{
	struct worker *w = arg;

	while (w->c->nops < OPS) {
		struct op *o = &w->c->op[w->c->nops++];

		choose(w->c, o, w->fiber);
		carry_out(w->c, o);
	}
}

static void work_all(struct crash *c)
{
	struct worker w[8];
	struct thr_exec *e;

	assert_int_equal(thr_exec_open(&e, &thr_heap), 0);
	for (unsigned i = 0; i < c->fibers; i++) {
		w[i].c = c;
		w[i].fiber = i;
		assert_int_equal(thr_spawn(e, work, &w[i]), 0);
	}
	thr_exec_run(e);
	thr_exec_close(e);
}

static void crash_record(struct crash *c, const struct geo *geo, uint64_t seed, unsigned fibers)
{
	struct blk *file;

	memset(c, 0, sizeof(*c));
	c->geo = *geo;
	c->fibers = fibers;
	c->seed = seed;
	c->stale = seed % 4 < 2;
	c->disk = disk_new();
	if (geo->backing)
		c->backing = backing_new(geo->backing);
	image_make(c->disk, geo);
	c->start = disk_copy(c->disk);
	file = disk_lend(
		c->disk, (fibers > 1 ? LEND_YIELD : 0) | (c->stale ? LEND_NO_DISCARD : 0));
	assert_int_equal(blk_log_open(&c->log, file, NULL, NULL, &thr_heap, NULL), 0);
	c->b = image_open(c->log, c->backing, 0);
	work_all(c);
}

static void crash_close(struct crash *c)
{
	assert_int_equal(fmt_close(c->b), 0);
	image_assert_sound(c->disk);
	blk_close(c->disk);
	blk_close(c->start);
	blk_close(c->backing);
	for (unsigned i = 0; i < c->nops; i++)
		free(c->op[i].left);
}

struct may {
	uint8_t be[SECTORS][32]; /* a bit for each value of a byte */
};

static void allow(struct may *m, uint64_t s, uint8_t v)
{
	m->be[s][v / 8] |= (uint8_t)(1u << v % 8);
}

static bool allowed(const struct may *m, uint64_t s, uint8_t v)
{
	return m->be[s][v / 8] >> v % 8 & 1;
}

static bool is_durable(const struct crash *c, const struct op *o)
{
	for (unsigned i = 0; i < c->nops; i++) {
		const struct op *f = &c->op[i];

		if (f->what == FLUSH && f->first > o->last && f->ended <= c->at)
			return true;
	}
	return false;
}

/* All that each sector may hold at the cut: what the last change put there that was
 * flushed, and what changes after it that had begun would. A sector's changes come
 * one after the other, being one fiber's. */
static void crash_may(struct crash *c, struct may *m)
{
	memset(m, 0, sizeof(*m));
	for (uint64_t s = 0; s < SECTORS; s++)
		allow(m, s, s * 512 < c->geo.backing ? backing_byte(s * 512) : 0);
	for (unsigned i = 0; i < c->nops; i++) {
		struct op *o = &c->op[i];

		if (o->began >= c->at)
			continue;
		o->durable = is_durable(c, o);
		for (uint64_t k = 0; k < o->n; k++) {
			if (o->durable)
				memset(m->be[o->sector + k], 0, sizeof(m->be[0]));
			allow(m, o->sector + k, o->left ? o->left[k] : o->byte);
		}
	}
}

static bool size_possible(const struct crash *c, uint64_t size)
{
	uint64_t now = c->geo.size;

	for (unsigned i = 0; i < c->nops && c->op[i].began < c->at; i++) {
		if (c->op[i].what != RESIZE)
			continue;
		if (c->op[i].ended > c->at && now == size)
			return true;
		now = c->op[i].size * 512;
	}
	return now == size;
}

static void crash_fail(const struct crash *c, const char *what, uint64_t sector)
{
	char name[128];

	geo_name(&c->geo, name, sizeof(name));
	fprintf(stderr, "# %s: cut at %llu mode %u: %s, sector %llu\n", name,
		(unsigned long long)c->at, c->mode, what, (unsigned long long)sector);
	fail();
}

static void crash_compare(struct crash *c, struct blk *b)
{
	struct may *m = malloc(sizeof(*m));
	uint64_t size = blk_size(b);
	uint8_t *buf = malloc(size);

	crash_may(c, m);
	if (!size_possible(c, size))
		crash_fail(c, "size", size / 512);
	assert_int_equal(blk_pread(b, 0, buf, size), 0);
	for (uint64_t s = 0; s < size / 512; s++) {
		const uint8_t *p = buf + s * 512;

		if (!allowed(m, s, p[0]))
			crash_fail(c, "content", s);
		for (unsigned i = 1; i < 512; i++)
			if (p[i] != p[0])
				crash_fail(c, "torn sector", s);
	}
	free(m);
	free(buf);
}

/* Only where counts are lazy may they be behind; opening makes them good then. */
static void crash_check(struct crash *c)
{
	struct cut cut = {c->log, c->start, c->at, c->mode, c->stale};
	struct blk *disk = cut_state(&cut, &c->seed);
	struct verdict v = image_verify(disk, 0);
	uint8_t flags[8];
	bool dirty;
	struct blk *b;

	assert_int_equal(blk_pread(disk, 72, flags, 8), 0);
	dirty = c->geo.version >= 3 && flags[7] & 1;
	if (v.bad && !dirty) {
		image_verify(disk, LEND_YIELD);
		crash_fail(c, "corrupt", 0);
	}
	if (dirty && !(c->geo.flags & GEO_LAZY))
		crash_fail(c, "dirty", 0);
	b = image_open(disk_lend(disk, 0), c->backing, 0);
	crash_compare(c, b);
	assert_int_equal(fmt_close(b), 0);
	if (dirty && image_verify(disk, 0).bad) {
		image_verify(disk, LEND_YIELD);
		crash_fail(c, "not repaired", 0);
	}
	blk_close(disk);
}

/* More of them by hand: CUTS=N; few under valgrind and sanitizers. */
static uint64_t states_wanted(void)
{
	const char *n = getenv("CUTS"), *w = getenv("W"), *s = getenv("S");

	if (n)
		return strtoull(n, NULL, 10);
	return (w && *w) || (s && *s) ? 8 : 40;
}

static void crash_run(const struct geo *geo, uint64_t seed, unsigned fibers, uint64_t states)
{
	struct crash c;
	uint64_t now, stride;

	crash_record(&c, geo, seed, fibers);
	now = blk_log_now(c.log);
	stride = THR_MAX(now * 4 / states, 1);
	for (uint64_t i = seed % stride; i < now * 4; i += stride) {
		c.at = i / 4 + 1;
		c.mode = i % 4;
		crash_check(&c);
	}
	crash_close(&c);
}

static void test_cuts(void **state)
{
	static const struct geo geos[] = {
		{3, 9, 4, 300 << 10, 0, 0},
		{3, 9, 6, 300 << 10, 200 << 10, 0},
		{3, 12, 4, 1 << 20, 0, 0},
		{3, 12, 0, 1 << 20, 3 << 20, 0},
		{2, 9, 4, 300 << 10, 100 << 10, 0},
		{2, 12, 4, 1 << 20, 3 << 20, 0},
		{3, 16, 4, 1 << 20, 700 << 10, 0},
		{3, 9, 4, 300 << 10, 200 << 10, GEO_LAZY},
		{3, 12, 5, 1 << 20, 0, GEO_LAZY},
		{3, 14, 4, 300 << 10, 200 << 10, GEO_EXTENDED},
		{3, 14, 4, 1 << 20, 0, GEO_EXTENDED},
	};

	(void)state;
	for (unsigned i = 0; i < THR_ARRAY_SIZE(geos); i++) {
		/* A dirty image is repaired when it is opened. */
		if (geos[i].flags & GEO_LAZY && !fmt_driver_find("qcow2")->check)
			continue;
		for (uint64_t seed = 1; seed <= 6; seed++)
			crash_run(&geos[i], seed, seed % 3 == 0 ? 4 : 1, states_wanted());
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_cuts)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
