/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/args.c - options and their values.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/help.h"

bool cli_untrusted;

int cli_next_opt(int argc, char **argv, const char *short_opts, const struct option *long_opts)
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
	int c = cli_next_opt(argc, argv, short_opts, long_opts);

	if (c != 'h')
		return c;
	cli_help();
	exit(cli_done(0));
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
