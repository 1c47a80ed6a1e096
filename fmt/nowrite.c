/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/nowrite.c - stands in for write.c where images can only be read.
 */
#include "fmt/drivers.h"

int fmt_flush_pending(struct blk *image)
{
	(void)image;
	return 0;
}
