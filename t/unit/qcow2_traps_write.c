/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/qcow2_traps_write.c - what implementations of qcow2 get wrong when they
 * write; each test is named for its trap. Images are edited by hand where they hold
 * what this library does not write.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "t/fixtures/qcow2_rig.h"

#if defined(CONFIG_CZ_DEFLATE) && defined(CONFIG_FMT_QCOW2_COMPRESSED)
#include <zlib.h>
#endif

#define BITS   12
#define SIZE   (1u << BITS)
#define TABLE  ((uint64_t)SIZE / 8 * SIZE) /* guest bytes of an L2 table */
#define COPIED (1ull << 63)
#define MASK   0x00fffffffffffe00ull

static const struct geo plain = {3, BITS, 4, 4 << 20, 0, 0};

/* ---- images, by hand ------------------------------------------------------------ */

static uint64_t l2_at(struct blk *disk, uint64_t guest)
{
	uint64_t l1 = disk_get64(disk, 40);

	return (disk_get64(disk, l1 + guest / TABLE * 8) & MASK) + guest % TABLE / SIZE * 8;
}

/* Of 16 bits, in the first block. */
static uint64_t count_at(struct blk *disk, uint64_t host)
{
	assert_true(host / SIZE < SIZE / 2);
	return disk_get64(disk, disk_get64(disk, 48)) + host / SIZE * 2;
}

static unsigned get_count(struct blk *disk, uint64_t host)
{
	uint8_t p[2];

	assert_int_equal(blk_pread(disk, count_at(disk, host), p, 2), 0);
	return thr_be16(p);
}

static void put_count(struct blk *disk, uint64_t host, unsigned n)
{
	uint8_t p[2];

	thr_put_be16(p, (uint16_t)n);
	assert_int_equal(blk_pwrite(disk, count_at(disk, host), p, 2), 0);
}

static struct blk *image_of(struct blk *disk, struct blk *backing)
{
	return image_open(disk_lend(disk, 0), backing, 0);
}

/* ---- compressed clusters --------------------------------------------------------- */

#if defined(CONFIG_CZ_DEFLATE) && defined(CONFIG_FMT_QCOW2_COMPRESSED)
/* Compresses a cluster of noise and @byte into the file at @off; its L2 entry. */
static uint64_t put_compressed(struct blk *disk, uint64_t off, uint8_t byte, uint8_t *raw)
{
	uint8_t out[2 * SIZE];
	z_stream z = {
		.next_in = raw, .avail_in = SIZE, .next_out = out, .avail_out = sizeof(out)};
	uint64_t seed = byte, sectors;

	for (unsigned i = 0; i < SIZE; i++)
		raw[i] = i < 600 ? (uint8_t)rnd(&seed, 256) : byte;
	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, -12, 9, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	assert_int_equal(blk_pwrite(disk, off, out, z.total_out), 0);
	sectors = (off + z.total_out - 1) / 512 - off / 512;
	return 1ull << 62 | sectors << (62 - (BITS - 8)) | off;
}

/* Guest clusters 0 and 1 compressed: one across two host clusters, the other behind
 * it in the second, which has two references then. */
static void trap_04_compressed_is_replaced(void **state)
{
	struct blk *disk = disk_new(), *b;
	uint8_t raw[2][SIZE], buf[SIZE];
	uint64_t h;

	(void)state;
	image_make(disk, &plain);
	b = image_of(disk, NULL);
	disk_put(b, 0, 2 * SIZE, 1);
	assert_int_equal(fmt_close(b), 0);
	h = disk_get64(disk, l2_at(disk, 0)) & MASK;
	disk_put64(disk, l2_at(disk, 0), put_compressed(disk, h + SIZE - 100, 3, raw[0]));
	disk_put64(disk, l2_at(disk, SIZE), put_compressed(disk, h + SIZE + 2048, 4, raw[1]));
	put_count(disk, h + SIZE, 2);
	image_assert_sound(disk);

	b = image_of(disk, NULL);
	disk_put(b, 1024, 512, 9);
	memset(raw[0] + 1024, 9, 512);
	assert_int_equal(blk_pread(b, 0, buf, SIZE), 0);
	assert_memory_equal(buf, raw[0], SIZE);
	assert_int_equal(blk_pread(b, SIZE, buf, SIZE), 0);
	assert_memory_equal(buf, raw[1], SIZE);
	assert_int_equal(fmt_close(b), 0);
	image_assert_sound(disk);
	assert_true(disk_get64(disk, l2_at(disk, 0)) & COPIED);
	assert_int_equal(get_count(disk, h), 0);
	assert_int_equal(get_count(disk, h + SIZE), 1);
	assert_int_equal(disk_get64(disk, l2_at(disk, SIZE)) >> 62, 1);

	b = image_of(disk, NULL);
	disk_discard(b, SIZE, SIZE);
	assert_int_equal(fmt_close(b), 0);
	image_assert_sound(disk);
	assert_int_equal(get_count(disk, h + SIZE), 0);
	blk_close(disk);
}
#endif

