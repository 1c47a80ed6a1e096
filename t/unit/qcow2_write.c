/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Writing qcow2 images: seeded steps against a model in memory, over versions,
 * cluster sizes, reference count widths and backing disks; and many fibers that
 * write into the same clusters.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "t/fixtures/qcow2_rig.h"

struct rig {
	struct geo geo;
	struct blk *disk, *backing, *b;
	uint8_t *model, *buf;
	uint64_t size, room;
	uint64_t seed;
};

static uint8_t below(const struct rig *g, uint64_t off)
{
	return off < g->geo.backing ? backing_byte(off) : 0;
}

static void rig_open(struct rig *g, const struct geo *geo, uint64_t seed)
{
	memset(g, 0, sizeof(*g));
	g->geo = *geo;
	g->seed = seed;
	g->size = geo->size;
	g->room = geo->size * 2;
	g->model = malloc(g->room);
	g->buf = malloc(g->room);
	g->disk = disk_new();
	if (geo->backing)
		g->backing = backing_new(geo->backing);
	image_make(g->disk, geo);
	g->b = image_open(disk_lend(g->disk, 0), g->backing, 0);
	for (uint64_t i = 0; i < g->room; i++)
		g->model[i] = below(g, i);
}

static void compare(struct rig *g, uint64_t off, uint64_t len)
{
	if (!len)
		return;
	assert_int_equal(blk_pread(g->b, off, g->buf, len), 0);
	for (uint64_t i = 0; i < len; i++) {
		if (g->buf[i] == g->model[off + i])
			continue;
		fprintf(stderr, "# byte %llu is %#x, not %#x\n", (unsigned long long)(off + i),
			g->buf[i], g->model[off + i]);
		fail();
	}
}

static void reopen(struct rig *g)
{
	assert_int_equal(fmt_close(g->b), 0);
	image_assert_sound(g->disk);
	g->b = image_open(disk_lend(g->disk, 0), g->backing, 0);
	compare(g, 0, g->size);
}

static void rig_close(struct rig *g)
{
	reopen(g);
	assert_int_equal(fmt_close(g->b), 0);
	blk_close(g->disk);
	blk_close(g->backing);
	free(g->model);
	free(g->buf);
}

/* A range of any alignment, short ones more often. */
static void pick(struct rig *g, uint64_t *off, uint64_t *len)
{
	static const uint32_t max[] = {512, 4096, 70000, 400000};
	uint32_t grain = rnd(&g->seed, 3) ? 512 : 1;

	*off = rnd(&g->seed, (uint32_t)g->size) / grain * grain;
	*len = rnd(&g->seed, max[rnd(&g->seed, 4)]) + 1;
	*len = (*len + grain - 1) / grain * grain;
	*len = THR_MIN(*len, g->size - *off);
}

static void step_write(struct rig *g, uint64_t off, uint64_t len)
{
	uint64_t cut = rnd(&g->seed, (uint32_t)len + 1);
	uint8_t byte = (uint8_t)rnd(&g->seed, 256);
	struct thr_iov v[3] = {{g->buf, 7}, {g->buf + 7, cut}, {g->buf + 7 + cut, len - cut}};
	struct blk_req r = {.off = off, .len = len, .iov = v, .niov = 3, .iov_off = 7};

	for (uint64_t i = 0; i < len; i++)
		g->model[off + i] = (uint8_t)(byte + i / 512);
	memcpy(g->buf + 7, g->model + off, len);
	r.flags = rnd(&g->seed, 20) ? 0 : BLK_FUA;
	assert_int_equal(blk_pwritev(g->b, &r), 0);
}

static void step_zero(struct rig *g, uint64_t off, uint64_t len)
{
	struct blk_req r = {.off = off, .len = len};

	r.flags = rnd(&g->seed, 2) ? BLK_UNMAP : 0;
	assert_int_equal(blk_zero(g->b, &r), 0);
	memset(g->model + off, 0, len);
}

/* Each sector reads as before or as zeroes. */
static void step_discard(struct rig *g, uint64_t off, uint64_t len)
{
	struct blk_req r = {.off = off, .len = len};

	assert_int_equal(blk_discard(g->b, &r), 0);
	assert_int_equal(blk_pread(g->b, off, g->buf, len), 0);
	for (uint64_t i = 0; i < len; i++) {
		assert_true(!g->buf[i] || g->buf[i] == g->model[off + i]);
		g->model[off + i] = g->buf[i];
	}
}

