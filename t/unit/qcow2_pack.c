/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Compressed writes into qcow2 images: where streams go and how they are counted, at
 * every cluster size and width of counts; what is overwritten; what is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "cz/cz.h"
#include "fmt/qcow2/write.h"
#include "t/fixtures/qcow2_rig.h"

/* ---- images ------------------------------------------------------------------ */

struct rig {
	struct geo geo;
	struct blk *disk, *b;
	uint32_t cluster;
	uint8_t *model, *buf;
	uint64_t seed;
};

static void rig_open(struct rig *g, const struct geo *geo)
{
	memset(g, 0, sizeof(*g));
	g->geo = *geo;
	g->cluster = 1u << geo->cluster_bits;
	g->disk = disk_new();
	image_make(g->disk, geo);
	g->b = image_open(disk_lend(g->disk, 0), NULL, 0);
	g->model = calloc(1, geo->size);
	g->buf = calloc(1, geo->size);
	g->seed = geo->cluster_bits * 8 + geo->refcount_order + 1;
	assert_true(g->model && g->buf);
}

static void rig_compare(struct rig *g)
{
	assert_int_equal(blk_pread(g->b, 0, g->buf, g->geo.size), 0);
	assert_memory_equal(g->buf, g->model, g->geo.size);
}

static void rig_reopen(struct rig *g)
{
	assert_int_equal(fmt_close(g->b), 0);
	image_assert_sound(g->disk);
	assert_int_equal(blk_size(g->disk) % 512, 0);
	g->b = image_open(disk_lend(g->disk, 0), NULL, 0);
}

static void rig_close(struct rig *g)
{
	rig_compare(g);
	rig_reopen(g);
	rig_compare(g);
	assert_int_equal(fmt_close(g->b), 0);
	image_assert_sound(g->disk);
	blk_close(g->disk);
	free(g->model);
	free(g->buf);
}

/* Data that shrinks to about @part of 8, or not at all with 8. */
static void scribble(struct rig *g, uint64_t off, uint64_t len, unsigned part)
{
	for (uint64_t i = 0; i < len; i++)
		g->model[off + i] = i / 16 % 8 < part ? (uint8_t)rnd(&g->seed, 256) : 'x';
}

/* The data in three pieces, so that clusters are cut anywhere. */
static int packed(struct rig *g, uint64_t off, uint64_t len)
{
	uint64_t a = rnd(&g->seed, 2) ? 0 : rnd(&g->seed, (uint32_t)len + 1);
	uint64_t b = a ? rnd(&g->seed, (uint32_t)(len - a) + 1) : 0;
	uint8_t *p = g->model + off;
	struct thr_iov v[] = {{p, a}, {p + a, b}, {p + a + b, len - a - b}};
	struct blk_req r = {.off = off, .len = len, .iov = v, .niov = 3, .flags = BLK_COMPRESS};

	return blk_pwritev(g->b, &r);
}

static void pack(struct rig *g, uint64_t off, uint64_t len)
{
	assert_int_equal(packed(g, off, THR_MIN(len, g->geo.size - off)), 0);
}

static struct qcow2_extent extent(struct rig *g, uint64_t off)
{
	struct qcow2_extent x;

	assert_int_equal(qcow2_map(qcow2_of(g->b), off, 1, &x), 0);
	return x;
}

static void stream(struct rig *g, uint64_t off, uint64_t *host, uint32_t *len)
{
	struct qcow2_extent x = extent(g, off);

	assert_int_equal(x.kind, QCOW2_COMPRESSED_CLUSTER);
	qcow2_compressed_range(qcow2_of(g->b), x.entry, host, len);
}

/* ---- every geometry ------------------------------------------------------------- */

