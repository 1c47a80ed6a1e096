/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/serve_part.c - a part of a device as a device of its own, to be served. Every request
 * is the whole device's at another offset; alignment is that device's business.
 */
#include "blk/private.h"

struct part {
	struct blk b;
	struct blk *whole;
	uint64_t off;
};

static struct part *part_of(struct blk *b)
{
	return THR_CONTAINER(b, struct part, b);
}

static int shift(struct blk *b, struct blk_req *r,
	int (*request)(struct blk *b, const struct blk_req *r))
{
	r->off += part_of(b)->off;
	r->flags |= BLK_CHILD;
	return request(part_of(b)->whole, r);
}

static int part_preadv(struct blk *b, struct blk_req *r)
{
	return shift(b, r, blk_preadv);
}

static int part_pwritev(struct blk *b, struct blk_req *r)
{
	return shift(b, r, blk_pwritev);
}

static int part_zero(struct blk *b, struct blk_req *r)
{
	return shift(b, r, blk_zero);
}

static int part_discard(struct blk *b, struct blk_req *r)
{
	return shift(b, r, blk_discard);
}

static int part_flush(struct blk *b)
{
	return blk_flush(part_of(b)->whole);
}

static int part_status(struct blk *b, uint64_t off, uint64_t len, struct blk_extent *e)
{
	int err = blk_status(part_of(b)->whole, part_of(b)->off + off, len, e);

	/* This device has no file that it could lie in. */
	e->flags &= ~(unsigned)BLK_EXT_MAPPED;
	return err;
}

static void part_close(struct blk *b)
{
	blk_fini(b);
	thr_put(b->mem, part_of(b), sizeof(struct part));
}

static const struct blk_ops part_ops = {
	.name = "part",
	.preadv = part_preadv,
	.pwritev = part_pwritev,
	.zero = part_zero,
	.discard = part_discard,
	.flush = part_flush,
	.status = part_status,
	.close = part_close,
};

int blk_nbd_part_open(struct blk **out, struct blk *whole, uint64_t off, uint64_t len,
	const struct thr_alloc *mem, struct blk_err *err)
{
	struct part *p;

	if (!thr_within(off, len, blk_size(whole)))
		return blk_fail(err, -THR_EINVAL, BLK_E_SYS, off, len);
	p = (struct part *)thr_zget(mem, sizeof(*p));
	if (!p)
		return blk_fail(err, -THR_ENOMEM, BLK_E_SYS, 0, sizeof(*p));
	blk_init(&p->b, &part_ops, whole->name,
		whole->flags & ~(unsigned)(BLK_WRITETHROUGH | BLK_NOFLUSH), mem);
	p->whole = whole;
	p->off = off;
	p->b.zero_align = whole->zero_align;
	p->b.fua = true;
	blk_set_size(&p->b, len);
	*out = &p->b;
	return 0;
}
