/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/pack.h - what the files share that store clusters compressed.
 *
 *   pack.c        clusters into streams, outside of every lock and turn
 *   pack_alloc.c  room for streams, by the byte
 *   pack_write.c  the request
 */
#ifndef FMT_QCOW2_PACK_H
#define FMT_QCOW2_PACK_H

#include "fmt/qcow2/write.h"

enum qcow2_packed_kind {
	QCOW2_PACKED_STREAM,
	QCOW2_PACKED_PLAIN, /* does not shrink: a standard cluster */
	QCOW2_PACKED_ZERO,  /* becomes a zero cluster */
	QCOW2_PACKED_NONE,  /* is zero and needs nothing */
};

struct qcow2_packed {
	enum qcow2_packed_kind kind;
	uint32_t len;  /* STREAM */
	uint64_t host; /* where it goes; 0: not known yet */
};

/* The clusters of a part of a request. Streams lie in out one after the other. */
struct qcow2_pack {
	struct qcow2_pack *next;
	size_t bytes; /* of all of this */
	unsigned n;
	struct qcow2_packed *v;
	uint64_t *entries; /* L2 */
	uint8_t *out;
};

/* What is packed and written at a time: so many bytes, or one cluster. */
#define QCOW2_PACK_BYTES (1u << 20)

static inline uint32_t qcow2_pack_most(const struct qcow2 *q)
{
	return THR_MAX(QCOW2_PACK_BYTES, q->cluster_size);
}

/* ---- pack.c ---- */

/* Packs the data of @r, whole clusters but for the last of the disk, which is filled up
 * with zeroes. May be called by many at a time; never waits but for a short lock. */
int qcow2_pack(struct qcow2 *q, const struct blk_req *r, struct qcow2_pack **out);
void qcow2_pack_free(struct qcow2 *q, struct qcow2_pack *p);

/* ---- pack_alloc.c: layout and the cache's lock held (drops) ---- */

/* Finds room for the streams and counts them in. On failure none has any. */
int qcow2_alloc_streams(struct qcow2 *q, struct qcow2_pack *p);
/* Takes that back for one, which nothing has ever pointed to. */
void qcow2_unalloc_stream(struct qcow2 *q, const struct qcow2_packed *s);
/* Its L2 entry. Pure. */
uint64_t qcow2_stream_entry(const struct qcow2 *q, uint64_t host, uint32_t len);

#endif
