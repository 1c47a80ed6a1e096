/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/names.h - what a name or a list of options says about an image: one flat list,
 * dots for nesting, whether it came as json:{} or as key=value pairs.
 *
 *	driver			a format; or a protocol, which then stands for raw over it
 *	file.driver, file.*	the device that the format reads
 *	backing.*		the same keys for the backing file, instead of what the
 *				image says of it; "backing" alone, empty: none
 *	read-only, force-share, cache.direct, cache.no-flush
 *				of the image and of the device
 *	the rest		the format's own
 */
#ifndef FMT_NAMES_H
#define FMT_NAMES_H

#include "fmt/fmt.h"

#define FMT_JSON_MAX   65536 /* bytes of a name in JSON */
#define FMT_JSON_DEPTH 32
#define FMT_OPTS_MAX   1024 /* options of one image */
#define FMT_KEY_MAX    256  /* a key with all its dots, and its NUL */

/* A growing list whose strings are its own. */
struct fmt_names {
	const struct thr_alloc *mem;
	struct blk_opts o; /* what is in it */
	struct blk_opt *v;
	unsigned room;
};

void fmt_names_init(struct fmt_names *l, const struct thr_alloc *mem);
void fmt_names_free(struct fmt_names *l);
/* Adds copies, the key with @prefix before it. */
int fmt_names_add(struct fmt_names *l, const char *prefix, const char *key, const char *val,
	struct blk_err *err);
/* Adds what @from has under @prefix, without it. */
int fmt_names_sub(struct fmt_names *l, const struct blk_opts *from, const char *prefix,
	struct blk_err *err);
/* Takes out all of @key. */
void fmt_names_drop(struct fmt_names *l, const char *key);

/* Whether a name is "json:...". */
bool fmt_names_json(const char *name);
/* Adds what a name in JSON says. Not for a fiber's stack. */
int fmt_json_add(struct fmt_names *l, const char *name, struct blk_err *err);

/* Whether the options say which device it is. */
bool fmt_names_device(const struct blk_opts *o);
/* Brings what was gathered for an image into the form that it is opened in: sets the name
 * (NULL where options have it), the flags and the format of @o, and its options to the
 * list. */
int fmt_names_settle(struct fmt_names *l, struct fmt_open *o, struct blk_err *err);

#endif
