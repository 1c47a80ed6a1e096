/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/perf/cz_cipher.c - ciphers over runs of 64 KiB, alternating with what OpenSSL's
 * own modes give: "evp" is told a new IV for each sector, which is what a sector needs;
 * "bulk" encrypts the run as if it were one sector, as `openssl speed -evp` does, which
 * is the limit and not a result anybody can use.
 */
#include <openssl/evp.h>

#include "cz_bench.h"

#define RUN   ((size_t)64 << 10)
#define TOTAL ((size_t)32 << 20)

static const struct {
	const char *cipher, *mode;
	size_t key_len, sector;
	const char *evp;
} cases[] = {
	{"aes", "xts-plain64", 64, 512, "AES-256-XTS"},
	{"aes", "xts-plain64", 32, 512, "AES-128-XTS"},
	{"aes", "xts-plain64", 48, 512, NULL},
	{"aes", "xts-plain64", 64, 4096, "AES-256-XTS"},
	{"aes", "cbc-essiv:sha256", 32, 512, "AES-256-CBC"},
	{"aes", "cbc-plain64", 16, 512, "AES-128-CBC"},
	{"aes", "cbc-plain64", 16, 4096, "AES-128-CBC"},
	{"aes", "ctr-plain64", 32, 512, "AES-256-CTR"},
	{"camellia", "xts-plain64", 64, 512, NULL},
	{"cast5", "cbc-plain64", 16, 512, NULL},
	{"serpent", "xts-plain64", 64, 512, NULL},
	{"serpent", "cbc-essiv:sha256", 32, 512, NULL},
	{"serpent", "cbc-plain64", 32, 4096, NULL},
	{"twofish", "xts-plain64", 64, 512, NULL},
	{"cast6", "xts-plain64", 64, 512, NULL},
};

static uint8_t key[64];
static uint8_t *from, *to;

static double ours(struct cz_cipher *c, size_t sector, bool encrypt)
{
	double start = bench_now();

	for (size_t at = 0; at < TOTAL; at += RUN)
		bench_must(cz_cipher_run(c, at / sector, sector, to, from, RUN, encrypt));
	return (double)TOTAL / (bench_now() - start) / 1e6;
}

static double evp(EVP_CIPHER_CTX *x, size_t sector, bool each)
{
	uint8_t iv[16] = {0};
	double start = bench_now();
	int n;

	for (size_t at = 0; at < TOTAL; at += RUN) {
		for (size_t k = 0; k < RUN; k += each ? sector : RUN) {
			thr_put_le64(iv, (at + k) / sector);
			if (!EVP_CipherInit_ex2(x, NULL, NULL, iv, -1, NULL) ||
				!EVP_CipherUpdate(
					x, to + k, &n, from + k, (int)(each ? sector : RUN)))
				bench_must(-THR_EIO);
		}
	}
	return (double)TOTAL / (bench_now() - start) / 1e6;
}

static void compare(unsigned i, bool encrypt)
{
	EVP_CIPHER *e = cases[i].evp ? EVP_CIPHER_fetch(NULL, cases[i].evp, NULL) : NULL;
	EVP_CIPHER_CTX *x = EVP_CIPHER_CTX_new();
	struct bench b[3] = {{{0}}};
	struct cz_cipher_spec s;
	struct cz_cipher *c;
	int err;

	bench_must(cz_cipher_parse(&s, cases[i].cipher, cases[i].mode, cases[i].key_len));
	err = cz_cipher_new(&c, &thr_heap, &s, key, cases[i].key_len);
	if (err == -THR_ENOTSUP)
		goto out;
	bench_must(err);
	if (e && !EVP_CipherInit_ex2(x, e, key, NULL, encrypt, NULL))
		bench_must(-THR_EIO);
	EVP_CIPHER_CTX_set_padding(x, 0);
	for (int r = 0; r < BENCH_ROUNDS; r++) {
		b[0].v[r] = ours(c, cases[i].sector, encrypt);
		if (!e)
			continue;
		b[1].v[r] = evp(x, cases[i].sector, true);
		b[2].v[r] = evp(x, cases[i].sector, false);
	}
	printf("%-9s %-17s %4zu %6zu %-4s %8.0f %6.1f", cases[i].cipher, cases[i].mode,
		8 * cases[i].key_len, cases[i].sector, encrypt ? "enc" : "dec",
		bench_mean(&b[0]), bench_dev(&b[0]));
	if (e)
		printf(" %8.0f %8.0f %6.2f", bench_mean(&b[1]), bench_mean(&b[2]),
			bench_mean(&b[0]) / bench_mean(&b[1]));
	printf("\n");
	cz_cipher_free(c);
out:
	EVP_CIPHER_CTX_free(x);
	EVP_CIPHER_free(e);
}

int main(void)
{
	from = bench_get(RUN);
	to = bench_get(RUN);
	for (size_t i = 0; i < RUN; i++)
		from[i] = (uint8_t)(i * i >> 3);
	for (size_t i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)(i * 37 + 1);
	printf("MB/s of processor time\n%-9s %-17s %4s %6s %-4s %8s %6s %8s %8s %6s\n",
		"cipher", "mode", "bits", "sector", "", "ours", "dev %", "evp", "bulk",
		"/ evp");
	for (unsigned i = 0; i < THR_ARRAY_SIZE(cases); i++) {
		compare(i, true);
		compare(i, false);
	}
	free(from);
	free(to);
	return 0;
}