/* Some clusters of each kind: zero, like the one before, and of any compressibility. */
static void fill(struct rig *g, uint64_t off, uint64_t len)
{
	for (uint64_t at = off; at < off + len; at += g->cluster) {
		uint64_t n = THR_MIN(g->cluster, off + len - at);

		switch (rnd(&g->seed, 6)) {
		case 0:
			memset(g->model + at, 0, n);
			break;
		case 1:
			if (at >= g->cluster)
				memcpy(g->model + at, g->model + at - g->cluster, n);
			break;
		case 2:
			scribble(g, at, n, 8);
			break;
		default:
			scribble(g, at, n, rnd(&g->seed, 8));
		}
	}
}

static void step(struct rig *g)
{
	uint64_t clusters = (g->geo.size + g->cluster - 1) / g->cluster;
	uint64_t off = rnd(&g->seed, (uint32_t)clusters) * (uint64_t)g->cluster;
	uint64_t len = (1 + rnd(&g->seed, 8)) * (uint64_t)g->cluster;
	struct blk_req r = {.off = off};

	len = THR_MIN(len, g->geo.size - off);
	r.len = len;
	switch (rnd(&g->seed, 12)) {
	case 0:
		off = THR_MIN(off + rnd(&g->seed, 512), g->geo.size - 1);
		len = THR_MIN(len, g->geo.size - off);
		scribble(g, off, len, 8);
		assert_int_equal(blk_pwrite(g->b, off, g->model + off, len), 0);
		break;
	case 1:
		assert_int_equal(blk_discard(g->b, &r), 0);
		assert_int_equal(blk_pread(g->b, off, g->model + off, len), 0);
		break;
	case 2:
		memset(g->model + off, 0, len);
		r.flags = BLK_UNMAP;
		assert_int_equal(blk_zero(g->b, &r), 0);
		break;
	case 3:
		assert_int_equal(blk_flush(g->b), 0);
		break;
	case 4:
		rig_reopen(g);
		break;
	default:
		fill(g, off, len);
		pack(g, off, len);
	}
}

static void all_steps(const struct geo *geo, unsigned n)
{
	struct rig g;

	rig_open(&g, geo);
	while (n--) {
		step(&g);
		if (n % 8 == 0)
			rig_compare(&g);
	}
	rig_close(&g);
}

/* Under valgrind or a sanitizer. */
static bool slow(void)
{
	const char *w = getenv("W"), *s = getenv("S");

	return (w && *w) || (s && *s);
}

static void test_geometries(void **state)
{
	static const uint64_t clusters[] = {
		300, 200, 100, 80, 60, 50, 40, 40, 30, 24, 16, 8, 6};

	const unsigned by = slow() ? 4 : 1, steps = slow() ? 8 : 80;

	(void)state;
	for (unsigned bits = 9; bits <= 21; bits += by) {
		for (unsigned order = 0; order <= 6; order += by) {
			struct geo geo = {3, bits, order,
				(clusters[bits - 9] << bits) - (512u << (order & 1)), 0, 0};

			all_steps(&geo, bits > 18 ? THR_MIN(steps, 20) : steps);
		}
	}
}

static void test_other_images(void **state)
{
	static const struct geo geos[] = {
		{2, 9, 4, 100 << 10, 0, 0},
		{2, 16, 4, 3 << 20, 0, 0},
		{3, 12, 4, 1 << 20, 0, GEO_LAZY},
		{3, 14, 4, 1 << 20, 0, GEO_EXTENDED},
		{3, 16, 1, 3 << 20, 0, GEO_EXTENDED},
	};

	(void)state;
	for (unsigned i = 0; i < THR_ARRAY_SIZE(geos); i++)
		all_steps(&geos[i], slow() ? 8 : 100);
}

/* ---- where streams go -------------------------------------------------------------- */

static const struct geo plain_geo = {3, 16, 4, 4 << 20, 0, 0};

