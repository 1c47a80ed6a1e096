/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/check.c - platter check: whether an image is sound, and repairing it.
 */
#include <inttypes.h>
#include <string.h>

#include "cli/parse.h"

enum { CHECK_ERROR = 1, CHECK_CORRUPT = 2, CHECK_LEAKS = 3, CHECK_UNSUPPORTED = 63 };

struct args {
	struct cli_open open;
	bool json, quiet;
	unsigned fix;
};

/* Findings are no output of their own: they go where errors go. */
static void line(void *ctx, const char *text)
{
	(void)ctx;
	fflush(stdout);
	fprintf(stderr, "%s\n", text);
}

static double percent(uint64_t part, uint64_t of)
{
	return of ? (double)part * 100.0 / (double)of : 0.0;
}

static void verdict(const struct fmt_check *c)
{
	if (!c->corruptions && !c->leaks && !c->check_errors)
		puts("No errors were found on the image.");
	if (c->corruptions)
		printf("\n%" PRIu64 " errors were found on the image.\n"
		       "Data may be corrupted, or further writes to the image may corrupt "
		       "it.\n",
			c->corruptions);
	if (c->leaks)
		printf("\n%" PRIu64 " leaked clusters were found on the image.\n"
		       "This means waste of disk space, but no harm to data.\n",
			c->leaks);
	if (c->check_errors)
		printf("\n%" PRIu64 " internal errors have occurred during the check.\n",
			c->check_errors);
}

static void human(const struct fmt_check *c)
{
	verdict(c);
	if (c->total_clusters && c->allocated_clusters)
		printf("%" PRIu64 "/%" PRIu64 " = %0.2f%% allocated, %0.2f%% fragmented, "
		       "%0.2f%% compressed clusters\n",
			c->allocated_clusters, c->total_clusters,
			percent(c->allocated_clusters, c->total_clusters),
			percent(c->fragmented_clusters, c->allocated_clusters),
			percent(c->compressed_clusters, c->allocated_clusters));
	if (c->image_end)
		printf("Image end offset: %" PRIu64 "\n", c->image_end);
}

static void num(struct cli_json *j, const char *key, uint64_t val)
{
	if (val)
		cli_json_num(j, key, val);
}

static void json(const struct fmt_check *c, const char *name, const char *format)
{
	struct cli_json j;

	cli_json_begin(&j, stdout);
	cli_json_open(&j, NULL, false);
	num(&j, "image-end-offset", c->image_end);
	num(&j, "compressed-clusters", c->compressed_clusters);
	num(&j, "total-clusters", c->total_clusters);
	num(&j, "corruptions", c->corruptions);
	num(&j, "corruptions-fixed", c->corruptions_fixed);
	cli_json_num(&j, "check-errors", c->check_errors);
	num(&j, "leaks", c->leaks);
	num(&j, "leaks-fixed", c->leaks_fixed);
	num(&j, "allocated-clusters", c->allocated_clusters);
	cli_json_str(&j, "filename", name);
	cli_json_str(&j, "format", format);
	num(&j, "fragmented-clusters", c->fragmented_clusters);
	cli_json_close(&j, false);
	cli_json_end(&j);
}

static int status(const struct fmt_check *c)
{
	if (c->check_errors)
		return CHECK_ERROR;
	if (c->corruptions)
		return CHECK_CORRUPT;
	return c->leaks ? CHECK_LEAKS : 0;
}

static int failed(const struct blk_err *err)
{
	if (err->id == BLK_E_NO_CHECK) {
		cli_fail(err);
		return CHECK_UNSUPPORTED;
	}
	cli_fail_in("Check failed", err);
	return CHECK_ERROR;
}

/* What has been repaired is looked at once more: that counts. */
static int check_again(
	struct blk *image, const struct args *a, struct fmt_check *c, struct blk_err *err)
{
	struct fmt_check again = {.line = c->line};
	int code;

	if (!c->leaks_fixed && !c->corruptions_fixed)
		return 0;
	if (!a->json && !a->quiet)
		printf("The following inconsistencies were found and repaired:\n\n"
		       "    %" PRIu64 " leaked clusters\n    %" PRIu64 " corruptions\n\n"
		       "Double checking the fixed image now...\n",
			c->leaks_fixed, c->corruptions_fixed);
	code = fmt_check(image, &again, err);
	again.leaks_fixed = c->leaks_fixed;
	again.corruptions_fixed = c->corruptions_fixed;
	*c = again;
	return code;
}

static int check(struct blk *image, const struct args *a)
{
	struct fmt_check c = {.fix = a->fix, .line = line};
	struct blk_err err = BLK_ERR_INIT;

	if (fmt_check(image, &c, &err) || check_again(image, a, &c, &err))
		return failed(&err);
	if (a->json)
		json(&c, a->open.name, fmt_driver_of(image)->name);
	else if (!a->quiet)
		human(&c);
	return status(&c);
}

static int set_fix(void *ctx, const char *arg)
{
	unsigned *fix = ctx;

	if (!strcmp(arg, "leaks"))
		*fix = FMT_FIX_LEAKS;
	else if (!strcmp(arg, "all"))
		*fix = FMT_FIX_LEAKS | FMT_FIX_ERRORS;
	else
		return cli_usage(
			"Unknown option value for -r (expecting 'leaks' or 'all'): %s", arg);
	return 0;
}

int cli_check(int argc, char **argv)
{
	struct args a = {.open = {.flags = FMT_NO_BACKING}};
	const struct cli_opt options[] = {
		CLI_OPT_IMAGE(&a.open),
		CLI_CALL('r', "repair", "WHAT", set_fix, &a.fix, "repair 'leaks' or 'all'"),
		CLI_OPT_OUTPUT(&a.json),
		CLI_OPT_CACHE('T', &a.open.cache),
		CLI_OPT_QUIET(&a.quiet),
		CLI_OPT_END,
	};
	struct blk *image;
	int ret;

	if (cli_parse_one(argc, argv, options, &a.open.name) ||
		cli_cache_ok("source cache", a.open.cache))
		return 1;
	a.open.blk_flags |= a.fix ? BLK_RDWR : 0u;
	a.open.flags |= a.fix ? FMT_REPAIR : 0u;
	ret = cli_open(&image, &a.open);
	if (ret)
		return ret;
	ret = check(image, &a);
	return cli_close(image) ? CHECK_ERROR : ret;
}
