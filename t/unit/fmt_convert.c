/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Converting: the content arrives, the same bytes for any number of fibers and threads,
 * nothing is read that need not be, memory is bounded, and errors end it.
 */
#include "t/unit/fmt_util.h"

#define SIZE   (3u << 20)
#define BLOCKS (SIZE / BLOCK)

static uint8_t want[3 * SIZE], got[3 * SIZE];

struct job {
	struct fmt_convert c;
	struct blk_err err;
};

static int convert(void *arg)
{
	struct job *j = arg;

	return fmt_convert(&j->c, &j->err);
}

static int run(struct job *j, unsigned threads)
{
	j->err = (struct blk_err)BLK_ERR_INIT;
	return in_pool(threads, convert, j);
}

/* A new image of a format over memory; with @fault there is one in between. */
static struct blk *target_over(
	const char *format, const char *cluster, uint64_t size, struct blk **fault)
{
	struct blk_opt v[] = {{"cluster_size", cluster}};
	struct blk_opts opts = {v, cluster ? 1 : 0};
	struct fmt_create c = {.format = format,
		.size = size,
		.has_size = true,
		.opts = &opts,
		.mem = &thr_heap};
	struct blk *file = disk_new("0", &thr_heap);
	struct blk *image;

	assert_int_equal(fmt_driver_find(format)->create(file, &c, NULL), 0);
	if (fault) {
		assert_int_equal(blk_fault_open(fault, file, &thr_heap, NULL), 0);
		file = *fault;
	}
	assert_int_equal(open_as(&image, file, format, BLK_RDWR, NULL), 0);
	return image;
}

static struct blk *target(const char *format, const char *cluster, uint64_t size)
{
	return target_over(format, cluster, size, NULL);
}

static void assert_reads(struct blk *b, const uint8_t *model, size_t len)
{
	assert_int_equal(blk_pread(b, 0, got, len), 0);
	for (size_t i = 0; i < len; i++)
		if (got[i] != model[i])
			fail_msg("byte %zu is 0x%02x, not 0x%02x", i, got[i], model[i]);
}

static uint64_t checksum(struct blk *b)
{
	static uint8_t buf[65536];
	uint64_t h = 14695981039346656037u;

	for (uint64_t off = 0; off < blk_size(b); off += sizeof(buf)) {
		size_t n = THR_MIN(sizeof(buf), blk_size(b) - off);

		assert_int_equal(blk_pread(b, off, buf, n), 0);
		for (size_t i = 0; i < n; i++)
			h = (h ^ buf[i]) * 1099511628211u;
	}
	return h ^ blk_size(b);
}

static struct layer *scattered(uint32_t *seed, unsigned longest)
{
	struct layer *l = layer_new(SIZE, NULL);

	layer_scatter(l, seed, longest);
	return l;
}

static const char *const formats[][2] = {
	{"raw", NULL},
#ifdef CONFIG_FMT_QCOW2_CREATE
	{"qcow2", "512"},
	{"qcow2", "4k"},
	{"qcow2", "64k"},
	{"qcow2", "2M"},
#endif
};

/* ---- content and determinism ---------------------------------------------------------- */

static const struct {
	unsigned threads, fibers;
	bool unordered;
} ways[] = {{0, 1, false}, {1, 1, false}, {1, 16, false}, {2, 3, true}, {3, 16, false},
	{4, 16, true}};

static void same_bytes_in_every_way(void **state)
{
	static const uint32_t sparse[] = {4096, 0, 512, 24576};
	static const unsigned longest[] = {3, 200, 4000};
	uint32_t seed = 5;

	(void)state;
	for (unsigned i = 0; i < THR_ARRAY_SIZE(formats) * 2; i++) {
		const char *const *f = formats[i / 2];
		struct layer *l = scattered(&seed, longest[i % 3]);
		struct blk *src = &l->b;
		uint64_t first = 0;

		layer_expect(l, want);
		for (unsigned w = 0; w < THR_ARRAY_SIZE(ways); w++) {
			struct job j = {.c = {.src = &src, .nsrc = 1, .dst_is_zero = true}};
			struct blk *dst = target(f[0], f[1], SIZE);

			j.c.dst = dst;
			j.c.sparse = sparse[i % 4];
			j.c.fibers = ways[w].fibers;
			j.c.unordered = ways[w].unordered;
			assert_int_equal(run(&j, ways[w].threads), 0);
			assert_reads(dst, want, SIZE);
			assert_int_equal(blk_flush(dst), 0);
			if (!w)
				first = checksum(dst->file);
			assert_int_equal(checksum(dst->file), first);
			assert_int_equal(fmt_close(dst), 0);
		}
		layers_close(l);
	}
}

