/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/op/create.c - new images.
 *
 * Everything that can be found wrong is found before the file is touched. A file
 * that was not there is removed again when the rest fails.
 */
#include <unistd.h>

#include "fmt/drivers.h"

static bool has_opt(const struct fmt_driver *d, const char *name)
{
	for (const struct fmt_opt *o = d->create_opts; o && o->name; o++)
		if (fmt_streq(o->name, name))
			return true;
	return false;
}

int fmt_create_opts_known(
	const struct fmt_driver *d, const struct blk_opts *o, struct blk_err *err)
{
	for (unsigned i = 0; o && i < o->n; i++)
		if (!has_opt(d, o->v[i].key))
			return blk_fail_str(err, -THR_EINVAL, BLK_E_BAD_OPTION, o->v[i].key);
	return 0;
}

/* The backing file is opened, with all that it stands on, to see that it is one and
 * to learn its length and age. */
static int open_backing(struct fmt_create *c, uint64_t *size, struct blk_err *err)
{
	char *path = thr_get(c->mem, FMT_NAME_MAX, 16);
	struct fmt_open o = {
		.name = path,
		.format = c->backing_format,
		.flags = c->flags,
		.secrets = c->secrets,
		.mem = c->mem,
	};
	struct blk *b;
	int code;

	if (!path)
		return blk_fail(err, -THR_ENOMEM, BLK_E_SYS, 0, 0);
	code = fmt_backing_path(c->name, c->backing, path, FMT_NAME_MAX);
	if (code)
		blk_fail(err, code, BLK_E_SYS, 0, 0);
	else
		code = fmt_open(&b, &o, err);
	if (!code) {
		*size = blk_size(b);
		c->backing_bytes = fmt_bytes(b);
		if (blk_mtime(b, &c->backing_mtime))
			c->backing_mtime = 0;
		code = fmt_close(b);
	}
	thr_put(c->mem, path, FMT_NAME_MAX);
	return code;
}

static int check_backing(const struct fmt_driver *d, struct fmt_create *c, struct blk_err *err)
{
	uint64_t size = 0;
	int code;

	if (c->backing && !*c->backing)
		c->backing = NULL;
	if (!c->backing && c->backing_format)
		return blk_fail(err, -THR_EINVAL, BLK_E_FORMAT_NO_BACKING, 0, 0);
	if (!c->backing)
		return 0;
	if (!has_opt(d, "backing_file"))
		return blk_fail_str(err, -THR_ENOTSUP, BLK_E_NO_BACKING, d->name);
	if (!c->backing_format)
		return blk_fail(err, -THR_EINVAL, BLK_E_BACKING_NO_FORMAT, 0, 0);
	if (!fmt_driver_find(c->backing_format))
		return blk_fail_str(err, -THR_EINVAL, BLK_E_NO_FORMAT, c->backing_format);
	if (c->unsafe_backing)
		return 0;
	code = open_backing(c, &size, err);
	if (!code && !c->has_size) {
		c->size = size;
		c->has_size = true;
	}
	return code;
}

int fmt_create_check(struct fmt_create *c, struct blk_err *err)
{
	const struct fmt_driver *d;
	int code;

	if (!c->format)
		c->format = "raw";
	code = fmt_driver_get(c->format, &d, err);
	if (!code)
		code = fmt_secrets_known(c->secrets, c->opts, err);
	if (!code)
		code = fmt_create_opts_known(d, c->opts, err);
	if (code)
		return code;
	if (!d->create)
		return blk_fail_str(err, -THR_ENOTSUP, BLK_E_NO_CREATE, d->name);
	code = check_backing(d, c, err);
	if (code)
		return code;
	if (!c->has_size)
		return blk_fail(err, -THR_EINVAL, BLK_E_NEED_SIZE, 0, 0);
	return 0;
}

/* The file for the data, empty, where the options have one. */
static int make_data(
	struct fmt_create *c, struct blk *file, const char *name, struct blk_err *err)
{
	struct blk_open bo = {
		.name = name,
		.flags = c->blk_flags | BLK_RDWR,
		.mem = c->mem,
	};
	int code;

	if (!strcmp(name, c->name))
		return blk_fail_str(err, -THR_EINVAL, BLK_E_QCOW2_DATA_SAME, c->name);
	if (access(name, F_OK)) {
		code = blk_create(name, 0, BLK_PREALLOC_OFF, c->mem, err);
		if (code)
			return code;
	}
	code = blk_open(&c->data, &bo, err);
	if (code)
		return code;
	if (blk_same(c->data, file))
		return blk_fail_str(err, -THR_EINVAL, BLK_E_QCOW2_DATA_SAME, c->name);
	return c->data->grows ? blk_truncate(c->data, 0, BLK_PREALLOC_OFF, err) : 0;
}

static int fill(struct fmt_create *c, struct blk_err *err)
{
	const struct fmt_driver *d = fmt_driver_find(c->format);
	const char *data = has_opt(d, "data_file") ? blk_opt(c->opts, "data_file") : NULL;

	struct blk_open bo = {
		.name = c->name,
		.flags = c->blk_flags | BLK_RDWR,
		.mem = c->mem,
	};
	struct blk *file;
	int code = blk_open(&file, &bo, err);
	int flushed;

	if (code)
		return code;
	if (data && *data)
		code = make_data(c, file, data, err);
	if (!code)
		code = d->create(file, c, err);
	if (code)
		blk_err_where(err, "Could not create", c->name);
	flushed = code ? 0 : blk_flush(file);
	blk_close(c->data);
	blk_close(file);
	if (!flushed)
		return code;
	blk_fail(err, flushed, BLK_E_SYS, 0, 0);
	blk_err_where(err, "Could not create", c->name);
	return flushed;
}

int fmt_create(const struct fmt_create *c, struct blk_err *err)
{
	struct fmt_create own = *c;
	bool was_there = !access(c->name, F_OK);
	int code = fmt_create_check(&own, err);

	if (code)
		return code;
	code = blk_create(own.name, 0, BLK_PREALLOC_OFF, own.mem, err);
	if (!code)
		code = fill(&own, err);
	if (code && !was_there)
		(void)unlink(own.name);
	return code;
}
