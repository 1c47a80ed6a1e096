/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/data_write.c - the writing half of data.c, and what is different where the
 * data lies in a file of its own.
 *
 * There a cluster lies at its guest offset, always: nothing is allocated, nothing is
 * counted, and what is given up is reused by the same guest cluster only. So a drop is not
 * held back: whatever the durable table says of a cluster, the file has what the guest had
 * there or what it has put there since, zeroes of a discard among that.
 *
 * Raw external data is kept such that the file alone reads as the guest does. Zeroes
 * go into the data, and the entries stay: an entry that reads as zeroes already is over
 * zeroes, and one that is not there has never been written.
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

int qcow2_data_alloc(struct qcow2 *q, uint64_t guest, uint64_t n, uint64_t *host, bool *fresh)
{
	if (!qcow2_external(q))
		return qcow2_alloc(q, n, host, fresh);
	*host = guest;
	*fresh = false;
	return 0;
}

void qcow2_data_unalloc(struct qcow2 *q, uint64_t host, uint64_t n)
{
	if (!qcow2_external(q))
		qcow2_unalloc(q, host, n);
}

int qcow2_data_guard(struct qcow2 *q, uint64_t host, uint64_t len)
{
	return qcow2_external(q) ? 0 : qcow2_guard(q, host, len);
}

int qcow2_data_grow(struct qcow2 *q, uint64_t size)
{
	if (!qcow2_external(q) || blk_size(q->data) >= size)
		return 0;
	return q->data->grows ? blk_truncate(q->data, size, BLK_PREALLOC_OFF, NULL)
			      : -THR_ENOSPC;
}

int qcow2_data_zero(struct qcow2 *q, uint64_t off, uint64_t len, unsigned flags)
{
	struct blk_req r = {
		.off = off,
		.len = len,
		.flags = (flags & (BLK_UNMAP | BLK_NO_FALLBACK)) | BLK_CHILD,
	};
	int err = blk_zero(q->data, &r);

	qcow2_data_wrote(q);
	return err;
}

void qcow2_data_punch(struct qcow2 *q, uint64_t off, uint64_t len)
{
	uint64_t size = blk_size(q->data);
	struct blk_req r = {.off = off, .flags = BLK_CHILD | BLK_UNMAP | BLK_NO_FALLBACK};

	if (off >= size)
		return;
	r.len = THR_MIN(len, size - off);
	(void)blk_zero(q->data, &r);
	qcow2_data_wrote(q);
}

void qcow2_data_wrote(struct qcow2 *q)
{
	fmt_cache_lock(q->cache);
	fmt_cache_wrote(q->cache, q->blk.file);
	fmt_cache_unlock(q->cache);
}
