/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The order in which a cow image is written: how many writes and flushes each kind of
 * change takes, what writers do to each other, and what a cut leaves of an image that is
 * emptied. Cuts in all that a guest does are made by t/crash.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "t/fixtures/cut.h"
#include "t/fixtures/qcow2_rig.h"

#define S 512u

/* ---- images ----------------------------------------------------------------------- */

struct kind {
	const char *version;
	uint64_t size, backing;
};

static void make(struct blk *disk, const struct kind *k)
{
	struct blk_opt v[] = {{"version", k->version}};
	struct blk_opts opts = {v, 1};
	struct fmt_create c = {
		.name = "image",
		.format = "cow",
		.size = k->size,
		.has_size = true,
		.backing = k->backing ? "/base.raw" : NULL,
		.backing_format = k->backing ? "raw" : NULL,
		.unsafe_backing = true,
		.opts = &opts,
		.mem = &thr_heap,
	};
	struct blk *file = disk_lend(disk, 0);

	assert_int_equal(fmt_driver_find("cow")->create(file, &c, NULL), 0);
	blk_close(file);
}

/* Owns @file; @backing, which may be NULL, is lent. */
static struct blk *open_image(struct blk *file, struct blk *backing, unsigned flags)
{
	struct fmt_open o = {.format = "cow", .blk_flags = flags, .mem = &thr_heap};
	struct fmt_open ro = {.format = "raw", .mem = &thr_heap};
	struct blk *b, *below;

	assert_int_equal(fmt_open_on(&b, file, &o, NULL), 0);
	if (backing) {
		assert_int_equal(fmt_open_on(&below, disk_lend(backing, 0), &ro, NULL), 0);
		fmt_set_backing(b, below);
	}
	return b;
}

static struct fmt_check check_of(struct blk *b)
{
	struct fmt_check ck = {0};

	assert_int_equal(fmt_check(b, &ck, NULL), 0);
	return ck;
}

struct rig {
	struct kind k;
	struct blk *disk, *backing, *fault, *log, *b;
	size_t seen;
};

static void rig_open(struct rig *g, const struct kind *k, unsigned lend)
{
	memset(g, 0, sizeof(*g));
	g->k = *k;
	g->disk = disk_new();
	if (k->backing)
		g->backing = backing_new(k->backing);
	make(g->disk, k);
	assert_int_equal(
		blk_fault_open(&g->fault, disk_lend(g->disk, lend), &thr_heap, NULL), 0);
	assert_int_equal(blk_log_open(&g->log, g->fault, NULL, NULL, &thr_heap, NULL), 0);
	g->b = open_image(g->log, g->backing, BLK_RDWR);
	g->seen = blk_log_count(g->log);
}

static void rig_close(struct rig *g)
{
	struct fmt_check ck;
	struct blk *b;

	assert_int_equal(fmt_close(g->b), 0);
	b = open_image(disk_lend(g->disk, 0), NULL, 0);
	ck = check_of(b);
	assert_int_equal(ck.corruptions | ck.leaks, 0);
	assert_int_equal(fmt_close(b), 0);
	blk_close(g->disk);
	blk_close(g->backing);
}

/* ---- writes and flushes, counted -------------------------------------------------- */

/* What was done since the last call: w a write, m one of metadata, z zeroing, d a
 * discard, t a truncation, f a flush. *@bytes gets those of metadata. */
static const char *done(struct rig *g, uint64_t *bytes)
{
	static char s[1024];
	uint64_t data = blk_size(g->disk) - g->k.size, sum = 0;
	size_t n = blk_log_count(g->log);

	s[0] = 0;
	for (; g->seen < n; g->seen++) {
		const struct blk_log_entry *e = blk_log_get(g->log, g->seen);
		bool meta = e->op == BLK_OP_WRITE && e->off < data;

		assert_true(!meta || e->off + e->len <= data);
		sum += meta ? e->len : 0;
		snprintf(s + strlen(s), sizeof(s) - strlen(s), "%c",
			meta ? 'm' : "rwzdft"[e->op]);
	}
	if (bytes)
		*bytes = sum;
	return s;
}

