/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/qcow2_check.c - the check finds what is wrong and counts it as it should,
 * in windows of any size; repair leaves nothing wrong, changes no guest byte, and
 * may be cut off anywhere.
 */
#include "t/unit/qcow2_util.h"

#include "fmt/qcow2/check.h"

#define GUEST   (256u << 10)
#define CLUSTER 4096u
#define LARGE   (1u << 20)

static void base_order(struct im *m, unsigned order)
{
	im_new(m, 3, 12, order, 48, GUEST);
	im_be32(m, 100, 112);
	for (unsigned i = 0; i < 16; i++)
		im_map(m, i, IM_DATA + i);
	im_l2(m, 20, 1);
	im_map(m, 30, 30);
	im_l2(m, 30, im_host(m, 30) | QCOW2_COPIED | 1);
	for (uint64_t i = IM_DATA * CLUSTER; i < m->size; i++)
		m->p[i] = (uint8_t)(i >> 12 ^ i);
}

static void base(struct im *m)
{
	base_order(m, 4);
}

/* ---- damage --------------------------------------------------------------------------- */

static uint64_t l2_of(const struct im *m, unsigned i)
{
	return thr_be64(m->p + 4 * CLUSTER + i * 8);
}

static void count_0(struct im *m)
{
	im_count(m, 5, 0);
}

static void count_2(struct im *m)
{
	im_count(m, 5, 2);
}

static void count_unused(struct im *m)
{
	im_count(m, 40, 1);
	im_count(m, 47, 7);
}

static void count_past_end(struct im *m)
{
	im_count(m, 48, 1);
	im_count(m, 2000, 1);
}

static void count_of_metadata(struct im *m)
{
	for (unsigned i = 0; i < 4; i++)
		im_count(m, i, 0);
}

static void twice(struct im *m)
{
	im_l2(m, 1, l2_of(m, 0));
}

static void not_copied(struct im *m)
{
	im_l2(m, 3, l2_of(m, 3) & ~QCOW2_COPIED);
	im_be64(m, im_host(m, 3), im_host(m, 4));
}

static void unaligned(struct im *m)
{
	im_l2(m, 0, l2_of(m, 0) + 512);
}

static void unaligned_zero(struct im *m)
{
	im_l2(m, 30, l2_of(m, 30) + 512);
}

static void reserved(struct im *m)
{
	im_l2(m, 0, l2_of(m, 0) | 4);
	im_l2(m, 1, l2_of(m, 1) | 1ull << 56);
	im_be64(m, im_host(m, 3), thr_be64(m->p + im_host(m, 3)) | 2);
}

static void past_end(struct im *m)
{
	im_l2(m, 0, m->size | QCOW2_COPIED);
	im_l2(m, 1, 1ull << 50 | QCOW2_COPIED);
}

static void l2_past_end(struct im *m)
{
	im_be64(m, im_host(m, 3), m->size | QCOW2_COPIED);
}

static void compressed(struct im *m)
{
	/* From cluster 40 into 41, and one that is marked as ours alone. */
	im_l2(m, 40, QCOW2_COMPRESSED | 3ull << 58 | (im_host(m, 41) - 100));
	im_l2(m, 41, QCOW2_COMPRESSED | QCOW2_COPIED | im_host(m, 41));
	im_count(m, 40, 1);
	im_count(m, 41, 2);
}

static void block_missing(struct im *m)
{
	im_be64(m, im_host(m, 1), 0);
}

static void block_unaligned(struct im *m)
{
	im_be64(m, im_host(m, 1), im_host(m, 2) + 512);
}

static void block_reserved(struct im *m)
{
	im_be64(m, im_host(m, 1), im_host(m, 2) | 8);
}

static void block_outside(struct im *m)
{
	im_be64(m, im_host(m, 1) + 8, m->size);
}

static void block_shared(struct im *m)
{
	im_be64(m, im_host(m, 1) + 8, im_host(m, 5));
}

static void snapshot(struct im *m)
{
	/* Its L1 table in cluster 42 leads to the same L2 table. */
	im_be32(m, 60, 1);
	im_be64(m, 64, im_host(m, 43));
	memset(m->p + im_host(m, 42), 0, 2 * CLUSTER);
	im_be64(m, im_host(m, 42), im_host(m, 4));
	im_be64(m, im_host(m, 43), im_host(m, 42));
	im_be32(m, im_host(m, 43) + 8, 1);
	im_be32(m, im_host(m, 43) + 36, 16);
	im_count(m, 42, 1);
	im_count(m, 43, 1);
}

