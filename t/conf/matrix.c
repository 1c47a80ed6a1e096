/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Bugs that implementations of images with backing files are known to have had: each
 * is a test by name, with the right value, for every geometry that it can happen in.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "cz/cz.h"
#include "t/fixtures/qcow2_rig.h"

#define K 1024u

static const struct geo geos[] = {
	{.version = 2, .cluster_bits = 9, .refcount_order = 4, .size = 200 * K},
	{.version = 2, .cluster_bits = 16, .refcount_order = 4, .size = 1024 * K},
	{.version = 3, .cluster_bits = 9, .refcount_order = 0, .size = 200 * K},
	{.version = 3, .cluster_bits = 12, .refcount_order = 2, .size = 500 * K + 512},
	{.version = 3,
		.cluster_bits = 12,
		.refcount_order = 4,
		.size = 500 * K,
		.flags = GEO_LAZY},
	{.version = 3, .cluster_bits = 9, .refcount_order = 1, .size = 200 * K},
	{.version = 3, .cluster_bits = 16, .refcount_order = 6, .size = 1024 * K},
	{.version = 3, .cluster_bits = 21, .refcount_order = 4, .size = 6 * K * K},
	{.version = 3,
		.cluster_bits = 14,
		.refcount_order = 4,
		.size = 500 * K,
		.flags = GEO_EXTENDED},
	{.version = 3,
		.cluster_bits = 16,
		.refcount_order = 1,
		.size = 1024 * K,
		.flags = GEO_EXTENDED},
};

/* An image, and what it should hold. */
struct image {
	struct geo geo;
	struct blk *disk, *base, *b;
	uint8_t *want, *buf;
};

static uint64_t cluster(const struct image *m)
{
	return 1ull << m->geo.cluster_bits;
}

static void open_it(struct image *m)
{
	m->b = image_open(disk_lend(m->disk, 0), m->base, 0);
}

static void image_new(struct image *m, const struct geo *g, uint64_t backing)
{
	*m = (struct image){.geo = *g};
	m->geo.backing = backing;
	m->disk = disk_new();
	m->base = backing ? backing_new(backing) : NULL;
	m->want = calloc(2, g->size);
	m->buf = malloc(2 * g->size);
	assert_true(m->want && m->buf);
	image_make(m->disk, &m->geo);
	for (uint64_t i = 0; i < THR_MIN(backing, g->size); i++)
		m->want[i] = backing_byte(i);
	open_it(m);
}

static void blame(const struct image *m, uint64_t at, uint8_t is, uint8_t want)
{
	char name[128];

	geo_name(&m->geo, name, sizeof(name));
	fail_msg("%s: byte %llu is %02x, not %02x", name, (unsigned long long)at, is, want);
}

static void holds(struct image *m)
{
	uint64_t size = blk_size(m->b), i;

	assert_int_equal(blk_pread(m->b, 0, m->buf, size), 0);
	for (i = 0; i < size; i++)
		if (m->buf[i] != m->want[i])
			blame(m, i, m->buf[i], m->want[i]);
}

static void reopen(struct image *m)
{
	assert_int_equal(fmt_close(m->b), 0);
	image_assert_sound(m->disk);
	open_it(m);
	holds(m);
}

static void image_end(struct image *m)
{
	holds(m);
	reopen(m);
	assert_int_equal(fmt_close(m->b), 0);
	blk_close(m->disk);
	blk_close(m->base);
	free(m->want);
	free(m->buf);
}

static void put(struct image *m, uint64_t off, uint64_t len, uint8_t first)
{
	for (uint64_t i = off; i < off + len; i++)
		m->want[i] = (uint8_t)(first + i / 512 % 50);
	assert_int_equal(blk_pwrite(m->b, off, m->want + off, len), 0);
}

static void zero(struct image *m, uint64_t off, uint64_t len, unsigned flags)
{
	struct blk_req r = {.off = off, .len = len, .flags = flags};

	memset(m->want + off, 0, len);
	assert_int_equal(blk_zero(m->b, &r), 0);
}

static bool map_says_zero(struct image *m, uint64_t off, uint64_t len)
{
	struct fmt_map_extent e;

	for (; len; off += e.len, len -= e.len) {
		assert_int_equal(fmt_map(m->b, NULL, off, len, NULL, &e), 0);
		if (!(e.flags & BLK_EXT_ZERO))
			return false;
	}
	return true;
}