static void flush(struct rig *g)
{
	assert_int_equal(blk_flush(g->b), 0);
}

static const struct kind kinds[] = {
	{"3", 128 << 20, 128 << 20},
	{"2", 128 << 20, 128 << 20},
	{"3", 128 << 20, 0},
};

static void test_counts(void **state)
{
	uint64_t bytes;
	struct rig g;

	(void)state;
	for (unsigned i = 0; i < THR_ARRAY_SIZE(kinds); i++) {
		rig_open(&g, &kinds[i], 0);
		/* The first flush is for what a process that died may have left. */
		flush(&g);
		assert_string_equal(done(&g, NULL), "f");
		flush(&g);
		assert_string_equal(done(&g, NULL), "");
		disk_put(g.b, 0, 8 * S, 1);
		assert_string_equal(done(&g, NULL), "w");
		flush(&g);
		assert_string_equal(done(&g, &bytes), "fmf");
		assert_int_equal(bytes, S);
		/* No new bit: nothing for the bitmap, and nothing more to flush. */
		disk_put(g.b, 0, 8 * S, 2);
		disk_put(g.b, S + 7, 3 * S, 3);
		flush(&g);
		assert_string_equal(done(&g, NULL), "wwwwf");
		flush(&g);
		assert_string_equal(done(&g, NULL), "");
		/* Here and there on one page, and in neighbouring sectors of the bitmap. */
		for (unsigned k = 0; k < 20; k++)
			disk_put(g.b, (100 + 4000ull * (k % 2) + 16 * k) * S, S, 4);
		assert_string_equal(done(&g, NULL), "wwwwwwwwwwwwwwwwwwww");
		flush(&g);
		assert_string_equal(done(&g, &bytes), "fmf");
		assert_in_range(bytes, S, 2 * S);
		rig_close(&g);
	}
}

/* As `io -c 'write 0 1M'` and its like: what there is of metadata is one write and one
 * flush, however long it was written. */
static void test_sequential(void **state)
{
	uint64_t bytes, at;
	const char *s;
	struct rig g;

	(void)state;
	for (unsigned i = 0; i < THR_ARRAY_SIZE(kinds); i++) {
		struct blk_fault reads = {.ops = 1u << BLK_OP_READ, .always = true};
		uint8_t *buf;

		rig_open(&g, &kinds[i], 0);
		disk_put(g.b, 0, 1 << 20, 1);
		flush(&g);
		assert_string_equal(done(&g, NULL), "wfmf");
		for (at = 1 << 20; at < 100 << 20; at += 1 << 20)
			disk_put(g.b, at, 1 << 20, 1);
		flush(&g);
		s = done(&g, &bytes);
		assert_int_equal(strspn(s, "w"), 99);
		assert_string_equal(s + 99, "fmf");
		assert_in_range(bytes, 99 * 2048 / 8, 100 * 2048 / 8 + 2 * S);
		/* 100 MiB are one read of data, and no more than a few of the bitmap. */
		assert_int_equal(fmt_close(g.b), 0);
		assert_int_equal(
			blk_fault_open(&g.fault, disk_lend(g.disk, 0), &thr_heap, NULL), 0);
		assert_int_equal(blk_fault_add(g.fault, &reads), 0);
		g.b = open_image(g.fault, g.backing, 0);
		at = blk_fault_fired(g.fault);
		buf = malloc(100 << 20);
		assert_int_equal(blk_pread(g.b, 0, buf, 100 << 20), 0);
		assert_in_range(blk_fault_fired(g.fault) - at, 2, 1 + 8);
		free(buf);
		assert_int_equal(fmt_close(g.b), 0);
		blk_close(g.disk);
		blk_close(g.backing);
	}
}

