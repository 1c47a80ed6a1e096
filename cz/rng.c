/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cz/rng.c - random bytes, or bytes that a seed decides: block n of the latter is
 * HMAC-SHA256 of n under the digest of seed and label. Who gives the same seed gets
 * the same keys: that is what it is for, and why nothing secret is to be kept so.
 */
#include "cz/cz.h"

int cz_rng_init(struct cz_rng *r, const char *seed, const char *label)
{
	memset(r, 0, sizeof(*r));
	if (!seed)
		return 0;
	r->seeded = true;
	return cz_hmac(CZ_SHA256, seed, strlen(seed), label, strlen(label), r->key);
}

int cz_rng_get(struct cz_rng *r, void *p, size_t len)
{
	uint8_t block[32], count[8];
	uint8_t *to = (uint8_t *)p;
	int err = 0;

	if (!r->seeded)
		return cz_random(p, len);
	while (!err && len) {
		size_t n = THR_MIN(len, sizeof(block));

		thr_put_be64(count, r->count++);
		err = cz_hmac(CZ_SHA256, r->key, sizeof(r->key), count, sizeof(count), block);
		memcpy(to, block, n);
		to += n;
		len -= n;
	}
	cz_wipe(block, sizeof(block));
	return err;
}
