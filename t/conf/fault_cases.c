/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/conf/fault_cases.c - what is done while something fails. A case says in a->new
 * what the image should hold afterwards, and gives the first error.
 */
#include "t/conf/fault.h"

/* ---- opening ---------------------------------------------------------------------- */

static int open_to_read(struct attempt *a)
{
	return fault_open(a, 0, 0);
}

static int open_to_write(struct attempt *a)
{
	return fault_open(a, BLK_RDWR, 0);
}

static int open_by_probing(struct attempt *a)
{
	const char *format = fmt_probe(a->fault, &a->e);

	if (!format)
		return a->e.code;
	assert_string_equal(format, fault_format(a->geo));
	return fault_open(a, BLK_RDWR, 0);
}

/* ---- creating ---------------------------------------------------------------------- */

static int create(struct attempt *a)
{
	struct over over = {a->fault, NULL, a->data_fault, &a->mem.a, &a->e};
	int err = 0;

	if (fault_is_raw(a->geo)) {
		struct fmt_create c = {.name = "image",
			.format = "raw",
			.size = a->geo->size,
			.has_size = true,
			.opts = &(struct blk_opts){NULL, 0},
			.mem = &a->mem.a};
		struct blk *file = disk_lend(a->fault, 0);

		err = fmt_driver_find("raw")->create(file, &c, &a->e);
		blk_close(file);
	} else {
		err = fault_make(a, &over, true);
	}
	for (uint64_t i = 0; i < THR_MIN(a->geo->backing, a->geo->size); i++)
		a->new[i] = backing_byte(i);
	a->new_size = a->geo->size;
	return err;
}

/* ---- reading ------------------------------------------------------------------------ */

static int read_all(struct attempt *a)
{
	int err = blk_pread(a->b, 0, a->buf, a->old_size);

	if (!err)
		assert_memory_equal(a->buf, a->old, a->old_size);
	return err;
}

static int read_pieces(struct attempt *a)
{
	for (uint64_t at = 100; at + 3000 < a->old_size; at += 3777) {
		int err = blk_pread(a->b, at, a->buf, 3000);

		if (err)
			return err;
		assert_memory_equal(a->buf, a->old + at, 3000);
	}
	return 0;
}

static int map_all(struct attempt *a)
{
	struct fmt_holes holes = {0};
	struct fmt_map_extent e;

	for (uint64_t at = 0; at < a->old_size; at += e.len) {
		int err = fmt_map(a->b, NULL, at, a->old_size - at, &holes, &e);

		if (err)
			return err;
		for (uint64_t i = at; e.flags & BLK_EXT_ZERO && i < at + e.len; i++)
			assert_int_equal(a->old[i], 0);
	}
	return 0;
}

static int compare(struct attempt *a)
{
	struct fmt_compare cm = {.a = a->b};
	int err;

	assert_int_equal(blk_mem_open(&cm.b, a->old, a->old_size, 0, &thr_heap, NULL), 0);
	err = fmt_compare(&cm, &a->e);
	blk_close(cm.b);
	if (!err)
		assert_int_equal(cm.result, FMT_SAME);
	return err;
}

/* ---- writing ---------------------------------------------------------------------------- */

static int write_at(struct attempt *a, uint64_t off, uint64_t len)
{
	for (uint64_t i = off; i < off + len; i++)
		a->new[i] = (uint8_t)(0x80 | (i / 512 * 3 & 31));
	return blk_pwrite(a->b, off, a->new + off, len);
}

static int write_in_place(struct attempt *a)
{
	return write_at(a, 700, a->old_size / 5);
}

static int write_packed(struct attempt *a)
{
	uint64_t cluster = 1ull << a->geo->cluster_bits;
	struct thr_iov v = {.base = a->new, .len = a->old_size / 2 / cluster *cluster};
	struct blk_req r = {.len = v.len, .iov = &v, .niov = 1, .flags = BLK_COMPRESS};

	uint32_t unit;

	if (fmt_driver_of(a->b)->compress(a->b, &unit, NULL))
		r.flags = 0; /* no codec */
	for (uint64_t i = 0; i < v.len; i++)
		a->new[i] = (uint8_t)(0x80 | (i / 512 * 3 & 31));
	return blk_pwritev(a->b, &r);
}

