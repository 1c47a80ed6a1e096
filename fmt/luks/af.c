/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/luks/af.c - the anti-forensic splitter: a key spread over LUKS_STRIPES stripes so
 * that it is lost with any of them. All but the last are random; each is added to what
 * there is so far, which is then diffused by a hash, and the last is what is missing.
 */
#include "fmt/luks/luks.h"

static void xor_into(uint8_t *to, const uint8_t *with, size_t len)
{
	for (size_t i = 0; i < len; i++)
		to[i] ^= with[i];
}

/* Each piece of the hash's length becomes the hash of its number and itself; the last may
 * be shorter. */
static int diffuse(struct cz_digest_ctx *d, size_t size, uint8_t *block, size_t len)
{
	uint8_t out[CZ_DIGEST_MAX], number[4];
	int err = 0;

	for (size_t at = 0, i = 0; !err && at < len; at += size, i++) {
		size_t n = THR_MIN(size, len - at);

		thr_put_be32(number, (uint32_t)i);
		err = cz_digest_update(d, number, sizeof(number));
		if (!err)
			err = cz_digest_update(d, block + at, n);
		if (!err)
			err = cz_digest_final(d, out);
		if (!err)
			memcpy(block + at, out, n);
	}
	cz_wipe(out, sizeof(out));
	return err;
}

/* What all stripes but the last come to. */
static int gather(enum cz_digest_id hash, const uint8_t *split, size_t len, uint8_t *sum,
	const struct thr_alloc *mem)
{
	struct cz_digest_ctx *d;
	int err = cz_digest_new(&d, mem, hash);

	if (err)
		return err;
	memset(sum, 0, len);
	for (unsigned i = 0; !err && i < LUKS_STRIPES - 1; i++) {
		xor_into(sum, split + (size_t)i * len, len);
		err = diffuse(d, cz_digest_size(hash), sum, len);
	}
	cz_digest_free(d);
	return err;
}

int luks_af_split(enum cz_digest_id hash, const uint8_t *key, size_t len, uint8_t *split,
	struct cz_rng *rng, const struct thr_alloc *mem)
{
	uint8_t *last = split + (LUKS_STRIPES - 1) * len;
	int err = cz_rng_get(rng, split, (LUKS_STRIPES - 1) * len);

	if (!err)
		err = gather(hash, split, len, last, mem);
	if (!err)
		xor_into(last, key, len);
	return err;
}

int luks_af_merge(enum cz_digest_id hash, const uint8_t *split, size_t len, uint8_t *key,
	const struct thr_alloc *mem)
{
	int err = gather(hash, split, len, key, mem);

	if (!err)
		xor_into(key, split + (LUKS_STRIPES - 1) * len, len);
	return err;
}
