/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cz/pbkdf2.c - PBKDF2 (RFC 8018, section 5.2), and how many iterations take a
 * given time.
 */
#include <time.h>

#include "cz/private.h"

static int next(struct cz_prf *f, uint8_t *u)
{
	int err = cz_prf_begin(f);

	if (!err)
		err = cz_prf_update(f, u, f->size);
	return err ? err : cz_prf_end(f, u);
}

/* T_i = U_1 ^ U_2 ^ ... ^ U_c; U_1 = PRF(salt || i), U_j = PRF(U_j-1). */
static int one_block(struct cz_prf *f, const void *salt, size_t salt_len, uint32_t number,
	uint32_t iterations, uint8_t *t)
{
	uint8_t u[CZ_DIGEST_MAX], be[4];
	int err = cz_prf_begin(f);

	thr_put_be32(be, number);
	if (!err)
		err = cz_prf_update(f, salt, salt_len);
	if (!err)
		err = cz_prf_update(f, be, sizeof(be));
	if (!err)
		err = cz_prf_end(f, u);
	if (err)
		return err;
	memcpy(t, u, f->size);
	while (!err && --iterations) {
		err = next(f, u);
		for (size_t k = 0; k < f->size; k++)
			t[k] ^= u[k];
	}
	cz_wipe(u, sizeof(u));
	return err;
}

int cz_pbkdf2(enum cz_digest_id id, const void *pass, size_t pass_len, const void *salt,
	size_t salt_len, uint32_t iterations, void *out, size_t out_len)
{
	uint8_t t[CZ_DIGEST_MAX], *o = out;
	struct cz_prf f;
	int err;

	if (!iterations || out_len > UINT32_MAX)
		return -THR_EINVAL;
	err = cz_prf_init(&f, id, pass, pass_len);
	if (err)
		return err;
	for (uint32_t number = 1; out_len; number++) {
		size_t n = THR_MIN(out_len, f.size);

		err = one_block(&f, salt, salt_len, number, iterations, t);
		if (err)
			break;
		memcpy(o, t, n);
		o += n;
		out_len -= n;
	}
	cz_wipe(t, sizeof(t));
	cz_prf_fini(&f);
	return err;
}

static uint64_t thread_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Doubles the iterations until they take long enough to be measured. */
#define MEASURED_NS 50000000u

int cz_pbkdf2_count(enum cz_digest_id id, size_t out_len, unsigned ms, uint32_t *iterations)
{
	static const uint8_t salt[32];
	uint8_t out[CZ_DIGEST_MAX];
	uint64_t ns = 0, blocks, per_s, n;
	uint32_t tried = 512;
	size_t size = cz_digest_size(id);
	int err;

	if (!size || !out_len)
		return -THR_EINVAL;
	while (ns < MEASURED_NS && tried < UINT32_MAX / 2) {
		uint64_t start = thread_ns();

		tried *= 2;
		err = cz_pbkdf2(id, "passphrase", 10, salt, sizeof(salt), tried, out, size);
		if (err)
			return err;
		ns = thread_ns() - start;
	}
	/* Each digest's length of output is derived on its own. */
	blocks = (out_len + size - 1) / size;
	per_s = (uint64_t)tried * 1000000000u / THR_MAX(ns, (uint64_t)1);
	n = per_s * ms / 1000 / blocks;
	*iterations = (uint32_t)THR_MIN(THR_MAX(n, (uint64_t)1), (uint64_t)UINT32_MAX);
	return 0;
}