/* One behind the other with nothing between, across clusters and requests. */
static void test_density(void **state)
{
	uint64_t next = 0, crossing = 0;
	struct rig g;

	(void)state;
	rig_open(&g, &plain_geo);
	for (uint64_t off = 0; off < g.geo.size; off += g.cluster)
		scribble(&g, off, g.cluster, 3);
	for (uint64_t off = 0; off < g.geo.size; off += 5 * g.cluster)
		pack(&g, off, 5 * g.cluster);
	for (uint64_t off = 0; off < g.geo.size; off += g.cluster) {
		uint64_t host;
		uint32_t len;

		stream(&g, off, &host, &len);
		if (off) /* what an entry says ends with a sector */
			assert_in_range(next - host, 0, 511);
		crossing += host / g.cluster != (host + len - 1) / g.cluster;
		next = host + len;
	}
	assert_true(crossing > 10);
	rig_close(&g);
}

/* Where a standard cluster is in the way, what fits still fills the cluster before. */
static void test_filling(void **state)
{
	uint64_t used, streams = 0;
	struct rig g;

	(void)state;
	rig_open(&g, &plain_geo);
	for (uint64_t off = 0; off < g.geo.size; off += g.cluster)
		scribble(&g, off, g.cluster, off / g.cluster % 8 ? 1 : 8);
	for (uint64_t off = 0; off < g.geo.size; off += 8 * g.cluster)
		pack(&g, off, 8 * g.cluster);
	for (uint64_t off = 0; off < g.geo.size; off += g.cluster) {
		uint64_t host;
		uint32_t len;

		if (off / g.cluster % 8 == 0) {
			assert_int_equal(extent(&g, off).kind, QCOW2_NORMAL);
			continue;
		}
		stream(&g, off, &host, &len);
		streams += len;
	}
	used = blk_size(g.disk) - 8 * g.cluster;
	/* Header, tables, and less than a stream for each request. */
	assert_true(used < streams + 6 * g.cluster + 8 * (g.cluster / 6));
	rig_close(&g);
}

static void test_counts(void **state)
{
	(void)state;
	for (unsigned order = 0; order <= 4; order++) {
		struct geo geo = {3, 16, order, 4 << 20, 0, 0};
		uint64_t most = order < 4 ? (1ull << (1u << order)) - 1 : 64, seen = 0, host;
		uint32_t in[4096] = {0}, len;
		struct rig g;

		rig_open(&g, &geo);
		for (uint64_t off = 0; off < geo.size; off += g.cluster)
			memset(g.model + off, 1 + (int)(off >> 16), g.cluster);
		pack(&g, 0, geo.size);
		for (uint64_t off = 0; off < geo.size; off += g.cluster) {
			stream(&g, off, &host, &len);
			in[host >> 16]++;
			seen = THR_MAX(seen, (uint64_t)in[host >> 16]);
		}
		/* Tiny streams: as many in one cluster as its count can say. */
		assert_int_equal(seen, THR_MIN(most, geo.size >> 16));
		rig_close(&g);
	}
}

/* An image opened anew does not write into a cluster that it has not allocated. */
static void test_reopened(void **state)
{
	uint64_t first, second;
	struct rig g;
	uint32_t len;

	(void)state;
	rig_open(&g, &plain_geo);
	scribble(&g, 0, 2 * g.cluster, 1);
	pack(&g, 0, g.cluster);
	rig_reopen(&g);
	pack(&g, g.cluster, g.cluster);
	stream(&g, 0, &first, &len);
	stream(&g, g.cluster, &second, &len);
	assert_int_not_equal(first >> 16, second >> 16);
	rig_close(&g);
}

/* The cluster that streams go to is left once a stream in it has been dropped. */
static void test_dropped(void **state)
{
	struct blk_req r = {.len = 65536};
	uint64_t first, second;
	struct rig g;
	uint32_t len;

	(void)state;
	rig_open(&g, &plain_geo);
	scribble(&g, 0, 3 * g.cluster, 1);
	pack(&g, 0, g.cluster);
	stream(&g, 0, &first, &len);
	assert_int_equal(blk_discard(g.b, &r), 0);
	memset(g.model, 0, g.cluster);
	pack(&g, g.cluster, g.cluster);
	stream(&g, g.cluster, &second, &len);
	assert_int_not_equal(first >> 16, second >> 16);
	assert_int_equal(blk_flush(g.b), 0);
	assert_int_equal(blk_flush(g.b), 0);
	/* Free again, and used again. */
	scribble(&g, 2 * g.cluster, g.cluster, 8);
	pack(&g, 2 * g.cluster, g.cluster);
	assert_int_equal(extent(&g, 2 * g.cluster).host >> 16, first >> 16);
	rig_close(&g);
}

