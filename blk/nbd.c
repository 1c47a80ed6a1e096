/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/nbd.c - the driver "nbd": an export of an NBD server, through libnbd.
 * https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md
 *
 * Nothing is cached: neither data nor extents, as others may write to the export.
 * A flush covers every connection, since more than one is made only where the server
 * says that it does (NBD_FLAG_CAN_MULTI_CONN).
 */
#include <errno.h>

#include "blk/nbd.h"

#define MAX_IO       (32u << 20) /* what a server must take where it names no limit */
#define MAX_CHUNK    (1u << 30)  /* of zero, trim and status: 32 bits, and aligned */
#define MAX_BLOCK    65536u      /* the protocol's limit of minimum block sizes */
#define GRAIN        4096u
#define SECOND       1000000000ull
#define HANDSHAKE_NS (30 * SECOND)
#define PAUSE_NS     (SECOND / 10)

static struct blk_nbd *nbd_of(struct blk *b)
{
	return THR_CONTAINER(b, struct blk_nbd, b);
}

/* ---- data ----------------------------------------------------------------------------- */

/* The last block may pass the end, where the server has nothing. */
static uint64_t within(const struct blk *b, const struct blk_req *r)
{
	uint64_t size = blk_size(b);

	return r->off < size ? THR_MIN(r->len, size - r->off) : 0;
}

static int transfer(struct blk *b, struct blk_req *r, struct nbd_req *q)
{
	size_t len = (size_t)q->len;
	void *bounce = NULL;
	int err;

	q->buf = blk_req_piece(r, 0, &len);
	if (len < q->len) {
		len = (size_t)q->len;
		bounce = q->buf = thr_get(b->mem, len, 4096);
		if (!bounce)
			return -ENOMEM;
		if (q->op == NBD_OP_WRITE)
			blk_req_to_buf(r, 0, bounce, len);
	}
	err = blk_nbd_request(nbd_of(b), q);
	if (!bounce)
		return err;
	if (!err && q->op == NBD_OP_READ)
		blk_req_from_buf(r, 0, bounce, len);
	thr_put(b->mem, bounce, len);
	return err;
}

static int nbd_preadv(struct blk *b, struct blk_req *r)
{
	struct nbd_req q = {.op = NBD_OP_READ, .off = r->off, .len = within(b, r)};

	if (q.len < r->len)
		blk_req_fill(r, q.len, 0, (size_t)(r->len - q.len));
	return q.len ? transfer(b, r, &q) : 0;
}

static int nbd_pwritev(struct blk *b, struct blk_req *r)
{
	struct nbd_req q = {.op = NBD_OP_WRITE, .off = r->off, .len = within(b, r)};

	q.flags = r->flags & BLK_FUA ? LIBNBD_CMD_FLAG_FUA : 0;
	return q.len ? transfer(b, r, &q) : 0;
}

/* ---- what has no data ------------------------------------------------------------------ */

static int in_chunks(struct blk *b, struct blk_req *r, enum nbd_op op, uint32_t flags)
{
	uint64_t len = within(b, r);
	int err = 0;

	for (uint64_t at = 0; !err && at < len; at += MAX_CHUNK) {
		struct nbd_req q = {.op = op, .flags = flags, .off = r->off + at};

		q.len = THR_MIN(len - at, MAX_CHUNK);
		err = blk_nbd_request(nbd_of(b), &q);
	}
	return err;
}

static int nbd_zero_range(struct blk *b, struct blk_req *r)
{
	const struct nbd_traits *t = &nbd_of(b)->traits;
	uint32_t flags = 0;

	if (!t->zero || (r->flags & BLK_NO_FALLBACK && !t->fast_zero))
		return -ENOTSUP;
	if (r->flags & BLK_FUA)
		flags |= LIBNBD_CMD_FLAG_FUA;
	if (!(r->flags & BLK_UNMAP))
		flags |= LIBNBD_CMD_FLAG_NO_HOLE;
	if (r->flags & BLK_NO_FALLBACK)
		flags |= LIBNBD_CMD_FLAG_FAST_ZERO;
	return in_chunks(b, r, NBD_OP_ZERO, flags);
}

static int nbd_discard(struct blk *b, struct blk_req *r)
{
	return nbd_of(b)->traits.trim ? in_chunks(b, r, NBD_OP_TRIM, 0) : -ENOTSUP;
}

