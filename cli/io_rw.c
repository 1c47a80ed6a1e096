/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/io_rw.c - the commands that move data: what their options ask for, made into a
 * job. Options are judged in qemu-io's order, so that of several mistakes the same one
 * is told.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/io.h"

struct rw {
	struct io_job j;
	const char *pattern;               /* -P */
	const char *source;                /* write -s */
	const char *check_off, *check_len; /* read -s, -l */
	bool vm_state, compress, zero, unmap, no_fallback, invalid;
};

static int take_option(struct rw *w, int c, bool read)
{
	switch (c) {
	case 'b':
		w->vm_state = true;
		return 0;
	case 'c':
		w->compress = true;
		return 0;
	case 'C':
		w->j.machine = true;
		return 0;
	case 'f':
		w->j.r.flags |= BLK_FUA;
		return 0;
	case 'i':
		w->invalid = true;
		return 0;
	case 'l':
		w->check_len = optarg;
		return 0;
	case 'n':
		w->no_fallback = true;
		return 0;
	case 'p':
		return 0;
	case 'P':
		w->pattern = optarg;
		w->j.pattern = io_buf_pattern(optarg);
		return w->j.pattern < 0 ? -1 : 0;
	case 'q':
		w->j.quiet = true;
		return 0;
	case 's':
		*(read ? &w->check_off : &w->source) = optarg;
		return 0;
	case 'u':
		w->unmap = true;
		return 0;
	case 'v':
		w->j.dump = true;
		return 0;
	case 'z':
		w->zero = true;
		return 0;
	}
	return -1;
}

/* -1: something has been said about it. */
static int parse(struct rw *w, int argc, char **argv, const char *options, bool read)
{
	int c;

	optind = 0;
	w->j.pattern = IO_PATTERN;
	while ((c = getopt(argc, argv, options)) != -1) {
		if (c == '?')
			return io_command_usage(argv[0]);
		if (take_option(w, c, read))
			return -1;
	}
	return 0;
}

static int writable(const struct io *io)
{
	if (io->image->flags & BLK_RDWR)
		return 0;
	cli_error("Block node is read-only");
	return -1;
}

static int not_supported(const char *op)
{
	printf("%s failed: %s\n", op, blk_strerror(-THR_ENOTSUP));
	return -1;
}

static int complain(const char *text)
{
	puts(text);
	return -1;
}

/* "off len": the two arguments that are left. */
static int range(char **argv, bool any_len, const char *hint, uint64_t *off, uint64_t *len)
{
	if (io_number(argv[optind], off) || io_number(argv[optind + 1], len))
		return -1;
	if (any_len || *len <= IO_MAX_LEN)
		return 0;
	printf("length cannot exceed %u%s, given %s\n", IO_MAX_LEN, hint, argv[optind + 1]);
	return -1;
}

/* ---- read and write: one buffer --------------------------------------------------- */

/* What of the data is to have the pattern: all, or -s and -l. */
static int check_range(struct rw *w, uint64_t len)
{
	struct io_job *j = &w->j;

	j->check = w->pattern;
	if (w->check_off && io_number(w->check_off, &j->check_off))
		return -1;
	if (w->check_len && io_number(w->check_len, &j->check_len))
		return -1;
	if (!w->check_len && j->check_off <= len)
		j->check_len = len - j->check_off;
	if (!thr_within(j->check_off, j->check_len, len))
		return complain("pattern verification range exceeds end of read data");
	return 0;
}

int io_read(struct io *io, int argc, char **argv)
{
	struct rw w = {.j = {.kind = IO_READ, .failed = "read"}};
	uint64_t len;
	int ret = parse(&w, argc, argv, "bCl:pP:qs:v", true);

	if (ret)
		return ret;
	if (optind != argc - 2 || (!w.pattern && (w.check_off || w.check_len)))
		return io_command_usage(argv[0]);
	if (range(argv, false, "", &w.j.r.off, &len) || check_range(&w, len))
		return -1;
	if (w.vm_state)
		return not_supported("read");
	ret = io_job_buffer(io, &w.j, &len, 1, 0xab);
	if (!ret)
		ret = io_job_run(io, &w.j);
	io_job_free(&w.j);
	return ret;
}

static int judge_write(const struct rw *w)
{
	if (w->vm_state && w->zero)
		return complain("-b and -z cannot be specified at the same time");
	if (w->j.r.flags & BLK_FUA && (w->vm_state || w->compress))
		return complain("-f and -b or -c cannot be specified at the same time");
	if (w->no_fallback && !w->zero)
		return complain("-n requires -z to be specified");
	if (w->unmap && !w->zero)
		return complain("-u requires -z to be specified");
	if (w->zero + !!w->pattern + !!w->source > 1)
		return complain("Only one of -z, -P, and -s can be specified at the same time");
	return 0;
}

static unsigned zero_flags(const struct io *io, const struct rw *w)
{
	unsigned unmap = w->unmap && !io->no_discard ? BLK_UNMAP : 0u;

	return unmap | (w->no_fallback ? BLK_NO_FALLBACK : 0u);
}

static int write_buffer(struct io *io, struct rw *w, uint64_t len)
{
	int ret = io_job_buffer(io, &w->j, &len, 1, w->j.pattern);

	if (!ret && w->source)
		ret = io_buf_from_file(w->j.buf, len, w->source);
	if (!ret)
		ret = io_job_run(io, &w->j);
	io_job_free(&w->j);
	return ret;
}