/* ---- zeroes ---------------------------------------------------------------------- */

/* An image whose every cluster has been zeroed: it is known to be zero, takes no
 * space, and can be written. Version 2 over a backing file cannot but store zeroes. */
static void all_zero_image(struct image *m)
{
	uint64_t size = m->geo.size, empty;
	bool flags = m->geo.version > 2 || !m->geo.backing;

	zero(m, 0, size, BLK_UNMAP);
	assert_int_equal(blk_flush(m->b), 0);
	empty = blk_size(m->disk);
	put(m, 0, size, 1);
	zero(m, 0, size, BLK_UNMAP);
	holds(m);
	assert_int_equal(map_says_zero(m, 0, size), flags);
	reopen(m);
	assert_true(fmt_reads_zero(m->b) || !flags);
	put(m, size / 2, 1000, 2);
	assert_false(fmt_reads_zero(m->b));
	holds(m);
	if (flags)
		assert_in_range(image_verify(m->disk, false).used, 4, empty / cluster(m) + 8);
}

/* A zero flag, put there by a write of zeroes, over a cluster that keeps its data: a
 * partial write must not bring the rest of that back. */
static void write_into_zeroed_cluster_that_keeps_its_place(struct image *m)
{
	uint64_t n = cluster(m);

	put(m, 0, m->geo.size, 1);
	assert_int_equal(blk_flush(m->b), 0);
	zero(m, 0, m->geo.size, 0);
	assert_true(m->geo.version < 3 || map_says_zero(m, 0, m->geo.size));
	put(m, n / 2, 100, 2);
	holds(m);
	put(m, n + 1, n, 3);
	holds(m);
	reopen(m);
}

/* Data of the overlay, then zeroes: neither that data nor what lies below shows. */
static void zero_flag_over_old_data_of_an_overlay(struct image *m)
{
	uint64_t size = m->geo.size, n = cluster(m);

	put(m, 0, size, 1);
	reopen(m);
	zero(m, 0, size / 2, 0);
	zero(m, size / 2, size - size / 2, BLK_UNMAP);
	holds(m);
	reopen(m);
	put(m, n / 3, n / 3 + 1, 2);
	put(m, size - n / 3 - 1, n / 3, 3);
	holds(m);
}

/* Zeroes onto what the overlay does not have: exactly those bytes, and for good. */
static void zero_write_on_unallocated_cluster_of_an_overlay(struct image *m)
{
	uint64_t n = cluster(m), i;

	zero(m, 0, n, 0);
	zero(m, 2 * n, n, BLK_UNMAP);
	for (i = 0; i < 2; i++) {
		uint64_t at = m->geo.size / 2 + i * (n + 2000);

		zero(m, at + 1, n / 3 + 1, i ? BLK_UNMAP : 0);
	}
	holds(m);
	reopen(m);
	/* Written zeroes are data like any other. */
	memset(m->want + m->geo.size / 4, 0, 3000);
	assert_int_equal(blk_pwrite(m->b, m->geo.size / 4, m->want + m->geo.size / 4, 3000), 0);
	holds(m);
}

/* A discard may give zeroes, or change nothing; what lies below stays hidden. */
static void discard_does_not_show_what_is_below(struct image *m)
{
	struct blk_req r = {.len = m->geo.size};

	put(m, 0, m->geo.size, 1);
	assert_int_equal(blk_discard(m->b, &r), 0);
	assert_int_equal(blk_pread(m->b, 0, m->buf, m->geo.size), 0);
	for (uint64_t i = 0; i < m->geo.size; i++)
		if (m->buf[i] && m->buf[i] != m->want[i])
			blame(m, i, m->buf[i], 0);
	memcpy(m->want, m->buf, m->geo.size);
}

/* ---- chains ------------------------------------------------------------------------ */

/* The backing file ends in the middle of a cluster, and of the reads. */
static void read_straddles_the_end_of_a_shorter_backing_file(struct image *m)
{
	uint64_t end = m->geo.backing, at;

	for (at = end - 700; at < end + 700; at += 111) {
		assert_int_equal(blk_pread(m->b, at, m->buf, 1500), 0);
		assert_memory_equal(m->buf, m->want + at, 1500);
	}
	/* Copy on write across that end. */
	put(m, end - 5, 10, 1);
	holds(m);
	put(m, end + 3000, 5, 2);
	holds(m);
}

