/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The model test: random operations on every row of rows.c, each compared with a
 * model in memory. Images lie in memory, over devices with and without block sizes,
 * with large and very small caches.
 *
 *   model                   all rows, IMAGES images each; MODEL_OPS operations
 *                           together (200000; fewer under valgrind and sanitizers),
 *                           seeds from MODEL_SEED (1) on
 *   model ROW SEED OPS      one image: the names of the tests are these arguments
 *
 * What fails says at which operation; MODEL_TRACE=1 prints each.
 */
#include <stdlib.h>

#include "cz/cz.h"
#include "t/conf/ram.h"

#define OPS    200000u
#define IMAGES 4u

struct model {
	const struct conf_row *row;
	uint64_t seed;
	unsigned ops, done;
	bool over;
	uint64_t last; /* where the last operation ended */
	struct conf c;
	char name[96];
};

static bool trace;

static uint32_t roll(struct model *m, uint32_t below)
{
	return conf_random(&m->c, below);
}

static void tell(struct model *m, const char *what, uint64_t off, uint64_t len)
{
	if (trace)
		fprintf(stderr, "# %u: %s %llu + %llu\n", m->done, what,
			(unsigned long long)off, (unsigned long long)len);
}

/* Where and how much: bytes, sectors or clusters; often next to or across where the
 * last one ended; seldom all the rest. */
static void pick(struct model *m, uint64_t *off, uint64_t *len)
{
	static const uint32_t max[] = {700, 5000, 40000, 200000};
	uint64_t size = m->c.size, cluster = m->c.b->zero_align;
	uint64_t grain = roll(m, 4) ? (roll(m, 3) ? 512 : 1) : THR_MAX(cluster, 1);

	*off = roll(m, (uint32_t)size);
	if (!roll(m, 3)) {
		uint64_t back = roll(m, 2) * roll(m, 1000);

		*off = m->last - THR_MIN(m->last, back);
	}
	*off = THR_MIN(*off, size - 1) / grain * grain;
	*len = roll(m, max[roll(m, 4)]) + 1;
	*len = (*len + grain - 1) / grain * grain;
	if (!roll(m, 100) || *len > size - *off)
		*len = size - *off;
	m->last = *off + *len;
}

/* ---- operations ------------------------------------------------------------------- */

/* Bytes that no other write has. */
static void scribble(struct model *m, uint8_t *p, uint64_t len)
{
	uint64_t x = m->seed << 40 ^ (uint64_t)(m->done + 1) << 1 ^ 1, i;

	for (i = 0; i < len; i++) {
		if (!(i & 7)) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
		}
		p[i] = (uint8_t)(x >> (i & 7) * 8);
	}
}

/* Cuts a buffer in three, somewhere. */
static void cut(struct model *m, struct thr_iov v[3], uint8_t *p, uint64_t len)
{
	uint64_t a = roll(m, (uint32_t)len + 1), b = roll(m, (uint32_t)(len - a) + 1);

	v[0] = (struct thr_iov){p, (size_t)a};
	v[1] = (struct thr_iov){p + a, (size_t)b};
	v[2] = (struct thr_iov){p + a + b, (size_t)(len - a - b)};
}

static void do_write(struct model *m)
{
	struct thr_iov v[3];
	struct blk_req r = {.iov = v, .niov = 3};

	pick(m, &r.off, &r.len);
	tell(m, "write", r.off, r.len);
	scribble(m, m->c.model + r.off, r.len);
	cut(m, v, m->c.model + r.off, r.len);
	r.flags = roll(m, 30) ? 0 : BLK_FUA;
	assert_int_equal(blk_pwritev(m->c.b, &r), 0);
}

/* Whole clusters, some of whose bytes repeat. */
static void do_pack(struct model *m)
{
	uint32_t unit = conf_pack_unit(&m->c);
	struct thr_iov v[3];
	struct blk_req r = {.iov = v, .niov = 3, .flags = BLK_COMPRESS};
	uint64_t i;

	if (!unit)
		return;
	pick(m, &r.off, &r.len);
	r.len = THR_MIN(
		thr_align_up(r.off % unit + r.len, unit), m->c.size - r.off / unit * unit);
	r.off = r.off / unit * unit;
	tell(m, "write compressed", r.off, r.len);
	scribble(m, m->c.model + r.off, r.len);
	for (i = 0; m->done % 5 && i < r.len; i++)
		if (i / 32 % 5 < m->done % 5)
			m->c.model[r.off + i] = (uint8_t)m->done;
	cut(m, v, m->c.model + r.off, r.len);
	assert_int_equal(blk_pwritev(m->c.b, &r), 0);
}

