/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/main.c - the commands, and the names that the program goes by: through a link
 * called qemu-img it speaks as qemu-img.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cli/help.h"
#include "cli/parse.h"

const char *cli_prog = "platter";

#define ROW_AMEND                                                                              \
	{"amend", cli_amend,                                                                   \
		"[-q] [-p] [-f fmt] [-t cache] [--force] [--reproducible seed] -o options "    \
		"filename"},
#define ROW_CREATE                                                                             \
	{"create", cli_create,                                                                 \
		"[-q] [-f fmt] [-b backing_file [-F backing_fmt]] [-u] [-o options] "          \
		"[--reproducible seed] filename [size]"},
#define ROW_INFO {"info", cli_info, "[-f fmt] [--output=ofmt] [--backing-chain] [-U] filename"},
#define ROW_CONVERT                                                                            \
	{"convert", cli_convert,                                                               \
		"[--target-is-zero] [-U] [-p] [-q] [-n] [-f fmt] [-t cache] [-T src_cache] "   \
		"[-O output_fmt] [-B backing_file [-F backing_fmt]] [-o options] "             \
		"[-S sparse_size] [-m num_coroutines] [-W] [--threads n] "                     \
		"[--reproducible seed] "                                                       \
		"filename [filename2 [...]] output_filename"},
#define ROW_CHECK                                                                              \
	{"check", cli_check,                                                                   \
		"[-q] [-f fmt] [--output=ofmt] [-r [leaks | all]] [-T src_cache] [-U] "        \
		"filename"},
#define ROW_CHECKSUM                                                                           \
	{"checksum", cli_checksum,                                                             \
		"[-f fmt] [-T src_cache] [-p] [-q] [-U] [--digest name] [--block-size size] "  \
		"[--plain] [--check] [--output=ofmt] [-m num_coroutines] [--threads n] "       \
		"filename [filename2 [...]]"},
#define ROW_COMMIT                                                                             \
	{"commit", cli_commit,                                                                 \
		"[-q] [-f fmt] [-t cache] [-b base] [-r rate] [-d] [-p] [--threads n] "        \
		"filename"},
#define ROW_COMPARE                                                                            \
	{"compare", cli_compare,                                                               \
		"[-f fmt] [-F fmt] [-T src_cache] [-p] [-q] [-s] [-U] [--threads n] "          \
		"filename1 filename2"},
#define ROW_IO                                                                                 \
	{"io", cli_io,                                                                         \
		"[-c command]... [-f fmt] [-r] [-n] [-m] [-t cache] [-i aio] [-k] "            \
		"[-d discard] [-U] [filename]"},
#define ROW_MAP                                                                                \
	{"map", cli_map,                                                                       \
		"[-f fmt] [--start-offset=offset] [--max-length=len] [--output=ofmt] [-U] "    \
		"filename"},
#define ROW_RESIZE                                                                             \
	{"resize", cli_resize,                                                                 \
		"[-f fmt] [--preallocation=prealloc] [-q] [--shrink] filename [+ | -]size"},

#define ROW_MEASURE                                                                            \
	{"measure", cli_measure,                                                               \
		"[--output=ofmt] [-O output_fmt] [-o options] "                                \
		"[--size N | [-f fmt] [-U] filename]"},
#define ROW_BENCH                                                                              \
	{"bench", cli_bench,                                                                   \
		"[-c count] [-d depth] [-f fmt] [--flush-interval=n] [-i aio] [-n] "           \
		"[--no-drain] [-o offset] [--pattern=byte] [-q] [-s buffer_size] "             \
		"[-S step_size] [-t cache] [-w] [-U] [--threads n] filename"},
#define ROW_SERVE                                                                              \
	{"serve", cli_serve,                                                                   \
		"[-k path] [-p port] [-b address] [-f fmt] [-r] [-t] [-e clients] [-x name] "  \
		"[-D text] [-l snapshot] [-A] [-B bitmap] [--cache=cache] [--aio=aio] "        \
		"[--discard=mode] [--detect-zeroes=mode] [--tls-creds=id] [--fork] "           \
		"[--pid-file=path] [-v] [--threads n] filename | -L"},

static const struct cli_command commands[] = {
#ifdef CONFIG_CLI_AMEND
	ROW_AMEND
#endif
#ifdef CONFIG_CLI_BENCH
		ROW_BENCH
#endif
#ifdef CONFIG_CLI_CHECK
			ROW_CHECK
#endif
#ifdef CONFIG_CLI_CHECKSUM
				ROW_CHECKSUM
#endif
#ifdef CONFIG_CLI_COMMIT
					ROW_COMMIT
#endif
#ifdef CONFIG_CLI_COMPARE
						ROW_COMPARE
#endif
#ifdef CONFIG_CLI_CONVERT
							ROW_CONVERT
#endif
#ifdef CONFIG_CLI_CREATE
								ROW_CREATE
#endif
#ifdef CONFIG_CLI_INFO
									ROW_INFO
#endif
#ifdef CONFIG_CLI_IO
										ROW_IO
#endif
#ifdef CONFIG_CLI_MAP
											ROW_MAP
#endif
#ifdef CONFIG_CLI_MEASURE
												ROW_MEASURE
#endif
#ifdef CONFIG_CLI_RESIZE
													ROW_RESIZE
#endif
#ifdef CONFIG_CLI_SERVE
														ROW_SERVE
#endif
	{NULL, NULL, NULL},
};