static void step_resize(struct rig *g)
{
	uint64_t size = (rnd(&g->seed, (uint32_t)(g->room / 512)) + 1) * 512;

	assert_int_equal(blk_truncate(g->b, size, BLK_PREALLOC_OFF, NULL), 0);
	assert_int_equal(blk_size(g->b), size);
	if (size > g->size)
		memset(g->model + g->size, 0, size - g->size);
	g->size = size;
}

static void step(struct rig *g)
{
	uint32_t what = rnd(&g->seed, 100);
	uint64_t off, len;

	pick(g, &off, &len);
	if (what < 50)
		step_write(g, off, len);
	else if (what < 65)
		step_zero(g, off, len);
	else if (what < 77)
		step_discard(g, off, len);
	else if (what < 87)
		assert_int_equal(blk_flush(g->b), 0);
	else if (what < 92)
		step_resize(g);
	else if (what < 94)
		reopen(g);
	else
		compare(g, off, len);
}

static void test_model(void **state)
{
	static const uint64_t sizes[] = {700 << 10, 900 << 10, 3 << 20};
	static const unsigned bits[] = {9, 12, 16}, orders[] = {0, 3, 4, 6};
	unsigned n = 0;

	(void)state;
	for (unsigned i = 0; i < 3 * 4 * 2 * 3 * 2; i++) {
		unsigned c = i % 3, back = i / 3 % 3, o = i / 9 % 4;
		struct geo geo = {
			.version = 2 + i / 36 % 2,
			.cluster_bits = bits[c],
			.refcount_order = orders[o],
			.size = sizes[c],
			.flags = i / 72 ? GEO_LAZY : 0,
		};
		struct rig g;
		char name[128];

		geo.backing = back == 1 ? geo.size / 3 + 1000 : back == 2 ? geo.size * 3 : 0;
		if (geo.version == 2 && (geo.refcount_order != 4 || geo.flags & GEO_LAZY))
			continue;
		if (geo.flags & GEO_LAZY && geo.refcount_order != 4)
			continue;
		geo_name(&geo, name, sizeof(name));
		print_message("# %s\n", name);
		rig_open(&g, &geo, i);
		for (unsigned k = 0; k < 150; k++)
			step(&g);
		rig_close(&g);
		n++;
	}
	assert_int_equal(n, 54);
}

/* ---- many at once ------------------------------------------------------------- */

#define FIBERS 8u

struct crowd {
	struct blk *b;
	uint64_t sectors;
	uint32_t failures; /* atomic */
};

struct member {
	struct crowd *c;
	unsigned i;
	uint8_t *model; /* a byte for each sector of ours */
};

static void crowd_check(struct crowd *c, bool ok)
{
	if (!ok)
		__atomic_fetch_add(&c->failures, 1, __ATOMIC_RELAXED);
}

/* Writes, zeroes and reads back sectors i, i + FIBERS, ... which share clusters
 * with everyone else's. */
static int crowd_member(void *arg)
{
	struct member *m = arg;
	struct crowd *c = m->c;
	uint64_t seed = m->i + 1000;
	uint8_t buf[512];

	for (unsigned k = 0; k < 150; k++) {
		uint64_t mine = rnd(&seed, (uint32_t)(c->sectors / FIBERS));
		uint64_t off = (mine * FIBERS + m->i) * 512;
		uint32_t what = rnd(&seed, 10);
		struct blk_req r = {.off = off, .len = 512};

		if (what < 6) {
			m->model[mine] = (uint8_t)rnd(&seed, 256);
			memset(buf, m->model[mine], sizeof(buf));
			crowd_check(c, !blk_pwrite(c->b, off, buf, sizeof(buf)));
		} else if (what < 8) {
			m->model[mine] = 0;
			crowd_check(c, !blk_zero(c->b, &r));
		} else if (what < 9) {
			crowd_check(c, !blk_pread(c->b, off, buf, sizeof(buf)));
			crowd_check(c, buf[0] == m->model[mine] && buf[511] == buf[0]);
		} else if (m->i == 0) {
			crowd_check(c, !blk_flush(c->b));
		}
	}
	return 0;
}

/* Discards, one cluster at a time, clusters past the others' sectors, which are
 * written again: so clusters are dropped and reused all along. */
