/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cz/zstd.c - one zstd frame (RFC 8878) decoded by libzstd; the codec's row.
 *
 * A frame that is all there and gives no more than is wanted, which is what image
 * formats hold, is decoded in one go, straight into the caller's buffer. One that
 * is cut off or that goes on past what is wanted takes the streaming interface,
 * whose window buffer is as large as the frame asks for: bounded here.
 *
 * Frames of other magic (skippable ones, and those of zstd before 0.8, which
 * libzstd may still decode) are none of the format's and are refused.
 *
 * ZSTD_createDCtx_advanced() is the one function used that libzstd does not
 * declare stable: there is no other way to its memory. Distributions export it
 * and it has not changed since 1.0.
 */
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>
#include <zstd_errors.h>

#include "cz/private.h"

/* What the highest ordinary compression levels ask for: 8 MiB. */
#define WINDOW_LOG_MAX 23

struct zstd {
	ZSTD_DCtx *dctx;
	struct cz_lent lent;
};

static void *zstd_get(void *opaque, size_t size)
{
	return cz_lent_get(opaque, size);
}

static void zstd_put(void *opaque, void *p)
{
	cz_lent_put(opaque, p);
}

static void zstd_fini(void *ctx)
{
	struct zstd *z = ctx;

	ZSTD_freeDCtx(z->dctx);
}

static int zstd_init(void *ctx, const struct thr_alloc *mem)
{
	struct zstd *z = ctx;
	ZSTD_customMem lent = {zstd_get, zstd_put, &z->lent};

	cz_lent_init(&z->lent, mem);
	z->dctx = ZSTD_createDCtx_advanced(lent);
	if (!z->dctx)
		return -THR_ENOMEM;
	ZSTD_DCtx_setParameter(z->dctx, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
	return 0;
}

static int zstd_stream(struct zstd *z, void *dst, size_t dlen, const void *src, size_t slen)
{
	ZSTD_outBuffer out = {dst, dlen, 0};
	ZSTD_inBuffer in = {src, slen, 0};

	ZSTD_DCtx_reset(z->dctx, ZSTD_reset_session_only);
	while (out.pos < dlen) {
		size_t was_in = in.pos, was_out = out.pos;
		size_t ret = ZSTD_decompressStream(z->dctx, &out, &in);

		if (out.pos == dlen)
			break;
		if (ZSTD_getErrorCode(ret) == ZSTD_error_memory_allocation)
			return -THR_ENOMEM;
		/* 0 is the end of the frame. */
		if (!ret || ZSTD_isError(ret))
			return -THR_EIO;
		if (in.pos == was_in && out.pos == was_out)
			return -THR_EIO;
	}
	return 0;
}

static int zstd_decode(void *ctx, void *dst, size_t dlen, const void *src, size_t slen)
{
	struct zstd *z = ctx;
	size_t frame, ret;

	if (!dlen)
		return 0;
	if (slen < 4 || thr_le32(src) != ZSTD_MAGICNUMBER)
		return -THR_EIO;
	frame = ZSTD_findFrameCompressedSize(src, slen);
	if (ZSTD_isError(frame))
		return zstd_stream(z, dst, dlen, src, slen);
	ret = ZSTD_decompressDCtx(z->dctx, dst, dlen, src, frame);
	if (ZSTD_getErrorCode(ret) == ZSTD_error_dstSize_tooSmall)
		return zstd_stream(z, dst, dlen, src, slen);
	return ret == dlen ? 0 : -THR_EIO;
}

const struct cz_codec cz_zstd = {
	.name = "zstd",
	.lib = "libzstd",
	.id = CZ_ZSTD,
	.decode_ctx_size = sizeof(struct zstd),
	.decode_init = zstd_init,
	.decode_fini = zstd_fini,
	.decode = zstd_decode,
	.level_min = 1,
	.level_default = 2, /* images no larger than with zlib, in less time than others take */
	.level_max = 19,
	.encode_ctx_size = sizeof(struct cz_zstd_enc),
	.encode_init = cz_zstd_encode_init,
	.encode_fini = cz_zstd_encode_fini,
	.encode = cz_zstd_encode,
};
