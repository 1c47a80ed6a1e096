/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/qcow2_create.c - new images: every geometry is sound and empty, the same
 * options give the same bytes, bad options are refused with their name, and each
 * request and each allocation may fail.
 */
#include "t/unit/qcow2_util.h"

#define MAX_OPTS 8

struct maker {
	struct blk_opt v[MAX_OPTS];
	struct blk_opts opts;
	struct fmt_create c;
};

static void maker_init(struct maker *k, uint64_t size)
{
	memset(k, 0, sizeof(*k));
	k->opts.v = k->v;
	k->c = (struct fmt_create){.name = "test",
		.format = "qcow2",
		.size = size,
		.has_size = true,
		.opts = &k->opts,
		.mem = &thr_heap};
}

static void maker_opt(struct maker *k, const char *key, const char *val)
{
	k->v[k->opts.n++] = (struct blk_opt){key, val};
}

static struct blk *mem_disk(const char *size, unsigned flags)
{
	struct blk_opt o = {"size", size};
	struct blk_opts opts = {&o, 1};
	struct blk_open open = {
		.driver = "mem", .flags = BLK_RDWR | flags, .opts = &opts, .mem = &thr_heap};
	struct blk *b;

	assert_int_equal(blk_open(&b, &open, NULL), 0);
	return b;
}

static struct blk *open_on(struct blk *file)
{
	struct fmt_open o = {.format = "qcow2", .mem = &thr_heap};
	struct blk *b;

	assert_int_equal(fmt_open_on(&b, file, &o, NULL), 0);
	return b;
}

static void assert_sound(struct blk *b)
{
	struct fmt_check c;

	memset(&c, 0, sizeof(c));
	assert_int_equal(fmt_check(b, &c, NULL), 0);
	assert_int_equal(c.corruptions | c.leaks | c.check_errors, 0);
}

static void assert_zero(struct blk *b)
{
	uint8_t *buf = malloc(1 << 20);

	for (uint64_t off = 0, n; off < blk_size(b) && off < 8 << 20; off += n) {
		n = THR_MIN(blk_size(b) - off, 1u << 20);
		memset(buf, 1, n);
		assert_int_equal(blk_pread(b, off, buf, n), 0);
		for (uint64_t i = 0; i < n; i++)
			assert_int_equal(buf[i], 0);
	}
	free(buf);
}

static void same_bytes(struct blk *a, struct blk *b)
{
	uint64_t size = blk_size(a);
	uint8_t *p = malloc(2 << 20);

	assert_int_equal(size, blk_size(b));
	for (uint64_t off = 0, n; off < size; off += n) {
		n = THR_MIN(size - off, 1u << 20);
		assert_int_equal(blk_pread(a, off, p, n), 0);
		assert_int_equal(blk_pread(b, off, p + (1 << 20), n), 0);
		assert_memory_equal(p, p + (1 << 20), n);
	}
	free(p);
}

struct geometry {
	const char *compat, *cluster, *bits, *prealloc;
	uint64_t size;
};

static void one_geometry(const struct geometry *g)
{
	struct blk *disk = mem_disk("0", 0), *again = mem_disk("0", 0);
	bool all = strcmp(g->prealloc, "off") != 0;
	struct maker k;
	struct blk_extent x;
	struct blk *b;

	maker_init(&k, g->size);
	maker_opt(&k, "compat", g->compat);
	maker_opt(&k, "cluster_size", g->cluster);
	maker_opt(&k, "refcount_bits", g->bits);
	maker_opt(&k, "preallocation", g->prealloc);
	assert_int_equal(qcow2_create(disk, &k.c, NULL), 0);
	assert_int_equal(qcow2_create(again, &k.c, NULL), 0);
	same_bytes(disk, again);
	blk_close(again);
	b = open_on(disk);
	assert_int_equal(blk_size(b), (g->size + 511) & ~511ull);
	assert_sound(b);
	assert_zero(b);
	if (blk_size(b)) {
		assert_int_equal(blk_status(b, 0, blk_size(b), &x), 0);
		/* One question puts 64 tables together. */
		assert_true(x.len == blk_size(b) || x.len == 64 * 64 * 512);
		assert_int_equal(!!(x.flags & BLK_EXT_MAPPED), all);
	}
	fmt_close(b);
}

