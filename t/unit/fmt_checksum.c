/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Checksums: the published vectors; what the construction says, worked out block by
 * block, for any lengths, extents, block sizes, threads and fibers; nothing that is known
 * to be zero is read; errors are told in the order of the image; streams.
 */
#include "cz/cz.h"
#include "t/unit/fmt_util.h"

#define SIZE   (3u << 20)
#define BLOCKS (SIZE / BLOCK)

struct job {
	struct fmt_checksum c;
	struct blk_err err;
};

static int sum_up(void *arg)
{
	struct job *j = arg;

	return fmt_checksum(&j->c, &j->err);
}

static int run(struct job *j, unsigned threads)
{
	j->err = (struct blk_err)BLK_ERR_INIT;
	memset(j->c.sum, 0, sizeof(j->c.sum));
	return in_pool(threads, sum_up, j);
}

static const unsigned threads[] = {0, 1, 2, 5};

/* ---- what it has to be -------------------------------------------------------------- */

static size_t expect(uint8_t *sum, const char *digest, uint32_t block, bool plain,
	const uint8_t *p, size_t len)
{
	int id = cz_digest_find(digest);
	size_t size = cz_digest_size((enum cz_digest_id)id);
	struct cz_digest_ctx *d;
	uint8_t one[CZ_DIGEST_MAX];
	uint8_t le[8];

	assert_int_equal(cz_digest_new(&d, &thr_heap, (enum cz_digest_id)id), 0);
	for (size_t off = 0; !plain && off < len; off += block) {
		assert_int_equal(cz_digest((enum cz_digest_id)id, p + off,
					 THR_MIN(block, len - off), one),
			0);
		assert_int_equal(cz_digest_update(d, one, size), 0);
	}
	thr_put_le64(le, len);
	assert_int_equal(plain ? cz_digest_update(d, p, len) : cz_digest_update(d, le, 8), 0);
	assert_int_equal(cz_digest_final(d, sum), 0);
	cz_digest_free(d);
	return size;
}

static void assert_sum(const struct job *j, const char *digest, uint32_t block, bool plain,
	const uint8_t *p, size_t len)
{
	uint8_t sum[CZ_DIGEST_MAX];
	size_t size = expect(sum, digest, block, plain, p, len);

	assert_int_equal(j->c.sum_len, size);
	assert_int_equal(j->c.length, len);
	assert_memory_equal(j->c.sum, sum, size);
}

static void assert_hex(const struct job *j, const char *hex)
{
	char text[2 * FMT_DIGEST_MAX + 1];

	for (size_t i = 0; i < j->c.sum_len; i++)
		snprintf(text + 2 * i, 3, "%02x", j->c.sum[i]);
	assert_string_equal(text, hex);
}

/* ---- vectors ---------------------------------------------------------------------------- */

static void sum_of_mem(struct job *j, void *buf, uint64_t size)
{
	struct blk *file, *image;

	assert_int_equal(blk_mem_open(&file, buf, size, 0, &thr_heap, NULL), 0);
	assert_int_equal(open_as(&image, file, "raw", 0, NULL), 0);
	j->c.image = image;
	assert_int_equal(run(j, 2), 0);
	blk_close(image);
}

static void vectors_of_files(void **state)
{
	static uint8_t buf[1 << 20];
	struct job j = {0};

	(void)state;
	sum_of_mem(&j, buf, 0);
	assert_hex(&j, "af5570f5a1810b7af78caf4bc70a660f0df51e42baf91d4de5b2328de0e83dfc");
	sum_of_mem(&j, buf, 65537);
	assert_hex(&j, "0288cd419e65f11047a16b54cd65565547115cd2dd2fa9433e5cc3fa4d464ead");
	buf[0] = 'A';
	sum_of_mem(&j, buf, 1);
	assert_hex(&j, "11ce619e301aa30251795d3ccecfd8fe0b8046570c6a23e6f718560d4f3a3cc9");
	memset(buf, 0xab, sizeof(buf));
	sum_of_mem(&j, buf, sizeof(buf));
	assert_hex(&j, "35755eec2ba385351a26ceccf588f34e5374e144972dd656372c950877321633");
	for (unsigned i = 0; i < 256 * 1024; i++)
		buf[i] = (uint8_t)i;
	memset(buf + 256 * 1024, 0, 300000);
	memcpy(buf + 256 * 1024 + 300000, "xyz", 3);
	sum_of_mem(&j, buf, 562147);
	assert_hex(&j, "3ca9914930fd93e43ea96c4a72416b7bd0f0009f8fe3efb720b5004f656e244b");
}