/* Offsets of streams have 49 bits where clusters have 2 MiB. */
static void test_far(void **state)
{
	static const struct geo geo = {3, 21, 4, 64 << 20, 0, 0};
	struct rig g;

	(void)state;
	rig_open(&g, &geo);
	scribble(&g, 0, g.cluster, 1);
	for (unsigned i = 0; i < QCOW2_HINTS; i++)
		qcow2_of(g.b)->w->hint[i] = (1ull << 28) + 1;
	assert_int_equal(packed(&g, 0, g.cluster), -THR_EFBIG);
	memset(g.model, 0, g.cluster);
	rig_compare(&g);
	assert_int_equal(fmt_close(g.b), 0);
	blk_close(g.disk);
	free(g.model);
	free(g.buf);
}

/* ---- what is compressed ---------------------------------------------------------------- */

static const struct cz_codec *real;
static unsigned encoded;

static int counting(void *ctx, void *dst, size_t dlen, const void *src, size_t slen)
{
	encoded++;
	return real->encode(ctx, dst, dlen, src, slen);
}

static void test_spared(void **state)
{
	struct cz_codec c;
	struct rig g;

	(void)state;
	real = cz_codec_find(CZ_DEFLATE);
	c = *real;
	c.encode = counting;
	cz_codec_register(&c);
	rig_open(&g, &plain_geo);
	encoded = 0;
	/* Like the one before it: once. Zero, and noise: not at all. */
	scribble(&g, 0, g.cluster, 2);
	for (unsigned i = 1; i < 8; i++)
		memcpy(g.model + i * g.cluster, g.model, g.cluster);
	scribble(&g, 9 * g.cluster, 3 * g.cluster, 8);
	pack(&g, 0, 16 * g.cluster);
	assert_int_equal(encoded, 1);
	assert_int_equal(extent(&g, 8 * g.cluster).kind, QCOW2_UNALLOCATED);
	assert_int_equal(extent(&g, 9 * g.cluster).kind, QCOW2_NORMAL);
	assert_true(extent(&g, 9 * g.cluster).copied);
	/* Zeroes over data: a zero cluster. */
	memset(g.model, 0, g.cluster);
	pack(&g, 0, g.cluster);
	assert_int_equal(encoded, 1);
	assert_int_equal(extent(&g, 0).kind, QCOW2_ZERO);
	rig_close(&g);
	cz_codec_register(real);
}

/* ---- what is decompressed ------------------------------------------------------------ */

static unsigned decoded;

static int counting_back(void *ctx, void *dst, size_t dlen, const void *src, size_t slen)
{
	decoded++;
	return real->decode(ctx, dst, dlen, src, slen);
}

/* The first cluster in small pieces. */
static void read_in_pieces(struct rig *g)
{
	for (uint64_t at = 0; at < g->cluster; at += 512) {
		assert_int_equal(blk_pread(g->b, at, g->buf, 512), 0);
		assert_memory_equal(g->buf, g->model + at, 512);
	}
}

/* Small reads of a writable image decompress once, and see what other data the same
 * entry has come to mean. */
