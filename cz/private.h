/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cz/private.h - what the files of this room share.
 */
#ifndef CZ_PRIVATE_H
#define CZ_PRIVATE_H

#include "cz/cz.h"

extern const struct cz_codec cz_deflate_zlib;
extern const struct cz_codec cz_zstd;

/* Lends an allocator handle to a library whose free function does not say the
 * size. The decoders here have at most two blocks at a time; a third-party
 * library that wants more than the table holds is told that there is no memory. */
#define CZ_LENT_MAX 4

struct cz_lent {
	const struct thr_alloc *mem;
	struct {
		void *p;
		size_t size;
	} block[CZ_LENT_MAX];
};

void cz_lent_init(struct cz_lent *l, const struct thr_alloc *mem);
void *cz_lent_get(struct cz_lent *l, size_t size);
void cz_lent_put(struct cz_lent *l, void *p);

#endif