/* Every other cluster is the overlay's: one read, in odd pieces of memory. */
static void long_read_alternates_top_and_backing(struct image *m)
{
	uint64_t n = cluster(m), size = m->geo.size, at, done = 0;
	struct thr_iov v[64];
	unsigned i;

	for (at = n; at + n <= size; at += 2 * n)
		put(m, at, n, 1);
	reopen(m);
	for (i = 0; i < 64; i++) {
		uint64_t len = i < 63 ? THR_MIN(size - 3 - done, i * 997) : size - 3 - done;

		v[i] = (struct thr_iov){m->buf + done, (size_t)len};
		done += len;
	}
	memset(m->buf, 0xee, size);
	assert_int_equal(
		blk_preadv(m->b,
			&(struct blk_req){.off = 3, .len = size - 3, .iov = v, .niov = 64}),
		0);
	assert_memory_equal(m->buf, m->want + 3, size - 3);
}

/* Three layers of different lengths: the middle one is the shortest, and what lies
 * past its end is zero, whatever the lowest one has. */
static void middle_layer_that_is_shorter_hides_what_is_below(struct image *m)
{
	struct image low;
	uint64_t len = m->geo.size / 3 / 512 * 512;
	struct geo g = m->geo;

	g.size = len;
	image_new(&low, &g, m->geo.size);
	put(&low, len / 2, len / 4, 77);
	assert_int_equal(blk_flush(low.b), 0);
	assert_int_equal(fmt_close(m->b), 0);
	m->b = image_open(disk_lend(m->disk, 0), NULL, 0);
	fmt_set_backing(m->b, low.b);
	memcpy(m->want, low.want, len);
	memset(m->want + len, 0, m->geo.size - len);
	holds(m);
	put(m, len - 10, 20, 5);
	zero(m, 0, 600, BLK_UNMAP);
	holds(m);
	assert_int_equal(fmt_close(m->b), 0);
	open_it(&low);
	image_end(&low);
	/* Over the old base it is another disk. */
	m->base = NULL;
	free(m->want);
	m->want = calloc(2, m->geo.size);
	open_it(m);
	assert_int_equal(blk_pread(m->b, 0, m->want, m->geo.size), 0);
}

/* ---- subclusters ------------------------------------------------------------------ */

#define PIECE 2048u

/* What the overlay says of each piece in turn. */
enum state { DATA, ZERO, KEPT_ZERO, HOLE, STATES };

static enum state state_of(uint64_t at)
{
	return (enum state)(at / PIECE % STATES);
}

static bool is_state(struct image *m, uint64_t at, enum state want)
{
	struct blk_extent e;
	enum state is;

	assert_int_equal(blk_status(m->b, at, PIECE, &e), 0);
	is = !(e.flags & BLK_EXT_ALLOC) ? HOLE : e.flags & BLK_EXT_ZERO ? ZERO : DATA;
	return e.len == PIECE && is == (want == KEPT_ZERO ? ZERO : want);
}

/* All of it; @copied: but for holes, which may be data or zeroes by now. Zeroes behind the
 * end of what lay below, at @end, may be a hole; the piece it ends in is several. */
static void states_stay(struct image *m, uint64_t end, bool copied)
{
	for (uint64_t at = 0; at + PIECE <= m->geo.size && m->geo.version > 2; at += PIECE) {
		enum state want = state_of(at);

		if ((want == HOLE && copied) || (at < end && end < at + PIECE))
			continue;
		if (is_state(m, at, want))
			continue;
		if (want != ZERO || at < end || !is_state(m, at, HOLE))
			fail_msg("piece %llu is not %d", (unsigned long long)(at / PIECE),
				(int)want);
	}
}

/* Data first everywhere, so that what is zeroed keeps a place that has other bytes. */
static void write_states(struct image *m)
{
	for (uint64_t at = 0; at + PIECE <= m->geo.size; at += PIECE)
		if (state_of(at) == DATA)
			put(m, at, PIECE, (uint8_t)(1 + at / PIECE % 200));
		else if (state_of(at) == KEPT_ZERO)
			put(m, at, PIECE, 99);
	for (uint64_t at = 0; at + PIECE <= m->geo.size; at += PIECE)
		if (state_of(at) == ZERO)
			zero(m, at, PIECE, BLK_UNMAP);
		else if (state_of(at) == KEPT_ZERO)
			zero(m, at, PIECE, 0);
}

