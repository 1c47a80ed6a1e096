/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/qcow2_read.c - reading the virtual disk: clusters of every kind with
 * backing disks of every length against a model; compressed clusters, how often
 * they are decompressed, and damaged ones; many fibers at once.
 */
#include "t/unit/qcow2_util.h"

#include "cz/cz.h"

#ifdef CONFIG_CZ_DEFLATE
#include <zlib.h>
#endif
#ifdef CONFIG_CZ_ZSTD
#include <zstd.h>
#endif

#define CLUSTERS 64u

struct model {
	struct im m;
	uint8_t *disk; /* what the guest sees */
	uint64_t size;
	uint8_t *backing;
	uint64_t backing_size;
	uint64_t next; /* host cluster */
	uint64_t pack; /* host byte for compressed data */
	uint64_t seed;
};

static uint32_t rnd(struct model *d, uint32_t below)
{
	d->seed = d->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(d->seed >> 33) % below;
}

static void noise(struct model *d, uint8_t *p, size_t len)
{
	uint8_t byte = (uint8_t)rnd(d, 256);

	for (size_t i = 0; i < len; i++)
		p[i] = i % 64 < 8 ? (uint8_t)rnd(d, 256) : byte;
}

/* Compresses @src by the image's type; 0: this build has no such codec. */
static size_t pack(unsigned type, uint8_t *dst, size_t room, const uint8_t *src, size_t len)
{
#ifdef CONFIG_CZ_DEFLATE
	if (type == CZ_DEFLATE) {
		z_stream z;

		memset(&z, 0, sizeof(z));
		assert_int_equal(
			deflateInit2(&z, 6, Z_DEFLATED, -12, 9, Z_DEFAULT_STRATEGY), Z_OK);
		z.next_in = (uint8_t *)(uintptr_t)src;
		z.avail_in = (uInt)len;
		z.next_out = dst;
		z.avail_out = (uInt)room;
		assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
		deflateEnd(&z);
		return room - z.avail_out;
	}
#endif
#ifdef CONFIG_CZ_ZSTD
	if (type == CZ_ZSTD) {
		size_t n = ZSTD_compress(dst, room, src, len, 1);

		assert_false(ZSTD_isError(n));
		return n;
	}
#endif
	(void)type;
	(void)dst;
	(void)room;
	(void)src;
	(void)len;
	return 0;
}

static unsigned type_of(const struct im *m)
{
	return m->p[QCOW2_HEADER_V3];
}

static void set_type(struct im *m, unsigned type)
{
	im_be32(m, 100, 112);
	m->p[QCOW2_HEADER_V3] = (uint8_t)type;
	im_be64(m, 72, type ? QCOW2_INC_COMPRESSION : 0);
}

static bool put_compressed(struct model *d, uint32_t guest, const uint8_t *data)
{
	struct im *m = &d->m;
	uint64_t off = d->pack;
	size_t n = pack(type_of(m), m->p + off, m->size - off, data, m->cluster);
	uint64_t more;

	if (!n)
		return false;
	more = (off + n - 1) / 512 - off / 512;
	im_l2(m, guest, QCOW2_COMPRESSED | more << (70 - m->bits) | off);
	d->pack = off + n;
	return true;
}

static void put_cluster(struct model *d, uint32_t guest, unsigned kind)
{
	struct im *m = &d->m;
	uint8_t *at = d->disk + (uint64_t)guest * m->cluster;
	uint64_t len = THR_MIN(m->cluster, d->size - (uint64_t)guest * m->cluster);
	uint8_t *data = calloc(1, m->cluster);

	switch (kind) {
	case 0: /* not here */
		break;
	case 1:
		im_l2(m, guest, 1);
		memset(at, 0, len);
		break;
	case 2: /* zeroes, with a cluster full of something else */
		noise(d, m->p + im_host(m, d->next), m->cluster);
		im_l2(m, guest, im_host(m, d->next++) | QCOW2_COPIED | 1);
		memset(at, 0, len);
		break;
	case 3:
		noise(d, m->p + im_host(m, d->next), m->cluster);
		memcpy(at, m->p + im_host(m, d->next), len);
		im_l2(m, guest, im_host(m, d->next++) | QCOW2_COPIED);
		break;
	case 4:
		noise(d, data, m->cluster);
		if (put_compressed(d, guest, data))
			memcpy(at, data, len);
		break;
	}
	free(data);
}

static void model_new(
	struct model *d, unsigned bits, unsigned type, uint64_t backing, uint64_t seed)
{
	struct im *m = &d->m;

