/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/compare.c - platter compare: whether two images hold the same.
 */
#include <inttypes.h>

#include "cli/cli.h"

enum { COMPARE_DIFFERENT = 1, COMPARE_OPEN = 2, COMPARE_MAP = 3, COMPARE_READ = 4 };

struct args {
	const char *format_a, *format_b, *cache;
	bool progress, quiet, strict, share, image_opts;
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

static int parse(struct args *a, int argc, char **argv)
{
	enum { OPT_THREADS = CLI_OPT_FIRST };
	static const struct option options[] = {
		CLI_LONG_HELP,
		CLI_LONG_OBJECT,
		CLI_LONG_IMAGE_OPTS,
		CLI_LONG_SHARE,
		{"threads", required_argument, NULL, OPT_THREADS},
		CLI_LONG_END,
	};
	int c;

	while ((c = cli_getopt(argc, argv, ":hf:F:T:pqsU", options)) != -1) {
		switch (c) {
		case CLI_OPT_BAD:
			return 1;
		case CLI_OPT_IMAGE_OPTS:
			a->image_opts = true;
			break;
		case 'f':
			a->format_a = optarg;
			break;
		case 'F':
			a->format_b = optarg;
			break;
		case 'T':
			a->cache = optarg;
			break;
		case 'p':
			a->progress = true;
			break;
		case 'q':
			a->quiet = true;
			break;
		case 's':
			a->strict = true;
			break;
		case 'U':
			a->share = true;
			break;
		case OPT_THREADS:
			if (cli_threads(optarg, &a->threads))
				return 1;
			break;
		}
	}
	return 0;
}

int cli_compare(int argc, char **argv)
{
	struct args a = {0};
	struct cli_open o = {0};
	struct blk *first, *second;
	int ret = parse(&a, argc, argv);

	if (ret)
		return ret;
	if (optind != argc - 2)
		return cli_usage("Expecting two image file names");
	if (cli_cache_ok("source cache", a.cache))
		return COMPARE_OPEN;
	o.cache = a.cache;
	o.blk_flags = BLK_SEQUENTIAL | (a.share ? BLK_SHARE : 0u);
	o.name = argv[optind];
	o.format = a.format_a;
	o.image_opts = a.image_opts;
	if (cli_open(&first, &o))
		return COMPARE_OPEN;
	o.name = argv[optind + 1];
	o.format = a.format_b;
	if (cli_open(&second, &o)) {
		cli_close(first);
		return COMPARE_OPEN;
	}
	ret = compare(first, second, &a);
	cli_close(second);
	cli_close(first);
	return ret;
}