static void bitmaps(struct im *m)
{
	static const uint64_t dir = 42ull * CLUSTER, table = 43ull * CLUSTER;

	im_be64(m, 88, 1);
	im_be32(m, 112, QCOW2_EXT_BITMAPS);
	im_be32(m, 116, 24);
	im_be32(m, 120, 1);
	im_be64(m, 128, 32);
	im_be64(m, 136, dir);
	memset(m->p + dir, 0, 2 * CLUSTER);
	im_be64(m, dir, table);
	im_be32(m, dir + 8, 3);
	m->p[dir + 16] = 1;
	m->p[dir + 17] = 16;
	im_be16(m, dir + 18, 2);
	im_be64(m, table, 44ull * CLUSTER);
	im_be64(m, table + 8, 1);
	im_be64(m, table + 16, 45ull * CLUSTER);
	for (unsigned i = 42; i < 45; i++)
		im_count(m, i, 1);
}

/* What qemu-img 7.2 counts too, but for the last column: what a repair of all
 * leaves. */
static const struct damage {
	const char *name;
	void (*fn)(struct im *m);
	unsigned corruptions, leaks, check_errors;
	unsigned left_corruptions, left_leaks;
} damages[] = {
	{"count 0", count_0, 2, 0, 0, 0, 0},
	{"count 2", count_2, 1, 1, 0, 0, 0},
	{"unused but counted", count_unused, 0, 2, 0, 0, 0},
	{"counted past the end", count_past_end, 0, 0, 0, 0, 0},
	{"metadata not counted", count_of_metadata, 4, 0, 0, 0, 0},
	{"two entries, one cluster", twice, 1, 1, 0, 0, 0},
	{"not copied", not_copied, 2, 0, 0, 0, 0},
	{"unaligned", unaligned, 2, 0, 0, 1, 0},
	{"unaligned, zero", unaligned_zero, 2, 0, 0, 0, 0},
	{"reserved bits", reserved, 3, 0, 0, 3, 0},
	{"past the end", past_end, 4, 2, 0, 2, 2},
	{"L2 past the end", l2_past_end, 2, 18, 0, 1, 18},
	{"compressed", compressed, 1, 0, 0, 1, 0},
	{"no block", block_missing, 39, 0, 0, 0, 0},
	{"block unaligned", block_unaligned, 1, 0, 48, 0, 0},
	{"block reserved", block_reserved, 1, 1, 0, 0, 0},
	{"block outside", block_outside, 1, 0, 0, 0, 0},
	{"block shared", block_shared, 2, 0, 0, 0, 0},
	{"snapshot", snapshot, 18, 0, 0, 0, 0},
	{"bitmaps", bitmaps, 1, 0, 0, 0, 0},
};

/* ---- running it ------------------------------------------------------------------------ */

struct heard {
	unsigned lines;
};

static void hear(void *ctx, const char *text)
{
	struct heard *h = ctx;

	assert_non_null(text);
	h->lines++;
}

static void run(struct blk *b, unsigned fix, uint32_t window, struct fmt_check *c)
{
	struct heard h = {0};

	memset(c, 0, sizeof(*c));
	c->fix = fix;
	c->line = hear;
	c->ctx = &h;
	assert_int_equal(qcow2_ck_run(qcow2_of(b), c, window, true, NULL), 0);
	if (!fix)
		assert_true(h.lines >= c->corruptions + c->leaks);
	c->line = NULL;
	c->ctx = NULL;
}

static void check_im(struct im *m, uint32_t window, struct fmt_check *c)
{
	struct blk *b = im_open(m);

	run(b, 0, window, c);
	fmt_close(b);
}

static void test_sound(void **state)
{
	(void)state;
	for (unsigned order = 0; order <= 6; order++) {
		struct fmt_check c;
		struct im m;

		base_order(&m, order);
		check_im(&m, LARGE, &c);
		assert_int_equal(c.corruptions | c.leaks | c.check_errors, 0);
		assert_int_equal(c.total_clusters, 64);
		assert_int_equal(c.allocated_clusters, 17);
		assert_int_equal(c.fragmented_clusters, 1);
		assert_int_equal(c.compressed_clusters, 0);
		assert_int_equal(c.image_end, 31 * CLUSTER);
		im_free(&m);
	}
}

