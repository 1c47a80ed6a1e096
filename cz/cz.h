/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cz/cz.h - codecs, the zero scan, ciphers, digests and keys. Knows no block
 * devices and no fibers; of thr it uses base.h alone. Nothing here waits, though
 * deriving a key computes for as long as it is told.
 *
 * A context of any kind is used by one caller at a time, over and over: one for
 * each executor. What it needs it gets when it is made; using it allocates nothing.
 */
#ifndef CZ_CZ_H
#define CZ_CZ_H

#include "thr/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- codecs -------------------------------------------------------------- */

enum cz_codec_id {
	CZ_DEFLATE = 0, /* raw deflate, RFC 1951, window of at least 4 KiB */
	CZ_ZSTD = 1,    /* one zstd frame, RFC 8878 */
};

/* An encoder takes at most this much at a time. */
#define CZ_ENCODE_MAX   ((size_t)1 << 30)
#define CZ_ENCODE_SLACK 16

struct cz_codec {
	const char *name; /* "zlib", "zstd": as image formats call them */
	const char *lib;  /* what does the work: "zlib", "libdeflate", "libzstd" */
	enum cz_codec_id id;
	/* Bytes of a decoding context; decode_init() makes one in @ctx, which is
	 * aligned to 16, taking more memory from @mem if it must. -ENOMEM. */
	size_t decode_ctx_size;
	int (*decode_init)(void *ctx, const struct thr_alloc *mem);
	void (*decode_fini)(void *ctx);
	/* Decodes exactly @dlen bytes from the start of @src into @dst. @src may
	 * be longer than the stream (formats round its length up): what follows
	 * the first @dlen bytes of output is not looked at. -EIO when the
	 * stream is damaged or gives fewer than @dlen bytes. Never writes past
	 * dst + dlen or reads past src + slen. */
	int (*decode)(void *ctx, void *dst, size_t dlen, const void *src, size_t slen);

	/* The encoding half: NULL and 0 in a codec that only decodes. */
	int level_min, level_default, level_max;
	/* As above. @max is the most that will be encoded at a time, the cluster
	 * size. -ENOMEM; -EINVAL where @level or @max is out of range. */
	size_t encode_ctx_size;
	int (*encode_init)(void *ctx, const struct thr_alloc *mem, int level, size_t max);
	void (*encode_fini)(void *ctx);
	/* Encodes @slen bytes (at most @max) into one whole stream and returns its
	 * length; -ENOSPC where it does not fit in @dlen, which is how a caller
	 * finds out that data does not shrink: @dst is undefined then. (Some want
	 * up to CZ_ENCODE_SLACK bytes more than the stream comes to.) The bytes
	 * are a function of @src, level, @max and the library's version alone,
	 * whatever the context encoded before. */
	int (*encode)(void *ctx, void *dst, size_t dlen, const void *src, size_t slen);
};

/* The codec of that id, the fastest where there are several, or NULL where this
 * build leaves it out. */
const struct cz_codec *cz_codec_find(enum cz_codec_id id);
/* All that this build brings, the ones that cz_codec_find() prefers first; NULL
 * past the end. */
const struct cz_codec *cz_codec_built(unsigned i);
/* The name of a codec, also where this build leaves it out; NULL if there is no
 * such codec. And the configuration symbol that brings it ("CONFIG_CZ_ZSTD"). */
const char *cz_codec_name(enum cz_codec_id id);
const char *cz_codec_symbol(enum cz_codec_id id);

/* For embedders: a codec of one's own (a ROM routine) in place of the built-in
 * one of that id. Not while images are open. @c is kept by reference. */
void cz_codec_register(const struct cz_codec *c);

/* A guess, at many times the speed of a compressor, from bytes and repeats looked
 * for here and there: false says that compressing @p saves next to nothing (under
 * about 1 %) and can be skipped. The same for the same data. Not in firmware. */
bool cz_will_shrink(const void *p, size_t len);

/* ---- zeros ---------------------------------------------------------------- */

/* Whether all @len bytes are zero. Any alignment; runs at memory speed and looks
 * at a few scattered bytes first, so that data is told apart at once. */
bool cz_is_zero(const void *p, size_t len);

/* The length of the prefix of @p, a multiple of @grain (a power of two) or all
 * of @len, that is entirely zero or entirely data seen at @grain granularity;
 * *zero says which. @len is not 0; a shorter last grain counts as one. */
size_t cz_zero_run(const void *p, size_t len, size_t grain, bool *zero);