static void known_zeroes_are_not_read(void **state)
{
	uint32_t seed = 9;

	(void)state;
	for (unsigned longest = 100; longest <= 6400; longest *= 4) {
		struct layer *l = scattered(&seed, longest);
		struct blk *src = &l->b;
		struct blk *dst = target("raw", NULL, SIZE);
		struct job j = {.c = {.src = &src,
					.nsrc = 1,
					.dst = dst,
					.dst_is_zero = true,
					.sparse = 4096,
					.fibers = 4}};

		assert_int_equal(run(&j, 2), 0);
		assert_int_equal(l->idle_reads, 0);
		layer_expect(l, want);
		assert_reads(dst, want, SIZE);
		assert_int_equal(fmt_close(dst), 0);
		layers_close(l);
	}
}

/* What was there is gone: zeroes are written where they are not there already. */
static void old_content_is_replaced(void **state)
{
	uint32_t seed = 77;

	(void)state;
	for (unsigned i = 0; i < THR_ARRAY_SIZE(formats); i++) {
		struct layer *l = scattered(&seed, i % 2 ? 30 : 3000);
		struct blk *src = &l->b;
		struct blk *dst = target(formats[i][0], formats[i][1], SIZE + (1 << 20));
		struct job j = {
			.c = {.src = &src, .nsrc = 1, .dst = dst, .sparse = 4096, .fibers = 8}};

		memset(want, 0xee, SIZE + (1 << 20));
		assert_int_equal(blk_pwrite(dst, 0, want, SIZE + (1 << 20)), 0);
		layer_expect(l, want);
		assert_int_equal(run(&j, 2), 0);
		assert_reads(dst, want, SIZE + (1 << 20));
		assert_int_equal(fmt_close(dst), 0);
		layers_close(l);
	}
}

static void sources_follow_each_other(void **state)
{
	static const uint64_t sizes[] = {SIZE, 0, 1536, SIZE - 512, 512};
	struct blk *src[THR_ARRAY_SIZE(sizes)];
	struct blk *dst = target(formats[THR_ARRAY_SIZE(formats) - 1][0], NULL, 3 * SIZE);
	struct job j = {.c = {.src = src,
				.nsrc = THR_ARRAY_SIZE(sizes),
				.dst = dst,
				.dst_is_zero = true,
				.sparse = 4096,
				.fibers = 8}};
	uint32_t seed = 3;
	size_t at = 0;

	(void)state;
	memset(want, 0, sizeof(want));
	for (unsigned i = 0; i < THR_ARRAY_SIZE(sizes); i++) {
		struct layer *l = layer_new(sizes[i], NULL);

		layer_scatter(l, &seed, 20);
		layer_expect(l, want + at);
		at += sizes[i];
		src[i] = &l->b;
	}
	assert_int_equal(run(&j, 2), 0);
	assert_reads(dst, want, sizeof(want));
	assert_int_equal(fmt_close(dst), 0);
	for (unsigned i = 0; i < THR_ARRAY_SIZE(sizes); i++)
		layers_close(layer_of(src[i]));
}

/* Over a backing file, what the source's own base has is left alone, zeroes are not. */
static void a_base_is_left_out(void **state)
{
	uint32_t seed = 21;

	(void)state;
	for (unsigned round = 0; round < 4; round++) {
		struct layer *base = scattered(&seed, 50);
		struct layer *mid = layer_new(SIZE / 2, base);
		struct layer *top = layer_new(SIZE, mid);
		struct blk *src = &top->b;
		struct blk *dst = target("raw", NULL, SIZE);
		struct job j = {.c = {.src = &src,
					.nsrc = 1,
					.dst = dst,
					.base = &base->b,
					.sparse = 4096,
					.fibers = 8}};

		layer_scatter(mid, &seed, round ? 20 : 2);
		layer_scatter(top, &seed, 100);
		/* The target reads as the base to begin with. */
		layer_expect(base, want);
		assert_int_equal(blk_pwrite(dst, 0, want, SIZE), 0);
		base->fail_status = 0; /* nobody asks */
		assert_int_equal(run(&j, 2), 0);
		layer_expect(top, want);
		assert_reads(dst, want, SIZE);
		assert_int_equal(fmt_close(dst), 0);
		layers_close(top);
	}
}