/* Another disk below: the one there was, but for every third piece. */
static struct blk *other_base(struct image *m, uint8_t *is)
{
	struct blk *b = disk_new();

	for (uint64_t i = 0; i < m->geo.size; i++)
		is[i] = i < m->geo.backing ? backing_byte(i) : 0;
	for (uint64_t at = 0; at + PIECE <= m->geo.size; at += 3 * PIECE)
		memset(is + at, 0xdb, PIECE);
	assert_int_equal(blk_pwrite(b, 0, is, m->geo.size), 0);
	return b;
}

/* Over the other disk now, as rebase does it: what the overlay does not have and the two
 * have not in common is written to it, zeroes as zeroes. How many pieces were. */
static unsigned copy_up(struct image *m, const uint8_t *other)
{
	unsigned n = 0;

	for (uint64_t at = 0; at + PIECE <= m->geo.size; at += PIECE) {
		const uint8_t *p = m->want + at;

		if (!is_state(m, at, HOLE) || !memcmp(p, other + at, PIECE))
			continue;
		if (cz_is_zero(p, PIECE))
			zero(m, at, PIECE, BLK_UNMAP);
		else
			assert_int_equal(blk_pwrite(m->b, at, p, PIECE), 0);
		n++;
	}
	return n;
}

static void rebase(struct image *m)
{
	uint8_t *other = malloc(m->geo.size);
	struct blk *base;

	assert_non_null(other);
	base = other_base(m, other);
	assert_int_equal(fmt_close(m->b), 0);
	blk_close(m->base);
	m->base = base;
	open_it(m);
	assert_in_range(copy_up(m, other), 1, m->geo.size / PIECE / 4);
	holds(m);
	free(other);
}

/* Writes of 2 KiB between zeroes and holes, in one cluster where it has subclusters:
 * data, zeroes and holes stay apart through a reopen, and when another disk is put below
 * and what that has not is copied up. */
static void small_writes_and_holes_then_a_rebase(struct image *m)
{
	uint64_t end = m->geo.backing;

	/* As large as a subcluster, or a multiple of one. */
	if (!(m->geo.flags & GEO_EXTENDED) && cluster(m) > PIECE)
		return;
	write_states(m);
	holds(m);
	states_stay(m, end, false);
	reopen(m);
	states_stay(m, end, false);
	rebase(m);
	states_stay(m, end, true);
	reopen(m);
	states_stay(m, end, true);
	/* A piece and a half, in the middle of a cluster. */
	put(m, 5 * PIECE + PIECE / 2, PIECE + PIECE / 2, 7);
}

/* Every other subcluster is the overlay's. */
static void long_read_alternates_subclusters(struct image *m)
{
	uint64_t n = THR_MAX(cluster(m) / 32, 512u), size = m->geo.size;

	if (!(m->geo.flags & GEO_EXTENDED))
		return;
	for (uint64_t at = n; at + n <= size; at += 2 * n)
		put(m, at, n, 1);
	reopen(m);
	memset(m->buf, 0xee, size);
	assert_int_equal(blk_pread(m->b, 5, m->buf, size - 5), 0);
	assert_memory_equal(m->buf, m->want + 5, size - 5);
}

/* ---- reference counts --------------------------------------------------------------- */

static uint64_t be64_at(struct blk *disk, uint64_t off)
{
	uint8_t p[8];

	assert_int_equal(blk_pread(disk, off, p, 8), 0);
	return thr_be64(p);
}

/* Counts of less than a byte are packed from its least significant bit on. */
static void sub_byte_refcounts(struct image *m)
{
	unsigned bits = 1u << m->geo.refcount_order, per = 8 / THR_MIN(bits, 8u), i;
	uint64_t block, used;
	uint8_t p[64];

	if (bits >= 8)
		return;
	put(m, 0, 5 * cluster(m) / 2, 1);
	assert_int_equal(blk_flush(m->b), 0);
	block = be64_at(m->disk, be64_at(m->disk, 48));
	used = image_verify(m->disk, false).used;
	assert_true(used < sizeof(p) * per);
	assert_int_equal(blk_pread(m->disk, block, p, sizeof(p)), 0);
	/* The first fit leaves no hole: clusters 0 to used - 1. */
	for (i = 0; i < sizeof(p) * per; i++)
		assert_int_equal(p[i / per] >> (i % per * bits) & ((1u << bits) - 1), i < used);
	zero(m, 0, m->geo.size, BLK_UNMAP);
	put(m, m->geo.size / 2, m->geo.size / 3, 2);
}