static void vector_of_long_zeroes(void **state)
{
	struct blk *disk = disk_new("6G", &thr_heap);
	struct job j = {.c = {.image = disk}};

	(void)state;
	for (unsigned t = 0; t < THR_ARRAY_SIZE(threads); t++) {
		assert_int_equal(run(&j, threads[t]), 0);
		assert_hex(
			&j, "af207a381633092b0d1d945edbc0544ff05637a67fb66d93c1b1363c26e776d9");
	}
	blk_close(disk);
}

/* ---- images -------------------------------------------------------------------------------
 */

static const uint32_t sizes[] = {512, 4096, 65536, 1 << 20};

static void check_layer(struct layer *top, unsigned i)
{
	uint64_t len = blk_size(&top->b);
	uint8_t *content = malloc(len + 1);
	struct job j = {.c = {.image = &top->b, .block = sizes[i % 4]}};

	layer_expect(top, content);
	for (unsigned t = 0; t < THR_ARRAY_SIZE(threads); t++) {
		j.c.fibers = t == 3 ? 32 : t;
		j.c.plain = false;
		assert_int_equal(run(&j, threads[t]), 0);
		assert_sum(&j, "sha256", sizes[i % 4], false, content, len);
		j.c.plain = true;
		assert_int_equal(run(&j, threads[t]), 0);
		assert_sum(&j, "sha256", 0, true, content, len);
	}
	if (!top->b.backing)
		assert_int_equal(top->idle_reads, 0);
	free(content);
}

static void any_extents_give_the_sum_of_the_content(void **state)
{
	static const unsigned longest[] = {3, 20, 300, 2000};
	uint32_t seed = 11;

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		struct layer *l = layer_new(SIZE, NULL);

		layer_scatter(l, &seed, longest[i / 2]);
		l->step = i % 3 ? 0 : 5;
		check_layer(l, i);
		layers_close(l);
	}
}

static void many_extents_in_a_block(void **state)
{
	struct layer *l = layer_new(SIZE, NULL);
	struct job j = {.c = {.image = &l->b, .block = 1 << 20}};

	(void)state;
	for (unsigned i = 0; i < BLOCKS; i += 2)
		layer_set(l, i, 1, DATA, (uint8_t)(i * 7 + 1));
	for (unsigned t = 0; t < 2; t++) {
		assert_int_equal(run(&j, 2), 0);
		assert_sum(&j, "sha256", 1 << 20, false, l->data, SIZE);
		assert_int_equal(l->idle_reads, 0);
		l->step = 1;
	}
	layers_close(l);
}

static void any_length(void **state)
{
	static const uint64_t lengths[] = {512, 1024, 65536 - 512, 65536, 65536 + 512,
		(256 << 10) - 512, 256 << 10, (256 << 10) + 512, (512 << 10) + 512,
		(1 << 20) - 512, 1 << 20, (1 << 20) + 1536};
	uint32_t seed = 3;

	(void)state;
	for (unsigned i = 0; i < THR_ARRAY_SIZE(lengths); i++)
		for (unsigned kind = 0; kind < 4; kind++) {
			struct layer *l = layer_new(lengths[i], NULL);

			layer_set(l, 0, lengths[i] / BLOCK, (enum kind)(kind % 3), 1);
			if (kind == 3)
				layer_scatter(l, &seed, 100);
			else if (kind != DATA)
				memset(l->data, 0, lengths[i]);
			check_layer(l, i + kind);
			layers_close(l);
		}
}

static void chains_too(void **state)
{
	uint32_t seed = 21;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct layer *base = layer_new(SIZE - 1234 * BLOCK, NULL);
		struct layer *top = layer_new(SIZE, base);

		layer_scatter(base, &seed, 200);
		layer_scatter(top, &seed, 200);
		top->compressed = i % 2;
		check_layer(top, i);
		layers_close(top);
	}
}

/* Written zeroes are read, found and not hashed, and sum up as those that are absent. */
static void written_zeroes_are_as_good(void **state)
{
	struct layer *l = layer_new(SIZE, NULL);
	struct job j = {.c = {.image = &l->b}};
	uint8_t sum[FMT_DIGEST_MAX];

	(void)state;
	layer_set(l, 100, 300, DATA, 4);
	assert_int_equal(run(&j, 2), 0);
	memcpy(sum, j.c.sum, sizeof(sum));
	layer_set(l, 0, 100, DATA, 0);
	layer_set(l, 400, BLOCKS - 400, DATA, 0);
	assert_int_equal(run(&j, 2), 0);
	assert_memory_equal(j.c.sum, sum, sizeof(sum));
	/* A last block that is short and zero has a digest of its own. */
	blk_set_size(&l->b, SIZE - BLOCK);
	for (unsigned i = 0; i < 3; i++) {
		layer_set(l, 5000, BLOCKS - 5000, (enum kind)i, 0);
		assert_int_equal(run(&j, 2), 0);
		assert_sum(&j, "sha256", 65536, false, l->data, SIZE - BLOCK);
	}
	layers_close(l);
}