static void nothing_is_nothing(void **state)
{
	struct layer *l = layer_new(0, NULL);
	struct blk *src = &l->b;
	struct blk *dst = target("raw", NULL, 0);
	struct job j = {.c = {.src = &src, .nsrc = 1, .dst = dst, .sparse = 4096}};

	(void)state;
	assert_int_equal(run(&j, 0), 0);
	assert_int_equal(run(&j, 2), 0);
	j.c.nsrc = 0;
	assert_int_equal(run(&j, 2), 0);
	assert_int_equal(fmt_close(dst), 0);
	layers_close(l);
}

static void a_target_that_is_too_short_is_refused(void **state)
{
	struct layer *l = layer_new(SIZE, NULL);
	struct blk *src = &l->b;
	struct blk *dst = target("raw", NULL, SIZE - 512);
	struct job j = {.c = {.src = &src, .nsrc = 1, .dst = dst, .sparse = 4096}};

	(void)state;
	assert_int_equal(run(&j, 0), -THR_EINVAL);
	assert_int_equal(j.err.id, BLK_E_TARGET_SMALL);
	assert_int_equal(fmt_close(dst), 0);
	layers_close(l);
}

/* A disk without end and without data takes no time, and no chunks. */
static int empty_status(struct blk *b, uint64_t off, uint64_t len, struct blk_extent *e)
{
	(void)b;
	(void)off;
	e->len = len;
	e->flags = 0;
	e->map = 0;
	return 0;
}

static void vast_emptiness_is_passed_over(void **state)
{
	static const struct blk_ops ops = {.name = "empty",
		.preadv = layer_preadv,
		.status = empty_status,
		.close = layer_close};
	struct layer *l = layer_new(BLOCK, NULL);
	struct blk *src = &l->b;
	struct seen s = {0};
	struct job j = {.c = {.src = &src,
				.nsrc = 1,
				.dst_is_zero = true,
				.sparse = 4096,
				.fibers = 16,
				.progress = {see, &s}}};

	(void)state;
	l->b.ops = &ops;
	blk_set_size(&l->b, 1ull << 62);
	j.c.dst = target("raw", NULL, 1ull << 62);
	assert_int_equal(run(&j, 2), 0);
	assert_true(s.calls <= 16);
	assert_int_equal(s.last, 1ull << 62);
	assert_int_equal(l->idle_reads, 0);
	assert_int_equal(fmt_close(j.c.dst), 0);
	layers_close(l);
}

/* ---- memory --------------------------------------------------------------------------------
 */

struct meter {
	uint64_t now, most; /* under the lock */
	struct thr_mutex lock;
	struct thr_alloc mem;
};

static void *meter_get(void *ctx, size_t size, size_t align)
{
	struct meter *m = ctx;

	thr_mutex_lock(&m->lock);
	m->now += size;
	m->most = THR_MAX(m->most, m->now);
	thr_mutex_unlock(&m->lock);
	return thr_get(&thr_heap, size, align);
}

static void meter_put(void *ctx, void *p, size_t size)
{
	struct meter *m = ctx;

	thr_mutex_lock(&m->lock);
	m->now -= size;
	thr_mutex_unlock(&m->lock);
	thr_put(&thr_heap, p, size);
}

static void memory_is_bounded(void **state)
{
	static const uint64_t limits[] = {1, 1 << 20, 3 << 20, 8 << 20};
	uint32_t seed = 1;
	struct layer *l = scattered(&seed, 50);
	struct blk *src = &l->b;

	(void)state;
	layer_expect(l, want);
	for (unsigned i = 0; i < THR_ARRAY_SIZE(limits); i++) {
		struct meter m = {.now = 0};
		struct blk *dst = target("raw", NULL, SIZE);
		struct job j = {.c = {.src = &src,
					.nsrc = 1,
					.dst = dst,
					.dst_is_zero = true,
					.sparse = 4096,
					.fibers = 16,
					.memory = limits[i]}};

		thr_mutex_init(&m.lock);
		m.mem = (struct thr_alloc){meter_get, meter_put, &m};
		dst->mem = &m.mem;
		assert_int_equal(run(&j, 3), 0);
		assert_int_equal(m.now, 0);
		/* Buffers of 1 MiB, and a tenth of that each for everything else. */
		assert_true(m.most <= THR_MAX(limits[i], 1u << 20) * 11 / 10 + 200000);
		dst->mem = &thr_heap;
		assert_reads(dst, want, SIZE);
		assert_int_equal(fmt_close(dst), 0);
	}
	layers_close(l);
}

