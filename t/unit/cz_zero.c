/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/cz_zero.c - the zero scan at every alignment and length, with a single
 * bit set anywhere in and around the range, against a loop over bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cz/cz.h"

/* The scan as it is built for machines without AVX2, under other names. */
bool plain_is_zero(const void *p, size_t len);
size_t plain_zero_run(const void *p, size_t len, size_t grain, bool *zero);

#undef CONFIG_HOSTED
#define cz_is_zero  plain_is_zero
#define cz_zero_run plain_zero_run
#include "cz/zero.c"
#undef cz_is_zero
#undef cz_zero_run

struct scan {
	bool (*is_zero)(const void *p, size_t len);
	size_t (*zero_run)(const void *p, size_t len, size_t grain, bool *zero);
};

static const struct scan native = {cz_is_zero, cz_zero_run};
static const struct scan plain = {plain_is_zero, plain_zero_run};

#define SPAN   700 /* several blocks of the scan on both sides */
#define ALIGNS 130

static uint8_t *zeroed(size_t len)
{
	uint8_t *p = aligned_alloc(4096, thr_align_up(len, 4096));

	assert_non_null(p);
	memset(p, 0, thr_align_up(len, 4096));
	return p;
}

static void all_zero(void **state)
{
	const struct scan *s = *state;
	uint8_t *p = zeroed(ALIGNS + SPAN);

	for (size_t a = 0; a < ALIGNS; a++) {
		for (size_t len = 0; len <= SPAN; len++)
			assert_true(s->is_zero(p + a, len));
	}
	free(p);
}

/* What lies around the range does not count; a heap block of the exact size shows
 * reads beyond it. */
static void surroundings(void **state)
{
	const struct scan *s = *state;
	uint8_t *p = zeroed(ALIGNS + SPAN + 1);

	memset(p, 0xff, ALIGNS + SPAN + 1);
	for (size_t a = 1; a < ALIGNS; a += 3) {
		for (size_t len = 0; len <= SPAN; len++) {
			memset(p + a, 0, len);
			assert_true(s->is_zero(p + a, len));
			memset(p + a, 0xff, len);
		}
	}
	free(p);
	for (size_t len = 0; len <= SPAN; len++) {
		uint8_t *q = calloc(1, len ? len : 1);

		assert_non_null(q);
		assert_true(s->is_zero(q, len));
		free(q);
	}
}

static void one_bit(void **state)
{
	const struct scan *s = *state;
	uint8_t *p = zeroed(ALIGNS + SPAN);

	for (size_t a = 0; a < ALIGNS; a += a < 9 ? 1 : 11) {
		for (size_t len = 1; len <= SPAN; len += 1 + len / 60) {
			for (size_t i = 0; i < len; i++) {
				p[a + i] = (uint8_t)(1 << (i + len + a) % 8);
				if (s->is_zero(p + a, len))
					fail_msg("byte %zu of %zu at %zu", i, len, a);
				p[a + i] = 0;
			}
		}
	}
	free(p);
}

/* The sizes that images are scanned in. */
static void one_bit_large(void **state)
{
	const struct scan *s = *state;
	static const size_t lens[] = {4096, 4097, 65536, 65536 + 513, 2 << 20};
	uint8_t *p = zeroed((2 << 20) + 8);

	for (unsigned i = 0; i < THR_ARRAY_SIZE(lens); i++) {
		size_t len = lens[i], step = len / 509 | 1;

		assert_true(s->is_zero(p + i, len));
		for (size_t k = 0; k < len; k += step) {
			p[i + k] = 0x80;
			assert_false(s->is_zero(p + i, len));
			p[i + k] = 0;
		}
		p[i + len - 1] = 1;
		assert_false(s->is_zero(p + i, len));
		p[i + len - 1] = 0;
		p[i + len] = 1;
		assert_true(s->is_zero(p + i, len));
		p[i + len] = 0;
	}
	free(p);
}

/* ---- runs ------------------------------------------------------------------ */

static size_t slow_run(const uint8_t *p, size_t len, size_t grain, bool *zero)
{
	size_t run = 0;

	while (run < len) {
		size_t n = THR_MIN(grain, len - run);
		bool z = true;

		for (size_t i = 0; i < n; i++)
			z = z && !p[run + i];
		if (!run)
			*zero = z;
		else if (z != *zero)
			break;
		run += n;
	}
	return run;
}

/* Every pattern of data and zero grains, with a last grain of every kind. */
static void runs(void **state)
{
	const struct scan *s = *state;
	static const size_t grains[] = {1, 2, 64, 512, 4096};
	uint8_t *p = zeroed(8 * 4096);

	for (unsigned g = 0; g < THR_ARRAY_SIZE(grains); g++) {
		size_t grain = grains[g], tail[] = {grain, 1, grain / 2 + 1, grain - 1};

		for (unsigned bits = 0; bits < 256; bits++) {
			memset(p, 0, 8 * 4096);
			for (unsigned i = 0; i < 8; i++) {
				if (bits & 1 << i)
					p[i * grain + (i & 1 ? 0 : grain - 1)] = 0x10;
			}
			for (unsigned t = 0; t < THR_ARRAY_SIZE(tail); t++) {
				size_t len = 7 * grain + tail[t], want, got;
				bool z_want = false, z_got = !z_want;

				want = slow_run(p, len, grain, &z_want);
				got = s->zero_run(p, len, grain, &z_got);
				assert_int_equal(got, want);
				assert_int_equal(z_got, z_want);
				assert_true(got == len || thr_is_aligned(got, grain));
			}
		}
	}
	free(p);
}

static void short_runs(void **state)
{
	const struct scan *s = *state;
	uint8_t buf[16] = {0};
	bool zero = false;

	/* Less than a grain counts as one. */
	assert_int_equal(s->zero_run(buf, 16, 4096, &zero), 16);
	assert_true(zero);
	buf[15] = 1;
	assert_int_equal(s->zero_run(buf, 16, 4096, &zero), 16);
	assert_false(zero);
	assert_int_equal(s->zero_run(buf, 15, 4096, &zero), 15);
	assert_true(zero);
	assert_int_equal(s->zero_run(buf, 16, 8, &zero), 8);
	assert_true(zero);
	/* A grain may be larger than any buffer. */
	assert_int_equal(s->zero_run(buf, 1, (size_t)1 << 31, &zero), 1);
	assert_true(zero);
}

/* Each test for either scan; *state is which. */
#define SCAN_TEST(f, s)                                                                        \
	{                                                                                      \
#f " " #s, f, NULL, NULL, (void *)(uintptr_t)&s                                \
	}
#define SCAN_TESTS(f) SCAN_TEST(f, native), SCAN_TEST(f, plain)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCAN_TESTS(all_zero),
		SCAN_TESTS(surroundings),
		SCAN_TESTS(one_bit),
		SCAN_TESTS(one_bit_large),
		SCAN_TESTS(runs),
		SCAN_TESTS(short_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
