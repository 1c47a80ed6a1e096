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
	struct cli_open o = {
		.name = name,
		.format = a->format,
		.cache = a->cache,
		.image_opts = a->image_opts,
		.blk_flags = BLK_SEQUENTIAL | (a->share ? BLK_SHARE : 0u),
	};
	int ret;

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

enum { OPT_DIGEST = CLI_OPT_FIRST, OPT_BLOCK_SIZE, OPT_PLAIN, OPT_CHECK, OPT_THREADS };

static int block_size(struct checksum_args *a)
{
	uint64_t v;

	if (cli_size("block size", optarg, &v))
		return 1;
	if (!thr_is_pow2(v) || v < FMT_CHECKSUM_MIN || v > FMT_CHECKSUM_MAX)
		return cli_error("Invalid block size specified. It is a power of two from %u "
				 "to %u.",
			FMT_CHECKSUM_MIN, FMT_CHECKSUM_MAX);
	a->c.block = (uint32_t)v;
	return 0;
}

static int take_option(struct checksum_args *a, int c)
{
	switch (c) {
	case CLI_OPT_BAD:
		return 1;
	case CLI_OPT_IMAGE_OPTS:
		a->image_opts = true;
		break;
	case CLI_OPT_OUTPUT:
		return cli_output(optarg, &a->json);
	case 'c':
	case OPT_CHECK:
		a->check = true;
		break;
	case 'f':
		a->format = optarg;
		break;
	case 'm':
		if (cli_number(optarg, 1, 16, &a->c.fibers))
			return cli_error("Invalid number of coroutines. Allowed number of "
					 "coroutines is between 1 and 16");
		break;
	case 'T':
		a->cache = optarg;
		break;
	case 'p':
		a->progress = true;
		break;
	case 'q':
		a->quiet = true;
		break;
	case 'U':
		a->share = true;
		break;
	case OPT_DIGEST:
		a->c.digest = optarg;
		break;
	case OPT_BLOCK_SIZE:
		return block_size(a);
	case OPT_PLAIN:
		a->c.plain = true;
		break;
	case OPT_THREADS:
		return cli_threads(optarg, &a->threads);
	}
	return 0;
}

int cli_checksum(int argc, char **argv)
{
	static const struct option options[] = {
		CLI_LONG_HELP,
		CLI_LONG_OBJECT,
		CLI_LONG_IMAGE_OPTS,
		CLI_LONG_OUTPUT,
		CLI_LONG_SHARE,
		{"digest", required_argument, NULL, OPT_DIGEST},
		{"block-size", required_argument, NULL, OPT_BLOCK_SIZE},
		{"plain", no_argument, NULL, OPT_PLAIN},
		{"check", no_argument, NULL, OPT_CHECK},
		{"threads", required_argument, NULL, OPT_THREADS},
		CLI_LONG_END,
	};
	struct checksum_args a = {.c = {.digest = "sha256", .block = FMT_CHECKSUM_BLOCK}};
	int c;

	while ((c = cli_getopt(argc, argv, ":hcf:m:T:pqU", options)) != -1)
		if (take_option(&a, c))
			return 1;
	if (optind == argc)
		return cli_usage("Expecting at least one image file name");
	if (cli_cache_ok("source cache", a.cache))
		return 1;
	return all_files(&a, argc - optind, argv + optind);
}