/* The N-th allocation fails, N = 1, 2, ...: an error or, with less, a good result. */
static void any_allocation_may_fail(void **state)
{
	uint32_t seed = 1;
	struct layer *l = scattered(&seed, 50);
	struct blk *src = &l->b;
	unsigned n = 0, errors = 0;
	struct purse p;

	(void)state;
	layer_expect(l, want);
	do {
		struct blk *dst = target("raw", NULL, SIZE);
		struct job j = {.c = {.src = &src,
					.nsrc = 1,
					.dst = dst,
					.dst_is_zero = true,
					.sparse = 4096,
					.fibers = 5}};
		int ret;

		purse_init(&p);
		p.fail_at = ++n;
		dst->mem = &p.mem;
		ret = run(&j, 2);
		assert_int_equal(p.live, 0);
		dst->mem = &thr_heap;
		if (ret) {
			assert_int_equal(ret, -THR_ENOMEM);
			assert_int_equal(j.err.code, -THR_ENOMEM);
			errors++;
		} else {
			assert_reads(dst, want, SIZE);
		}
		assert_int_equal(fmt_close(dst), 0);
	} while (p.calls >= p.fail_at);
	assert_true(errors >= 2 && n > errors);
	layers_close(l);
}

/* ---- errors --------------------------------------------------------------------------------
 */

/* A raw target whose file fails by @rule. */
static struct blk *failing(const struct blk_fault *rule, unsigned n, struct blk **fault)
{
	struct blk *disk = disk_new("8M", &thr_heap);
	struct blk *image;

	assert_int_equal(blk_fault_open(fault, disk, &thr_heap, NULL), 0);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(blk_fault_add(*fault, &rule[i]), 0);
	assert_int_equal(open_as(&image, *fault, "raw", BLK_RDWR, NULL), 0);
	return image;
}

static void first_write_error_in_the_image_is_told(void **state)
{
	static const struct blk_fault rules[] = {
		{.ops = 1u << BLK_OP_WRITE,
			.off = 5 << 19,
			.len = 1,
			.err = -THR_EIO,
			.always = true},
		{.ops = 1u << BLK_OP_WRITE,
			.off = 3 << 19,
			.len = 1,
			.err = -THR_ENOSPC,
			.always = true},
	};
	struct layer *l = layer_new(SIZE, NULL);
	struct blk *src = &l->b;

	(void)state;
	layer_set(l, 0, BLOCKS, DATA, 1);
	for (unsigned w = 0; w < THR_ARRAY_SIZE(ways); w++) {
		struct blk *fault;
		struct blk *dst = failing(rules, 2, &fault);
		struct job j = {.c = {.src = &src,
					.nsrc = 1,
					.dst = dst,
					.dst_is_zero = true,
					.sparse = 4096,
					.fibers = ways[w].fibers}};

		assert_int_equal(run(&j, ways[w].threads), -THR_ENOSPC);
		assert_int_equal(j.err.id, BLK_E_WRITE_AT);
		assert_int_equal(j.err.off, 1 << 20);
		/* What lies before it has been done all the same. */
		assert_int_equal(blk_pread(dst, 0, got, 1 << 20), 0);
		assert_filled(got, 1, 1 << 20);
		assert_int_equal(fmt_close(dst), 0);
	}
	layers_close(l);
}

static void first_read_error_in_the_image_is_told(void **state)
{
	static const struct blk_fault rules[] = {
		{.ops = 1u << BLK_OP_READ,
			.off = 5 << 19,
			.len = 1,
			.err = -THR_EIO,
			.always = true},
		{.ops = 1u << BLK_OP_READ,
			.off = (1 << 20) + 700,
			.len = 1,
			.err = -THR_ENXIO,
			.always = true},
	};
	struct blk *dst = target(formats[THR_ARRAY_SIZE(formats) - 1][0], NULL, 8 << 20);

	(void)state;
	memset(want, 1, SIZE);
	for (unsigned w = 0; w < THR_ARRAY_SIZE(ways); w++) {
		struct blk *fault;
		struct blk *src = failing(rules, 2, &fault);
		struct job j = {.c = {.src = &src,
					.nsrc = 1,
					.dst = dst,
					.dst_is_zero = false,
					.sparse = 4096,
					.fibers = ways[w].fibers}};

		assert_int_equal(blk_pwrite(src, 0, want, SIZE), 0);
		assert_int_equal(run(&j, ways[w].threads), -THR_ENXIO);
		assert_int_equal(j.err.id, BLK_E_READ_AT);
		assert_int_equal(j.err.off, 1 << 20);
		assert_int_equal(fmt_close(src), 0);
	}
	assert_int_equal(fmt_close(dst), 0);
}