/* ---- snapshots ------------------------------------------------------------------------ */

/* Makes a snapshot of a closed image whose tables are few and small. */
static void put_snapshot(struct blk *disk, uint64_t at)
{
	uint64_t l1 = disk_get64(disk, 40), l2;
	uint8_t buf[SIZE], s[64] = {0};
	unsigned n = (unsigned)(disk_get64(disk, 36) >> 32), i, j;

	assert_int_equal(blk_pread(disk, l1, buf, SIZE), 0);
	for (i = 0; i < n; i++) {
		uint64_t e = thr_be64(buf + i * 8);

		thr_put_be64(buf + i * 8, e & ~COPIED);
		if (!e)
			continue;
		l2 = e & MASK;
		put_count(disk, l2, get_count(disk, l2) + 1);
		for (j = 0; j < SIZE / 8; j++) {
			uint64_t d = disk_get64(disk, l2 + j * 8);

			if (!(d & MASK))
				continue;
			put_count(disk, d & MASK, get_count(disk, d & MASK) + 1);
			disk_put64(disk, l2 + j * 8, d & ~COPIED);
		}
	}
	assert_int_equal(blk_pwrite(disk, l1, buf, SIZE), 0);
	assert_int_equal(blk_pwrite(disk, at, buf, SIZE), 0);
	thr_put_be64(s, at);
	thr_put_be32(s + 8, n);
	thr_put_be16(s + 12, 1);
	thr_put_be16(s + 14, 1);
	thr_put_be32(s + 36, 16);
	thr_put_be64(s + 48, disk_get64(disk, 24));
	memcpy(s + 56, "1s", 2);
	memset(buf, 0, SIZE);
	memcpy(buf, s, sizeof(s));
	assert_int_equal(blk_pwrite(disk, at + SIZE, buf, SIZE), 0);
	put_count(disk, at, 1);
	put_count(disk, at + SIZE, 1);
	thr_put_be32(s, 1);
	assert_int_equal(blk_pwrite(disk, 60, s, 4), 0);
	disk_put64(disk, 64, at + SIZE);
}

/* The disk as the snapshot has it. */
static struct blk *snapshot_open(struct blk *disk, struct blk **copy)
{
	struct fmt_open o = {.format = "qcow2", .mem = &thr_heap};
	struct blk *b;

	*copy = disk_copy(disk);
	disk_put64(*copy, 40, disk_get64(disk, disk_get64(disk, 64)));
	assert_int_equal(fmt_open_on(&b, disk_lend(*copy, 0), &o, NULL), 0);
	return b;
}

/* COPIED is there exactly where the count is 1; L2 tables and clusters that a
 * snapshot has too are not written in place. image_assert_sound() looks at it. */
