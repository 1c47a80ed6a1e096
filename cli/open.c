/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/open.c - opening images as the options say.
 */
#include <string.h>

#include "cli/cli.h"

int cli_cache_ok(const char *what, const char *cache)
{
	unsigned flags;

	if (!cache || !blk_cache_parse(cache, &flags))
		return 0;
	return cli_error("Invalid %s option: %s", what, cache);
}

/* What the caller asks for comes after what the user does, and so counts. */
static int merge(struct cli_opts *l, const struct blk_opts *more)
{
	for (unsigned i = 0; more && i < more->n; i++)
		if (cli_opts_put(l, more->v[i].key, more->v[i].val))
			return 1;
	return 0;
}

static int open_once(struct blk **out, const struct fmt_open *fo, const struct cli_open *o,
	struct blk_err *err)
{
	int code = fmt_open(out, fo, err);

	if (code)
		blk_err_where(err, "Could not open", o->name);
	return code;
}

static int open_cached(
	struct blk **out, struct fmt_open *fo, const struct cli_open *o, struct blk_err *err)
{
	unsigned cache = 0;
	int code;

	if (o->cache && blk_cache_parse(o->cache, &cache))
		return blk_fail_str(err, -THR_EINVAL, BLK_E_BAD_VALUE, "cache");
	fo->blk_flags = o->blk_flags | cache;
	code = open_once(out, fo, o, err);
	if (!code || err->id != BLK_E_NO_DIRECT || !(fo->blk_flags & BLK_NOCACHE))
		return code;
	cli_warn("The file system of '%s' does not support O_DIRECT: using its cache", o->name);
	fo->blk_flags &= ~(unsigned)BLK_NOCACHE;
	*err = (struct blk_err)BLK_ERR_INIT;
	return open_once(out, fo, o, err);
}

/* A command that opens a chain twice says it once. */
static void warn(void *ctx, const struct blk_err *odd)
{
	static char last[BLK_ERR_FILE_MAX + BLK_ERR_STR_MAX + 256];
	char text[sizeof(last)];

	(void)ctx;
	blk_err_text(odd, text, sizeof(text));
	if (strcmp(text, last))
		cli_warn("%s", text);
	memcpy(last, text, sizeof(last));
}

int cli_open_err(struct blk **out, const struct cli_open *o, struct blk_err *err)
{
	struct fmt_open fo = {
		.name = o->name,
		.format = o->format,
		.flags = o->flags | (cli_untrusted && !o->trusted ? FMT_UNTRUSTED : 0u),
		.writable = o->writable,
		.opts = o->opts,
		.secrets = cli_secrets(),
		.warn = warn,
		.mem = &thr_heap,
	};
	struct cli_opts l = {0};
	int code;

	if (!o->image_opts)
		return open_cached(out, &fo, o, err);
	if (o->format)
		return blk_fail(err, -THR_EINVAL, BLK_E_FORMAT_TWICE, 0, 0);
	fo.name = NULL;
	fo.opts = &l.o;
	if (cli_opts_add(&l, o->name) || merge(&l, o->opts))
		code = blk_fail_str(err, -THR_EINVAL, BLK_E_BAD_VALUE, "--image-opts");
	else
		code = open_cached(out, &fo, o, err);
	cli_opts_free(&l);
	return code;
}

int cli_open(struct blk **out, const struct cli_open *o)
{
	struct blk_err err = BLK_ERR_INIT;

	return cli_open_err(out, o, &err) ? cli_fail(&err) : 0;
}

int cli_snapshot(struct blk *image, const char *tag)
{
	struct blk_err err = BLK_ERR_INIT;

	if (!tag || !fmt_snapshot_select(image, tag, &err))
		return 0;
	return cli_fail_in("Failed to load snapshot", &err);
}

int cli_close(struct blk *image)
{
	int err = fmt_close(image);

	return err ? cli_error("Could not write what was pending: %s", blk_strerror(err)) : 0;
}
