/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/op/convert.h - what the planner (convert_plan.c) and the workers (convert.c)
 * of a conversion share.
 *
 * The target is cut into chunks at fixed offsets. One cursor hands them out in order,
 * each with a ticket; workers read them, find the runs of zeroes, and write what is
 * left. A chunk's turn is only for drawing one inner ticket for each of its writes:
 * so all writes of the target are numbered in the order of the image, the driver
 * allocates in that order, and reading, scanning and writing overlap freely. What
 * ends up where depends on the content alone: it does not matter which zeroes were
 * known from the map and which were found by looking.
 */
#ifndef FMT_OP_CONVERT_H
#define FMT_OP_CONVERT_H

#include "fmt/drivers.h"
#include "fmt/op/bufs.h"

/* Chunks are this long or one cluster, if that is more. */
#define CONVERT_CHUNK (1u << 20)

enum convert_kind {
	CONVERT_DATA, /* to be read */
	CONVERT_ZERO, /* zeroes, known without reading */
	CONVERT_SKIP, /* the target's backing file has it */
};

/* A part of a chunk. */
struct convert_seg {
	uint32_t off, len; /* in the chunk */
	enum convert_kind kind;
	unsigned src; /* CONVERT_DATA may go on in the sources after it */
	uint64_t src_off;
};

/* The rest of a chunk with more parts than this is read, as one part. */
#define CONVERT_SEGS 64

struct convert_chunk {
	uint64_t off; /* in the target */
	uint64_t len; /* more than a chunk only where it is all zeroes, to be written so */
	uint64_t ticket;
	uint64_t wait_ns; /* by the rate, before it is begun */
	bool zero;
	unsigned nsegs;
	struct convert_seg segs[CONVERT_SEGS];
};

struct convert {
	const struct fmt_convert *c;
	uint32_t chunk; /* a power of two */
	uint32_t grain; /* at which zeroes are looked for: a power of two */
	uint32_t unit;  /* in which data is compressed; 1: it is not */
	uint64_t total;

	/* The cursor. */
	struct thr_mutex lock;
	unsigned src;              /* the source that @pos lies in */
	uint64_t src_at;           /* where it begins in the target */
	uint64_t pos;              /* what lies before has been handed out */
	struct fmt_map_extent ext; /* of that source; len 0: none */
	struct fmt_holes holes;
	uint64_t done;
	uint64_t next_ns; /* with a rate: when the next chunk may begin */
	bool over;

	struct thr_seq chunks; /* tickets of chunks */
	struct thr_seq writes; /* tickets of their writes */
	unsigned next_exec;    /* atomic: where fibers are spread to */
	struct fmt_bufs bufs;
	unsigned workers; /* atomic: who has or hopes for a buffer */

	/* The error that comes first in the image: under the lock. */
	bool failed; /* atomic, for a look without the lock */
	uint64_t fail_off;
	enum blk_err_id fail_id;
	int fail_code;
};

/* Takes the next chunk: false where there is none. @done bytes have been dealt with
 * since the last call. */
bool fmt_convert_next(struct convert *cv, uint64_t done, struct convert_chunk *ck);
/* Records an error at @off of the target. What comes before it is still done. */
void fmt_convert_fail(struct convert *cv, enum blk_err_id id, int code, uint64_t off);
/* An error lies before @off: there is no point in going on there. */
bool fmt_convert_beyond(struct convert *cv, uint64_t off);

#endif