/* Discards that are still pending when the disk is cut. */
static void shrink_after_discards(struct image *m)
{
	uint64_t size = m->geo.size, cut = size / 3 / 512 * 512, full;
	struct blk_req r = {.off = size / 4, .len = size / 2};

	put(m, 0, size, 1);
	assert_int_equal(blk_flush(m->b), 0);
	full = blk_size(m->disk);
	assert_int_equal(blk_discard(m->b, &r), 0);
	assert_int_equal(blk_pread(m->b, 0, m->want, size), 0);
	assert_int_equal(fmt_resize(m->b, cut, true, BLK_PREALLOC_OFF, NULL), 0);
	assert_true(blk_size(m->disk) < full);
	holds(m);
	reopen(m);
	assert_int_equal(fmt_resize(m->b, size, false, BLK_PREALLOC_OFF, NULL), 0);
	memset(m->want + cut, 0, size - cut);
	holds(m);
	put(m, cut - 100, size / 2, 2);
}

static void poke64(struct blk *disk, uint64_t off, uint64_t v)
{
	uint8_t p[8];

	thr_put_be64(p, v);
	assert_int_equal(blk_pwrite(disk, off, p, 8), 0);
}

/* The table has an entry for a block far away, and none in between: data lies there. */
static void refcount_table_with_holes(void **state)
{
	struct geo g = {.cluster_bits = 9, .refcount_order = 4, .size = 200 * K};
	uint64_t far = 11 * 256 + 7, block = far + 1, reft, l2, i;
	uint8_t data[512], count[4] = {0, 1, 0, 1};
	struct image m;

	g.version = *(const unsigned *)*state;
	image_new(&m, &g, 0);
	put(&m, 0, 512, 1);
	assert_int_equal(fmt_close(m.b), 0);
	reft = be64_at(m.disk, 48);
	assert_int_equal(be64_at(m.disk, reft + 8), 0);
	l2 = be64_at(m.disk, be64_at(m.disk, 40)) & 0x00fffffffffffe00ull;
	memset(data, 0x5a, sizeof(data));
	memset(m.want + 512, 0x5a, 512);
	assert_int_equal(blk_pwrite(m.disk, far * 512, data, 512), 0);
	assert_int_equal(blk_pwrite(m.disk, block * 512 + far % 256 * 2, count, 4), 0);
	assert_int_equal(blk_truncate(m.disk, (block + 1) * 512, BLK_PREALLOC_OFF, NULL), 0);
	poke64(m.disk, reft + 11 * 8, block * 512);
	poke64(m.disk, l2 + 8, far * 512 | 1ull << 63);
	image_assert_sound(m.disk);
	open_it(&m);
	holds(&m);
	/* New clusters fill the holes, and make the blocks that are missing. */
	for (i = 0; i < 190 * K; i += 10 * K)
		put(&m, i + 1024, 10 * K - 1500, 2);
	assert_int_equal(blk_flush(m.b), 0);
	assert_int_not_equal(be64_at(m.disk, reft + 8), 0);
	assert_int_equal(blk_size(m.disk), (block + 1) * 512);
	zero(&m, 1024, 512, BLK_UNMAP);
	image_end(&m);
}

/* ---- the end of the file --------------------------------------------------------------- */

/* The file ends within its last cluster: what is not there reads as zeroes, check does
 * not mind, and the cluster can be written. */
static void truncation_inside_the_last_cluster(struct image *m)
{
	uint64_t n = cluster(m), size = m->geo.size / n * n, last = size - n;
	uint64_t there = n / 2 - 7;
	struct fmt_check ck = {0};

	put(m, 0, size, 1);
	reopen(m);
	/* Clusters are taken in order: the last of the file is the last of the disk. */
	assert_int_equal(fmt_close(m->b), 0);
	assert_int_equal(
		blk_truncate(m->disk, blk_size(m->disk) - n + there, BLK_PREALLOC_OFF, NULL),
		0);
	memset(m->want + last + there, 0, n - there);
	image_assert_sound(m->disk);
	open_it(m);
	holds(m);
	assert_int_equal(fmt_check(m->b, &ck, NULL), 0);
	assert_int_equal(ck.corruptions + ck.leaks + ck.check_errors, 0);
	put(m, last + n - 30, 10, 2);
	holds(m);
	reopen(m);
}

