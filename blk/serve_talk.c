/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/serve_talk.c - the transmission phase: requests are received, judged, and done each
 * in a fiber of its own. A bad one is answered, its data skipped.
 */
#include <errno.h>

#include "blk/serve.h"
#include "cz/cz.h"

uint32_t blk_srv_error(int err)
{
	switch (-err) {
	case 0:
		return 0;
	case THR_EPERM:
	case THR_EACCES:
	case THR_EROFS:
		return NBDP_EPERM;
	case THR_ENOMEM:
		return NBDP_ENOMEM;
	case THR_EINVAL:
		return NBDP_EINVAL;
	case THR_ENOSPC:
	case THR_EFBIG:
		return NBDP_ENOSPC;
	case THR_EOVERFLOW:
		return NBDP_EOVERFLOW;
	case THR_ENOTSUP:
		return NBDP_ENOTSUP;
	case THR_ESHUTDOWN:
		return NBDP_ESHUTDOWN;
	}
	return NBDP_EIO;
}

/* ---- replies --------------------------------------------------------------------------------
 */

void blk_srv_chunk(
	struct srv_out *o, const struct srv_req *r, unsigned flags, unsigned type, uint32_t len)
{
	uint8_t *p = o->head;

	thr_put_be32(p, NBDP_STRUCTURED_MAGIC);
	thr_put_be16(p + 4, (uint16_t)flags);
	thr_put_be16(p + 6, (uint16_t)type);
	thr_put_be64(p + 8, r->cookie);
	thr_put_be32(p + 16, len);
	o->head_len = NBDP_CHUNK_LEN;
	o->data = NULL;
	o->len = 0;
}

static void done(struct srv_out *o)
{
	blk_srv_req_put(THR_CONTAINER(o, struct srv_req, out));
}

static void error_chunk(struct srv_out *o, const struct srv_req *r, uint32_t error)
{
	blk_srv_chunk(o, r, NBDP_REPLY_DONE, NBDP_REPLY_ERROR, 6);
	thr_put_be32(o->head + NBDP_CHUNK_LEN, error);
	thr_put_be16(o->head + NBDP_CHUNK_LEN + 4, 0);
	o->head_len += 6;
}

static void simple_head(struct srv_out *o, const struct srv_req *r, uint32_t error)
{
	thr_put_be32(o->head, NBDP_SIMPLE_MAGIC);
	thr_put_be32(o->head + 4, error);
	thr_put_be64(o->head + 8, r->cookie);
	o->head_len = NBDP_SIMPLE_LEN;
	o->data = NULL;
	o->len = 0;
}

void blk_srv_finish(struct srv_req *r, uint32_t error)
{
	struct srv_conn *c = r->c;
	bool chunk = c->structured &&
		     (r->cmd == NBDP_CMD_READ || r->cmd == NBDP_CMD_BLOCK_STATUS);

	if (chunk && error)
		error_chunk(&r->out, r, error);
	else if (chunk)
		blk_srv_chunk(&r->out, r, NBDP_REPLY_DONE, NBDP_REPLY_NONE, 0);
	else
		simple_head(&r->out, r, error);
	r->out.sent = done;
	blk_srv_queue(c, &r->out);
}

/* ---- what has no data in the reply ----------------------------------------------------------
 */

static struct blk_req request(const struct srv_req *r)
{
	return (struct blk_req){
		.off = r->off,
		.len = r->len,
		.flags = r->flags & NBDP_CMD_FUA ? BLK_FUA : 0u,
	};
}

static int write_data(struct srv_conn *c, const struct blk_req *q)
{
	const struct blk_nbd_export *e = c->export;
	struct blk_req zero = *q;
	int err;

	if (!e->detect || !q->len || !cz_is_zero(q->iov->base, (size_t)q->len))
		return blk_pwritev(e->dev, q);
	zero.iov = NULL;
	zero.niov = 0;
	if (e->detect == BLK_NBD_DETECT_UNMAP)
		zero.flags |= BLK_UNMAP;
	err = blk_zero(e->dev, &zero);
	blk_srv_forget(c);
	return err;
}

static void do_write(struct srv_req *r)
{
	struct thr_iov v = {r->buf, r->len};
	struct blk_req q = request(r);

	q.iov = &v;
	q.niov = 1;
	blk_srv_finish(r, blk_srv_error(write_data(r->c, &q)));
}

static int do_zero(struct srv_req *r)
{
	struct blk_req q = request(r);

	if (!(r->flags & NBDP_CMD_NO_HOLE) && !r->c->export->keep_space)
		q.flags |= BLK_UNMAP;
	if (r->flags & NBDP_CMD_FAST_ZERO)
		q.flags |= BLK_NO_FALLBACK;
	return blk_zero(r->c->export->dev, &q);
}

