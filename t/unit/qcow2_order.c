/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The order in which a qcow2 image is written: how many writes and flushes each kind
 * of change takes, and what a power cut leaves behind. A seeded workload is
 * recorded; then states that a cut may leave are built from the record, each is
 * opened, checked, and every sector compared with what it may hold.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "t/fixtures/cut.h"
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

static void put(struct rig *g, uint64_t off, size_t len, uint8_t byte)
{
	uint8_t *buf = malloc(len);

	memset(buf, byte, len);
	assert_int_equal(blk_pwrite(g->b, off, buf, len), 0);
	free(buf);
}

static void zero(struct rig *g, uint64_t off, uint64_t len, unsigned flags)
{
	struct blk_req r = {.off = off, .len = len, .flags = flags};

	assert_int_equal(blk_zero(g->b, &r), 0);
}

static void discard(struct rig *g, uint64_t off, uint64_t len)
{
	struct blk_req r = {.off = off, .len = len};

	assert_int_equal(blk_discard(g->b, &r), 0);
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
	put(&g, 0, K, 1);
	assert_string_equal(done(&g), "w");
	flush(&g);
	assert_string_equal(done(&g), "wwfwf");
	/* In place. */
	put(&g, 512, 512, 2);
	flush(&g);
	assert_string_equal(done(&g), "wf");
	flush(&g);
	assert_string_equal(done(&g), "");
	/* 16 clusters are one write, and cost no more flushes than one. */
	put(&g, K, 16 * K, 3);
	flush(&g);
	assert_string_equal(done(&g), "wwfwf");
	/* 20 of them, here and there, neither. */
	for (unsigned i = 0; i < 20; i++)
		put(&g, (40 + 2 * i) * K, 512, 4);
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
	put(&g, 0, K, 1);
	assert_string_equal(done(&g), "wfw"); /* the dirty bit first */
	flush(&g);
	assert_string_equal(done(&g), "wwfwf");
	put(&g, K, K, 1);
	flush(&g);
	/* The entry still waits for its data, but not for counts. */
	assert_string_equal(done(&g), "wwfwf");
	rig_close(&g);
}

/* A repair of an image that stays open clears the bit; the next change sets it again. */
static void test_lazy_repaired(void **state)
{
	static const struct geo geo = {3, 16, 4, 64 << 20, 0, GEO_LAZY};
	struct fmt_check ck = {.fix = FMT_FIX_LEAKS | FMT_FIX_ERRORS};
	uint8_t bits[8];
	struct rig g;

	(void)state;
	rig_open(&g, &geo);
	put(&g, 0, K, 1);
	assert_int_equal(blk_pread(g.disk, 72, bits, 8), 0);
	assert_int_equal(bits[7] & 1, 1);
	assert_int_equal(fmt_check(g.b, &ck, NULL), 0);
	assert_int_equal(blk_pread(g.disk, 72, bits, 8), 0);
	assert_int_equal(bits[7] & 1, 0);
	put(&g, K, K, 1);
	assert_int_equal(blk_pread(g.disk, 72, bits, 8), 0);
	assert_int_equal(bits[7] & 1, 1);
	rig_close(&g);
}

static void test_counts_cow(void **state)
{
	static const struct geo geo = {3, 16, 4, 64 << 20, 64 << 20, 0};
	struct rig g;

	(void)state;
	rig_open(&g, &geo);
	/* One write for data and copy. */
	put(&g, 1024, 512, 1);
	flush(&g);
	assert_string_equal(done(&g), "wwwfwf");
	/* A zero flag costs no data and no allocation. */
	zero(&g, 4 * K, K, 0);
	flush(&g);
	assert_string_equal(done(&g), "wf");
	zero(&g, 4 * K, K, 0);
	zero(&g, 4 * K + 512, 512, 0);
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
	discard(&g, 0, geo.size);
	zero(&g, 0, geo.size, BLK_UNMAP);
	zero(&g, 12345, 777, 0);
	discard(&g, 12345, 7777777);
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
	put(&g, 0, K, 1);
	flush(&g);
	assert_int_equal(blk_status(g.b, 0, K, &e), 0);
	first = e.map;
	done(&g);
	discard(&g, 0, K);
	put(&g, 2 * K, K, 2); /* not into the dropped cluster */
	assert_int_equal(blk_status(g.b, 2 * K, K, &e), 0);
	assert_int_not_equal(e.map, first);
	assert_string_equal(done(&g), "w");
	flush(&g);
	assert_string_equal(done(&g), "wfwfd");
	put(&g, 3 * K, K, 3);
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
	discard(h->g, 0, K);
	flush(h->g);
	flush(h->g);
	put(h->g, K, K, 9);
	assert_int_not_equal(host_of(h->g, K), h->first);
	assert_false(h->over);
	disk_let_go(h->file);
	while (!h->over)
		thr_yield();
	put(h->g, 2 * K, K, 9);
	assert_int_not_equal(host_of(h->g, 2 * K), h->first);
	flush(h->g);
	put(h->g, 3 * K, K, 9);
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
	put(g, 0, K, 1);
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

	put(h->g, 8 * K, K, 2);
	flush(h->g);
	h->over = true;
}

/* What is dropped while a flush is under way waits for the next one. */
static void drop_meanwhile(void *arg)
{
	struct held *h = arg;

	while (!disk_held(h->file))
		thr_yield();
	discard(h->g, 0, K);
	disk_let_go(h->file);
	while (!h->over)
		thr_yield();
	put(h->g, K, K, 9);
	assert_int_not_equal(host_of(h->g, K), h->first);
	flush(h->g);
	put(h->g, 2 * K, K, 9);
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

	put(&p->g, p->began++ * K, K, 1);
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

/* ---- cuts -------------------------------------------------------------------------- */

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
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_counts_lazy),
		cmocka_unit_test(test_lazy_repaired),
		cmocka_unit_test(test_counts_cow),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_drop),
		cmocka_unit_test(test_in_flight),
		cmocka_unit_test(test_drop_in_flush),
		cmocka_unit_test(test_group),
		cmocka_unit_test(test_cuts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
