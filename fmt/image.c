/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/image.c - an image over a device that is open: the part of opening that
 * knows no file names.
 */
#include "fmt/drivers.h"

int fmt_open_on(
	struct blk **out, struct blk *file, const struct fmt_open *o, struct blk_err *err)
{
	const char *format = o->format ? o->format : fmt_opts_driver(o->opts);
	const struct fmt_driver *d;
	int code;

	if (!format && o->flags & FMT_NEED_FORMAT)
		return blk_fail(err, -THR_EINVAL, BLK_E_FORMAT_NEEDED, 0, 0);
	if (!format) {
		struct blk_err own = BLK_ERR_INIT;

		format = fmt_probe(file, err ? err : &own);
		if (!format)
			return err ? err->code : own.code;
	}
	code = fmt_driver_get(format, &d, err);
	if (!code)
		code = fmt_opts_taken(d, o, err);
	return code ? code : d->open(out, file, o, err);
}

void fmt_set_backing(struct blk *image, struct blk *backing)
{
	THR_ASSERT(!image->backing);
	image->backing = backing;
}

/* The chain is taken apart in a loop, however long it is. What lies below the image is
 * open for writing only where it was asked for. */
int fmt_close(struct blk *image)
{
	int err = 0;

	while (image) {
		struct blk *below = image->backing;
		int e = fmt_flush_pending(image);

		err = err ? err : e;

		image->backing = NULL;
		blk_close(image);
		image = below;
	}
	return err;
}
