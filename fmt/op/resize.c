/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/op/resize.c - the size of a disk, changed.
 */
#include "fmt/drivers.h"

int fmt_resize(
	struct blk *image, uint64_t size, bool shrink, enum blk_prealloc p, struct blk_err *err)
{
	uint64_t now = blk_size(image);
	int code;

	if (size <= now && p != BLK_PREALLOC_OFF)
		return blk_fail(err, -THR_EINVAL, BLK_E_GROW_ONLY, 0, size);
	if (size < now && !shrink)
		return blk_fail(err, -THR_EINVAL, BLK_E_NEED_SHRINK, 0, size);
	code = blk_truncate(image, size, p, err);
	if (code)
		return code;
	code = blk_flush(image);
	return code ? blk_fail(err, code, BLK_E_SYS, 0, size) : 0;
}
