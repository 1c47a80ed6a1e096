/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/raw_rw.c - the raw driver of a build that writes: what it passes on to the
 * file, and creating.
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

/* What is there already and cannot grow has to be long enough. */
static int fit(struct blk *file, uint64_t size, enum blk_prealloc p, struct blk_err *err)
{
	if (file->grows)
		return blk_truncate(file, size, p, err);
	if (p != BLK_PREALLOC_OFF)
		return blk_fail_str(err, -THR_ENOTSUP, BLK_E_PREALLOC, "falloc or full");
	if (size > blk_size(file))
		return blk_fail(err, -THR_ENOSPC, BLK_E_CANNOT_GROW, 0, blk_size(file));
	return 0;
}

static int raw_create(struct blk *file, const struct fmt_create *c, struct blk_err *err)
{
	const char *word = blk_opt(c->opts, "preallocation");
	enum blk_prealloc p = BLK_PREALLOC_OFF;

	if (c->size > INT64_MAX - RAW_SECTOR)
		return blk_fail(err, -THR_EFBIG, BLK_E_SYS, 0, c->size);
	if (word && blk_prealloc_parse(word, &p))
		return blk_fail_str(err, -THR_EINVAL, BLK_E_BAD_VALUE, "preallocation");
	if (p == BLK_PREALLOC_METADATA)
		return blk_fail_str(err, -THR_ENOTSUP, BLK_E_PREALLOC, word);
	return fit(file, thr_align_up(c->size, RAW_SECTOR), p, err);
}

static int raw_measure(const struct fmt_create *c, struct fmt_layout *l, struct blk_err *err)
{
	(void)err;
	l->data = thr_align_up(c->size, RAW_SECTOR);
	return 0;
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

static const struct fmt_opt create_opts[] = {
	{"size", FMT_OPT_SIZE, "Virtual disk size", NULL},
	{"preallocation", FMT_OPT_STRING,
		"Preallocation mode (allowed values: off, falloc, full)", NULL},
	{NULL, FMT_OPT_BOOL, NULL, NULL},
};

const struct fmt_driver fmt_raw_driver = {
	.name = "raw",
	.ops = &fmt_raw_ops,
	.probe = fmt_raw_probe,
	.open = fmt_raw_open,
	.create = raw_create,
	.measure = raw_measure,
	.info = fmt_raw_info,
	.create_opts = create_opts,
};