	memset(d, 0, sizeof(*d));
	d->seed = seed;
	/* Not a whole number of clusters, nor of sectors. */
	d->size = ((uint64_t)CLUSTERS << bits) - 700;
	im_new(m, 3, bits, 4, IM_DATA + CLUSTERS * 4, d->size);
	set_type(m, type);
	d->next = IM_DATA;
	d->pack = im_host(m, IM_DATA + CLUSTERS) + 17;
	d->disk = calloc(1, d->size);
	d->backing_size = backing;
	d->backing = calloc(1, backing + 1);
	noise(d, d->backing, backing);
	memcpy(d->disk, d->backing, THR_MIN(backing, d->size));
	for (uint32_t i = 0; (uint64_t)i * m->cluster < d->size; i++)
		put_cluster(d, i, rnd(d, 5));
}

static void model_free(struct model *d)
{
	im_free(&d->m);
	free(d->disk);
	free(d->backing);
}

static struct blk *model_open(struct model *d)
{
	struct blk *b = im_open(&d->m);
	struct blk *below;

	if (d->backing_size) {
		assert_int_equal(
			blk_mem_open(&below, d->backing, d->backing_size, 0, &thr_heap, NULL),
			0);
		fmt_set_backing(b, below);
	}
	return b;
}

/* Into several pieces, of which one is empty, with guards around. */
static void read_and_compare(struct model *d, struct blk *b, uint64_t off, size_t len)
{
	uint8_t *buf = malloc(len + 2);
	size_t cut = len / 3;
	struct thr_iov iov[4] = {
		{buf, 1}, {buf + 1, cut}, {NULL, 0}, {buf + 1 + cut, len - cut}};
	struct blk_req r = {.off = off, .len = len, .iov = iov, .niov = 4, .iov_off = 1};

	memset(buf, 0xee, len + 2);
	assert_int_equal(blk_preadv(b, &r), 0);
	assert_memory_equal(buf + 1, d->disk + off, len);
	assert_int_equal(buf[0], 0xee);
	assert_int_equal(buf[len + 1], 0xee);
	free(buf);
}

static void one_model(unsigned bits, unsigned type, uint64_t backing, uint64_t seed)
{
	struct model d;
	struct blk *b;

	model_new(&d, bits, type, backing, seed);
	b = model_open(&d);
	read_and_compare(&d, b, 0, d.size);
	for (unsigned i = 0; i < 60; i++) {
		uint64_t off = rnd(&d, (uint32_t)d.size);
		uint64_t most = rnd(&d, 2) ? 5000u : 1u << 20;

		most = THR_MIN(most, d.size - off);
		read_and_compare(&d, b, off, 1 + rnd(&d, (uint32_t)most));
	}
	fmt_close(b);
	model_free(&d);
}

static void test_model(void **state)
{
	static const unsigned bits[] = {9, 12, 16};

	(void)state;
	for (size_t i = 0; i < THR_ARRAY_SIZE(bits); i++) {
		uint64_t size = (uint64_t)CLUSTERS << bits[i];
		uint64_t backing[] = {0, 1, size / 2 + 100, size - 700, size * 2};

		for (size_t j = 0; j < THR_ARRAY_SIZE(backing); j++) {
			one_model(bits[i], CZ_DEFLATE, backing[j], i * 10 + j);
#ifdef CONFIG_CZ_ZSTD
			one_model(bits[i], CZ_ZSTD, backing[j], i * 10 + j + 100);
#endif
		}
	}
}

/* ---- how often a cluster is decompressed -------------------------------------------- */

#ifdef CONFIG_CZ_DEFLATE

static const struct cz_codec *real;
static struct cz_codec counting;
static unsigned decodes; /* atomic */

static int count_decode(void *ctx, void *dst, size_t dlen, const void *src, size_t slen)
{
	__atomic_add_fetch(&decodes, 1, __ATOMIC_RELAXED);
	return real->decode(ctx, dst, dlen, src, slen);
}

static int count_setup(void **state)
{
	(void)state;
	real = cz_codec_find(CZ_DEFLATE);
	counting = *real;
	counting.decode = count_decode;
	cz_codec_register(&counting);
	return 0;
}

static int count_teardown(void **state)
{
	(void)state;
	cz_codec_register(real);
	return 0;
}

static void all_compressed(struct model *d, unsigned bits)
{
	uint8_t *data;

	memset(d, 0, sizeof(*d));
	d->seed = 77;
	d->size = (uint64_t)CLUSTERS << bits;
	im_new(&d->m, 3, bits, 4, IM_DATA + CLUSTERS * 2, d->size);
	d->disk = calloc(1, d->size);
	d->backing = calloc(1, 1);
	d->pack = im_host(&d->m, IM_DATA) + 3;
	data = malloc(d->m.cluster);
	for (uint32_t i = 0; i < CLUSTERS; i++) {
		noise(d, data, d->m.cluster);
		memcpy(d->disk + ((uint64_t)i << bits), data, d->m.cluster);
		assert_true(put_compressed(d, i, data));
	}
	free(data);
}

