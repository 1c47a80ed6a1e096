/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/serve_read.c - reads. With structured replies a read of some length is cut where
 * the device says that zeroes begin and end: those are neither read nor sent.
 */
#include <errno.h>

#include "blk/serve.h"

#define ASK_FROM (64u << 10) /* bytes: shorter reads do not ask */

static void done(struct srv_out *o)
{
	blk_srv_req_put(THR_CONTAINER(o, struct srv_req, out));
}

static void data_head(
	struct srv_out *o, const struct srv_req *r, unsigned flags, uint64_t off, uint32_t len)
{
	blk_srv_chunk(o, r, flags, NBDP_REPLY_OFFSET_DATA, 8 + len);
	thr_put_be64(o->head + NBDP_CHUNK_LEN, off);
	o->head_len += 8;
}

static void hole_chunk(
	struct srv_out *o, const struct srv_req *r, unsigned flags, uint64_t off, uint32_t len)
{
	blk_srv_chunk(o, r, flags, NBDP_REPLY_OFFSET_HOLE, 12);
	thr_put_be64(o->head + NBDP_CHUNK_LEN, off);
	thr_put_be32(o->head + NBDP_CHUNK_LEN + 8, len);
	o->head_len += 12;
}

/* Where the next piece of the read at @off ends, and whether it reads as zeroes. */
static bool is_hole(const struct srv_req *r, uint64_t off, uint32_t *len)
{
	uint64_t n;
	uint32_t flags;

	if (*len < ASK_FROM || blk_srv_allocation(r->c, off, *len, &n, &flags))
		return false;
	*len = (uint32_t)THR_MIN(*len, n);
	return flags & BLK_NBD_ZERO;
}

struct job {
	struct blk *dev;
	uint64_t off;
	void *buf;
	size_t len;
};

static int read_job(void *arg)
{
	struct job *j = (struct job *)arg;

	return blk_pread(j->dev, j->off, j->buf, j->len);
}

/* Reads @len bytes into the request's buffer. A connection has one executor, and what is
 * compressed or encrypted takes long: reads of some length that there are several of go
 * to all executors in turns. */
static int read_buf(struct srv_req *r, uint64_t off, uint32_t len)
{
	struct srv_conn *c = r->c;
	struct job j = {c->export->dev, off, r->buf, len};
	struct thr_pool *pool = c->srv->pool;
	struct thr_exec *e = NULL;
	struct thr_group g;

	if (pool && len >= ASK_FROM && c->inflight > 1 && !c->export->plain)
		e = thr_pool_exec(pool, c->next_exec++ % thr_pool_count(pool));
	if (!e || e == thr_exec_self())
		return read_job(&j);
	thr_group_init(&g);
	if (thr_group_spawn(&g, e, read_job, &j))
		return read_job(&j);
	return thr_group_wait(&g);
}

/* The payload of the request's last reply, whose head is there but for @len. */
static int get_data(struct srv_req *r, uint64_t off, uint32_t len)
{
	struct srv_out *o = &r->out;

	o->len = len;
	o->off = off;
	o->buf = r->buf;
	o->fd = blk_srv_file(r->c, off, len);
	o->data = o->fd < 0 ? r->buf : NULL;
	return o->fd < 0 ? read_buf(r, off, len) : 0;
}

/* The rest of the read in one chunk, which is sent while others go on. */
static void finish_with_data(struct srv_req *r, uint64_t off, uint32_t len)
{
	struct srv_conn *c = r->c;
	int err;

	data_head(&r->out, r, NBDP_REPLY_DONE, off, len);
	err = get_data(r, off, len);
	if (err) {
		blk_srv_finish(r, blk_srv_error(err));
		return;
	}
	r->out.sent = done;
	blk_srv_queue(c, &r->out);
}

static int send_piece(struct srv_req *r, uint64_t off, uint32_t *len, bool hole)
{
	struct srv_out o;
	int err = 0;

	if (hole) {
		hole_chunk(&o, r, 0, off, *len);
	} else {
		*len = THR_MIN(*len, SRV_PIECE);
		err = blk_pread(r->c->export->dev, off, r->buf, *len);
		data_head(&o, r, 0, off, *len);
		o.data = r->buf;
		o.len = *len;
	}
	if (!err)
		blk_srv_queue_wait(r->c, &o);
	return err;
}

static void read_chunks(struct srv_req *r)
{
	uint64_t off = r->off, end = off + r->len;
	int err = 0;

	while (!err && off < end && !r->c->dead) {
		uint32_t len = (uint32_t)(end - off);
		bool hole = !(r->flags & NBDP_CMD_DF) && is_hole(r, off, &len);

		if (!hole && off + len == end && len <= SRV_PIECE) {
			finish_with_data(r, off, len);
			return;
		}
		err = send_piece(r, off, &len, hole);
		off += len;
	}
	blk_srv_finish(r, blk_srv_error(err));
}

static void read_simple(struct srv_req *r)
{
	struct srv_out *o = &r->out;
	int err = get_data(r, r->off, r->len);

	if (err) {
		blk_srv_finish(r, blk_srv_error(err));
		return;
	}
	thr_put_be32(o->head, NBDP_SIMPLE_MAGIC);
	thr_put_be32(o->head + 4, 0);
	thr_put_be64(o->head + 8, r->cookie);
	o->head_len = NBDP_SIMPLE_LEN;
	o->sent = done;
	blk_srv_queue(r->c, o);
}

void blk_srv_read(struct srv_req *r)
{
	if (!r->len) {
		blk_srv_finish(r, 0);
		return;
	}
	r->buf = blk_srv_buf_get(r->c, THR_MIN(r->len, SRV_PIECE), &r->cls);
	if (!r->buf)
		blk_srv_finish(r, NBDP_ENOMEM);
	else if (r->c->structured)
		read_chunks(r);
	else
		read_simple(r);
}

/* Once the header is out there is no way to tell of an error but to hang up. */
int blk_srv_large_read(struct srv_conn *c, const struct srv_req *h)
{
	struct blk *dev = c->export->dev;
	uint8_t head[NBDP_SIMPLE_LEN];
	unsigned cls;
	void *buf = blk_srv_buf_get(c, SRV_PIECE, &cls);
	int err = buf ? blk_pread(dev, h->off, buf, SRV_PIECE) : -ENOMEM;
	uint32_t at = 0;
	int gone;

	thr_put_be32(head, NBDP_SIMPLE_MAGIC);
	thr_put_be32(head + 4, blk_srv_error(err));
	thr_put_be64(head + 8, h->cookie);
	gone = blk_srv_send(c, head, sizeof(head));
	while (!gone && !err && at < h->len) {
		uint32_t n = THR_MIN(h->len - at, SRV_PIECE);

		gone = at ? blk_pread(dev, h->off + at, buf, n) : 0;
		if (!gone)
			gone = blk_srv_send(c, buf, n);
		at += n;
	}
	blk_srv_buf_put(c, buf, cls);
	return gone ? -EPROTO : 0;
}
