/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/mem.c - a fixed memory disk over the caller's buffer.
 */
#include "blk/private.h"

struct mem {
	struct blk b;
	uint8_t *buf;
};

static struct mem *mem_of(struct blk *b)
{
	return THR_CONTAINER(b, struct mem, b);
}

static int mem_preadv(struct blk *b, struct blk_req *r)
{
	blk_req_from_buf(r, 0, mem_of(b)->buf + (size_t)r->off, (size_t)r->len);
	return 0;
}

static int mem_pwritev(struct blk *b, struct blk_req *r)
{
	blk_req_to_buf(r, 0, mem_of(b)->buf + (size_t)r->off, (size_t)r->len);
	return 0;
}

static int mem_zero(struct blk *b, struct blk_req *r)
{
	memset(mem_of(b)->buf + (size_t)r->off, 0, (size_t)r->len);
	return 0;
}

static int mem_allocated(struct blk *b, uint64_t *bytes)
{
	*bytes = blk_size(b);
	return 0;
}

static bool mem_same(struct blk *a, struct blk *b)
{
	return mem_of(a)->buf == mem_of(b)->buf;
}

static void mem_close(struct blk *b)
{
	struct mem *m = mem_of(b);

	blk_fini(b);
	thr_put(b->mem, m, sizeof(*m));
}

static const struct blk_ops mem_ops = {
	.name = "mem",
	.preadv = mem_preadv,
	.pwritev = mem_pwritev,
	.zero = mem_zero,
	.allocated = mem_allocated,
	.same = mem_same,
	.close = mem_close,
};

int blk_mem_open(struct blk **out, void *buf, uint64_t size, unsigned flags,
	const struct thr_alloc *mem, struct blk_err *err)
{
	struct mem *m;

	if (size > SIZE_MAX || size > BLK_MAX_SIZE)
		return blk_fail(err, -THR_EFBIG, BLK_E_SYS, 0, size);
	m = thr_get(mem, sizeof(*m), 16);
	if (!m)
		return blk_fail(err, -THR_ENOMEM, BLK_E_SYS, 0, sizeof(*m));
	blk_init(&m->b, &mem_ops, "memory", flags, mem);
	m->buf = buf;
	blk_set_size(&m->b, size);
	*out = &m->b;
	return 0;
}