static void test_zero_and_discard(void **state)
{
	uint8_t buf[S];
	struct rig g;

	(void)state;
	rig_open(&g, &kinds[2], 0);
	disk_zero(g.b, 0, g.k.size, BLK_UNMAP);
	disk_zero(g.b, 24 * S, 77 * S, 0);
	disk_discard(g.b, 0, g.k.size);
	done(&g, NULL);
	flush(&g);
	/* Nothing is there: no bit, whatever was discarded. */
	assert_null(strchr(done(&g, NULL), 'm'));
	assert_int_equal(check_of(g.b).allocated_clusters, 0);
	rig_close(&g);

	rig_open(&g, &kinds[0], 0);
	disk_zero(g.b, 0, 64 * S, 0);
	flush(&g);
	assert_string_equal(done(&g, NULL), "zfmf");
	disk_put(g.b, 0, 4 * S, 7);
	disk_discard(g.b, 0, 8 * S);
	flush(&g);
	assert_string_equal(done(&g, NULL), "wdf");
	assert_int_equal(blk_pread(g.b, 0, buf, S), 0);
	assert_int_equal(buf[0], 0);
	assert_int_equal(check_of(g.b).allocated_clusters, 64);
	rig_close(&g);
}

/* What others have left behind the bits of the disk, and where its sectors will be, does
 * not come to light when it grows; nor does a longer backing file. */
static void test_grow(void **state)
{
	static const struct kind ks[] = {{"3", 1 << 20, 0}, {"3", 1 << 20, 4 << 20}};
	uint8_t junk[1024], *buf = malloc(2 << 20);
	struct rig g;

	(void)state;
	for (unsigned i = 0; i < THR_ARRAY_SIZE(ks); i++) {
		rig_open(&g, &ks[i], 0);
		disk_put(g.b, S, S, 7);
		assert_int_equal(fmt_close(g.b), 0);
		memset(junk, 0xff, sizeof(junk));
		assert_int_equal(blk_pwrite(g.disk, 8192 + 256, junk, sizeof(junk)), 0);
		assert_int_equal(blk_pwrite(g.disk, 12288 + (3 << 19), junk, sizeof(junk)), 0);
		g.b = open_image(disk_lend(g.disk, 0), g.backing, BLK_RDWR);
		assert_int_equal(blk_truncate(g.b, 3 << 20, BLK_PREALLOC_OFF, NULL), 0);
		assert_int_equal(blk_pread(g.b, 1 << 20, buf, 2 << 20), 0);
		assert_int_equal(buf[0], 0);
		assert_memory_equal(buf, buf + 1, (2 << 20) - 1);
		assert_int_equal(blk_pread(g.b, S, buf, S), 0);
		assert_int_equal(buf[0], 7);
		rig_close(&g);
	}
	free(buf);
}

/* Before the bitmap is written a flush has covered all the data that it speaks of. */
static void test_data_first(void **state)
{
	static const struct kind k = {"3", 64 << 20, 64 << 20};
	struct rig g;

	(void)state;
	rig_open(&g, &k, 0);
	for (unsigned i = 0; i < 40; i++) {
		disk_put(g.b, i * 1237ull * S, S, 1);
		if (i % 7 == 6)
			flush(&g);
	}
	flush(&g);
	for (size_t i = 0; i < blk_log_count(g.log); i++) {
		const struct blk_log_entry *m = blk_log_get(g.log, i);

		if (m->op != BLK_OP_WRITE || m->off >= blk_size(g.disk) - k.size)
			continue;
		for (size_t j = 0; j < i; j++) {
			const struct blk_log_entry *e = blk_log_get(g.log, j);

			if (e->op == BLK_OP_WRITE && e->completed < m->submitted)
				assert_int_equal(
					blk_log_fate(g.log, j, m->submitted), BLK_LOG_DURABLE);
		}
	}
	rig_close(&g);
}

