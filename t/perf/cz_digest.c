/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/perf/cz_digest.c - digests of blocks of 4 and 64 KiB with one context, and
 * PBKDF2, alternating with OpenSSL's PKCS5_PBKDF2_HMAC().
 */
#include <openssl/evp.h>

#include "cz_bench.h"

#define TOTAL      ((size_t)16 << 20)
#define ITERATIONS 20000

static double digest(struct cz_digest_ctx *d, const uint8_t *p, size_t block)
{
	uint8_t out[CZ_DIGEST_MAX];
	double start = bench_now();

	for (size_t at = 0; at < TOTAL; at += block) {
		bench_must(cz_digest_update(d, p, block));
		bench_must(cz_digest_final(d, out));
	}
	return (double)TOTAL / (bench_now() - start) / 1e6;
}

static double ours(enum cz_digest_id id)
{
	uint8_t out[CZ_DIGEST_MAX];
	double start = bench_now();

	bench_must(cz_pbkdf2(id, "passphrase", 10, "0123456789abcdef", 16, ITERATIONS, out,
		cz_digest_size(id)));
	return ITERATIONS / (bench_now() - start) / 1e3;
}

static double openssl(enum cz_digest_id id, const EVP_MD *md)
{
	uint8_t out[CZ_DIGEST_MAX];
	double start = bench_now();

	if (!PKCS5_PBKDF2_HMAC("passphrase", 10, (const uint8_t *)"0123456789abcdef", 16,
		    ITERATIONS, md, (int)cz_digest_size(id), out))
		bench_must(-THR_EIO);
	return ITERATIONS / (bench_now() - start) / 1e3;
}

int main(void)
{
	static const size_t blocks[] = {4096, 65536};
	uint8_t *p = bench_get(65536);

	memset(p, 0x5a, 65536);
	printf("%-12s %9s %6s %9s %6s | PBKDF2, 1000/s %6s %8s %6s\n", "MB/s", "4 KiB", "dev %",
		"64 KiB", "dev %", "dev %", "OpenSSL", "ratio");
	for (int id = 0; id < CZ_DIGESTS; id++) {
		EVP_MD *md = EVP_MD_fetch(NULL, cz_digest_name(id), NULL);
		struct bench b[2], k[2];
		struct cz_digest_ctx *d;

		if (cz_digest_new(&d, &thr_heap, id))
			continue;
		for (int r = 0; r < BENCH_ROUNDS; r++) {
			for (int i = 0; i < 2; i++)
				b[i].v[r] = digest(d, p, blocks[i]);
			k[0].v[r] = ours(id);
			k[1].v[r] = md ? openssl(id, md) : 0;
		}
		printf("%-12s %9.0f %6.1f %9.0f %6.1f | %14.0f %6.1f", cz_digest_name(id),
			bench_mean(&b[0]), bench_dev(&b[0]), bench_mean(&b[1]),
			bench_dev(&b[1]), bench_mean(&k[0]), bench_dev(&k[0]));
		if (md)
			printf(" %8.0f %6.2f", bench_mean(&k[1]),
				bench_mean(&k[0]) / bench_mean(&k[1]));
		printf("\n");
		cz_digest_free(d);
		EVP_MD_free(md);
	}
	free(p);
	return 0;
}
