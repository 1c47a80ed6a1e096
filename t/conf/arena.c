/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Less and less memory: for kinds of image of every format, one is created, opened,
 * written, compressed, flushed, zeroed, discarded, resized, read, checked and closed with
 * nothing but a fixed arena, which is as large as that needs at first and then smaller
 * each time, down to nothing. Whatever fails says -ENOMEM, and the work goes on after it,
 * as who serves a disk goes on. Then all memory has been given back, and the image opens
 * again, is not corrupt, and holds for each byte what it was or what it should have
 * become: nothing that a flush has answered for is lost.
 *
 *   arena [ROW-SUBSTRING]
 */
#include <stdlib.h>
#include <string.h>

#include "t/conf/conf.h"
#include "t/firmware/arena.h"
#include "t/fixtures/qcow2_rig.h"

#define PLENTY (24u << 20)
#define GUEST  (256u << 10)
#define SLICES 20 /* each arena is so much of the one before smaller */

static const char *const names[] = {
	"raw",
	"cow-v3-over-short",
	"cow-v2",
	"luks-xts",
	"luks-cbc",
	"v2-luks-512",
	"v3-luks-over-short",
	"extl2-luks",
	"v2-512",
	"v3-4k-r2",
	"v3-64k-r16",
	"v3-lazy",
	"v3-metadata",
	"v3-over-short",
	"v2-over-long",
	"extl2-over-short",
	"data-64k",
	"data-raw-512",
};

/* ---- memory ------------------------------------------------------------------------- */

/* An arena that knows how often it has had nothing to give. */
struct tight {
	struct thr_alloc mem;
	struct arena arena;
	unsigned refused;
};

static void *tight_get(void *ctx, size_t size, size_t align)
{
	struct tight *t = ctx;
	/* The arena's pieces are aligned to 16; for more, there is room to move. */
	size_t more = align > 16 ? align : 0;
	uint8_t *p = t->arena.mem.get(t->arena.mem.ctx, size + more + 16, 16), *q;

	if (!p) {
		t->refused++;
		return NULL;
	}
	q = p + 16;
	if (more)
		q += (align - (uintptr_t)q % align) % align;
	memcpy(q - 16, &p, sizeof(p));
	memcpy(q - 8, &more, sizeof(more));
	return q;
}

static void tight_put(void *ctx, void *q, size_t size)
{
	struct tight *t = ctx;
	uint8_t *p;
	size_t more;

	memcpy(&p, (uint8_t *)q - 16, sizeof(p));
	memcpy(&more, (uint8_t *)q - 8, sizeof(more));
	t->arena.mem.put(t->arena.mem.ctx, p, size + more + 16);
}

/* ---- what a byte may be --------------------------------------------------------------- */

/* Every write has a number, told from the bytes that it writes. 0 is what was there first,
 * and ZERO is zeroes. A set of them is bits. */
#define ZERO 15u

struct
try {
	struct conf_row row;
	struct tight t;
	struct blk *disk, *data, *base;
	struct blk *b;
	uint8_t *first, *buf;
	uint16_t *may, *since; /* what it is now; or has been since the last flush, and then */
	uint64_t size;         /* of the guest's disk: it never shrinks */
	unsigned writes;
	bool failed, unsure; /* a call has; so that what was not flushed may be lost */
};

static uint8_t byte_of(const struct try *y, unsigned id, uint64_t i)
{
	if (!id)
		return y->first[i];
	return id == ZERO ? 0 : (uint8_t)(id << 4 | (i / 512 * 7 & 15));
}

/* Any call: it works, or there was no memory. */
static bool worked(struct try *y, int code)
{
	if (!code)
		return true;
	if (code != -THR_ENOMEM)
		fail_msg("error %d with %zu bytes of memory", code, y->t.arena.used);
	assert_true(y->t.refused);
	y->failed = true;
	return false;
}

static void becomes(struct try *y, uint64_t off, uint64_t len, unsigned id, bool surely)
{
	for (uint64_t i = off; i < off + len; i++) {
		y->may[i] = (uint16_t)(1u << id | (surely ? 0 : y->may[i]));
		y->since[i] |= (uint16_t)(1u << id);
	}
}

static void compare(const struct try *y, uint64_t off, uint64_t len, const uint16_t *also)
{
	for (uint64_t i = off; i < off + len; i++) {
		unsigned may = y->may[i] | (also ? also[i] : 0u);
		bool known = may & 1 && y->row.noise;

		for (unsigned id = 0; !known && id <= ZERO; id++)
			known = may >> id & 1 && y->buf[i] == byte_of(y, id, i);
		if (!known)
			fail_msg("byte %llu is %02x, not one of %04x", (unsigned long long)i,
				y->buf[i], may);
	}
}

