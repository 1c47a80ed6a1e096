/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/commit.c - platter commit: writes an overlay into its backing file.
 *
 * The chain is opened twice: first to find the base in it, then with the base open for
 * writing. Only one open file can hold the lock of an image, so the base cannot be opened
 * beside the chain.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/parse.h"

struct args {
	struct cli_open open;
	const char *base;
	bool keep, progress, quiet;
	uint64_t rate;
	unsigned threads;
};

struct job {
	struct fmt_commit c;
	struct blk_err err;
};

static int run(void *arg)
{
	struct job *j = arg;

	return fmt_commit(&j->c, &j->err);
}

/* Whether a layer is what the user means: its name, or the name that the image above it
 * has for it, or another name of the same file. */
static bool is_base(const struct blk *over, const struct blk *layer, const char *base)
{
	const struct fmt_driver *d = fmt_driver_of(over);
	const char *name, *format;
	char *a, *b;
	bool same;

	if (!strcmp(layer->file->name, base))
		return true;
	if (d->backing && !d->backing((struct blk *)(uintptr_t)over, &name, &format) &&
		!strcmp(name, base))
		return true;
	a = realpath(layer->file->name, NULL);
	b = realpath(base, NULL);
	same = a && b && !strcmp(a, b);
	free(a);
	free(b);
	return same;
}

/* How deep the base lies: 0 after a message. */
static unsigned depth_of(const struct blk *top, const struct args *a)
{
	unsigned depth = 1;

	if (!top->backing) {
		cli_error("Image does not have a backing file");
		return 0;
	}
	if (!a->base)
		return depth;
	for (const struct blk *b = top; b->backing; b = b->backing, depth++)
		if (is_base(b, b->backing, a->base))
			return depth;
	cli_error("Did not find '%s' in the backing chain of '%s'", a->base, a->open.name);
	return 0;
}

static int commit(struct blk *image, unsigned depth, const struct args *a)
{
	struct job j = {.c = {.image = image, .base = image, .keep = a->keep, .rate = a->rate}};
	struct cli_progress p;
	int code;

	while (depth--)
		j.c.base = j.c.base->backing;
	cli_progress_begin(&p, a->progress && !a->quiet);
	j.c.progress = p.p;
	code = cli_run(a->threads, run, &j);
	if (!code)
		cli_progress_full(&p);
	cli_progress_end(&p);
	if (code && !j.err.code)
		blk_fail(&j.err, code, BLK_E_SYS, 0, 0);
	return code ? cli_fail(&j.err) : 0;
}

static int open_and_commit(struct args *a)
{
	struct blk *image;
	unsigned depth;
	int ret = cli_open(&image, &a->open);

	if (ret)
		return ret;
	depth = depth_of(image, a);
	ret = cli_close(image);
	if (!depth || ret)
		return 1;
	a->open.blk_flags = a->keep ? 0 : BLK_RDWR;
	a->open.writable = depth;
	ret = cli_open(&image, &a->open);
	if (ret)
		return ret;
	ret = commit(image, depth, a);
	ret |= cli_close(image);
	if (!ret && !a->quiet)
		puts("Image committed.");
	return ret;
}

int cli_commit(int argc, char **argv)
{
	struct args a = {0};
	const struct cli_opt options[] = {
		CLI_OPT_FORMAT(&a.open.format),
		CLI_OPT_IMAGE_OPTS(&a.open.image_opts),
		CLI_OPT_CACHE('t', &a.open.cache),
		CLI_TEXT('b', NULL, "BASE", &a.base, "the image of the chain to write into"),
		CLI_FLAG('d', NULL, &a.keep, "do not empty the overlay"),
		CLI_SIZE('r', NULL, "RATE", &a.rate, "rate limit", "bytes a second at most"),
		CLI_OPT_PROGRESS(&a.progress),
		CLI_OPT_QUIET(&a.quiet),
		CLI_OPT_THREADS(&a.threads),
		CLI_OPT_END,
	};

	if (cli_parse_one(argc, argv, options, &a.open.name) ||
		cli_cache_ok("cache", a.open.cache))
		return 1;
	/* What lies between would be wrong for an emptied image. */
	a.keep |= a.base != NULL;
	return open_and_commit(&a);
}
