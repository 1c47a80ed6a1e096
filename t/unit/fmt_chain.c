/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Chains: what is seen through them, and opening them by names that images give.
 */
#include "t/unit/fmt_util.h"

#include <unistd.h>

#define SIZE (64u * BLOCK)

/* ---- what is seen ------------------------------------------------------------------ */

static void assert_extent(struct blk *top, struct blk *base, uint64_t off, uint64_t len,
	unsigned flags, unsigned depth, struct layer *layer)
{
	struct fmt_map_extent e;

	assert_int_equal(fmt_map(top, base, off, UINT64_MAX, NULL, &e), 0);
	assert_int_equal(e.off, off);
	assert_int_equal(e.len, len);
	assert_int_equal(e.flags, flags);
	assert_int_equal(e.depth, depth);
	assert_ptr_equal(e.layer, &layer->b);
	if (flags & BLK_EXT_MAPPED)
		assert_int_equal(e.map, off);
}

#define SEEN_DATA (BLK_EXT_ALLOC | BLK_EXT_DATA | BLK_EXT_MAPPED)
#define SEEN_ZERO (BLK_EXT_ALLOC | BLK_EXT_ZERO)

static void upper_layers_hide_lower_ones(void **state)
{
	struct layer *low = layer_new(SIZE, NULL);
	struct layer *mid = layer_new(SIZE, low);
	struct layer *top = layer_new(SIZE, mid);
	uint8_t got[BLOCK];

	(void)state;
	layer_set(low, 0, 40, DATA, 1);
	layer_set(mid, 8, 8, ZERO, 0);
	layer_set(mid, 20, 4, DATA, 2);
	layer_set(top, 22, 2, DATA, 3);
	assert_extent(&top->b, NULL, 0, 8 * BLOCK, SEEN_DATA, 2, low);
	assert_extent(&top->b, NULL, 8 * BLOCK + 5, 8 * BLOCK - 5, SEEN_ZERO, 1, mid);
	assert_extent(&top->b, NULL, 20 * BLOCK, 2 * BLOCK, SEEN_DATA, 1, mid);
	assert_extent(&top->b, NULL, 22 * BLOCK, 2 * BLOCK, SEEN_DATA, 0, top);
	assert_extent(&top->b, NULL, 40 * BLOCK, 24 * BLOCK, BLK_EXT_ZERO, 2, low);
	/* Down to a base, and not into it. */
	assert_extent(&top->b, &low->b, 0, 8 * BLOCK, 0, 1, mid);
	assert_extent(&top->b, &low->b, 20 * BLOCK, 2 * BLOCK, SEEN_DATA, 1, mid);
	assert_extent(&top->b, &mid->b, 0, 22 * BLOCK, 0, 0, top);
	assert_int_equal(blk_pread(&top->b, 21 * BLOCK, got, BLOCK), 0);
	assert_filled(got, 2, BLOCK);
	layers_close(top);
}

static void a_short_layer_ends_what_it_stands_on(void **state)
{
	struct layer *low = layer_new(SIZE, NULL);
	struct layer *mid = layer_new(10 * BLOCK, low);
	struct layer *top = layer_new(SIZE, mid);
	uint8_t got[2 * BLOCK];

	(void)state;
	layer_set(low, 0, 64, DATA, 1);
	assert_extent(&top->b, NULL, 0, 10 * BLOCK, SEEN_DATA, 2, low);
	assert_extent(&top->b, NULL, 10 * BLOCK, 54 * BLOCK, BLK_EXT_ZERO, 0, top);
	/* Zeroes, not the base's: it has data there. */
	assert_extent(&top->b, &low->b, 10 * BLOCK, 54 * BLOCK, BLK_EXT_ZERO, 0, top);
	assert_int_equal(blk_pread(&top->b, 9 * BLOCK, got, sizeof(got)), 0);
	assert_filled(got, 1, BLOCK);
	assert_filled(got + BLOCK, 0, BLOCK);
	layers_close(top);
}

