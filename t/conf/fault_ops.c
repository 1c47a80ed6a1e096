/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/conf/fault_ops.c - cases of the fault loops that deal with whole images: convert,
 * checksum, commit, amend.
 */
#include "t/conf/fault.h"

/* ---- convert --------------------------------------------------------------------- */

static uint8_t source_byte(uint64_t i)
{
	return i / 5000 % 3 ? (uint8_t)(0xc0 | (i / 512 & 31)) : 0;
}

static int convert_to(struct attempt *a, bool compress)
{
	struct blk *src;
	struct fmt_convert cv = {
		.src = &src,
		.nsrc = 1,
		.dst = a->b,
		.sparse = 4096,
		.dst_is_zero = !a->geo->backing && !fault_is_volume(a->geo),
		.fibers = 3,
		.compress = compress,
	};
	int err;

	for (uint64_t i = 0; i < a->new_size; i++)
		a->new[i] = source_byte(i);
	assert_int_equal(blk_mem_open(&src, a->new, a->new_size, 0, &thr_heap, NULL), 0);
	err = fmt_convert(&cv, &a->e);
	blk_close(src);
	return err ? err : blk_flush(a->b);
}

/* Into the image. */
int fault_convert_to(struct attempt *a)
{
	return convert_to(a, false);
}

int fault_convert_packed(struct attempt *a)
{
	uint32_t unit;

	return convert_to(a, !fmt_driver_of(a->b)->compress(a->b, &unit, NULL));
}

/* From the image. */
int fault_convert_from(struct attempt *a)
{
	struct blk *dst;
	struct fmt_convert cv = {
		.src = &a->b,
		.nsrc = 1,
		.dst_is_zero = true,
		.sparse = 4096,
		.fibers = 3,
	};
	int err = blk_mem_open(&dst, a->buf, a->old_size, BLK_RDWR, &a->mem.a, &a->e);

	if (err)
		return err;
	memset(a->buf, 0, a->room);
	cv.dst = dst;
	err = fmt_convert(&cv, &a->e);
	blk_close(dst);
	if (!err)
		assert_memory_equal(a->buf, a->old, a->old_size);
	return err;
}

/* ---- checksum -------------------------------------------------------------------- */

int fault_checksum(struct attempt *a)
{
	struct fmt_checksum want = {.mem = &thr_heap, .block = 4096};
	struct fmt_checksum got = {.image = a->b, .mem = &a->mem.a, .block = 4096, .fibers = 3};
	int err = fmt_checksum(&got, &a->e);

	if (err)
		return err;
	assert_int_equal(blk_mem_open(&want.image, a->old, a->old_size, 0, &thr_heap, NULL), 0);
	assert_int_equal(fmt_checksum(&want, NULL), 0);
	blk_close(want.image);
	assert_int_equal(got.sum_len, want.sum_len);
	assert_memory_equal(got.sum, want.sum, want.sum_len);
	return 0;
}

/* ---- commit ---------------------------------------------------------------------- */

static int commit(struct attempt *a, bool keep)
{
	struct fmt_commit c = {.image = a->b, .base = a->b->backing, .keep = keep};

	return fmt_commit(&c, &a->e);
}

/* Whatever fails, the guest sees no difference: a->new stays what it was. */
int fault_commit(struct attempt *a)
{
	return commit(a, false);
}

int fault_commit_keep(struct attempt *a)
{
	return commit(a, true);
}

int fault_commit_shrink(struct attempt *a)
{
	int err = commit(a, false);

	if (err)
		return err;
	a->new_size = a->old_size / 1536 * 512;
	return fmt_resize(a->b, a->new_size, true, BLK_PREALLOC_OFF, &a->e);
}

/* The backing file opens by itself, has all of it after a success, and is sound. */
void fault_committed(struct attempt *a)
{
	struct fmt_open o = {
		.format = a->geo->flags & GEO_ON_QCOW2 ? "qcow2" : "raw", .mem = &thr_heap};
	struct blk *b;

	assert_int_equal(fmt_open_on(&b, disk_lend(a->base, 0), &o, NULL), 0);
	if (!a->err) {
		assert_true(blk_size(b) >= a->old_size);
		assert_int_equal(blk_pread(b, 0, a->buf, a->old_size), 0);
		assert_memory_equal(a->buf, a->old, a->old_size);
	}
	/* What the overlay hides is nobody's business. */
	for (uint64_t i = a->old_size; i < blk_size(b); i++) {
		uint8_t byte;

		assert_int_equal(blk_pread(b, i, &byte, 1), 0);
		assert_int_equal(byte, backing_byte(i));
	}
	assert_int_equal(fmt_close(b), 0);
	if (a->geo->flags & GEO_ON_QCOW2)
		assert_int_equal(image_verify(a->base, true).bad, 0);
}

/* ---- amend ----------------------------------------------------------------------- */

static int amend(struct attempt *a, struct blk_opt *v, unsigned n, const struct thr_alloc *mem)
{
	struct blk_opts opts = {v, n};
	struct fmt_amend m = {
		.opts = &opts, .secrets = &fault_secrets, .seed = "other", .mem = mem};

	if (!a->geo->cluster_bits)
		for (unsigned i = 0; i < n; i++)
			v[i].key += strlen("encrypt.");
	return fmt_amend(a->b, &m, &a->e);
}

int fault_amend_lazy(struct attempt *a)
{
	struct blk_opt v[] = {{"lazy_refcounts", a->geo->flags & GEO_LAZY ? "off" : "on"}};

	return amend(a, v, 1, &a->mem.a);
}

static int add_key(struct attempt *a, const struct thr_alloc *mem)
{
	struct blk_opt v[] = {{"encrypt.state", "active"}, {"encrypt.new-secret", "new"},
		{"encrypt.iter-time", "1"}};

	return amend(a, v, THR_ARRAY_SIZE(v), mem);
}

int fault_amend_add(struct attempt *a)
{
	return add_key(a, &a->mem.a);
}

static bool opens(struct attempt *a, const char *pass)
{
	struct blk_err err = BLK_ERR_INIT;
	struct over over = {a->disk, a->base, a->data, &thr_heap, &err};
	int ret = fault_open_over(a, &over, pass, 0, 0);

	assert_true(!ret || ret == -THR_EACCES);
	if (!ret)
		assert_int_equal(fmt_close(a->b), 0);
	a->b = NULL;
	return !ret;
}

/* What opened it does so still. */
void fault_added(struct attempt *a)
{
	assert_true(opens(a, "old"));
	if (!a->err)
		assert_true(opens(a, "new"));
}

void fault_add_key(struct attempt *a)
{
	assert_int_equal(add_key(a, &thr_heap), 0);
}

int fault_amend_erase(struct attempt *a)
{
	struct blk_opt v[] = {{"encrypt.state", "inactive"}, {"encrypt.old-secret", "old"}};

	a->pass = "new";
	return amend(a, v, THR_ARRAY_SIZE(v), &a->mem.a);
}

void fault_erased(struct attempt *a)
{
	if (!a->err)
		assert_false(opens(a, "old"));
}