static void digests_by_name(void **state)
{
	struct layer *l = layer_new(SIZE, NULL);
	struct job j = {.c = {.image = &l->b}};

	(void)state;
	layer_set(l, 1000, 2000, DATA, 9);
	for (int id = 0; id < CZ_DIGESTS; id++) {
		j.c.digest = cz_digest_name((enum cz_digest_id)id);
		assert_int_equal(run(&j, 2), 0);
		assert_sum(&j, j.c.digest, 65536, false, l->data, SIZE);
	}
	j.c.digest = "sha512-256";
	j.c.plain = true;
	assert_int_equal(run(&j, 2), 0);
	assert_int_equal(j.c.sum_len, 32);
	j.c.digest = "sha257";
	assert_int_equal(run(&j, 2), -THR_ENOTSUP);
	assert_int_equal(j.err.id, BLK_E_BAD_VALUE);
	assert_string_equal(j.err.str, "digest");
	j.c.digest = NULL;
	j.c.block = 1000;
	assert_int_equal(run(&j, 2), -THR_EINVAL);
	layers_close(l);
}

/* A raw image ends with whole sectors; what is hashed plainly is the file. */
static void plain_ends_with_the_file(void **state)
{
	static uint8_t buf[70000];
	struct job j = {.c = {.plain = true}};

	(void)state;
	memset(buf, 5, sizeof(buf));
	for (unsigned n = 1; n < sizeof(buf); n = n * 3 + 1) {
		sum_of_mem(&j, buf, n);
		assert_sum(&j, "sha256", 0, true, buf, n);
	}
}

/* ---- streams --------------------------------------------------------------------------------
 */

struct stream {
	const uint8_t *p;
	size_t len, at, step;
	size_t fail_at; /* 0: never */
};

static int stream_read(void *ctx, void *buf, size_t len, size_t *got)
{
	struct stream *s = ctx;
	size_t n = THR_MIN(THR_MIN(len, s->step), s->len - s->at);

	if (s->fail_at && s->at + n > s->fail_at)
		return -THR_EIO;
	if (n)
		memcpy(buf, s->p + s->at, n);
	s->at += n;
	*got = n;
	return 0;
}

static void streams_are_read_once(void **state)
{
	static const size_t lengths[] = {
		0, 1, 511, 65535, 65536, 65537, 262143, 262144, 262145, 3000001};
	static const size_t steps[] = {SIZE_MAX, 65536, 1000};
	uint8_t *p = calloc(1, 3000001);
	uint32_t seed = 8;

	(void)state;
	for (unsigned i = 0; i < 1000000; i++)
		p[i] = (uint8_t)rnd(&seed);
	for (unsigned i = 0; i < THR_ARRAY_SIZE(lengths); i++)
		for (unsigned t = 0; t < 12; t++) {
			struct stream s = {.p = p, .len = lengths[i], .step = steps[t % 3]};
			struct job j = {.c = {.read = stream_read,
						.ctx = &s,
						.mem = &thr_heap,
						.plain = t % 2}};

			assert_int_equal(run(&j, threads[t % 4]), 0);
			assert_sum(&j, "sha256", 65536, t % 2, p, lengths[i]);
		}
	free(p);
}

static void vector_of_a_stream(void **state)
{
	struct stream s = {.p = (const uint8_t *)"A", .len = 1, .step = 1};
	struct job j = {.c = {.read = stream_read, .ctx = &s, .mem = &thr_heap}};

	(void)state;
	assert_int_equal(run(&j, 1), 0);
	assert_hex(&j, "60fb4e2bdf7dfc32f8230836f7453a77e665e4a1d3cc117944e0296d40b7800c");
}

static void streams_that_fail_are_told(void **state)
{
	uint8_t *p = calloc(1, SIZE);

	(void)state;
	for (unsigned t = 0; t < THR_ARRAY_SIZE(threads); t++) {
		struct stream s = {.p = p, .len = SIZE, .step = 1000, .fail_at = 1234567};
		struct job j = {.c = {.read = stream_read, .ctx = &s, .mem = &thr_heap}};

		assert_int_equal(run(&j, threads[t]), -THR_EIO);
		assert_int_equal(j.err.id, BLK_E_READ_AT);
		assert_in_range(j.err.off, 1234567 - 1000, 1234567);
	}
	free(p);
}