static void do_read(struct model *m)
{
	struct thr_iov v[3];
	struct blk_req r = {.iov = v, .niov = 3};
	uint64_t i;

	pick(m, &r.off, &r.len);
	tell(m, "read", r.off, r.len);
	cut(m, v, m->c.buf, r.len);
	assert_int_equal(blk_preadv(m->c.b, &r), 0);
	if (!memcmp(m->c.buf, m->c.model + r.off, r.len))
		return;
	for (i = 0; m->c.buf[i] == m->c.model[r.off + i]; i++)
		;
	fail_msg("byte %llu is %02x, not %02x", (unsigned long long)(r.off + i), m->c.buf[i],
		m->c.model[r.off + i]);
}

static void do_zero(struct model *m)
{
	uint64_t off, len;

	pick(m, &off, &len);
	tell(m, "zero", off, len);
	conf_zero(&m->c, off, len, 0);
}

static void do_unmap(struct model *m)
{
	uint64_t off, len;

	pick(m, &off, &len);
	tell(m, "zero, unmap", off, len);
	conf_zero(&m->c, off, len, BLK_UNMAP);
}

static void do_discard(struct model *m)
{
	uint64_t off, len;

	pick(m, &off, &len);
	tell(m, "discard", off, len);
	conf_discard(&m->c, off, len);
}

static void do_flush(struct model *m)
{
	tell(m, "flush", 0, 0);
	assert_int_equal(blk_flush(m->c.b), 0);
}

/* A little more or less, or anything. Raw images have no metadata to preallocate. */
static void do_resize(struct model *m)
{
	uint64_t old = m->c.size, size = 1 + roll(m, (uint32_t)(m->c.room / 512));
	uint64_t less = roll(m, 200);
	enum blk_prealloc p = BLK_PREALLOC_OFF;

	if (roll(m, 2))
		size = old / 512 + 100 - THR_MIN(old / 512 + 99, less);
	size = THR_MIN(size * 512, m->c.room);
	if (size > old && !roll(m, 3))
		p = (enum blk_prealloc)roll(m, 4);
	if (p == BLK_PREALLOC_METADATA && !strcmp(m->row->format, "raw"))
		p = BLK_PREALLOC_FULL;
	tell(m, "resize", size, p);
	conf_resize(&m->c, size, true, p);
}

static void do_reopen(struct model *m)
{
	static const uint32_t slices[] = {0, 0, 8, 40};
	static const uint32_t align[] = {0, 0, 512, 4096};

	tell(m, "reopen", 0, 0);
	conf_ram_rewire(
		&m->c, roll(m, 2) ? LEND_NO_DISCARD : 0, align[roll(m, 4)], slices[roll(m, 4)]);
}

static void do_compare(struct model *m)
{
	tell(m, "compare", 0, m->c.size);
	conf_compare(&m->c);
}

/* What has been flushed is all there, for whoever opens a copy of it now. */
static void do_snapshot(struct model *m)
{
	tell(m, "snapshot", 0, m->c.size);
	assert_int_equal(blk_flush(m->c.b), 0);
	conf_ram_snapshot(&m->c);
}

/* Of the image in use. Two flushes leave nothing pending. */
static void do_check(struct model *m)
{
	struct fmt_check ck = {0};
	struct blk_err err = BLK_ERR_INIT;

	tell(m, "check", 0, 0);
	if (!fmt_driver_of(m->c.b)->check)
		return;
	assert_int_equal(blk_flush(m->c.b), 0);
	assert_int_equal(blk_flush(m->c.b), 0);
	if (fmt_check(m->c.b, &ck, &err))
		conf_fail(&err);
	assert_int_equal(ck.check_errors, 0);
	assert_int_equal(ck.corruptions, 0);
	assert_int_equal(ck.leaks, 0);
}

/* Closed, the image is sound, and a repair finds nothing to do. */
static void do_repair(struct model *m)
{
	struct fmt_check ck = {.fix = FMT_FIX_LEAKS | FMT_FIX_ERRORS};
	struct blk_err err = BLK_ERR_INIT;

	tell(m, "repair", 0, 0);
	if (!fmt_driver_of(m->c.b)->check)
		return;
	assert_int_equal(fmt_close(m->c.b), 0);
	m->c.b = NULL;
	conf_ram_sound(&m->c);
	m->c.b = m->c.place->open(&m->c, BLK_RDWR, FMT_REPAIR);
	if (fmt_check(m->c.b, &ck, &err))
		conf_fail(&err);
	assert_int_equal(ck.check_errors, 0);
	assert_int_equal(ck.corruptions + ck.corruptions_fixed, 0);
	assert_int_equal(ck.leaks + ck.leaks_fixed, 0);
	conf_reopen(&m->c, BLK_RDWR);
}