static void trap_12_copied_is_a_count_of_one(void **state)
{
	struct blk *disk = disk_new(), *b, *copy;
	uint64_t end;

	(void)state;
	image_make(disk, &plain);
	b = image_of(disk, NULL);
	disk_put(b, 0, 300 * SIZE, 1);
	disk_zero(b, 5 * SIZE, 2 * SIZE, 0);
	disk_put(b, TABLE, 4 * SIZE, 2);
	assert_int_equal(fmt_close(b), 0);
	end = (blk_size(disk) + SIZE - 1) & ~(uint64_t)(SIZE - 1);
	put_snapshot(disk, end);
	image_assert_sound(disk);

	b = image_of(disk, NULL);
	disk_put(b, SIZE + 512, 512, 7);      /* part of a shared cluster */
	disk_put(b, 5 * SIZE, 512, 8);        /* a shared ZERO_ALLOC one */
	disk_zero(b, 20 * SIZE, 3 * SIZE, 0); /* its shared host cluster is not kept */
	disk_discard(b, 30 * SIZE, 3 * SIZE);
	disk_put(b, 40 * SIZE, 100 * SIZE, 9);
	disk_put(b, 42 * SIZE, 512, 10); /* in place by now */
	assert_int_equal(blk_flush(b), 0);
	disk_expect(b, SIZE, 512, 1);
	disk_expect(b, SIZE + 512, 512, 7);
	disk_expect(b, 5 * SIZE + 512, SIZE - 512, 0);
	disk_expect(b, 20 * SIZE, 3 * SIZE, 0);
	assert_int_equal(fmt_close(b), 0);
	image_assert_sound(disk);

	b = snapshot_open(disk, &copy);
	disk_expect(b, 0, 5 * SIZE, 1);
	disk_expect(b, 5 * SIZE, 2 * SIZE, 0);
	disk_expect(b, 7 * SIZE, 293 * SIZE, 1);
	disk_expect(b, TABLE, 4 * SIZE, 2);
	assert_int_equal(fmt_close(b), 0);
	blk_close(copy);

	/* Cutting off what is shared takes the image's references only. */
	b = image_of(disk, NULL);
	assert_int_equal(blk_truncate(b, 8 * SIZE, BLK_PREALLOC_OFF, NULL), 0);
	assert_int_equal(fmt_close(b), 0);
	image_assert_sound(disk);
	b = snapshot_open(disk, &copy);
	disk_expect(b, 7 * SIZE, 1, 1);
	assert_int_equal(fmt_close(b), 0);
	disk_put64(copy, 24, plain.size);
	b = image_open(disk_lend(copy, 0), NULL, FMT_REPAIR);
	disk_expect(b, 7 * SIZE, 293 * SIZE, 1);
	disk_expect(b, TABLE, 4 * SIZE, 2);
	fmt_close(b);
	blk_close(copy);
	blk_close(disk);
}

static void resize_of_v2_with_snapshots(void **state)
{
	static const struct geo geo = {2, BITS, 4, 4 << 20, 0, 0};
	struct blk *disk = disk_new(), *b;

	(void)state;
	image_make(disk, &geo);
	b = image_of(disk, NULL);
	disk_put(b, 0, 3 * SIZE, 1);
	assert_int_equal(fmt_close(b), 0);
	put_snapshot(disk, (blk_size(disk) + SIZE - 1) & ~(uint64_t)(SIZE - 1));
	b = image_of(disk, NULL);
	assert_int_equal(blk_truncate(b, 8 << 20, BLK_PREALLOC_OFF, NULL), -THR_ENOTSUP);
	disk_put(b, 0, SIZE, 2);
	assert_int_equal(fmt_close(b), 0);
	image_assert_sound(disk);
	blk_close(disk);
}

/* ---- the header ---------------------------------------------------------------------------
 */

/* Autoclear bits, known and unknown, are off the disk, flushed, before anything
 * else is written, and also if nothing ever is. */
static void trap_05_autoclear_is_cleared_first(void **state)
{
	struct blk *disk = disk_new(), *log, *b;

	(void)state;
	image_make(disk, &plain);
	disk_put64(disk, 88, 0x8000000000000004ull);
	assert_int_equal(
		blk_log_open(&log, disk_lend(disk, 0), NULL, NULL, &thr_heap, NULL), 0);
	b = image_open(log, NULL, 0);
	assert_int_equal(disk_get64(disk, 88), 0);
	assert_int_equal(blk_log_count(log), 2);
	assert_int_equal(blk_log_get(log, 0)->op, BLK_OP_WRITE);
	assert_int_equal(blk_log_get(log, 0)->off, 0);
	assert_int_equal(blk_log_get(log, 1)->op, BLK_OP_FLUSH);
	assert_int_equal(fmt_close(b), 0);
	blk_close(disk);
}

/* The same bytes behind the fields that change, whatever they mean: extensions that
 * nobody knows, compatible bits, a longer header. */
