/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Order across two files: an image and its external data file. Every write and flush
 * of both is recorded on one clock; then states that a power cut may leave are built, in
 * which each file has lost or torn what its own flushes do not cover; each is opened,
 * checked, and every sector compared with what it may hold. Raw data alone is compared
 * with the same once more.
 *
 * A failure names its seed and cut: QCOW2_DATA_SEED=N runs that seed only.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "t/fixtures/qcow2_rig.h"

#define SECTOR 512u
#define SIZE   (512u << 10)
#define STEPS  60u
#define SEEDS  6u
#define CUTS   40u

/* ---- one clock for both ----------------------------------------------------------- */

struct event {
	unsigned dev; /* 0: the image; 1: its data */
	enum blk_op op;
	uint64_t off, len;
	uint8_t *data;
};

struct record {
	struct event *v;
	unsigned n, room;
};

struct side {
	struct record *rec;
	unsigned dev;
};

/* One request at a time, so the completion is where it belongs. */
static void sink(void *arg, const struct blk_log_entry *e)
{
	struct side *s = arg;
	struct record *r = s->rec;
	struct event *v;

	if (e->completed == BLK_LOG_NEVER || e->err)
		return;
	if (r->n == r->room) {
		r->room = r->room ? 2 * r->room : 256;
		r->v = realloc(r->v, r->room * sizeof(*r->v));
		assert_non_null(r->v);
	}
	v = &r->v[r->n++];
	memset(v, 0, sizeof(*v));
	v->dev = s->dev;
	v->op = e->op;
	v->off = e->off;
	v->len = e->len;
	if (e->op == BLK_OP_WRITE) {
		v->data = malloc(e->len);
		assert_non_null(v->data);
		memcpy(v->data, e->data, e->len);
	}
}

static void record_free(struct record *r)
{
	for (unsigned i = 0; i < r->n; i++)
		free(r->v[i].data);
	free(r->v);
}

/* ---- the image ---------------------------------------------------------------------- */

struct kind {
	const char *name;
	bool raw, extended, backing;
};

static void make(const struct kind *k, struct blk *disk, struct blk *data)
{
	const struct blk_opt v[] = {
		{"cluster_size", "16k"},
		{"data_file", "data"},
		{"data_file_raw", k->raw ? "on" : "off"},
		{"extended_l2", k->extended ? "on" : "off"},
	};
	const struct blk_opts opts = {v, THR_ARRAY_SIZE(v)};
	struct fmt_create c = {
		.name = "image",
		.format = "qcow2",
		.size = SIZE,
		.has_size = true,
		.backing = k->backing ? "base.raw" : NULL,
		.backing_format = k->backing ? "raw" : NULL,
		.unsafe_backing = true,
		.opts = &opts,
		.mem = &thr_heap,
		.data = disk_lend(data, 0),
	};
	struct blk *file = disk_lend(disk, 0);

	assert_int_equal(fmt_driver_find("qcow2")->create(file, &c, NULL), 0);
	blk_close(c.data);
	blk_close(file);
}

static struct blk *open_both(struct blk *file, struct blk *data, struct blk *base)
{
	struct fmt_open o = {
		.format = "qcow2", .blk_flags = BLK_RDWR, .data = data, .mem = &thr_heap};
	struct blk *b = NULL;

	assert_int_equal(fmt_open_on(&b, file, &o, NULL), 0);
	if (base)
		fmt_set_backing(b, disk_lend(base, 0));
	return b;
}

static struct blk *logged(struct blk *disk, struct side *s)
{
	struct blk *log;

	assert_int_equal(blk_log_open(&log, disk_lend(disk, 0), sink, s, &thr_heap, NULL), 0);
	return log;
}

/* ---- the workload ---------------------------------------------------------------------- */

/* What sector s holds after step i: hist[i][s]. At a cut it may hold whatever it held
 * from the last flush that ended before the cut on. */
struct work {
	uint8_t hist[STEPS + 1][SIZE / SECTOR];
	unsigned begin[STEPS + 1], end[STEPS + 1]; /* events before and after step i */
	bool flush[STEPS + 1];
};

static void pick(uint64_t *seed, uint64_t *off, uint64_t *len)
{
	uint32_t n = SIZE / SECTOR;
	uint32_t at = rnd(seed, 2) ? rnd(seed, 96) : rnd(seed, n);
	uint32_t count = rnd(seed, 3) ? 1 + rnd(seed, 8) : 32u << rnd(seed, 3);

	if (count >= 32)
		at &= ~31u;
	*off = (uint64_t)at * SECTOR;
	*len = (uint64_t)THR_MIN(count, n - at) * SECTOR;
}

