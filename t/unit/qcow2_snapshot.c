/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The disk as of a snapshot, and options for opening. The snapshot's tables are put
 * behind an image by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "t/fixtures/qcow2_rig.h"

#define CL 4096u

static void fill(struct blk *b, uint64_t off, uint8_t v)
{
	uint8_t p[CL];

	memset(p, v, sizeof(p));
	assert_int_equal(blk_pwrite(b, off, p, sizeof(p)), 0);
}

static uint8_t byte(struct blk *b, uint64_t off)
{
	uint8_t v;

	assert_int_equal(blk_pread(b, off, &v, 1), 0);
	return v;
}

/* An entry of 64 bytes at @off: an id of 3 bytes, a name of 5. */
static void entry(struct blk *disk, uint64_t off, uint64_t l1, uint32_t n, uint64_t size,
	const char *text)
{
	uint8_t p[64];

	memset(p, 0, sizeof(p));
	thr_put_be64(p, l1);
	thr_put_be32(p + 8, n);
	p[13] = 3;
	p[15] = 5;
	thr_put_be32(p + 36, 16);
	thr_put_be64(p + 48, size);
	memcpy(p + 56, text, 8);
	assert_int_equal(blk_pwrite(disk, off, p, sizeof(p)), 0);
}

/* Guest clusters 0 and 1 are 1 and 2 now; in snapshot 111 they are nothing and 9. */
static struct blk *make(void)
{
	static const struct geo geo = {3, 12, 4, 1 << 20, 0, 0};
	struct blk *disk = disk_new(), *b;
	uint64_t at;

	image_make(disk, &geo);
	b = image_open(disk_lend(disk, 0), NULL, 0);
	fill(b, 0, 1);
	fill(b, CL, 2);
	assert_int_equal(fmt_close(b), 0);
	at = thr_align_up(blk_size(disk), CL);
	assert_int_equal(blk_truncate(disk, at + 4 * CL, BLK_PREALLOC_OFF, NULL), 0);
	disk_put64(disk, at, at + CL);
	disk_put64(disk, at + CL + 8, at + 2 * CL);
	fill(disk, at + 2 * CL, 9);
	entry(disk, at + 3 * CL, at, 1, 64 << 10, "111alpha");
	entry(disk, at + 3 * CL + 64, at + 8, 1, 64 << 10, "222beta,");
	entry(disk, at + 3 * CL + 128, at, 0, 64 << 10, "33311111");
	entry(disk, at + 3 * CL + 192, at, 1, 64 << 10, "44422222");
	disk_put64(disk, 56, disk_get64(disk, 56) | 4);
	disk_put64(disk, 64, at + 3 * CL);
	return disk;
}

static struct blk *open_with(struct blk *disk, const struct blk_opts *opts, struct blk_err *err)
{
	struct fmt_open o = {.format = "qcow2", .opts = opts, .mem = &thr_heap};
	struct blk *file = disk_lend(disk, 0), *b;

	if (!fmt_open_on(&b, file, &o, err))
		return b;
	blk_close(file);
	return NULL;
}

