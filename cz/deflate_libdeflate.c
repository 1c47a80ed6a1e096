/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cz/deflate_libdeflate.c - raw deflate (RFC 1951) through libdeflate.
 *
 * It works on whole buffers. A stream that ends where its cluster ends, which is
 * what image formats hold, is decoded by it; one that is cut off behind the last
 * wanted byte, goes on past it or is damaged is handed to zlib, which knows how to
 * stop. Such streams cost both.
 *
 * Its window is 32 KiB and cannot be chosen. qemu-img, 7-Zip and libqcow decode a
 * cluster in one piece and read that (as zlib does under inflateInit2(-12), see
 * t/unit/cz_encode.c); for readers that do not, there is zlib's encoder.
 *
 * Its memory is the C library's: the function that it can be told to allocate with
 * is one for the whole process and is not handed a context.
 */
#include <libdeflate.h>

#include "cz/private.h"

#define LEVEL_MIN 1
#define LEVEL_MAX 12

struct inflate {
	struct libdeflate_decompressor *d;
	void *zlib; /* context of cz_deflate_zlib */
	const struct thr_alloc *mem;
};

static void inflate_free(struct inflate *f)
{
	libdeflate_free_decompressor(f->d);
	thr_put(f->mem, f->zlib, cz_deflate_zlib.decode_ctx_size);
}

static int inflate_init(void *ctx, const struct thr_alloc *mem)
{
	struct inflate *f = ctx;
	int err = -THR_ENOMEM;

	f->mem = mem;
	f->d = libdeflate_alloc_decompressor();
	f->zlib = thr_get(mem, cz_deflate_zlib.decode_ctx_size, 16);
	if (f->d && f->zlib)
		err = cz_deflate_zlib.decode_init(f->zlib, mem);
	if (err)
		inflate_free(f);
	return err;
}

static void inflate_fini(void *ctx)
{
	struct inflate *f = ctx;

	cz_deflate_zlib.decode_fini(f->zlib);
	inflate_free(f);
}

static int inflate_decode(void *ctx, void *dst, size_t dlen, const void *src, size_t slen)
{
	struct inflate *f = ctx;
	size_t used, got;

	if (!dlen)
		return 0;
	if (libdeflate_deflate_decompress_ex(f->d, src, slen, dst, dlen, &used, &got) ==
		LIBDEFLATE_SUCCESS)
		return got == dlen ? 0 : -THR_EIO;
	return cz_deflate_zlib.decode(f->zlib, dst, dlen, src, slen);
}

struct deflate {
	struct libdeflate_compressor *c;
	size_t max;
};

static int deflate_init(void *ctx, const struct thr_alloc *mem, int level, size_t max)
{
	struct deflate *d = ctx;

	(void)mem;
	if (level < LEVEL_MIN || level > LEVEL_MAX || max > CZ_ENCODE_MAX)
		return -THR_EINVAL;
	d->max = max;
	d->c = libdeflate_alloc_compressor(level);
	return d->c ? 0 : -THR_ENOMEM;
}

static void deflate_fini(void *ctx)
{
	struct deflate *d = ctx;

	libdeflate_free_compressor(d->c);
}

static int deflate_encode(void *ctx, void *dst, size_t dlen, const void *src, size_t slen)
{
	struct deflate *d = ctx;
	size_t n;

	THR_ASSERT(slen <= d->max);
	n = libdeflate_deflate_compress(d->c, src, slen, dst, THR_MIN(dlen, (size_t)INT32_MAX));
	return n ? (int)n : -THR_ENOSPC;
}

const struct cz_codec cz_deflate_libdeflate = {
	.name = "zlib",
	.lib = "libdeflate",
	.id = CZ_DEFLATE,
	.decode_ctx_size = sizeof(struct inflate),
	.decode_init = inflate_init,
	.decode_fini = inflate_fini,
	.decode = inflate_decode,
	.level_min = LEVEL_MIN,
	.level_default = 2,
	.level_max = LEVEL_MAX,
	.encode_ctx_size = sizeof(struct deflate),
	.encode_init = deflate_init,
	.encode_fini = deflate_fini,
	.encode = deflate_encode,
};
