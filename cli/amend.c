/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/amend.c - platter amend: changes options of an image that is there.
 */
#include <string.h>

#include "cli/options.h"
#include "cli/parse.h"

struct args {
	struct fmt_amend m;
	struct cli_opts opts;
	struct cli_open open;
};

static int help(const char *format, const char *name)
{
	const struct cli_open o = {.name = name, .flags = FMT_NO_IO | FMT_NO_BACKING};
	struct blk *image;
	const struct fmt_driver *d;

	if (!format && !name)
		return cli_usage("Expecting one image file name");
	if (format) {
		d = fmt_driver_find(format);
		return d ? cli_amend_help(d) : cli_error("Unknown file format '%s'", format);
	}
	if (cli_open(&image, &o))
		return 1;
	d = fmt_driver_of(image);
	(void)fmt_close(image);
	return cli_amend_help(d);
}

static int amend(struct args *a)
{
	struct blk_err err = BLK_ERR_INIT;
	struct blk *image;
	int ret = cli_open(&image, &a->open);

	if (ret)
		return ret;
	a->m.opts = &a->opts.o;
	if (fmt_amend(image, &a->m, &err))
		ret = cli_fail(&err);
	return cli_close(image) | ret;
}

static int take_cache(void *ctx, const char *arg)
{
	*(const char **)ctx = arg;
	return cli_cache_ok("cache", arg);
}

int cli_amend(int argc, char **argv)
{
	struct args a = {
		.m = {.secrets = cli_secrets(), .mem = &thr_heap},
		.open = {.blk_flags = BLK_RDWR, .flags = FMT_NO_BACKING},
	};
	const struct cli_opt options[] = {
		CLI_OPT_FORMAT(&a.open.format),
		CLI_OPT_IMAGE_OPTS(&a.open.image_opts),
		CLI_CALL('t', NULL, "CACHE", take_cache, &a.open.cache, CLI_CACHES),
		CLI_OPT_LIST(&a.opts),
		CLI_FLAG(0, "force", &a.m.force, "even what cannot be undone"),
		CLI_OPT_SEED(&a.m.seed),
		CLI_NOTHING('p', NULL, CLI_SHOW_PROGRESS),
		CLI_NOTHING('q', NULL, "print errors only"),
		CLI_OPT_END,
	};
	int ret = cli_parse(argc, argv, options);

	a.open.name = argv[argc - 1];
	if (!ret && a.opts.help)
		ret = help(a.open.format, optind == argc - 1 ? a.open.name : NULL);
	else if (!ret && !a.opts.o.n)
		ret = cli_usage("Must specify options (-o)");
	else if (!ret && optind != argc - 1)
		ret = cli_usage("Expecting one image file name");
	else if (!ret)
		ret = amend(&a);
	cli_opts_free(&a.opts);
	return ret;
}
