/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/create.h - a new image before it is written.
 *
 *   create.c       layout and tables
 *   create_opts.c  options
 *   create_head.c  the header with its extensions
 *   create_crypt.c  the LUKS header (create_nocrypt.c where the build leaves that out)
 */
#ifndef FMT_QCOW2_CREATE_H
#define FMT_QCOW2_CREATE_H

#include "fmt/qcow2/qcow2.h"

struct qcow2_plan {
	struct qcow2_header h;
	enum blk_prealloc prealloc;
	const char *data_file;                /* NULL: data is in the image */
	uint64_t reft, blocks, l1, l2, total; /* clusters */
	uint64_t crypt;                       /* those of the LUKS header, before L2 */
	uint64_t crypt_off;
	struct luks_setup *luks; /* NULL: not encrypted */

	/* The start of the first cluster. */
	uint8_t *head;
	size_t head_size, head_len;
};

/* Everything in p->h but the tables. */
int qcow2_plan_options(struct qcow2_plan *p, const struct fmt_create *c, struct blk_err *err);
/* create_crypt.c: p->luks, where the options ask for encryption; given back; and the
 * header written. */
int qcow2_plan_crypt(struct qcow2_plan *p, const struct fmt_create *c, struct blk_err *err);
void qcow2_plan_crypt_free(struct qcow2_plan *p, const struct thr_alloc *mem);
int qcow2_plan_crypt_write(struct blk *file, struct qcow2_plan *p, const struct fmt_create *c,
	struct blk_err *err);
/* Bytes of the LUKS header; 0: none. */
uint64_t qcow2_plan_crypt_bytes(const struct qcow2_plan *p);
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
