/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/json_none.c - names in JSON, where they are left out.
 */
#include "fmt/names.h"

int fmt_json_add(struct fmt_names *l, const char *name, struct blk_err *err)
{
	(void)l;
	(void)name;
	return blk_fail_str(err, -THR_ENOTSUP, BLK_E_NOT_BUILT, "CONFIG_FMT_JSON");
}

int fmt_json_each(const char *text, int (*put)(void *ctx, const char *key, const char *val),
	void *ctx, const struct thr_alloc *mem, struct blk_err *err)
{
	(void)text;
	(void)put;
	(void)ctx;
	(void)mem;
	return blk_fail_str(err, -THR_ENOTSUP, BLK_E_NOT_BUILT, "CONFIG_FMT_JSON");
}
