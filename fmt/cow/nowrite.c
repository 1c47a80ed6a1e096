/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/cow/nowrite.c - a build that only reads cow images.
 */
#include "fmt/cow/cow.h"

int cow_write_open(struct cow *c, struct blk_err *err)
{
	(void)c;
	return blk_fail_str(err, -THR_ENOTSUP, BLK_E_NOT_BUILT, "CONFIG_FMT_COW_WRITE");
}

void cow_write_close(struct cow *c)
{
	(void)c;
}

int cow_clear(struct cow *c, uint64_t off, uint64_t len)
{
	(void)c;
	(void)off;
	(void)len;
	return -THR_EROFS;
}

int cow_lengthen(struct cow *c, uint64_t size, enum blk_prealloc p, struct blk_err *err)
{
	(void)c;
	(void)size;
	(void)p;
	return blk_fail_str(err, -THR_ENOTSUP, BLK_E_NOT_BUILT, "CONFIG_FMT_COW_WRITE");
}
