/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/firmware/ramdisk.c - see ramdisk.h. Memory past the end of the disk is kept zero.
 */
#include "t/firmware/ramdisk.h"

struct ramdisk {
	struct blk b;
	uint8_t *buf;
	size_t max;
};

static struct ramdisk *ramdisk_of(struct blk *b)
{
	return THR_CONTAINER(b, struct ramdisk, b);
}

static int fits(struct blk *b, const struct blk_req *r)
{
	return thr_within(r->off, r->len, ramdisk_of(b)->max) ? 0 : -THR_ENOSPC;
}

static int ramdisk_preadv(struct blk *b, struct blk_req *r)
{
	blk_req_from_buf(r, 0, ramdisk_of(b)->buf + (size_t)r->off, (size_t)r->len);
	return 0;
}

static int ramdisk_pwritev(struct blk *b, struct blk_req *r)
{
	int err = fits(b, r);

	if (!err)
		blk_req_to_buf(r, 0, ramdisk_of(b)->buf + (size_t)r->off, (size_t)r->len);
	return err;
}

static int ramdisk_zero(struct blk *b, struct blk_req *r)
{
	int err = fits(b, r);

	if (!err)
		memset(ramdisk_of(b)->buf + (size_t)r->off, 0, (size_t)r->len);
	return err;
}

static int ramdisk_flush(struct blk *b)
{
	(void)b;
	return 0;
}

static int ramdisk_truncate(
	struct blk *b, uint64_t size, enum blk_prealloc p, struct blk_err *err)
{
	struct ramdisk *d = ramdisk_of(b);

	(void)p;
	if (size > d->max)
		return blk_fail(err, -THR_ENOSPC, BLK_E_SYS, 0, size);
	if (size < blk_size(b))
		memset(d->buf + (size_t)size, 0, (size_t)(blk_size(b) - size));
	blk_set_size(b, size);
	return 0;
}

static bool ramdisk_same(struct blk *a, struct blk *b)
{
	return a == b;
}

static void ramdisk_close(struct blk *b)
{
	blk_fini(b);
	thr_put(b->mem, ramdisk_of(b), sizeof(struct ramdisk));
}

static const struct blk_ops ramdisk_ops = {
	.name = "ramdisk",
	.preadv = ramdisk_preadv,
	.pwritev = ramdisk_pwritev,
	.zero = ramdisk_zero,
	.discard = ramdisk_zero,
	.flush = ramdisk_flush,
	.truncate = ramdisk_truncate,
	.same = ramdisk_same,
	.close = ramdisk_close,
};

int ramdisk_open(
	struct blk **out, uint8_t *buf, size_t size, size_t max, const struct thr_alloc *mem)
{
	struct ramdisk *d = thr_zget(mem, sizeof(*d));

	if (!d)
		return -THR_ENOMEM;
	blk_init(&d->b, &ramdisk_ops, "ramdisk", BLK_RDWR, mem);
	d->b.grows = true;
	d->buf = buf;
	d->max = max;
	memset(buf + size, 0, max - size);
	blk_set_size(&d->b, size);
	*out = &d->b;
	return 0;
}