static int write_packed_twice(struct attempt *a)
{
	int err = write_packed(a);

	if (!err)
		err = blk_flush(a->b);
	return err ? err : write_packed(a);
}

static int write_over_zeroes(struct attempt *a)
{
	return write_at(a, a->old_size / 4 + 3000, 9000);
}

static int write_new(struct attempt *a)
{
	return write_at(a, a->old_size / 2 + 1300, a->old_size / 8);
}

static int write_all(struct attempt *a)
{
	return write_at(a, 0, a->old_size);
}

/* The first error ends it, as it would a user. */
static int write_small(struct attempt *a)
{
	for (uint64_t at = 0; at + 100 < a->old_size; at += a->old_size / 16) {
		int err = write_at(a, at, 100);

		if (err)
			return err;
	}
	return 0;
}

static void write_some(struct attempt *a)
{
	assert_int_equal(write_new(a), 0);
}

static int flush(struct attempt *a)
{
	return blk_flush(a->b);
}

/* Copy on write, dropped clusters, and two flushes that settle them. */
static int write_and_flush(struct attempt *a)
{
	int err = write_at(a, a->old_size / 4 - 2000, a->old_size / 2);

	if (!err)
		err = blk_flush(a->b);
	if (!err)
		err = write_at(a, 0, 5000);
	return err ? err : blk_flush(a->b);
}

/* ---- zeroing and discarding ------------------------------------------------------ */

static int zero(struct attempt *a, uint64_t off, uint64_t len, unsigned flags)
{
	struct blk_req r = {.off = off, .len = len, .flags = flags};

	memset(a->new + off, 0, len);
	return blk_zero(a->b, &r);
}

static int zero_all(struct attempt *a)
{
	return zero(a, 0, a->old_size, 0);
}

static int zero_part(struct attempt *a)
{
	return zero(a, 1000, a->old_size - 3000, 0);
}

static int unmap_all(struct attempt *a)
{
	return zero(a, 0, a->old_size, BLK_UNMAP);
}

static int unmap_part(struct attempt *a)
{
	return zero(a, 5001, a->old_size / 3, BLK_UNMAP);
}

/* What a discard leaves may be as it was: what it has become is known only by
 * reading, once nothing fails any more. */
static int discard(struct attempt *a, uint64_t off, uint64_t len)
{
	struct blk_req r = {.off = off, .len = len};
	int err = blk_discard(a->b, &r);

	blk_fault_clear(a->fault);
	if (a->base_fault)
		blk_fault_clear(a->base_fault);
	if (a->data_fault)
		blk_fault_clear(a->data_fault);
	poor_arm(&a->mem, 0, false);
	assert_int_equal(blk_pread(a->b, off, a->new + off, len), 0);
	for (uint64_t i = off; i < off + len; i++)
		assert_true(!a->new[i] || a->new[i] == a->old[i]);
	return err;
}

static int discard_all(struct attempt *a)
{
	return discard(a, 0, a->old_size);
}

static int discard_part(struct attempt *a)
{
	return discard(a, 300, a->old_size / 2);
}

/* ---- length ---------------------------------------------------------------------- */

static int grow_by(struct attempt *a, enum blk_prealloc p)
{
	a->new_size = a->old_size + a->old_size / 1024 * 512;
	memset(a->new + a->old_size, 0, a->new_size - a->old_size);
	return fmt_resize(a->b, a->new_size, false, p, &a->e);
}

static int grow(struct attempt *a)
{
	return grow_by(a, BLK_PREALLOC_OFF);
}

static int grow_preallocated(struct attempt *a)
{
	return grow_by(a, BLK_PREALLOC_METADATA);
}

static int shrink(struct attempt *a)
{
	a->new_size = a->old_size / 1536 * 512;
	return fmt_resize(a->b, a->new_size, true, BLK_PREALLOC_OFF, &a->e);
}

/* ---- check ----------------------------------------------------------------------- */