static void test_findings(void **state)
{
	(void)state;
	for (size_t i = 0; i < THR_ARRAY_SIZE(damages); i++) {
		const struct damage *d = &damages[i];
		struct fmt_check c;
		struct im m;

		base(&m);
		d->fn(&m);
		check_im(&m, LARGE, &c);
		if (c.corruptions != d->corruptions || c.leaks != d->leaks)
			fprintf(stderr, "# %s: %u corruptions, %u leaks\n", d->name,
				(unsigned)c.corruptions, (unsigned)c.leaks);
		assert_int_equal(c.corruptions, d->corruptions);
		assert_int_equal(c.leaks, d->leaks);
		assert_int_equal(c.check_errors, d->check_errors);
		im_free(&m);
	}
}

/* 64-bit counts: 512 a block, 64 clusters of 512 bytes a chunk of them, so that a
 * window of one byte is 64 clusters. */
static void test_windows(void **state)
{
	static const uint32_t windows[] = {1, 64, 65, 200, 1000};
	struct fmt_check all, c;
	struct im m;

	(void)state;
	im_new(&m, 3, 9, 6, 700, 256 << 9);
	/* Blocks for all 700 clusters, in clusters 2 and 600.... */
	for (unsigned i = 1; i < 11; i++) {
		im_be64(&m, im_host(&m, 1) + i * 8, im_host(&m, 600 + i));
		im_be64(&m, im_host(&m, 600 + i), 0);
	}
	for (unsigned i = 0; i < 4; i++)
		im_be64(&m, im_host(&m, 3) + i * 8, im_host(&m, 50 + 100 * i) | QCOW2_COPIED);
	for (unsigned i = 0; i < 256; i++)
		im_be64(&m, im_host(&m, 50 + 100 * (i / 64)) + i % 64 * 8,
			im_host(&m, 10 + i * 2) | (i % 3 ? QCOW2_COPIED : 0));
	check_im(&m, LARGE, &all);
	assert_true(all.corruptions > 300);
	for (size_t i = 0; i < THR_ARRAY_SIZE(windows); i++) {
		check_im(&m, windows[i], &c);
		assert_memory_equal(&c, &all, sizeof(c));
	}
	im_free(&m);
}

static void test_windows_of_damage(void **state)
{
	(void)state;
	for (size_t i = 0; i < THR_ARRAY_SIZE(damages); i++) {
		struct fmt_check all, c;
		struct im m;

		base_order(&m, 6);
		damages[i].fn(&m);
		check_im(&m, LARGE, &all);
		check_im(&m, 1, &c); /* one chunk of counts: 512 clusters */
		assert_memory_equal(&c, &all, sizeof(c));
		im_free(&m);
	}
}

/* In one-byte counters 255 means at least that. */
static void test_many_references(void **state)
{
	static const uint32_t windows[] = {LARGE, 1};

	(void)state;
	for (size_t i = 0; i < THR_ARRAY_SIZE(windows); i++) {
		struct fmt_check c;
		struct im m;

		im_new(&m, 3, 12, 4, 4096, 2 << 20);
		for (unsigned g = 0; g < 300; g++)
			im_l2(&m, g, QCOW2_COMPRESSED | (im_host(&m, 5) + g * 8));
		im_count(&m, 5, 300);
		check_im(&m, windows[i], &c);
		assert_int_equal(c.corruptions | c.leaks, 0);
		assert_int_equal(c.compressed_clusters, 300);
		im_count(&m, 5, 200);
		check_im(&m, windows[i], &c);
		assert_int_equal(c.corruptions, 1);
		im_free(&m);
	}
}

/* ---- repair ----------------------------------------------------------------------------- */

/* A growing disk in memory with the image on it. */
static struct blk *disk_of(const struct im *m)
{
	static const struct blk_opt size = {"size", "0"};
	struct blk_opts opts = {&size, 1};
	struct blk_open o = {
		.driver = "mem", .flags = BLK_RDWR, .opts = &opts, .mem = &thr_heap};
	struct blk *b;

