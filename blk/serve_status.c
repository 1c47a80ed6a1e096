/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/serve_status.c - block status: for every context that was chosen one chunk of
 * extents, neighbours that are alike put together.
 */
#include <errno.h>

#include "blk/serve.h"

#define EXTENTS 2047u /* in one reply: less than what was asked about is an answer too */

struct list {
	uint8_t *p;
	unsigned n, max;
	uint64_t bytes; /* of the last one */
	uint32_t flags;
};

static void close_last(struct list *l)
{
	if (l->n)
		thr_put_be32(l->p + 4 + 8 * (size_t)(l->n - 1), (uint32_t)l->bytes);
}

/* False: there is no room. An extent has 32 bits for its length. */
static bool add(struct list *l, uint64_t bytes, uint32_t flags)
{
	if (l->n && l->flags == flags && l->bytes + bytes <= UINT32_MAX) {
		l->bytes += bytes;
		return true;
	}
	if (l->n == l->max)
		return false;
	close_last(l);
	l->bytes = bytes;
	l->flags = flags;
	thr_put_be32(l->p + 4 + 8 * (size_t)l->n + 4, flags);
	l->n++;
	return true;
}

static int ask(struct srv_conn *c, const struct blk_nbd_context *m, uint64_t off, uint64_t len,
	uint64_t *n, uint32_t *flags)
{
	if (!strcmp(m->name, "base:allocation"))
		return blk_srv_allocation(c, off, len, n, flags);
	return m->status(m->arg, off, len, n, flags);
}

static int fill(struct list *l, const struct blk_nbd_context *m, const struct srv_req *r)
{
	uint64_t off = r->off, end = r->off + r->len;

	while (off < end && !r->c->dead) {
		uint64_t n;
		uint32_t flags;
		int err = ask(r->c, m, off, end - off, &n, &flags);

		if (err)
			return err;
		n = THR_MIN(n, end - off);
		if (!n)
			return -EIO;
		if (!add(l, n, flags))
			break;
		off += n;
	}
	close_last(l);
	return l->n ? 0 : -EIO;
}

static int one_context(struct srv_req *r, unsigned id, unsigned flags)
{
	struct blk_nbd_context own;
	const struct blk_nbd_context *m = blk_srv_context(r->c->export, id, &own);
	struct list l = {.p = (uint8_t *)r->buf};
	struct srv_out o;
	int err;

	l.max = r->flags & NBDP_CMD_REQ_ONE ? 1 : EXTENTS;
	err = fill(&l, m, r);
	if (err)
		return err;
	thr_put_be32(l.p, id);
	blk_srv_chunk(&o, r, flags, NBDP_REPLY_BLOCK_STATUS, 4 + 8 * l.n);
	o.data = l.p;
	o.len = 4 + 8 * (size_t)l.n;
	blk_srv_queue_wait(r->c, &o);
	return 0;
}

void blk_srv_status(struct srv_req *r)
{
	uint32_t left = r->c->contexts;
	int err;

	r->buf = blk_srv_buf_get(r->c, 4 + 8 * (size_t)EXTENTS, &r->cls);
	err = r->buf ? 0 : -ENOMEM;
	while (!err && left) {
		unsigned id = (unsigned)__builtin_ctz(left);

		left &= left - 1;
		err = one_context(r, id, left ? 0 : NBDP_REPLY_DONE);
	}
	if (err)
		blk_srv_finish(r, blk_srv_error(err));
	else
		blk_srv_req_put(r);
}