static void errors_of_status_come_through(void **state)
{
	struct layer *low = layer_new(SIZE, NULL);
	struct layer *top = layer_new(SIZE, low);
	struct fmt_map_extent e;
	uint8_t got[BLOCK];
	uint64_t n;
	bool zero;

	(void)state;
	low->fail_status = 5;
	assert_int_equal(fmt_map(&top->b, NULL, 0, SIZE, NULL, &e), 0);
	assert_int_equal(e.len, 5 * BLOCK);
	assert_int_equal(fmt_map(&top->b, NULL, 5 * BLOCK, SIZE, NULL, &e), -THR_EUCLEAN);
	assert_int_equal(fmt_zero_below(&top->b, 5 * BLOCK, 1, &zero, &n), -THR_EUCLEAN);
	top->b.backing = NULL;
	layers_close(low);

	low = layer_new(SIZE, layer_new(SIZE, NULL));
	top->b.backing = &low->b;
	low->fail_status = 3;
	assert_int_equal(blk_pread(&top->b, 3 * BLOCK, got, BLOCK), -THR_EUCLEAN);
	layers_close(top);
}

/* Reads and maps of random chains, against what was worked out byte by byte. */
static void random_chains_read_as_they_should(void **state)
{
	static uint8_t want[SIZE], got[SIZE];
	uint32_t seed = 11;

	(void)state;
	for (unsigned round = 0; round < 60; round++) {
		struct layer *top = NULL;
		struct fmt_map_extent e;

		for (unsigned n = 1 + rnd(&seed) % 5; n; n--) {
			top = layer_new(n == 1 ? SIZE : (1 + rnd(&seed) % 64) * BLOCK, top);
			layer_scatter(top, &seed, 9);
			top->step = rnd(&seed) % 4;
		}
		layer_expect(top, want);
		for (unsigned i = 0; i < 40; i++) {
			uint64_t off = rnd(&seed) % SIZE;
			size_t len = 1 + rnd(&seed) % (SIZE - off);

			assert_int_equal(blk_pread(&top->b, off, got, len), 0);
			assert_memory_equal(got, want + off, len);
		}
		for (uint64_t off = 0; off < SIZE; off += e.len) {
			uint64_t n;
			bool zero;

			assert_int_equal(fmt_map(&top->b, NULL, off, SIZE, NULL, &e), 0);
			assert_true(e.len && off + e.len <= SIZE);
			if (e.flags & BLK_EXT_ZERO)
				assert_filled(want + off, 0, e.len);
			else
				assert_memory_equal(
					want + off, layer_of(e.layer)->data + e.map, e.len);
			assert_int_equal(fmt_zero_below(&top->b, off, e.len, &zero, &n), 0);
			assert_true(n && n <= e.len);
			if (zero && e.depth)
				assert_filled(want + off, 0, n);
		}
		layers_close(top);
	}
}

static void longest_chain_takes_no_stack(void **state)
{
	struct layer *low = layer_new(SIZE, NULL);
	struct layer *top = low;
	uint8_t got[BLOCK];

	(void)state;
	layer_set(low, 0, 64, DATA, 9);
	for (unsigned i = 0; i < 5000; i++)
		top = layer_new(SIZE, top);
	assert_extent(&top->b, NULL, 0, SIZE, SEEN_DATA, 5000, low);
	assert_int_equal(blk_pread(&top->b, 0, got, BLOCK), 0);
	assert_filled(got, 9, BLOCK);
	assert_int_equal(fmt_close(&top->b), 0);
}

/* ---- names --------------------------------------------------------------------------- */

