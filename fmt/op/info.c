/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/op/info.c - what an image is, asked of its driver.
 */
#include "fmt/drivers.h"

int fmt_info(struct blk *image, struct fmt_info *info)
{
	const struct fmt_driver *d = fmt_driver_of(image);

	memset(info, 0, sizeof(*info));
	if (!d)
		return -THR_EINVAL;
	info->format = d->name;
	info->virtual_size = blk_size(image);
	return d->info ? d->info(image, info) : 0;
}

void fmt_props(struct blk *image, struct fmt_sink *s)
{
	const struct fmt_driver *d = fmt_driver_of(image);

	if (d && d->props)
		d->props(image, s);
}
