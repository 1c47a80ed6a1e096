/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/crash/store.h - bytes of a disk in pages, which may stand on another store: what is
 * not here is that one's. A state after a power cut is a store over what is durable for
 * sure; it costs the pages that it changes, and is reset rather than made anew.
 */
#ifndef T_CRASH_STORE_H
#define T_CRASH_STORE_H

#include "blk/blk.h"

#define STORE_PAGE  4096u
#define STORE_PAGES 8192u

struct store {
	const struct store *below;
	uint64_t size;
	uint8_t *page[STORE_PAGES]; /* NULL: below's; store_zeroes: zeroes */
	uint32_t touched[STORE_PAGES];
	uint32_t ntouched;
};

struct store *store_new(const struct store *below);
/* What it stands on shows again. */
void store_reset(struct store *s);
void store_free(struct store *s);
void store_read(const struct store *s, uint64_t off, void *buf, uint64_t len);
/* Both extend it. @buf NULL: zeroes. */
void store_write(struct store *s, uint64_t off, const void *buf, uint64_t len);
void store_truncate(struct store *s, uint64_t size);

enum store_flags {
	STORE_YIELD = 1u << 0, /* in a fiber, requests let others run before and after */
	STORE_STALE = 1u << 1, /* what is discarded stays what it was */
	STORE_FIXED = 1u << 2, /* does not grow */
};
/* When it is cut off: every request fails from then on. */
struct fuse {
	bool dead;
	unsigned left; /* so many changes until then; 0: no end of them */
};
/* A device over @s, which stays when it is closed. @f may be NULL. */
struct blk *store_lend(struct store *s, unsigned flags, unsigned blk_flags, struct fuse *f);

#endif
