/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/compare.c - platter compare: whether two images hold the same.
 */
#include <inttypes.h>

#include "cli/parse.h"

enum { COMPARE_DIFFERENT = 1, COMPARE_OPEN = 2, COMPARE_MAP = 3, COMPARE_READ = 4 };

struct args {
	struct cli_open first, second;
	bool progress, quiet, strict;
	unsigned threads;
};

struct job {
	struct fmt_compare c;
	struct blk_err err;
};

static int run(void *arg)
{
	struct job *j = arg;

	return fmt_compare(&j->c, &j->err);
}

static int failed(const struct blk_err *err)
{
	cli_fail(err);
	return err->id == BLK_E_MAP_AT ? COMPARE_MAP : COMPARE_READ;
}

static void tell(const struct fmt_compare *c)
{
	if (c->warn_size)
		puts("Warning: Image size mismatch!");
	switch (c->result) {
	case FMT_SAME:
		puts("Images are identical.");
		break;
	case FMT_SIZE_DIFFERS:
		puts("Strict mode: Image size mismatch!");
		break;
	case FMT_DIFFERENT:
		if (c->allocation)
			printf("Strict mode: Offset %" PRIu64 " block status mismatch!\n",
				c->offset);
		else
			printf("Content mismatch at offset %" PRIu64 "!\n", c->offset);
		break;
	}
}

static int compare(struct blk *a, struct blk *b, const struct args *args)
{
	struct job j = {.c = {.a = a, .b = b, .strict = args->strict}};
	struct cli_progress p;
	int code;

	cli_progress_begin(&p, args->progress && !args->quiet);
	j.c.progress = p.p;
	code = cli_run(args->threads, run, &j);
	if (!code && j.c.result == FMT_SAME)
		cli_progress_full(&p);
	if (!code && !args->quiet)
		tell(&j.c);
	cli_progress_end(&p);
	if (!code)
		return j.c.result == FMT_SAME ? 0 : COMPARE_DIFFERENT;
	if (!j.err.code)
		blk_fail(&j.err, code, BLK_E_SYS, 0, 0);
	return failed(&j.err);
}

static int open_both(struct args *a, struct blk **first, struct blk **second)
{
	a->second.cache = a->first.cache;
	a->second.blk_flags = a->first.blk_flags;
	a->second.image_opts = a->first.image_opts;
	if (cli_cache_ok("source cache", a->first.cache) || cli_open(first, &a->first))
		return COMPARE_OPEN;
	if (!cli_open(second, &a->second))
		return 0;
	cli_close(*first);
	return COMPARE_OPEN;
}

int cli_compare(int argc, char **argv)
{
	struct args a = {.first = {.blk_flags = BLK_SEQUENTIAL}};
	const struct cli_opt options[] = {
		CLI_OPT_IMAGE(&a.first),
		CLI_TEXT('F', NULL, "FMT", &a.second.format, "the format of the second image"),
		CLI_OPT_CACHE('T', &a.first.cache),
		CLI_OPT_PROGRESS(&a.progress),
		CLI_OPT_QUIET(&a.quiet),
		CLI_FLAG('s', NULL, &a.strict, "sizes and allocation must be the same too"),
		CLI_OPT_THREADS(&a.threads),
		CLI_OPT_END,
	};
	struct blk *first, *second;
	int ret;

	if (cli_parse(argc, argv, options))
		return 1;
	if (optind != argc - 2)
		return cli_usage("Expecting two image file names");
	a.first.name = argv[optind];
	a.second.name = argv[optind + 1];
	ret = open_both(&a, &first, &second);
	if (ret)
		return ret;
	ret = compare(first, second, &a);
	cli_close(second);
	cli_close(first);
	return ret;
}