static void trap_15_unknown_parts_are_kept(void **state)
{
	struct blk *disk = disk_new(), *b;
	uint8_t before[SIZE], after[SIZE];

	(void)state;
	image_make(disk, &plain);
	assert_int_equal(blk_pread(disk, 0, before, SIZE), 0);
	thr_put_be32(before + 112, 0x12345678);
	thr_put_be32(before + 116, 5);
	memcpy(before + 120, "hello\0\0\0", 8);
	memset(before + 128, 0, 8);
	thr_put_be64(before + 80, 0xf0); /* unknown compatible bits */
	thr_put_be64(before + 88, 0xf0); /* unknown autoclear bits */
	assert_int_equal(blk_pwrite(disk, 0, before, SIZE), 0);
	b = image_of(disk, NULL);
	disk_put(b, 0, SIZE, 1);
	assert_int_equal(blk_truncate(b, 64ull << 30, BLK_PREALLOC_OFF, NULL), 0);
	assert_int_equal(fmt_close(b), 0);
	assert_int_equal(blk_pread(disk, 0, after, SIZE), 0);
	assert_memory_equal(after, before, 24);
	assert_int_equal(thr_be64(after + 24), 64ull << 30);
	assert_int_equal(thr_be64(after + 80), 0xf0);
	assert_int_equal(thr_be64(after + 88), 0);
	assert_memory_equal(after + 96, before + 96, SIZE - 96);
	image_assert_sound(disk);
	blk_close(disk);
}

static void corrupt_images_are_not_written(void **state)
{
	struct fmt_open o = {.format = "qcow2", .mem = &thr_heap};
	struct blk *disk = disk_new(), *b;

	(void)state;
	image_make(disk, &plain);
	disk_put64(disk, 72, 2);
	assert_int_equal(image_try(&b, disk_lend(disk, 0), NULL, 0), -THR_EUCLEAN);
	assert_int_equal(fmt_open_on(&b, disk_lend(disk, 0), &o, NULL), 0);
	assert_int_equal(fmt_close(b), 0);
	assert_int_equal(disk_get64(disk, 72), 2);
	blk_close(disk);
}

/* Set before the first change, cleared at close. */
static void lazy_counts_set_the_dirty_bit(void **state)
{
	static const struct geo geo = {3, BITS, 4, 4 << 20, 0, GEO_LAZY};
	struct blk *disk = disk_new(), *b;

	(void)state;
	image_make(disk, &geo);
	b = image_of(disk, NULL);
	disk_discard(b, 0, geo.size);
	disk_zero(b, 0, geo.size, 0);
	assert_int_equal(disk_get64(disk, 72), 0);
	disk_put(b, 0, SIZE, 1);
	assert_int_equal(disk_get64(disk, 72), 1);
	assert_int_equal(blk_flush(b), 0);
	assert_int_equal(disk_get64(disk, 72), 1);
	assert_int_equal(fmt_close(b), 0);
	assert_int_equal(disk_get64(disk, 72), 0);
	image_assert_sound(disk);
	blk_close(disk);
}

/* ---- tables
 * ------------------------------------------------------------------------------------ */

/* Entries past the virtual size are somebody's saved VM state: they are kept, and
 * an image that grows over them does not show them. */
static void trap_08_vm_state_is_kept(void **state)
{
	struct blk *disk = disk_new(), *b;

	(void)state;
	image_make(disk, &plain);
	b = image_of(disk, NULL);
	disk_put(b, 0, SIZE, 1);
	disk_put(b, TABLE, SIZE, 2);
	assert_int_equal(fmt_close(b), 0);
	disk_put64(disk, 24, TABLE); /* the second table lies behind the disk now */
	b = image_of(disk, NULL);
	assert_int_equal(blk_truncate(b, TABLE / 2, BLK_PREALLOC_OFF, NULL), 0);
	assert_int_equal(fmt_close(b), 0);
	image_assert_sound(disk);
	assert_true(disk_get64(disk, l2_at(disk, TABLE)) & COPIED);
	b = image_of(disk, NULL);
	assert_int_equal(blk_truncate(b, 2 * TABLE, BLK_PREALLOC_OFF, NULL), 0);
	disk_expect(b, TABLE, 2 * SIZE, 0);
	disk_expect(b, 0, SIZE, 1);
	assert_int_equal(fmt_close(b), 0);
	image_assert_sound(disk);
	blk_close(disk);
}

