/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/create.h - a new image before it is written.
 *
 *   create.c       layout and tables
 *   create_opts.c  options
 *   create_head.c  the header with its extensions
 */
#ifndef FMT_QCOW2_CREATE_H
#define FMT_QCOW2_CREATE_H

#include "fmt/qcow2/qcow2.h"

struct qcow2_plan {
	struct qcow2_header h;
	enum blk_prealloc prealloc;
	const char *data_file;                /* NULL: data is in the image */
	uint64_t reft, blocks, l1, l2, total; /* clusters */

	/* The start of the first cluster. */
	uint8_t *head;
	size_t head_size, head_len;
};

/* Everything in p->h but the tables. */
int qcow2_plan_options(struct qcow2_plan *p, const struct fmt_create *c, struct blk_err *err);
/* log2 of an L2 entry's bytes. */
unsigned qcow2_plan_entry_bits(const struct qcow2_plan *p);
/* How many clusters hold so many bytes. */
uint64_t qcow2_plan_clusters(const struct qcow2_plan *p, uint64_t bytes);
/* p->blocks and p->reft: blocks and table that count @others clusters and themselves,
 * the table having at least the p->reft clusters that are there already. */
void qcow2_plan_refcounts(struct qcow2_plan *p, uint64_t others);
/* Makes p->head, which the caller gives back to c->mem. */
int qcow2_plan_header(struct qcow2_plan *p, const struct fmt_create *c, struct blk_err *err);

#endif
