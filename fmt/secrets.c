/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/secrets.c - keys and passwords, by the ids that options name.
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
