/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/convert.c - platter convert: copies images into another one.
 */
#include <stdlib.h>

#include "cli/convert.h"
#include "cli/options.h"
#include "cli/parse.h"

#define SPARSE_MAX (16u << 20)

/* ---- options ---------------------------------------------------------------------------- */

static int set_sparse(void *ctx, const char *arg)
{
	struct cli_convert *a = ctx;
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

/* Its work is not there. */
static int take_bitmaps(void *ctx, const char *arg)
{
	(void)ctx;
	(void)arg;
	return cli_error("--bitmaps is not supported");
}

static int parse(struct cli_convert *a, int argc, char **argv)
{
	const struct cli_opt options[] = {
		CLI_OPT_FORMAT(&a->format),
		CLI_OPT_IMAGE_OPTS(&a->image_opts),
		CLI_FLAG('U', "force-share", &a->share, "although others may be writing"),
		CLI_TEXT('l', NULL, "SNAPSHOT", &a->snapshot, "a snapshot inside the source"),
		CLI_OPT_CACHE('T', &a->src_cache),
		CLI_TEXT('O', NULL, "FMT", &a->out_format, "the format of the target (raw)"),
		CLI_FLAG(0, "target-image-opts", &a->target_image_opts,
			"the target's name is a list of options (with -n)"),
		CLI_OPT_LIST(&a->opts),
		CLI_TEXT('B', NULL, "FILE", &a->backing, "the backing file of the target"),
		CLI_TEXT(
			'F', NULL, "FMT", &a->backing_format, "the format of the backing file"),
		CLI_TEXT('t', NULL, "CACHE", &a->cache, "the same for the target (unsafe)"),
		CLI_FLAG('n', NULL, &a->no_create, "write into a target that is there"),
		CLI_FLAG(0, "target-is-zero", &a->target_is_zero,
			"it reads as zeroes (with -n)"),
		CLI_FLAG('c', NULL, &a->compress, "compress"),
		CLI_CALL('S', NULL, "SIZE", set_sparse, a,
			"the shortest run of zeroes that is left out (4k); 0: write all"),
		CLI_FLAG('C', NULL, &a->offload, "let the system copy where it can"),
		CLI_FLAG(0, "salvage", &a->salvage, "zeroes for what cannot be read"),
		CLI_CALL(0, "bitmaps", NULL, take_bitmaps, NULL, NULL),
		CLI_CALL(0, "skip-broken-bitmaps", NULL, take_bitmaps, NULL, NULL),
		CLI_OPT_SEED(&a->seed),
		CLI_SIZE('r', NULL, "RATE", &a->rate, "rate limit", "bytes a second at most"),
		CLI_OPT_FIBERS(&a->fibers),
		CLI_FLAG('W', NULL, &a->unordered, "taken, and changes nothing"),
		CLI_OPT_THREADS(&a->threads),
		CLI_OPT_PROGRESS(&a->progress),
		CLI_OPT_QUIET(&a->quiet),
		CLI_OPT_END,
	};

	if (cli_parse(argc, argv, options))
		return 1;
	a->opts_given = a->opts.o.n;
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