/* ---- secrets --------------------------------------------------------------- */

/* Whether the two are equal, in a time that depends on @len alone. */
bool cz_same(const void *a, const void *b, size_t len);
/* Clears memory that held a secret; never optimised away. */
void cz_wipe(void *p, size_t len);
/* Unpredictable bytes of the operating system. -EIO if it has none. Not in
 * firmware. */
int cz_random(void *p, size_t len);

/* ---- digests, HMAC, PBKDF2 (CONFIG_CZ_CRYPTO) ------------------------------- */

/* Names are those of LUKS headers ("sha256", "blake2b-512"); they are found
 * without regard to case and hyphens. */
enum cz_digest_id {
	CZ_MD5,
	CZ_SHA1,
	CZ_SHA224,
	CZ_SHA256,
	CZ_SHA384,
	CZ_SHA512,
	CZ_SHA3_224,
	CZ_SHA3_256,
	CZ_SHA3_384,
	CZ_SHA3_512,
	CZ_RIPEMD160,
	CZ_BLAKE2B_512,
	CZ_BLAKE2S_256,
	CZ_SM3,
	CZ_DIGESTS, /* how many */
};

#define CZ_DIGEST_MAX 64 /* bytes of the longest */

/* The id, or -ENOENT. */
int cz_digest_find(const char *name);
/* NULL and 0 for an id that there is none of. */
const char *cz_digest_name(enum cz_digest_id id);
size_t cz_digest_size(enum cz_digest_id id);

/* Digests of any number of messages one after the other: update as often as
 * need be, final gives cz_digest_size() bytes and begins the next. -ENOMEM;
 * -ENOTSUP where the OpenSSL of this machine does not have it, -ELIBACC where the machine
 * has no OpenSSL (CONFIG_CZ_CRYPTO_DLOPEN); so all that begins with one of these. */
struct cz_digest_ctx;
int cz_digest_new(struct cz_digest_ctx **d, const struct thr_alloc *mem, enum cz_digest_id id);
/* By a name as above or, where it is none of those, one that OpenSSL knows
 * ("sha512-256"). -ENOTSUP also for a name that means nothing. */
int cz_digest_named(struct cz_digest_ctx **d, const struct thr_alloc *mem, const char *name);
size_t cz_digest_ctx_size(const struct cz_digest_ctx *d); /* bytes of its digests */
void cz_digest_free(struct cz_digest_ctx *d);
int cz_digest_update(struct cz_digest_ctx *d, const void *p, size_t len);
int cz_digest_final(struct cz_digest_ctx *d, void *out);

/* The same for HMAC (RFC 2104) with one key. */
struct cz_hmac_ctx;
int cz_hmac_new(struct cz_hmac_ctx **h, const struct thr_alloc *mem, enum cz_digest_id id,
	const void *key, size_t key_len);
void cz_hmac_free(struct cz_hmac_ctx *h);
int cz_hmac_update(struct cz_hmac_ctx *h, const void *p, size_t len);
int cz_hmac_final(struct cz_hmac_ctx *h, void *out);

/* Random bytes; or with a seed the same ones each time, other ones for each label, for
 * output that can be made again. Wipe it when it is done with. */
struct cz_rng {
	uint8_t key[32];
	uint64_t count;
	bool seeded;
};
/* @seed NULL: those of cz_random(). */
int cz_rng_init(struct cz_rng *r, const char *seed, const char *label);
int cz_rng_get(struct cz_rng *r, void *p, size_t len);

/* One message, with a context of its own: not for loops. */
int cz_digest(enum cz_digest_id id, const void *p, size_t len, void *out);
int cz_hmac(enum cz_digest_id id, const void *key, size_t key_len, const void *p, size_t len,
	void *out);

/* PBKDF2 (RFC 8018) with HMAC of that digest. Computes for long: through
 * thr_offload(). -EINVAL for no iterations. */
int cz_pbkdf2(enum cz_digest_id id, const void *pass, size_t pass_len, const void *salt,
	size_t salt_len, uint32_t iterations, void *out, size_t out_len);
/* The iterations with which deriving @out_len bytes takes about @ms milliseconds
 * of processor time here; at least 1. Takes about 100 ms to find out. */
int cz_pbkdf2_count(enum cz_digest_id id, size_t out_len, unsigned ms, uint32_t *iterations);

/* ---- ciphers over sectors (CONFIG_CZ_CRYPTO) -------------------------------- */