	assert_int_equal(blk_open(&b, &o, NULL), 0);
	assert_int_equal(blk_pwrite(b, 0, m->p, (size_t)m->size), 0);
	return b;
}

static struct blk *open_on(struct blk *file, bool rw)
{
	struct fmt_open o = {.format = "qcow2",
		.flags = FMT_REPAIR,
		.blk_flags = rw ? BLK_RDWR : 0,
		.mem = &thr_heap};
	struct blk *b;

	assert_int_equal(fmt_open_on(&b, file, &o, NULL), 0);
	return b;
}

/* Every guest cluster, or the error that reading it gives. */
static void guest_bytes(struct blk *b, uint8_t *out)
{
	for (uint32_t off = 0; off < GUEST; off += CLUSTER) {
		int err = blk_pread(b, off, out + off, CLUSTER);

		if (err)
			memset(out + off, -err, CLUSTER);
	}
}

/* The same bytes, but for what could not be read and reads as zeroes now. */
static void same_guest(const uint8_t *before, const uint8_t *after)
{
	static const uint8_t zero[CLUSTER];
	uint8_t error[CLUSTER];

	memset(error, THR_EUCLEAN, sizeof(error));
	for (uint32_t off = 0; off < GUEST; off += CLUSTER) {
		if (!memcmp(before + off, error, CLUSTER) &&
			!memcmp(after + off, zero, CLUSTER))
			continue;
		assert_memory_equal(before + off, after + off, CLUSTER);
	}
}

static void im_guest(struct im *m, uint8_t *out)
{
	struct blk *b;

	assert_int_equal(im_try(m, FMT_REPAIR, 0, NULL, &b, NULL), 0);
	guest_bytes(b, out);
	fmt_close(b);
}

static void test_repair(void **state)
{
	uint8_t *before = malloc(GUEST), *after = malloc(GUEST);

	(void)state;
	for (size_t i = 0; i < THR_ARRAY_SIZE(damages); i++) {
		const struct damage *d = &damages[i];
		struct fmt_check c;
		struct blk *b;
		struct im m;

		base(&m);
		d->fn(&m);
		im_be64(&m, 72, QCOW2_INC_DIRTY | QCOW2_INC_CORRUPT);
		im_guest(&m, before);
		b = open_on(disk_of(&m), true);
		run(b, FMT_FIX_ERRORS | FMT_FIX_LEAKS, LARGE, &c);
		guest_bytes(b, after);
		same_guest(before, after);
		run(b, 0, LARGE, &c);
		if (c.corruptions != d->left_corruptions || c.leaks != d->left_leaks)
			fprintf(stderr, "# %s: %u corruptions, %u leaks\n", d->name,
				(unsigned)c.corruptions, (unsigned)c.leaks);
		assert_int_equal(c.corruptions, d->left_corruptions);
		assert_int_equal(c.leaks, d->left_leaks);
		assert_int_equal(c.check_errors, 0);
		/* What is sound now says so. */
		assert_int_equal(qcow2_of(b)->h.incompatible,
			d->left_corruptions ? QCOW2_INC_DIRTY | QCOW2_INC_CORRUPT : 0);
		fmt_close(b);
		im_free(&m);
	}
	free(before);
	free(after);
}

/* Leaks alone: no count is raised, no table is changed that is wrong otherwise. */
static void test_repair_leaks(void **state)
{
	struct fmt_check c;
	struct blk *b;
	struct im m;

	(void)state;
	base(&m);
	count_unused(&m);
	count_0(&m);
	b = open_on(disk_of(&m), true);
	run(b, FMT_FIX_LEAKS, LARGE, &c);
	assert_int_equal(c.leaks_fixed, 2);
	assert_int_equal(c.corruptions, 2);
	assert_int_equal(c.corruptions_fixed, 0);
	run(b, 0, LARGE, &c);
	assert_int_equal(c.leaks, 0);
	assert_int_equal(c.corruptions, 2);
	fmt_close(b);
	im_free(&m);

	/* A count of 2 that is lowered to 1: then COPIED is right, or set. */
	base(&m);
	count_2(&m);
	im_l2(&m, 0, im_host(&m, 5));
	b = open_on(disk_of(&m), true);
	run(b, FMT_FIX_LEAKS, LARGE, &c);
	assert_int_equal(c.leaks_fixed, 1);
	assert_int_equal(c.corruptions_fixed, 1);
	run(b, 0, LARGE, &c);
	assert_int_equal(c.leaks | c.corruptions, 0);
	fmt_close(b);
	im_free(&m);
}

