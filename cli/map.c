/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/map.c - platter map: where the data of an image lies.
 */
#include <inttypes.h>

#include "cli/parse.h"

struct args {
	bool json;
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

int cli_map(int argc, char **argv)
{
	struct args a = {.max = UINT64_MAX};
	struct cli_open o = {0};
	const struct cli_opt options[] = {
		CLI_OPT_IMAGE(&o),
		CLI_OPT_OUTPUT(&a.json),
		CLI_SIZE('s', "start-offset", "OFFSET", &a.start, "start offset",
			"where in the disk to begin"),
		CLI_SIZE('l', "max-length", "LEN", &a.max, "max length", "how far to go"),
		CLI_OPT_END,
	};
	struct blk *image;
	int ret;

	if (cli_parse_one(argc, argv, options, &o.name))
		return 1;
	ret = cli_open(&image, &o);
	if (ret)
		return ret;
	ret = print_map(image, &a);
	return cli_close(image) | ret;
}