/* The same of a raw image, whose last sector is not whole. */
static void raw_file_that_ends_inside_a_sector(void **state)
{
	struct fmt_open o = {.format = "raw", .blk_flags = BLK_RDWR, .mem = &thr_heap};
	struct blk *disk = disk_new(), *b;
	uint8_t buf[1024], want[1024] = {0};

	(void)state;
	memset(want, 7, 700);
	assert_int_equal(blk_pwrite(disk, 0, want, 700), 0);
	assert_int_equal(fmt_open_on(&b, disk_lend(disk, 0), &o, NULL), 0);
	assert_int_equal(blk_size(b), 1024);
	memset(buf, 0xee, sizeof(buf));
	assert_int_equal(blk_pread(b, 0, buf, 1024), 0);
	assert_memory_equal(buf, want, 1024);
	want[1020] = 9;
	assert_int_equal(blk_pwrite(b, 1020, want + 1020, 1), 0);
	assert_int_equal(blk_pread(b, 0, buf, 1024), 0);
	assert_memory_equal(buf, want, 1024);
	assert_int_equal(fmt_close(b), 0);
	blk_close(disk);
}

/* ---- the matrix -------------------------------------------------------------------------- */

/* What lies below: nothing, a disk that is as long, or one that ends early. */
enum below { NOTHING, SAME, SHORTER };

struct row {
	const char *name;
	void (*run)(struct image *m);
	enum below below;
};

#define ROW(f, below)                                                                          \
	{                                                                                      \
#f, f, below                                                                   \
	}

static struct row rows[] = {
	ROW(all_zero_image, NOTHING),
	ROW(all_zero_image, SAME),
	ROW(write_into_zeroed_cluster_that_keeps_its_place, NOTHING),
	ROW(write_into_zeroed_cluster_that_keeps_its_place, SAME),
	ROW(zero_flag_over_old_data_of_an_overlay, SAME),
	ROW(zero_flag_over_old_data_of_an_overlay, SHORTER),
	ROW(zero_write_on_unallocated_cluster_of_an_overlay, SAME),
	ROW(discard_does_not_show_what_is_below, SAME),
	ROW(discard_does_not_show_what_is_below, SHORTER),
	ROW(read_straddles_the_end_of_a_shorter_backing_file, SHORTER),
	ROW(long_read_alternates_top_and_backing, SAME),
	ROW(long_read_alternates_top_and_backing, SHORTER),
	ROW(long_read_alternates_subclusters, SAME),
	ROW(long_read_alternates_subclusters, SHORTER),
	ROW(small_writes_and_holes_then_a_rebase, SAME),
	ROW(small_writes_and_holes_then_a_rebase, SHORTER),
	ROW(middle_layer_that_is_shorter_hides_what_is_below, NOTHING),
	ROW(sub_byte_refcounts, NOTHING),
	ROW(shrink_after_discards, NOTHING),
	ROW(shrink_after_discards, SHORTER),
	ROW(truncation_inside_the_last_cluster, NOTHING),
	ROW(truncation_inside_the_last_cluster, SAME),
};

static void run(void **state)
{
	const struct row *r = *state;
	const char *w = getenv("W");
	bool slow = w && *w;

	for (unsigned i = 0; i < THR_ARRAY_SIZE(geos); i++) {
		static const char *const below[] = {"nothing", "as much", "less"};
		const uint64_t backing[] = {
			0, geos[i].size, geos[i].size / 2 / 512 * 512 + 512 * 3};
		struct image m;

		if (slow && geos[i].cluster_bits > 16)
			continue;
		if (getenv("MATRIX_TRACE"))
			fprintf(stderr, "# %s over %s, geometry %u\n", r->name, below[r->below],
				i);
		image_new(&m, &geos[i], backing[r->below]);
		r->run(&m);
		image_end(&m);
	}
}

int main(void)
{
	static unsigned versions[] = {2, 3};
	struct CMUnitTest tests[THR_ARRAY_SIZE(rows) + 3] = {
		cmocka_unit_test_prestate(refcount_table_with_holes, &versions[0]),
		cmocka_unit_test_prestate(refcount_table_with_holes, &versions[1]),
		cmocka_unit_test(raw_file_that_ends_inside_a_sector),
	};

	for (unsigned i = 0; i < THR_ARRAY_SIZE(rows); i++)
		tests[i + 3] = (struct CMUnitTest){rows[i].name, run, NULL, NULL, &rows[i]};
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