/* No reference count table that could be used. */
static void test_repair_without_table(void **state)
{
	uint8_t *before = malloc(GUEST), *after = malloc(GUEST);
	struct fmt_check c;
	struct blk *b;
	struct im m;

	(void)state;
	base(&m);
	im_be64(&m, 48, 1ull << 60);
	im_guest(&m, before);
	b = open_on(disk_of(&m), true);
	run(b, 0, LARGE, &c);
	assert_true(c.corruptions > 20);
	run(b, FMT_FIX_ERRORS | FMT_FIX_LEAKS, LARGE, &c);
	assert_int_equal(c.corruptions | c.check_errors, 0);
	run(b, 0, LARGE, &c);
	assert_int_equal(c.corruptions | c.leaks | c.check_errors, 0);
	guest_bytes(b, after);
	same_guest(before, after);
	fmt_close(b);
	im_free(&m);
	free(before);
	free(after);
}

/* The header says that there are bitmaps, and no extension does. */
static void test_repair_bitmaps_bit(void **state)
{
	struct fmt_check c;
	struct blk *b;
	struct im m;

	(void)state;
	base(&m);
	im_be64(&m, 88, QCOW2_AUTO_BITMAPS);
	assert_int_equal(im_error(&m, 0, NULL), BLK_E_QCOW2_BITMAPS_NONE);
	b = open_on(disk_of(&m), true);
	run(b, 0, LARGE, &c);
	assert_int_equal(c.corruptions, 1);
	run(b, FMT_FIX_LEAKS, LARGE, &c);
	assert_int_equal(c.corruptions, 1);
	run(b, FMT_FIX_ERRORS, LARGE, &c);
	assert_int_equal(c.corruptions, 0);
	assert_int_equal(c.corruptions_fixed, 1);
	run(b, 0, LARGE, &c);
	assert_int_equal(c.corruptions | c.leaks | c.check_errors, 0);
	assert_int_equal(blk_pread(b->file, 88, m.p + 88, 8), 0);
	fmt_close(b);
	assert_int_equal(im_error(&m, 0, NULL), BLK_E_NONE);
	im_free(&m);
}

/* A bit for a count, and two references: nothing can be done, nothing is done. */
static void test_repair_too_narrow(void **state)
{
	struct fmt_check c;
	struct blk *b;
	struct im m;

	(void)state;
	base_order(&m, 0);
	twice(&m);
	b = open_on(disk_of(&m), true);
	run(b, FMT_FIX_ERRORS | FMT_FIX_LEAKS, LARGE, &c);
	assert_int_equal(c.corruptions, 1);
	run(b, 0, LARGE, &c);
	assert_int_equal(c.corruptions, 1);
	fmt_close(b);
	im_free(&m);
}

static void test_repair_needs_writing(void **state)
{
	struct fmt_check c = {.fix = FMT_FIX_LEAKS};
	struct blk_err err = BLK_ERR_INIT;
	struct blk *b;
	struct im m;

	(void)state;
	base(&m);
	b = im_open(&m);
	assert_int_equal(fmt_check(b, &c, &err), -THR_EROFS);
	assert_int_equal(err.id, BLK_E_READ_ONLY);
	fmt_close(b);
	im_free(&m);
}

#ifdef CONFIG_BLK_LOG

static uint32_t rnd(uint64_t *seed, uint32_t below)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*seed >> 33) % below;
}

/* The disk after a power cut at step @at: what is durable, and a sample of the
 * sectors of what may be. */
static struct blk *after_cut(const struct im *m, struct blk *log, uint64_t at, uint64_t *seed)
{
	struct blk *disk = disk_of(m);