/* Who reads the version of qemu-img wants to know what it can do. */
void cli_version(void)
{
	if (!strcmp(cli_prog, "platter"))
		printf("platter version " CLI_VERSION "\n");
	else
		printf("%s version 7.2.0 (platter " CLI_VERSION ")\n", cli_prog);
}

void cli_help(void)
{
	const struct fmt_driver *d;

	cli_version();
	printf("usage: %s [standard options] command [command options]\n"
	       "Creates, converts, checks and describes disk images.\n\n"
	       "    '-h', '--help'       display this help and exit\n"
	       "    '-V', '--version'    output version information and exit\n\n"
	       "Command syntax:\n",
		cli_prog);
	for (const struct cli_command *c = commands; c->name; c++)
		printf("  %s %s\n", c->name, c->args);
	puts("\nCommand parameters:\n"
	     "  'fmt' is an image format; without it the content tells\n"
	     "  'cache' is none, writeback (default), writethrough, directsync or unsafe\n"
	     "    (default for the target of convert)\n"
	     "  'size' is in bytes, or in units with a suffix k, M, G, T, P or E\n"
	     "  'options' are name=value pairs with commas between; '-o help' lists them\n"
	     "  'ofmt' is human or json\n"
	     "  '-p' shows progress; without it SIGUSR1 asks for it\n"
	     "  '-q' prints errors only\n"
	     "  '-U' opens the image although others may be writing to it\n"
	     "  '-S' is the shortest run of zeroes that is left out (4k); 0: write all\n"
	     "  '-m' is how many requests are under way at a time, '--threads' how many\n"
	     "    threads work on them; neither changes the result, nor does '-W'\n"
	     "  '--reproducible' makes keys, salts and ids from a seed: the same bytes each\n"
	     "    time, and no secret for who knows it\n"
	     "  '-n' writes into a target that is there already\n"
	     "  '--untrusted' opens nothing that an image names; every command has it\n"
	     "  '-u' does not look at the backing file\n"
	     "  '--image-opts' (for a target '--target-image-opts') takes a list of options\n"
	     "    in place of a file's name: driver=qcow2,file.filename=disk.qcow2\n"
	     "  '--object secret,id=ID,data=TEXT' (or file=NAME; format=raw, base64 or hex)\n"
	     "    defines what an option may name, as in encrypt.key-secret=ID");
	printf("\nSupported formats:");
	for (unsigned i = 0; (d = fmt_driver_nth(i)); i++)
		printf(" %s", d->name);
	putchar('\n');
}

void cli_command_help(const char *name, const struct cli_opt *opts)
{
	const struct cli_command *c = commands;

	if (strcmp(cli_prog, "platter") != 0) {
		cli_help();
		return;
	}
	while (strcmp(c->name, name) != 0)
		c++;
	cli_version();
	printf("usage: %s %s %s\n\n", cli_prog, name, c->args);
	cli_opt_list(opts);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int run_command(int argc, char **argv)
{
	for (const struct cli_command *c = commands; c->name; c++) {
		if (strcmp(c->name, argv[0]))
			continue;
		optind = 0;
		return cli_done(c->run(argc, argv));
	}
	return cli_usage("Command not found: %s", argv[0]);
}

/* Options before the command. */
static int standard_options(int argc, char **argv)
{
	static const struct option options[] = {
		CLI_LONG_HELP,
		{"version", no_argument, NULL, 'V'},
		{"trace", required_argument, NULL, 'T'},
		CLI_LONG_END,
	};
	int c;

	while ((c = cli_getopt(argc, argv, "+:hVT:", options)) != -1) {
		if (c == 'T') {
			cli_error("This program has no trace points");
			c = CLI_OPT_BAD;
		}
		if (c == CLI_OPT_BAD)
			exit(1);
		cli_version();
		exit(cli_done(0));
	}
	return optind;
}

/* Through a link that is named after a command of ours. */
static int run_link(const char *name, int argc, char **argv)
{
	cli_prog = name;
#ifdef CONFIG_CLI_IO
	if (!strcmp(name, "qemu-io"))
		return cli_done(cli_io(argc, argv));
#endif
#ifdef CONFIG_CLI_SERVE
	if (!strcmp(name, "qemu-nbd"))
		return cli_done(cli_serve(argc, argv));
#endif
	(void)argc;
	(void)argv;
	return cli_error("This build of platter has no %s", name);
}

int main(int argc, char **argv)
{
	const char *name = argc ? base_name(argv[0]) : "";
	int first;

	/* A file that may not grow any more, or a reader that has gone, is an error of
	 * the write that meets it. */
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);

	if (!strcmp(name, "qemu-io") || !strcmp(name, "qemu-nbd"))
		return run_link(name, argc, argv);
	if (!strcmp(name, "qemu-img"))
		cli_prog = "qemu-img";
	opterr = 0;
	first = standard_options(argc, argv);
	if (first >= argc)
		return cli_usage("Not enough arguments");
	return run_command(argc - first, argv + first);
}
