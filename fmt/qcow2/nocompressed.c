/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/nocompressed.c - builds that do not read compressed clusters.
 */
#include "fmt/qcow2/qcow2.h"

int qcow2_codecs_open(struct qcow2 *q)
{
	(void)q;
	return 0;
}

void qcow2_codecs_close(struct qcow2 *q)
{
	(void)q;
}

void qcow2_codecs_forget(struct qcow2 *q, uint64_t host, uint64_t n)
{
	(void)q;
	(void)host;
	(void)n;
}

int qcow2_read_compressed(struct qcow2 *q, uint64_t entry, uint32_t skip,
	const struct blk_req *r, uint64_t at, uint32_t len)
{
	(void)q;
	(void)entry;
	(void)skip;
	(void)r;
	(void)at;
	(void)len;
	return -THR_ENOTSUP;
}
