/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/open.c - opening images by name, and their backing chains.
 *
 * A chain is walked in a loop, which ends after FMT_CHAIN_MAX images and where a
 * file turns up for the second time. Names come from inside images and are not
 * trusted to be short, to end, or to be anybody's business (FMT_UNTRUSTED).
 */
#include "fmt/drivers.h"

/* ---- names ------------------------------------------------------------------ */

/* "nbd:...", "json:{...}": a colon before any slash. */
static bool has_protocol(const char *name)
{
	while (*name && *name != '/' && *name != ':')
		name++;
	return *name == ':';
}

/* How much of @name is the folder that names inside the file are relative to. */
static size_t folder_len(const char *name)
{
	const char *slash = strrchr(name, '/');
	const char *colon = has_protocol(name) ? strchr(name, ':') : NULL;

	if (slash)
		return (size_t)(slash - name) + 1;
	return colon ? (size_t)(colon - name) + 1 : 0;
}

int fmt_backing_path(const char *image_name, const char *name, char *buf, size_t size)
{
	size_t dir = *name == '/' || has_protocol(name) ? 0 : folder_len(image_name);
	size_t len = strlen(name);

	if (dir >= size || len >= size - dir)
		return -THR_ENAMETOOLONG;
	memcpy(buf, image_name, dir);
	memcpy(buf + dir, name, len + 1);
	return 0;
}

/* ---- one image ---------------------------------------------------------------- */

#define FILE_PREFIX     "file."
#define FILE_PREFIX_LEN (sizeof(FILE_PREFIX) - 1)

/* The options of the device: those that begin with "file.", without it. */
static int file_opts(struct blk_opts *out, const struct fmt_open *o)
{
	unsigned max = o->opts ? o->opts->n : 0;
	struct blk_opt *v;

	out->v = NULL;
	out->n = 0;
	if (!max)
		return 0;
	v = thr_get(o->mem, max * sizeof(*v), 16);
	if (!v)
		return -THR_ENOMEM;
	for (unsigned i = 0; i < max; i++) {
		const struct blk_opt *opt = &o->opts->v[i];

		if (strncmp(opt->key, FILE_PREFIX, FILE_PREFIX_LEN))
			continue;
		v[out->n].key = opt->key + FILE_PREFIX_LEN;
		v[out->n].val = opt->val;
		out->n++;
	}
	out->v = v;
	return 0;
}

static int open_file(struct blk **out, const struct fmt_open *o, struct blk_err *err)
{
	struct blk_opts opts;
	struct blk_open bo = {
		.name = o->name,
		.flags = o->blk_flags,
		.opts = &opts,
		.mem = o->mem,
	};
	int code = file_opts(&opts, o);

	if (code)
		return blk_fail(err, code, BLK_E_SYS, 0, 0);
	code = blk_open(out, &bo, err);
	if (opts.v)
		thr_put(o->mem, (void *)(uintptr_t)opts.v, o->opts->n * sizeof(*opts.v));
	return code;
}

static int open_image(struct blk **out, const struct fmt_open *o, struct blk_err *err)
{
	struct blk *file = NULL;
	int code = open_file(&file, o, err);

	if (code)
		return code;
	code = fmt_open_on(out, file, o, err);
	if (code) {
		blk_err_where(err, "Could not open", file->name);
		blk_close(file);
	}
	return code;
}

/* ---- chains ------------------------------------------------------------------- */

static bool in_chain(struct blk *top, struct blk *image)
{
	for (struct blk *b = top; b; b = b->backing)
		if (blk_same(b->file, image->file))
			return true;
	return false;
}

/* The image that the last one of the chain at @top names, opened: 0 with *out NULL
 * where it names none. @path has FMT_NAME_MAX bytes. */
static int open_next(struct blk **out, struct blk *top, struct blk *last,
	const struct fmt_open *top_open, char *path, struct blk_err *err)
{
	const struct fmt_driver *d = fmt_driver_of(last);
	struct fmt_open o = {.cache = top_open->cache, .mem = top_open->mem};
	const char *name, *format;
	int code;

	*out = NULL;
	code = d->backing ? d->backing(last, &name, &format) : -THR_ENOENT;
	if (code == -THR_ENOENT)
		return 0;
	if (code)
		return blk_fail(err, code, BLK_E_SYS, 0, 0);
	if (top_open->flags & FMT_UNTRUSTED)
		return blk_fail_str(err, -THR_EACCES, BLK_E_UNTRUSTED_NAME, name);
	code = fmt_backing_path(last->file->name, name, path, FMT_NAME_MAX);
	if (code)
		return blk_fail(err, code, BLK_E_SYS, 0, 0);
	o.name = path;
	o.format = *format ? format : NULL;
	o.flags = top_open->flags & ~(unsigned)FMT_REPAIR;
	o.blk_flags = top_open->blk_flags & ~(unsigned)BLK_RDWR;
	code = open_image(out, &o, err);
	if (code)
		return code;
	if (!in_chain(top, *out))
		return 0;
	blk_close(*out);
	*out = NULL;
	code = blk_fail(err, -THR_ELOOP, BLK_E_CHAIN_LOOP, 0, 0);
	blk_err_where(err, "Could not open", path);
	return code;
}

static int open_chain(
	struct blk *top, const struct fmt_open *o, char *path, struct blk_err *err)
{
	struct blk *last = top;
	struct blk *next;
	int code;

	for (unsigned n = 1;; n++) {
		code = open_next(&next, top, last, o, path, err);
		if (code || !next)
			return code;
		fmt_set_backing(last, next);
		last = next;
		if (n + 1 > FMT_CHAIN_MAX)
			return blk_fail(err, -THR_ELOOP, BLK_E_CHAIN_LONG, 0, FMT_CHAIN_MAX);
	}
}

struct open_args {
	struct blk **out;
	const struct fmt_open *o;
	struct blk_err *err;
};

static int open_all(void *arg)
{
	struct open_args *a = arg;
	char *path;
	int code = open_image(a->out, a->o, a->err);

	if (code || a->o->flags & FMT_NO_BACKING)
		return code;
	path = thr_get(a->o->mem, FMT_NAME_MAX, 16);
	if (path)
		code = open_chain(*a->out, a->o, path, a->err);
	else
		code = blk_fail(a->err, -THR_ENOMEM, BLK_E_SYS, 0, 0);
	thr_put(a->o->mem, path, FMT_NAME_MAX);
	if (code) {
		blk_err_where(a->err, "Could not open", a->o->name);
		(void)fmt_close(*a->out);
		*a->out = NULL;
	}
	return code;
}

/* Opening wants more stack than a fiber has, and a thread that may block. */
int fmt_open(struct blk **out, const struct fmt_open *o, struct blk_err *err)
{
	struct open_args a = {.out = out, .o = o, .err = err};

	return thr_in_fiber() ? thr_offload(open_all, &a) : open_all(&a);
}