static void test_geometries(void **state)
{
	static const char *const clusters[] = {"512", "4k", "64k", "2M"};
	static const char *const bits[] = {"1", "2", "4", "8", "16", "32", "64"};
	static const char *const preallocs[] = {"off", "metadata"};
	static const uint64_t sizes[] = {0, 1, 1000, 1 << 20, (5 << 20) + 512};

	(void)state;
	for (size_t c = 0; c < THR_ARRAY_SIZE(clusters); c++)
		for (size_t r = 0; r < THR_ARRAY_SIZE(bits); r++)
			for (size_t p = 0; p < THR_ARRAY_SIZE(preallocs); p++)
				for (size_t s = 0; s < THR_ARRAY_SIZE(sizes); s++)
					one_geometry(&(struct geometry){"1.1", clusters[c],
						bits[r], preallocs[p], sizes[s]});
	for (size_t c = 0; c < THR_ARRAY_SIZE(clusters); c++)
		for (size_t p = 0; p < THR_ARRAY_SIZE(preallocs); p++)
			one_geometry(&(struct geometry){
				"0.10", clusters[c], "16", preallocs[p], 3 << 20});
}

/* The table of reference counts need not move before the image is full. */
static void test_table_is_large_enough(void **state)
{
	struct blk *disk = mem_disk("0", 0);
	struct maker k;
	struct qcow2 *q;
	struct blk *b;

	(void)state;
	maker_init(&k, 900ull << 20);
	maker_opt(&k, "cluster_size", "512");
	assert_int_equal(qcow2_create(disk, &k.c, NULL), 0);
	b = open_on(disk);
	q = qcow2_of(b);
	/* Each entry counts 256 clusters of 512 bytes, L2 tables among them. */
	assert_true((uint64_t)q->h.reft_clusters * 64 * 256 * 512 > 914ull << 20);
	assert_true(blk_size(disk) < 1 << 20);
	fmt_close(b);
}

static void test_header(void **state)
{
	struct blk *disk = mem_disk("0", 0);
	const char *name, *format;
	struct maker k;
	struct qcow2 *q;
	struct blk *b;

	(void)state;
	maker_init(&k, 1 << 20);
	maker_opt(&k, "lazy_refcounts", "on");
	maker_opt(&k, "cluster_size", "4096");
	k.c.backing = "some/base.img";
	k.c.backing_format = "raw";
	assert_int_equal(qcow2_create(disk, &k.c, NULL), 0);
	b = open_on(disk);
	q = qcow2_of(b);
	assert_int_equal(q->h.version, 3);
	assert_int_equal(q->h.header_length, 112);
	assert_int_equal(q->h.compatible, QCOW2_COMPAT_LAZY);
	assert_int_equal(q->h.incompatible | q->h.autoclear, 0);
	assert_int_equal(fmt_qcow2_driver.backing(b, &name, &format), 0);
	assert_string_equal(name, "some/base.img");
	assert_string_equal(format, "raw");
	fmt_close(b);
}

/* The longest name in the smallest clusters, with everything else that must be. */
static void test_backing_names(void **state)
{
	static char name[1100];

	(void)state;
	for (unsigned bits = 9; bits <= 16; bits++) {
		size_t most = bits == 9 ? 512 - 112 - 16 - 8 : 1023;

		if (bits == 10)
			most = 1024 - 112 - 16 - 8;
		for (size_t len = most - 1; len <= most + 1; len++) {
			struct blk *disk = mem_disk("0", 0);
			struct blk_err err = BLK_ERR_INIT;
			struct maker k;
			char size[16];
			int ret;

			maker_init(&k, 1 << 20);
			snprintf(size, sizeof(size), "%u", 1u << bits);
			maker_opt(&k, "cluster_size", size);
			memset(name, 'n', len);
			name[len] = 0;
			k.c.backing = name;
			k.c.backing_format = "qcow2";
			ret = qcow2_create(disk, &k.c, &err);
			if (len > most) {
				assert_int_equal(err.id, BLK_E_QCOW2_BACKING_LONG);
				assert_int_equal(blk_size(disk), 0);
				blk_close(disk);
				continue;
			}
			assert_int_equal(ret, 0);
			disk = open_on(disk);
			assert_string_equal(qcow2_of(disk)->backing, name);
			assert_sound(disk);
			fmt_close(disk);
		}
	}
}

