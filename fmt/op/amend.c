/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/op/amend.c - options of an image that is there, changed.
 */
#include "fmt/drivers.h"

static bool known(const struct fmt_driver *d, const char *name)
{
	for (const struct fmt_opt *o = d->amend_opts; o && o->name; o++)
		if (fmt_streq(o->name, name))
			return true;
	return false;
}

static bool creates(const struct fmt_driver *d, const char *name)
{
	for (const struct fmt_opt *o = d->create_opts; o && o->name; o++)
		if (fmt_streq(o->name, name))
			return true;
	return false;
}

int fmt_amend(struct blk *image, const struct fmt_amend *m, struct blk_err *err)
{
	const struct fmt_driver *d = fmt_driver_of(image);

	if (!d || !d->amend)
		return blk_fail_str(err, -THR_ENOTSUP, BLK_E_NO_AMEND, d ? d->name : "");
	for (unsigned i = 0; i < m->opts->n; i++) {
		const char *key = m->opts->v[i].key;

		if (known(d, key))
			continue;
		return creates(d, key)
			       ? blk_fail_str(err, -THR_ENOTSUP, BLK_E_AMEND_OPTION, key)
			       : blk_fail_str(err, -THR_EINVAL, BLK_E_BAD_OPTION, key);
	}
	return d->amend(image, m, err);
}
