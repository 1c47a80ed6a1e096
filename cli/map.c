/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/map.c - platter map: where the data of an image lies.
 */
#include <inttypes.h>

#include "cli/cli.h"

struct args {
	const char *format;
	bool json, share, image_opts;
	uint64_t start, max;
};

struct state {
	bool any, refused;
};

static void human(void *ctx, const struct fmt_map_extent *e)
{
	struct state *s = ctx;

	if (!(e->flags & BLK_EXT_DATA) || e->flags & BLK_EXT_ZERO || s->refused)
		return;
	if (!(e->flags & BLK_EXT_MAPPED)) {
		cli_error("File contains external, encrypted or compressed clusters.");
		s->refused = true;
		return;
	}
	printf("%#-16" PRIx64 "%#-16" PRIx64 "%#-16" PRIx64 "%s\n", e->off, e->len, e->map,
		blk_map_file(e->layer)->name);
}

static const char *word(unsigned flag)
{
	return flag ? "true" : "false";
}

static void json(void *ctx, const struct fmt_map_extent *e)
{
	struct state *s = ctx;

	printf("%s{ \"start\": %" PRIu64 ", \"length\": %" PRIu64
	       ", \"depth\": %u, \"present\": %s, \"zero\": %s, \"data\": %s",
		s->any ? ",\n" : "[", e->off, e->len, e->depth, word(e->flags & BLK_EXT_ALLOC),
		word(e->flags & BLK_EXT_ZERO), word(e->flags & BLK_EXT_DATA));
	if (e->flags & BLK_EXT_MAPPED)
		printf(", \"offset\": %" PRIu64, e->map);
	putchar('}');
	s->any = true;
}

static int print_map(struct blk *image, const struct args *a)
{
	const struct fmt_map_extent nothing = {.off = a->start};
	struct blk_err err = BLK_ERR_INIT;
	struct state s = {0};
	int code;

	if (!a->json)
		puts("Offset          Length          Mapped to       File");
	code = fmt_map_list(image, a->start, a->max, a->json ? json : human, &s, &err);
	if (a->json && !code && !s.any)
		json(&s, &nothing);
	if (a->json && s.any)
		puts("]");
	return code ? cli_fail(&err) : s.refused;
}

static int parse(struct args *a, int argc, char **argv)
{
	enum { OPT_START = CLI_OPT_FIRST, OPT_MAX };
	static const struct option options[] = {
		CLI_LONG_HELP,
		{"format", required_argument, NULL, 'f'},
		CLI_LONG_OUTPUT,
		CLI_LONG_OBJECT,
		CLI_LONG_IMAGE_OPTS,
		CLI_LONG_SHARE,
		{"start-offset", required_argument, NULL, 's'},
		{"max-length", required_argument, NULL, 'l'},
		CLI_LONG_END,
	};
	int c;

	while ((c = cli_getopt(argc, argv, ":f:s:l:hU", options)) != -1) {
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
		case 's':
			if (cli_size("start offset", optarg, &a->start))
				return 1;
			break;
		case 'l':
			if (cli_size("max length", optarg, &a->max))
				return 1;
			break;
		}
	}
	return 0;
}

int cli_map(int argc, char **argv)
{
	struct args a = {.max = UINT64_MAX};
	struct cli_open o = {0};
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
	ret = cli_open(&image, &o);
	if (ret)
		return ret;
	ret = print_map(image, &a);
	return cli_close(image) | ret;
}