static void names_are_relative_to_the_folder(void **state)
{
	static const struct {
		const char *image, *name, *path;
	} rows[] = {
		{"a", "b", "b"},
		{"dir/a", "b", "dir/b"},
		{"dir/a", "../b", "dir/../b"},
		{"/x/y/a", "b", "/x/y/b"},
		{"/x/y/a", "/b", "/b"},
		{"./a", "b", "./b"},
		{"dir/a", "nbd://host/b", "nbd://host/b"},
		{"dir/a", "json:{}", "json:{}"},
		{"dir/a", "./b:c", "dir/./b:c"},
		{"nbd://host/a", "b", "nbd://host/b"},
		{"file:a", "b", "file:b"},
		{"dir:x/a", "b", "dir:x/b"},
		{"a", "", ""},
	};
	char buf[32];

	(void)state;
	for (size_t i = 0; i < THR_ARRAY_SIZE(rows); i++) {
		assert_int_equal(
			fmt_backing_path(rows[i].image, rows[i].name, buf, sizeof(buf)), 0);
		assert_string_equal(buf, rows[i].path);
	}
	assert_int_equal(fmt_backing_path("dir/a", "b", buf, 5), -THR_ENAMETOOLONG);
	assert_int_equal(fmt_backing_path("dir/a", "b", buf, 6), 0);
	assert_int_equal(fmt_backing_path("dir/a", "b", buf, 4), -THR_ENAMETOOLONG);
	assert_int_equal(fmt_backing_path("dir/a", "b", buf, 0), -THR_ENAMETOOLONG);
}

/* ---- opening --------------------------------------------------------------------------- */

static void make(const char *name, const char *backing, const char *format)
{
	struct fmt_create c = {
		.name = name,
		.format = "qcow2",
		.size = 1 << 20,
		.has_size = true,
		.backing = backing,
		.backing_format = format,
		.unsafe_backing = true,
		.mem = &thr_heap,
	};

	assert_int_equal(fmt_create(&c, NULL), 0);
}

static int open_chain(struct blk **out, const char *name, unsigned flags, struct blk_err *err)
{
	struct fmt_open o = {.name = name, .flags = flags, .mem = &thr_heap};

	*err = (struct blk_err)BLK_ERR_INIT;
	return fmt_open(out, &o, err);
}

static int open_in_fiber(void *arg)
{
	struct blk_err err;

	return open_chain(arg, "top", 0, &err);
}

static void chains_are_opened_whole(void **state)
{
	struct blk_err err;
	struct blk *b;

	(void)state;
	make("base", NULL, NULL);
	make("mid", "base", "qcow2");
	make("top", "./mid", "qcow2");
	assert_int_equal(open_chain(&b, "top", 0, &err), 0);
	assert_string_equal(b->backing->backing->file->name, "./base");
	assert_string_equal(b->backing->file->name, "./mid");
	assert_null(b->backing->backing->backing);
	assert_false(b->backing->flags & BLK_RDWR);
	assert_int_equal(fmt_close(b), 0);
	assert_int_equal(open_chain(&b, "top", FMT_NO_BACKING, &err), 0);
	assert_null(b->backing);
	assert_int_equal(fmt_close(b), 0);
	assert_int_equal(in_pool(1, open_in_fiber, &b), 0);
	assert_non_null(b->backing->backing);
	assert_int_equal(fmt_close(b), 0);
}

static void what_must_not_be_opened(void **state)
{
	struct blk_err err;
	struct blk *b;

	(void)state;
	make("orphan", "gone", "qcow2");
	assert_int_equal(open_chain(&b, "orphan", 0, &err), -THR_ENOENT);
	assert_string_equal(err.file, "gone");
	assert_int_equal(open_chain(&b, "orphan", FMT_NO_BACKING, &err), 0);
	fmt_close(b);
	assert_int_equal(open_chain(&b, "orphan", FMT_UNTRUSTED, &err), -THR_EACCES);
	assert_int_equal(err.id, BLK_E_UNTRUSTED_NAME);
	assert_string_equal(err.str, "gone");
	make("base", NULL, NULL);
	assert_int_equal(open_chain(&b, "base", FMT_UNTRUSTED, &err), 0);
	fmt_close(b);
	assert_int_equal(blk_create("junk", 4096, BLK_PREALLOC_OFF, &thr_heap, NULL), 0);
	make("odd", "junk", "qcow2");
	assert_int_equal(open_chain(&b, "odd", 0, &err), -THR_EINVAL);
	assert_int_equal(err.id, BLK_E_NOT_FORMAT);
	assert_string_equal(err.file, "junk");
	assert_int_equal(open_chain(&b, "base", FMT_NEED_FORMAT, &err), -THR_EINVAL);
	assert_int_equal(err.id, BLK_E_FORMAT_NEEDED);
	assert_int_equal(open_chain(&b, "nowhere", 0, &err), -THR_ENOENT);
}