static void step(struct blk *b, struct work *w, unsigned i, uint64_t *seed)
{
	uint8_t *now = w->hist[i];
	struct blk_req r = {0};
	uint8_t byte = (uint8_t)(i + 1), *buf;
	uint64_t s;

	memcpy(now, w->hist[i - 1], sizeof(w->hist[i]));
	pick(seed, &r.off, &r.len);
	switch (rnd(seed, 8)) {
	case 0:
		w->flush[i] = true;
		assert_int_equal(blk_flush(b), 0);
		return;
	case 1:
		r.flags = rnd(seed, 2) ? BLK_UNMAP : 0;
		assert_int_equal(blk_zero(b, &r), 0);
		byte = 0;
		break;
	case 2:
		/* Whole clusters, which read as zeroes then. */
		r.off = thr_align_down(r.off, 16384);
		r.len = 16384;
		assert_int_equal(blk_discard(b, &r), 0);
		for (s = r.off; s < r.off + r.len; s += SECTOR)
			assert_int_equal(blk_pread(b, s, &now[s / SECTOR], 1), 0);
		return;
	default:
		buf = malloc(r.len);
		assert_non_null(buf);
		memset(buf, byte, r.len);
		assert_int_equal(blk_pwrite(b, r.off, buf, r.len), 0);
		free(buf);
	}
	memset(now + r.off / SECTOR, byte, r.len / SECTOR);
}

/* ---- cuts
 * ------------------------------------------------------------------------------------ */

static void apply(const struct event *e, struct blk *to, uint64_t skip, uint64_t len)
{
	struct blk_req r = {.off = e->off + skip, .len = len};

	switch (e->op) {
	case BLK_OP_WRITE:
		assert_int_equal(blk_pwrite(to, e->off + skip, e->data + skip, len), 0);
		break;
	case BLK_OP_ZERO:
		assert_int_equal(blk_zero(to, &r), 0);
		break;
	case BLK_OP_DISCARD:
		if (r.off < blk_size(to)) {
			r.len = THR_MIN(r.len, blk_size(to) - r.off);
			assert_int_equal(blk_discard(to, &r), 0);
		}
		break;
	default:
		break;
	}
}

/* Event @e as the cut has left it: whole, not at all, or some of its sectors. */
static void apply_some(const struct event *e, struct blk *to, bool durable, uint64_t *seed)
{
	uint64_t at;

	if (durable || rnd(seed, 3) == 0) {
		apply(e, to, 0, e->len);
		return;
	}
	if (rnd(seed, 2))
		return;
	for (at = 0; at < e->len; at += SECTOR)
		if (rnd(seed, 2))
			apply(e, to, at, THR_MIN(SECTOR, e->len - at));
}

static bool may_hold(const struct work *w, unsigned cut, uint64_t s, uint8_t v)
{
	unsigned i, from = 0;

	for (i = 1; i <= STEPS && w->end[i] <= cut; i++)
		if (w->flush[i])
			from = i;
	for (i = from; i <= STEPS && (i == from || w->begin[i] < cut || w->end[i] <= cut); i++)
		if (w->hist[i][s] == v)
			return true;
	return false;
}

static void compare(struct blk *b, const struct work *w, unsigned cut, const char *what)
{
	static uint8_t buf[SIZE];
	uint64_t s, i;

	assert_int_equal(blk_pread(b, 0, buf, SIZE), 0);
	for (s = 0; s < SIZE / SECTOR; s++) {
		const uint8_t *p = buf + s * SECTOR;

		for (i = 1; i < SECTOR; i++)
			if (p[i] != p[0])
				fail_msg("%s, cut %u: sector %u is mixed", what, cut,
					(unsigned)s);
		if (!may_hold(w, cut, s, p[0]))
			fail_msg("%s, cut %u: sector %u holds %02x", what, cut, (unsigned)s,
				p[0]);
	}
}

static void cut_at(const struct kind *k, const struct record *rec, const struct work *w,
	struct blk *const start[2], struct blk *base, unsigned cut, uint64_t *seed,
	const char *what)
{
	struct blk *to[2] = {disk_copy(start[0]), disk_copy(start[1])}, *b;
	unsigned durable[2] = {0, 0}, i;
	struct fmt_check ck = {0};
	struct verdict v;

	for (i = 0; i < cut; i++)
		if (rec->v[i].op == BLK_OP_FLUSH)
			durable[rec->v[i].dev] = i;
	for (i = 0; i < cut; i++) {
		const struct event *e = &rec->v[i];

		apply_some(e, to[e->dev], i < durable[e->dev], seed);
	}
	v = image_verify(to[0], true);
	if (v.bad)
		fail_msg("%s, cut %u: the image is corrupt", what, cut);
	b = open_both(disk_lend(to[0], 0), disk_lend(to[1], 0), base);
	assert_int_equal(fmt_check(b, &ck, NULL), 0);
	assert_int_equal(ck.corruptions + ck.check_errors, 0);
	compare(b, w, cut, what);
	if (k->raw)
		compare(to[1], w, cut, what);
	assert_int_equal(fmt_close(b), 0);
	blk_close(to[0]);
	blk_close(to[1]);
}

