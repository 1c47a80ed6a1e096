/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/cz_util.h - what the tests of codecs share: an allocator that counts,
 * checks sizes and fails when told, and data of several kinds.
 */
#ifndef CZ_UTIL_H
#define CZ_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cz/cz.h"

#define CANARY     64
#define CANARY_VAL 0xc5

/* ---- an allocator that counts, checks sizes and fails when told -------- */

struct counter {
	unsigned calls;
	unsigned fail_at; /* 0: never */
	unsigned live;
	size_t bytes;
	size_t peak;
};

static __attribute__((unused)) void *counter_get(void *ctx, size_t size, size_t align)
{
	struct counter *c = ctx;
	size_t *p;

	assert_true(align <= 16);
	if (++c->calls == c->fail_at)
		return NULL;
	p = malloc(size + 16);
	assert_non_null(p);
	*p = size;
	c->live++;
	c->bytes += size;
	c->peak = THR_MAX(c->peak, c->bytes);
	return p + 16 / sizeof(*p);
}

static __attribute__((unused)) void counter_put(void *ctx, void *p, size_t size)
{
	struct counter *c = ctx;
	size_t *q = (size_t *)p - 16 / sizeof(*q);

	assert_int_equal(*q, size);
	c->live--;
	c->bytes -= size;
	free(q);
}

/* ---- data --------------------------------------------------------------- */

static uint32_t rnd(uint32_t *s)
{
	*s = *s * 1664525u + 1013904223u;
	return *s >> 8;
}

enum data_kind { DATA_ZEROS, DATA_RAMP, DATA_NOISE, DATA_WORDS, DATA_FAR, DATA_KINDS };

static __attribute__((unused)) void fill(uint8_t *p, size_t len, enum data_kind kind)
{
	uint32_t s = (uint32_t)(kind * 7919 + len);

	for (size_t i = 0; i < len; i++) {
		if (kind == DATA_ZEROS)
			p[i] = 0;
		else if (kind == DATA_RAMP)
			p[i] = (uint8_t)i;
		else if (kind == DATA_NOISE)
			p[i] = (uint8_t)rnd(&s);
		else if (kind == DATA_WORDS)
			p[i] = (uint8_t) "the cluster "[(i + (rnd(&s) % 17 == 0)) % 12];
		else /* matches at the very end of a window of 32 KiB */
			p[i] = i >= 32768 ? p[i - 32768] : (uint8_t)rnd(&s);
	}
}

#endif
