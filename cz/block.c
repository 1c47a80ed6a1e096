/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cz/block.c - bare block ciphers under one key: OpenSSL's, and those of our own that
 * it does not have. cz/cipher.c makes the modes of them.
 */
#include "cz/crypto_lib.h"
#include "cz/private.h"

static int set_evp(EVP_CIPHER_CTX **out, EVP_CIPHER *evp, const void *key, bool encrypt)
{
	EVP_CIPHER_CTX *ctx = libcrypto.EVP_CIPHER_CTX_new();

	*out = ctx;
	if (!ctx)
		return -THR_ENOMEM;
	if (!libcrypto.EVP_CipherInit_ex2(ctx, evp, key, NULL, encrypt, NULL))
		return -THR_EIO;
	libcrypto.EVP_CIPHER_CTX_set_padding(ctx, 0);
	return 0;
}

int cz_block_init(struct cz_block *b, const struct thr_alloc *mem, struct cz_ossl *ossl,
	enum cz_cipher_id id, const void *key, bool both)
{
	const struct cz_cipher_row *row = cz_cipher_row(id);
	EVP_CIPHER *evp;
	int err;

	*b = (struct cz_block){.own = row->own};
	if (b->own) {
		b->schedule = thr_get(mem, b->own->size, 16);
		if (!b->schedule)
			return -THR_ENOMEM;
		b->own->schedule(b->schedule, key, row->key_len);
		return 0;
	}
	err = cz_crypto_need();
	if (err)
		return err;
	evp = row->evp ? cz_ossl_cipher(ossl, row->evp) : NULL;
	if (!evp)
		return -THR_ENOTSUP;
	err = set_evp(&b->encrypt, evp, key, true);
	if (!err && both)
		err = set_evp(&b->decrypt, evp, key, false);
	libcrypto.EVP_CIPHER_free(evp);
	return err;
}

/* OpenSSL clears the key schedules that it frees. */
void cz_block_fini(struct cz_block *b, const struct thr_alloc *mem)
{
	if (b->encrypt)
		libcrypto.EVP_CIPHER_CTX_free(b->encrypt);
	if (b->decrypt)
		libcrypto.EVP_CIPHER_CTX_free(b->decrypt);
	if (!b->schedule)
		return;
	cz_wipe(b->schedule, b->own->size);
	thr_put(mem, b->schedule, b->own->size);
}

int cz_block_run(
	const struct cz_block *b, uint8_t *dst, const uint8_t *src, size_t len, bool encrypt)
{
	int n;

	if (b->own) {
		(encrypt ? b->own->encrypt : b->own->decrypt)(b->schedule, dst, src, len / 16);
		return 0;
	}
	return libcrypto.EVP_CipherUpdate(
		       encrypt ? b->encrypt : b->decrypt, dst, &n, src, (int)len) &&
			       n == (int)len
		       ? 0
		       : -THR_EIO;
}
