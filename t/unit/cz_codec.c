/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/cz_codec.c - the decoders against the encoders of zlib and libzstd:
 * round trips, streams that are cut, damaged, padded or too long, and memory
 * that runs out. Source and destination are heap blocks of the exact size with
 * canaries, so that a byte too far shows with and without ASan.
 */
#include "t/unit/cz_util.h"

#ifdef CONFIG_CZ_DEFLATE
#include <zlib.h>
#endif
#ifdef CONFIG_CZ_ZSTD
#include <zstd.h>
#endif

/* ---- encoders: returns the length of the stream -------------------------- */

#ifdef CONFIG_CZ_DEFLATE
static size_t enc_zlib(
	uint8_t *out, size_t cap, const uint8_t *in, size_t len, int level, int bits, int how)
{
	z_stream z = {0};
	size_t n;

	assert_int_equal(deflateInit2(&z, level, Z_DEFLATED, bits, 9, how), Z_OK);
	z.next_in = (Bytef *)in;
	z.avail_in = (uInt)len;
	z.next_out = out;
	z.avail_out = (uInt)cap;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	n = cap - z.avail_out;
	deflateEnd(&z);
	return n;
}

static size_t enc_stored(uint8_t *out, size_t cap, const uint8_t *in, size_t len)
{
	return enc_zlib(out, cap, in, len, 0, -15, Z_DEFAULT_STRATEGY);
}

static size_t enc_12bit(uint8_t *out, size_t cap, const uint8_t *in, size_t len)
{
	return enc_zlib(out, cap, in, len, 6, -12, Z_DEFAULT_STRATEGY);
}

static size_t enc_best(uint8_t *out, size_t cap, const uint8_t *in, size_t len)
{
	return enc_zlib(out, cap, in, len, 9, -15, Z_DEFAULT_STRATEGY);
}

static size_t enc_fixed(uint8_t *out, size_t cap, const uint8_t *in, size_t len)
{
	return enc_zlib(out, cap, in, len, 6, -15, Z_FIXED);
}

static size_t enc_huffman(uint8_t *out, size_t cap, const uint8_t *in, size_t len)
{
	return enc_zlib(out, cap, in, len, 6, -15, Z_HUFFMAN_ONLY);
}
#endif

#ifdef CONFIG_CZ_ZSTD
static size_t enc_zstd_with(uint8_t *out, size_t cap, const uint8_t *in, size_t len, int level,
	bool sum, bool size, int window)
{
	ZSTD_CCtx *c = ZSTD_createCCtx();
	ZSTD_outBuffer o = {out, cap, 0};
	ZSTD_inBuffer none = {in, 0, 0}, i = {in, len, 0};

	ZSTD_CCtx_setParameter(c, ZSTD_c_compressionLevel, level);
	ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, sum);
	ZSTD_CCtx_setParameter(c, ZSTD_c_windowLog, window);
	/* An empty first call hides the size from the encoder. */
	if (!size)
		assert_false(ZSTD_isError(ZSTD_compressStream2(c, &o, &none, ZSTD_e_continue)));
	assert_int_equal(ZSTD_compressStream2(c, &o, &i, ZSTD_e_end), 0);
	ZSTD_freeCCtx(c);
	return o.pos;
}

static size_t enc_zstd(uint8_t *out, size_t cap, const uint8_t *in, size_t len)
{
	return enc_zstd_with(out, cap, in, len, 3, false, true, 0);
}

static size_t enc_zstd_sum(uint8_t *out, size_t cap, const uint8_t *in, size_t len)
{
	return enc_zstd_with(out, cap, in, len, 1, true, true, 0);
}

static size_t enc_zstd_sizeless(uint8_t *out, size_t cap, const uint8_t *in, size_t len)
{
	return enc_zstd_with(out, cap, in, len, 3, false, false, 0);
}

static size_t enc_zstd_max(uint8_t *out, size_t cap, const uint8_t *in, size_t len)
{
	return enc_zstd_with(out, cap, in, len, 19, true, false, 0);
}

/* Says that it needs a window of 128 MiB, which is more than we lend. */
static size_t enc_zstd_window(uint8_t *out, size_t cap, const uint8_t *in, size_t len)
{
	return enc_zstd_with(out, cap, in, len, 3, false, false, 27);
}
#endif

