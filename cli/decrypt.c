/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/decrypt.c - secrets that are given encrypted: AES-256 in CBC mode, padded as
 * PKCS #7 says (RFC 5652, 6.3).
 */
#include <string.h>

#include "cli/cli.h"
#include "cz/cz.h"

#define BLOCK 16u

static void mix(uint8_t *block, const uint8_t *with)
{
	for (unsigned i = 0; i < BLOCK; i++)
		block[i] ^= with[i];
}

/* In place. A piece is decrypted as one that begins a stream of zeros, and its first block
 * then mixed with the encrypted one before it. */
static int decrypt(struct cz_cipher *c, const uint8_t *iv, uint8_t *data, size_t len)
{
	uint8_t before[BLOCK], next[BLOCK];

	memcpy(before, iv, BLOCK);
	for (size_t at = 0; at < len; at += CZ_SECTOR_MAX) {
		size_t n = THR_MIN(len - at, CZ_SECTOR_MAX);
		int err;

		memcpy(next, data + at + n - BLOCK, BLOCK);
		err = cz_cipher_run(c, 0, n, data + at, data + at, n, false);
		if (err)
			return err;
		mix(data + at, before);
		memcpy(before, next, BLOCK);
	}
	return 0;
}

int cli_decrypt(const char *id, const struct fmt_secret *key, const uint8_t *iv, uint8_t *data,
	size_t *len)
{
	static const struct cz_cipher_spec spec = {
		.cipher = CZ_AES_256, .mode = CZ_CBC, .iv = CZ_IV_NULL};
	struct cz_cipher *c;
	unsigned pad;
	int err;

	if (key->len != 32)
		return cli_error("Key should be 32 bytes in length");
	if (!*len || *len % BLOCK)
		return cli_error(
			"Length %zu of the secret '%s' must be a multiple of block size 16",
			*len, id);
	err = cz_cipher_new(&c, &thr_heap, &spec, key->data, key->len);
	if (!err) {
		err = decrypt(c, iv, data, *len);
		cz_cipher_free(c);
	}
	if (err)
		return cli_error(
			"The secret '%s' cannot be decrypted: %s", id, blk_strerror(err));
	pad = data[*len - 1];
	if (!pad || pad > BLOCK)
		return cli_error("The secret '%s' does not open with that key and IV", id);
	*len -= pad;
	return 0;
}