#ifdef CONFIG_FMT_JSON
static void names_in_json_are_names(void **state)
{
	static const char *const text = "json:{\"driver\":\"qcow2\",\"file\":{\"driver\":"
					"\"file\",\"filename\":\"base\"}}";
	struct blk_err err;
	struct blk *b;

	(void)state;
	make("base", NULL, NULL);
	make("over", text, "qcow2");
	assert_int_equal(open_chain(&b, "over", 0, &err), 0);
	assert_string_equal(b->backing->file->name, "base");
	assert_int_equal(fmt_close(b), 0);
	assert_int_equal(open_chain(&b, "over", FMT_UNTRUSTED, &err), -THR_EACCES);
	assert_int_equal(err.id, BLK_E_UNTRUSTED_NAME);
	/* The user's own name. */
	assert_int_equal(open_chain(&b, text, FMT_UNTRUSTED, &err), 0);
	assert_int_equal(fmt_close(b), 0);
	assert_int_equal(open_chain(&b, "json:{\"driver\":1 2}", 0, &err), -THR_EINVAL);
	assert_int_equal(err.id, BLK_E_JSON);
	assert_in_range(err.off, 16, 18);
}
#endif

static void options_name_the_image_below(void **state)
{
	static const struct blk_opt v[] = {
		{"driver", "qcow2"},
		{"file.filename", "orphan"},
		{"backing.driver", "qcow2"},
		{"backing.file.filename", "base"},
		{"encrypt.key-secret", "key"},
	};
	static const struct fmt_secret key = {"key", (const uint8_t *)"k", 1};
	const struct blk_opts opts = {v, THR_ARRAY_SIZE(v)};
	const struct fmt_secrets secrets = {&key, 1};
	struct fmt_open o = {.opts = &opts, .flags = FMT_UNTRUSTED, .mem = &thr_heap};
	struct blk_err err = BLK_ERR_INIT;
	struct blk *b;

	(void)state;
	make("base", NULL, NULL);
	make("orphan", "gone", "qcow2");
	assert_int_equal(fmt_open(&b, &o, &err), -THR_EINVAL);
	assert_int_equal(err.id, BLK_E_NO_SECRET);
	o.secrets = &secrets;
	assert_int_equal(fmt_open(&b, &o, &err), 0);
	assert_string_equal(b->backing->file->name, "base");
	assert_int_equal(fmt_close(b), 0);
}

static void loops_end(void **state)
{
	struct blk_err err;
	struct blk *b;

	(void)state;
	make("self", "self", "qcow2");
	assert_int_equal(open_chain(&b, "self", 0, &err), -THR_ELOOP);
	assert_int_equal(err.id, BLK_E_CHAIN_LOOP);
	make("a", "b", "qcow2");
	make("b", "./c", "qcow2");
	make("c", "a", "qcow2");
	assert_int_equal(open_chain(&b, "a", 0, &err), -THR_ELOOP);
	assert_int_equal(err.id, BLK_E_CHAIN_LOOP);
	/* The same file by another name. */
	make("base", NULL, NULL);
	unlink("other");
	assert_int_equal(link("base", "other"), 0);
	make("mid", "other", "qcow2");
	make("base", "mid", "qcow2");
	assert_int_equal(open_chain(&b, "mid", 0, &err), -THR_ELOOP);
	assert_int_equal(err.id, BLK_E_CHAIN_LOOP);
}