struct encoder {
	const char *name;
	enum cz_codec_id id;
	size_t (*encode)(uint8_t *out, size_t cap, const uint8_t *in, size_t len);
	const struct cz_codec *decoder;
};

static const struct encoder encoders[] = {
#ifdef CONFIG_CZ_DEFLATE
	{"zlib stored", CZ_DEFLATE, enc_stored, NULL},
	{"zlib 12 bits", CZ_DEFLATE, enc_12bit, NULL},
	{"zlib best", CZ_DEFLATE, enc_best, NULL},
	{"zlib fixed", CZ_DEFLATE, enc_fixed, NULL},
	{"zlib huffman", CZ_DEFLATE, enc_huffman, NULL},
#endif
#ifdef CONFIG_CZ_ZSTD
	{"zstd", CZ_ZSTD, enc_zstd, NULL},
	{"zstd checksum", CZ_ZSTD, enc_zstd_sum, NULL},
	{"zstd without size", CZ_ZSTD, enc_zstd_sizeless, NULL},
	{"zstd max", CZ_ZSTD, enc_zstd_max, NULL},
	{"zstd wide window", CZ_ZSTD, enc_zstd_window, NULL},
#endif
	{.name = NULL},
};

/* Each of them with each decoder that there is for it. */
static struct encoder pairs[2 * THR_ARRAY_SIZE(encoders)];

static void make_pairs(void)
{
	unsigned n = 0;

	for (unsigned i = 0; encoders[i].name; i++) {
		const struct cz_codec *c;

		for (unsigned k = 0; (c = cz_codec_built(k)); k++) {
			if (c->id != encoders[i].id)
				continue;
			THR_ASSERT(n < THR_ARRAY_SIZE(pairs) - 1);
			pairs[n] = encoders[i];
			pairs[n++].decoder = c;
		}
	}
}

/* ---- decoding with every guard up ----------------------------------------- */

struct dec {
	const struct cz_codec *c;
	struct thr_alloc mem;
	struct counter counter;
	void *ctx;
	uint8_t *stream; /* of the data below, with room behind it */
	size_t slen, cap;
	uint8_t *data;
	size_t dlen;
};

static void dec_open(struct dec *d, const struct encoder *e, size_t len, enum data_kind kind)
{
	memset(d, 0, sizeof(*d));
	d->c = e->decoder;
	d->mem = (struct thr_alloc){counter_get, counter_put, &d->counter};
	d->ctx = aligned_alloc(16, thr_align_up(d->c->decode_ctx_size, 16));
	assert_non_null(d->ctx);
	/* A context is not cleared memory. */
	memset(d->ctx, 0xa5, d->c->decode_ctx_size);
	d->dlen = len;
	d->cap = len + len / 4 + 1024;
	d->data = malloc(len + 1);
	d->stream = malloc(d->cap);
	assert_true(d->data && d->stream);
	fill(d->data, len, kind);
	d->slen = e->encode(d->stream, d->cap, d->data, len);
}

static void dec_init(struct dec *d)
{
	assert_int_equal(d->c->decode_init(d->ctx, &d->mem), 0);
}

static void dec_fini(struct dec *d)
{
	d->c->decode_fini(d->ctx);
	assert_int_equal(d->counter.live, 0);
	assert_int_equal(d->counter.bytes, 0);
}

static void dec_close(struct dec *d)
{
	free(d->ctx);
	free(d->data);
	free(d->stream);
}

/* Decodes @dlen bytes from the first @slen of @src; 0 is only returned when they
 * are what was encoded. *same says so for streams that were meddled with. */
static int dec_run_same(struct dec *d, size_t dlen, const uint8_t *src, size_t slen, bool *same)
{
	uint8_t *s = malloc(slen ? slen : 1), *o = malloc(dlen + 2 * CANARY);
	uint8_t canary[CANARY];
	int err;

	assert_true(s && o);
	memcpy(s, src, slen);
	memset(canary, CANARY_VAL, CANARY);
	memset(o, CANARY_VAL, dlen + 2 * CANARY);
	err = d->c->decode(d->ctx, o + CANARY, dlen, s, slen);
	assert_memory_equal(o, canary, CANARY);
	assert_memory_equal(o + CANARY + dlen, canary, CANARY);
	assert_memory_equal(s, src, slen);
	*same = dlen <= d->dlen && !memcmp(o + CANARY, d->data, dlen);
	free(s);
	free(o);
	return err;
}

