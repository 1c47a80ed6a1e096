/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/open.c - opening images by name, and their backing chains.
 *
 * A chain is walked in a loop, which ends after FMT_CHAIN_MAX images and where a
 * file turns up for the second time. Names come from inside images and are not
 * trusted to be short, to end, or to be anybody's business (FMT_UNTRUSTED).
 */
#include "fmt/drivers.h"
#include "fmt/names.h"

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

/* The device below: its options are those that begin with "file.". */
static int open_file(struct blk **out, const struct fmt_open *o, struct blk_err *err)
{
	struct fmt_names l;
	struct blk_open bo = {
		.name = o->name,
		.flags = o->blk_flags,
		.opts = &l.o,
		.mem = o->mem,
	};
	int code;

	fmt_names_init(&l, o->mem);
	code = fmt_names_sub(&l, o->opts, "file.", err);
	/* It is the name, and may have a protocol. */
	if (o->name && o->name == blk_opt(o->opts, "file.filename"))
		fmt_names_drop(&l, "filename");
	if (!code)
		code = blk_open(out, &bo, err);
	fmt_names_free(&l);
	return code;
}

/* What @o says, from its name and its options, into @l; what is opened into @own. */
static int gather(struct fmt_names *l, struct fmt_open *own, const struct fmt_open *o,
	struct blk_err *err)
{
	int code = 0;

	*own = *o;
	if (o->name && fmt_names_json(o->name))
		code = fmt_json_add(l, o->name, err);
	if (!code)
		code = fmt_names_sub(l, o->opts, "", err);
	return code ? code : fmt_names_settle(l, own, err);
}

/* ---- the file that has the data -------------------------------------------------- */

/* What the options say of it, as those of a device; through "raw" over that, too. */
static int data_opts(struct fmt_names *l, const struct fmt_open *o, struct blk_err *err)
{
	const char *driver = blk_opt(o->opts, "data-file.driver");
	bool raw = driver && fmt_streq(driver, "raw");
	struct fmt_names sub;
	int code;

	fmt_names_init(&sub, o->mem);
	code = fmt_names_sub(&sub, o->opts, raw ? "data-file.file." : "data-file.", err);
	for (unsigned i = 0; i < sub.o.n && !code; i++)
		code = fmt_names_add(l, "file.", sub.o.v[i].key, sub.o.v[i].val, err);
	fmt_names_free(&sub);
	return code;
}

/* A name is what the image has, relative to where the program runs, as with others; options
 * count instead of it. */
static int open_data(
	const struct fmt_open *o, const char *name, struct blk **out, struct blk_err *err)
{
	struct fmt_open own = {
		.blk_flags = o->blk_flags,
		.mem = o->mem,
	};
	struct fmt_names l;
	int code;

	fmt_names_init(&l, o->mem);
	code = data_opts(&l, o, err);
	if (!code && !l.o.n && !*name)
		code = blk_fail(err, -THR_EINVAL, BLK_E_QCOW2_DATA_NONE, 0, 0);
	if (!code && !l.o.n && o->flags & FMT_UNTRUSTED)
		code = blk_fail_str(err, -THR_EACCES, BLK_E_UNTRUSTED_NAME, name);
	if (!code && !l.o.n)
		own.name = name;
	if (!code && own.name && fmt_names_json(own.name))
		code = fmt_json_add(&l, own.name, err);
	if (!code)
		code = fmt_names_settle(&l, &own, err);
	if (!code)
		code = open_file(out, &own, err);
	if (code)
		blk_err_where(err, "Could not open", *name ? name : "data-file");
	fmt_names_free(&l);
	return code;
}

/* A backing file that is raw where nobody says otherwise, and must not look otherwise. */
static int take_raw(struct blk *file, struct fmt_open *o, struct blk_err *err)
{
	struct blk_err own = BLK_ERR_INIT;
	const char *looks;

	if (o->format || fmt_opts_driver(o->opts) || o->flags & FMT_NEED_FORMAT)
		return 0;
	err = err ? err : &own;
	looks = fmt_probe(file, err);
	if (!looks)
		return err->code;
	if (!fmt_streq(looks, "raw"))
		return blk_fail_str(err, -THR_EINVAL, BLK_E_BACKING_LOOKS, looks);
	o->format = looks;
	return 0;
}

/* Opens one image. @l, empty at first, has its options when it is open. @raw: it is the
 * backing file of one that has raw ones. */
static int open_image(struct blk **out, const struct fmt_open *o, bool raw, struct fmt_names *l,
	struct blk_err *err)
{
	struct blk *file = NULL;
	struct fmt_open own;
	int code = gather(l, &own, o, err);

	if (!own.data)
		own.open_data = open_data;
	if (!code)
		code = open_file(&file, &own, err);
	if (!code && raw)
		code = take_raw(file, &own, err);
	if (!code)
		code = fmt_open_on(out, file, &own, err);
	if (!code)
		return 0;
	if (file || o->name)
		blk_err_where(err, "Could not open", file ? file->name : o->name);
	blk_close(file);
	return code;
}

/* ---- chains ------------------------------------------------------------------- */

static bool in_chain(struct blk *top, struct blk *image)
{
	for (struct blk *b = top; b; b = b->backing)
		if (blk_same(b->file, image->file) || blk_same(b->file, blk_map_file(image)) ||
			blk_same(blk_map_file(b), image->file) ||
			blk_same(blk_map_file(b), blk_map_file(image)))
			return true;
	return false;
}

