/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/read.c - reading the virtual disk, and saying where it lies.
 */
#include "fmt/qcow2/qcow2.h"

/* One extent of a request, whose data starts @done bytes into that of @r. */
static int read_extent(
	struct qcow2 *q, const struct blk_req *r, uint64_t done, const struct qcow2_extent *e)
{
	struct blk_req sub = *r;

	sub.off = r->off + done;
	sub.len = e->len;
	sub.iov_off = r->iov_off + (size_t)done;
	switch (e->kind) {
	case QCOW2_UNALLOCATED:
		return fmt_read_below(&q->blk, &sub);
	case QCOW2_NORMAL:
		return qcow2_data_read(q, &sub, e->host);
	case QCOW2_COMPRESSED_CLUSTER:
		return qcow2_read_compressed(q, e->entry, (uint32_t)sub.off & q->cluster_mask,
			r, done, (uint32_t)e->len);
	case QCOW2_ZERO:
	case QCOW2_ZERO_ALLOC:
		break;
	}
	blk_req_fill(&sub, 0, 0, (size_t)sub.len);
	return 0;
}

int qcow2_preadv(struct blk *b, struct blk_req *r)
{
	struct qcow2 *q = qcow2_of(b);
	unsigned cookie = qcow2_enter(q);
	struct qcow2_extent e;
	uint64_t done = 0;
	int err = 0;

	while (!err && done < r->len) {
		err = qcow2_map(q, r->off + done, r->len - done, &e);
		if (!err)
			err = read_extent(q, r, done, &e);
		if (!err)
			done += e.len;
	}
	qcow2_exit(q, cookie);
	return err;
}

static void to_status(
	const struct qcow2 *q, const struct qcow2_extent *e, struct blk_extent *out)
{
	out->len = e->len;
	out->map = e->host;
	out->flags = 0;
	switch (e->kind) {
	case QCOW2_UNALLOCATED:
		break;
	case QCOW2_ZERO:
		out->flags = BLK_EXT_ALLOC | BLK_EXT_ZERO;
		break;
	case QCOW2_ZERO_ALLOC:
		out->flags = BLK_EXT_ALLOC | BLK_EXT_ZERO | BLK_EXT_MAPPED;
		break;
	case QCOW2_NORMAL:
		out->flags = BLK_EXT_ALLOC | BLK_EXT_DATA | BLK_EXT_MAPPED;
		break;
	case QCOW2_COMPRESSED_CLUSTER:
		out->flags = BLK_EXT_ALLOC | BLK_EXT_DATA | BLK_EXT_COMPRESSED;
		break;
	}
	if (qcow2_encrypted(q))
		out->flags &= ~(unsigned)BLK_EXT_MAPPED;
}

/* Runs that end with an L2 table, and compressed clusters, are put together:
 * up to so many steps for one question. */
#define STATUS_STEPS 64

/* As long as the steps of the map go on alike, across L2 tables. */
static int status_entered(struct qcow2 *q, uint64_t off, uint64_t len, struct blk_extent *e)
{
	uint64_t table = (1ull << (q->h.cluster_bits + q->l2_bits)) - 1;
	struct qcow2_extent x;
	struct blk_extent next;
	int err = qcow2_map(q, off, len, &x);

	if (err)
		return err;
	to_status(q, &x, e);
	for (unsigned i = 1; i < STATUS_STEPS && e->len < len; i++) {
		if (x.kind != QCOW2_COMPRESSED_CLUSTER && (off + e->len) & table)
			break;
		if (qcow2_map(q, off + e->len, len - e->len, &x))
			break;
		to_status(q, &x, &next);
		if (next.flags != e->flags)
			break;
		if (next.flags & BLK_EXT_MAPPED && next.map != e->map + e->len)
			break;
		e->len += next.len;
	}
	return 0;
}

int qcow2_status(struct blk *b, uint64_t off, uint64_t len, struct blk_extent *e)
{
	struct qcow2 *q = qcow2_of(b);
	unsigned cookie = qcow2_enter(q);
	int err = status_entered(q, off, len, e);

	qcow2_exit(q, cookie);
	return err;
}
