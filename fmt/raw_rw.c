/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/raw_rw.c - the raw driver of a build that writes: what it passes on to the file.
 */
#include "fmt/raw.h"

static int raw_pwritev(struct blk *b, struct blk_req *r)
{
	r->flags |= BLK_CHILD;
	return blk_pwritev(b->file, r);
}

static int raw_zero(struct blk *b, struct blk_req *r)
{
	r->flags |= BLK_CHILD;
	return blk_zero(b->file, r);
}

/* The last sector may reach past the end of the file: nothing is there to discard. */
static int raw_discard(struct blk *b, struct blk_req *r)
{
	uint64_t size = blk_size(b->file);

	if (r->off >= size)
		return 0;
	r->len = THR_MIN(r->len, size - r->off);
	r->flags |= BLK_CHILD;
	return blk_discard(b->file, r);
}

static int raw_truncate(struct blk *b, uint64_t size, enum blk_prealloc p, struct blk_err *err)
{
	int code;

	if (size > INT64_MAX)
		return blk_fail(err, -THR_EFBIG, BLK_E_SYS, 0, size);
	code = blk_truncate(b->file, size, p, err);
	if (!code)
		blk_set_size(b, thr_align_up(size, RAW_SECTOR));
	return code;
}

const struct blk_ops fmt_raw_ops = {
	.name = "raw",
	.preadv = fmt_raw_preadv,
	.pwritev = raw_pwritev,
	.zero = raw_zero,
	.discard = raw_discard,
	.status = fmt_raw_status,
	.truncate = raw_truncate,
	.same = fmt_raw_same,
	.close = fmt_raw_close,
};

const struct fmt_driver fmt_raw_driver = {
	.name = "raw",
	.ops = &fmt_raw_ops,
	.probe = fmt_raw_probe,
	.open = fmt_raw_open,
	.info = fmt_raw_info,
#ifdef CONFIG_HOSTED
	.create = fmt_raw_create,
	.measure = fmt_raw_measure,
	.create_opts = fmt_raw_create_opts,
#endif
};