/* In whole blocks, as all requests to a server are. */
static int nbd_prefetch(struct blk *b, uint64_t off, uint64_t len)
{
	uint64_t from = thr_align_down(off, b->align);
	struct blk_req r = {.off = from, .len = thr_align_up(off + len, b->align) - from};

	return nbd_of(b)->traits.cache ? in_chunks(b, &r, NBD_OP_CACHE, 0) : -ENOTSUP;
}

static void raise_flushed(struct blk_nbd *d, uint64_t to)
{
	blk_raise(&d->flushed, to);
}

static int nbd_sync(struct blk *b)
{
	struct blk_nbd *d = nbd_of(b);
	uint64_t covers = blk_load(&d->writes);
	struct nbd_req q = {.op = NBD_OP_FLUSH};
	int err;

	if (blk_load(&d->torn))
		return -EIO;
	if (!d->traits.flush)
		return 0;
	err = blk_nbd_request(d, &q);
	/* The answer may be that of another server than the writes'. */
	if (!err && blk_load(&d->torn))
		err = -EIO;
	if (!err)
		raise_flushed(d, covers);
	return err;
}

/* Asks for one extent. A hole that is not said to read as zeroes has to be read. */
static int nbd_status(struct blk *b, uint64_t off, uint64_t len, struct blk_extent *e)
{
	struct blk_nbd *d = nbd_of(b);
	uint64_t from = thr_align_down(off, b->align), skip = off - from;
	uint64_t end = THR_MIN(thr_align_up(off + len, b->align), blk_size(b));
	struct nbd_req q = {.op = NBD_OP_STATUS, .flags = LIBNBD_CMD_FLAG_REQ_ONE, .off = from};
	int err;

	e->len = len;
	e->flags = BLK_EXT_ALLOC | BLK_EXT_DATA;
	if (!d->traits.extents)
		return 0;
	q.len = THR_MIN(end - from, MAX_CHUNK);
	err = blk_nbd_request(d, &q);
	if (err)
		return err;
	if (q.extent_len <= skip)
		return -EPROTO;
	e->len = THR_MIN(len, q.extent_len - skip);
	if (q.extent_flags & LIBNBD_STATE_ZERO)
		e->flags = BLK_EXT_ALLOC | BLK_EXT_ZERO |
			   (q.extent_flags & LIBNBD_STATE_HOLE ? 0u : BLK_EXT_DATA);
	return 0;
}

/* ---- opening and closing ------------------------------------------------------------------
 */

static bool nbd_same(struct blk *a, struct blk *b)
{
	return blk_nbd_target_same(&nbd_of(a)->to, &nbd_of(b)->to);
}

static void nbd_end(struct blk *b)
{
	struct blk_nbd *d = nbd_of(b);

	thr_exec_close(d->plain);
	for (unsigned i = 0; i < NBD_MAX_LINKS; i++)
		blk_nbd_link_fini(&d->links[i]);
	blk_fini(b);
	blk_nbd_target_fini(&d->to, b->mem);
	thr_put(b->mem, d, sizeof(*d));
}

static const struct blk_ops nbd_ops = {
	.name = "nbd",
	.preadv = nbd_preadv,
	.pwritev = nbd_pwritev,
	.zero = nbd_zero_range,
	.discard = nbd_discard,
	.flush = nbd_sync,
	.status = nbd_status,
	.prefetch = nbd_prefetch,
	.same = nbd_same,
	.close = nbd_end,
};

static int dial(struct nbd_dial *n, struct blk_err *err)
{
	uint64_t tries_until = thr_now() + n->to->open_timeout * SECOND;
	int code;

	for (;;) {
		n->until = THR_MAX(tries_until, thr_now() + HANDSHAKE_NS);
		code = blk_nbd_dial(n);
		if (!code)
			return 0;
		if (!blk_nbd_passing(n, code) || thr_now() >= tries_until)
			return blk_fail_str(err, code, BLK_E_NBD_CONNECT, n->text);
		thr_sleep(PAUSE_NS);
	}
}

