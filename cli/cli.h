/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/cli.h - what the commands share: names, messages, options, opening, printing.
 *
 * Commands return the exit status. They follow qemu-img 7.2 in their options, output
 * and exit codes; how it behaves was found out by running it.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <getopt.h>
#include <stdio.h>

#include "fmt/fmt.h"

#define CLI_VERSION "0.1.0"

/* The name that messages begin with. */
extern const char *cli_prog;

struct cli_command {
	const char *name;
	int (*run)(int argc, char **argv); /* argv[0] is the command's name */
	const char *args;                  /* for --help */
};

int cli_amend(int argc, char **argv);
int cli_create(int argc, char **argv);
int cli_info(int argc, char **argv);
int cli_convert(int argc, char **argv);
int cli_check(int argc, char **argv);
int cli_checksum(int argc, char **argv);
int cli_commit(int argc, char **argv);
int cli_compare(int argc, char **argv);
int cli_map(int argc, char **argv);
int cli_resize(int argc, char **argv);
int cli_measure(int argc, char **argv);
int cli_bench(int argc, char **argv);
int cli_io(int argc, char **argv);
int cli_serve(int argc, char **argv);

/* ---- error.c: one sentence on stderr, and 1 ------------------------------------- */

int cli_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same, and where to find help. */
int cli_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int cli_fail(const struct blk_err *err);
/* With the name of what was being done to which file before the sentence. */
int cli_fail_in(const char *what, const struct blk_err *err);
void cli_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int cli_no_memory(void);
/* Everything printed has been written, or an error and 1 instead of @status. */
int cli_done(int status);

/* ---- args.c ------------------------------------------------------------------------ */

enum {
	CLI_OPT_OBJECT = 256,
	CLI_OPT_IMAGE_OPTS,
	CLI_OPT_UNTRUSTED,
	CLI_OPT_FIRST, /* a command's own begin here */
};

/* What every command has. */
#define CLI_LONG_HELP                                                                          \
	{"help", no_argument, NULL, 'h'},                                                      \
	{                                                                                      \
		"untrusted", no_argument, NULL, CLI_OPT_UNTRUSTED                              \
	}
#define CLI_LONG_OBJECT                                                                        \
	{                                                                                      \
		"object", required_argument, NULL, CLI_OPT_OBJECT                              \
	}
#define CLI_LONG_IMAGE_OPTS                                                                    \
	{                                                                                      \
		"image-opts", no_argument, NULL, CLI_OPT_IMAGE_OPTS                            \
	}
#define CLI_LONG_END                                                                           \
	{                                                                                      \
		NULL, 0, NULL, 0                                                               \
	}

/* For the two whose options are not in a table (parse.h). The next option, -1 after the last.
 * What every command treats alike is done here: -h prints help and ends the program; --object
 * has been remembered; an unknown option, a missing argument and a bad object have been
 * complained about when it returns CLI_OPT_BAD. @short_opts begins with ':'. */
#define CLI_OPT_BAD '?'
int cli_getopt(int argc, char **argv, const char *short_opts, const struct option *long_opts);
/* The same, but -h is returned. */
int cli_next_opt(int argc, char **argv, const char *short_opts, const struct option *long_opts);

/* A growing list of options; strings are its own. */
struct cli_opts {
	struct blk_opts o;
	struct blk_opt *v;
	unsigned room;
	bool help; /* "help" or "?" was among them */
};
/* Adds what a -o says: "key=value,key=value", where two commas stand for one within a
 * value. 0, or a message has been printed. */
int cli_opts_add(struct cli_opts *l, const char *arg);
int cli_opts_put(struct cli_opts *l, const char *key, const char *val);
/* Takes the last value of @key out, all of them gone; NULL. Free it. */
char *cli_opts_take(struct cli_opts *l, const char *key);
void cli_opts_free(struct cli_opts *l);

/* 0 or 1, a message having been printed: "Invalid WHAT specified. ...". */
int cli_size(const char *what, const char *arg, uint64_t *out);
/* A decimal number in a range, or -EINVAL and no message. */
int cli_number(const char *arg, unsigned min, unsigned max, unsigned *out);
#define CLI_THREADS_MAX 256u
/* A number of threads for --threads. */
int cli_threads(const char *arg, unsigned *out);
/* Whether -i may say that: 0, or 1 after a message. */
int cli_engine_ok(const char *arg);
/* "human" or "json". */
int cli_output(const char *arg, bool *json);

