/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/resize.c - platter resize: changes the size of a disk.
 */
#include <string.h>

#include "cli/parse.h"

struct args {
	struct cli_open open;
	bool quiet, shrink;
	enum blk_prealloc prealloc;
};

/* "10G", "+1G", "-512M": relative to @now. */
static int new_size(const char *arg, uint64_t now, uint64_t *out)
{
	bool plus = *arg == '+', minus = *arg == '-';
	uint64_t n;

	if (cli_size("image size", arg + (plus || minus), &n))
		return 1;
	if (minus)
		*out = n < now ? now - n : 0;
	else
		*out = plus ? now + n : n;
	if (!*out || *out > INT64_MAX)
		return cli_error("New image size must be positive");
	return 0;
}

static int resize(struct blk *image, const char *arg, const struct args *a)
{
	struct blk_err err = BLK_ERR_INIT;
	uint64_t size;

	if (new_size(arg, blk_size(image), &size))
		return 1;
	if (fmt_resize(image, size, a->shrink, a->prealloc, &err))
		return cli_fail(&err);
	if (!a->quiet)
		puts("Image resized.");
	return 0;
}

/* The content of the disk decides what a probed raw image is next time. */
static void warn_probed(const struct blk *image, const struct args *a)
{
	if (!a->open.format && !a->open.image_opts &&
		fmt_driver_of(image) == fmt_driver_find("raw"))
		cli_warn("Image format was not specified for '%s' and probing guessed raw",
			image->file->name);
}

static int take_prealloc(void *ctx, const char *arg)
{
	if (!blk_prealloc_parse(arg, ctx))
		return 0;
	return cli_error("Invalid preallocation mode '%s'", arg);
}

static int parse(struct args *a, int argc, char **argv)
{
	const struct cli_opt options[] = {
		CLI_OPT_FORMAT(&a->open.format),
		CLI_OPT_IMAGE_OPTS(&a->open.image_opts),
		CLI_CALL(0, "preallocation", "MODE", take_prealloc, &a->prealloc,
			"off, metadata, falloc or full"),
		CLI_FLAG(0, "shrink", &a->shrink, "the disk may become smaller"),
		CLI_OPT_QUIET(&a->quiet),
		CLI_OPT_END,
	};

	return cli_parse(argc, argv, options);
}

/* The size comes last and may look like an option ("-1G"). */
int cli_resize(int argc, char **argv)
{
	struct args a = {.open = {.blk_flags = BLK_RDWR}};
	const char *size;
	struct blk *image;
	int ret;

	if (argc >= 2 && (!strcmp(argv[argc - 1], "-h") || !strcmp(argv[argc - 1], "--help")))
		return parse(&a, argc, argv);
	if (argc < 3)
		return cli_usage("Not enough arguments");
	size = argv[--argc];
	if (parse(&a, argc, argv))
		return 1;
	if (optind != argc - 1)
		return cli_usage("Expecting image file name and size");
	a.open.name = argv[optind];
	ret = cli_open(&image, &a.open);
	if (ret)
		return ret;
	warn_probed(image, &a);
	ret = resize(image, size, &a);
	return cli_close(image) | ret;
}
