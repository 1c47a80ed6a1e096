/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/io_cmd.c - the commands of `platter io`, and what all of them have in common.
 */
#include <string.h>

#include "cli/io.h"

static const struct io_command commands[] = {
	{"abort", NULL, io_abort, 0, 0, true, NULL, "ends the program as a crash would"},
	{"aio_flush", NULL, io_aio_flush, 0, 0, false, NULL, "waits for all aio requests"},
	{"aio_read", NULL, io_aio_read, 2, -1, false, "[-Ciqv] [-P pattern] off len [len..]",
		"starts to read"},
	{"aio_write", NULL, io_aio_write, 2, -1, false,
		"[-Cfiquz] [-P pattern] off len [len..]", "starts to write"},
	{"alloc", "a", io_alloc, 1, 2, false, "offset [count]",
		"counts the bytes that this file allocates"},
	{"close", "c", io_close, 0, 0, false, NULL, "closes the file"},
	{"discard", "d", io_discard, 2, -1, false, "[-Cq] off len",
		"says that bytes are no longer needed"},
	{"flush", "f", io_flush, 0, 0, false, NULL, "makes durable what has been written"},
	{"help", "?", io_help, 0, 1, true, "[command]", "tells of one command or all"},
	{"info", "i", io_info, 0, 0, false, NULL, "tells of the file"},
	{"length", "l", io_length, 0, 0, false, NULL, "tells the length of the disk"},
	{"map", NULL, io_map, 0, 0, false, NULL, "lists what this file allocates"},
	{"open", "o", io_open, 1, -1, true,
		"[-rsnkU] [-i aio] [-t cache] [-d discard] "
		"[-o options] [path]",
		"opens a file"},
	{"quit", "q", io_quit, 0, -1, true, NULL, "ends the program"},
	{"read", "r", io_read, 2, -1, false, "[-bCqv] [-P pattern [-s off] [-l len]] off len",
		"reads"},
	{"readv", NULL, io_readv, 2, -1, false, "[-Cqv] [-P pattern] off len [len..]",
		"reads into several buffers"},
	{"sigraise", NULL, io_sigraise, 1, 1, true, "signal", "sends itself a signal"},
	{"sleep", NULL, io_sleep, 1, 1, true, "milliseconds", "lets aio requests go on"},
	{"truncate", "t", io_truncate, 1, 3, false, "[-m prealloc_mode] off",
		"changes the length of the disk"},
	{"write", "w", io_write, 2, -1, false,
		"[-bcCfnquz] [-P pattern | -s source_file] off len", "writes"},
	{"writev", NULL, io_writev, 2, -1, false, "[-Cfq] [-P pattern] off len [len..]",
		"writes from several buffers"},
};

static const struct {
	char letter;
	const char *meaning;
} options[] = {
	{'b', "the VM state in place of the disk (not supported)"},
	{'c', "compressed"},
	{'C', "the report in numbers, with commas between"},
	{'d', "whether to discard: unmap or ignore"},
	{'f', "durable when it returns"},
	{'i', "aio_read and aio_write: only say so"},
	{'k', "the I/O engine native"},
	{'l', "how much has the pattern"},
	{'m', "off, falloc or full"},
	{'n', "with -z: not by writing zeroes; open: no cache"},
	{'o', "name=value pairs with commas between; driver= is the format"},
	{'P', "the byte to write (0xcd) or to find"},
	{'q', "no report"},
	{'r', "read only"},
	{'s', "read: where the pattern begins; write: the file that has the data"},
	{'t', "none, writeback, writethrough, directsync or unsafe"},
	{'u', "with -z: may deallocate"},
	{'U', "although others may write to it"},
	{'v', "show the data"},
	{'z', "write zeroes, by the cheapest means"},
};

static const struct io_command *find(const char *name)
{
	for (size_t i = 0; i < THR_ARRAY_SIZE(commands); i++) {
		const struct io_command *c = &commands[i];

		if (!strcmp(name, c->name) || (c->alias && !strcmp(name, c->alias)))
			return c;
	}
	return NULL;
}

/* ---- help ----------------------------------------------------------------------- */

static void print_line(const struct io_command *c)
{
	printf("%s %s%s-- %s\n", c->name, c->args ? c->args : "", c->args ? " " : "", c->help);
}

int io_command_usage(const char *name)
{
	print_line(find(name));
	return -1;
}

/* The letters between "[-" and the next "]" and " -x" elsewhere. */
static bool has_option(const char *args, char letter)
{
	for (const char *p = strchr(args, '-'); p; p = strchr(p + 1, '-'))
		if (memchr(p + 1, letter, strcspn(p + 1, " ]")))
			return true;
	return false;
}

static void print_options(const struct io_command *c)
{
	for (size_t i = 0; c->args && i < THR_ARRAY_SIZE(options); i++)
		if (has_option(c->args, options[i].letter))
			printf(" -%c, -- %s\n", options[i].letter, options[i].meaning);
}

int io_help(struct io *io, int argc, char **argv)
{
	const struct io_command *c;

	(void)io;
	if (argc == 1) {
		for (size_t i = 0; i < THR_ARRAY_SIZE(commands); i++)
			print_line(&commands[i]);
		puts("\nUse 'help commandname' for its options.");
		return 0;
	}
	c = find(argv[1]);
	if (!c) {
		printf("command %s not found\n", argv[1]);
		return 0;
	}
	print_line(c);
	print_options(c);
	return 0;
}

/* ---- running a line ----------------------------------------------------------------- */

/* In stderr's name, not before what has been printed so far. */
#define SAY(...) (fflush(stdout), fprintf(stderr, __VA_ARGS__))

static int bad_count(const struct io_command *c, const char *name, int n)
{
	if (c->max_args < 0)
		SAY("bad argument count %d to %s, expected at least %d arguments\n", n, name,
			c->min_args);
	else if (c->min_args == c->max_args)
		SAY("bad argument count %d to %s, expected %d arguments\n", n, name,
			c->min_args);
	else
		SAY("bad argument count %d to %s, expected between %d and %d arguments\n", n,
			name, c->min_args, c->max_args);
	return -1;
}

static int run(struct io *io, int argc, char **argv)
{
	const struct io_command *c = find(argv[0]);

	if (!c) {
		SAY("command \"%s\" not found\n", argv[0]);
		return -1;
	}
	if (!io->image && !c->no_file) {
		SAY("no file open, try 'help open'\n");
		return -1;
	}
	if (argc - 1 < c->min_args || (c->max_args >= 0 && argc - 1 > c->max_args))
		return bad_count(c, argv[0], argc - 1);
	opterr = 1;
	return c->run(io, argc, argv);
}

#define MAX_ARGS 256

int io_command(struct io *io, char *line)
{
	char *argv[MAX_ARGS + 1];
	char *rest = line;
	char *word;
	int argc = 0;

	while ((word = strsep(&rest, " ")) != NULL) {
		if (!*word)
			continue;
		if (argc == MAX_ARGS) {
			cli_error("A command has at most %d arguments", MAX_ARGS - 1);
			return -1;
		}
		argv[argc++] = word;
	}
	argv[argc] = NULL;
	return argc ? run(io, argc, argv) : 0;
}

int io_number(const char *arg, uint64_t *out)
{
	int err = blk_parse_size(arg, out);

	if (!err && *out <= INT64_MAX)
		return 0;
	if (err && err != -THR_ERANGE)
		printf("Parsing error: non-numeric argument, or extraneous/unrecognized suffix "
		       "-- %s\n",
			arg);
	else
		printf("Parsing error: argument too large -- %s\n", arg);
	return -1;
}
