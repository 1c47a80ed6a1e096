/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/open_opts.c - options for opening.
 *
 * Other programs have a cache for L2 tables and one for reference counts. Here one
 * cache has both, and its slices go to whoever uses them; so the sizes add up. It
 * grows as it is used, and shrinks after cache-clean-interval (fmt/cache_clean.c).
 */
#include "cz/cz.h"
#include "fmt/qcow2/qcow2.h"

#define CLEAN_SECONDS 600u /* as others have it on Linux */

const char *const qcow2_open_opts[] = {
	"encrypt.format",
	"encrypt.key-secret",
	"data-file.",
	"cache-size",
	"l2-cache-size",
	"refcount-cache-size",
	"cache-clean-interval",
	"compression-level",
	"overlap-check",
	"overlap-check.template",
	"overlap-check.main-header",
	"overlap-check.active-l1",
	"overlap-check.active-l2",
	"overlap-check.refcount-table",
	"overlap-check.refcount-block",
	"overlap-check.snapshot-table",
	"overlap-check.inactive-l1",
	"overlap-check.inactive-l2",
	NULL,
};

int qcow2_opt_cache(const struct blk_opts *o, uint64_t *bytes, struct blk_err *err)
{
	uint64_t all, l2, counts;
	int ret = blk_opt_size(o, "cache-size", 0, &all, err);

	if (!ret)
		ret = blk_opt_size(o, "l2-cache-size", 0, &l2, err);
	if (!ret)
		ret = blk_opt_size(o, "refcount-cache-size", 0, &counts, err);
	if (ret)
		return ret;
	if (all && l2 && counts)
		return blk_fail(err, -THR_EINVAL, BLK_E_QCOW2_CACHE_ALL, 0, 0);
	if (all && l2 > all)
		return blk_fail_str(err, -THR_EINVAL, BLK_E_QCOW2_CACHE_SIZES, "l2-cache-size");
	if (all && counts > all)
		return blk_fail_str(
			err, -THR_EINVAL, BLK_E_QCOW2_CACHE_SIZES, "refcount-cache-size");
	*bytes = all ? all : l2 + THR_MIN(counts, UINT64_MAX - l2);
	return 0;
}

int qcow2_opt_clean(struct qcow2 *q, const struct blk_opts *o, struct blk_err *err)
{
	uint64_t seconds;
	int ret = blk_opt_size(o, "cache-clean-interval", CLEAN_SECONDS, &seconds, err);

	if (ret)
		return ret;
	if (seconds > UINT32_MAX)
		return blk_fail(err, -THR_EINVAL, BLK_E_QCOW2_CACHE_CLEAN, 0, seconds);
	fmt_cache_interval(q->cache, seconds * 1000000000u);
	return 0;
}

uint64_t qcow2_tidy(struct blk *b, uint64_t now)
{
	struct qcow2 *q = qcow2_of(b);

	return q->own_cache ? fmt_cache_clean(q->cache, now) : 0;
}

int qcow2_opt_level(
	const struct blk_opts *o, const struct cz_codec *codec, int *level, struct blk_err *err)
{
	uint64_t v;
	int ret;

	*level = codec ? codec->level_default : 0;
	if (!blk_opt(o, "compression-level") || !codec)
		return 0;
	ret = blk_opt_size(o, "compression-level", 0, &v, err);
	if (ret)
		return ret;
	if (v < (uint64_t)codec->level_min || v > (uint64_t)codec->level_max)
		return blk_fail(err, -THR_EINVAL, BLK_E_QCOW2_LEVEL, (uint64_t)codec->level_min,
			(uint64_t)codec->level_max);
	*level = (int)v;
	return 0;
}
