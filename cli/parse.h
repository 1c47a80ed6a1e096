/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/parse.h - a command's options as a table: what each is called, what it takes, where
 * that goes, and its line in `platter COMMAND --help`.
 *
 *	const struct cli_opt options[] = {
 *		CLI_OPT_IMAGE(&open),
 *		CLI_FLAG(0, "backing-chain", &chain, "show backing files too"),
 *		CLI_OPT_END,
 *	};
 *
 * Every command has --help, --object and --untrusted; they are in no table.
 */
#ifndef CLI_PARSE_H
#define CLI_PARSE_H

#include "cli/cli.h"

enum cli_opt_kind {
	CLI_KIND_NONE,    /* taken, and changes nothing */
	CLI_KIND_FLAG,    /* true */
	CLI_KIND_BITS,    /* bits that are set in flags */
	CLI_KIND_TEXT,    /* the argument as it is */
	CLI_KIND_SIZE,    /* cli_size() */
	CLI_KIND_COUNT,   /* a number in any base of C, from min to max */
	CLI_KIND_FIBERS,  /* 1 to 16 */
	CLI_KIND_THREADS, /* cli_threads() */
	CLI_KIND_OUTPUT,  /* human or json */
	CLI_KIND_LIST,    /* cli_opts_add() */
	CLI_KIND_CALL,    /* take(ctx, argument): 0, or 1 after a message */
};

struct cli_opt {
	char letter;      /* 0: none */
	const char *name; /* NULL: none */
	const char *arg;  /* what its argument is called; NULL: it has none */
	const char *help; /* NULL: not listed */
	enum cli_opt_kind kind;
	union {
		bool *flag;
		unsigned *number;
		const char **text;
		uint64_t *size;
		struct cli_opts *list;
		int (*take)(void *ctx, const char *arg);
	} to;
	union {
		const char *what; /* in messages: "image size" */
		unsigned bits;
		void *ctx;
	} with;
	uint64_t min, max;
};
#define CLI_OPTS_MAX 40u

#define CLI_ROW(l, n, a, h, k, member, p, ...)                                                 \
	{                                                                                      \
		.letter = (l), .name = (n), .arg = (a), .help = (h), .kind = CLI_KIND_##k,     \
		.to.member = (p), __VA_ARGS__                                                  \
	}
#define CLI_FLAG(l, n, p, h)       CLI_ROW(l, n, NULL, h, FLAG, flag, p)
#define CLI_BITS(l, n, p, b, h)    CLI_ROW(l, n, NULL, h, BITS, number, p, .with.bits = (b))
#define CLI_TEXT(l, n, a, p, h)    CLI_ROW(l, n, a, h, TEXT, text, p)
#define CLI_SIZE(l, n, a, p, w, h) CLI_ROW(l, n, a, h, SIZE, size, p, .with.what = (w))
#define CLI_COUNT(l, n, a, p, w, lo, hi, h)                                                    \
	CLI_ROW(l, n, a, h, COUNT, size, p, .with.what = (w), .min = (lo), .max = (hi))
#define CLI_CALL(l, n, a, fn, c, h) CLI_ROW(l, n, a, h, CALL, take, fn, .with.ctx = (c))
#define CLI_NOTHING(l, n, h)        CLI_ROW(l, n, NULL, h, NONE, flag, NULL)
#define CLI_OPT_END                 CLI_ROW(0, NULL, NULL, NULL, NONE, flag, NULL)

/* What several commands have. */
#define CLI_CACHES        "none, writeback, writethrough, directsync or unsafe"
#define CLI_ENGINES       "threads, native or io_uring; sync, auto, aio, uring"
#define CLI_SHOW_PROGRESS "show progress; else SIGUSR1 asks for it"
#define CLI_OPT_FORMAT(p)                                                                      \
	CLI_TEXT('f', "format", "FMT", p, "the image format; without it the content tells")
#define CLI_OPT_IMAGE_OPTS(p)                                                                  \
	CLI_FLAG(0, "image-opts", p, "a file name is a list of options: driver=qcow2,...")
#define CLI_OPT_SHARE(p)                                                                       \
	CLI_BITS('U', "force-share", p, BLK_SHARE, "although others may be writing to it")
/* All three, into a struct cli_open. */
#define CLI_OPT_IMAGE(o)                                                                       \
	CLI_OPT_FORMAT(&(o)->format), CLI_OPT_IMAGE_OPTS(&(o)->image_opts),                    \
		CLI_OPT_SHARE(&(o)->blk_flags)
#define CLI_OPT_CACHE(l, p) CLI_TEXT(l, NULL, "CACHE", p, CLI_CACHES)
#define CLI_OPT_PROGRESS(p) CLI_FLAG('p', NULL, p, CLI_SHOW_PROGRESS)
#define CLI_OPT_QUIET(p)    CLI_FLAG('q', NULL, p, "print errors only")
#define CLI_OPT_OUTPUT(p)   CLI_ROW(0, "output", "OFMT", "human or json", OUTPUT, flag, p)
#define CLI_OPT_FIBERS(p)                                                                      \
	CLI_ROW('m', NULL, "N", "requests under way at a time: 1 to 16", FIBERS, number, p)
#define CLI_OPT_THREADS(p)                                                                     \
	CLI_ROW(0, "threads", "N", "how many threads work on it", THREADS, number, p)
#define CLI_OPT_LIST(p)                                                                        \
	CLI_ROW('o', NULL, "OPTIONS", "name=value pairs; '-o help' lists them", LIST, list, p)
#define CLI_OPT_SEED(p)                                                                        \
	CLI_TEXT(0, "reproducible", "SEED", p, "keys, salts and ids from a seed: no secret")

/* Takes all options; optind is then the first operand. 0, or 1 after a message. --help
 * prints help and ends the program. */
int cli_parse(int argc, char **argv, const struct cli_opt *opts);
/* The same, and the one operand, the name of an image. */
int cli_parse_one(int argc, char **argv, const struct cli_opt *opts, const char **name);
/* The lines of --help. */
void cli_opt_list(const struct cli_opt *opts);

#endif
