/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/opts.c - the options that an image is opened with, and keys and passwords by the
 * ids that they name. Firmware has none (drivers.h).
 */
#include "fmt/drivers.h"

const struct fmt_secret *fmt_secret(const struct fmt_secrets *s, const char *id)
{
	for (unsigned i = 0; s && i < s->n; i++)
		if (fmt_streq(s->v[i].id, id))
			return &s->v[i];
	return NULL;
}

/* "key-secret", also after a dot. */
static bool names_secret(const char *key)
{
	const char *last = key;

	for (; *key; key++)
		if (*key == '.')
			last = key + 1;
	return fmt_streq(last, "key-secret");
}

int fmt_secrets_known(
	const struct fmt_secrets *s, const struct blk_opts *o, struct blk_err *err)
{
	for (unsigned i = 0; o && i < o->n; i++)
		if (names_secret(o->v[i].key) && !fmt_starts(o->v[i].key, "backing.") &&
			!fmt_secret(s, o->v[i].val))
			return blk_fail_str(err, -THR_EINVAL, BLK_E_NO_SECRET, o->v[i].val);
	return 0;
}

/* What the options of the device and of the image below are called. */
static bool for_others(const char *key)
{
	return fmt_streq(key, "driver") || fmt_streq(key, "backing") ||
	       fmt_starts(key, "file.") || fmt_starts(key, "backing.");
}

/* A driver's key with a dot at its end stands for all that begin with it. */
static bool is_prefix(const char *key)
{
	char last = 0;

	for (; *key; key++)
		last = *key;
	return last == '.';
}

static bool taken(const struct fmt_driver *d, const char *key)
{
	for (const char *const *k = d->open_opts; k && *k; k++)
		if (fmt_streq(*k, key) || (is_prefix(*k) && fmt_starts(key, *k)))
			return true;
	return for_others(key);
}

int fmt_opts_taken(const struct fmt_driver *d, const struct fmt_open *o, struct blk_err *err)
{
	for (unsigned i = 0; o->opts && i < o->opts->n; i++)
		if (!taken(d, o->opts->v[i].key))
			return blk_fail_str(
				err, -THR_EINVAL, BLK_E_BAD_OPTION, o->opts->v[i].key);
	return fmt_secrets_known(o->secrets, o->opts, err);
}

const char *fmt_opts_driver(const struct blk_opts *o)
{
	return blk_opt(o, "driver");
}
