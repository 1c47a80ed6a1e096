/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/parse.c - tables of options: made into getopt's two lists, filled, listed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/help.h"
#include "cli/parse.h"

struct getopt_args {
	char letters[2 * CLI_OPTS_MAX + 3];
	struct option names[CLI_OPTS_MAX + 4];
};

static void add_row(struct getopt_args *g, const struct cli_opt *o, unsigned i, unsigned *n)
{
	size_t len = strlen(g->letters);

	if (o->letter) {
		g->letters[len++] = o->letter;
		g->letters[len++] = o->arg ? ':' : '\0';
		g->letters[len] = '\0';
	}
	if (o->name)
		g->names[(*n)++] = (struct option){
			.name = o->name,
			.has_arg = o->arg ? required_argument : no_argument,
			.val = o->letter ? o->letter : CLI_OPT_FIRST + (int)i,
		};
}

/* The table as getopt_long() wants it, and what every command has. */
static void for_getopt(struct getopt_args *g, const struct cli_opt *opts)
{
	static const struct option common[] = {CLI_LONG_HELP, CLI_LONG_OBJECT};
	unsigned n = THR_ARRAY_SIZE(common);

	memset(g, 0, sizeof(*g));
	memcpy(g->letters, ":h", 2);
	memcpy(g->names, common, sizeof(common));
	for (unsigned i = 0; opts[i].letter || opts[i].name; i++) {
		THR_ASSERT(i < CLI_OPTS_MAX);
		add_row(g, &opts[i], i, &n);
	}
}

static const struct cli_opt *find_row(const struct cli_opt *opts, int c)
{
	if (c >= CLI_OPT_FIRST)
		return &opts[c - CLI_OPT_FIRST];
	while (opts->letter != c)
		opts++;
	return opts;
}

static int take_count(const struct cli_opt *o, const char *arg)
{
	char *end;
	long long v;

	errno = 0;
	v = strtoll(arg, &end, 0);
	if (errno || end == arg || *end || v < (long long)o->min || (uint64_t)v > o->max)
		return cli_error("Invalid %s specified", o->with.what);
	*o->to.size = (uint64_t)v;
	return 0;
}

static int take(const struct cli_opt *o, const char *arg)
{
	switch (o->kind) {
	case CLI_KIND_NONE:
		break;
	case CLI_KIND_FLAG:
		*o->to.flag = true;
		break;
	case CLI_KIND_BITS:
		*o->to.number |= o->with.bits;
		break;
	case CLI_KIND_TEXT:
		*o->to.text = arg;
		break;
	case CLI_KIND_SIZE:
		return cli_size(o->with.what, arg, o->to.size);
	case CLI_KIND_COUNT:
		return take_count(o, arg);
	case CLI_KIND_FIBERS:
		if (cli_number(arg, 1, 16, o->to.number))
			return cli_error("Invalid number of coroutines. Allowed number of "
					 "coroutines is between 1 and 16");
		break;
	case CLI_KIND_THREADS:
		return cli_threads(arg, o->to.number);
	case CLI_KIND_OUTPUT:
		return cli_output(arg, o->to.flag);
	case CLI_KIND_LIST:
		return cli_opts_add(o->to.list, arg);
	case CLI_KIND_CALL:
		return o->to.take(o->with.ctx, arg);
	}
	return 0;
}

static void list_row(const struct cli_opt *o)
{
	char names[64] = "";
	int n = 0;

	if (o->letter)
		n = snprintf(names, sizeof(names), "-%c%s", o->letter, o->name ? ", " : "");
	snprintf(names + n, sizeof(names) - (size_t)n, "%s%s%s%s", o->name ? "--" : "",
		o->name ? o->name : "", o->arg ? " " : "", o->arg ? o->arg : "");
	printf("  %-20s %s%s\n", names, strlen(names) > 20 ? " " : "", o->help);
}

void cli_opt_list(const struct cli_opt *opts)
{
	static const struct cli_opt common[] = {
		CLI_TEXT(0, "object", "TYPE,...", NULL, "defines a secret or TLS credentials"),
		CLI_FLAG(0, "untrusted", NULL, "open nothing that an image names"),
		CLI_FLAG('h', "help", NULL, "display this help and exit"),
	};

	for (; opts->letter || opts->name; opts++)
		if (opts->help)
			list_row(opts);
	for (size_t i = 0; i < THR_ARRAY_SIZE(common); i++)
		list_row(&common[i]);
}

int cli_parse(int argc, char **argv, const struct cli_opt *opts)
{
	struct getopt_args g;
	int c;

	for_getopt(&g, opts);
	while ((c = cli_next_opt(argc, argv, g.letters, g.names)) != -1) {
		if (c == 'h') {
			cli_command_help(argv[0], opts);
			exit(cli_done(0));
		}
		if (c == CLI_OPT_BAD)
			return 1;
		if (c != CLI_OPT_OBJECT && take(find_row(opts, c), optarg))
			return 1;
	}
	return 0;
}

int cli_parse_one(int argc, char **argv, const struct cli_opt *opts, const char **name)
{
	if (cli_parse(argc, argv, opts))
		return 1;
	if (optind != argc - 1)
		return cli_usage("Expecting one image file name");
	*name = argv[optind];
	return 0;
}
