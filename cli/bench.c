/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/bench.c - platter bench: how long so many requests take.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

struct args {
	const char *format, *cache, *engine;
	struct fmt_bench b;
	bool share, image_opts;
	unsigned threads;
};

struct job {
	struct fmt_bench b;
	struct blk_err err;
};

static int run(void *arg)
{
	struct job *j = arg;

	return fmt_bench(&j->b, &j->err);
}

static void announce(const struct fmt_bench *b)
{
	printf("Sending %" PRIu64 " %s requests, %" PRIu32 " bytes each, %u in parallel "
	       "(starting at offset %" PRIu64 ", step size %" PRIu64 ")\n",
		b->count, b->write ? "write" : "read", b->size, b->depth, b->off, b->step);
	if (b->flush_interval)
		printf("Sending flush every %" PRIu64 " requests\n", b->flush_interval);
	fflush(stdout);
}

/* Past the end is an I/O error here. */
static const char *words(int err)
{
	return blk_strerror(err == -THR_EINVAL ? -THR_EIO : err);
}

static int bench(struct blk *image, const struct args *a)
{
	struct job j = {.b = a->b};
	int err;

	j.b.image = image;
	announce(&j.b);
	err = cli_run(a->threads, run, &j);
	if (err)
		return cli_error("Failed request: %s", words(err));
	printf("Run completed in %3.3f seconds.\n", (double)j.b.ns / 1e9);
	return 0;
}

/* A whole number from 0 to INT_MAX, in any base of C. */
static int number(const char *what, const char *arg, uint64_t max, uint64_t *out)
{
	char *end;
	long long v;

	errno = 0;
	v = strtoll(arg, &end, 0);
	if (errno || end == arg || *end || v < 0 || (uint64_t)v > max)
		return cli_error("Invalid %s specified", what);
	*out = (uint64_t)v;
	return 0;
}

static int take_number(struct args *a, int c, const char *arg)
{
	uint64_t v;

	switch (c) {
	case 'c':
		return number("request count", arg, INT_MAX, &a->b.count);
	case 'd':
		if (number("queue depth", arg, INT_MAX, &v))
			return 1;
		a->b.depth = (unsigned)v;
		return v ? 0 : cli_error("Invalid queue depth specified");
	case 's':
		if (cli_size("buffer size", arg, &v))
			return 1;
		if (v > INT_MAX)
			return cli_error("Invalid buffer size specified. Must be between 0 "
					 "and %d.",
				INT_MAX);
		a->b.size = (uint32_t)v;
		return 0;
	}
	return 0;
}

enum { OPT_PATTERN = CLI_OPT_FIRST, OPT_FLUSH_INTERVAL, OPT_NO_DRAIN, OPT_THREADS };

static const struct option options[] = {
	CLI_LONG_HELP,
	{"flush-interval", required_argument, NULL, OPT_FLUSH_INTERVAL},
	{"pattern", required_argument, NULL, OPT_PATTERN},
	{"no-drain", no_argument, NULL, OPT_NO_DRAIN},
	{"threads", required_argument, NULL, OPT_THREADS},
	CLI_LONG_OBJECT,
	CLI_LONG_IMAGE_OPTS,
	CLI_LONG_SHARE,
	CLI_LONG_END,
};

static int take_engine(struct args *a)
{
	static const char *const engines[] = {
		"threads", "native", "io_uring", "sync", "auto", "aio", "uring"};

	for (size_t i = 0; i < THR_ARRAY_SIZE(engines); i++)
		if (!strcmp(optarg, engines[i])) {
			a->engine = optarg;
			return 0;
		}
	return cli_error("Invalid aio option: %s", optarg);
}

static int take_option(struct args *a, int c)
{
	uint64_t v;
	int ret;

	switch (c) {
	case 'f':
		a->format = optarg;
		return 0;
	case CLI_OPT_IMAGE_OPTS:
		a->image_opts = true;
		return 0;
	case 'i':
		return take_engine(a);
	case 'n':
		a->engine = "native";
		return 0;
	case 'o':
		return cli_size("offset", optarg, &a->b.off);
	case 'q': /* qemu-img prints no less with it */
		return 0;
	case 'S':
		return cli_size("step_size", optarg, &a->b.step);
	case 't':
		a->cache = optarg;
		return 0;
	case 'w':
		a->b.write = true;
		return 0;
	case 'U':
		a->share = true;
		return 0;
	case OPT_PATTERN:
		ret = number("pattern byte", optarg, UINT8_MAX, &v);
		a->b.pattern = ret ? 0 : (uint8_t)v;
		return ret;
	case OPT_FLUSH_INTERVAL:
		return number("flush interval", optarg, INT_MAX, &a->b.flush_interval);
	case OPT_NO_DRAIN:
		a->b.drain = false;
		return 0;
	case OPT_THREADS:
		return cli_threads(optarg, &a->threads);
	}
	return take_number(a, c, optarg);
}

static int parse(struct args *a, int argc, char **argv)
{
	unsigned flags;
	int c;

	while ((c = cli_getopt(argc, argv, ":hc:d:f:i:no:qs:S:t:wU", options)) != -1)
		if (c == CLI_OPT_BAD || take_option(a, c))
			return 1;
	if (optind != argc - 1)
		return cli_usage("Expecting one image file name");
	if (a->b.flush_interval && !a->b.write)
		return cli_error("--flush-interval is only available in write tests");
	if (a->b.flush_interval && a->b.flush_interval < a->b.depth)
		return cli_error("Flush interval can't be smaller than depth");
	if (a->cache && blk_cache_parse(a->cache, &flags))
		return cli_error("Invalid cache mode");
	if (!a->b.step)
		a->b.step = a->b.size;
	return 0;
}

/* The null device has no engines, and as in qemu it leaves the buffers alone. */
static void device_options(
	struct blk_opts *opts, struct blk_opt *v, const struct args *a, const char *name)
{
	bool null = !strncmp(name, "null-co:", 8);

	if (null)
		v[opts->n++] = (struct blk_opt){"file.read-zeroes", "off"};
	else if (a->engine)
		v[opts->n++] = (struct blk_opt){"file.engine", a->engine};
}

static int open_image(struct blk **out, const struct args *a, const char *name)
{
	struct blk_opt v[1];
	struct blk_opts opts = {v, 0};
	struct cli_open o = {
		.name = name,
		.format = a->format,
		.image_opts = a->image_opts,
		.cache = a->cache,
		.blk_flags = (a->b.write ? BLK_RDWR : 0u) | (a->share ? BLK_SHARE : 0u),
		.opts = &opts,
	};
	struct blk_err err = BLK_ERR_INIT;
	int code;

	if (a->share && a->b.write)
		return cli_error("Could not open '%s': force-share=on can only be used with "
				 "read-only images",
			name);
	device_options(&opts, v, a, name);
	code = cli_open_err(out, &o, &err);
	/* A device that was named by options may have no engines either. */
	if (code && err.id == BLK_E_BAD_OPTION && a->engine && opts.n) {
		opts.n = 0;
		err = (struct blk_err)BLK_ERR_INIT;
		code = cli_open_err(out, &o, &err);
	}
	return code ? cli_fail(&err) : 0;
}

int cli_bench(int argc, char **argv)
{
	struct args a = {
		.b = {.count = 75000, .depth = 64, .size = 4096, .drain = true},
		.threads = 1,
	};
	struct blk *image;
	int ret = parse(&a, argc, argv);

	if (ret)
		return ret;
	ret = open_image(&image, &a, argv[optind]);
	if (ret)
		return ret;
	ret = bench(image, &a);
	return cli_close(image) | ret;
}