static void long_chains_end(void **state)
{
	char name[16], below[16] = "";
	struct blk_err err;
	struct blk *b;

	(void)state;
	for (unsigned i = 0; i <= FMT_CHAIN_MAX; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		make(name, i ? below : NULL, i ? "qcow2" : NULL);
		memcpy(below, name, sizeof(below));
	}
	snprintf(name, sizeof(name), "n%u", FMT_CHAIN_MAX - 1);
	assert_int_equal(open_chain(&b, name, 0, &err), 0);
	assert_int_equal(fmt_close(b), 0);
	snprintf(name, sizeof(name), "n%u", FMT_CHAIN_MAX);
	assert_int_equal(open_chain(&b, name, 0, &err), -THR_ELOOP);
	assert_int_equal(err.id, BLK_E_CHAIN_LONG);
}

static int remake(const char *name, const char *format, const char *backing,
	const char *backing_format, struct blk_err *err)
{
	struct fmt_create c = {
		.name = name,
		.format = format,
		.backing = backing,
		.backing_format = backing_format,
		.mem = &thr_heap,
	};

	*err = (struct blk_err)BLK_ERR_INIT;
	return fmt_create(&c, err);
}

static void creating_looks_before_it_writes(void **state)
{
	struct blk_err err;

	(void)state;
	make("base", NULL, NULL);
	assert_int_equal(remake("new", "qcow2", NULL, NULL, &err), -THR_EINVAL);
	assert_int_equal(err.id, BLK_E_NEED_SIZE);
	assert_int_equal(remake("new", "qcow2", "base", NULL, &err), -THR_EINVAL);
	assert_int_equal(err.id, BLK_E_BACKING_NO_FORMAT);
	assert_int_equal(remake("new", "qcow2", NULL, "raw", &err), -THR_EINVAL);
	assert_int_equal(err.id, BLK_E_FORMAT_NO_BACKING);
	assert_int_equal(remake("new", "raw", "base", "qcow2", &err), -THR_ENOTSUP);
	assert_int_equal(err.id, BLK_E_NO_BACKING);
	assert_int_equal(remake("new", "qcow2", "base", "nothing", &err), -THR_EINVAL);
	assert_int_equal(err.id, BLK_E_NO_FORMAT);
	assert_int_equal(remake("new", "nothing", NULL, NULL, &err), -THR_EINVAL);
	assert_int_equal(err.id, BLK_E_NO_FORMAT);
	assert_int_equal(remake("new", "qcow2", "gone", "raw", &err), -THR_ENOENT);
	assert_int_equal(access("new", F_OK), -1);
	assert_int_equal(remake("new", "qcow2", "base", "qcow2", &err), 0);
	assert_int_equal(access("new", F_OK), 0);
	/* What was there stays there. */
	assert_int_equal(remake("new", "qcow2", "gone", "raw", &err), -THR_ENOENT);
	assert_int_equal(access("new", F_OK), 0);
	unlink("new");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(upper_layers_hide_lower_ones),
		cmocka_unit_test(a_short_layer_ends_what_it_stands_on),
		cmocka_unit_test(errors_of_status_come_through),
		cmocka_unit_test(random_chains_read_as_they_should),
		cmocka_unit_test(longest_chain_takes_no_stack),
		cmocka_unit_test(names_are_relative_to_the_folder),
		cmocka_unit_test(chains_are_opened_whole),
		cmocka_unit_test(what_must_not_be_opened),
#ifdef CONFIG_FMT_JSON
		cmocka_unit_test(names_in_json_are_names),
#endif
		cmocka_unit_test(options_name_the_image_below),
		cmocka_unit_test(loops_end),
		cmocka_unit_test(long_chains_end),
		cmocka_unit_test(creating_looks_before_it_writes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
