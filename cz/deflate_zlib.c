/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cz/deflate_zlib.c - raw deflate (RFC 1951) decoded by zlib.
 *
 * The window is always 32 KiB: old images were written with 4 KiB, others with
 * more, and a larger window decodes a stream made with a smaller one. zlib only
 * takes memory for the window where a stream goes on past what it was asked for,
 * so as a rule a context holds one block, got at init, and decoding gets none.
 */
#define ZLIB_CONST
#include <zlib.h>

#include "cz/private.h"

#define RAW_DEFLATE_WINDOW (-15)

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

static int deflate_init(void *ctx, const struct thr_alloc *mem)
{
	struct deflate *d = ctx;

	memset(&d->z, 0, sizeof(d->z));
	cz_lent_init(&d->lent, mem);
	d->z.zalloc = deflate_get;
	d->z.zfree = deflate_put;
	d->z.opaque = &d->lent;
	return inflateInit2(&d->z, RAW_DEFLATE_WINDOW) == Z_OK ? 0 : -THR_ENOMEM;
}

static void deflate_fini(void *ctx)
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

const struct cz_codec cz_deflate_zlib = {
	.name = "zlib",
	.id = CZ_DEFLATE,
	.decode_ctx_size = sizeof(struct deflate),
	.decode_init = deflate_init,
	.decode_fini = deflate_fini,
	.decode = deflate_decode,
};
