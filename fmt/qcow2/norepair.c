/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/norepair.c - stands in for repair.c where the build leaves checking
 * out.
 */
#include "fmt/qcow2/write.h"

int qcow2_repair_refcounts(struct qcow2 *q, struct blk_err *err)
{
	(void)q;
	return blk_fail_str(err, -THR_ENOTSUP, BLK_E_NOT_BUILT, "CONFIG_FMT_QCOW2_CHECK");
}
