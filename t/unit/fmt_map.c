/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Listing the extents of an image: joined where they go on, cut where asked for, with
 * the holes of the file below.
 */
#include "t/unit/fmt_util.h"

#define SIZE (64u * BLOCK)
#define MAX  64u

struct list {
	struct fmt_map_extent e[MAX];
	unsigned n;
};

static void add(void *ctx, const struct fmt_map_extent *e)
{
	struct list *l = ctx;

	assert_true(l->n < MAX);
	l->e[l->n++] = *e;
}

static void assert_listed(const struct list *l, unsigned i, uint64_t from, uint64_t blocks,
	unsigned flags, unsigned depth)
{
	assert_true(i < l->n);
	assert_int_equal(l->e[i].off, from * BLOCK);
	assert_int_equal(l->e[i].len, blocks * BLOCK);
	assert_int_equal(l->e[i].flags, flags);
	assert_int_equal(l->e[i].depth, depth);
}

#define SEEN_DATA (BLK_EXT_ALLOC | BLK_EXT_DATA | BLK_EXT_MAPPED)
#define SEEN_ZERO (BLK_EXT_ALLOC | BLK_EXT_ZERO)

static void neighbours_are_joined(void **state)
{
	struct layer *low = layer_new(SIZE, NULL);
	struct layer *top = layer_new(SIZE, low);
	struct list l = {0};

	(void)state;
	layer_set(low, 0, 30, DATA, 1);
	layer_set(top, 10, 10, DATA, 2);
	layer_set(top, 40, 10, ZERO, 0);
	low->step = top->step = 3;
	assert_int_equal(fmt_map_list(&top->b, 0, UINT64_MAX, add, &l, NULL), 0);
	assert_int_equal(l.n, 6);
	assert_listed(&l, 0, 0, 10, SEEN_DATA, 1);
	assert_listed(&l, 1, 10, 10, SEEN_DATA, 0);
	assert_listed(&l, 2, 20, 10, SEEN_DATA, 1);
	assert_listed(&l, 3, 30, 10, BLK_EXT_ZERO, 1);
	assert_listed(&l, 4, 40, 10, SEEN_ZERO, 0);
	assert_listed(&l, 5, 50, 14, BLK_EXT_ZERO, 1);
	layers_close(top);
}

static void what_is_asked_for_is_cut_out(void **state)
{
	struct layer *top = layer_new(SIZE, NULL);
	struct list l = {0};

	(void)state;
	layer_set(top, 0, 64, DATA, 1);
	assert_int_equal(fmt_map_list(&top->b, 700, 100, add, &l, NULL), 0);
	assert_int_equal(l.n, 1);
	assert_int_equal(l.e[0].off, 700);
	assert_int_equal(l.e[0].len, 100);
	assert_int_equal(l.e[0].map, 700);
	l.n = 0;
	assert_int_equal(fmt_map_list(&top->b, SIZE - 1, UINT64_MAX, add, &l, NULL), 0);
	assert_int_equal(l.n, 1);
	assert_int_equal(l.e[0].len, 1);
	l.n = 0;
	assert_int_equal(fmt_map_list(&top->b, SIZE, UINT64_MAX, add, &l, NULL), 0);
	assert_int_equal(fmt_map_list(&top->b, UINT64_MAX, 1, add, &l, NULL), 0);
	assert_int_equal(fmt_map_list(&top->b, 0, 0, add, &l, NULL), 0);
	assert_int_equal(l.n, 0);
	layers_close(top);
}

static void errors_say_where(void **state)
{
	struct layer *top = layer_new(SIZE, NULL);
	struct blk_err err = BLK_ERR_INIT;
	struct list l = {0};

	(void)state;
	layer_set(top, 0, 64, DATA, 1);
	top->fail_status = 7;
	assert_int_equal(fmt_map_list(&top->b, 0, SIZE, add, &l, &err), -THR_EUCLEAN);
	assert_int_equal(err.id, BLK_E_MAP_AT);
	assert_int_equal(err.off, 7 * BLOCK);
	layers_close(top);
}

