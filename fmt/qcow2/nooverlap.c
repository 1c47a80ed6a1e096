/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/nooverlap.c - builds that do not look where metadata lies before they write.
 */
#include "fmt/qcow2/write.h"

void qcow2_meta_add(struct qcow2 *q, uint64_t host, unsigned check)
{
	(void)q;
	(void)host;
	(void)check;
}

void qcow2_meta_del(struct qcow2 *q, uint64_t host)
{
	(void)q;
	(void)host;
}

int qcow2_guard(struct qcow2 *q, uint64_t host, uint64_t len)
{
	(void)q;
	(void)host;
	(void)len;
	return 0;
}

int qcow2_guarded(struct qcow2 *q, int err)
{
	(void)q;
	return err;
}

int qcow2_meta_open(struct qcow2 *q, const struct fmt_open *o, struct blk_err *err)
{
	(void)q;
	(void)o;
	(void)err;
	return 0;
}

void qcow2_meta_close(struct qcow2 *q)
{
	(void)q;
}