/* ---- memory ------------------------------------------------------------------------ */

static size_t in_use, most;

static void *count_get(void *ctx, size_t size, size_t align)
{
	(void)ctx;
	in_use += size;
	most = THR_MAX(most, in_use);
	return thr_get(&thr_heap, size, align);
}

static void count_put(void *ctx, void *p, size_t size)
{
	(void)ctx;
	in_use -= size;
	thr_put(&thr_heap, p, size);
}

/* Far more pages of the bitmap than are kept: each write has one of its own. */
static void test_memory(void **state)
{
	static const struct thr_alloc counted = {count_get, count_put, NULL};
	static const struct kind k = {"3", 16ull << 30, 0};
	struct fmt_open o = {.format = "cow", .blk_flags = BLK_RDWR, .mem = &counted};
	const uint64_t step = (16 << 20) + S, n = 1000;
	struct blk *disk = disk_new(), *b;
	uint8_t buf[S];

	(void)state;
	make(disk, &k);
	assert_int_equal(fmt_open_on(&b, disk_lend(disk, 0), &o, NULL), 0);
	for (uint64_t i = 0; i < n; i++) {
		memset(buf, 1 + (int)(i % 250), S);
		assert_int_equal(blk_pwrite(b, i * step, buf, S), 0);
	}
	for (uint64_t i = 0; i < n; i++) {
		assert_int_equal(blk_pread(b, i * step, buf, S), 0);
		assert_int_equal(buf[0], 1 + i % 250);
	}
	assert_int_equal(check_of(b).allocated_clusters, n);
	assert_int_equal(fmt_close(b), 0);
	assert_int_equal(in_use, 0);
	assert_in_range(most, 1 << 20, 3 << 20);
	b = open_image(disk_lend(disk, 0), NULL, 0);
	assert_int_equal(check_of(b).allocated_clusters, n);
	assert_int_equal(fmt_close(b), 0);
	blk_close(disk);
}

/* ---- writers together --------------------------------------------------------------- */

#define WRITERS 8u

struct writer {
	struct rig *g;
	unsigned id, *left;
};

/* Every WRITERS-th sector, all of them on one page of the bitmap. */
static void write_sectors(void *arg)
{
	struct writer *w = arg;
	uint8_t buf[S];

	memset(buf, 1 + (int)w->id, S);
	for (unsigned i = 0; i < 40; i++) {
		uint64_t off = (i * WRITERS + w->id) * (uint64_t)S;

		assert_int_equal(blk_pwrite(w->g->b, off, buf, S), 0);
		if (w->id == 0 && i % 3 == 0)
			flush(w->g);
	}
	--*w->left;
}

/* A part of each sector, none of which is there yet. */
static void write_parts(void *arg)
{
	struct writer *w = arg;
	uint8_t buf[S / WRITERS];

	memset(buf, 1 + (int)w->id, sizeof(buf));
	for (unsigned i = 0; i < 40; i++)
		assert_int_equal(blk_pwrite(w->g->b, i * (uint64_t)S + w->id * sizeof(buf), buf,
					 sizeof(buf) - (w->id == 3)),
			0);
	--*w->left;
}

static void run_all(struct rig *g, void (*fn)(void *))
{
	struct writer w[WRITERS];
	unsigned left = WRITERS;
	struct thr_exec *e;

	assert_int_equal(thr_exec_open(&e, &thr_heap), 0);
	for (unsigned i = 0; i < WRITERS; i++) {
		w[i] = (struct writer){g, i, &left};
		assert_int_equal(thr_spawn(e, fn, &w[i]), 0);
	}
	thr_exec_run(e);
	thr_exec_close(e);
	assert_int_equal(left, 0);
}

static void reopen(struct rig *g)
{
	assert_int_equal(fmt_close(g->b), 0);
	g->b = open_image(disk_lend(g->disk, 0), g->backing, BLK_RDWR);
}

