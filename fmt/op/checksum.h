/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/op/checksum.h - how a checksum is computed.
 *
 * The planner cuts the image into pieces, in order: zeroes that nobody needs to read, as
 * long as they are, and data, at most a chunk. A piece takes the next place of a ring.
 * Workers read data, find its zero blocks and hash the others; whoever finishes the
 * piece whose turn it is (and nobody is at it) feeds it, and what is ready after it, to
 * the outer digest. So nobody waits for a turn, only for a place in the ring.
 *
 * Pieces begin and end at multiples of the block size, so what they are has no influence
 * on the sum.
 */
#ifndef FMT_OP_CHECKSUM_H
#define FMT_OP_CHECKSUM_H

#include "cz/cz.h"
#include "fmt/fmt.h"
#include "fmt/op/bufs.h"

#define CHECKSUM_CHUNK   (256u << 10) /* stays in a processor's cache */
#define CHECKSUM_WORKERS 32u
#define CHECKSUM_RING    32u

struct checksum_seg {
	uint32_t off, len; /* in the piece */
	bool zero;
};

struct checksum_piece {
	uint64_t off, len;
	bool zero;      /* all of it, and len is any */
	unsigned place; /* in the ring */
	/* Of data: what is to be read of it. Behind its buffer. */
	struct checksum_seg *segs;
	unsigned nsegs;
};

/* A place in the ring. */
struct checksum_place {
	uint64_t len;
	bool zero, ready;
	uint8_t *digests; /* of its blocks; NULL with plain */
	uint8_t *buf;     /* plain: the bytes, in the buffer of this number */
	unsigned number;
};

/* The construction: what becomes of a sequence of pieces. checksum_sum.c */
struct checksum_sum {
	const struct thr_alloc *mem;
	struct cz_digest_ctx *outer, *inner;
	size_t size; /* of a digest */
	uint32_t block;
	bool plain;
	uint8_t *zeroes;
	uint8_t zero_digest[FMT_DIGEST_MAX];
	uint8_t *repeated; /* that digest, over and over; NULL with plain */
	size_t nrepeated;
	uint64_t length;
};

struct checksum {
	struct fmt_checksum *c;
	const struct thr_alloc *mem;
	const char *digest;
	uint64_t total; /* UINT64_MAX: a stream */
	uint32_t block, chunk;
	unsigned segs;           /* so many there is room for, behind each buffer */
	struct checksum_sum sum; /* its update belongs to who has set feeding */
	struct thr_mutex source; /* the cursor, and the reading of a stream; taken first */
	uint64_t pos;
	bool over;
	struct fmt_map_extent ext; /* what pos lies in; len 0: not known */
	struct fmt_holes holes;
	struct fmt_bufs bufs;
	unsigned workers; /* atomic: who has or hopes for a buffer */

	struct thr_mutex lock; /* what follows */
	struct thr_cond room;
	struct checksum_place places[CHECKSUM_RING];
	uint64_t taken, fed; /* counts: place i is number i % CHECKSUM_RING */
	bool feeding;
	uint64_t done;
	bool failed;
	uint64_t fail_off;
	enum blk_err_id fail_id;
	int fail_code;
};

/* checksum_plan.c: the next piece; false where there is none. Waits for a place. @buf has
 * room for a chunk and its segs; of a stream, what is in the piece is in it already. */
bool fmt_checksum_next(struct checksum *cs, struct checksum_piece *p, uint8_t *buf);
/* Records an error; the one that comes first in the image counts. */
void fmt_checksum_fail(struct checksum *cs, enum blk_err_id id, int code, uint64_t off);

/* @s is zeroed; without success fmt_sum_fini() is still to be called. */
int fmt_sum_init(struct checksum_sum *s, const char *digest, uint32_t block, bool plain,
	const struct thr_alloc *mem);
void fmt_sum_fini(struct checksum_sum *s);
/* The next @len bytes, which are zero. */
int fmt_sum_zeroes(struct checksum_sum *s, uint64_t len);
/* The next @len bytes, whose blocks have these digests. */
int fmt_sum_digests(struct checksum_sum *s, uint64_t len, const uint8_t *digests);
/* The next @len bytes; plain. */
int fmt_sum_bytes(struct checksum_sum *s, const uint8_t *p, uint64_t len);
int fmt_sum_final(struct checksum_sum *s, uint8_t *out);

#endif