static void test_kept(void **state)
{
	struct blk_req r = {.len = 65536};
	struct qcow2_extent before, after;
	struct cz_codec c;
	struct rig g;

	(void)state;
	real = cz_codec_find(CZ_DEFLATE);
	c = *real;
	c.decode = counting_back;
	cz_codec_register(&c);
	rig_open(&g, &plain_geo);
	memset(g.model, 'a', g.cluster);
	pack(&g, 0, g.cluster);
	before = extent(&g, 0);
	decoded = 0;
	read_in_pieces(&g);
	assert_int_equal(decoded, 1);

	assert_int_equal(blk_discard(g.b, &r), 0);
	assert_int_equal(blk_flush(g.b), 0);
	memset(g.model, 'b', g.cluster);
	pack(&g, 0, g.cluster);
	after = extent(&g, 0);
	assert_true(before.entry == after.entry);
	read_in_pieces(&g);
	assert_int_equal(decoded, 2);
	rig_close(&g);
	cz_codec_register(real);
}

/* ---- what is refused ------------------------------------------------------------------- */

static void test_refused(void **state)
{
	struct blk_err err = BLK_ERR_INIT;
	const struct fmt_driver *d = fmt_driver_find("qcow2");
	struct geo geo = {3, 16, 4, (1 << 20) - 512, 0, 0};
	struct cz_codec c;
	uint32_t unit;
	struct rig g;

	(void)state;
	rig_open(&g, &geo);
	assert_int_equal(d->compress(g.b, &unit, &err), 0);
	assert_int_equal(unit, 65536);
	assert_int_equal(packed(&g, 512, 65536), -THR_EINVAL);
	assert_int_equal(packed(&g, 0, 512), -THR_EINVAL);
	assert_int_equal(packed(&g, 0, 65536 + 512), -THR_EINVAL);
	assert_int_equal(packed(&g, 0, geo.size - 1), -THR_EINVAL);
	assert_int_equal(packed(&g, 65536, geo.size), -THR_EINVAL); /* past the end */
	assert_int_equal(packed(&g, 0, geo.size), 0);
	assert_int_equal(packed(&g, 15 * 65536, 65536 - 512), 0);
	rig_close(&g);
	real = cz_codec_find(CZ_DEFLATE);
	c = *real;
	c.encode = NULL;
	cz_codec_register(&c);
	rig_open(&g, &geo);
	assert_int_equal(d->compress(g.b, &unit, &err), -THR_ENOTSUP);
	assert_int_equal(err.id, BLK_E_QCOW2_PACK_DECODER);
	assert_int_equal(packed(&g, 0, 65536), -THR_ENOTSUP);
	rig_close(&g);
	cz_codec_register(real);
}

static void test_levels(void **state)
{
	const struct cz_codec *c = cz_codec_find(CZ_DEFLATE);
	struct blk_opt opt = {"compression-level", NULL};
	struct blk_opts opts = {&opt, 1};
	struct blk *disk = disk_new();
	struct blk_err err = BLK_ERR_INIT;
	char text[16];

	(void)state;
	image_make(disk, &plain_geo);
	for (int level = c->level_min - 1; level <= c->level_max + 1; level++) {
		struct fmt_open o = {.format = "qcow2",
			.blk_flags = BLK_RDWR,
			.opts = &opts,
			.mem = &thr_heap};
		struct blk *file = disk_lend(disk, 0), *b;
		int ret;

		snprintf(text, sizeof(text), "%d", level);
		opt.val = text;
		ret = fmt_open_on(&b, file, &o, &err);
		if (level >= c->level_min && level <= c->level_max) {
			assert_int_equal(ret, 0);
			assert_int_equal(qcow2_of(b)->w->packer.level, level);
			assert_int_equal(fmt_close(b), 0);
			continue;
		}
		assert_int_equal(ret, -THR_EINVAL);
		assert_int_equal(err.id, BLK_E_QCOW2_LEVEL);
		blk_close(file);
	}
	blk_close(disk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_geometries),
		cmocka_unit_test(test_other_images),
		cmocka_unit_test(test_density),
		cmocka_unit_test(test_filling),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_reopened),
		cmocka_unit_test(test_dropped),
		cmocka_unit_test(test_far),
		cmocka_unit_test(test_spared),
		cmocka_unit_test(test_kept),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_levels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