/* ---- work -------------------------------------------------------------------------------- */

static void write_it(struct try *y, uint64_t off, uint64_t len, unsigned flags)
{
	unsigned id = ++y->writes;
	struct thr_iov v = {y->buf, len};
	struct blk_req r = {.off = off, .len = len, .iov = &v, .niov = 1, .flags = flags};

	assert_true(id < ZERO);
	for (uint64_t i = 0; i < len; i++)
		y->buf[i] = byte_of(y, id, off + i);
	becomes(y, off, len, id, worked(y, blk_pwritev(y->b, &r)));
}

static void pack_it(struct try *y, uint64_t off)
{
	const struct fmt_driver *d = fmt_driver_of(y->b);
	uint32_t unit;

	if (d->compress && !d->compress(y->b, &unit, NULL) && unit <= GUEST / 4)
		write_it(y, off, THR_MAX(unit, 32768u), BLK_COMPRESS);
}

static void zero_it(struct try *y, uint64_t off, uint64_t len)
{
	struct blk_req r = {.off = off, .len = len, .flags = BLK_UNMAP};

	becomes(y, off, len, ZERO, worked(y, blk_zero(y->b, &r)));
}

/* What is discarded is what it was, or zero. */
static void discard_it(struct try *y, uint64_t off, uint64_t len)
{
	struct blk_req r = {.off = off, .len = len};

	worked(y, blk_discard(y->b, &r));
	for (uint64_t i = off; i < off + len; i++) {
		y->may[i] |= (uint16_t)(1u << ZERO | (y->row.noise ? 1 : 0));
		y->since[i] |= y->may[i];
	}
}

/* After one that has failed it is not known what is durable. */
static void flush_it(struct try *y)
{
	if (!worked(y, blk_flush(y->b)))
		y->unsure = true;
	else if (!y->unsure)
		memcpy(y->since, y->may, y->size * sizeof(*y->may));
}

static void read_it(struct try *y, uint64_t off, uint64_t len)
{
	if (worked(y, blk_pread(y->b, off, y->buf + off, len)))
		compare(y, off, len, NULL);
}

static void resize_it(struct try *y)
{
	struct blk_err err = BLK_ERR_INIT;
	uint64_t size = y->size + 40960;
	int code = fmt_resize(y->b, size, false, BLK_PREALLOC_OFF, &err);

	if (code == -THR_ENOTSUP && y->row.stiff)
		return;
	if (worked(y, code) && !y->row.noise)
		assert_int_equal(blk_size(y->b), size);
}

static void check_it(struct try *y)
{
	struct blk_err err = BLK_ERR_INIT;
	struct fmt_check ck = {0};
	int code = fmt_check(y->b, &ck, &err);

	if (code == -THR_ENOTSUP || !worked(y, code))
		return;
	if (ck.check_errors)
		worked(y, ck.error);
	assert_int_equal(ck.corruptions, 0);
}

static void work(struct try *y)
{
	write_it(y, 700, GUEST / 3, 0);
	pack_it(y, GUEST / 2);
	write_it(y, GUEST - 9000, 9000, 0);
	flush_it(y);
	zero_it(y, 20000, 30000);
	write_it(y, 40000, 512, 0);
	discard_it(y, 65536, 16384);
	read_it(y, 0, y->size);
	flush_it(y);
	for (uint64_t at = 100; at + 8000 < GUEST; at += 64000)
		write_it(y, at, 7000, 0);
	pack_it(y, GUEST / 2);
	resize_it(y);
	flush_it(y);
	read_it(y, 5000, GUEST / 2);
	if (!y->unsure)
		check_it(y);
}

/* ---- an image --------------------------------------------------------------------------- */

static int make(struct try *y)
{
	struct blk_err err = BLK_ERR_INIT;
	struct blk_opts opts = conf_opts(&y->row);
	struct fmt_create c = {
		.name = "image",
		.format = y->row.format,
		.size = GUEST,
		.has_size = true,
		.backing = y->base ? "base.raw" : NULL,
		.backing_format = y->base ? "raw" : NULL,
		.unsafe_backing = true,
		.opts = &opts,
		.secrets = &conf_secrets,
		.seed = CONF_SEED,
		.mem = &y->t.mem,
	};
	struct blk *file = disk_lend(y->disk, LEND_PREALLOC);
	int code;

	if (y->data)
		c.data = disk_lend(y->data, LEND_PREALLOC);
	code = fmt_driver_find(c.format)->create(file, &c, &err);
	assert_int_equal(code, err.code);
	blk_close(c.data);
	blk_close(file);
	return code;
}