static int check_traits(const struct nbd_traits *t, unsigned flags, struct blk_err *err)
{
	if (t->min > MAX_BLOCK || (t->min && !thr_is_pow2(t->min)))
		return blk_fail(err, -EPROTO, BLK_E_NBD_BLOCK, 0, t->min);
	if (t->max && (t->max < t->min || t->max < 512))
		return blk_fail(err, -EPROTO, BLK_E_NBD_BLOCK, 0, t->max);
	if (flags & BLK_RDWR && t->read_only)
		return blk_fail(err, -EACCES, BLK_E_READ_ONLY, 0, 0);
	return 0;
}

static void apply_traits(struct blk_nbd *d)
{
	const struct nbd_traits *t = &d->traits;

	d->b.align = (uint32_t)THR_MAX(t->min, 1);
	d->b.max_io = t->max ? (uint32_t)THR_MIN(t->max, MAX_IO) : MAX_IO;
	d->b.zero_align = THR_MAX(d->b.align, GRAIN);
	if (thr_is_pow2(t->pref) && t->pref <= MAX_BLOCK)
		d->b.zero_align = (uint32_t)THR_MAX(t->pref, d->b.zero_align);
	d->b.fua = t->fua;
	blk_set_size(&d->b, t->size);
	d->nlinks = t->multi ? d->to.connections : 1;
}

static int connect_first(struct blk_nbd *d, unsigned flags, struct blk_err *err)
{
	struct nbd_dial n = {.to = &d->to};
	int code = dial(&n, err);

	if (code)
		return code;
	code = check_traits(&n.traits, flags, err);
	if (code) {
		libnbd.close(n.h);
		return code;
	}
	d->traits = n.traits;
	apply_traits(d);
	blk_nbd_link_use(&d->links[0], n.h);
	return 0;
}

static int nbd_open(struct blk **out, const struct blk_open *o, struct blk_err *err)
{
	struct nbd_target to;
	struct blk_nbd *d;
	int code = blk_nbd_need(err);

	if (!code)
		code = blk_nbd_target_init(&to, o, err);
	if (code)
		return code;
	d = (struct blk_nbd *)thr_get(o->mem, sizeof(*d), 64);
	if (!d) {
		blk_nbd_target_fini(&to, o->mem);
		return blk_fail(err, -ENOMEM, BLK_E_SYS, 0, sizeof(*d));
	}
	memset(d, 0, sizeof(*d));
	blk_init(&d->b, &nbd_ops, to.name, o->flags, o->mem);
	d->to = to;
	thr_mutex_init(&d->seating);
	thr_mutex_init(&d->plain_lock);
	for (unsigned i = 0; i < NBD_MAX_LINKS; i++)
		blk_nbd_link_init(&d->links[i], d);
	code = connect_first(d, o->flags, err);
	if (code) {
		nbd_end(&d->b);
		return code;
	}
	*out = &d->b;
	return 0;
}

/* The first blocks, where formats have their magic. */
static int clear_start(struct blk *b)
{
	struct thr_iov v = {.len = (size_t)THR_MIN(blk_size(b), THR_MAX(b->align, GRAIN))};
	struct blk_req r = {.len = v.len, .iov = &v, .niov = 1};
	int err;

	if (!r.len || !nbd_zero_range(b, &r))
		return 0;
	v.base = thr_zget(b->mem, v.len);
	if (!v.base)
		return -ENOMEM;
	err = nbd_pwritev(b, &r);
	thr_put(b->mem, v.base, v.len);
	return err;
}

/* There is no making exports: one that is there is emptied as far as it takes for nobody to
 * see in it what it was. */
static int nbd_make(const char *name, uint64_t size, enum blk_prealloc p,
	const struct thr_alloc *mem, struct blk_err *err)
{
	struct blk_open o = {.name = name, .flags = BLK_RDWR, .mem = mem};
	struct blk *b;
	int code;

	if (p != BLK_PREALLOC_OFF)
		return blk_fail_str(err, -ENOTSUP, BLK_E_PREALLOC, "falloc or full");
	code = nbd_open(&b, &o, err);
	if (code)
		return code;
	if (size > blk_size(b)) {
		code = blk_fail(err, -ENOSPC, BLK_E_CANNOT_GROW, 0, blk_size(b));
	} else {
		code = clear_start(b);
		if (code)
			blk_fail(err, code, BLK_E_SYS, 0, 0);
	}
	blk_close(b);
	return code;
}

const struct blk_driver blk_nbd_driver = {
	.name = "nbd",
	.keys = blk_nbd_keys,
	.open = nbd_open,
	.create = nbd_make,
};
