/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/checksum.c - platter checksum: what images hold, in one number each.
 *
 * Lines are those of sha256sum, of coreutils 9.1, and so is what --check says.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/checksum.h"
#include "cli/parse.h"

struct job {
	struct fmt_checksum *c;
	struct blk_err err;
};

static int run(void *arg)
{
	struct job *j = arg;

	return fmt_checksum(j->c, &j->err);
}

static int read_stdin(void *ctx, void *buf, size_t len, size_t *got)
{
	ssize_t n;

	(void)ctx;
	do {
		n = read(STDIN_FILENO, buf, len);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	*got = (size_t)n;
	return 0;
}

static void put_hex(const struct fmt_checksum *c, char *hex)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < c->sum_len; i++) {
		*hex++ = digits[c->sum[i] >> 4];
		*hex++ = digits[c->sum[i] & 15];
	}
	*hex = '\0';
}

static int sum_up(const struct checksum_args *a, const char *name, struct fmt_checksum *c)
{
	struct job j = {.c = c};
	struct cli_progress p;
	int code;

	cli_progress_begin(&p, a->progress && !a->quiet && c->image);
	c->progress = p.p;
	code = cli_run(a->threads, run, &j);
	if (!code)
		cli_progress_full(&p);
	cli_progress_end(&p);
	if (!code)
		return 0;
	if (!j.err.code)
		blk_fail(&j.err, code, BLK_E_SYS, 0, 0);
	if (j.err.id != BLK_E_BAD_VALUE)
		blk_err_where(&j.err, "Could not sum up", name);
	return cli_fail(&j.err);
}

static int sum_up_image(const struct checksum_args *a, const char *name, struct fmt_checksum *c)
{
	struct cli_open o = a->open;
	int ret;

	o.name = name;
	if (cli_open(&c->image, &o))
		return 1;
	ret = sum_up(a, name, c);
	return cli_close(c->image) | ret;
}

int checksum_file(
	const struct checksum_args *a, const char *name, struct fmt_checksum *c, char *hex)
{
	int ret;

	*c = a->c;
	if (strcmp(name, "-") != 0) {
		ret = sum_up_image(a, name, c);
	} else {
		c->read = read_stdin;
		c->mem = &thr_heap;
		ret = sum_up(a, name, c);
	}
	if (!ret)
		put_hex(c, hex);
	return ret;
}

/* ---- printing ------------------------------------------------------------------------- */

static void print_json(
	struct cli_json *j, const char *name, const struct fmt_checksum *c, const char *hex)
{
	cli_json_open(j, NULL, false);
	cli_json_str(j, "filename", name);
	cli_json_str(j, "digest", c->digest);
	cli_json_str(j, "method", c->plain ? "plain" : "blkhash");
	if (!c->plain)
		cli_json_num(j, "block-size", c->block);
	cli_json_num(j, "length", c->length);
	cli_json_str(j, "checksum", hex);
	cli_json_close(j, false);
}

static int one_file(const struct checksum_args *a, const char *name, struct cli_json *j)
{
	struct fmt_checksum c;
	char hex[CHECKSUM_HEX];

	if (checksum_file(a, name, &c, hex))
		return 1;
	if (a->json)
		print_json(j, name, &c, hex);
	else
		checksum_line(stdout, hex, name);
	return 0;
}

static int all_files(const struct checksum_args *a, int n, char **names)
{
	struct cli_json j;
	int ret = 0;

	cli_json_begin(&j, stdout);
	if (a->json)
		cli_json_open(&j, NULL, true);
	for (int i = 0; i < n; i++)
		ret |= a->check ? checksum_verify(a, names[i], &j) : one_file(a, names[i], &j);
	if (a->json) {
		cli_json_close(&j, true);
		cli_json_end(&j);
	}
	return ret;
}

/* ---- options ---------------------------------------------------------------------------- */

static int block_size(void *ctx, const char *arg)
{
	uint32_t *block = ctx;
	uint64_t v;

	if (cli_size("block size", arg, &v))
		return 1;
	if (!thr_is_pow2(v) || v < FMT_CHECKSUM_MIN || v > FMT_CHECKSUM_MAX)
		return cli_error("Invalid block size specified. It is a power of two from %u "
				 "to %u.",
			FMT_CHECKSUM_MIN, FMT_CHECKSUM_MAX);
	*block = (uint32_t)v;
	return 0;
}

int cli_checksum(int argc, char **argv)
{
	struct checksum_args a = {
		.c = {.digest = "sha256", .block = FMT_CHECKSUM_BLOCK},
		.open = {.blk_flags = BLK_SEQUENTIAL},
	};
	const struct cli_opt options[] = {
		CLI_OPT_IMAGE(&a.open),
		CLI_OPT_CACHE('T', &a.open.cache),
		CLI_TEXT(0, "digest", "NAME", &a.c.digest, "the digest (sha256)"),
		CLI_CALL(0, "block-size", "SIZE", block_size, &a.c.block,
			"of the tree of digests (64k)"),
		CLI_FLAG(0, "plain", &a.c.plain, "the digest of the whole disk, as sha256sum"),
		CLI_FLAG('c', "check", &a.check, "verify the lists that the files are"),
		CLI_OPT_OUTPUT(&a.json),
		CLI_OPT_FIBERS(&a.c.fibers),
		CLI_OPT_THREADS(&a.threads),
		CLI_OPT_PROGRESS(&a.progress),
		CLI_OPT_QUIET(&a.quiet),
		CLI_OPT_END,
	};

	if (cli_parse(argc, argv, options))
		return 1;
	if (optind == argc)
		return cli_usage("Expecting at least one image file name");
	if (cli_cache_ok("source cache", a.open.cache))
		return 1;
	return all_files(&a, argc - optind, argv + optind);
}
