/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/measure.c - platter measure: how large the file of a new image will be.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "cli/cli.h"

struct args {
	const char *format, *out_format;
	const char *snapshot; /* of the source, or NULL */
	struct cli_opts opts;
	char *backing, *backing_format; /* from opts */
	uint64_t size;
	bool has_size, json, share, image_opts;
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

static int measure_file(const struct args *a, const char *name)
{
	struct cli_open o = {
		.name = name,
		.format = a->format,
		.image_opts = a->image_opts,
		.blk_flags = a->share ? BLK_SHARE : 0u,
	};
	struct blk *src;
	int ret = cli_open(&src, &o);

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
	if (!n && (a->format || a->image_opts || a->snapshot))
		return cli_error("--image-opts, -f, and -l require a filename argument.");
	if (!n && !a->has_size)
		return cli_error("Either --size N or one filename must be specified.");
	if (n && a->has_size)
		return cli_error("--size N cannot be used together with a filename.");
	if (a->opts.help)
		return cli_error("Invalid parameter 'help'");
	free(cli_opts_take(&a->opts, "size"));
	a->backing = cli_opts_take(&a->opts, "backing_file");
	a->backing_format = cli_opts_take(&a->opts, "backing_fmt");
	return n ? measure_file(a, names[0]) : measure(a, NULL);
}

static int parse(struct args *a, int argc, char **argv)
{
	enum { OPT_SIZE = CLI_OPT_FIRST };
	static const struct option options[] = {
		CLI_LONG_HELP,
		CLI_LONG_OBJECT,
		CLI_LONG_IMAGE_OPTS,
		CLI_LONG_OUTPUT,
		CLI_LONG_SHARE,
		{"size", required_argument, NULL, OPT_SIZE},
		CLI_LONG_END,
	};
	int c;

	while ((c = cli_getopt(argc, argv, ":hf:l:o:O:U", options)) != -1) {
		switch (c) {
		case CLI_OPT_BAD:
			return 1;
		case CLI_OPT_IMAGE_OPTS:
			a->image_opts = true;
			break;
		case 'f':
			a->format = optarg;
			break;
		case 'l':
			a->snapshot = optarg;
			break;
		case 'o':
			if (cli_opts_add(&a->opts, optarg))
				return 1;
			break;
		case 'O':
			a->out_format = optarg;
			break;
		case 'U':
			a->share = true;
			break;
		case CLI_OPT_OUTPUT:
			if (cli_output(optarg, &a->json))
				return 1;
			break;
		case OPT_SIZE:
			if (cli_size("image size", optarg, &a->size))
				return 1;
			a->has_size = true;
			break;
		}
	}
	return 0;
}

int cli_measure(int argc, char **argv)
{
	struct args a = {0};
	int ret = parse(&a, argc, argv);

	if (!ret)
		ret = run(&a, argc - optind, argv + optind);
	free(a.backing);
	free(a.backing_format);
	cli_opts_free(&a.opts);
	return ret;
}