/* The map covers the disk, and says zero of zeroes only. */
static void do_map(struct model *m)
{
	struct fmt_holes holes = {0};
	struct fmt_map_extent e;
	uint64_t off;

	tell(m, "map", 0, m->c.size);
	for (off = 0; off < m->c.size; off += e.len) {
		assert_int_equal(fmt_map(m->c.b, NULL, off, m->c.size - off, &holes, &e), 0);
		assert_int_equal(e.off, off);
		assert_in_range(e.len, 1, m->c.size - off);
		if (e.flags & BLK_EXT_ZERO)
			assert_true(cz_is_zero(m->c.model + off, e.len));
	}
}

static const struct {
	unsigned weight;
	void (*run)(struct model *m);
} operations[] = {
	{350, do_write},
	{40, do_pack},
	{196, do_read},
	{80, do_zero},
	{80, do_unmap},
	{90, do_discard},
	{70, do_flush},
	{30, do_resize},
	{20, do_reopen},
	{10, do_compare},
	{4, do_snapshot},
	{10, do_check},
	{10, do_repair},
	{10, do_map},
};

static void step(struct model *m)
{
	unsigned what = roll(m, 1000), i = 0;

	while (what >= operations[i].weight)
		what -= operations[i++].weight;
	operations[i].run(m);
}

/* ---- the tests ----------------------------------------------------------------------- */

/* Images of small clusters get room for several clusters of L1. */
#define ROOM (4u << 20)

static void run(void **state)
{
	struct model *m = *state;

	conf_open_at(&m->c, m->row, &conf_ram, THR_MAX(2 * m->row->size, ROOM));
	m->c.seed = m->seed;
	for (m->done = 0; m->done < m->ops; m->done++)
		step(m);
	conf_compare(&m->c);
	conf_close(&m->c);
	m->over = true;
}

static int say_where(void **state)
{
	struct model *m = *state;

	if (!m->over)
		fprintf(stderr, "# at operation %u of: t/conf/model %s\n", m->done, m->name);
	return 0;
}

static uint64_t number(const char *text, uint64_t def)
{
	return text ? strtoull(text, NULL, 0) : def;
}

static void plan(struct model *m, const struct conf_row *row, uint64_t seed, unsigned ops)
{
	m->row = row;
	m->seed = seed;
	m->ops = ops;
	snprintf(m->name, sizeof(m->name), "%s %llu %u", row->name, (unsigned long long)seed,
		ops);
}

static unsigned plan_all(struct model *m)
{
	unsigned n = conf_nrows * IMAGES, i;
	uint64_t seed = number(getenv("MODEL_SEED"), 1);
	const char *w = getenv("W"), *s = getenv("S");
	unsigned slow = w && *w ? 50 : s && *s ? 4 : 1;
	uint64_t ops = number(getenv("MODEL_OPS"), OPS / slow);

	for (i = 0; i < n; i++)
		plan(&m[i], &conf_rows[i / IMAGES], seed + i, (unsigned)((ops + n - 1) / n));
	return n;
}

int main(int argc, char **argv)
{
	const struct conf_row *row = argc == 4 ? conf_row_find(argv[1]) : NULL;
	struct model *m = calloc(conf_nrows * IMAGES, sizeof(*m));
	struct CMUnitTest *tests = calloc(conf_nrows * IMAGES, sizeof(*tests));
	unsigned n = 1, i;
	int failed;

	trace = getenv("MODEL_TRACE");
	if (!m || !tests || (argc > 1 && !row)) {
		fprintf(stderr, "usage: model [ROW SEED OPS]\n");
		return 2;
	}
	if (row)
		plan(m, row, number(argv[2], 1), (unsigned)number(argv[3], 1));
	else
		n = plan_all(m);
	for (i = 0; i < n; i++)
		tests[i] = (struct CMUnitTest){m[i].name, run, NULL, say_where, &m[i]};
	failed = _cmocka_run_group_tests("model", tests, n, NULL, NULL);
	free(tests);
	free(m);
	return failed != 0;
}