static void test_select(void **state)
{
	static const struct {
		const char *tag;
		unsigned id;
	} rows[] = {
		{"111", BLK_E_NONE},
		{"alpha", BLK_E_NONE},
		{"snapshot.id=111", BLK_E_NONE},
		{"snapshot.name=alpha", BLK_E_NONE},
		{"snapshot.name=alpha,snapshot.id=111", BLK_E_NONE},
		{"snapshot.id=444", BLK_E_NONE},
		{"22222", BLK_E_NONE},
		{"nope", BLK_E_NO_SNAPSHOT},
		{"", BLK_E_NO_SNAPSHOT},
		{"snapshot.id=alpha", BLK_E_NO_SNAPSHOT},
		{"snapshot.id=222,snapshot.name=alpha", BLK_E_NO_SNAPSHOT},
		{"222", BLK_E_QCOW2_SNAP_L1},
		{"snapshot.name=beta,,", BLK_E_QCOW2_SNAP_L1},
		{"333", BLK_E_QCOW2_SNAP_L1},
		{"snapshot.name=beta,", BLK_E_SNAPSHOT_TAG},
		{"snapshot.size=1", BLK_E_SNAPSHOT_TAG},
	};
	struct blk *disk = make();

	(void)state;
	for (size_t i = 0; i < THR_ARRAY_SIZE(rows); i++) {
		struct blk_err err = BLK_ERR_INIT;
		struct blk *b = open_with(disk, NULL, &err);
		bool then;

		assert_non_null(b);
		then = !fmt_snapshot_select(b, rows[i].tag, &err);
		if (err.id != rows[i].id)
			print_message("# %s\n", rows[i].tag);
		assert_int_equal(err.id, rows[i].id);
		assert_int_equal(then, !err.id);
		assert_int_equal(byte(b, 0), then ? 0 : 1);
		assert_int_equal(byte(b, CL), then ? 9 : 2);
		assert_int_equal(blk_size(b), then ? 64 << 10 : 1 << 20);
		assert_int_equal(fmt_close(b), 0);
	}
	blk_close(disk);
}

/* Nobody writes into a snapshot. */
static void test_writable(void **state)
{
	struct blk *disk = make(), *b = image_open(disk_lend(disk, 0), NULL, 0);
	struct blk_err err = BLK_ERR_INIT;

	(void)state;
	assert_int_equal(fmt_snapshot_select(b, "111", &err), -THR_EINVAL);
	assert_int_equal(byte(b, 0), 1);
	assert_int_equal(fmt_close(b), 0);
	blk_close(disk);
}

static void test_caches(void **state)
{
	static const struct {
		struct blk_opt v[3];
		unsigned n, id;
	} rows[] = {
		{{{"l2-cache-size", "1M"}}, 1, BLK_E_NONE},
		{{{"refcount-cache-size", "1"}}, 1, BLK_E_NONE},
		{{{"cache-size", "1M"}, {"cache-clean-interval", "600"}}, 2, BLK_E_NONE},
		{{{"cache-clean-interval", "0"}}, 1, BLK_E_NONE},
		{{{"cache-clean-interval", "99999999999"}}, 1, BLK_E_QCOW2_CACHE_CLEAN},
		{{{"cache-size", "7E"}}, 1, BLK_E_NONE},
		{{{"l2-cache-size", "x"}}, 1, BLK_E_BAD_VALUE},
		{{{"cache-size", "1M"}, {"l2-cache-size", "2M"}}, 2, BLK_E_QCOW2_CACHE_SIZES},
		{{{"cache-size", "1M"}, {"refcount-cache-size", "2M"}}, 2,
			BLK_E_QCOW2_CACHE_SIZES},
		{{{"cache-size", "3M"}, {"l2-cache-size", "1M"}, {"refcount-cache-size", "2M"}},
			3, BLK_E_QCOW2_CACHE_ALL},
		{{{"l3-cache-size", "1M"}}, 1, BLK_E_BAD_OPTION},
	};
	struct blk *disk = make();

	(void)state;
	for (size_t i = 0; i < THR_ARRAY_SIZE(rows); i++) {
		struct blk_opts opts = {rows[i].v, rows[i].n};
		struct blk_err err = BLK_ERR_INIT;
		struct blk *b = open_with(disk, &opts, &err);

		if (err.id != rows[i].id)
			print_message("# row %zu\n", i);
		assert_int_equal(err.id, rows[i].id);
		assert_int_equal(!b, err.id != 0);
		if (!b)
			continue;
		assert_int_equal(byte(b, CL), 2);
		assert_int_equal(fmt_close(b), 0);
	}
	blk_close(disk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_select),
		cmocka_unit_test(test_writable),
		cmocka_unit_test(test_caches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