/* A file with holes: raw shows them; a format's data stays data and reads as zero. */
static void holes_of_the_file_show(void **state)
{
	struct blk *file = disk_new("1M", &thr_heap);
	struct layer *top = layer_new(1 << 20, NULL);
	struct fmt_holes holes = {0};
	struct fmt_map_extent e;
	struct list l = {0};
	struct blk *raw;

	(void)state;
	assert_int_equal(blk_pwrite(file, 256 << 10, "x", 1), 0);
	layer_set(top, 0, 1 << 11, DATA, 0);
	top->b.file = file;
	assert_int_equal(fmt_map(&top->b, NULL, 0, UINT64_MAX, NULL, &e), 0);
	assert_int_equal(e.flags, SEEN_DATA);
	assert_int_equal(e.len, 1 << 20);
	assert_int_equal(fmt_map(&top->b, NULL, 0, UINT64_MAX, &holes, &e), 0);
	assert_int_equal(e.flags, SEEN_DATA | BLK_EXT_ZERO);
	assert_int_equal(e.len, 256 << 10);
	assert_int_equal(fmt_map(&top->b, NULL, 100000, UINT64_MAX, &holes, &e), 0);
	assert_int_equal(e.flags, SEEN_DATA | BLK_EXT_ZERO);
	assert_int_equal(e.len, (256 << 10) - 100000);
	assert_int_equal(fmt_map(&top->b, NULL, 256 << 10, UINT64_MAX, &holes, &e), 0);
	assert_int_equal(e.flags, SEEN_DATA);
	assert_int_equal(e.len, 64 << 10);
	top->compressed = true;
	assert_int_equal(fmt_map(&top->b, NULL, 0, UINT64_MAX, &holes, &e), 0);
	assert_int_equal(e.flags, BLK_EXT_ALLOC | BLK_EXT_DATA | BLK_EXT_COMPRESSED);
	top->b.file = NULL;
	layers_close(top);

	assert_int_equal(open_as(&raw, file, "raw", 0, NULL), 0);
	assert_int_equal(fmt_map_list(raw, 0, UINT64_MAX, add, &l, NULL), 0);
	assert_int_equal(l.n, 3);
	assert_listed(&l, 0, 0, 512, SEEN_ZERO | BLK_EXT_MAPPED, 0);
	assert_listed(&l, 1, 512, 128, SEEN_DATA, 0);
	assert_listed(&l, 2, 640, 1408, SEEN_ZERO | BLK_EXT_MAPPED, 0);
	assert_int_equal(fmt_close(raw), 0);
}

/* One question to the host for each of its extents, however many the format has. */
static void hosts_are_asked_once(void **state)
{
	struct layer *file = layer_new(SIZE, NULL);
	struct layer *top = layer_new(SIZE, NULL);
	struct fmt_holes holes = {0};
	struct fmt_map_extent e;

	(void)state;
	layer_set(file, 0, 64, DATA, 1);
	layer_set(top, 0, 64, DATA, 1);
	top->step = 1;
	top->b.file = &file->b;
	assert_int_equal(fmt_map(&top->b, NULL, 0, SIZE, &holes, &e), 0);
	file->fail_status = 1; /* nobody asks again */
	for (unsigned i = 1; i < 64; i++) {
		assert_int_equal(fmt_map(&top->b, NULL, i * BLOCK, SIZE, &holes, &e), 0);
		assert_int_equal(e.flags, SEEN_DATA);
		assert_int_equal(e.len, BLOCK);
	}
	top->b.file = NULL;
	layers_close(top);
	layers_close(file);
}

static void whole_images_of_zeroes_are_known(void **state)
{
	struct layer *low = layer_new(SIZE, NULL);
	struct layer *top = layer_new(SIZE, low);

	(void)state;
	assert_true(fmt_reads_zero(&top->b));
	layer_set(low, 3, 1, ZERO, 0);
	layer_set(top, 30, 30, ZERO, 0);
	assert_true(fmt_reads_zero(&top->b));
	layer_set(low, 63, 1, DATA, 0);
	assert_false(fmt_reads_zero(&top->b));
	layer_set(top, 63, 1, ZERO, 0);
	assert_true(fmt_reads_zero(&top->b));
	top->fail_status = 40;
	assert_false(fmt_reads_zero(&top->b));
	layers_close(top);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(neighbours_are_joined),
		cmocka_unit_test(what_is_asked_for_is_cut_out),
		cmocka_unit_test(errors_say_where),
		cmocka_unit_test(holes_of_the_file_show),
		cmocka_unit_test(hosts_are_asked_once),
		cmocka_unit_test(whole_images_of_zeroes_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
