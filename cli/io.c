/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/io.c - platter io: reads, writes and looks at an image by commands, from -c or
 * from standard input.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/help.h"
#include "cli/io.h"
#include "cli/parse.h"

struct args {
	struct io_open open;
	char **commands;
	unsigned n;
	bool misalign;
};

/* ---- the file ------------------------------------------------------------------ */

static bool is_one_of(const char *s, const char *const *words)
{
	while (*words && strcmp(s, *words))
		words++;
	return *words;
}

/* -1 after a message; else whether discards go to the file. */
static int take_discard(const char *s, bool *on)
{
	static const char *const yes[] = {"unmap", "on", NULL};
	static const char *const no[] = {"ignore", "off", NULL};

	*on = !s || is_one_of(s, yes);
	if (*on || is_one_of(s, no))
		return 0;
	cli_error("Invalid discard option: %s", s);
	return -1;
}

static int judge(const struct io_open *o)
{
	if (cli_cache_ok("cache", o->cache) || (o->engine && cli_engine_ok(o->engine)))
		return -1;
	return 0;
}

/* The content of the disk decides what a probed raw image is next time. */
static void warn_probed(const struct io_open *o, const struct blk *image)
{
	if (!o->format && !o->image_opts && image->file &&
		fmt_driver_of(image) == fmt_driver_find("raw"))
		cli_warn("Image format was not specified for '%s' and probing guessed raw",
			o->name);
}

static int open_image(struct io *io, struct io_open *o)
{
	struct cli_open co = {
		.name = o->name,
		.format = o->format,
		.image_opts = o->image_opts,
		.cache = o->direct ? "none" : o->cache,
		.blk_flags = o->read_only || o->snapshot ? 0 : BLK_RDWR,
		.opts = &o->opts.o,
	};
	struct blk_err err = BLK_ERR_INIT;
	char *what;

	if (o->engine && cli_opts_put(&o->opts, "file.engine", o->engine))
		return -1;
	if (o->share)
		co.blk_flags |= BLK_SHARE;
	if (!cli_open_err(&io->image, &co, &err)) {
		warn_probed(o, io->image);
		return o->snapshot && !o->read_only && cli_overlay(&io->image) ? -1 : 0;
	}
	if (asprintf(&what, "can't open device %s", o->name) < 0)
		return cli_no_memory();
	cli_fail_in(what, &err);
	free(what);
	return -1;
}

int io_open_file(struct io *io, struct io_open *o)
{
	bool discard;

	if (io->image) {
		cli_error("file open already, try 'help close'");
		return -1;
	}
	if (take_discard(o->discard, &discard) || judge(o))
		return -1;
	if (o->share && !o->read_only) {
		cli_error("can't open device %s: force-share=on can only be used with "
			  "read-only images",
			o->name);
		return -1;
	}
	io->no_discard = !discard;
	return open_image(io, o);
}

int io_close_file(struct io *io)
{
	int ret;

	io_job_drain(io);
	ret = cli_close(io->image);
	io->image = NULL;
	return ret ? -1 : 0;
}

/* Of -o, what has a place of its own. */
static void take_options(struct io_open *o, char **driver, char **name)
{
	*driver = cli_opts_take(&o->opts, "driver");
	*name = cli_opts_take(&o->opts, "file.filename");
	if (*driver)
		o->format = *driver;
	if (*name)
		o->name = *name;
}

static int parse_open(struct io_open *o, int argc, char **argv)
{
	int c;

	optind = 0;
	while ((c = getopt(argc, argv, "rsnkUt:i:d:o:")) != -1) {
		switch (c) {
		case 'r':
			o->read_only = true;
			break;
		case 's':
			o->snapshot = true;
			break;
		case 'n':
			o->direct = true;
			break;
		case 'k':
			o->engine = "native";
			break;
		case 'U':
			o->share = true;
			break;
		case 't':
			o->cache = optarg;
			break;
		case 'i':
			o->engine = optarg;
			break;
		case 'd':
			o->discard = optarg;
			break;
		case 'o':
			if (cli_opts_add(&o->opts, optarg))
				return -1;
			break;
		default:
			return io_command_usage(argv[0]);
		}
	}
	if (argc - optind > 1)
		return io_command_usage(argv[0]);
	o->name = argv[optind];
	return 0;
}

int io_open(struct io *io, int argc, char **argv)
{
	struct io_open o = {0};
	char *driver = NULL, *name = NULL;
	int ret = parse_open(&o, argc, argv);

	if (!ret)
		take_options(&o, &driver, &name);
	if (!ret && !o.name)
		ret = io_command_usage(argv[0]);
	if (!ret)
		ret = io_open_file(io, &o);
	free(driver);
	free(name);
	cli_opts_free(&o.opts);
	return ret;
}

/* ---- lines ------------------------------------------------------------------------ */

struct input {
	char *buf;
	size_t room, have;
	bool ended;
};

static int more_room(struct input *in)
{
	size_t room = in->room ? 2 * in->room : 4096;
	char *buf;

	if (in->have + 1 < in->room)
		return 0;
	buf = realloc(in->buf, room);
	if (!buf)
		return cli_no_memory();
	in->buf = buf;
	in->room = room;
	return 0;
}

/* Waits until there is something to read, and lets requests go on. */
static void wait_for_input(struct io *io)
{
	struct pollfd fds[] = {
		{.fd = STDIN_FILENO, .events = POLLIN},
		{.fd = thr_exec_fd(io->exec), .events = POLLIN},
	};

	while (io->running) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return;
		if (fds[0].revents)
			return;
		thr_exec_poll(io->exec, 0);
		io_job_reap(io);
	}
}

