/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/image.c - an image over a device that is open: the part of opening that
 * knows no file names.
 */
#include "fmt/drivers.h"

/* Options that belong to the device below the image. */
static bool for_file(const char *key)
{
	static const char prefix[] = "file.";

	for (unsigned i = 0; i < sizeof(prefix) - 1; i++)
		if (key[i] != prefix[i])
			return false;
	return true;
}

static bool taken(const struct fmt_driver *d, const char *key)
{
	for (const char *const *k = d->open_opts; k && *k; k++)
		if (fmt_streq(*k, key))
			return true;
	return fmt_streq(key, "driver") || for_file(key);
}

static int opts_taken(const struct fmt_driver *d, const struct blk_opts *o, struct blk_err *err)
{
	for (unsigned i = 0; o && i < o->n; i++)
		if (!taken(d, o->v[i].key))
			return blk_fail_str(err, -THR_EINVAL, BLK_E_BAD_OPTION, o->v[i].key);
	return 0;
}

int fmt_open_on(
	struct blk **out, struct blk *file, const struct fmt_open *o, struct blk_err *err)
{
	const char *format = o->format ? o->format : blk_opt(o->opts, "driver");
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
		code = opts_taken(d, o->opts, err);
	return code ? code : d->open(out, file, o, err);
}

void fmt_set_backing(struct blk *image, struct blk *backing)
{
	THR_ASSERT(!image->backing);
	image->backing = backing;
}

/* Only the image itself can have anything to flush: what lies below it is read. The
 * chain is taken apart in a loop, however long it is. */
int fmt_close(struct blk *image)
{
	int err;

	if (!image)
		return 0;
	err = fmt_flush_pending(image);
	while (image) {
		struct blk *below = image->backing;

		image->backing = NULL;
		blk_close(image);
		image = below;
	}
	return err;
}
