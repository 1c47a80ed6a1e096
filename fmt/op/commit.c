/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/op/commit.c - writes an overlay into what it stands on.
 *
 * It is a conversion of the overlay into its base that leaves out what the base has: the
 * base gets what the guest sees, so at every moment the overlay reads as before, and a
 * commit that was cut short can be done again. Only then, and once the base is durable,
 * is the overlay emptied: whatever part of it is given up, the base has it.
 */
#include "fmt/drivers.h"

static bool below(const struct blk *image, const struct blk *base)
{
	const struct blk *b = image->backing;

	while (b && b != base)
		b = b->backing;
	return b;
}

static int grow(struct blk *base, uint64_t size, struct blk_err *err)
{
	int code;

	if (blk_size(base) >= size)
		return 0;
	code = blk_truncate(base, size, BLK_PREALLOC_OFF, err);
	if (code)
		blk_err_where(err, "Could not resize", base->file->name);
	return code;
}

static int copy(const struct fmt_commit *c, struct blk_err *err)
{
	struct fmt_convert cv = {
		.src = &c->image,
		.nsrc = 1,
		.dst = c->base,
		.base = c->base,
		.sparse = 4096,
		.rate = c->rate,
		.progress = c->progress,
	};
	int code = blk_size(c->image) ? fmt_convert(&cv, err) : 0;

	if (code)
		return code;
	code = blk_flush(c->base);
	return code ? blk_fail_str(
			      err, code, BLK_E_SYS_WHAT, "Could not flush the backing file")
		    : 0;
}

static int empty(struct blk *image, struct blk_err *err)
{
	int code = fmt_driver_of(image)->empty(image);

	if (!code)
		code = blk_flush(image);
	return code ? blk_fail_str(err, code, BLK_E_SYS_WHAT, "Could not empty the image") : 0;
}

int fmt_commit(const struct fmt_commit *c, struct blk_err *err)
{
	const struct fmt_driver *d = fmt_driver_of(c->image);
	int code;

	THR_ASSERT(below(c->image, c->base) && (c->keep || c->base == c->image->backing));
	if (!c->keep && (!d || !d->empty))
		return blk_fail_str(err, -THR_ENOTSUP, BLK_E_NO_EMPTY, d ? d->name : "");
	code = grow(c->base, blk_size(c->image), err);
	if (!code)
		code = copy(c, err);
	if (!code && !c->keep)
		code = empty(c->image, err);
	return code;
}
