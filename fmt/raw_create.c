/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/raw_create.c - new raw images, and how large they will be.
 */
#include "fmt/raw.h"

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

int fmt_raw_create(struct blk *file, const struct fmt_create *c, struct blk_err *err)
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

int fmt_raw_measure(const struct fmt_create *c, struct fmt_layout *l, struct blk_err *err)
{
	(void)err;
	l->data = thr_align_up(c->size, RAW_SECTOR);
	return 0;
}

const struct fmt_opt fmt_raw_create_opts[] = {
	{"size", FMT_OPT_SIZE, "Virtual disk size", NULL},
	{"preallocation", FMT_OPT_STRING,
		"Preallocation mode (allowed values: off, falloc, full)", NULL},
	{NULL, FMT_OPT_BOOL, NULL, NULL},
};
