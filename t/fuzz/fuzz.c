/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/fuzz/fuzz.c - memory with an end, chance, and how a target stops.
 */
#include <stdio.h>
#include <stdlib.h>

#include "t/fuzz/fuzz.h"

#define MEMORY (256u << 20)

static uint64_t in_use;
static bool ran_out;

void fuzz_broken(const char *what)
{
	fprintf(stderr, "%s\n", what);
	abort();
}

static void *limited_get(void *ctx, size_t size, size_t align)
{
	void *p;

	(void)ctx;
	if (size > MEMORY - in_use) {
		ran_out = true;
		return NULL;
	}
	p = thr_heap.get(thr_heap.ctx, size, align);
	if (!p)
		return NULL;
	in_use += size;
	/* What is not cleared has no particular content. */
	memset(p, 0xa5, THR_MIN(size, 65536));
	return p;
}

static void limited_put(void *ctx, void *p, size_t size)
{
	(void)ctx;
	FUZZ_MUST(size <= in_use);
	in_use -= size;
	thr_heap.put(thr_heap.ctx, p, size);
}

const struct thr_alloc fuzz_mem = {limited_get, limited_put, NULL};

void fuzz_mem_end(void)
{
	FUZZ_MUST(!in_use);
	ran_out = false;
}

bool fuzz_mem_ran_out(void)
{
	return ran_out;
}

void fuzz_explained(int code, const struct blk_err *err)
{
	char text[BLK_ERR_FILE_MAX + BLK_ERR_STR_MAX + 256];

	FUZZ_MUST(code <= 0);
	if (!code)
		return;
	FUZZ_MUST(err->code == code && err->id < BLK_E_COUNT && err->id != BLK_E_NONE);
	FUZZ_MUST(blk_err_text(err, text, sizeof(text)) == strlen(text));
	FUZZ_MUST(*text);
	for (const char *p = text; *p; p++)
		FUZZ_MUST((unsigned char)*p >= ' ' && *p != 0x7f);
}

uint64_t fuzz_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

uint64_t fuzz_below(uint64_t *state, uint64_t n)
{
	return fuzz_next(state) % n;
}
