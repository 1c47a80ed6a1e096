/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/nbd_link.c - libnbd, linked with.
 */
#include "blk/nbd_lib.h"

struct nbd_lib blk_nbd_lib = {
#define NBD_ENTRY(f) .f = nbd_##f,
	NBD_FUNCTIONS(NBD_ENTRY)
#undef NBD_ENTRY
};

int blk_nbd_need(struct blk_err *err)
{
	(void)err;
	return 0;
}