	for (size_t i = 0; i < blk_log_count(log); i++) {
		const struct blk_log_entry *e = blk_log_get(log, i);
		enum blk_log_fate fate = blk_log_fate(log, i, at);
		uint64_t skip = 0, n;

		if (fate == BLK_LOG_NOT_YET || e->op == BLK_OP_FLUSH)
			continue;
		if (e->op != BLK_OP_WRITE) {
			if (fate == BLK_LOG_DURABLE || rnd(seed, 2))
				assert_int_equal(blk_log_apply(e, 0, e->len, disk), 0);
			continue;
		}
		for (; skip < e->len; skip += n) {
			n = THR_MIN(512 - ((e->off + skip) & 511), e->len - skip);
			if (fate == BLK_LOG_DURABLE || rnd(seed, 2))
				assert_int_equal(blk_log_apply(e, skip, n, disk), 0);
		}
	}
	return disk;
}

/* After a cut the guest sees the same, and repair finishes what it had begun. */
static void cut_everywhere(const struct damage *d, struct im *m, const uint8_t *before)
{
	uint8_t *after = malloc(GUEST);
	struct fmt_check c;
	struct blk *log, *b;
	uint64_t seed = 3;

	assert_int_equal(blk_log_open(&log, disk_of(m), NULL, NULL, &thr_heap, NULL), 0);
	b = open_on(log, true);
	run(b, FMT_FIX_ERRORS | FMT_FIX_LEAKS, LARGE, &c);
	for (uint64_t at = 1; at <= blk_log_now(log); at++) {
		for (unsigned sample = 0; sample < 3; sample++) {
			struct blk *cut = open_on(after_cut(m, log, at, &seed), true);

			guest_bytes(cut, after);
			same_guest(before, after);
			run(cut, FMT_FIX_ERRORS | FMT_FIX_LEAKS, LARGE, &c);
			run(cut, 0, LARGE, &c);
			assert_int_equal(c.corruptions, d->left_corruptions);
			assert_int_equal(c.check_errors, 0);
			guest_bytes(cut, after);
			same_guest(before, after);
			fmt_close(cut);
		}
	}
	fmt_close(b);
	free(after);
}

static void test_repair_cut(void **state)
{
	uint8_t *before = malloc(GUEST);

	(void)state;
	for (size_t i = 0; i < THR_ARRAY_SIZE(damages); i++) {
		struct im m;

		base(&m);
		damages[i].fn(&m);
		im_be64(&m, 72, QCOW2_INC_DIRTY);
		im_guest(&m, before);
		cut_everywhere(&damages[i], &m, before);
		im_free(&m);
	}
	free(before);
}
#endif

#ifdef CONFIG_BLK_FAULT

/* Each I/O in turn fails: no crash, no leak of memory, the guest's bytes stay, and
 * a second repair is as good as if nothing had been. */
static void test_repair_faults(void **state)
{
	uint8_t *before = malloc(GUEST), *after = malloc(GUEST);

	(void)state;
	for (size_t i = 0; i < THR_ARRAY_SIZE(damages); i++) {
		const struct damage *d = &damages[i];
		struct im m;

		base(&m);
		d->fn(&m);
		im_guest(&m, before);
		for (uint64_t nth = 1;; nth++) {
			struct blk_fault rule = {.nth = nth, .err = -THR_EIO};
			struct fmt_check c = {.fix = FMT_FIX_ERRORS | FMT_FIX_LEAKS};
			struct blk *fault, *b;

			assert_int_equal(
				blk_fault_open(&fault, disk_of(&m), &thr_heap, NULL), 0);
			b = open_on(fault, true);
			assert_int_equal(blk_fault_add(fault, &rule), 0);
			(void)fmt_check(b, &c, NULL);
			blk_fault_clear(fault);
			guest_bytes(b, after);
			same_guest(before, after);
			if (!blk_fault_fired(fault)) {
				fmt_close(b);
				break;
			}
			fmt_close(b);
		}
		im_free(&m);
	}
	free(before);
	free(after);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sound),
		cmocka_unit_test(test_findings),
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_windows_of_damage),
		cmocka_unit_test(test_many_references),
		cmocka_unit_test(test_repair),
		cmocka_unit_test(test_repair_leaks),
		cmocka_unit_test(test_repair_without_table),
		cmocka_unit_test(test_repair_bitmaps_bit),
		cmocka_unit_test(test_repair_too_narrow),
		cmocka_unit_test(test_repair_needs_writing),
#ifdef CONFIG_BLK_LOG
		cmocka_unit_test(test_repair_cut),
#endif
#ifdef CONFIG_BLK_FAULT
		cmocka_unit_test(test_repair_faults),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
