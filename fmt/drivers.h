/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/drivers.h - the format drivers, by name, and what the core's files share.
 */
#ifndef FMT_DRIVERS_H
#define FMT_DRIVERS_H

#include "fmt/fmt.h"

extern const struct fmt_driver fmt_cow_driver;
extern const struct fmt_driver fmt_luks_driver;
extern const struct fmt_driver fmt_raw_driver;
extern const struct fmt_driver fmt_qcow2_driver;

/* The driver of a name, or an error that says whether it is unknown or left out. */
int fmt_driver_get(const char *name, const struct fmt_driver **out, struct blk_err *err);

/* Fails, naming the first option that the driver's create does not have. */
int fmt_create_opts_known(
	const struct fmt_driver *d, const struct blk_opts *o, struct blk_err *err);

#ifdef CONFIG_HOSTED
/* Fails, naming the first id of a secret that is not in @s. */
int fmt_secrets_known(
	const struct fmt_secrets *s, const struct blk_opts *o, struct blk_err *err);
/* The format that options name, or NULL. */
const char *fmt_opts_driver(const struct blk_opts *o);
/* Fails, naming the first option that the driver's open does not have. */
int fmt_opts_taken(const struct fmt_driver *d, const struct fmt_open *o, struct blk_err *err);
#else
static inline const char *fmt_opts_driver(const struct blk_opts *o)
{
	(void)o;
	return NULL;
}

static inline int fmt_opts_taken(
	const struct fmt_driver *d, const struct fmt_open *o, struct blk_err *err)
{
	(void)d;
	return o->opts ? blk_fail(err, -THR_ENOTSUP, BLK_E_BAD_OPTION, 0, 0) : 0;
}
#endif

/* Flushes an image that is open for writing; elsewhere there is nothing to flush. */
int fmt_flush_pending(struct blk *image);

/* Firmware has mem*() and no str*(). */
static inline bool fmt_streq(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

static inline bool fmt_starts(const char *s, const char *prefix)
{
	for (; *prefix; s++, prefix++)
		if (*s != *prefix)
			return false;
	return true;
}

/* The bytes of an image: those of a raw file, whose disk has whole sectors. */
static inline uint64_t fmt_bytes(const struct blk *image)
{
	return blk_size(fmt_streq(image->ops->name, "raw") ? image->file : image);
}

/* A part of a request, for another device at another offset. */
static inline struct blk_req fmt_req_part(
	const struct blk_req *r, uint64_t skip, uint64_t len, uint64_t off)
{
	struct blk_req p = *r;

	p.off = off;
	p.len = len;
	p.iov_off = r->iov_off + (size_t)skip;
	return p;
}

#endif
