/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/refcount.c - reading reference counts: a table of offsets of blocks,
 * each one cluster of counts of 1 to 64 bits.
 */
#include "fmt/qcow2/qcow2.h"

uint64_t qcow2_refcount_load(const uint8_t *table, unsigned order, uint32_t i)
{
	unsigned bits = 1u << order;

	switch (order) {
	case 3:
		return table[i];
	case 4:
		return thr_be16(table + (size_t)i * 2);
	case 5:
		return thr_be32(table + (size_t)i * 4);
	case 6:
		return thr_be64(table + (size_t)i * 8);
	default:
		return (unsigned)table[i >> (3 - order)] >> ((i << order) & 7) &
		       ((1u << bits) - 1);
	}
}

void qcow2_refcount_store(uint8_t *table, unsigned order, uint32_t i, uint64_t count)
{
	unsigned shift, mask;
	uint8_t *p;

	switch (order) {
	case 3:
		table[i] = (uint8_t)count;
		break;
	case 4:
		thr_put_be16(table + (size_t)i * 2, (uint16_t)count);
		break;
	case 5:
		thr_put_be32(table + (size_t)i * 4, (uint32_t)count);
		break;
	case 6:
		thr_put_be64(table + (size_t)i * 8, count);
		break;
	default:
		p = table + (i >> (3 - order));
		shift = (i << order) & 7;
		mask = (1u << (1u << order)) - 1;
		*p = (uint8_t)((*p & ~(mask << shift)) | ((unsigned)count & mask) << shift);
	}
}

/* The 8 bytes at @off of the file. */
static int load64(struct qcow2 *q, uint64_t off, uint64_t *v)
{
	uint32_t mask = fmt_cache_slice_size(q->cache) - 1;
	struct fmt_slice *s;
	int err = fmt_slice_get(q->cache, q->blk.file, off & ~(uint64_t)mask, &s);

	if (err)
		return err;
	*v = thr_be64(s->data + (off & mask));
	fmt_slice_put(q->cache, s);
	return 0;
}

int qcow2_refcount_get(struct qcow2 *q, uint64_t cluster, uint64_t *count)
{
	unsigned order = q->h.refcount_order;
	unsigned block_bits = q->h.cluster_bits + 3 - order;
	unsigned slice_bits = thr_log2(fmt_cache_slice_size(q->cache)) + 3 - order;
	uint64_t i = cluster >> block_bits;
	uint32_t in = (uint32_t)cluster & ((1u << block_bits) - 1);
	struct fmt_slice *s;
	uint64_t block;
	int err;

	*count = 0;
	if (i >= (uint64_t)q->h.reft_clusters << (q->h.cluster_bits - 3))
		return 0;
	err = load64(q, q->h.reft_off + i * 8, &block);
	if (err || !block)
		return err;
	if (block & QCOW2_REFT_RESERVED || block & q->cluster_mask)
		return -THR_EUCLEAN;
	block += (uint64_t)(in >> slice_bits) << (slice_bits + order - 3);
	err = fmt_slice_get(q->cache, q->blk.file, block, &s);
	if (err)
		return err;
	*count = qcow2_refcount_load(s->data, order, in & ((1u << slice_bits) - 1));
	fmt_slice_put(q->cache, s);
	return 0;
}