/* --untrusted: nothing that an image names is opened. */
extern bool cli_untrusted;

/* ---- object.c ----------------------------------------------------------------------- */

/* What a --object says; 0 or 1 after a message. A secret in @arg is covered with stars. */
int cli_object_add(char *arg);
const struct fmt_secrets *cli_secrets(void);
void cli_secrets_wipe(void);
/* Decrypts the secret @id in place, @iv having 16 bytes; 0 or 1 after a message (decrypt.c). */
int cli_decrypt(const char *id, const struct fmt_secret *key, const uint8_t *iv, uint8_t *data,
	size_t *len);

/* What a --object of type tls-creds-x509 or tls-creds-psk says, whose options it takes; 0 or
 * 1 after a message (object_tls.c). */
int cli_tls_add(struct cli_opts *l, const char *type);
/* The options of one, with its type as "qom-type"; NULL. */
const struct blk_opts *cli_tls_find(const char *id);

/* ---- open.c ------------------------------------------------------------------------- */

struct cli_open {
	const char *name; /* a list of options with image_opts */
	bool image_opts;
	const char *format;
	const char *cache; /* NULL: writeback */
	unsigned blk_flags, flags;
	bool trusted;                /* made by this program: --untrusted does not count */
	unsigned writable;           /* as in struct fmt_open */
	const struct blk_opts *opts; /* may be NULL */
};
/* Opens an image. Where the file system cannot do O_DIRECT, opens it without and says
 * so once. 0, or a message has been printed. */
int cli_open(struct blk **out, const struct cli_open *o);
/* The same without the message. */
int cli_open_err(struct blk **out, const struct cli_open *o, struct blk_err *err);
/* Has an opened image show a snapshot, if @tag is not NULL: 0, or 1 after a message. */
int cli_snapshot(struct blk *image, const char *tag);
/* Puts a temporary overlay on an opened image, which takes what is written: 0, or 1 after a
 * message. The image is the overlay's then. overlay.c; needs CONFIG_FMT_QCOW2_CREATE. */
int cli_overlay(struct blk **image);
/* Closes; a message if what was pending could not be written. */
int cli_close(struct blk *image);
/* 0 or 1 after "Invalid cache option: X". */
int cli_cache_ok(const char *what, const char *cache);

/* ---- pool.c --------------------------------------------------------------------------- */

/* Runs fn(arg) in a fiber of a pool of @threads executors (0: as many as processors),
 * which is made for it. */
int cli_run(unsigned threads, int (*fn)(void *arg), void *arg);
/* Gives memory that has been freed back to the system. */
void cli_trim(void);

/* ---- progress.c ------------------------------------------------------------------------- */

struct cli_progress {
	struct fmt_progress p; /* for the operation */
	bool on;
	int signal_fd;
	uint64_t shown; /* hundredths of a percent */
	bool any;
};
/* Before any thread is started. */
void cli_progress_begin(struct cli_progress *p, bool on);
void cli_progress_full(struct cli_progress *p);
void cli_progress_end(struct cli_progress *p);

/* ---- json.c --------------------------------------------------------------------------------
 */

struct cli_json {
	FILE *out;
	unsigned depth;
	bool first; /* nothing has been written at this depth */
};
void cli_json_begin(struct cli_json *j, FILE *out);
void cli_json_end(struct cli_json *j); /* a newline */
/* Keys are NULL in arrays. */
void cli_json_open(struct cli_json *j, const char *key, bool array);
void cli_json_close(struct cli_json *j, bool array);
void cli_json_str(struct cli_json *j, const char *key, const char *val);
void cli_json_num(struct cli_json *j, const char *key, uint64_t val);
void cli_json_bool(struct cli_json *j, const char *key, bool val);

/* ---- human.c --------------------------------------------------------------------------------
 */

#define CLI_HUMAN_SIZE 16
/* "1.5 GiB" */
const char *cli_human_size(uint64_t bytes, char buf[CLI_HUMAN_SIZE]);

#endif
