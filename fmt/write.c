/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/write.c - what the core does for images that are open for writing.
 */
#include "fmt/drivers.h"

int fmt_flush_pending(struct blk *image)
{
	return image->flags & BLK_RDWR ? blk_flush(image) : 0;
}
