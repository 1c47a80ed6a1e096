/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/data.c - what the guest has, in host clusters: all that is read from and
 * written to standard clusters passes here.
 */
#include "fmt/qcow2/qcow2.h"

int qcow2_data_read(struct qcow2 *q, const struct blk_req *r, uint64_t host)
{
	struct blk_req sub = *r;

	if (qcow2_encrypted(q))
		return qcow2_crypt_read(q, r, host);
	sub.off = host;
	sub.flags = BLK_CHILD | BLK_EOF_ZERO;
	sub.turn = NULL;
	return blk_preadv(q->data, &sub);
}