static int do_trim(struct srv_req *r)
{
	struct blk *dev = r->c->export->dev;
	struct blk_req q = request(r);
	int err = 0;

	q.flags = 0;
	if (!r->c->export->keep_space)
		err = blk_discard(dev, &q);
	return err || !(r->flags & NBDP_CMD_FUA) ? err : blk_flush(dev);
}

/* Passes the wish on to a plain device below; where nobody takes it, reads what is asked for, a
 * buffer at a time, and forgets it. */
static int do_cache(struct srv_req *r)
{
	struct blk *dev = r->c->export->dev;
	uint64_t end = r->off + r->len;
	struct blk *plain = r->c->export->plain;
	int err = 0;

	if (plain && !blk_prefetch(plain, r->off, r->len))
		return 0;
	r->buf = blk_srv_buf_get(r->c, THR_MIN(r->len, SRV_PIECE), &r->cls);
	if (!r->buf)
		return -ENOMEM;
	for (uint64_t at = r->off; !err && at < end && !r->c->dead; at += SRV_PIECE)
		err = blk_pread(dev, at, r->buf, (size_t)THR_MIN(end - at, SRV_PIECE));
	return err;
}

static void run(void *arg)
{
	struct srv_req *r = (struct srv_req *)arg;
	int err = 0;

	switch (r->cmd) {
	case NBDP_CMD_READ:
		blk_srv_read(r);
		return;
	case NBDP_CMD_BLOCK_STATUS:
		blk_srv_status(r);
		return;
	case NBDP_CMD_WRITE:
		do_write(r);
		return;
	case NBDP_CMD_WRITE_ZEROES:
		err = do_zero(r);
		blk_srv_forget(r->c);
		break;
	case NBDP_CMD_TRIM:
		err = do_trim(r);
		blk_srv_forget(r->c);
		break;
	case NBDP_CMD_FLUSH:
		err = blk_flush(r->c->export->dev);
		break;
	case NBDP_CMD_CACHE:
		err = do_cache(r);
		break;
	}
	blk_srv_finish(r, blk_srv_error(err));
}

/* ---- judging --------------------------------------------------------------------------------
 */

static unsigned flags_allowed(unsigned cmd)
{
	switch (cmd) {
	case NBDP_CMD_READ:
		return NBDP_CMD_DF;
	case NBDP_CMD_WRITE_ZEROES:
		return NBDP_CMD_NO_HOLE | NBDP_CMD_FAST_ZERO;
	case NBDP_CMD_BLOCK_STATUS:
		return NBDP_CMD_REQ_ONE;
	}
	return 0;
}

static bool writes(unsigned cmd)
{
	return cmd == NBDP_CMD_WRITE || cmd == NBDP_CMD_TRIM || cmd == NBDP_CMD_WRITE_ZEROES;
}

/* The protocol's number of what is wrong with it, or 0. */
static uint32_t judge(const struct srv_conn *c, const struct srv_req *r)
{
	unsigned allowed = NBDP_CMD_FUA | flags_allowed(r->cmd);

	if (r->cmd > NBDP_CMD_BLOCK_STATUS || r->flags & ~allowed)
		return NBDP_EINVAL;
	if (r->flags & NBDP_CMD_DF && !c->structured)
		return NBDP_EINVAL;
	if (writes(r->cmd) && blk_srv_read_only(c->export))
		return NBDP_EPERM;
	if (r->cmd == NBDP_CMD_FLUSH)
		return r->off || r->len ? NBDP_EINVAL : 0;
	if (!thr_within(r->off, r->len, blk_size(c->export->dev)))
		return r->cmd == NBDP_CMD_WRITE || r->cmd == NBDP_CMD_WRITE_ZEROES
			       ? NBDP_ENOSPC
			       : NBDP_EINVAL;
	if (r->cmd == NBDP_CMD_BLOCK_STATUS)
		return r->len && c->contexts ? 0 : NBDP_EINVAL;
	if (r->cmd == NBDP_CMD_READ && r->flags & NBDP_CMD_DF && r->len > SRV_PIECE)
		return NBDP_EOVERFLOW;
	if (r->cmd == NBDP_CMD_READ || r->cmd == NBDP_CMD_WRITE)
		return r->len > NBDP_PAYLOAD_MAX ? NBDP_EINVAL : 0;
	return 0;
}

/* ---- receiving
 * ------------------------------------------------------------------------------- */

