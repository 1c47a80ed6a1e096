/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/measure.c - platter measure: how large the file of a new image will be.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "cli/parse.h"

#define NO_SIZE UINT64_MAX

struct args {
	struct cli_open open;
	const char *out_format;
	const char *snapshot; /* of the source, or NULL */
	struct cli_opts opts;
	char *backing, *backing_format; /* from opts */
	uint64_t size;                  /* NO_SIZE: not given */
	bool json;
};

static void print(const struct fmt_measure *m, bool json)
{
	struct cli_json j;

	if (!json) {
		printf("required size: %" PRIu64 "\n", m->required);
		printf("fully allocated size: %" PRIu64 "\n", m->fully_allocated);
		if (m->has_bitmaps)
			printf("bitmaps size: %" PRIu64 "\n", m->bitmaps);
		return;
	}
	cli_json_begin(&j, stdout);
	cli_json_open(&j, NULL, false);
	if (m->has_bitmaps)
		cli_json_num(&j, "bitmaps", m->bitmaps);
	cli_json_num(&j, "required", m->required);
	cli_json_num(&j, "fully-allocated", m->fully_allocated);
	cli_json_close(&j, false);
	cli_json_end(&j);
}

static int measure(const struct args *a, struct blk *src)
{
	struct fmt_create c = {
		.format = a->out_format,
		.size = src ? blk_size(src) : a->size,
		.has_size = true,
		.backing = a->backing,
		.backing_format = a->backing_format,
		.opts = &a->opts.o,
		.secrets = cli_secrets(),
		.mem = &thr_heap,
	};
	struct blk_err err = BLK_ERR_INIT;
	struct fmt_measure m;

	if (fmt_measure(&c, src, &m, &err))
		return cli_fail(&err);
	print(&m, a->json);
	return 0;
}

static int measure_file(const struct args *a)
{
	struct blk *src;
	int ret = cli_open(&src, &a->open);

	if (ret)
		return ret;
	ret = cli_snapshot(src, a->snapshot);
	if (!ret)
		ret = measure(a, src);
	return cli_close(src) | ret;
}

static int run(struct args *a, int n, char **names)
{
	if (n > 1)
		return cli_error("At most one filename argument is allowed.");
	if (!n && (a->open.format || a->open.image_opts || a->snapshot))
		return cli_error("--image-opts, -f, and -l require a filename argument.");
	if (!n && a->size == NO_SIZE)
		return cli_error("Either --size N or one filename must be specified.");
	if (n && a->size != NO_SIZE)
		return cli_error("--size N cannot be used together with a filename.");
	if (a->opts.help)
		return cli_error("Invalid parameter 'help'");
	free(cli_opts_take(&a->opts, "size"));
	a->backing = cli_opts_take(&a->opts, "backing_file");
	a->backing_format = cli_opts_take(&a->opts, "backing_fmt");
	a->open.name = names[0];
	return n ? measure_file(a) : measure(a, NULL);
}

int cli_measure(int argc, char **argv)
{
	struct args a = {.size = NO_SIZE};
	const struct cli_opt options[] = {
		CLI_OPT_IMAGE(&a.open),
		CLI_TEXT('l', NULL, "SNAPSHOT", &a.snapshot, "a snapshot inside the image"),
		CLI_TEXT('O', NULL, "FMT", &a.out_format, "the format of the new image"),
		CLI_OPT_LIST(&a.opts),
		CLI_OPT_OUTPUT(&a.json),
		CLI_SIZE(0, "size", "SIZE", &a.size, "image size",
			"of an empty disk this large"),
		CLI_OPT_END,
	};
	int ret = cli_parse(argc, argv, options);

	if (!ret)
		ret = run(&a, argc - optind, argv + optind);
	free(a.backing);
	free(a.backing_format);
	cli_opts_free(&a.opts);
	return ret;
}
