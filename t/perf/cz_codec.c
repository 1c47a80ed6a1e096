/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/perf/cz_codec.c - the codecs on real files, in clusters of 64 KiB, which is how
 * their default levels were chosen, and what the estimate saves and costs.
 *
 * The data is the file named on the command line, or regular files of /usr/bin and
 * /usr/share, one after the other. Every level runs on the same clusters, level after
 * level, and all of that several times. Incompressible clusters count as stored
 * plain. "peer" is zlib as images have always been written: window of 4 KiB, memory
 * level 9, at levels 6 and 9.
 */
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cz_bench.h"

#ifdef CONFIG_CZ_DEFLATE
#include <zlib.h>
#endif

#define CLUSTER  ((size_t)64 << 10)
#define DATA_MAX ((size_t)16 << 20)
#define FILE_MAX ((size_t)1 << 20)

static uint8_t *data;
static size_t data_len;

static void load(const char *path, size_t max)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = 0;

	if (fd < 0)
		return;
	max = THR_MIN(max, DATA_MAX - data_len);
	while (max && (n = read(fd, data + data_len, max)) > 0) {
		data_len += (size_t)n;
		max -= (size_t)n;
	}
	close(fd);
}

static size_t part_end;

static int visit(const char *path, const struct stat *st, int type, struct FTW *w)
{
	(void)st;
	(void)w;
	if (type == FTW_F)
		load(path, THR_MIN(FILE_MAX, part_end - data_len));
	return data_len >= part_end;
}

struct run {
	const char *name;
	const struct cz_codec *c; /* NULL: the peer */
	int level;
	struct bench enc, dec;
	size_t total, plain;
};

#define RUNS_MAX 64

static struct run runs[RUNS_MAX];
static unsigned n_runs;

#ifdef CONFIG_CZ_DEFLATE
static void *peer_open(int level)
{
	z_stream *z = calloc(1, sizeof(*z));

	if (!z || deflateInit2(z, level, Z_DEFLATED, -12, 9, Z_DEFAULT_STRATEGY) != Z_OK)
		exit(77);
	return z;
}

static int peer_encode(void *ctx, void *dst, size_t dlen, const void *src, size_t slen)
{
	z_stream *z = ctx;

	deflateReset(z);
	z->next_in = (Bytef *)src;
	z->avail_in = (uInt)slen;
	z->next_out = dst;
	z->avail_out = (uInt)dlen;
	return deflate(z, Z_FINISH) == Z_STREAM_END ? (int)(dlen - z->avail_out) : -THR_ENOSPC;
}

static void peer_close(void *ctx)
{
	deflateEnd(ctx);
	free(ctx);
}
#else
static void *peer_open(int level)
{
	(void)level;
	return NULL;
}

static int peer_encode(void *ctx, void *dst, size_t dlen, const void *src, size_t slen)
{
	(void)ctx, (void)dst, (void)dlen, (void)src, (void)slen;
	return -THR_ENOSPC;
}

static void peer_close(void *ctx)
{
	(void)ctx;
}
#endif

static void *enc_open(const struct run *r)
{
	void *ctx;

	if (!r->c)
		return peer_open(r->level);
	ctx = bench_get(r->c->encode_ctx_size);
	bench_must(r->c->encode_init(ctx, &thr_heap, r->level, CLUSTER));
	return ctx;
}

static void enc_close(const struct run *r, void *ctx)
{
	if (!r->c) {
		peer_close(ctx);
		return;
	}
	r->c->encode_fini(ctx);
	free(ctx);
}

static int encode(const struct run *r, void *ctx, uint8_t *out, const uint8_t *in)
{
	return r->c ? r->c->encode(ctx, out, CLUSTER - 1, in, CLUSTER)
		    : peer_encode(ctx, out, CLUSTER - 1, in, CLUSTER);
}

static void measure(struct run *r, int round)
{
	const struct cz_codec *dc = r->c ? r->c : cz_codec_built(0);
	void *ctx = enc_open(r), *dctx = bench_get(dc->decode_ctx_size);
	uint8_t *out = bench_get(CLUSTER), *back = bench_get(CLUSTER);
	double enc = 0, dec = 0, start;

	bench_must(dc->decode_init(dctx, &thr_heap));
	r->total = r->plain = 0;
	for (size_t at = 0; at + CLUSTER <= data_len; at += CLUSTER) {
		int n;

		start = bench_now();
		n = encode(r, ctx, out, data + at);
		enc += bench_now() - start;
		r->total += n < 0 ? CLUSTER : (size_t)n;
		r->plain += n < 0;
		if (n < 0)
			continue;
		start = bench_now();
		bench_must(dc->decode(dctx, back, CLUSTER, out, (size_t)n));
		dec += bench_now() - start;
		if (memcmp(back, data + at, CLUSTER))
			bench_must(-THR_EIO);
	}
	r->enc.v[round] = (double)data_len / enc / 1e6;
	r->dec.v[round] = (double)(data_len - r->plain * CLUSTER) / dec / 1e6;
	dc->decode_fini(dctx);
	enc_close(r, ctx);
	free(dctx);
	free(out);
	free(back);
}

