/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/nopreallocate.c - builds that allocate nothing before it is written.
 */
#include "fmt/qcow2/write.h"

int qcow2_preallocate(struct qcow2 *q, uint64_t off, uint64_t end, enum blk_prealloc p)
{
	(void)q;
	(void)off;
	(void)end;
	(void)p;
	return -THR_ENOTSUP;
}
