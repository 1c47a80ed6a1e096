/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/convert.c - platter convert: copies images into another one.
 */
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/convert.h"
#include "cli/options.h"

#define SPARSE_MAX (16u << 20)

/* ---- options ---------------------------------------------------------------------------- */

enum {
	OPT_THREADS = CLI_OPT_FIRST,
	OPT_TARGET_IS_ZERO,
	OPT_TARGET_IMAGE_OPTS,
	OPT_SALVAGE,
	OPT_BITMAPS,
	OPT_SKIP_BROKEN,
	OPT_REPRODUCIBLE,
};

static const char short_options[] = ":hf:O:B:CcF:o:l:S:pt:T:qnm:WUr:";

static const struct option long_options[] = {
	CLI_LONG_HELP,
	CLI_LONG_OBJECT,
	CLI_LONG_IMAGE_OPTS,
	CLI_LONG_SHARE,
	{"threads", required_argument, NULL, OPT_THREADS},
	{"target-is-zero", no_argument, NULL, OPT_TARGET_IS_ZERO},
	{"target-image-opts", no_argument, NULL, OPT_TARGET_IMAGE_OPTS},
	{"salvage", no_argument, NULL, OPT_SALVAGE},
	{"bitmaps", no_argument, NULL, OPT_BITMAPS},
	{"skip-broken-bitmaps", no_argument, NULL, OPT_SKIP_BROKEN},
	{"reproducible", required_argument, NULL, OPT_REPRODUCIBLE},
	CLI_LONG_END,
};

static int set_sparse(struct cli_convert *a, const char *arg)
{
	uint64_t v;

	if (cli_size("buffer size for sparse output", arg, &v))
		return 1;
	if (v % 512 || v > SPARSE_MAX)
		return cli_error("Invalid buffer size for sparse output specified. Valid sizes "
				 "are multiples of 512 up to %u. Select 0 to disable sparse "
				 "detection (fully allocates output).",
			SPARSE_MAX);
	a->sparse = (uint32_t)v;
	a->sparse_given = true;
	return 0;
}

static int set_fibers(struct cli_convert *a, const char *arg)
{
	if (!cli_number(arg, 1, 16, &a->fibers))
		return 0;
	return cli_error(
		"Invalid number of coroutines. Allowed number of coroutines is between "
		"1 and 16");
}

/* Options whose work is not there. */
static int later(int c)
{
	switch (c) {
	case OPT_BITMAPS:
	case OPT_SKIP_BROKEN:
		return cli_error("--bitmaps is not supported yet");
	}
	return 0;
}

static int set(struct cli_convert *a, int c, char *arg)
{
	switch (c) {
	case 'f':
		a->format = arg;
		return 0;
	case 'O':
		a->out_format = arg;
		return 0;
	case 'B':
		a->backing = arg;
		return 0;
	case 'F':
		a->backing_format = arg;
		return 0;
	case 'o':
		a->opts_given = true;
		return cli_opts_add(&a->opts, arg);
	case 'S':
		return set_sparse(a, arg);
	case 'r':
		return cli_size("rate limit", arg, &a->rate);
	case 'l':
		a->snapshot = arg;
		return 0;
	case 't':
		a->cache = arg;
		return 0;
	case 'T':
		a->src_cache = arg;
		return 0;
	case 'm':
		return set_fibers(a, arg);
	case OPT_REPRODUCIBLE:
		a->seed = arg;
		return 0;
	case OPT_THREADS:
		return cli_threads(arg, &a->threads);
	}
	return later(c);
}

static void set_switch(struct cli_convert *a, int c)
{
	switch (c) {
	case 'C':
		a->offload = true;
		break;
	case 'c':
		a->compress = true;
		break;
	case 'p':
		a->progress = true;
		break;
	case 'q':
		a->quiet = true;
		break;
	case 'n':
		a->no_create = true;
		break;
	case 'W':
		a->unordered = true;
		break;
	case 'U':
		a->share = true;
		break;
	case OPT_TARGET_IS_ZERO:
		a->target_is_zero = true;
		break;
	case OPT_SALVAGE:
		a->salvage = true;
		break;
	case CLI_OPT_IMAGE_OPTS:
		a->image_opts = true;
		break;
	case OPT_TARGET_IMAGE_OPTS:
		a->target_image_opts = true;
		break;
	}
}

static int parse(struct cli_convert *a, int argc, char **argv)
{
	int c;

	while ((c = cli_getopt(argc, argv, short_options, long_options)) != -1) {
		if (c == CLI_OPT_BAD || set(a, c, optarg))
			return 1;
		set_switch(a, c);
	}
	return 0;
}

/* What does not go together. */
static int check_options(const struct cli_convert *a)
{
	if (a->offload && a->sparse_given)
		return cli_error("Cannot enable copy offloading when -S is used");
	if (a->target_is_zero && !a->no_create)
		return cli_error("--target-is-zero requires use of -n flag");
	if (a->target_image_opts && !a->no_create)
		return cli_error("--target-image-opts requires use of -n flag");
	if ((a->image_opts && a->format) || (a->target_image_opts && a->out_format))
		return cli_error("--image-opts and --format are mutually exclusive");
	if (a->no_create && a->opts_given)
		return cli_error("-o has no effect when skipping image creation");
	if (cli_cache_ok("cache", a->cache) || cli_cache_ok("source cache", a->src_cache))
		return 1;
	if (a->snapshot && a->nsrc > 1)
		return cli_error("No support for concatenating multiple snapshot");
	if (a->backing && a->nsrc > 1)
		return cli_error("Having a backing file for the target makes no sense when "
				 "concatenating multiple input images");
	return 0;
}

/* What -o says of the backing file is as good as -B and -F; the size is the sources'. */
static void take_fields(struct cli_convert *a)
{
	a->opt_backing = cli_opts_take(&a->opts, "backing_file");
	a->opt_backing_format = cli_opts_take(&a->opts, "backing_fmt");
	free(cli_opts_take(&a->opts, "size"));
	if (!a->backing)
		a->backing = a->opt_backing;
	if (!a->backing_format)
		a->backing_format = a->opt_backing_format;
}

int cli_convert(int argc, char **argv)
{
	struct cli_convert a = {.cache = "unsafe", .sparse = 4096};
	int ret = parse(&a, argc, argv);

	if (!ret && a.opts.help) {
		ret = cli_options_help(a.out_format, argc - optind > 1);
	} else if (!ret && argc - optind < 2) {
		ret = cli_error("Must specify image file name");
	} else if (!ret) {
		a.names = argv + optind;
		a.nsrc = (unsigned)(argc - optind - 1);
		a.target = argv[argc - 1];
		take_fields(&a);
		ret = check_options(&a);
		if (!a.out_format && !a.target_image_opts)
			a.out_format = "raw";
		if (!ret)
			ret = cli_convert_run(&a);
	}
	free(a.opt_backing);
	free(a.opt_backing_format);
	cli_opts_free(&a.opts);
	return ret;
}