static void run(const struct kind *k, uint64_t first)
{
	struct record rec = {0};
	struct side side[2] = {{&rec, 0}, {&rec, 1}};
	struct blk *disk[2] = {disk_new(), disk_new()}, *start[2], *b;
	struct blk *base = k->backing ? backing_new(SIZE) : NULL;
	struct work *w = calloc(1, sizeof(*w));
	uint64_t seed = first;
	char what[80];
	unsigned i;

	assert_non_null(w);
	snprintf(what, sizeof(what), "%s QCOW2_DATA_SEED=%llu", k->name,
		(unsigned long long)first);
	make(k, disk[0], disk[1]);
	start[0] = disk_copy(disk[0]);
	start[1] = disk_copy(disk[1]);
	b = open_both(logged(disk[0], &side[0]), logged(disk[1], &side[1]), base);
	for (i = 0; base && i < SIZE / SECTOR; i++)
		w->hist[0][i] = backing_byte((uint64_t)i * SECTOR);
	for (i = 1; i <= STEPS; i++) {
		w->begin[i] = rec.n;
		step(b, w, i, &seed);
		w->end[i] = rec.n;
	}
	for (i = 0; i < CUTS; i++)
		cut_at(k, &rec, w, start, base, rnd(&seed, rec.n + 1), &seed, what);
	assert_int_equal(fmt_close(b), 0);
	image_assert_sound(disk[0]);
	for (i = 0; i < 2; i++) {
		blk_close(disk[i]);
		blk_close(start[i]);
	}
	blk_close(base);
	record_free(&rec);
	free(w);
}

static void test_cuts(void **state)
{
	static const struct kind kinds[] = {
		{"plain", false, false, false},
		{"over a backing file", false, false, true},
		{"extended", false, true, true},
		{"raw", true, false, false},
		{"raw, extended", true, true, false},
	};
	const char *only = getenv("QCOW2_DATA_SEED");

	(void)state;
	for (unsigned i = 0; i < THR_ARRAY_SIZE(kinds); i++)
		for (uint64_t s = 1; s <= SEEDS; s++)
			if (!only || strtoull(only, NULL, 10) == s)
				run(&kinds[i], s);
}

/* ---- writes and flushes, counted
 * ---------------------------------------------------------------- */

static const char *told(struct record *rec)
{
	static char s[256];
	size_t n = 0;

	for (unsigned i = 0; i < rec->n; i++) {
		s[n++] = "mD"[rec->v[i].dev];
		s[n++] = "rwzdft"[rec->v[i].op];
		s[n++] = ' ';
		free(rec->v[i].data);
	}
	s[n] = 0;
	rec->n = 0;
	return s;
}

/* The data's flush comes before the entry; what is written in place costs none of the
 * tables'. */
static void test_order(void **state)
{
	static const struct kind kind = {"plain", false, false, false};
	struct record rec = {0};
	struct side side[2] = {{&rec, 0}, {&rec, 1}};
	struct blk *disk[2] = {disk_new(), disk_new()}, *b;
	static uint8_t buf[16384];

	(void)state;
	memset(buf, 1, sizeof(buf));
	make(&kind, disk[0], disk[1]);
	b = open_both(logged(disk[0], &side[0]), logged(disk[1], &side[1]), NULL);
	assert_int_equal(blk_pwrite(b, 0, buf, sizeof(buf)), 0);
	assert_int_equal(blk_flush(b), 0);
	assert_string_equal(told(&rec), "Dw mw mw Df mf mw Df mf ");
	assert_int_equal(blk_pwrite(b, 16384, buf, sizeof(buf)), 0);
	assert_string_equal(told(&rec), "Dw ");
	assert_int_equal(blk_flush(b), 0);
	assert_string_equal(told(&rec), "Df mf mw Df mf ");
	assert_int_equal(blk_pwrite(b, 512, buf, 512), 0);
	assert_int_equal(blk_flush(b), 0);
	assert_string_equal(told(&rec), "Dw Df mf ");
	assert_int_equal(blk_flush(b), 0);
	assert_string_equal(told(&rec), "");
	assert_int_equal(fmt_close(b), 0);
	for (unsigned i = 0; i < 2; i++)
		blk_close(disk[i]);
	record_free(&rec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_cuts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
