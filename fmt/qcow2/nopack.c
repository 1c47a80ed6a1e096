/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/nopack.c - stands in for the files that write compressed clusters where the
 * build leaves them out.
 */
#include "fmt/qcow2/write.h"

int qcow2_packer_open(struct qcow2 *q, const struct blk_opts *o, struct blk_err *err)
{
	(void)q;
	(void)o;
	(void)err;
	return 0;
}

void qcow2_packer_close(struct qcow2 *q)
{
	(void)q;
}

int qcow2_write_packed(struct qcow2 *q, const struct blk_req *r)
{
	(void)q;
	(void)r;
	return -THR_ENOTSUP;
}

int qcow2_compress(struct blk *b, uint32_t *unit, struct blk_err *err)
{
	*unit = qcow2_of(b)->cluster_size;
	return blk_fail_str(err, -THR_ENOTSUP, BLK_E_NOT_BUILT, "CONFIG_FMT_QCOW2_COMPRESS");
}
