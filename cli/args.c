/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/args.c - options and their values; the tables of parse.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/help.h"
#include "cli/parse.h"

bool cli_untrusted;

/* The next option; -h is the caller's. */
static int next_option(
	int argc, char **argv, const char *short_opts, const struct option *long_opts)
{
	int c;

	do {
		c = getopt_long(argc, argv, short_opts, long_opts, NULL);
		cli_untrusted |= c == CLI_OPT_UNTRUSTED;
	} while (c == CLI_OPT_UNTRUSTED);

	switch (c) {
	case ':':
		cli_usage("missing argument for option '%s'", argv[optind - 1]);
		return CLI_OPT_BAD;
	case '?':
		cli_usage("unrecognized option '%s'", argv[optind - 1]);
		return CLI_OPT_BAD;
	case CLI_OPT_OBJECT:
		return cli_object_add(optarg) ? CLI_OPT_BAD : c;
	}
	return c;
}

int cli_getopt(int argc, char **argv, const char *short_opts, const struct option *long_opts)
{
	int c = next_option(argc, argv, short_opts, long_opts);

	if (c != 'h')
		return c;
	cli_help();
	exit(cli_done(0));
}

/* ---- tables of options -------------------------------------------------------------- */

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
	while ((c = next_option(argc, argv, g.letters, g.names)) != -1) {
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

/* ---- lists of options ------------------------------------------------------------- */

static int append(struct cli_opts *l, char *key, char *val)
{
	if (l->o.n == l->room) {
		unsigned room = l->room ? 2 * l->room : 8;
		struct blk_opt *v = realloc(l->v, room * sizeof(*v));

		if (!v)
			return cli_no_memory();
		l->v = v;
		l->o.v = v;
		l->room = room;
	}
	l->v[l->o.n++] = (struct blk_opt){.key = key, .val = val};
	return 0;
}

/* Cuts the next item off @s, "key=value" with double commas made single. */
static char *next_item(const char **s)
{
	char *item = malloc(strlen(*s) + 1);
	char *to = item;
	const char *p = *s;

	if (!item)
		return NULL;
	for (; *p && (*p != ',' || p[1] == ','); p++) {
		p += *p == ',';
		*to++ = *p;
	}
	*to = '\0';
	*s = *p ? p + 1 : p;
	return item;
}

/* "key" alone switches it on. */
static int add_item(struct cli_opts *l, char *item)
{
	char *eq = strchr(item, '=');
	char *val;

	if (!strcmp(item, "help") || !strcmp(item, "?")) {
		l->help = true;
		free(item);
		return 0;
	}
	val = strdup(eq ? eq + 1 : "on");
	if (!val) {
		free(item);
		return cli_no_memory();
	}
	/* It may be a secret. */
	if (eq)
		explicit_bzero(eq, strlen(eq));
	if (!append(l, item, val))
		return 0;
	free(item);
	free(val);
	return 1;
}

int cli_opts_add(struct cli_opts *l, const char *arg)
{
	if (!*arg)
		return cli_error("Invalid option list: %s", arg);
	while (*arg) {
		char *item = next_item(&arg);

		if (!item)
			return cli_no_memory();
		if (!*item) {
			free(item);
			return cli_error("Invalid option list: an option has no name");
		}
		if (add_item(l, item))
			return 1;
	}
	return 0;
}

int cli_opts_put(struct cli_opts *l, const char *key, const char *val)
{
	char *k = strdup(key);
	char *v = strdup(val);

	if (k && v && !append(l, k, v))
		return 0;
	free(k);
	free(v);
	return k && v ? 1 : cli_no_memory();
}

static void free_opt(const struct blk_opt *o)
{
	free((char *)(uintptr_t)o->key);
	free((char *)(uintptr_t)o->val);
}

char *cli_opts_take(struct cli_opts *l, const char *key)
{
	const char *last = blk_opt(&l->o, key);
	char *val = last ? strdup(last) : NULL;
	unsigned n = 0;

	for (unsigned i = 0; i < l->o.n; i++) {
		if (strcmp(l->v[i].key, key))
			l->v[n++] = l->v[i];
		else
			free_opt(&l->v[i]);
	}
	l->o.n = n;
	return val;
}

void cli_opts_free(struct cli_opts *l)
{
	for (unsigned i = 0; i < l->o.n; i++)
		free_opt(&l->v[i]);
	free(l->v);
	memset(l, 0, sizeof(*l));
}

/* ---- values -------------------------------------------------------------------------- */

int cli_size(const char *what, const char *arg, uint64_t *out)
{
	int err = blk_parse_size(arg, out);

	if (!err && *out <= INT64_MAX)
		return 0;
	if (!err || err == -THR_ERANGE)
		return cli_error("Invalid %s specified. Must be between 0 and %llu.", what,
			(unsigned long long)INT64_MAX);
	return cli_error("Invalid %s specified. You may use k, M, G, T, P or E suffixes for "
			 "kilobytes, megabytes, gigabytes, terabytes, petabytes and exabytes.",
		what);
}

int cli_number(const char *arg, unsigned min, unsigned max, unsigned *out)
{
	char *end;
	unsigned long v;

	if (*arg < '0' || *arg > '9')
		return -THR_EINVAL;
	v = strtoul(arg, &end, 10);
	if (*end || v < min || v > max)
		return -THR_EINVAL;
	*out = (unsigned)v;
	return 0;
}

int cli_threads(const char *arg, unsigned *out)
{
	if (!cli_number(arg, 1, CLI_THREADS_MAX, out))
		return 0;
	return cli_error("Invalid number of threads, it is between 1 and %u", CLI_THREADS_MAX);
}

int cli_engine_ok(const char *arg)
{
	static const char *const engines[] = {
		"threads", "native", "io_uring", "sync", "auto", "aio", "uring"};

	for (size_t i = 0; i < THR_ARRAY_SIZE(engines); i++)
		if (!strcmp(arg, engines[i]))
			return 0;
	return cli_error("Invalid aio option: %s", arg);
}

int cli_output(const char *arg, bool *json)
{
	*json = !strcmp(arg, "json");
	if (*json || !strcmp(arg, "human"))
		return 0;
	return cli_error("--output must be used with human or json as argument.");
}
