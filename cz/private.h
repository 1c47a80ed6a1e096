/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cz/private.h - what the files of this room share.
 */
#ifndef CZ_PRIVATE_H
#define CZ_PRIVATE_H

#include "cz/cz.h"

extern const struct cz_codec cz_deflate_zlib;
extern const struct cz_codec cz_deflate_libdeflate;
extern const struct cz_codec cz_zstd;

/* Lends an allocator handle to a library whose free function does not say the
 * size. zlib's encoder has five blocks at a time, the decoders two; a third-party
 * library that wants more than the table holds is told that there is no memory. */
#define CZ_LENT_MAX 6

struct cz_lent {
	const struct thr_alloc *mem;
	struct {
		void *p;
		size_t size;
	} block[CZ_LENT_MAX];
};

void cz_lent_init(struct cz_lent *l, const struct thr_alloc *mem);
void *cz_lent_get(struct cz_lent *l, size_t size);
void cz_lent_put(struct cz_lent *l, void *p);

/* The encoding half of cz_zstd (zstd_encode.c). */
struct cz_zstd_enc {
	const struct thr_alloc *mem;
	void *work;
	size_t work_size;
	size_t max;
	int level;
};

int cz_zstd_encode_init(void *ctx, const struct thr_alloc *mem, int level, size_t max);
void cz_zstd_encode_fini(void *ctx);
int cz_zstd_encode(void *ctx, void *dst, size_t dlen, const void *src, size_t slen);

/* ---- OpenSSL (openssl.c); its types by their tags, so that only the files that
 * call it see its headers ---- */

struct evp_cipher_st;
struct evp_cipher_ctx_st;
struct evp_md_st;
struct evp_md_ctx_st;
struct ossl_lib_ctx_st;
struct ossl_provider_st;

/* The library context that an algorithm was found in: none for the default one,
 * one of our own where the legacy module had to be loaded. Outlives what was
 * fetched. */
struct cz_ossl {
	struct ossl_lib_ctx_st *lib;
	struct ossl_provider_st *legacy;
};

/* NULL where OpenSSL has no algorithm of that name; freed by the caller. */
struct evp_cipher_st *cz_ossl_cipher(struct cz_ossl *o, const char *name);
struct evp_md_st *cz_ossl_md(struct cz_ossl *o, const char *name);
void cz_ossl_fini(struct cz_ossl *o);

/* A block cipher of our own. Blocks have 16 bytes; any alignment, and @dst may be @src. */
struct cz_own {
	size_t size; /* of a key schedule, which is aligned to 16 */
	/* @key_len is 16, 24 or 32. */
	void (*schedule)(void *ks, const uint8_t *key, size_t key_len);
	void (*encrypt)(const void *ks, uint8_t *dst, const uint8_t *src, size_t blocks);
	void (*decrypt)(const void *ks, uint8_t *dst, const uint8_t *src, size_t blocks);
};

extern const struct cz_own cz_serpent, cz_twofish, cz_cast6;

/* What cz_cipher_new() needs of a cipher (cipher_spec.c). */
struct cz_cipher_row {
	const char *name;         /* "aes-256" */
	const char *family;       /* "aes", as in LUKS headers */
	const char *evp;          /* in ECB mode; NULL where OpenSSL has none */
	const struct cz_own *own; /* NULL where OpenSSL has it, or this build not */
	uint8_t key_len;
	uint8_t block;
};

/* NULL for an id that there is none of. */
const struct cz_cipher_row *cz_cipher_row(enum cz_cipher_id id);
/* The cipher of that family whose key has that length, or -ENOENT for a family
 * that is not known and -EINVAL for a length that is not its. */
int cz_cipher_of_family(const char *family, size_t key_len);

/* A bare cipher under one key (block.c). All zero is one that cz_block_fini() takes. */
struct cz_block {
	const struct cz_own *own;
	void *schedule; /* of @own */
	struct evp_cipher_ctx_st *encrypt, *decrypt;
};

/* It need not decrypt unless @both. -ENOTSUP, -ENOMEM, -EIO; then too cz_block_fini(). */
int cz_block_init(struct cz_block *b, const struct thr_alloc *mem, struct cz_ossl *ossl,
	enum cz_cipher_id id, const void *key, bool both);
void cz_block_fini(struct cz_block *b, const struct thr_alloc *mem);
/* Whole blocks; @dst is @src or does not overlap it. */
int cz_block_run(
	const struct cz_block *b, uint8_t *dst, const uint8_t *src, size_t len, bool encrypt);

/* An EVP digest context of that id (digest.c). */
struct cz_md {
	struct evp_md_ctx_st *ctx;
	struct cz_ossl ossl;
	size_t size;
};

int cz_md_init(struct cz_md *m, enum cz_digest_id id);
void cz_md_fini(struct cz_md *m);

/* HMAC under one key (hmac.c): the two keyed states, and one at work. */
struct cz_prf {
	struct cz_md inner;
	struct evp_md_ctx_st *outer;
	struct evp_md_ctx_st *work;
	size_t size;
};

int cz_prf_init(struct cz_prf *f, enum cz_digest_id id, const void *key, size_t key_len);
void cz_prf_fini(struct cz_prf *f);
int cz_prf_begin(struct cz_prf *f);
int cz_prf_update(struct cz_prf *f, const void *p, size_t len);
int cz_prf_end(struct cz_prf *f, void *out);

#endif