/* A block that counts itself; and a table that moves: until the header says so,
 * durably, nothing of the old one is touched, and it is free only after. */
static void trap_10_refcount_table_moves(void **state)
{
	static const struct geo geo = {3, 9, 6, 64 << 10, 0, 0};
	struct blk *disk = disk_new(), *log, *b;
	uint64_t old, before, at = 0, reft, self = 0;
	size_t n, i, header = 0;

	(void)state;
	image_make(disk, &geo);
	assert_int_equal(
		blk_log_open(&log, disk_lend(disk, 0), NULL, NULL, &thr_heap, NULL), 0);
	b = image_open(log, NULL, 0);
	assert_int_equal(blk_truncate(b, 24 << 20, BLK_PREALLOC_OFF, NULL), 0);
	old = disk_get64(disk, 48);
	n = blk_log_count(log);
	for (; disk_get64(disk, 48) == old; at += 64 << 10) {
		assert_true(at < 20 << 20);
		disk_put(b, at, 64 << 10, 1);
	}
	for (i = n; i < blk_log_count(log); i++)
		if (blk_log_get(log, i)->op == BLK_OP_WRITE && !blk_log_get(log, i)->off)
			header = i;
	assert_true(header);
	assert_int_equal(blk_log_get(log, header)->len, 512);
	assert_int_equal(blk_log_get(log, header - 1)->op, BLK_OP_FLUSH);
	assert_int_equal(blk_log_get(log, header + 1)->op, BLK_OP_FLUSH);
	for (; header < blk_log_count(log); header++)
		assert_int_not_equal(blk_log_get(log, header)->off, old);
	before = disk_get64(disk, 36);
	assert_int_equal(fmt_close(b), 0);
	assert_int_equal(disk_get64(disk, 36), before);
	image_assert_sound(disk);
	reft = disk_get64(disk, 48);
	for (i = 0; i < 512; i++) {
		uint64_t block = disk_get64(disk, reft + i * 8);

		self += block && block / 512 / 64 == i;
	}
	assert_true(self > 0);
	blk_close(disk);
}

/* Counts of less than a byte, from the least significant bit. */
static void trap_17_counts_below_a_byte(void **state)
{
	(void)state;
	for (unsigned order = 0; order < 3; order++) {
		struct geo geo = {3, BITS, order, 4 << 20, 0, 0};
		struct blk *disk = disk_new(), *b;
		uint64_t block;
		uint8_t p[2];

		image_make(disk, &geo);
		b = image_of(disk, NULL);
		disk_put(b, 0, 3 * SIZE, 1);
		assert_int_equal(fmt_close(b), 0);
		image_assert_sound(disk);
		/* All but the topmost of the clusters are in use: so their bits. */
		block = disk_get64(disk, disk_get64(disk, 48));
		assert_int_equal(blk_pread(disk, block, p, 2), 0);
		assert_int_equal(p[0], order == 0 ? 0xff : order == 1 ? 0x55 : 0x11);
		blk_close(disk);
	}
}

/* ---- version 2 over a backing file
 * ------------------------------------------------------------- */

