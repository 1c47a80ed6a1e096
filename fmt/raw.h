/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/raw.h - what raw.c, raw_rw.c and raw_ro.c share.
 */
#ifndef FMT_RAW_H
#define FMT_RAW_H

#include "fmt/drivers.h"

/* The operations of this build: raw_rw.c, or raw_ro.c where nothing is written. */
extern const struct blk_ops fmt_raw_ops;

#define RAW_SECTOR 512u

int fmt_raw_probe(const uint8_t *head, size_t len, uint64_t size);
int fmt_raw_open(
	struct blk **out, struct blk *file, const struct fmt_open *o, struct blk_err *err);
int fmt_raw_info(struct blk *image, struct fmt_info *info);
int fmt_raw_preadv(struct blk *b, struct blk_req *r);
int fmt_raw_status(struct blk *b, uint64_t off, uint64_t len, struct blk_extent *e);
bool fmt_raw_same(struct blk *a, struct blk *b);
void fmt_raw_close(struct blk *b);

/* raw_create.c, where there is an operating system */
int fmt_raw_create(struct blk *file, const struct fmt_create *c, struct blk_err *err);
int fmt_raw_measure(const struct fmt_create *c, struct fmt_layout *l, struct blk_err *err);
extern const struct fmt_opt fmt_raw_create_opts[];

#endif
