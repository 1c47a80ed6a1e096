/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/data_write.c - the writing half of data.c.
 */
#include "fmt/qcow2/write.h"

int qcow2_data_write(struct qcow2 *q, const struct blk_req *r, uint64_t host)
{
	struct blk_req sub = *r;

	if (qcow2_encrypted(q))
		return qcow2_crypt_write(q, r, host);
	sub.off = host;
	sub.flags = BLK_CHILD;
	sub.turn = NULL;
	return r->iov ? blk_pwritev(q->data, &sub) : blk_zero(q->data, &sub);
}
