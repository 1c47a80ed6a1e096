/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/op/check.c - checking an image, where its format can be checked.
 */
#include "fmt/drivers.h"

int fmt_check(struct blk *image, struct fmt_check *c, struct blk_err *err)
{
	const struct fmt_driver *d = fmt_driver_of(image);

	c->corruptions = c->leaks = c->check_errors = 0;
	c->corruptions_fixed = c->leaks_fixed = 0;
	c->total_clusters = c->allocated_clusters = 0;
	c->fragmented_clusters = c->compressed_clusters = 0;
	c->image_end = 0;
	if (!d || !d->check)
		return blk_fail(err, -THR_ENOTSUP, BLK_E_NO_CHECK, 0, 0);
	return d->check(image, c, err);
}