static void an_error_of_the_map_is_told(void **state)
{
	struct layer *l = layer_new(SIZE, NULL);
	struct blk *src = &l->b;

	(void)state;
	layer_set(l, 0, BLOCKS, DATA, 1);
	l->fail_status = 5000;
	for (unsigned w = 0; w < THR_ARRAY_SIZE(ways); w++) {
		struct blk *dst = target("raw", NULL, SIZE);
		struct job j = {.c = {.src = &src,
					.nsrc = 1,
					.dst = dst,
					.dst_is_zero = true,
					.sparse = 4096,
					.fibers = ways[w].fibers}};

		assert_int_equal(run(&j, ways[w].threads), -THR_EUCLEAN);
		assert_int_equal(j.err.id, BLK_E_MAP_AT);
		assert_int_equal(j.err.off, 5000 * BLOCK);
		assert_int_equal(fmt_close(dst), 0);
	}
	layers_close(l);
}

/* A write that fails anywhere leaves nobody waiting, whatever the format. */
static void every_write_may_fail(void **state)
{
	uint32_t seed = 8;
	struct layer *l = scattered(&seed, 60);
	struct blk *src = &l->b;

	(void)state;
	for (unsigned f = 0; f < THR_ARRAY_SIZE(formats); f++) {
		for (unsigned n = 1; n < 40; n += 1 + n / 4) {
			struct blk_fault rule = {.ops = 1u << BLK_OP_WRITE | 1u << BLK_OP_ZERO,
				.nth = n,
				.err = -THR_ENOSPC,
				.always = true};
			struct blk *fault;
			struct blk *dst =
				target_over(formats[f][0], formats[f][1], SIZE, &fault);
			struct job j = {.c = {.src = &src,
						.nsrc = 1,
						.dst = dst,
						.dst_is_zero = true,
						.sparse = 4096,
						.fibers = 16}};
			int ret;

			assert_int_equal(blk_fault_add(fault, &rule), 0);
			ret = run(&j, 2);
			if (blk_fault_fired(fault) && f == 0)
				assert_int_equal(ret, -THR_ENOSPC);
			if (ret)
				assert_int_equal(j.err.code, ret);
			(void)fmt_close(dst);
		}
	}
	layers_close(l);
}

/* ---- progress
 * -------------------------------------------------------------------------------- */

static void progress_goes_up_to_the_end(void **state)
{
	uint32_t seed = 6;
	struct layer *l = scattered(&seed, 600);
	struct blk *src = &l->b;

	(void)state;
	for (unsigned w = 0; w < THR_ARRAY_SIZE(ways); w++) {
		struct blk *dst = target("raw", NULL, SIZE);
		struct seen s = {0};
		struct job j = {.c = {.src = &src,
					.nsrc = 1,
					.dst = dst,
					.dst_is_zero = w % 2,
					.sparse = 4096,
					.fibers = ways[w].fibers,
					.progress = {see, &s}}};

		assert_int_equal(run(&j, ways[w].threads), 0);
		assert_int_equal(s.last, SIZE);
		assert_int_equal(s.total, SIZE);
		assert_true(s.calls > 1);
		assert_int_equal(fmt_close(dst), 0);
	}
	layers_close(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_bytes_in_every_way),
		cmocka_unit_test(known_zeroes_are_not_read),
		cmocka_unit_test(old_content_is_replaced),
		cmocka_unit_test(sources_follow_each_other),
		cmocka_unit_test(a_base_is_left_out),
		cmocka_unit_test(nothing_is_nothing),
		cmocka_unit_test(a_target_that_is_too_short_is_refused),
		cmocka_unit_test(vast_emptiness_is_passed_over),
		cmocka_unit_test(memory_is_bounded),
		cmocka_unit_test(any_allocation_may_fail),
		cmocka_unit_test(first_write_error_in_the_image_is_told),
		cmocka_unit_test(first_read_error_in_the_image_is_told),
		cmocka_unit_test(an_error_of_the_map_is_told),
		cmocka_unit_test(every_write_may_fail),
		cmocka_unit_test(progress_goes_up_to_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
