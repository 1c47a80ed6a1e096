/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/resize.c - platter resize: changes the size of a disk.
 */
#include <string.h>

#include "cli/cli.h"

struct args {
	const char *format;
	bool quiet, shrink, image_opts;
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
	if (!a->format && !a->image_opts && fmt_driver_of(image) == fmt_driver_find("raw"))
		cli_warn("Image format was not specified for '%s' and probing guessed raw",
			image->file->name);
}

static int parse(struct args *a, int argc, char **argv)
{
	enum { OPT_PREALLOC = CLI_OPT_FIRST, OPT_SHRINK };
	static const struct option options[] = {
		CLI_LONG_HELP,
		CLI_LONG_OBJECT,
		CLI_LONG_IMAGE_OPTS,
		{"preallocation", required_argument, NULL, OPT_PREALLOC},
		{"shrink", no_argument, NULL, OPT_SHRINK},
		CLI_LONG_END,
	};
	int c;

	while ((c = cli_getopt(argc, argv, ":f:hq", options)) != -1) {
		switch (c) {
		case CLI_OPT_BAD:
			return 1;
		case CLI_OPT_IMAGE_OPTS:
			a->image_opts = true;
			break;
		case 'f':
			a->format = optarg;
			break;
		case 'q':
			a->quiet = true;
			break;
		case OPT_PREALLOC:
			if (blk_prealloc_parse(optarg, &a->prealloc))
				return cli_error("Invalid preallocation mode '%s'", optarg);
			break;
		case OPT_SHRINK:
			a->shrink = true;
			break;
		}
	}
	return 0;
}

/* The size comes last and may look like an option ("-1G"). */
int cli_resize(int argc, char **argv)
{
	struct args a = {0};
	struct cli_open o = {.blk_flags = BLK_RDWR};
	const char *size;
	struct blk *image;
	int ret;

	if (argc >= 2 && (!strcmp(argv[argc - 1], "-h") || !strcmp(argv[argc - 1], "--help")))
		return parse(&a, argc, argv);
	if (argc < 3)
		return cli_usage("Not enough arguments");
	size = argv[--argc];
	ret = parse(&a, argc, argv);
	if (ret)
		return ret;
	if (optind != argc - 1)
		return cli_usage("Expecting image file name and size");
	o.name = argv[optind];
	o.format = a.format;
	o.image_opts = a.image_opts;
	ret = cli_open(&image, &o);
	if (ret)
		return ret;
	warn_probed(image, &a);
	ret = resize(image, size, &a);
	return cli_close(image) | ret;
}
