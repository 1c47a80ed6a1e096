/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/bench.c - platter bench: how long so many requests take.
 */
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "cli/parse.h"

struct args {
	struct cli_open open;
	const char *engine;
	struct fmt_bench b;
	uint64_t depth, size, pattern; /* for b */
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

/* ---- options ------------------------------------------------------------------------- */

static int take_size(void *ctx, const char *arg)
{
	uint64_t *size = ctx;

	if (cli_size("buffer size", arg, size))
		return 1;
	return *size <= INT_MAX ? 0
				: cli_error("Invalid buffer size specified. Must be between 0 "
					    "and %d.",
					  INT_MAX);
}

static int take_engine(void *ctx, const char *arg)
{
	*(const char **)ctx = arg;
	return cli_engine_ok(arg);
}

static int take_native(void *ctx, const char *arg)
{
	(void)arg;
	return take_engine(ctx, "native");
}

static int take_options(struct args *a, int argc, char **argv)
{
	bool no_drain = false;
	const struct cli_opt options[] = {
		CLI_OPT_IMAGE(&a->open),
		CLI_OPT_CACHE('t', &a->open.cache),
		CLI_CALL('i', NULL, "AIO", take_engine, &a->engine, CLI_ENGINES),
		CLI_CALL('n', NULL, NULL, take_native, &a->engine, "as -i native"),
		CLI_COUNT('c', NULL, "N", &a->b.count, "request count", 0, INT_MAX,
			"how many requests (75000)"),
		CLI_COUNT('d', NULL, "N", &a->depth, "queue depth", 1, INT_MAX,
			"how many at a time (64)"),
		CLI_CALL('s', NULL, "SIZE", take_size, &a->size, "bytes a request (4k)"),
		CLI_SIZE('o', NULL, "OFFSET", &a->b.off, "offset", "where to begin (0)"),
		CLI_SIZE('S', NULL, "STEP", &a->b.step, "step_size",
			"from one request to the next (as -s)"),
		CLI_FLAG('w', NULL, &a->b.write, "write"),
		CLI_COUNT(0, "pattern", "BYTE", &a->pattern, "pattern byte", 0, UINT8_MAX,
			"what is written (0)"),
		CLI_COUNT(0, "flush-interval", "N", &a->b.flush_interval, "flush interval", 0,
			INT_MAX, "flush after so many writes"),
		CLI_FLAG(0, "no-drain", &no_drain, "flush with requests under way"),
		CLI_OPT_THREADS(&a->threads),
		CLI_NOTHING('q', NULL, "taken, and changes nothing, as in qemu-img"),
		CLI_OPT_END,
	};

	if (cli_parse_one(argc, argv, options, &a->open.name))
		return 1;
	a->b.drain = !no_drain;
	a->b.depth = (unsigned)a->depth;
	a->b.size = (uint32_t)a->size;
	a->b.pattern = (uint8_t)a->pattern;
	return 0;
}

static int parse(struct args *a, int argc, char **argv)
{
	unsigned flags;

	if (take_options(a, argc, argv))
		return 1;
	if (a->b.flush_interval && !a->b.write)
		return cli_error("--flush-interval is only available in write tests");
	if (a->b.flush_interval && a->b.flush_interval < a->b.depth)
		return cli_error("Flush interval can't be smaller than depth");
	if (a->open.cache && blk_cache_parse(a->open.cache, &flags))
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

static int open_image(struct blk **out, const struct args *a)
{
	struct blk_opt v[1];
	struct blk_opts opts = {v, 0};
	struct cli_open o = a->open;
	struct blk_err err = BLK_ERR_INIT;
	int code;

	if (o.blk_flags & BLK_SHARE && a->b.write)
		return cli_error("Could not open '%s': force-share=on can only be used with "
				 "read-only images",
			o.name);
	o.blk_flags |= a->b.write ? BLK_RDWR : 0u;
	o.opts = &opts;
	device_options(&opts, v, a, o.name);
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
		.b = {.count = 75000},
		.depth = 64,
		.size = 4096,
		.threads = 1,
	};
	struct blk *image;
	int ret = parse(&a, argc, argv);

	if (ret)
		return ret;
	ret = open_image(&image, &a);
	if (ret)
		return ret;
	ret = bench(image, &a);
	return cli_close(image) | ret;
}
