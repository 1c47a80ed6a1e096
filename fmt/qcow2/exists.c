/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/exists.c - whether a host cluster is there. In a writable image a new
 * table may be in the cache only, past the end of the file.
 */
#include "fmt/qcow2/write.h"

bool qcow2_exists(const struct qcow2 *q, uint64_t host)
{
	if (host < blk_size(q->blk.file))
		return true;
	return q->w && host >> q->h.cluster_bits < q->w->fresh;
}