/* What the request needs of a buffer while it waits its turn. */
static size_t memory_of(const struct srv_conn *c, const struct srv_req *h)
{
	switch (h->cmd) {
	case NBDP_CMD_READ:
	case NBDP_CMD_WRITE:
	case NBDP_CMD_CACHE:
		return THR_MIN(h->len, SRV_PIECE);
	case NBDP_CMD_BLOCK_STATUS:
		return c->contexts ? 16384 : 0;
	}
	return 0;
}

static void quiesce(struct srv_conn *c)
{
	struct thr_wait w;

	if (!c->busy)
		return;
	thr_wait_init(&w);
	c->quiet = &w;
	thr_wait_block(&w);
}

static struct srv_req *take(struct srv_conn *c, const struct srv_req *h, size_t bytes)
{
	struct srv_req *r = blk_srv_req_get(c, bytes);

	if (!r)
		return NULL;
	r->flags = h->flags;
	r->cmd = h->cmd;
	r->cookie = h->cookie;
	r->off = h->off;
	r->len = h->len;
	return r;
}

static int refuse(struct srv_conn *c, const struct srv_req *h, uint32_t error)
{
	struct srv_req *r;

	if (h->cmd == NBDP_CMD_WRITE && (h->len > SRV_SKIP_MAX || blk_srv_skip(c, h->len)))
		return -EPROTO;
	r = take(c, h, 0);
	if (!r)
		return -ENOMEM;
	blk_srv_finish(r, error);
	return 0;
}

/* A write that is too large to wait for as a whole. After an error its data is skipped. */
static int large_write(struct srv_conn *c, struct srv_req *r)
{
	struct blk_req q = request(r);
	struct thr_iov v = {r->buf, 0};
	uint32_t left = r->len;
	int err = 0, gone = 0;

	q.iov = &v;
	q.niov = 1;
	while (left && !gone) {
		v.len = THR_MIN(left, SRV_PIECE);
		q.len = v.len;
		gone = blk_srv_recv(c, r->buf, v.len);
		if (!gone && !err)
			err = write_data(c, &q);
		q.off += v.len;
		left -= (uint32_t)v.len;
	}
	if (gone)
		blk_srv_req_put(r);
	else
		blk_srv_finish(r, blk_srv_error(err));
	return gone;
}

static int start(struct srv_conn *c, const struct srv_req *h)
{
	size_t bytes = memory_of(c, h);
	struct srv_req *r = take(c, h, bytes);
	int err;

	if (!r)
		return -ENOMEM;
	if (r->cmd == NBDP_CMD_WRITE) {
		r->buf = blk_srv_buf_get(c, THR_MAX(bytes, 1), &r->cls);
		if (r->buf && r->len > SRV_PIECE)
			return large_write(c, r);
		err = r->buf ? blk_srv_recv(c, r->buf, r->len) : -ENOMEM;
		if (err) {
			blk_srv_req_put(r);
			return err;
		}
	}
	err = thr_spawn(thr_exec_self(), run, r);
	if (err)
		blk_srv_finish(r, NBDP_ENOMEM);
	/* So that what it leaves in the queue is seen before the next one is taken: data that
	 * waits there long is no longer in the processor's cache. */
	if (bytes >= SRV_BACKLOG / 4)
		thr_yield();
	return 0;
}

static int next(struct srv_conn *c, const uint8_t *head)
{
	struct srv_req h = {
		.c = c,
		.flags = thr_be16(head + 4),
		.cmd = thr_be16(head + 6),
		.cookie = thr_be64(head + 8),
		.off = thr_be64(head + 16),
		.len = thr_be32(head + 24),
	};
	uint32_t error;

	if (thr_be32(head) != NBDP_REQUEST_MAGIC)
		return -EPROTO;
	if (h.cmd == NBDP_CMD_DISC)
		return -ESHUTDOWN;
	error = judge(c, &h);
	if (error)
		return refuse(c, &h, error);
	if (h.cmd == NBDP_CMD_READ && h.len > SRV_PIECE && !c->structured) {
		quiesce(c);
		return blk_srv_large_read(c, &h);
	}
	return start(c, &h);
}

void blk_srv_talk(struct srv_conn *c)
{
	uint8_t head[NBDP_REQUEST_LEN];
	int err;

	do {
		err = blk_srv_recv(c, head, sizeof(head));
		if (!err)
			err = next(c, head);
	} while (!err && !c->dead);
	/* Who says goodbye has all replies first; who breaks the protocol has not. */
	if (err == -EPROTO)
		blk_srv_kill(c);
	quiesce(c);
}