static void test_bad_options(void **state)
{
	static const struct {
		const char *key, *val, *key2, *val2;
		unsigned id;
	} rows[] = {
		{"compat", "0.11", NULL, NULL, BLK_E_BAD_VALUE},
		{"compat", "", NULL, NULL, BLK_E_BAD_VALUE},
		{"cluster_size", "256", NULL, NULL, BLK_E_QCOW2_CLUSTER_SIZE},
		{"cluster_size", "4M", NULL, NULL, BLK_E_QCOW2_CLUSTER_SIZE},
		{"cluster_size", "65535", NULL, NULL, BLK_E_QCOW2_CLUSTER_SIZE},
		{"cluster_size", "0", NULL, NULL, BLK_E_QCOW2_CLUSTER_SIZE},
		{"refcount_bits", "0", NULL, NULL, BLK_E_QCOW2_REFCOUNT_BITS},
		{"refcount_bits", "3", NULL, NULL, BLK_E_QCOW2_REFCOUNT_BITS},
		{"refcount_bits", "128", NULL, NULL, BLK_E_QCOW2_REFCOUNT_BITS},
		{"refcount_bits", "8", "compat", "0.10", BLK_E_QCOW2_NEEDS_V3},
		{"lazy_refcounts", "on", "compat", "v2", BLK_E_QCOW2_NEEDS_V3},
		{"compression_type", "zstd", "compat", "v2", BLK_E_QCOW2_NEEDS_V3},
		{"compression_type", "lzma", NULL, NULL, BLK_E_BAD_VALUE},
		{"preallocation", "some", NULL, NULL, BLK_E_BAD_VALUE},
		{"preallocation", "full", "backing", "x", BLK_E_QCOW2_PREALLOC_BACKING},
#ifdef CONFIG_FMT_LUKS
		{"encryption", "on", NULL, NULL, BLK_E_QCOW2_AES_NEW},
		{"encrypt.format", "luks", NULL, NULL, BLK_E_CIPHER_SECRET},
#else
		{"encryption", "on", NULL, NULL, BLK_E_NOT_BUILT},
		{"encrypt.format", "luks", NULL, NULL, BLK_E_NOT_BUILT},
#endif
		{"extended_l2", "on", "cluster_size", "8k", BLK_E_QCOW2_EXTL2_CLUSTER},
		{"extended_l2", "on", "compat", "v2", BLK_E_QCOW2_NEEDS_V3},
		{"extended_l2", "on", "cluster_size", "16k", BLK_E_NONE},
		{"data_file", "x", NULL, NULL, BLK_E_QCOW2_DATA_NONE},
		{"data_file", "x", "compat", "v2", BLK_E_QCOW2_NEEDS_V3},
		{"data_file_raw", "on", NULL, NULL, BLK_E_QCOW2_RAW_NO_DATA},
		{"extended_l2", "off", "encryption", "off", BLK_E_NONE},
	};

	(void)state;
	for (size_t i = 0; i < THR_ARRAY_SIZE(rows); i++) {
		struct blk *disk = mem_disk("0", 0);
		struct blk_err err = BLK_ERR_INIT;
		struct maker k;

		maker_init(&k, 1 << 20);
		maker_opt(&k, rows[i].key, rows[i].val);
		if (rows[i].key2 && !strcmp(rows[i].key2, "backing"))
			k.c.backing = rows[i].val2;
		else if (rows[i].key2)
			maker_opt(&k, rows[i].key2, rows[i].val2);
		(void)qcow2_create(disk, &k.c, &err);
		if (err.id != rows[i].id)
			fprintf(stderr, "# %s=%s\n", rows[i].key, rows[i].val);
		assert_int_equal(err.id, rows[i].id);
		if (err.id)
			assert_int_equal(blk_size(disk), 0);
		blk_close(disk);
	}
}

