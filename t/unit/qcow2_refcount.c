/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/qcow2_refcount.c - reference counts of every width, against a bit by bit
 * model, and looked up in images.
 */
#include "t/unit/qcow2_util.h"

#define COUNTS 64

/* The format's own words: big-endian bytes from 8 bits on, below that the count
 * with the lower index in the less significant bits. */
static uint64_t model_load(const uint8_t *p, unsigned order, unsigned i)
{
	unsigned bits = 1u << order;
	uint64_t v = 0;

	if (bits < 8) {
		for (unsigned b = 0; b < bits; b++) {
			unsigned at = i * bits + b;

			v |= (uint64_t)(p[at / 8] >> at % 8 & 1) << b;
		}
		return v;
	}
	for (unsigned b = 0; b < bits / 8; b++)
		v = v << 8 | p[i * bits / 8 + b];
	return v;
}

static void test_widths(void **state)
{
	uint8_t table[COUNTS * 8];
	uint64_t want[COUNTS];
	uint64_t seed = 1;

	(void)state;
	for (unsigned order = 0; order <= 6; order++) {
		uint64_t mask = order == 6 ? UINT64_MAX : (1ull << (1u << order)) - 1;

		memset(table, 0x5a, sizeof(table));
		for (unsigned i = 0; i < COUNTS; i++)
			want[i] = model_load(table, order, i);
		for (unsigned round = 0; round < 500; round++) {
			unsigned i = (unsigned)(seed >> 33) % COUNTS;

			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			want[i] = (seed ^ seed >> 31) & mask;
			qcow2_refcount_store(table, order, i, want[i]);
			for (unsigned j = 0; j < COUNTS; j++) {
				assert_int_equal(model_load(table, order, j), want[j]);
				assert_int_equal(qcow2_refcount_load(table, order, j), want[j]);
			}
		}
	}
}

static uint64_t count_of(struct qcow2 *q, uint64_t cluster, int want)
{
	uint64_t count = 99;

	fmt_cache_lock(q->cache);
	assert_int_equal(qcow2_refcount_get(q, cluster, &count), want);
	fmt_cache_unlock(q->cache);
	return count;
}

static void test_get(void **state)
{
	(void)state;
	for (unsigned order = 0; order <= 6; order++) {
		/* Small slices, so that a block is several of them. */
		uint32_t per_block = 8192u << 3 >> order;
		uint64_t most = order == 6 ? UINT64_MAX : (1ull << (1u << order)) - 1;
		struct qcow2 *q;
		struct blk *b;
		struct im m;

		im_new(&m, 3, 13, order, 8, 1 << 20);
		im_count(&m, 7, most);
		im_count(&m, per_block - 1, most);
		b = im_open(&m);
		q = qcow2_of(b);
		assert_int_equal(count_of(q, 0, 0), 1);
		assert_int_equal(count_of(q, 4, 0), 1);
		assert_int_equal(count_of(q, 5, 0), 0);
		assert_int_equal(count_of(q, 7, 0), most);
		assert_int_equal(count_of(q, per_block - 1, 0), most);
		/* No block there, and past what the table can say. */
		assert_int_equal(count_of(q, per_block, 0), 0);
		assert_int_equal(count_of(q, 1024ull * per_block, 0), 0);
		assert_int_equal(count_of(q, UINT64_MAX >> 13, 0), 0);
		fmt_close(b);
		/* A block that cannot be there. */
		im_be64(&m, im_host(&m, 1), im_host(&m, 2) + 512);
		b = im_open(&m);
		count_of(qcow2_of(b), 0, -THR_EUCLEAN);
		fmt_close(b);
		im_be64(&m, im_host(&m, 1), im_host(&m, 2) + 1);
		b = im_open(&m);
		count_of(qcow2_of(b), 0, -THR_EUCLEAN);
		fmt_close(b);
		im_free(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_widths),
		cmocka_unit_test(test_get),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