/* The next line in @in->buf, without its newline and ended with a NUL; *used is what
 * it takes up. NULL at the end. */
static char *next_line(struct io *io, struct input *in, size_t *used)
{
	for (;;) {
		char *nl = in->have ? memchr(in->buf, '\n', in->have) : NULL;
		ssize_t n;

		if (nl || (in->ended && in->have)) {
			*used = nl ? (size_t)(nl - in->buf) + 1 : in->have;
			in->buf[nl ? *used - 1 : *used] = '\0';
			return in->buf;
		}
		if (in->ended || more_room(in))
			return NULL;
		wait_for_input(io);
		n = read(STDIN_FILENO, in->buf + in->have, in->room - in->have - 1);
		if (n < 0 && errno == EINTR)
			continue;
		in->ended = n <= 0;
		in->have += n > 0 ? (size_t)n : 0;
	}
}

static int run_input(struct io *io)
{
	struct input in = {0};
	size_t used = 0;
	int ret = 0;
	char *line;

	while (!io->quit) {
		printf("%s> ", cli_prog);
		fflush(stdout);
		line = next_line(io, &in, &used);
		if (!line)
			break;
		if (io_command(io, line))
			ret = 1;
		in.have -= THR_MIN(used, in.have);
		memmove(in.buf, in.buf + used, in.have);
	}
	free(in.buf);
	return ret;
}

/* ---- the program --------------------------------------------------------------------- */

static int take_version(void *ctx, const char *arg)
{
	(void)ctx;
	(void)arg;
	cli_version();
	exit(cli_done(0));
}

static int take_command(void *ctx, const char *arg)
{
	struct args *a = ctx;

	/* There are no more of them than arguments. */
	a->commands[a->n++] = (char *)(uintptr_t)arg;
	return 0;
}

static int take_native(void *ctx, const char *arg)
{
	(void)arg;
	*(const char **)ctx = "native";
	return 0;
}

/* @ctx: the name of an option whose work is not built. */
static int refuse(void *ctx, const char *arg)
{
	if (arg)
		return cli_error("This program has no trace points");
	return cli_error("--%s is not supported", (const char *)ctx);
}

static void help(const struct cli_opt *options)
{
	cli_version();
	printf("usage: %s%s [options] [-c command]... [file]\n"
	       "Runs commands on a disk image: those of -c, else lines of standard input.\n\n",
		cli_prog, strcmp(cli_prog, "platter") ? "" : " io");
	cli_opt_list(options);
}

static int parse(struct args *a, int argc, char **argv)
{
	struct io_open *o = &a->open;
	const struct cli_opt options[] = {
		CLI_CALL('c', "cmd", "COMMAND", take_command, a,
			"run a command; '-c help' lists them"),
		CLI_OPT_FORMAT(&o->format),
		CLI_OPT_IMAGE_OPTS(&o->image_opts),
		CLI_FLAG('r', "read-only", &o->read_only, "open it for reading only"),
		CLI_FLAG('n', "nocache", &o->direct, "as -t none"),
		CLI_FLAG('m', "misalign", &a->misalign,
			"use memory that O_DIRECT cannot take as it is"),
		CLI_TEXT('i', "aio", "ENGINE", &o->engine, CLI_ENGINES),
		CLI_CALL('k', "native-aio", NULL, take_native, &o->engine, "as -i native"),
		CLI_TEXT('t', "cache", "MODE", &o->cache, CLI_CACHES),
		CLI_TEXT('d', "discard", "MODE", &o->discard, "unmap or ignore"),
		CLI_FLAG('U', "force-share", &o->share, "although others may be writing to it"),
		CLI_CALL('V', "version", NULL, take_version, NULL,
			"output version information and exit"),
		CLI_FLAG('s', "snapshot", &o->snapshot,
			"what is written goes to a temporary file"),
		CLI_CALL('C', "copy-on-read", NULL, refuse, "copy-on-read", NULL),
		CLI_CALL('T', "trace", "WHAT", refuse, NULL, NULL),
		CLI_OPT_END,
	};

	if (argc >= 2 && (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help"))) {
		help(options);
		return -1;
	}
	if (cli_parse(argc, argv, options))
		return 1;
	if (argc - optind > 1)
		return cli_usage("Too many arguments: '%s'", argv[optind + 1]);
	a->open.name = argv[optind];
	return 0;
}

static int run_commands(struct io *io, const struct args *a)
{
	int ret = 0;

	for (unsigned i = 0; i < a->n && !io->quit; i++)
		if (io_command(io, a->commands[i]))
			ret = 1;
	return ret;
}

static int run(struct args *a)
{
	struct io io = {.misalign = a->misalign};
	int ret = thr_exec_open(&io.exec, &thr_heap);

	if (ret)
		return cli_error("%s", blk_strerror(ret));
	io.ended_tail = &io.ended;
	if (a->open.name && io_open_file(&io, &a->open))
		ret = 1;
	else
		ret = a->n ? run_commands(&io, a) : run_input(&io);
	if (io.image && io_close_file(&io))
		ret = 1;
	thr_exec_close(io.exec);
	return ret;
}

int cli_io(int argc, char **argv)
{
	struct args a = {0};
	int ret;

	opterr = 0;
	a.commands = calloc((size_t)argc, sizeof(char *));
	if (!a.commands)
		return cli_no_memory();
	ret = parse(&a, argc, argv);
	if (!ret)
		ret = run(&a);
	free(a.commands);
	cli_opts_free(&a.open.opts);
	return ret < 0 ? 0 : ret;
}
