/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cz/digest.c - the table of digests, and digesting through OpenSSL's EVP. A
 * context holds an EVP context that is initialised again and again.
 */
#include "cz/crypto_lib.h"
#include "cz/private.h"

static const struct {
	const char *name; /* in LUKS headers */
	const char *evp;
	uint8_t size;
} rows[] = {
	[CZ_MD5] = {"md5", "MD5", 16},
	[CZ_SHA1] = {"sha1", "SHA1", 20},
	[CZ_SHA224] = {"sha224", "SHA2-224", 28},
	[CZ_SHA256] = {"sha256", "SHA2-256", 32},
	[CZ_SHA384] = {"sha384", "SHA2-384", 48},
	[CZ_SHA512] = {"sha512", "SHA2-512", 64},
	[CZ_SHA3_224] = {"sha3-224", "SHA3-224", 28},
	[CZ_SHA3_256] = {"sha3-256", "SHA3-256", 32},
	[CZ_SHA3_384] = {"sha3-384", "SHA3-384", 48},
	[CZ_SHA3_512] = {"sha3-512", "SHA3-512", 64},
	[CZ_RIPEMD160] = {"ripemd160", "RIPEMD160", 20},
	[CZ_BLAKE2B_512] = {"blake2b-512", "BLAKE2B-512", 64},
	[CZ_BLAKE2S_256] = {"blake2s-256", "BLAKE2S-256", 32},
	[CZ_SM3] = {"sm3", "SM3", 32},
};

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static bool name_like(const char *a, const char *b)
{
	for (;;) {
		a += *a == '-';
		b += *b == '-';
		if (lower(*a) != lower(*b))
			return false;
		if (!*a)
			return true;
		a++;
		b++;
	}
}

int cz_digest_find(const char *name)
{
	for (unsigned i = 0; i < THR_ARRAY_SIZE(rows); i++) {
		if (name_like(rows[i].name, name))
			return (int)i;
	}
	return -THR_ENOENT;
}

const char *cz_digest_name(enum cz_digest_id id)
{
	return (unsigned)id < THR_ARRAY_SIZE(rows) ? rows[id].name : NULL;
}

size_t cz_digest_size(enum cz_digest_id id)
{
	return (unsigned)id < THR_ARRAY_SIZE(rows) ? rows[id].size : 0;
}

static int md_init(struct cz_md *m, const char *evp)
{
	int err = cz_crypto_need();
	EVP_MD *md;
	int size;

	memset(m, 0, sizeof(*m));
	if (err)
		return err;
	err = -THR_ENOTSUP;
	md = cz_ossl_md(&m->ossl, evp);
	size = md ? libcrypto.EVP_MD_get_size(md) : 0;
	if (size <= 0 || size > CZ_DIGEST_MAX)
		goto out;
	m->size = (size_t)size;
	err = -THR_ENOMEM;
	m->ctx = libcrypto.EVP_MD_CTX_new();
	if (m->ctx && libcrypto.EVP_DigestInit_ex2(m->ctx, md, NULL))
		err = 0;
out:
	if (md)
		libcrypto.EVP_MD_free(md);
	if (err)
		cz_md_fini(m);
	return err;
}

int cz_md_init(struct cz_md *m, enum cz_digest_id id)
{
	if (!cz_digest_size(id))
		return -THR_EINVAL;
	return md_init(m, rows[id].evp);
}

void cz_md_fini(struct cz_md *m)
{
	if (m->ctx)
		libcrypto.EVP_MD_CTX_free(m->ctx);
	cz_ossl_fini(&m->ossl);
}

struct cz_digest_ctx {
	struct cz_md md;
	const struct thr_alloc *mem;
};

static int digest_new(struct cz_digest_ctx **out, const struct thr_alloc *mem, const char *evp)
{
	struct cz_digest_ctx *d = thr_zget(mem, sizeof(*d));
	int err;

	if (!d)
		return -THR_ENOMEM;
	d->mem = mem;
	err = md_init(&d->md, evp);
	if (err)
		thr_put(mem, d, sizeof(*d));
	else
		*out = d;
	return err;
}

int cz_digest_new(struct cz_digest_ctx **out, const struct thr_alloc *mem, enum cz_digest_id id)
{
	return cz_digest_size(id) ? digest_new(out, mem, rows[id].evp) : -THR_EINVAL;
}

int cz_digest_named(struct cz_digest_ctx **out, const struct thr_alloc *mem, const char *name)
{
	int id = cz_digest_find(name);

	return digest_new(out, mem, id >= 0 ? rows[id].evp : name);
}

size_t cz_digest_ctx_size(const struct cz_digest_ctx *d)
{
	return d->md.size;
}

void cz_digest_free(struct cz_digest_ctx *d)
{
	if (!d)
		return;
	cz_md_fini(&d->md);
	thr_put(d->mem, d, sizeof(*d));
}

int cz_digest_update(struct cz_digest_ctx *d, const void *p, size_t len)
{
	return libcrypto.EVP_DigestUpdate(d->md.ctx, p, len) ? 0 : -THR_EIO;
}

int cz_digest_final(struct cz_digest_ctx *d, void *out)
{
	return libcrypto.EVP_DigestFinal_ex(d->md.ctx, out, NULL) &&
			       libcrypto.EVP_DigestInit_ex2(d->md.ctx, NULL, NULL)
		       ? 0
		       : -THR_EIO;
}

int cz_digest(enum cz_digest_id id, const void *p, size_t len, void *out)
{
	struct cz_md m;
	int err = cz_md_init(&m, id);

	if (err)
		return err;
	if (!libcrypto.EVP_DigestUpdate(m.ctx, p, len) ||
		!libcrypto.EVP_DigestFinal_ex(m.ctx, out, NULL))
		err = -THR_EIO;
	cz_md_fini(&m);
	return err;
}
