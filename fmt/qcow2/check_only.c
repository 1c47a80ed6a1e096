/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/check_only.c - stands in for repair.c where the build leaves writing
 * out: no image is open for writing, so nothing asks for a repair.
 */
#include "fmt/qcow2/check.h"

int qcow2_ck_settle(struct qcow2 *q)
{
	(void)q;
	return 0;
}

int qcow2_ck_rebuild(struct qcow2_checker *k, struct blk_err *err)
{
	(void)k;
	(void)err;
	return -THR_ENOTSUP;
}

int qcow2_ck_clean(struct qcow2_checker *k)
{
	(void)k;
	return -THR_ENOTSUP;
}

int qcow2_ck_write(struct qcow2 *q, uint64_t off, const void *buf, uint32_t len)
{
	(void)q;
	(void)off;
	(void)buf;
	(void)len;
	return -THR_ENOTSUP;
}

int qcow2_ck_flush(struct qcow2 *q)
{
	(void)q;
	return -THR_ENOTSUP;
}
