/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/info.c - platter info: what an image is.
 */
#include <string.h>

#include "cli/cli.h"
#include "cli/info.h"

struct args {
	const char *format;
	bool json, chain, share, image_opts;
};

/* What is asked of the image and its file in one place for both kinds of output. */
static int gather(struct blk *image, struct cli_image *im)
{
	int err = fmt_info(image, &im->info);

	if (err)
		return cli_error("Could not get information about '%s': %s", image->file->name,
			blk_strerror(err));
	im->blk = image;
	im->name = image->file->name;
	im->has_allocated = !blk_allocated(image, &im->allocated);
	im->full_backing[0] = '\0';
	if (im->info.has_backing && fmt_backing_path(im->name, im->info.backing,
					    im->full_backing, sizeof(im->full_backing)))
		im->full_backing[0] = '\0';
	return 0;
}

static int show_all(struct blk *top, const struct args *a)
{
	struct cli_image im;
	struct cli_json j;

	cli_json_begin(&j, stdout);
	if (a->json && a->chain)
		cli_json_open(&j, NULL, true);
	for (struct blk *b = top; b; b = b->backing) {
		if (gather(b, &im))
			return 1;
		if (a->json) {
			cli_info_json(&j, &im);
			continue;
		}
		if (b != top)
			putchar('\n');
		cli_info_human(&im);
	}
	if (a->json && a->chain)
		cli_json_close(&j, true);
	if (a->json)
		cli_json_end(&j);
	return 0;
}

static int parse(struct args *a, int argc, char **argv)
{
	enum { OPT_CHAIN = CLI_OPT_FIRST };
	static const struct option options[] = {
		CLI_LONG_HELP,
		{"format", required_argument, NULL, 'f'},
		CLI_LONG_OUTPUT,
		{"backing-chain", no_argument, NULL, OPT_CHAIN},
		CLI_LONG_OBJECT,
		CLI_LONG_IMAGE_OPTS,
		CLI_LONG_SHARE,
		CLI_LONG_END,
	};
	int c;

	while ((c = cli_getopt(argc, argv, ":hf:U", options)) != -1) {
		switch (c) {
		case CLI_OPT_BAD:
			return 1;
		case CLI_OPT_IMAGE_OPTS:
			a->image_opts = true;
			break;
		case 'f':
			a->format = optarg;
			break;
		case 'U':
			a->share = true;
			break;
		case CLI_OPT_OUTPUT:
			if (cli_output(optarg, &a->json))
				return 1;
			break;
		case OPT_CHAIN:
			a->chain = true;
			break;
		}
	}
	return 0;
}

int cli_info(int argc, char **argv)
{
	struct args a = {0};
	struct cli_open o = {.flags = FMT_NO_IO};
	struct blk *image;
	int ret = parse(&a, argc, argv);

	if (ret)
		return ret;
	if (optind != argc - 1)
		return cli_usage("Expecting one image file name");
	o.name = argv[optind];
	o.format = a.format;
	o.image_opts = a.image_opts;
	o.blk_flags = a.share ? BLK_SHARE : 0;
	if (!a.chain)
		o.flags |= FMT_NO_BACKING;
	ret = cli_open(&image, &o);
	if (ret)
		return ret;
	ret = show_all(image, &a);
	return cli_close(image) | ret;
}