static int dec_run(struct dec *d, size_t dlen, const uint8_t *src, size_t slen)
{
	bool same;
	int err = dec_run_same(d, dlen, src, slen, &same);

	if (!err)
		assert_true(same);
	return err;
}

/* ---- tests ---------------------------------------------------------------- */

static void table(void **state)
{
	static const struct {
		enum cz_codec_id id;
		const char *name, *symbol;
		bool built;
	} want[] = {
#ifdef CONFIG_CZ_DEFLATE
		{CZ_DEFLATE, "zlib", "CONFIG_CZ_DEFLATE", true},
#else
		{CZ_DEFLATE, "zlib", "CONFIG_CZ_DEFLATE", false},
#endif
#ifdef CONFIG_CZ_ZSTD
		{CZ_ZSTD, "zstd", "CONFIG_CZ_ZSTD", true},
#else
		{CZ_ZSTD, "zstd", "CONFIG_CZ_ZSTD", false},
#endif
	};
	static const unsigned bad[] = {2, 7, 255, UINT32_MAX};

	(void)state;
	for (unsigned i = 0; i < THR_ARRAY_SIZE(want); i++) {
		const struct cz_codec *c = cz_codec_find(want[i].id);

		assert_string_equal(cz_codec_name(want[i].id), want[i].name);
		assert_string_equal(cz_codec_symbol(want[i].id), want[i].symbol);
		assert_int_equal(c != NULL, want[i].built);
		if (c) {
			assert_string_equal(c->name, want[i].name);
			assert_int_equal(c->id, want[i].id);
		}
	}
	for (unsigned i = 0; i < THR_ARRAY_SIZE(bad); i++) {
		assert_null(cz_codec_find((enum cz_codec_id)bad[i]));
		assert_null(cz_codec_name((enum cz_codec_id)bad[i]));
		assert_null(cz_codec_symbol((enum cz_codec_id)bad[i]));
	}
}

static void registered(void **state)
{
	static const struct cz_codec rom = {.name = "zlib", .id = CZ_DEFLATE};
	const struct cz_codec *was = cz_codec_find(CZ_DEFLATE);
	const struct cz_codec *other = cz_codec_find(CZ_ZSTD);

	(void)state;
	cz_codec_register(&rom);
	assert_ptr_equal(cz_codec_find(CZ_DEFLATE), &rom);
	assert_ptr_equal(cz_codec_find(CZ_ZSTD), other);
	if (was) {
		cz_codec_register(was);
		assert_ptr_equal(cz_codec_find(CZ_DEFLATE), was);
	}
}

static void round_trips(void **state)
{
	static const size_t lens[] = {1, 2, 511, 512, 4096, 65536, 65537, 300000};

	(void)state;
	for (const struct encoder *e = pairs; e->name; e++) {
		for (unsigned i = 0; i < THR_ARRAY_SIZE(lens) * DATA_KINDS; i++) {
			struct dec d;

			dec_open(&d, e, lens[i / DATA_KINDS], i % DATA_KINDS);
			dec_init(&d);
			/* Twice: a context is used over and over. */
			assert_int_equal(dec_run(&d, d.dlen, d.stream, d.slen), 0);
			assert_int_equal(dec_run(&d, d.dlen, d.stream, d.slen), 0);
			assert_int_equal(dec_run(&d, 0, d.stream, d.slen), 0);
			dec_fini(&d);
			dec_close(&d);
		}
	}
}

static void garbage_behind(void **state)
{
	static const size_t behind[] = {1, 3, 8, 511, 700};

	(void)state;
	for (const struct encoder *e = pairs; e->name; e++) {
		for (unsigned i = 0; i < THR_ARRAY_SIZE(behind) * 3; i++) {
			size_t n = behind[i / 3];
			struct dec d;

			dec_open(&d, e, 4096, DATA_WORDS);
			dec_init(&d);
			assert_true(d.slen + n <= d.cap);
			if (i % 3 == 2) /* another stream, or a part of one */
				memmove(d.stream + d.slen, d.stream, THR_MIN(n, d.slen));
			else
				memset(d.stream + d.slen, i % 3 ? 0xff : 0, n);
			if (i % 3 == 2 && n > d.slen)
				n = d.slen;
			assert_int_equal(dec_run(&d, d.dlen, d.stream, d.slen + n), 0);
			dec_fini(&d);
			dec_close(&d);
		}
	}
}

