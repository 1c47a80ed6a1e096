/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/io_misc.c - the commands that move no data.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cli/io.h"
#include "cli/props.h"

int io_abort(struct io *io, int argc, char **argv)
{
	(void)io;
	(void)argc;
	(void)argv;
	fflush(stdout);
	abort();
}

int io_aio_flush(struct io *io, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	io_job_drain(io);
	return 0;
}

int io_close(struct io *io, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return io_close_file(io);
}

int io_quit(struct io *io, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	io->quit = true;
	return 0;
}

static int flush_image(void *arg)
{
	return blk_flush(arg);
}

int io_flush(struct io *io, int argc, char **argv)
{
	int err = io_call(io, flush_image, io->image);

	(void)argc;
	(void)argv;
	if (!err)
		return 0;
	cli_error("flush failed: %s", blk_strerror(err));
	return -1;
}

/* ---- what is allocated ------------------------------------------------------------- */

struct extent {
	struct blk *image;
	uint64_t off, len;
	struct blk_extent e;
};

static int ask_extent(void *arg)
{
	struct extent *x = arg;

	return blk_status(x->image, x->off, x->len, &x->e);
}

/* A run of bytes from @off on that are all allocated in this file or all not. */
struct run {
	uint64_t off, len;
	bool allocated;
};

/* The run at @off, up to @end, which lies past it. */
static int next_run(struct io *io, uint64_t off, uint64_t end, struct run *r)
{
	struct extent x = {.image = io->image, .off = off};

	r->off = off;
	for (; x.off < end; x.off += x.e.len) {
		bool allocated;
		int err;

		x.len = end - x.off;
		err = io_call(io, ask_extent, &x);
		if (err) {
			cli_error("Failed to get allocation status: %s", blk_strerror(err));
			return -1;
		}
		allocated = x.e.flags & BLK_EXT_ALLOC;
		if (x.off == off)
			r->allocated = allocated;
		else if (allocated != r->allocated)
			break;
	}
	r->len = x.off - off;
	return 0;
}

int io_alloc(struct io *io, int argc, char **argv)
{
	uint64_t off, count = 512, sum = 0;
	uint64_t size = blk_size(io->image);
	char text[IO_TEXT];
	struct run r;

	if (io_number(argv[1], &off) || (argc > 2 && io_number(argv[2], &count)))
		return -1;
	count = off < size ? THR_MIN(count, size - off) : 0;
	for (uint64_t at = off; at < off + count; at += r.len) {
		if (next_run(io, at, off + count, &r))
			return -1;
		sum += r.allocated ? r.len : 0;
	}
	printf("%" PRIu64 "/%" PRIu64 " bytes allocated at offset %s\n", sum, count,
		io_amount((double)off, text));
	return 0;
}

int io_map(struct io *io, int argc, char **argv)
{
	uint64_t size = blk_size(io->image);
	char len[IO_TEXT], off[IO_TEXT];
	struct run r;

	(void)argc;
	(void)argv;
	for (uint64_t at = 0; at < size; at += r.len) {
		if (next_run(io, at, size, &r))
			return -1;
		printf("%s (0x%" PRIx64 ") bytes %s allocated at offset %s (0x%" PRIx64 ")\n",
			io_amount((double)r.len, len), r.len, r.allocated ? "   " : "not",
			io_amount((double)at, off), at);
	}
	return 0;
}

/* ---- the file as a whole -------------------------------------------------------------- */

int io_length(struct io *io, int argc, char **argv)
{
	char text[IO_TEXT];

	(void)argc;
	(void)argv;
	puts(io_amount((double)blk_size(io->image), text));
	return 0;
}

int io_info(struct io *io, int argc, char **argv)
{
	struct fmt_info info;
	char text[IO_TEXT];
	int err;

	(void)argc;
	(void)argv;
	io_job_drain(io);
	err = fmt_info(io->image, &info);
	if (err) {
		cli_error("%s", blk_strerror(err));
		return -1;
	}
	printf("format name: %s\n", info.format);
	printf("cluster size: %s\n", io_amount((double)info.cluster_size, text));
	printf("vm state offset: %s\n", io_amount((double)info.vm_state_off, text));
	cli_props(io->image);
	return 0;
}

struct truncation {
	struct blk *image;
	uint64_t size;
	enum blk_prealloc prealloc;
	struct blk_err err;
};

static int truncate_image(void *arg)
{
	struct truncation *t = arg;

	return blk_truncate(t->image, t->size, t->prealloc, &t->err);
}

int io_truncate(struct io *io, int argc, char **argv)
{
	struct truncation t = {.image = io->image};
	int c, err;

	optind = 0;
	while ((c = getopt(argc, argv, "m:")) != -1) {
		if (c == '?')
			return io_command_usage(argv[0]);
		if (blk_prealloc_parse(optarg, &t.prealloc)) {
			cli_error("Invalid preallocation mode '%s'", optarg);
			return -1;
		}
	}
	if (optind != argc - 1)
		return io_command_usage(argv[0]);
	if (io_number(argv[optind], &t.size))
		return -1;
	if (!(io->image->flags & BLK_RDWR)) {
		cli_error("Block node is read-only");
		return -1;
	}
	io_job_drain(io);
	err = io_call(io, truncate_image, &t);
	if (!err)
		return 0;
	if (!t.err.code)
		blk_fail(&t.err, err, BLK_E_SYS, 0, 0);
	cli_fail(&t.err);
	return -1;
}

/* ---- the program ------------------------------------------------------------------------ */

static int sleep_fiber(void *arg)
{
	const uint64_t *ns = arg;

	thr_sleep(*ns);
	return 0;
}

int io_sleep(struct io *io, int argc, char **argv)
{
	uint64_t ns;
	char *end;
	long ms;

	(void)argc;
	errno = 0;
	ms = strtol(argv[1], &end, 0);
	if (errno || ms < 0 || end == argv[1] || *end || ms > INT64_MAX / 1000000) {
		printf("%s is not a valid number\n", argv[1]);
		return -1;
	}
	ns = (uint64_t)ms * 1000000u;
	io_call(io, sleep_fiber, &ns);
	return 0;
}

int io_sigraise(struct io *io, int argc, char **argv)
{
	uint64_t sig;

	(void)io;
	(void)argc;
	if (io_number(argv[1], &sig))
		return -1;
	if (sig > (uint64_t)SIGRTMAX) {
		printf("signal argument '%s' is too large to be a valid signal\n", argv[1]);
		return -1;
	}
	fflush(stdout);
	raise((int)sig);
	return 0;
}