static void add(const char *name, const struct cz_codec *c, int level)
{
	if (n_runs < RUNS_MAX)
		runs[n_runs++] = (struct run){.name = name, .c = c, .level = level};
}

/* What skipping by the estimate loses, against the fastest codec at its default. */
static void estimate(void)
{
	const struct cz_codec *c = cz_codec_built(0);
	struct run r = {.name = c->lib, .c = c, .level = c->level_default};
	void *ctx = enc_open(&r);
	uint8_t *out = bench_get(CLUSTER);
	size_t skipped = 0, plain = 0, lost = 0, total = 0;
	double spent = 0, all = 0;

	for (size_t at = 0; at + CLUSTER <= data_len; at += CLUSTER) {
		double start = bench_now();
		bool will = cz_will_shrink(data + at, CLUSTER);
		int n;

		spent += bench_now() - start;
		start = bench_now();
		n = encode(&r, ctx, out, data + at);
		all += bench_now() - start;
		total += n < 0 ? CLUSTER : (size_t)n;
		plain += n < 0;
		skipped += !will;
		lost += will || n < 0 ? 0 : CLUSTER - (size_t)n;
	}
	printf("\nestimate: skips %zu of %zu clusters, while %s -%d stores %zu plain; loses "
	       "%.3f %%\n"
	       "of the output; takes %.1f %% of the time of that encoder\n",
		skipped, data_len / CLUSTER, r.name, r.level, plain,
		100.0 * (double)lost / (double)total, 100 * spent / all);
	/* And on noise, where it saves all of it. */
	bench_must(cz_random(data, CLUSTER));
	all = spent = bench_now();
	for (int i = 0; i < 500; i++)
		spent += cz_will_shrink(data, CLUSTER);
	spent = bench_now() - spent;
	all = bench_now();
	for (int i = 0; i < 500; i++)
		encode(&r, ctx, out, data);
	all = bench_now() - all;
	printf("on noise: %.0f MB/s, the encoder %.0f MB/s\n", 500e-6 * CLUSTER / spent,
		500e-6 * CLUSTER / all);
	enc_close(&r, ctx);
	free(out);
}

int main(int argc, char **argv)
{
	const struct cz_codec *c;

	data = bench_get(DATA_MAX);
	if (argc > 1) {
		load(argv[1], DATA_MAX);
	} else {
		part_end = DATA_MAX / 2;
		nftw("/usr/bin", visit, 16, FTW_PHYS);
		part_end = DATA_MAX;
		nftw("/usr/share", visit, 16, FTW_PHYS);
	}
	data_len = thr_align_down(data_len, CLUSTER);
	if (!data_len || !cz_codec_built(0))
		return 77;
#ifdef CONFIG_CZ_DEFLATE
	add("peer", NULL, 6);
	add("peer", NULL, 9);
#endif
	for (unsigned i = 0; (c = cz_codec_built(i)); i++) {
		for (int l = c->level_min; l <= c->level_max; l++) {
			/* The slow ones by example. */
			if (l <= 6 || l % 3 == 0)
				add(c->lib, c, l);
		}
	}
	for (int round = 0; round < BENCH_ROUNDS; round++) {
		for (unsigned i = 0; i < n_runs; i++)
			measure(&runs[i], round);
	}
	printf("%zu MiB in clusters of 64 KiB; MB/s of processor time\n", data_len >> 20);
	printf("%-11s %5s %10s %6s %10s %6s %7s %6s\n", "library", "level", "encode", "dev %",
		"decode", "dev %", "ratio", "plain");
	for (unsigned i = 0; i < n_runs; i++) {
		const struct run *r = &runs[i];

		printf("%-11s %4d%c %10.1f %6.1f %10.1f %6.1f %7.4f %6zu\n", r->name, r->level,
			r->c && r->level == r->c->level_default ? '*' : ' ',
			bench_mean(&r->enc), bench_dev(&r->enc), bench_mean(&r->dec),
			bench_dev(&r->dec), (double)r->total / (double)data_len, r->plain);
	}
	estimate();
	free(data);
	return 0;
}
