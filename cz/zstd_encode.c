/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cz/zstd_encode.c - one zstd frame (RFC 8878) made by libzstd.
 *
 * libzstd works in one block of memory of ours, got at init and of the size that
 * the level takes for the largest cluster. The encoder in it is set up anew for
 * every frame. That costs 1 to 5 % of the fastest level's time and nothing that
 * shows at others, and it makes the output depend on the data alone: an encoder
 * that has been used before keeps tables, and since 1.5.5 a salt of its hashes,
 * that lead to other matches, so that bytes would depend on which thread took
 * which cluster.
 *
 * ZSTD_initStaticCCtx(), ZSTD_getCParams() and ZSTD_estimateCCtxSize_usingCParams()
 * are not declared stable; see zstd.c.
 */
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>
#include <zstd_errors.h>

#include "cz/private.h"

#define LEVEL_MIN 1
#define LEVEL_MAX 19

int cz_zstd_encode_init(void *ctx, const struct thr_alloc *mem, int level, size_t max)
{
	struct cz_zstd_enc *e = ctx;

	if (level < LEVEL_MIN || level > LEVEL_MAX || max > CZ_ENCODE_MAX)
		return -THR_EINVAL;
	e->mem = mem;
	e->level = level;
	e->max = max;
	e->work_size = ZSTD_estimateCCtxSize_usingCParams(ZSTD_getCParams(level, max, 0));
	e->work = thr_get(mem, e->work_size, 16);
	return e->work ? 0 : -THR_ENOMEM;
}

void cz_zstd_encode_fini(void *ctx)
{
	struct cz_zstd_enc *e = ctx;

	thr_put(e->mem, e->work, e->work_size);
}

/* All parameters are those for the largest cluster, or a short one could take more
 * memory than it. */
static ZSTD_CCtx *set_up(struct cz_zstd_enc *e)
{
	ZSTD_compressionParameters p = ZSTD_getCParams(e->level, e->max, 0);
	const struct {
		ZSTD_cParameter name;
		int value;
	} set[] = {
		{ZSTD_c_compressionLevel, e->level},
		{ZSTD_c_windowLog, (int)p.windowLog},
		{ZSTD_c_chainLog, (int)p.chainLog},
		{ZSTD_c_hashLog, (int)p.hashLog},
		{ZSTD_c_searchLog, (int)p.searchLog},
		{ZSTD_c_minMatch, (int)p.minMatch},
		{ZSTD_c_targetLength, (int)p.targetLength},
		{ZSTD_c_strategy, (int)p.strategy},
	};
	ZSTD_CCtx *c = ZSTD_initStaticCCtx(e->work, e->work_size);

	for (unsigned i = 0; c && i < THR_ARRAY_SIZE(set); i++) {
		if (ZSTD_isError(ZSTD_CCtx_setParameter(c, set[i].name, set[i].value)))
			return NULL;
	}
	return c;
}

int cz_zstd_encode(void *ctx, void *dst, size_t dlen, const void *src, size_t slen)
{
	struct cz_zstd_enc *e = ctx;
	ZSTD_CCtx *c = set_up(e);
	size_t n;

	THR_ASSERT(slen <= e->max);
	if (!c)
		return -THR_EIO;
	n = ZSTD_compress2(c, dst, THR_MIN(dlen, (size_t)INT32_MAX), src, slen);
	if (!ZSTD_isError(n))
		return (int)n;
	return ZSTD_getErrorCode(n) == ZSTD_error_dstSize_tooSmall ? -THR_ENOSPC : -THR_EIO;
}