static int check(struct attempt *a)
{
	struct fmt_check ck = {0};
	int err = fmt_check(a->b, &ck, &a->e);

	/* What it could not read is an error of the check, not of the image. */
	if (!err && ck.check_errors)
		return -THR_EIO;
	if (!err)
		assert_int_equal(ck.corruptions + ck.leaks, 0);
	return err;
}

static int repair(struct attempt *a)
{
	struct fmt_check ck = {.fix = FMT_FIX_LEAKS | FMT_FIX_ERRORS};
	int err = fmt_check(a->b, &ck, &a->e);

	if (!err && (ck.check_errors || ck.corruptions || ck.leaks))
		return -THR_EIO;
	return err;
}

#define CASE(f, flags)                                                                         \
	{                                                                                      \
#f, flags, NULL, f, NULL                                                       \
	}
#define AFTER(before, f, flags)                                                                \
	{                                                                                      \
#f, flags, before, f, NULL                                                     \
	}
#define WHOLE(f, flags, after)                                                                 \
	{                                                                                      \
#f, flags, NULL, fault_##f, after                                              \
	}

const struct fault_case fault_cases[] = {
	CASE(open_to_read, FAULT_OPENS | FAULT_PLAIN),
	CASE(open_to_write, FAULT_OPENS),
	CASE(open_by_probing, FAULT_OPENS | FAULT_PLAIN),
	{"open_after_power_cut", FAULT_OPENS | FAULT_DIRTY, NULL, open_to_write, NULL},
	CASE(create, FAULT_EMPTY),
	CASE(read_all, FAULT_READ_ONLY),
	CASE(read_pieces, FAULT_PLAIN),
	CASE(map_all, FAULT_READ_ONLY | FAULT_QCOW2 | FAULT_PLAIN),
	CASE(compare, FAULT_READ_ONLY | FAULT_PLAIN),
	CASE(write_in_place, FAULT_PLAIN),
	CASE(write_packed, FAULT_QCOW2 | FAULT_PACKED | FAULT_PLAIN),
	CASE(write_packed_twice, FAULT_QCOW2 | FAULT_PACKED | FAULT_PLAIN),
	CASE(write_over_zeroes, FAULT_PLAIN),
	CASE(write_new, FAULT_PLAIN),
	CASE(write_all, 0),
	CASE(write_small, FAULT_PLAIN),
	CASE(write_and_flush, 0),
	AFTER(write_some, flush, 0),
	CASE(zero_all, 0),
	CASE(zero_part, FAULT_PLAIN),
	CASE(unmap_all, FAULT_PLAIN),
	CASE(unmap_part, FAULT_PLAIN),
	CASE(discard_all, 0),
	CASE(discard_part, FAULT_PLAIN),
	CASE(grow, 0),
	CASE(grow_preallocated, FAULT_QCOW2 | FAULT_PLAIN),
	CASE(shrink, 0),
	CASE(check, FAULT_READ_ONLY | FAULT_QCOW2),
	CASE(repair, FAULT_PLAIN | FAULT_DAMAGED | FAULT_REPAIR | FAULT_QCOW2),
	{"repair_by_new_counts",
		FAULT_PLAIN | FAULT_DAMAGED | FAULT_NO_COUNTS | FAULT_REPAIR | FAULT_QCOW2,
		NULL, repair, NULL},
	WHOLE(convert_to, FAULT_BARE, NULL),
	WHOLE(convert_packed, FAULT_BARE | FAULT_PACKED | FAULT_PLAIN, NULL),
	WHOLE(convert_from, FAULT_READ_ONLY, NULL),
	WHOLE(checksum, FAULT_READ_ONLY, NULL),
	WHOLE(commit, FAULT_COMMIT, fault_committed),
	WHOLE(commit_keep, FAULT_COMMIT | FAULT_READ_ONLY | FAULT_PLAIN, fault_committed),
	WHOLE(commit_shrink, FAULT_COMMIT | FAULT_PLAIN, fault_committed),
	WHOLE(amend_lazy, FAULT_V3, NULL),
	WHOLE(amend_add, FAULT_LUKS, fault_added),
	{"amend_erase", FAULT_LUKS, fault_add_key, fault_amend_erase, fault_erased},
};
const unsigned fault_ncases = THR_ARRAY_SIZE(fault_cases);