static void test_one_page(void **state)
{
	uint8_t buf[S];
	struct rig g;

	(void)state;
	rig_open(&g, &kinds[0], LEND_YIELD);
	run_all(&g, write_sectors);
	reopen(&g);
	assert_int_equal(check_of(g.b).allocated_clusters, 40 * WRITERS);
	for (unsigned i = 0; i < 40 * WRITERS; i++) {
		assert_int_equal(blk_pread(g.b, i * (uint64_t)S, buf, S), 0);
		assert_int_equal(buf[0], 1 + i % WRITERS);
		assert_int_equal(buf[S - 1], 1 + i % WRITERS);
	}
	rig_close(&g);
}

static void test_one_sector(void **state)
{
	uint8_t buf[S];
	struct rig g;

	(void)state;
	rig_open(&g, &kinds[1], LEND_YIELD);
	run_all(&g, write_parts);
	reopen(&g);
	for (unsigned i = 0; i < 40; i++) {
		assert_int_equal(blk_pread(g.b, i * (uint64_t)S, buf, S), 0);
		for (unsigned k = 0; k < S; k++) {
			unsigned id = k / (S / WRITERS);
			bool below = id == 3 && k % (S / WRITERS) == S / WRITERS - 1;

			assert_int_equal(
				buf[k], below ? backing_byte(i * (uint64_t)S + k) : 1 + id);
		}
	}
	rig_close(&g);
}

/* ---- cuts ---------------------------------------------------------------------------- */

/* An image that is emptied reads as it did at every cut, if its base has all of it. */
static void test_empty(void **state)
{
	static const struct kind k = {"3", 9000 * S, 9000 * S};
	uint8_t *want = malloc(k.size), *buf = malloc(k.size);
	struct cut cut = {0};
	struct blk *base, *file, *b;
	uint64_t from, now, seed = 1;

	(void)state;
	file = disk_new();
	base = backing_new(k.backing);
	make(file, &k);
	cut.start = disk_copy(file);
	assert_int_equal(
		blk_log_open(&cut.log, disk_lend(file, 0), NULL, NULL, &thr_heap, NULL), 0);
	b = open_image(cut.log, base, BLK_RDWR);
	for (unsigned i = 0; i < 30; i++) {
		memset(want, 1 + (int)i, 20 * S);
		assert_int_equal(blk_pwrite(b, i * 293ull * S, want, 20 * S), 0);
	}
	assert_int_equal(blk_flush(b), 0);
	assert_int_equal(blk_pread(b, 0, want, k.size), 0);
	assert_int_equal(blk_pwrite(base, 0, want, k.size), 0);
	from = blk_log_now(cut.log);
	assert_int_equal(fmt_driver_find("cow")->empty(b), 0);
	assert_int_equal(blk_flush(b), 0);
	assert_int_equal(check_of(b).allocated_clusters, 0);
	now = blk_log_now(cut.log);
	for (uint64_t i = from * 4; i <= now * 4 + 3; i++) {
		struct blk *disk, *seen;

		cut.at = i / 4;
		cut.mode = i % 4;
		disk = cut_state(&cut, &seed);
		seen = open_image(disk_lend(disk, 0), base, 0);
		assert_int_equal(blk_pread(seen, 0, buf, k.size), 0);
		assert_memory_equal(buf, want, k.size);
		assert_int_equal(fmt_close(seen), 0);
		blk_close(disk);
	}
	assert_int_equal(fmt_close(b), 0);
	blk_close(file);
	blk_close(cut.start);
	blk_close(base);
	free(want);
	free(buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_sequential),
		cmocka_unit_test(test_zero_and_discard),
		cmocka_unit_test(test_grow),
		cmocka_unit_test(test_data_first),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_one_page),
		cmocka_unit_test(test_one_sector),
		cmocka_unit_test(test_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
