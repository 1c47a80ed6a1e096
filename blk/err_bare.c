/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/err_bare.c - errors without their texts: an id, an offset and a value.
 */
#include "blk/blk.h"

int blk_fail(struct blk_err *err, int code, enum blk_err_id id, uint64_t off, uint64_t val)
{
	if (!err)
		return code;
	err->code = code;
	err->id = id;
	err->off = off;
	err->val = val;
	return code;
}

int blk_fail_str(struct blk_err *err, int code, enum blk_err_id id, const char *str)
{
	(void)str;
	return blk_fail(err, code, id, 0, 0);
}

void blk_err_where(struct blk_err *err, const char *doing, const char *file)
{
	(void)err;
	(void)doing;
	(void)file;
}
