/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/amend.c - platter amend: changes options of an image that is there.
 */
#include <string.h>

#include "cli/cli.h"
#include "cli/options.h"

struct args {
	struct fmt_amend m;
	struct cli_opts opts;
	struct cli_open open;
	bool quiet;
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

static int set(struct args *a, int c)
{
	switch (c) {
	case CLI_OPT_BAD:
		return 1;
	case CLI_OPT_IMAGE_OPTS:
		a->open.image_opts = true;
		break;
	case 'f':
		a->open.format = optarg;
		break;
	case 't':
		a->open.cache = optarg;
		return cli_cache_ok("cache", optarg);
	case 'o':
		return cli_opts_add(&a->opts, optarg);
	case 'q':
		a->quiet = true;
		break;
	}
	return 0;
}

static int parse(struct args *a, int argc, char **argv)
{
	enum { OPT_FORCE = CLI_OPT_FIRST, OPT_REPRODUCIBLE };
	static const struct option options[] = {
		CLI_LONG_HELP,
		CLI_LONG_OBJECT,
		CLI_LONG_IMAGE_OPTS,
		{"force", no_argument, NULL, OPT_FORCE},
		{"reproducible", required_argument, NULL, OPT_REPRODUCIBLE},
		CLI_LONG_END,
	};
	int c;

	while ((c = cli_getopt(argc, argv, ":f:ho:pqt:", options)) != -1) {
		if (set(a, c))
			return 1;
		a->m.force |= c == OPT_FORCE;
		if (c == OPT_REPRODUCIBLE)
			a->m.seed = optarg;
	}
	return 0;
}

int cli_amend(int argc, char **argv)
{
	struct args a = {
		.m = {.secrets = cli_secrets(), .mem = &thr_heap},
		.open = {.blk_flags = BLK_RDWR, .flags = FMT_NO_BACKING},
	};
	int ret = parse(&a, argc, argv);

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
