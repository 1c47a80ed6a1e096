/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/info.c - platter info: what an image is.
 */
#include <string.h>

#include "cli/info.h"
#include "cli/parse.h"

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

static int show_all(struct blk *top, bool as_json, bool chain)
{
	struct cli_image im;
	struct cli_json j;

	cli_json_begin(&j, stdout);
	if (as_json && chain)
		cli_json_open(&j, NULL, true);
	for (struct blk *b = top; b; b = b->backing) {
		if (gather(b, &im))
			return 1;
		if (as_json) {
			cli_info_json(&j, &im);
			continue;
		}
		if (b != top)
			putchar('\n');
		cli_info_human(&im);
	}
	if (as_json && chain)
		cli_json_close(&j, true);
	if (as_json)
		cli_json_end(&j);
	return 0;
}

int cli_info(int argc, char **argv)
{
	struct cli_open o = {.flags = FMT_NO_IO};
	bool json = false, chain = false;
	const struct cli_opt options[] = {
		CLI_OPT_IMAGE(&o),
		CLI_OPT_OUTPUT(&json),
		CLI_FLAG(0, "backing-chain", &chain, "the backing files too"),
		CLI_OPT_END,
	};
	struct blk *image;
	int ret;

	if (cli_parse_one(argc, argv, options, &o.name))
		return 1;
	if (!chain)
		o.flags |= FMT_NO_BACKING;
	ret = cli_open(&image, &o);
	if (ret)
		return ret;
	ret = show_all(image, json, chain);
	return cli_close(image) | ret;
}