/* What the images of a chain are opened by. */
struct chain {
	struct blk *top, *last;
	unsigned depth;           /* of the last */
	const struct fmt_open *o; /* of the top */
	struct fmt_names l;       /* the options of the last */
	char *path;               /* FMT_NAME_MAX bytes */
	struct blk_err *err;
};

/* The name and the format of the image below, as the last one has them; *name NULL where
 * the options @sub have the device. -ENOENT: there is none. */
static int name_next(struct chain *c, const struct blk_opts *sub, struct fmt_open *o)
{
	const struct fmt_driver *d = fmt_driver_of(c->last);
	const char *none = blk_opt(&c->l.o, "backing");
	const char *name, *format;
	int code;

	if (none && *none)
		return blk_fail_str(c->err, -THR_EINVAL, BLK_E_BAD_VALUE, "backing");
	if (none && !sub->n)
		return -THR_ENOENT;
	if (fmt_names_device(sub))
		return 0;
	code = d->backing ? d->backing(c->last, &name, &format) : -THR_ENOENT;
	if (code == -THR_ENOENT && sub->n)
		return blk_fail_str(
			c->err, -THR_EINVAL, BLK_E_NEED_OPTION, "backing.file.filename");
	if (code == -THR_ENOENT)
		return code;
	if (code)
		return blk_fail(c->err, code, BLK_E_SYS, 0, 0);
	if (c->o->flags & FMT_UNTRUSTED)
		return blk_fail_str(c->err, -THR_EACCES, BLK_E_UNTRUSTED_NAME, name);
	code = fmt_backing_path(c->last->file->name, name, c->path, FMT_NAME_MAX);
	if (code)
		return blk_fail(c->err, code, BLK_E_SYS, 0, 0);
	o->name = c->path;
	if (!blk_opt(sub, "driver") && *format)
		o->format = format;
	return 0;
}

/* The image below the last one, opened, *out NULL where there is none. Its options take
 * the place of the last one's. */
static int open_next(struct blk **out, struct chain *c)
{
	struct fmt_open o = {
		.cache = c->o->cache,
		.mem = c->o->mem,
		.secrets = c->o->secrets,
		.flags = c->o->flags & ~(unsigned)FMT_REPAIR,
		.blk_flags = c->o->blk_flags & ~(unsigned)BLK_RDWR,
	};
	struct fmt_names sub, below;
	int code;

	*out = NULL;
	if (c->depth + 1 == c->o->writable)
		o.blk_flags |= BLK_RDWR;
	fmt_names_init(&sub, c->o->mem);
	fmt_names_init(&below, c->o->mem);
	o.opts = &sub.o;
	code = fmt_names_sub(&sub, &c->l.o, "backing.", c->err);
	if (!code)
		code = name_next(c, &sub.o, &o);
	if (!code)
		code = open_image(out, &o, fmt_driver_of(c->last)->raw_backing, &below, c->err);
	else if (code == -THR_ENOENT)
		code = 0;
	if (!code && *out && in_chain(c->top, *out)) {
		code = blk_fail(c->err, -THR_ELOOP, BLK_E_CHAIN_LOOP, 0, 0);
		blk_err_where(c->err, "Could not open", (*out)->file->name);
		blk_close(*out);
		*out = NULL;
	}
	fmt_names_free(&sub);
	fmt_names_free(&c->l);
	c->l = below;
	return code;
}

/* Tells the caller what the image has to say about what it stands on. */
static void tell_oddity(const struct chain *c)
{
	const struct fmt_driver *d = fmt_driver_of(c->last);
	struct blk_err odd = BLK_ERR_INIT;

	if (!c->o->warn || !d->backed || !d->backed(c->last, &odd))
		return;
	blk_err_where(&odd, "Opened", c->last->file->name);
	c->o->warn(c->o->warn_ctx, &odd);
}

static int open_chain(struct chain *c)
{
	struct blk *next;
	int code;

	c->last = c->top;
	for (c->depth = 0;; c->depth++) {
		code = open_next(&next, c);
		if (code || !next)
			return code;
		fmt_set_backing(c->last, next);
		tell_oddity(c);
		c->last = next;
		if (c->depth + 2 > FMT_CHAIN_MAX)
			return blk_fail(c->err, -THR_ELOOP, BLK_E_CHAIN_LONG, 0, FMT_CHAIN_MAX);
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
	const struct fmt_open *o = a->o;
	struct chain c = {.o = o, .err = a->err};
	int code;

	fmt_names_init(&c.l, o->mem);
	code = open_image(a->out, o, false, &c.l, a->err);
	if (code || o->flags & FMT_NO_BACKING)
		goto out;
	c.top = *a->out;
	c.path = thr_get(o->mem, FMT_NAME_MAX, 16);
	if (c.path)
		code = open_chain(&c);
	else
		code = blk_fail(a->err, -THR_ENOMEM, BLK_E_SYS, 0, 0);
	thr_put(o->mem, c.path, FMT_NAME_MAX);
	if (code) {
		blk_err_where(a->err, "Could not open", o->name ? o->name : c.top->file->name);
		(void)fmt_close(*a->out);
		*a->out = NULL;
	}
out:
	fmt_names_free(&c.l);
	return code;
}

/* Opening wants more stack than a fiber has, and a thread that may block. */
int fmt_open(struct blk **out, const struct fmt_open *o, struct blk_err *err)
{
	struct open_args a = {.out = out, .o = o, .err = err};

	return thr_in_fiber() ? thr_offload(open_all, &a) : open_all(&a);
}
