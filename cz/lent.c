/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cz/lent.c - the allocator handle as malloc() and free() lookalikes for
 * third-party libraries: sizes are kept beside the pointers in a small table.
 */
#include "cz/private.h"

void cz_lent_init(struct cz_lent *l, const struct thr_alloc *mem)
{
	memset(l, 0, sizeof(*l));
	l->mem = mem;
}

void *cz_lent_get(struct cz_lent *l, size_t size)
{
	for (unsigned i = 0; i < CZ_LENT_MAX; i++) {
		if (l->block[i].p)
			continue;
		l->block[i].p = thr_get(l->mem, size, 16);
		l->block[i].size = size;
		return l->block[i].p;
	}
	return NULL;
}

void cz_lent_put(struct cz_lent *l, void *p)
{
	unsigned i = 0;

	if (!p)
		return;
	while (l->block[i].p != p) {
		i++;
		THR_ASSERT(i < CZ_LENT_MAX);
	}
	thr_put(l->mem, p, l->block[i].size);
	l->block[i].p = NULL;
}
