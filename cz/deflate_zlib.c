/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cz/deflate_zlib.c - raw deflate (RFC 1951) through zlib.
 *
 * Decoding, the window is always 32 KiB: old images were written with 4 KiB, others
 * with more, and a larger window decodes a stream made with a smaller one. zlib
 * only takes memory for the window where a stream goes on past what it was asked
 * for, so as a rule a context holds one block, got at init, and decoding gets none.
 *
 * Encoding, it is 4 KiB. The qcow2 specification says "zlib" and no more, but
 * images have always been written with 4 KiB, and a reader that passes a cluster
 * through a small buffer may keep no more than that: inflateInit2(-12). This is the
 * encoder for images that must open everywhere, so its streams go without what the
 * larger window saves (about 5 % of the output). A reader that decodes a cluster in
 * one piece has all of it for a window whatever it asked zlib for, which is what
 * deflate_libdeflate.c relies on.
 */
#define ZLIB_CONST
#include <zlib.h>

#include "cz/private.h"

/* Negative: no zlib header and no checksum. */
#define DECODE_WINDOW (-15)
#define ENCODE_WINDOW (-12)
/* Faster than 9, and smaller for clusters of 64 KiB. */
#define ENCODE_MEMORY 8

/* zlib counts in unsigned int. */
#define CHUNK_MAX ((size_t)1 << 30)

struct deflate {
	z_stream z;
	struct cz_lent lent;
};

static voidpf deflate_get(voidpf opaque, uInt items, uInt size)
{
	uint64_t n;

	if (thr_mul_over(items, size, &n) || n > SIZE_MAX)
		return NULL;
	return cz_lent_get(opaque, (size_t)n);
}

static void deflate_put(voidpf opaque, voidpf p)
{
	cz_lent_put(opaque, p);
}

static void deflate_lend(struct deflate *d, const struct thr_alloc *mem)
{
	memset(&d->z, 0, sizeof(d->z));
	cz_lent_init(&d->lent, mem);
	d->z.zalloc = deflate_get;
	d->z.zfree = deflate_put;
	d->z.opaque = &d->lent;
}

static int deflate_decode_init(void *ctx, const struct thr_alloc *mem)
{
	struct deflate *d = ctx;

	deflate_lend(d, mem);
	return inflateInit2(&d->z, DECODE_WINDOW) == Z_OK ? 0 : -THR_ENOMEM;
}

static void deflate_decode_fini(void *ctx)
{
	struct deflate *d = ctx;

	inflateEnd(&d->z);
}

/* Whether the stream was sound is only asked where output is missing: what
 * follows the last wanted byte is none of the caller's business. */
static int deflate_decode(void *ctx, void *dst, size_t dlen, const void *src, size_t slen)
{
	struct deflate *d = ctx;
	z_stream *z = &d->z;

	if (inflateReset(z) != Z_OK)
		return -THR_EIO;
	z->next_in = src;
	z->next_out = dst;
	while (dlen) {
		uInt in = (uInt)THR_MIN(slen, CHUNK_MAX);
		uInt out = (uInt)THR_MIN(dlen, CHUNK_MAX);
		int ret;

		z->avail_in = in;
		z->avail_out = out;
		ret = inflate(z, Z_FINISH);
		slen -= in - z->avail_in;
		dlen -= out - z->avail_out;
		if (!dlen)
			break;
		if (ret == Z_MEM_ERROR)
			return -THR_ENOMEM;
		if (ret != Z_OK && ret != Z_BUF_ERROR)
			return -THR_EIO;
		if (z->avail_in == in && z->avail_out == out)
			return -THR_EIO;
	}
	return 0;
}

struct deflate_enc {
	struct deflate d;
	size_t max;
};

static int deflate_encode_init(void *ctx, const struct thr_alloc *mem, int level, size_t max)
{
	struct deflate_enc *e = ctx;

	if (level < 1 || level > 9 || max > CZ_ENCODE_MAX)
		return -THR_EINVAL;
	deflate_lend(&e->d, mem);
	e->max = max;
	return deflateInit2(&e->d.z, level, Z_DEFLATED, ENCODE_WINDOW, ENCODE_MEMORY,
		       Z_DEFAULT_STRATEGY) == Z_OK
		       ? 0
		       : -THR_ENOMEM;
}

static void deflate_encode_fini(void *ctx)
{
	struct deflate_enc *e = ctx;

	deflateEnd(&e->d.z);
}

static int deflate_encode(void *ctx, void *dst, size_t dlen, const void *src, size_t slen)
{
	struct deflate_enc *e = ctx;
	z_stream *z = &e->d.z;
	uInt out = (uInt)THR_MIN(dlen, CHUNK_MAX);

	THR_ASSERT(slen <= e->max);
	if (deflateReset(z) != Z_OK)
		return -THR_EIO;
	z->next_in = src;
	z->avail_in = (uInt)slen;
	z->next_out = dst;
	z->avail_out = out;
	if (deflate(z, Z_FINISH) != Z_STREAM_END)
		return -THR_ENOSPC;
	return (int)(out - z->avail_out);
}

const struct cz_codec cz_deflate_zlib = {
	.name = "zlib",
	.lib = "zlib",
	.id = CZ_DEFLATE,
	.decode_ctx_size = sizeof(struct deflate),
	.decode_init = deflate_decode_init,
	.decode_fini = deflate_decode_fini,
	.decode = deflate_decode,
	.level_min = 1,
	.level_default = 6,
	.level_max = 9,
	.encode_ctx_size = sizeof(struct deflate_enc),
	.encode_init = deflate_encode_init,
	.encode_fini = deflate_encode_fini,
	.encode = deflate_encode,
};
