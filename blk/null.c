/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/null.c - the driver "null": a device without storage, for measurements.
 * Reads give zeroes, or nothing at all; writes vanish.
 */
#include "blk/private.h"

struct null {
	struct blk b;
	uint64_t latency_ns;
	bool read_zeroes;
};

static struct null *null_of(struct blk *b)
{
	return THR_CONTAINER(b, struct null, b);
}

static void null_pause(const struct null *n)
{
	if (THR_UNLIKELY(n->latency_ns))
		blk_pause(n->latency_ns);
}

static int null_preadv(struct blk *b, struct blk_req *r)
{
	struct null *n = null_of(b);

	null_pause(n);
	if (n->read_zeroes)
		blk_req_fill(r, 0, 0, (size_t)r->len);
	return 0;
}

static int null_write(struct blk *b, struct blk_req *r)
{
	(void)r;
	null_pause(null_of(b));
	return 0;
}

static int null_flush(struct blk *b)
{
	null_pause(null_of(b));
	return 0;
}

static int null_status(struct blk *b, uint64_t off, uint64_t len, struct blk_extent *e)
{
	(void)off;
	e->len = len;
	e->flags = BLK_EXT_ALLOC | (null_of(b)->read_zeroes ? BLK_EXT_ZERO : BLK_EXT_DATA);
	return 0;
}

static int null_truncate(struct blk *b, uint64_t size, enum blk_prealloc p, struct blk_err *err)
{
	(void)p;
	(void)err;
	blk_set_size(b, size);
	return 0;
}

static int null_allocated(struct blk *b, uint64_t *bytes)
{
	(void)b;
	*bytes = 0;
	return 0;
}

static void null_close(struct blk *b)
{
	blk_fini(b);
	thr_put(b->mem, null_of(b), sizeof(struct null));
}

static const struct blk_ops null_ops = {
	.name = "null",
	.preadv = null_preadv,
	.pwritev = null_write,
	.zero = null_write,
	.discard = null_write,
	.flush = null_flush,
	.status = null_status,
	.truncate = null_truncate,
	.allocated = null_allocated,
	.close = null_close,
};

struct null_opts {
	uint64_t size, latency_ns;
	bool read_zeroes;
};

static int null_opts(struct null_opts *n, const struct blk_opts *o, struct blk_err *err)
{
	int code = blk_opt_size(o, "size", (uint64_t)1 << 30, &n->size, err);

	if (!code)
		code = blk_opt_size(o, "latency-ns", 0, &n->latency_ns, err);
	if (!code)
		code = blk_opt_bool(o, "read-zeroes", true, &n->read_zeroes, err);
	if (code)
		return code;
	if (n->size > BLK_MAX_SIZE)
		return blk_fail(err, -THR_EFBIG, BLK_E_SYS, 0, n->size);
	if (n->latency_ns && !blk_can_pause)
		return blk_fail_str(err, -THR_ENOTSUP, BLK_E_NOT_BUILT, "CONFIG_THR_FIBERS");
	return 0;
}

static int null_open(struct blk **out, const struct blk_open *o, struct blk_err *err)
{
	struct null_opts opts;
	struct null *n;
	int code = null_opts(&opts, o->opts, err);

	if (code)
		return code;
	n = thr_get(o->mem, sizeof(*n), 16);
	if (!n)
		return blk_fail(err, -THR_ENOMEM, BLK_E_SYS, 0, sizeof(*n));
	blk_init(&n->b, &null_ops, "null", o->flags, o->mem);
	n->latency_ns = opts.latency_ns;
	n->read_zeroes = opts.read_zeroes;
	blk_set_size(&n->b, opts.size);
	*out = &n->b;
	return 0;
}

static const char *const null_keys[] = {"size", "latency-ns", "read-zeroes", NULL};

const struct blk_driver blk_null_driver = {
	.name = "null",
	.keys = null_keys,
	.open = null_open,
};
