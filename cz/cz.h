/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cz/cz.h - codecs and the zero scan. Knows no block devices and no fibers; of
 * thr it uses base.h alone. Nothing here waits.
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
	CZ_ZSTD = 1,	/* one zstd frame, RFC 8878 */
};

struct cz_codec {
	const char *name; /* "zlib", "zstd": as image formats call them */
	enum cz_codec_id id;
	/* Bytes of a decoding context; decode_init() makes one in @ctx, which is
	 * aligned to 16, taking more memory from @mem if it must. A context is
	 * used by one caller at a time and over and over. -ENOMEM. */
	size_t decode_ctx_size;
	int (*decode_init)(void *ctx, const struct thr_alloc *mem);
	void (*decode_fini)(void *ctx);
	/* Decodes exactly @dlen bytes from the start of @src into @dst. @src may
	 * be longer than the stream (formats round its length up): what follows
	 * the first @dlen bytes of output is not looked at. -EIO when the
	 * stream is damaged or gives fewer than @dlen bytes. Never writes past
	 * dst + dlen or reads past src + slen. */
	int (*decode)(void *ctx, void *dst, size_t dlen, const void *src, size_t slen);
};

/* The codec of that id, or NULL where this build leaves it out. */
const struct cz_codec *cz_codec_find(enum cz_codec_id id);
/* The name of a codec, also where this build leaves it out; NULL if there is no
 * such codec. And the configuration symbol that brings it ("CONFIG_CZ_ZSTD"). */
const char *cz_codec_name(enum cz_codec_id id);
const char *cz_codec_symbol(enum cz_codec_id id);

/* For embedders: a decoder of one's own (a ROM routine) in place of the built-in
 * one of that id. Not while images are open. @c is kept by reference. */
void cz_codec_register(const struct cz_codec *c);

/* ---- zeros ---------------------------------------------------------------- */

/* Whether all @len bytes are zero. Any alignment; runs at memory speed and looks
 * at a few scattered bytes first, so that data is told apart at once. */
bool cz_is_zero(const void *p, size_t len);

/* The length of the prefix of @p, a multiple of @grain (a power of two) or all
 * of @len, that is entirely zero or entirely data seen at @grain granularity;
 * *zero says which. @len is not 0; a shorter last grain counts as one. */
size_t cz_zero_run(const void *p, size_t len, size_t grain, bool *zero);

#ifdef __cplusplus
}
#endif
#endif