/* A stream cut anywhere: -EIO, or all bytes where only its end mark is gone. */
static void cut(void **state)
{
	(void)state;
	for (const struct encoder *e = pairs; e->name; e++) {
		for (int kind = 0; kind < DATA_KINDS; kind++) {
			struct dec d;
			unsigned whole = 0;

			dec_open(&d, e, 700, kind);
			dec_init(&d);
			for (size_t n = 0; n < d.slen; n++) {
				int err = dec_run(&d, d.dlen, d.stream, n);

				assert_true(!err || err == -THR_EIO);
				whole += !err;
			}
			/* An end mark, or a zstd checksum. */
			assert_in_range(whole, 0, 7);
			assert_int_equal(dec_run(&d, d.dlen, d.stream, d.slen), 0);
			dec_fini(&d);
			dec_close(&d);
		}
	}
}

/* Every single bit flipped: no byte out of place, and never an unknown error. */
static void damaged(void **state)
{
	(void)state;
	for (const struct encoder *e = pairs; e->name; e++) {
		for (int kind = 0; kind < DATA_KINDS; kind++) {
			unsigned found = 0, bits;
			struct dec d;

			dec_open(&d, e, 300, kind);
			dec_init(&d);
			bits = (unsigned)d.slen * 8;
			for (unsigned i = 0; i < bits; i++) {
				bool same;
				int err;

				d.stream[i / 8] ^= (uint8_t)(1 << i % 8);
				err = dec_run_same(&d, d.dlen, d.stream, d.slen, &same);
				d.stream[i / 8] ^= (uint8_t)(1 << i % 8);
				assert_true(!err || err == -THR_EIO);
				found += err || !same;
			}
			assert_true(found > 0);
			assert_int_equal(dec_run(&d, d.dlen, d.stream, d.slen), 0);
			dec_fini(&d);
			dec_close(&d);
		}
	}
}

/* What is not a stream at all. */
static void noise(void **state)
{
	uint8_t buf[777];
	uint32_t s = 1;

	(void)state;
	for (const struct encoder *e = pairs; e->name; e++) {
		struct dec d;

		dec_open(&d, e, 4096, DATA_NOISE);
		dec_init(&d);
		for (int i = 0; i < 300; i++) {
			bool same;
			int err;

			for (unsigned k = 0; k < sizeof(buf); k++)
				buf[k] = (uint8_t)rnd(&s);
			if (i % 2) /* as far as the headers go, it is one */
				memcpy(buf, d.stream, 6);
			err = dec_run_same(&d, d.dlen, buf, sizeof(buf), &same);
			assert_true(!err || err == -THR_EIO);
			assert_false(same);
		}
		memset(buf, 0, sizeof(buf));
		assert_int_equal(dec_run(&d, d.dlen, buf, sizeof(buf)), -THR_EIO);
		memset(buf, 0xff, sizeof(buf));
		assert_int_equal(dec_run(&d, d.dlen, buf, sizeof(buf)), -THR_EIO);
		dec_fini(&d);
		dec_close(&d);
	}
}

static void too_short(void **state)
{
	(void)state;
	for (const struct encoder *e = pairs; e->name; e++) {
		struct dec d;

		dec_open(&d, e, 4096, DATA_WORDS);
		dec_init(&d);
		for (size_t more = 1; more <= 1 << 20; more *= 32)
			assert_int_equal(
				dec_run(&d, d.dlen + more, d.stream, d.slen), -THR_EIO);
		dec_fini(&d);
		dec_close(&d);
	}
}