/* ---- errors
 * ---------------------------------------------------------------------------------- */

static void reads_that_fail_are_told_in_order(void **state)
{
	static const uint64_t at[] = {2 << 20, 1 << 20};
	static uint8_t data[SIZE];
	struct blk *disk = disk_new("3M", &thr_heap);
	struct blk *fault;
	struct job j = {0};

	(void)state;
	memset(data, 1, sizeof(data));
	assert_int_equal(blk_pwrite(disk, 0, data, SIZE), 0);
	assert_int_equal(blk_fault_open(&fault, disk, &thr_heap, NULL), 0);
	j.c.image = fault;
	for (unsigned i = 0; i < 2; i++) {
		struct blk_fault rule = {.ops = 1u << BLK_OP_READ,
			.off = at[i],
			.len = 1,
			.err = -THR_EIO,
			.always = true};

		assert_int_equal(blk_fault_add(fault, &rule), 0);
		for (unsigned t = 0; t < 8; t++) {
			j.c.plain = t % 2;
			assert_int_equal(run(&j, threads[t / 2]), -THR_EIO);
			assert_int_equal(j.err.id, BLK_E_READ_AT);
			assert_int_equal(j.err.off, at[i]);
		}
	}
	blk_close(fault);
}

static void maps_that_fail_are_told(void **state)
{
	struct layer *l = layer_new(SIZE, NULL);
	struct job j = {.c = {.image = &l->b}};

	(void)state;
	layer_set(l, 0, BLOCKS, DATA, 1);
	l->fail_status = 3000;
	for (unsigned t = 0; t < THR_ARRAY_SIZE(threads); t++) {
		assert_int_equal(run(&j, threads[t]), -THR_EUCLEAN);
		assert_int_equal(j.err.id, BLK_E_MAP_AT);
		assert_int_equal(j.err.off, 3000 * BLOCK);
	}
	layers_close(l);
}

static void any_allocation_may_fail(void **state)
{
	struct layer *l = layer_new(SIZE, NULL);
	unsigned n = 0, errors = 0;
	struct purse p;

	(void)state;
	layer_set(l, 0, BLOCKS, DATA, 1);
	do {
		struct job j = {.c = {.image = &l->b, .plain = n % 4 > 1}};
		int ret;

		purse_init(&p);
		p.fail_at = ++n / 4 + 1;
		l->b.mem = &p.mem;
		ret = run(&j, n % 2 ? 2 : 0);
		assert_int_equal(p.live, 0);
		assert_true(ret == 0 || ret == -THR_ENOMEM);
		if (ret)
			assert_int_equal(j.err.code, -THR_ENOMEM);
		else
			assert_sum(&j, "sha256", 65536, j.c.plain, l->data, SIZE);
		errors += ret != 0;
	} while (p.calls >= p.fail_at || n % 4);
	assert_true(errors);
	l->b.mem = &thr_heap;
	layers_close(l);
}

static void progress_goes_up_to_the_end(void **state)
{
	uint32_t seed = 4;
	struct layer *l = layer_new(SIZE, NULL);

	(void)state;
	layer_scatter(l, &seed, 500);
	for (unsigned t = 0; t < 8; t++) {
		struct seen s = {0};
		struct job j = {.c = {.image = &l->b, .plain = t % 2, .progress = {see, &s}}};

		assert_int_equal(run(&j, threads[t / 2]), 0);
		assert_int_equal(s.last, SIZE);
		assert_int_equal(s.total, SIZE);
	}
	layers_close(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vectors_of_files),
		cmocka_unit_test(vector_of_long_zeroes),
		cmocka_unit_test(vector_of_a_stream),
		cmocka_unit_test(any_extents_give_the_sum_of_the_content),
		cmocka_unit_test(many_extents_in_a_block),
		cmocka_unit_test(any_length),
		cmocka_unit_test(chains_too),
		cmocka_unit_test(written_zeroes_are_as_good),
		cmocka_unit_test(digests_by_name),
		cmocka_unit_test(plain_ends_with_the_file),
		cmocka_unit_test(streams_are_read_once),
		cmocka_unit_test(streams_that_fail_are_told),
		cmocka_unit_test(reads_that_fail_are_told_in_order),
		cmocka_unit_test(maps_that_fail_are_told),
		cmocka_unit_test(any_allocation_may_fail),
		cmocka_unit_test(progress_goes_up_to_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
