/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/op/snapshot.c - choosing a snapshot by what a user calls it.
 */
#include "fmt/drivers.h"

#define ID   "snapshot.id="
#define NAME "snapshot.name="

struct tag {
	const char *id, *name;
};

/* The value at @s, up to a comma, into *out; doubled commas become one. Where it goes
 * on, or NULL at the end. */
static const char *value(const char *s, char **out)
{
	while (*s) {
		if (*s == ',' && *++s != ',') {
			*(*out)++ = 0;
			return s;
		}
		*(*out)++ = *s++;
	}
	*(*out)++ = 0;
	return NULL;
}

/* @buf has room for all of @s. */
static bool parse(const char *s, char *buf, struct tag *t)
{
	while (s) {
		const char **to = NULL;

		if (!strncmp(s, ID, sizeof(ID) - 1)) {
			to = &t->id;
			s += sizeof(ID) - 1;
		} else if (!strncmp(s, NAME, sizeof(NAME) - 1)) {
			to = &t->name;
			s += sizeof(NAME) - 1;
		} else {
			return false;
		}
		*to = buf;
		s = value(s, &buf);
	}
	return true;
}

static int by_either(
	struct blk *image, const struct fmt_driver *d, const char *tag, struct blk_err *err)
{
	struct blk_err own = BLK_ERR_INIT;
	int ret = d->select(image, tag, NULL, &own);

	if (ret == -THR_ENOENT)
		return d->select(image, NULL, tag, err);
	if (ret && err)
		*err = own;
	return ret;
}

int fmt_snapshot_select(struct blk *image, const char *tag, struct blk_err *err)
{
	const struct fmt_driver *d = fmt_driver_of(image);
	bool options = !strncmp(tag, "snapshot.", sizeof("snapshot.") - 1);
	size_t size = strlen(tag) + 1;
	struct tag t = {NULL, NULL};
	char *buf;
	int ret;

	if (!d || !d->select)
		return blk_fail(err, -THR_ENOTSUP, BLK_E_NO_SNAPSHOTS, 0, 0);
	if (image->flags & BLK_RDWR)
		return blk_fail(err, -THR_EINVAL, BLK_E_NO_SNAPSHOT, 0, 0);
	if (!options)
		return by_either(image, d, tag, err);
	buf = thr_get(image->mem, size, 1);
	if (!buf)
		return blk_fail(err, -THR_ENOMEM, BLK_E_SYS, 0, 0);
	if (parse(tag, buf, &t))
		ret = d->select(image, t.id, t.name, err);
	else
		ret = blk_fail_str(err, -THR_EINVAL, BLK_E_SNAPSHOT_TAG, tag);
	thr_put(image->mem, buf, size);
	return ret;
}