static int crowd_recycler(void *arg)
{
	struct member *m = arg;
	struct crowd *c = m->c;
	uint32_t unit = c->b->zero_align;
	uint64_t base = c->sectors * 512, seed = 77;
	uint8_t *buf = malloc(unit), model[16] = {0};

	for (unsigned k = 0; k < 100; k++) {
		uint32_t i = rnd(&seed, 16);
		struct blk_req r = {.off = base + (uint64_t)i * unit, .len = unit};

		crowd_check(c, !blk_pread(c->b, r.off, buf, unit));
		crowd_check(c, buf[0] == model[i] && buf[unit - 1] == model[i]);
		if (rnd(&seed, 2)) {
			r.flags = BLK_UNMAP;
			crowd_check(c, !blk_zero(c->b, &r));
			model[i] = 0;
		} else {
			model[i] = (uint8_t)rnd(&seed, 256);
			memset(buf, model[i], unit);
			crowd_check(c, !blk_pwrite(c->b, r.off, buf, unit));
		}
		if (!rnd(&seed, 8))
			crowd_check(c, !blk_flush(c->b));
	}
	free(buf);
	return 0;
}

struct job {
	struct crowd *c;
	struct member *m;
	int err;
};

static int crowd_run(void *arg)
{
	struct job *j = arg;
	struct thr_pool *p = thr_pool_self();
	struct thr_group g;

	thr_group_init(&g);
	for (unsigned i = 0; i < FIBERS; i++)
		thr_group_spawn(&g, thr_pool_exec(p, i % 2), crowd_member, &j->m[i]);
	thr_group_spawn(&g, thr_pool_exec(p, 1), crowd_recycler, &j->m[FIBERS]);
	return thr_group_wait(&g);
}

static void crowd_verify(struct crowd *c, struct member *m)
{
	uint8_t buf[512];

	for (uint64_t s = 0; s < c->sectors; s++) {
		uint8_t want = m[s % FIBERS].model[s / FIBERS];

		assert_int_equal(blk_pread(c->b, s * 512, buf, 512), 0);
		assert_int_equal(buf[0], want);
		assert_int_equal(buf[511], want);
	}
}

static void crowd_one(const struct geo *geo)
{
	struct blk *disk = disk_new(), *backing = NULL;
	struct crowd c = {.sectors = 1024};
	struct member m[FIBERS + 1];
	struct job j = {&c, m, 0};
	struct thr_pool *p;

	if (geo->backing)
		backing = backing_new(geo->backing);
	image_make(disk, geo);
	c.b = image_open(disk_lend(disk, LEND_YIELD), backing, 0);
	for (unsigned i = 0; i <= FIBERS; i++) {
		m[i].c = &c;
		m[i].i = i;
		m[i].model = calloc(c.sectors / FIBERS, 1);
		for (uint64_t s = 0; i < FIBERS && s < c.sectors / FIBERS; s++)
			m[i].model[s] = (s * FIBERS + i) * 512 < geo->backing
						? backing_byte((s * FIBERS + i) * 512)
						: 0;
	}
	assert_int_equal(thr_pool_open(&p, 2, &thr_heap), 0);
	assert_int_equal(thr_pool_run(p, crowd_run, &j), 0);
	thr_pool_close(p);
	assert_int_equal(c.failures, 0);
	crowd_verify(&c, m);
	assert_int_equal(fmt_close(c.b), 0);
	image_assert_sound(disk);
	c.b = image_open(disk_lend(disk, 0), backing, 0);
	crowd_verify(&c, m);
	assert_int_equal(fmt_close(c.b), 0);
	for (unsigned i = 0; i <= FIBERS; i++)
		free(m[i].model);
	blk_close(disk);
	blk_close(backing);
}

static void test_crowd(void **state)
{
	static const struct geo geos[] = {
		{3, 16, 4, 4 << 20, 0, 0},
		{3, 12, 4, 4 << 20, 300 << 10, 0},
		{3, 9, 6, 1 << 20, 512 << 10, 0},
		{2, 12, 4, 4 << 20, 300 << 10, 0},
		{3, 16, 4, 4 << 20, 300 << 10, GEO_LAZY},
		{3, 14, 4, 4 << 20, 300 << 10, GEO_EXTENDED},
	};

	(void)state;
	for (unsigned i = 0; i < THR_ARRAY_SIZE(geos); i++)
		crowd_one(&geos[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_model),
		cmocka_unit_test(test_crowd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