/* Serpent, Twofish and CAST6 (CAST-256) are of our own, each by its symbol; where a
 * build leaves one out it is known so that it can be refused by name. The others are
 * OpenSSL's; CAST5 is in its legacy module, loaded when asked. */
enum cz_cipher_id {
	CZ_AES_128,
	CZ_AES_192,
	CZ_AES_256,
	CZ_CAMELLIA_128,
	CZ_CAMELLIA_192,
	CZ_CAMELLIA_256,
	CZ_SM4,
	CZ_CAST5_128,
	CZ_SERPENT_128,
	CZ_SERPENT_192,
	CZ_SERPENT_256,
	CZ_TWOFISH_128,
	CZ_TWOFISH_192,
	CZ_TWOFISH_256,
	CZ_CAST6_128,
	CZ_CAST6_192,
	CZ_CAST6_256,
	CZ_CIPHERS, /* how many */
};

enum cz_mode {
	CZ_ECB,
	CZ_CBC,
	CZ_CTR,
	CZ_XTS, /* IEEE 1619; the key is two keys of the cipher */
	CZ_MODES,
};

/* How a sector's number becomes its initialisation vector (dm-crypt's names). */
enum cz_iv {
	CZ_IV_NONE,      /* ECB */
	CZ_IV_NULL,      /* zeros */
	CZ_IV_PLAIN,     /* the low 32 bits, little-endian */
	CZ_IV_PLAIN64,   /* 64 bits, little-endian */
	CZ_IV_PLAIN64BE, /* 64 bits, big-endian, at the end */
	CZ_IV_ESSIV,     /* plain64 encrypted under a digest of the key */
	CZ_IV_BENBI,     /* the number of the first cipher block, from 1, big-endian */
	CZ_IVS,
};

struct cz_cipher_spec {
	enum cz_cipher_id cipher;
	enum cz_mode mode;
	enum cz_iv iv;
	enum cz_digest_id iv_hash; /* of CZ_IV_ESSIV */
};

/* Names as in "aes-256", "xts", "plain64". The id, or -ENOENT; NULL for an id
 * that there is none of. */
int cz_cipher_find(const char *name);
const char *cz_cipher_name(enum cz_cipher_id id);
/* The configuration symbol that brings a cipher ("CONFIG_CZ_SERPENT"), also where this
 * build leaves it out; NULL if there is no such cipher. */
const char *cz_cipher_symbol(enum cz_cipher_id id);
int cz_mode_find(const char *name);
const char *cz_mode_name(enum cz_mode mode);
int cz_iv_find(const char *name);
const char *cz_iv_name(enum cz_iv iv);

/* The two strings of a LUKS header, cipher "aes" and mode "xts-plain64" or
 * "cbc-essiv:sha256", with a key of @key_len bytes. -ENOENT for a name that is not
 * known, -EINVAL for a combination that there is none of. */
int cz_cipher_parse(
	struct cz_cipher_spec *s, const char *cipher, const char *mode, size_t key_len);
/* The other way round; each string fits in CZ_CIPHER_TEXT bytes. */
#define CZ_CIPHER_TEXT 32
void cz_cipher_format(const struct cz_cipher_spec *s, char *cipher, char *mode);
/* Bytes of a key, both halves in XTS; 0 where the parts do not go together. */
size_t cz_cipher_key_len(const struct cz_cipher_spec *s);

/* -EINVAL where the parts or the key's length do not go together, -ENOTSUP where
 * neither this build (cz_cipher_symbol()) nor the OpenSSL of this machine has the
 * cipher, -ENOMEM. The key is not
 * kept, but what is made of it is, until it is wiped by cz_cipher_free(). */
struct cz_cipher;
int cz_cipher_new(struct cz_cipher **c, const struct thr_alloc *mem,
	const struct cz_cipher_spec *s, const void *key, size_t key_len);
void cz_cipher_free(struct cz_cipher *c);

/* Encrypts or decrypts @len bytes of whole sectors, the first of which has the
 * number @sector. @dst is @src or does not overlap it. A sector is any number of
 * cipher blocks up to CZ_SECTOR_MAX bytes; a power of two with CZ_IV_BENBI.
 * -EINVAL for sizes that are not so; -EIO if OpenSSL fails. */
#define CZ_SECTOR_MAX 4096
int cz_cipher_run(struct cz_cipher *c, uint64_t sector, size_t sector_size, void *dst,
	const void *src, size_t len, bool encrypt);

#ifdef __cplusplus
}
#endif
#endif