int io_write(struct io *io, int argc, char **argv)
{
	struct rw w = {.j = {.kind = IO_WRITE, .failed = "write"}};
	uint64_t len;
	int ret = writable(io) ? -1 : parse(&w, argc, argv, "bcCfnpP:qs:uz", false);

	if (ret)
		return ret;
	if (optind != argc - 2)
		return io_command_usage(argv[0]);
	if (judge_write(&w))
		return -1;
	if (range(argv, w.no_fallback, " without -n", &w.j.r.off, &len))
		return -1;
	if (w.vm_state)
		return not_supported("write");
	if (w.compress && !w.zero)
		w.j.r.flags |= BLK_COMPRESS;
	if (!w.zero)
		return write_buffer(io, &w, len);
	w.j.kind = IO_ZERO;
	w.j.r.len = len;
	w.j.r.flags |= zero_flags(io, &w);
	return io_job_run(io, &w.j);
}

int io_discard(struct io *io, int argc, char **argv)
{
	struct rw w = {.j = {.kind = IO_DISCARD, .failed = "discard"}};
	int ret = writable(io) ? -1 : parse(&w, argc, argv, "Cq", false);

	if (ret)
		return ret;
	if (optind != argc - 2)
		return io_command_usage(argv[0]);
	if (range(argv, false, "", &w.j.r.off, &w.j.r.len))
		return -1;
	return io_job_run(io, &w.j);
}

/* ---- readv, writev, aio_*: any number of buffers ------------------------------------- */

static int lengths(char **argv, unsigned n, uint64_t *lens)
{
	uint64_t total = 0;

	for (unsigned i = 0; i < n; i++) {
		if (io_number(argv[i], &lens[i]))
			return -1;
		if (lens[i] > IO_MAX_LEN) {
			printf("Argument '%s' exceeds maximum size %u\n", argv[i], IO_MAX_LEN);
			return -1;
		}
		total += lens[i];
		if (total > IO_MAX_LEN) {
			printf("The total number of bytes exceed the maximum size %u\n",
				IO_MAX_LEN);
			return -1;
		}
	}
	return 0;
}

/* "off len len...": buffers for them. */
static int vector(struct io *io, struct rw *w, int argc, char **argv, int fill)
{
	unsigned n = (unsigned)(argc - optind - 1);
	uint64_t *lens;
	int ret;

	if (io_number(argv[optind], &w->j.r.off))
		return -1;
	lens = calloc(n, sizeof(*lens));
	if (!lens) {
		cli_no_memory();
		return -1;
	}
	ret = lengths(argv + optind + 1, n, lens);
	if (!ret)
		ret = io_job_buffer(io, &w->j, lens, n, fill);
	free(lens);
	return ret;
}

static void check_all(struct rw *w)
{
	w->j.check = w->pattern;
	w->j.check_len = w->j.r.len;
}

int io_readv(struct io *io, int argc, char **argv)
{
	struct rw w = {.j = {.kind = IO_READ, .failed = "read"}};
	int ret = parse(&w, argc, argv, "CP:qv", true);

	if (ret)
		return ret;
	if (optind > argc - 2)
		return io_command_usage(argv[0]);
	ret = vector(io, &w, argc, argv, 0xab);
	if (!ret) {
		check_all(&w);
		ret = io_job_run(io, &w.j);
	}
	io_job_free(&w.j);
	return ret;
}

int io_writev(struct io *io, int argc, char **argv)
{
	struct rw w = {.j = {.kind = IO_WRITE, .failed = "write"}};
	int ret = writable(io) ? -1 : parse(&w, argc, argv, "CfqP:", false);

	if (ret)
		return ret;
	if (optind > argc - 2)
		return io_command_usage(argv[0]);
	ret = vector(io, &w, argc, argv, w.j.pattern);
	if (!ret)
		ret = io_job_run(io, &w.j);
	io_job_free(&w.j);
	return ret;
}

int io_aio_read(struct io *io, int argc, char **argv)
{
	struct rw w = {.j = {.kind = IO_READ, .failed = "readv"}};
	int ret = parse(&w, argc, argv, "CiP:qv", true);

	if (ret)
		return ret;
	if (w.invalid)
		return puts("injecting invalid read request") < 0 ? -1 : 0;
	if (optind > argc - 2)
		return io_command_usage(argv[0]);
	ret = vector(io, &w, argc, argv, 0xab);
	if (!ret) {
		check_all(&w);
		ret = io_job_start(io, &w.j);
	}
	io_job_free(&w.j);
	return ret;
}

static int aio_zero(struct io *io, struct rw *w, char **argv)
{
	w->j.kind = IO_ZERO;
	w->j.r.flags |= zero_flags(io, w);
	if (io_number(argv[optind], &w->j.r.off) || io_number(argv[optind + 1], &w->j.r.len))
		return -1;
	return io_job_start(io, &w->j);
}

int io_aio_write(struct io *io, int argc, char **argv)
{
	struct rw w = {.j = {.kind = IO_WRITE, .failed = "aio_write"}};
	int ret = writable(io) ? -1 : parse(&w, argc, argv, "CfiP:quz", false);

	if (ret)
		return ret;
	if (w.invalid)
		return puts("injecting invalid write request") < 0 ? -1 : 0;
	if (optind > argc - 2)
		return io_command_usage(argv[0]);
	if (w.zero && optind != argc - 2)
		return complain("-z supports only a single length parameter");
	if (w.unmap && !w.zero)
		return complain("-u requires -z to be specified");
	if (w.zero)
		return aio_zero(io, &w, argv);
	ret = vector(io, &w, argc, argv, w.j.pattern);
	if (!ret)
		ret = io_job_start(io, &w.j);
	io_job_free(&w.j);
	return ret;
}