static void test_small_reads(void **state)
{
	struct model d;
	struct blk *b;

	(void)state;
	all_compressed(&d, 16);
	b = model_open(&d);
	__atomic_store_n(&decodes, 0, __ATOMIC_RELAXED);
	for (uint64_t off = 0; off < d.size; off += 4096)
		read_and_compare(&d, b, off, 4096);
	assert_int_equal(__atomic_load_n(&decodes, __ATOMIC_RELAXED), CLUSTERS);
	/* The last ones are still there. */
	for (uint64_t off = d.size - (4 << 16); off + 500 <= d.size; off += 1000)
		read_and_compare(&d, b, off, 500);
	assert_int_equal(__atomic_load_n(&decodes, __ATOMIC_RELAXED), CLUSTERS);
	fmt_close(b);
	model_free(&d);
}

static void test_damaged(void **state)
{
	uint8_t buf[64];
	struct model d;
	struct blk *b;
	uint64_t entry;

	(void)state;
	all_compressed(&d, 12);
	entry = thr_be64(d.m.p + 4 * 4096 + 8);
	memset(d.m.p + (entry & 0xffffff), 0xff, 16);
	b = model_open(&d);
	assert_int_equal(blk_pread(b, 4096, buf, sizeof(buf)), -THR_EIO);
	/* It stays so, and its neighbours are well. */
	assert_int_equal(blk_pread(b, 4096 + 100, buf, sizeof(buf)), -THR_EIO);
	read_and_compare(&d, b, 0, 4096);
	read_and_compare(&d, b, 2 * 4096, 4096);
	fmt_close(b);
	/* Past the end of the file there is nothing to decompress. */
	im_l2(&d.m, 1, QCOW2_COMPRESSED | (d.m.size + 5));
	b = model_open(&d);
	assert_int_equal(blk_pread(b, 4096, buf, sizeof(buf)), -THR_EUCLEAN);
	fmt_close(b);
	model_free(&d);
}

#ifdef CONFIG_THR_FIBERS

#define FIBERS 24

struct reader {
	struct model *d;
	struct blk *b;
	unsigned i;
	bool same; /* all read a part of the same cluster */
};

static int reader_run(void *arg)
{
	struct reader *r = arg;

	for (unsigned k = 0; k < (r->same ? 1 : CLUSTERS); k++) {
		uint64_t cluster = r->same ? 5 : (k * 7 + r->i) % CLUSTERS;
		uint64_t off = cluster * r->d->m.cluster;
		uint32_t size = r->d->m.cluster - (r->same ? 1 : 0);
		uint8_t *buf = malloc(size);
		int err = blk_pread(r->b, off, buf, size);

		if (!err && memcmp(buf, r->d->disk + off, size))
			err = -THR_EIO;
		free(buf);
		if (err)
			return err;
	}
	return 0;
}

struct team {
	struct model *d;
	struct blk *b;
	bool same;
};

static int team_run(void *arg)
{
	struct team *t = arg;
	struct reader r[FIBERS];
	struct thr_group g;

	thr_group_init(&g);
	for (unsigned i = 0; i < FIBERS; i++) {
		r[i] = (struct reader){t->d, t->b, i, t->same};
		(void)thr_group_spawn(&g,
			thr_pool_exec(thr_pool_self(), i % thr_pool_count(thr_pool_self())),
			reader_run, &r[i]);
	}
	return thr_group_wait(&g);
}

/* More fibers than there are slots: all get their data, nobody waits for ever; and
 * a cluster that many want a part of at once is decompressed once. */
static void test_fibers(void **state)
{
	struct thr_pool *pool;
	struct model d;
	struct team t;

	(void)state;
	all_compressed(&d, 14);
	assert_int_equal(thr_pool_open(&pool, 3, &thr_heap), 0);
	t.d = &d;
	t.b = model_open(&d);
	t.same = false;
	assert_int_equal(thr_pool_run(pool, team_run, &t), 0);
	fmt_close(t.b);
	t.b = model_open(&d);
	t.same = true;
	__atomic_store_n(&decodes, 0, __ATOMIC_RELAXED);
	assert_int_equal(thr_pool_run(pool, team_run, &t), 0);
	assert_int_equal(__atomic_load_n(&decodes, __ATOMIC_RELAXED), 1);
	fmt_close(t.b);
	thr_pool_close(pool);
	model_free(&d);
}
#endif
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_model),
#ifdef CONFIG_CZ_DEFLATE
		cmocka_unit_test_setup_teardown(test_small_reads, count_setup, count_teardown),
		cmocka_unit_test_setup_teardown(test_damaged, count_setup, count_teardown),
#ifdef CONFIG_THR_FIBERS
		cmocka_unit_test_setup_teardown(test_fibers, count_setup, count_teardown),
#endif
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
