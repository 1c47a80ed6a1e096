/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/create.c - platter create: makes an image.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "cli/parse.h"

struct args {
	struct fmt_create c;
	struct cli_opts opts;
	const char *backing, *backing_format;
	char *opt_backing, *opt_backing_format; /* from -o */
	bool quiet;
};

/* The value that the image will have for an option, or NULL for none. */
static const char *value_of(const struct fmt_create *c, const struct fmt_opt *o, char *num)
{
	uint64_t v;
	const char *s = blk_opt(c->opts, o->name);

	if (!strcmp(o->name, "size")) {
		sprintf(num, "%" PRIu64, c->size);
		return num;
	}
	if (!strcmp(o->name, "backing_file"))
		return c->backing;
	if (!strcmp(o->name, "backing_fmt"))
		return c->backing_format;
	if (!s)
		return o->def;
	if (o->type != FMT_OPT_SIZE || blk_parse_size(s, &v))
		return s;
	sprintf(num, "%" PRIu64, v);
	return num;
}

/* As it would be given: a comma in a value is two. */
static void print_value(const char *s)
{
	for (; *s; s++) {
		if (*s == ',')
			putchar(',');
		putchar(*s);
	}
}

static void announce(const struct fmt_create *c)
{
	char num[32];

	printf("Formatting '%s', fmt=%s", c->name, c->format);
	for (const struct fmt_opt *o = fmt_driver_find(c->format)->create_opts; o && o->name;
		o++) {
		const char *val = value_of(c, o, num);

		if (!val)
			continue;
		printf(" %s=", o->name);
		print_value(val);
	}
	putchar('\n');
	fflush(stdout);
}

static int create(struct args *a)
{
	struct blk_err err = BLK_ERR_INIT;

	if (fmt_create_check(&a->c, &err))
		return cli_fail_in(a->c.name, &err);
	if (!a->quiet)
		announce(&a->c);
	return fmt_create(&a->c, &err) ? cli_fail_in(a->c.name, &err) : 0;
}

static int take_size(struct args *a, const char *arg)
{
	char *opt = cli_opts_take(&a->opts, "size");
	int ret = 0;

	if (opt && arg)
		ret = cli_error("%s: The image size must be specified only once", a->c.name);
	else if (opt || arg)
		ret = cli_size("image size", opt ? opt : arg, &a->c.size);
	a->c.has_size = opt || arg;
	free(opt);
	return ret;
}

static int finish(struct args *a, const char *size)
{
	int ret = take_size(a, size);

	if (ret)
		return ret;
	a->opt_backing = cli_opts_take(&a->opts, "backing_file");
	a->opt_backing_format = cli_opts_take(&a->opts, "backing_fmt");
	a->c.backing = a->backing ? a->backing : a->opt_backing;
	a->c.backing_format = a->backing_format ? a->backing_format : a->opt_backing_format;
	a->c.opts = &a->opts.o;
	a->c.flags = cli_untrusted ? FMT_UNTRUSTED : 0;
	return create(a);
}

int cli_create(int argc, char **argv)
{
	struct args a = {.c = {.secrets = cli_secrets(), .mem = &thr_heap}};
	const struct cli_opt options[] = {
		CLI_TEXT('f', NULL, "FMT", &a.c.format, "the format (raw)"),
		CLI_TEXT('b', NULL, "FILE", &a.backing, "the backing file"),
		CLI_TEXT('F', NULL, "FMT", &a.backing_format, "the format of the backing file"),
		CLI_FLAG('u', NULL, &a.c.unsafe_backing, "do not look at the backing file"),
		CLI_OPT_LIST(&a.opts),
		CLI_OPT_SEED(&a.c.seed),
		CLI_OPT_QUIET(&a.quiet),
		CLI_OPT_END,
	};
	int ret = cli_parse(argc, argv, options);

	if (!ret && a.opts.help) {
		ret = cli_options_help(a.c.format, optind < argc);
	} else if (!ret) {
		a.c.name = optind < argc ? argv[optind++] : NULL;
		if (!a.c.name)
			ret = cli_usage("Expecting image file name");
		else if (argc - optind > 1)
			ret = cli_usage("Too many arguments: '%s'", argv[optind + 1]);
		else
			ret = finish(&a, optind < argc ? argv[optind] : NULL);
	}
	free(a.opt_backing);
	free(a.opt_backing_format);
	cli_opts_free(&a.opts);
	return ret;
}
