/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/nowrite.c - stands in for the files that change images where the
 * build leaves them out.
 */
#include "fmt/qcow2/qcow2.h"

int qcow2_write_open(struct qcow2 *q, const struct fmt_open *o, struct blk_err *err)
{
	(void)q;
	(void)o;
	return blk_fail_str(err, -THR_ENOTSUP, BLK_E_NOT_BUILT, "CONFIG_FMT_QCOW2_WRITE");
}

void qcow2_write_close(struct qcow2 *q)
{
	(void)q;
}

unsigned qcow2_enter(struct qcow2 *q)
{
	(void)q;
	return 0;
}

void qcow2_exit(struct qcow2 *q, unsigned cookie)
{
	(void)q;
	(void)cookie;
}

bool qcow2_exists(const struct qcow2 *q, uint64_t host)
{
	return host < blk_size(q->blk.file);
}
