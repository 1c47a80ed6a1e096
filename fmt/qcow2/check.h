/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/check.h - what the files of the check share.
 *
 *   check.c        passes, windows, results
 *   check_walk.c   everything in an image that refers to a host cluster
 *   check_count.c  references counted in a window, and compared with the image's
 *   check_text.c   findings as lines (in builds with texts)
 *   repair.c       new reference counts, and the header that switches to them
 *
 * Memory does not grow with the image: references are counted for one window of
 * host clusters at a time, and all tables are walked once for each window. An L2
 * table that refers to no cluster of a window is not read for it.
 */
#ifndef FMT_QCOW2_CHECK_H
#define FMT_QCOW2_CHECK_H

#include "fmt/qcow2/qcow2.h"

#define QCOW2_CHECK_CHUNK  (64u << 10) /* tables are read in pieces of this size */
#define QCOW2_CHECK_WINDOW (24u << 20) /* bytes of counters */

enum qcow2_check_mode {
	QCOW2_CK_COUNT = 1u << 0,   /* count references and compare */
	QCOW2_CK_COPIED = 1u << 1,  /* compare COPIED flags with the image's counts */
	QCOW2_CK_REBUILD = 1u << 2, /* count references for new reference counts */
	QCOW2_CK_SCAN = 1u << 3,    /* before a repair: learn what may not be touched */
};

/* The windows that an L2 table and what it maps lie in. */
struct qcow2_span {
	uint16_t lo, hi;
};

struct qcow2_checker {
	struct qcow2 *q;
	struct fmt_check *c;
	const struct thr_alloc *mem;
	uint64_t file_size;
	uint64_t file_clusters;
	uint64_t limit; /* clusters that are compared: a reference may end one past the file */

	/* the pass */
	unsigned mode; /* enum qcow2_check_mode */
	bool first;    /* its first window */
	bool report;   /* findings that do not depend on the window count now */

	/* the window */
	uint64_t lo, n;
	uint32_t cap;      /* clusters that a window has room for, */
	unsigned cap_bits; /* log2 of it where there are several windows */
	unsigned width;    /* bytes of a counter: 1 (255 means at least that) or 4 */
	uint32_t max;      /* references that the image can count */
	uint8_t *refs;
	uint8_t *once; /* bit i: the image counts one reference to cluster lo + i */

	/* which L2 tables matter to which windows */
	struct qcow2_span *spans;
	uint32_t nspans, walked;
	struct qcow2_span span;
	uint64_t guest; /* of the L2 entry that is looked at */

	/* what has been learned */
	bool hidden;  /* some references could not be made out: nothing may be freed */
	bool unknown; /* some counts of the image could not be made out */
	bool rebuild; /* the image's counts cannot be repaired where they are */
	bool unfixed; /* some counts are wrong and stay so */
	uint64_t later, later_leaks; /* findings that a rebuild will settle */
	uint64_t highest;            /* cluster in the file that anything refers to */
	uint64_t avoid, avoid_n;     /* moved past the end of what refers to these clusters */

	uint8_t *l1, *l2, *counts; /* chunks */
};

/* ---- check_text.c: %u and %x take a uint64_t, %s a string ---- */

void qcow2_ck_line(struct qcow2_checker *k, const char *fmt, ...);
#ifndef CONFIG_BLK_ERR_TEXT
#define qcow2_ck_line(...) ((void)sizeof((qcow2_ck_line(__VA_ARGS__), 0)))
#endif

/* ---- check_walk.c ---- */

/* A corruption that shows in every window: counted in the first. */
bool qcow2_ck_found(struct qcow2_checker *k);
/* Whether something that cannot be read is to be counted: in the pass that counts, and
 * in a later one where that could read everything. */
bool qcow2_ck_new_error(const struct qcow2_checker *k);
/* Marks everything; errors are counted, not returned. */
void qcow2_ck_walk(struct qcow2_checker *k);
/* Reads @len bytes of a table: zeroes past the end of the file. False, and counted
 * as an error of the check, where that is not possible. */
bool qcow2_ck_load(struct qcow2_checker *k, uint64_t off, void *buf, uint32_t len);
int qcow2_ck_read(struct qcow2 *q, uint64_t off, void *buf, uint32_t len);
/* The same; remembers the first error. */
int qcow2_ck_try(struct qcow2_checker *k, uint64_t off, void *buf, uint32_t len);
bool qcow2_ck_save(struct qcow2_checker *k, uint64_t off, const void *buf, uint32_t len);

/* ---- check_count.c ---- */

int qcow2_ck_count_open(struct qcow2_checker *k, uint32_t window);
void qcow2_ck_count_close(struct qcow2_checker *k);
/* One more reference to each cluster of a byte range. */
void qcow2_ck_mark(struct qcow2_checker *k, uint64_t off, uint64_t len);
/* How many references to @cluster there are so far, in the window. */
uint32_t qcow2_ck_refs(const struct qcow2_checker *k, uint64_t cluster);
/* Fills k->once for the window. */
void qcow2_ck_load_once(struct qcow2_checker *k);
/* Whether the image's count of a cluster is 1: 1, 0, or -1 where another window
 * tells, or none. */
int qcow2_ck_once(struct qcow2_checker *k, uint64_t cluster);
void qcow2_ck_compare(struct qcow2_checker *k);

/* What the image says of clusters from @cluster on. */
struct qcow2_counts {
	uint64_t off;   /* of k->counts in the file; 0: no block, all counts are 0 */
	uint32_t first; /* index in k->counts of @cluster's count */
	uint32_t n;     /* clusters, from there on, that lie in k->counts */
	bool unknown;   /* the table or the block cannot be read */
};
void qcow2_ck_counts(struct qcow2_checker *k, uint64_t cluster, struct qcow2_counts *s);

/* ---- check.c ---- */

/* Runs one pass: calls fn(k) after each window's walk. */
int qcow2_ck_pass(struct qcow2_checker *k, unsigned mode,
	int (*fn)(struct qcow2_checker *k, void *ctx), void *ctx);
/* The whole check, with counters of @window bytes at most. @clean: a repair that
 * leaves nothing wrong clears the dirty and corrupt bits. */
int qcow2_ck_run(
	struct qcow2 *q, struct fmt_check *c, uint32_t window, bool clean, struct blk_err *err);

/* ---- repair.c, or norepair.c ---- */

/* Writes what is pending in the cache, so that tables can be read from the file. */
int qcow2_ck_settle(struct qcow2 *q);
/* New reference counts for everything, in new clusters. -EUCLEAN: not possible. */
int qcow2_ck_rebuild(struct qcow2_checker *k, struct blk_err *err);
/* After all else is durable: the dirty and corrupt bits are cleared. */
int qcow2_ck_clean(struct qcow2_checker *k);
int qcow2_ck_write(struct qcow2 *q, uint64_t off, const void *buf, uint32_t len);
int qcow2_ck_flush(struct qcow2 *q);

#endif
