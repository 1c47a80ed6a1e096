/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/read.c - the read half of the request core: bounds, splitting, and the
 * defaults for what a driver leaves out. Takes no memory on the way of an
 * aligned request.
 */
#include "blk/private.h"

uint64_t blk_size(const struct blk *b)
{
	return blk_load(&b->size);
}

void blk_set_size(struct blk *b, uint64_t size)
{
	THR_ASSERT(size <= BLK_MAX_SIZE);
	blk_store(&b->size, size);
}

/* Drivers copy parts of what they get to their own children, which have been
 * admitted with it; no other flag of a read is theirs. */
int blk_dev_read(struct blk *b, const struct blk_req *r)
{
	struct blk_req p = *r;
	uint64_t max;
	int err = 0;

	p.flags = BLK_CHILD;
	if (THR_LIKELY(p.len <= b->max_io))
		return b->ops->preadv(b, &p);
	max = thr_align_down(b->max_io, b->align);
	THR_ASSERT(max);
	for (uint64_t at = 0; !err && at < r->len; at += max) {
		p = blk_req_part(r, at, THR_MIN(max, r->len - at));
		p.flags = BLK_CHILD;
		err = b->ops->preadv(b, &p);
	}
	return err;
}

static int read_within(struct blk *b, const struct blk_req *r)
{
	return blk_any_align(b) ? blk_dev_read(b, r) : blk_widen_read(b, r);
}

/* Some of it, or all, lies past the end. */
static int read_past(struct blk *b, const struct blk_req *r, uint64_t size)
{
	uint64_t have = r->off < size ? size - r->off : 0;
	struct blk_req p;

	if (!(r->flags & BLK_EOF_ZERO))
		return -THR_EINVAL;
	blk_req_fill(r, have, 0, (size_t)(r->len - have));
	if (!have)
		return 0;
	p = blk_req_part(r, 0, have);
	return read_within(b, &p);
}

int blk_preadv(struct blk *b, const struct blk_req *r)
{
	struct blk_slot *slot;
	uint64_t size;
	int err;

	if (THR_UNLIKELY(r->len - 1 >= BLK_MAX_IO))
		return r->len ? -THR_EINVAL : 0;
	slot = blk_enter(b, r->flags);
	size = blk_size(b);
	if (THR_LIKELY(thr_within(r->off, r->len, size)))
		err = read_within(b, r);
	else
		err = read_past(b, r, size);
	blk_leave(b, slot);
	return err;
}

int blk_pread(struct blk *b, uint64_t off, void *buf, size_t len)
{
	struct thr_iov v = {.base = buf, .len = len};
	struct blk_req r = {.off = off, .len = len, .iov = &v, .niov = 1};

	return blk_preadv(b, &r);
}

static int status_admitted(struct blk *b, uint64_t off, uint64_t len, struct blk_extent *e)
{
	int err;

	if (!len || !thr_within(off, len, blk_size(b)))
		return -THR_EINVAL;
	if (!b->ops->status) {
		e->len = len;
		e->flags = BLK_EXT_ALLOC | BLK_EXT_DATA | (b->file ? BLK_EXT_MAPPED : 0u);
		e->map = b->file ? off : 0;
		return 0;
	}
	err = b->ops->status(b, off, len, e);
	if (err)
		return err;
	THR_ASSERT(e->len);
	e->len = THR_MIN(e->len, len);
	return 0;
}

int blk_status(struct blk *b, uint64_t off, uint64_t len, struct blk_extent *e)
{
	struct blk_slot *slot = blk_enter(b, 0);
	int err;

	memset(e, 0, sizeof(*e));
	err = status_admitted(b, off, len, e);
	blk_leave(b, slot);
	return err;
}

int blk_allocated(struct blk *b, uint64_t *bytes)
{
	if (b->ops->allocated)
		return b->ops->allocated(b, bytes);
	return b->file ? blk_allocated(b->file, bytes) : -THR_ENOTSUP;
}

int blk_mtime(struct blk *b, int64_t *seconds)
{
	if (b->ops->mtime)
		return b->ops->mtime(b, seconds);
	return b->file ? blk_mtime(b->file, seconds) : -THR_ENOTSUP;
}

bool blk_same(struct blk *a, struct blk *b)
{
	while (a->file)
		a = a->file;
	while (b->file)
		b = b->file;
	if (a == b)
		return true;
	return a->ops == b->ops && a->ops->same && a->ops->same(a, b);
}
