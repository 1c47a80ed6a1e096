/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/open.c - opening images as the options say.
 */
#include "cli/cli.h"

int cli_cache_ok(const char *what, const char *cache)
{
	unsigned flags;

	if (!cache || !blk_cache_parse(cache, &flags))
		return 0;
	return cli_error("Invalid %s option: %s", what, cache);
}

int cli_open_err(struct blk **out, const struct cli_open *o, struct blk_err *err)
{
	struct fmt_open fo = {
		.name = o->name,
		.format = o->format,
		.flags = o->flags | (cli_untrusted && !o->trusted ? FMT_UNTRUSTED : 0u),
		.opts = o->opts,
		.mem = &thr_heap,
	};
	unsigned cache = 0;
	int code;

	if (o->cache && blk_cache_parse(o->cache, &cache))
		return blk_fail_str(err, -THR_EINVAL, BLK_E_BAD_VALUE, "cache");
	fo.blk_flags = o->blk_flags | cache;
	code = fmt_open(out, &fo, err);
	if (!code || err->id != BLK_E_NO_DIRECT)
		return code;
	cli_warn("The file system of '%s' does not support O_DIRECT: using its cache", o->name);
	fo.blk_flags &= ~(unsigned)BLK_NOCACHE;
	*err = (struct blk_err)BLK_ERR_INIT;
	return fmt_open(out, &fo, err);
}

int cli_open(struct blk **out, const struct cli_open *o)
{
	struct blk_err err = BLK_ERR_INIT;

	return cli_open_err(out, o, &err) ? cli_fail(&err) : 0;
}

int cli_close(struct blk *image)
{
	int err = fmt_close(image);

	return err ? cli_error("Could not write what was pending: %s", blk_strerror(err)) : 0;
}
