/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/cz_secret.c - comparing, clearing and random bytes.
 */
#include "t/unit/cz_util.h"

static void same(void **state)
{
	uint8_t a[300], b[300];

	(void)state;
	fill(a, sizeof(a), DATA_NOISE);
	memcpy(b, a, sizeof(b));
	for (size_t len = 0; len <= sizeof(a); len++) {
		assert_true(cz_same(a, b, len));
		assert_true(cz_same(a, a, len));
	}
	for (size_t i = 0; i < sizeof(a); i++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			b[i] ^= (uint8_t)(1 << bit);
			assert_false(cz_same(a, b, sizeof(a)));
			assert_true(cz_same(a, b, i));
			assert_false(cz_same(a + i, b + i, 1));
			b[i] = a[i];
		}
	}
}

static void wipe(void **state)
{
	static const uint8_t zeros[333];

	(void)state;
	for (size_t len = 0; len <= sizeof(zeros); len++) {
		uint8_t buf[sizeof(zeros) + 2];

		memset(buf, 0x5a, sizeof(buf));
		cz_wipe(buf + 1, len);
		assert_int_equal(buf[0], 0x5a);
		assert_int_equal(buf[1 + len], 0x5a);
		assert_memory_equal(buf + 1, zeros, len);
	}
}

static void random_bytes(void **state)
{
	static const size_t lens[] = {0, 1, 16, 255, 256, 257, 1000, 65536};
	unsigned count[256] = {0};

	(void)state;
	for (unsigned i = 0; i < THR_ARRAY_SIZE(lens); i++) {
		size_t len = lens[i];
		uint8_t *a = malloc(len + 2 * CANARY), *b = malloc(len + 1);
		uint8_t canary[CANARY];

		assert_true(a && b);
		memset(canary, CANARY_VAL, CANARY);
		memset(a, CANARY_VAL, len + 2 * CANARY);
		memset(b, 0, len + 1);
		assert_int_equal(cz_random(a + CANARY, len), 0);
		assert_int_equal(cz_random(b, len), 0);
		assert_memory_equal(a, canary, CANARY);
		assert_memory_equal(a + CANARY + len, canary, CANARY);
		assert_int_equal(b[len], 0);
		/* By chance once in 2^128. */
		if (len >= 16)
			assert_memory_not_equal(a + CANARY, b, len);
		for (size_t k = 0; k < len; k++)
			count[b[k]]++;
		free(a);
		free(b);
	}
	for (unsigned i = 0; i < 256; i++)
		assert_in_range(count[i], 100, 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same),
		cmocka_unit_test(wipe),
		cmocka_unit_test(random_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