/* No entry of version 2 has bit 0; nothing that was hidden shows. */
static void trap_14_zero_and_discard_in_v2(void **state)
{
	static const struct geo geo = {2, BITS, 4, 4 << 20, 1 << 20, 0};
	struct blk *disk = disk_new(), *backing = backing_new(geo.backing), *b;
	uint64_t i;

	(void)state;
	image_make(disk, &geo);
	b = image_of(disk, backing);
	disk_put(b, 0, 10 * SIZE, 1);
	disk_zero(b, SIZE, SIZE, BLK_UNMAP);   /* written before */
	disk_zero(b, 20 * SIZE, 2 * SIZE, 0);  /* the backing file's */
	disk_zero(b, 300 * SIZE, 5 * SIZE, 0); /* nobody's */
	disk_discard(b, 4 * SIZE, SIZE);       /* hides something: 1 or 0 */
	disk_put(b, 310 * SIZE, 4 * SIZE, 2);
	disk_discard(b, 311 * SIZE, SIZE); /* hides nothing */
	disk_expect(b, SIZE, SIZE, 0);
	disk_expect(b, 20 * SIZE, 2 * SIZE, 0);
	disk_expect(b, 300 * SIZE, 5 * SIZE, 0);
	disk_expect(b, 4 * SIZE, SIZE, 1);
	disk_expect(b, 311 * SIZE, SIZE, 0);
	assert_int_equal(fmt_close(b), 0);
	image_assert_sound(disk);
	for (i = 0; i < 320; i++)
		assert_int_equal(disk_get64(disk, l2_at(disk, i * SIZE)) & 1, 0);
	for (i = 300; i < 305; i++)
		assert_int_equal(disk_get64(disk, l2_at(disk, i * SIZE)), 0);
	assert_int_equal(disk_get64(disk, l2_at(disk, 311 * SIZE)), 0);
	blk_close(disk);
	blk_close(backing);
}

/* Version 3: a flag does; a discard gives the cluster up and hides on. */
static void zero_and_discard_in_v3(void **state)
{
	static const struct geo geo = {3, BITS, 4, 4 << 20, 1 << 20, 0};
	struct blk *disk = disk_new(), *backing = backing_new(geo.backing), *b;
	uint64_t host;

	(void)state;
	image_make(disk, &geo);
	b = image_of(disk, backing);
	disk_put(b, 0, 10 * SIZE, 1);
	disk_zero(b, SIZE, SIZE, BLK_UNMAP);
	disk_zero(b, 2 * SIZE, SIZE, 0);
	disk_zero(b, 20 * SIZE, 2 * SIZE, 0);
	disk_discard(b, 4 * SIZE, SIZE);
	disk_discard(b, 30 * SIZE, SIZE); /* shows the backing file: goes on */
	assert_int_equal(fmt_close(b), 0);
	image_assert_sound(disk);
	host = disk_get64(disk, l2_at(disk, 0)) & MASK;
	assert_int_equal(disk_get64(disk, l2_at(disk, SIZE)), 1);
	assert_int_equal(
		disk_get64(disk, l2_at(disk, 2 * SIZE)), COPIED | (host + 2 * SIZE) | 1);
	assert_int_equal(disk_get64(disk, l2_at(disk, 20 * SIZE)), 1);
	assert_int_equal(disk_get64(disk, l2_at(disk, 4 * SIZE)), 1);
	assert_int_equal(disk_get64(disk, l2_at(disk, 30 * SIZE)), 0);
	/* The kept cluster is used again, and nothing of it shows. */
	b = image_of(disk, backing);
	disk_put(b, 2 * SIZE + 512, 512, 5);
	disk_expect(b, 2 * SIZE, 512, 0);
	disk_expect(b, 2 * SIZE + 512, 512, 5);
	disk_expect(b, 2 * SIZE + 1024, SIZE - 1024, 0);
	assert_int_equal(fmt_close(b), 0);
	assert_int_equal(disk_get64(disk, l2_at(disk, 2 * SIZE)), COPIED | (host + 2 * SIZE));
	image_assert_sound(disk);
	blk_close(disk);
	blk_close(backing);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#if defined(CONFIG_CZ_DEFLATE) && defined(CONFIG_FMT_QCOW2_COMPRESSED)
		cmocka_unit_test(trap_04_compressed_is_replaced),
#endif
		cmocka_unit_test(trap_05_autoclear_is_cleared_first),
		cmocka_unit_test(trap_08_vm_state_is_kept),
		cmocka_unit_test(trap_10_refcount_table_moves),
		cmocka_unit_test(trap_12_copied_is_a_count_of_one),
		cmocka_unit_test(resize_of_v2_with_snapshots),
		cmocka_unit_test(trap_14_zero_and_discard_in_v2),
		cmocka_unit_test(zero_and_discard_in_v3),
		cmocka_unit_test(trap_15_unknown_parts_are_kept),
		cmocka_unit_test(trap_17_counts_below_a_byte),
		cmocka_unit_test(corrupt_images_are_not_written),
		cmocka_unit_test(lazy_counts_set_the_dirty_bit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