static void test_sizes(void **state)
{
	static const struct {
		uint64_t size;
		const char *cluster, *prealloc;
		bool ok;
	} rows[] = {
		/* An L1 table of 32 MiB. */
		{128ull << 30, "512", "off", true},
		{(128ull << 30) + 1, "512", "off", false},
		{2ull << 50, "64k", "off", true},
		{(2ull << 50) + 1, "64k", "off", false},
		{1ull << 60, "2M", "off", true},
		{2ull << 60, "2M", "off", true},
		{INT64_MAX, "2M", "off", false},
		{UINT64_MAX, "2M", "off", false},
		/* A reference count table of 8 MiB, and host offsets of 55 bits. */
		{128ull << 30, "512", "metadata", false},
		{1ull << 55, "2M", "metadata", false},
	};

	(void)state;
	for (size_t i = 0; i < THR_ARRAY_SIZE(rows); i++) {
		struct blk *disk = mem_disk("0", 0);
		struct blk_err err = BLK_ERR_INIT;
		struct maker k;
		int ret;

		maker_init(&k, rows[i].size);
		maker_opt(&k, "cluster_size", rows[i].cluster);
		maker_opt(&k, "preallocation", rows[i].prealloc);
		ret = qcow2_create(disk, &k.c, &err);
		if (!ret != rows[i].ok)
			fprintf(stderr, "# row %zu: %d\n", i, ret);
		assert_int_equal(!ret, rows[i].ok);
		if (ret) {
			assert_int_equal(err.id, BLK_E_QCOW2_TOO_LARGE);
			assert_int_equal(blk_size(disk), 0);
			blk_close(disk);
		} else {
			fmt_close(open_on(disk));
		}
	}
}

/* A device of fixed size, full of something else. */
static void test_fixed_device(void **state)
{
	struct blk *disk = mem_disk("2M", BLK_FIXED_SIZE);
	struct blk_err err = BLK_ERR_INIT;
	uint8_t *junk = malloc(2 << 20);
	struct maker k;

	(void)state;
	memset(junk, 0xa5, 2 << 20);
	assert_int_equal(blk_pwrite(disk, 0, junk, 2 << 20), 0);
	free(junk);
	maker_init(&k, 2 << 20);
	maker_opt(&k, "preallocation", "metadata");
	assert_int_equal(qcow2_create(disk, &k.c, &err), -THR_ENOSPC);
	assert_int_equal(err.id, BLK_E_QCOW2_NO_ROOM);
	k.c.size = 1 << 20;
	assert_int_equal(qcow2_create(disk, &k.c, NULL), 0);
	disk = open_on(disk);
	assert_sound(disk);
	assert_zero(disk);
	fmt_close(disk);
}

#ifdef CONFIG_BLK_FAULT
static void test_faults(void **state)
{
	(void)state;
	for (uint64_t nth = 1;; nth++) {
		struct blk_fault rule = {.nth = nth, .err = -THR_ENOSPC};
		struct blk_err err = BLK_ERR_INIT;
		struct maker k;
		struct blk *fault;
		int ret;

		maker_init(&k, 8 << 20);
		maker_opt(&k, "cluster_size", "512");
		maker_opt(&k, "preallocation", "metadata");
		assert_int_equal(blk_fault_open(&fault, mem_disk("0", 0), &thr_heap, NULL), 0);
		assert_int_equal(blk_fault_add(fault, &rule), 0);
		ret = qcow2_create(fault, &k.c, &err);
		if (!blk_fault_fired(fault)) {
			assert_int_equal(ret, 0);
			blk_close(fault);
			assert_true(nth > 5);
			break;
		}
		assert_int_equal(ret, -THR_ENOSPC);
		assert_int_equal(err.code, -THR_ENOSPC);
		blk_close(fault);
	}
}
#endif

struct counter {
	unsigned calls, fail_at, live;
};

static void *counter_get(void *ctx, size_t size, size_t align)
{
	struct counter *c = ctx;

	if (++c->calls == c->fail_at)
		return NULL;
	c->live++;
	return thr_get(&thr_heap, size, align);
}

static void counter_put(void *ctx, void *p, size_t size)
{
	struct counter *c = ctx;

	c->live--;
	thr_put(&thr_heap, p, size);
}

static void test_memory(void **state)
{
	struct counter n = {0};
	struct thr_alloc mem = {counter_get, counter_put, &n};

	(void)state;
	for (unsigned at = 1;; at++) {
		struct blk *disk = mem_disk("0", 0);
		struct maker k;
		int ret;

		maker_init(&k, 1 << 20);
		k.c.mem = &mem;
		n = (struct counter){.fail_at = at};
		ret = qcow2_create(disk, &k.c, NULL);
		blk_close(disk);
		assert_int_equal(n.live, 0);
		if (!ret)
			break;
		assert_int_equal(ret, -THR_ENOMEM);
		assert_true(at < 10);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_geometries),
		cmocka_unit_test(test_table_is_large_enough),
		cmocka_unit_test(test_header),
		cmocka_unit_test(test_backing_names),
		cmocka_unit_test(test_bad_options),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_fixed_device),
#ifdef CONFIG_BLK_FAULT
		cmocka_unit_test(test_faults),
#endif
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