/* A stream that goes on: the first bytes are right and the rest is left. */
static void too_long(void **state)
{
	static const size_t lens[] = {1, 100, 511, 4096, 65535, 65536, 150000, 199999};

	(void)state;
	for (const struct encoder *e = pairs; e->name; e++) {
		struct dec d;

		dec_open(&d, e, 200000, DATA_WORDS);
		dec_init(&d);
		for (unsigned i = 0; i < THR_ARRAY_SIZE(lens); i++) {
			int err = dec_run(&d, lens[i], d.stream, d.slen);

			if (!strcmp(e->name, "zstd wide window"))
				assert_int_equal(err, -THR_EIO);
			else
				assert_int_equal(err, 0);
		}
		/* Whatever the stream says, memory is bounded. */
		assert_in_range(d.counter.peak, 1, 10 << 20);
		assert_int_equal(dec_run(&d, d.dlen, d.stream, d.slen), 0);
		dec_fini(&d);
		dec_close(&d);
	}
}

static void no_memory(void **state)
{
	(void)state;
	for (const struct encoder *e = pairs; e->name; e++) {
		unsigned fired = 0;
		struct dec d;

		dec_open(&d, e, 200000, DATA_WORDS);
		for (unsigned n = 1;; n++) {
			int err;

			d.counter.calls = 0;
			d.counter.fail_at = n;
			err = d.c->decode_init(d.ctx, &d.mem);
			if (err) {
				assert_int_equal(err, -THR_ENOMEM);
				assert_int_equal(d.counter.live, 0);
				fired++;
				continue;
			}
			/* Cut short, it takes the path that wants most memory. */
			err = dec_run(&d, 1000, d.stream, d.slen);
			if (d.counter.calls < n) {
				dec_fini(&d);
				break;
			}
			assert_true(!err || err == -THR_ENOMEM || err == -THR_EIO);
			fired++;
			assert_int_equal(dec_run(&d, d.dlen, d.stream, d.slen), 0);
			dec_fini(&d);
		}
		assert_in_range(fired, 1, 4);
		dec_close(&d);
	}
}

/* A whole stream is decoded with the memory got at init. */
static void no_memory_while_decoding(void **state)
{
	(void)state;
	for (const struct encoder *e = pairs; e->name; e++) {
		struct dec d;
		unsigned calls;

		dec_open(&d, e, 65536, DATA_FAR);
		dec_init(&d);
		calls = d.counter.calls;
		assert_int_equal(dec_run(&d, d.dlen, d.stream, d.slen), 0);
		assert_int_equal(d.counter.calls, calls);
		dec_fini(&d);
		dec_close(&d);
	}
}

#ifdef CONFIG_CZ_ZSTD
static void foreign_frames(void **state)
{
	static const uint8_t magic[][4] = {
		{0x50, 0x2a, 0x4d, 0x18}, /* skippable, then empty */
		{0x25, 0xb5, 0x2f, 0xfd}, /* zstd 0.5 */
		{0x27, 0xb5, 0x2f, 0xfd}, /* zstd 0.7 */
		{0x37, 0xa4, 0x30, 0xec}, /* a dictionary */
	};
	const struct encoder e = {"zstd", CZ_ZSTD, enc_zstd, cz_codec_find(CZ_ZSTD)};
	uint8_t buf[600];
	struct dec d;

	(void)state;
	dec_open(&d, &e, 512, DATA_NOISE);
	dec_init(&d);
	for (unsigned i = 0; i < THR_ARRAY_SIZE(magic); i++) {
		memcpy(d.stream, magic[i], 4);
		assert_int_equal(dec_run(&d, d.dlen, d.stream, d.slen), -THR_EIO);
	}
	/* A skippable frame before a good one is no cluster either. */
	memset(buf, 0, 8);
	memcpy(buf, magic[0], 4);
	d.slen = enc_zstd(buf + 8, sizeof(buf) - 8, d.data, d.dlen);
	assert_int_equal(dec_run(&d, d.dlen, buf, d.slen + 8), -THR_EIO);
	dec_fini(&d);
	dec_close(&d);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table),
		cmocka_unit_test(registered),
		cmocka_unit_test(round_trips),
		cmocka_unit_test(garbage_behind),
		cmocka_unit_test(cut),
		cmocka_unit_test(damaged),
		cmocka_unit_test(noise),
		cmocka_unit_test(too_short),
		cmocka_unit_test(too_long),
		cmocka_unit_test(no_memory),
		cmocka_unit_test(no_memory_while_decoding),
#ifdef CONFIG_CZ_ZSTD
		cmocka_unit_test(foreign_frames),
#endif
	};

	make_pairs();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
