/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/cz_estimate.c - cz_will_shrink(): noise is told from what shrinks, at all
 * sizes and alignments, and never at the price of a real saving.
 */
#include "t/unit/cz_util.h"

static const size_t sizes[] = {4096, 5000, 16384, 65536, 100003, 2 << 20};

/* A better generator than rnd(): thousands of buffers of it are looked at. */
static void noise(uint8_t *p, size_t len, uint64_t seed)
{
	uint64_t x = seed * 2 + 1;

	for (size_t i = 0; i < len; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		p[i] = (uint8_t)(x * 0x2545f4914f6cdd1du >> 56);
	}
}

static uint8_t *get(size_t len)
{
	uint8_t *p = malloc(len);

	assert_non_null(p);
	return p;
}

static void noise_will_not(void **state)
{
	(void)state;
	for (unsigned i = 0; i < THR_ARRAY_SIZE(sizes); i++) {
		uint8_t *p = get(sizes[i] + 16);

		for (unsigned k = 0; k < 16; k++) {
			noise(p + k, sizes[i], k + 1);
			assert_false(cz_will_shrink(p + k, sizes[i]));
			/* The same for the same data, wherever it lies. */
			memmove(p, p + k, sizes[i]);
			assert_false(cz_will_shrink(p, sizes[i]));
		}
		free(p);
	}
}

/* Of many buffers of noise next to none is taken for something else. */
static void noise_hardly_ever(void **state)
{
	uint8_t *p = get(4096);
	unsigned wrong = 0;

	(void)state;
	for (unsigned k = 1; k <= 2000; k++) {
		noise(p, 4096, k * 7919);
		wrong += cz_will_shrink(p, 4096);
	}
	assert_in_range(wrong, 0, 2);
	free(p);
}

static void small_always(void **state)
{
	uint8_t *p = get(4096);

	(void)state;
	noise(p, 4096, 1);
	for (size_t len = 0; len < 4096; len = len * 2 + 1) {
		uint8_t *q = get(len + 1);

		memcpy(q, p, len);
		q = realloc(q, len ? len : 1);
		assert_true(cz_will_shrink(q, len));
		free(q);
	}
	free(p);
}

static void ordinary_data_will(void **state)
{
	(void)state;
	for (unsigned i = 0; i < THR_ARRAY_SIZE(sizes); i++) {
		uint8_t *p = get(sizes[i]);

		for (int kind = 0; kind < DATA_KINDS; kind++) {
			if (kind == DATA_NOISE || (kind == DATA_FAR && sizes[i] <= 65536))
				continue;
			fill(p, sizes[i], kind);
			assert_true(cz_will_shrink(p, sizes[i]));
		}
		/* Noise of seven bits: an eighth less. */
		noise(p, sizes[i], 3);
		for (size_t k = 0; k < sizes[i]; k++)
			p[k] &= 0x7f;
		assert_true(cz_will_shrink(p, sizes[i]));
		free(p);
	}
}

/* A twentieth of zeros or of text in noise is found wherever it is. */
static void a_part_will(void **state)
{
	(void)state;
	for (unsigned i = 0; i < THR_ARRAY_SIZE(sizes); i++) {
		size_t len = sizes[i], part = len / 20;
		uint8_t *p = get(len);

		for (size_t at = 0; at + part <= len; at += part) {
			noise(p, len, at + 5);
			memset(p + at, 0, part);
			assert_true(cz_will_shrink(p, len));
			noise(p, len, at + 6);
			for (size_t k = 0; k < part; k++)
				p[at + k] = (uint8_t) "etaoin shrdlu"[k % 13];
			assert_true(cz_will_shrink(p, len));
		}
		free(p);
	}
}

/* Noise that comes again: its histogram is flat. */
static void repeats_will(void **state)
{
	static const size_t distances[] = {512, 1024, 4096, 16384, 24576};
	uint8_t *p = get(131072);

	(void)state;
	for (unsigned i = 0; i < THR_ARRAY_SIZE(distances); i++) {
		for (unsigned k = 0; k < 8; k++) {
			noise(p, 131072, k + 10);
			memcpy(p + 65536 + distances[i], p + 65536,
				THR_MIN(distances[i], (size_t)16384));
			if (distances[i] < 4096) {
				for (size_t at = 65536 + distances[i]; at < 131072; at++)
					p[at] = p[at - distances[i]];
			}
			assert_true(cz_will_shrink(p + 65536, 65536));
		}
	}
	free(p);
}

/* What deflate would make of it decides: noise with one bit of bias in a byte. */
static void bias_will(void **state)
{
	uint8_t *p = get(65536);

	(void)state;
	for (unsigned k = 0; k < 16; k++) {
		noise(p, 65536, k + 20);
		/* The top bit is set in five bytes of eight: 0.05 bits. */
		for (size_t i = 0; i < 65536; i++)
			p[i] = (uint8_t)((p[i] & 0x7f) | (i * 5 % 8 < 5 ? 0x80 : 0));
		assert_false(cz_will_shrink(p, 65536));
		/* In seven of eight: 0.46 bits, 6 %. */
		for (size_t i = 0; i < 65536; i++)
			p[i] = (uint8_t)((p[i] & 0x7f) | (i % 8 ? 0x80 : 0));
		assert_true(cz_will_shrink(p, 65536));
	}
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(noise_will_not),
		cmocka_unit_test(noise_hardly_ever),
		cmocka_unit_test(small_always),
		cmocka_unit_test(ordinary_data_will),
		cmocka_unit_test(a_part_will),
		cmocka_unit_test(repeats_will),
		cmocka_unit_test(bias_will),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
