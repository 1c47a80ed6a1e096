/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/io.h - what the parts of `platter io` share.
 *
 *   io.c        options, the lines of commands, the file that is open
 *   io_cmd.c    the table of commands: splitting a line, help
 *   io_rw.c     read, write, readv, writev, aio_read, aio_write, discard
 *   io_misc.c   everything else
 *   io_job.c    requests: how they are run and reported
 *   io_buf.c    buffers: patterns, dumps
 *   io_text.c   amounts and times as text
 *
 * One executor, driven by the main thread, runs every request in a fiber. So those of
 * aio_read and aio_write move on while another command waits or while a line is waited
 * for, and never in between.
 */
#ifndef CLI_IO_H
#define CLI_IO_H

#include "cli/cli.h"

/* The longest request: what qemu-io takes. */
#define IO_MAX_LEN 2147483136u
/* What a write writes without -P. */
#define IO_PATTERN 0xcd

struct io_job;

struct io {
	struct blk *image; /* NULL: no file is open */
	struct thr_exec *exec;
	struct io_job *ended; /* asynchronous ones that are to be reported */
	struct io_job **ended_tail;
	unsigned running; /* asynchronous jobs that have not been reported */
	bool misalign;    /* -m */
	bool no_discard;  /* -d ignore */
	bool quit;
};

/* Returns 0, or -1 once a message has been printed. */
struct io_command {
	const char *name, *alias;
	int (*run)(struct io *io, int argc, char **argv);
	int min_args, max_args; /* -1: any number */
	bool no_file;           /* works without an open file */
	const char *args, *help;
};

/* ---- io_cmd.c ----------------------------------------------------------------- */

/* Runs a line, which is cut to pieces. */
int io_command(struct io *io, char *line);
/* "read [-Cqv] ... off len -- reads ..." of the command argv[0]; -1. */
int io_command_usage(const char *name);
int io_help(struct io *io, int argc, char **argv);

/* A number with a suffix, or -1 after a message. */
int io_number(const char *arg, uint64_t *out);

/* ---- io.c: the file ------------------------------------------------------------ */

struct io_open {
	const char *name, *format, *cache, *engine, *discard;
	struct cli_opts opts; /* of the image and its devices */
	bool direct, read_only, share, image_opts, snapshot;
};
int io_open_file(struct io *io, struct io_open *o);
int io_close_file(struct io *io);

/* ---- io_rw.c and io_misc.c: commands ---------------------------------------------- */

int io_read(struct io *io, int argc, char **argv);
int io_write(struct io *io, int argc, char **argv);
int io_readv(struct io *io, int argc, char **argv);
int io_writev(struct io *io, int argc, char **argv);
int io_aio_read(struct io *io, int argc, char **argv);
int io_aio_write(struct io *io, int argc, char **argv);
int io_discard(struct io *io, int argc, char **argv);

int io_abort(struct io *io, int argc, char **argv);
int io_aio_flush(struct io *io, int argc, char **argv);
int io_alloc(struct io *io, int argc, char **argv);
int io_close(struct io *io, int argc, char **argv);
int io_flush(struct io *io, int argc, char **argv);
int io_info(struct io *io, int argc, char **argv);
int io_length(struct io *io, int argc, char **argv);
int io_map(struct io *io, int argc, char **argv);
int io_open(struct io *io, int argc, char **argv);
int io_quit(struct io *io, int argc, char **argv);
int io_sigraise(struct io *io, int argc, char **argv);
int io_sleep(struct io *io, int argc, char **argv);
int io_truncate(struct io *io, int argc, char **argv);

/* ---- io_job.c ------------------------------------------------------------------------- */

enum io_kind { IO_READ, IO_WRITE, IO_ZERO, IO_DISCARD, IO_FLUSH, IO_CALL };

/* A request, and what is to be said about it when it has ended. */
struct io_job {
	enum io_kind kind;
	struct blk_req r;
	struct thr_iov *iov; /* owned, like the buffer that it cuts up */
	char *buf;
	bool quiet, machine, dump, check; /* -q -C -v -P */
	int pattern;
	uint64_t check_off, check_len; /* where the pattern must be */
	const char *failed;            /* "write": what a message begins with */
	int (*call)(void *arg);        /* IO_CALL */
	void *arg;

	/* while it runs */
	struct io *io;
	bool async, done;
	int err;
	uint64_t start, end;
	struct io_job *next;
};

/* Memory for the lengths in iov, filled with @fill; or -1. */
int io_job_buffer(struct io *io, struct io_job *j, const uint64_t *lens, unsigned n, int fill);
/* Runs a request to its end and reports it. 0 or -1. */
int io_job_run(struct io *io, struct io_job *j);
/* Starts a copy of @j, which has been moved from: it is reported in io_job_reap(). */
int io_job_start(struct io *io, struct io_job *j);
/* Calls fn(arg) in a fiber; its result. */
int io_call(struct io *io, int (*fn)(void *arg), void *arg);
/* Reports what has ended. */
void io_job_reap(struct io *io);
/* Waits for all asynchronous jobs and reports them. */
void io_job_drain(struct io *io);
void io_job_free(struct io_job *j);

/* ---- io_buf.c ------------------------------------------------------------------------------
 */

void *io_buf_get(const struct io *io, size_t len, int fill);
void io_buf_put(const struct io *io, void *buf);
/* 0 to 255, or -1 after a message. */
int io_buf_pattern(const char *arg);
/* Fills @buf with the content of a file, over and over; -1. */
int io_buf_from_file(char *buf, size_t len, const char *name);
bool io_buf_is(const char *buf, int pattern, size_t len);
void io_buf_dump(const char *buf, uint64_t off, size_t len);

/* ---- io_text.c -----------------------------------------------------------------------------
 */

#define IO_TEXT 64
/* "1.500 KiB", "512 bytes", "0.372306 bytes". */
const char *io_amount(double v, char buf[IO_TEXT]);
/* What qemu-io says about a request of @len bytes that took @ns. */
void io_report(const char *op, uint64_t ns, uint64_t off, uint64_t len, bool machine);
/* The error of a request as qemu-io has it: past the end is an I/O error. */
const char *io_strerror(int err);

#endif