static int open_with(struct try *y, const struct thr_alloc *mem)
{
	struct blk_err err = BLK_ERR_INIT;
	struct blk_opt v[CONF_OPTS];
	struct blk_opts opts = conf_open_opts(&y->row, v);
	struct blk *file = disk_lend(y->disk, 0), *below = NULL;
	struct fmt_open o = {
		.format = y->row.format,
		.blk_flags = BLK_RDWR,
		.opts = &opts,
		.secrets = &conf_secrets,
		.mem = mem,
		.data = y->data ? disk_lend(y->data, 0) : NULL,
	};
	struct fmt_open raw = {.format = "raw", .mem = mem};
	int code = fmt_open_on(&y->b, file, &o, &err);

	assert_int_equal(code, err.code);
	if (code) {
		blk_close(o.data);
		blk_close(file);
		return code;
	}
	if (!y->base)
		return 0;
	file = disk_lend(y->base, 0);
	code = fmt_open_on(&below, file, &raw, &err);
	if (code) {
		blk_close(file);
		(void)fmt_close(y->b);
		return code;
	}
	fmt_set_backing(y->b, below);
	return 0;
}

static void judge(struct try *y)
{
	assert_int_equal(open_with(y, &thr_heap), 0);
	assert_int_equal(blk_pread(y->b, 0, y->buf, y->size), 0);
	compare(y, 0, y->size, y->unsure ? y->since : NULL);
	assert_int_equal(fmt_close(y->b), 0);
	if (strcmp(y->row.format, "qcow2"))
		return;
	assert_int_equal(image_verify(y->disk, false).bad, 0);
	if (!y->failed)
		image_assert_sound(y->disk);
}

/* All of it in @size bytes of memory. Says whether that was enough. */
static bool in_memory(struct try *y, void *memory, size_t size)
{
	int code;

	y->t = (struct tight){.mem = {.get = tight_get, .put = tight_put, .ctx = &y->t}};
	arena_init(&y->t.arena, memory, size);
	y->writes = 0;
	y->failed = y->unsure = false;
	y->disk = disk_new();
	y->data = conf_opt(&y->row, "data_file") ? disk_new() : NULL;
	for (uint64_t i = 0; i < y->size; i++)
		y->may[i] = y->since[i] = 1;
	if (!worked(y, make(y)))
		goto out;
	if (worked(y, open_with(y, &y->t.mem))) {
		work(y);
		code = fmt_close(y->b);
		y->unsure |= code != 0;
		worked(y, code);
	}
	judge(y);
out:
	assert_int_equal(y->t.arena.used, 0);
	blk_close(y->disk);
	blk_close(y->data);
	return !y->failed;
}

static void less_and_less(void **state)
{
	const struct conf_row *row = *state;
	struct try y = {.row = *row, .size = GUEST};
	unsigned good = 0, bad = 0;
	void *memory;
	size_t peak;

	y.row.backing = row->backing ? row->backing < row->size ? GUEST - 70000 : GUEST : 0;
	y.base = y.row.backing ? backing_new(y.row.backing) : NULL;
	y.first = calloc(2, GUEST);
	y.buf = y.first + GUEST;
	y.may = calloc(2 * GUEST, sizeof(*y.may));
	y.since = y.may + GUEST;
	memory = aligned_alloc(16, PLENTY);
	assert_true(y.first && y.may && memory);
	for (uint64_t i = 0; i < y.row.backing; i++)
		y.first[i] = backing_byte(i);
	assert_true(in_memory(&y, memory, PLENTY));
	peak = y.t.arena.peak;
	/* Pieces that lie scattered: a little more than it had in use is enough. */
	for (size_t size = peak / 4 * 5; size >= 32; size -= THR_MAX(size / SLICES, (size_t)16))
		if (in_memory(&y, memory, size))
			good++;
		else
			bad++;
	if (getenv("ARENA_TRACE"))
		fprintf(stderr, "# %s: %zu bytes at first; %u sizes were enough, %u not\n",
			row->name, peak, good, bad);
	assert_true(good && bad);
	blk_close(y.base);
	free(memory);
	free(y.may);
	free(y.first);
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[THR_ARRAY_SIZE(names)];
	size_t n = 0;

	for (size_t i = 0; i < THR_ARRAY_SIZE(names); i++) {
		const struct conf_row *row = conf_row_find(names[i]);

		if (row && (argc < 2 || strstr(names[i], argv[1])))
			tests[n++] = (struct CMUnitTest){
				names[i], less_and_less, NULL, NULL, (void *)(uintptr_t)row};
	}
	return _cmocka_run_group_tests("arena", tests, n, NULL, NULL) != 0;
}
