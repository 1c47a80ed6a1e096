/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/cz_encode.c - the encoders: what they make is read back by every decoder
 * there is for it, fits where it says it fits, does not depend on what a context
 * did before, and takes no memory that was not got at init.
 */
#include "t/unit/cz_util.h"

#ifdef CONFIG_CZ_DEFLATE
#include <zlib.h>
#endif

struct enc {
	const struct cz_codec *c;
	struct thr_alloc mem;
	struct counter counter;
	void *ctx;
};

/* Contexts are not cleared memory. */
static void *dirty(size_t size)
{
	void *p = aligned_alloc(16, thr_align_up(size, 16));

	assert_non_null(p);
	memset(p, 0xa5, size);
	return p;
}

static void enc_open(struct enc *e, const struct cz_codec *c, int level, size_t max)
{
	memset(e, 0, sizeof(*e));
	e->c = c;
	e->mem = (struct thr_alloc){counter_get, counter_put, &e->counter};
	e->ctx = dirty(c->encode_ctx_size);
	assert_int_equal(c->encode_init(e->ctx, &e->mem, level, max), 0);
}

static void enc_close(struct enc *e)
{
	e->c->encode_fini(e->ctx);
	assert_int_equal(e->counter.live, 0);
	free(e->ctx);
}

/* Encodes a copy of its exact size into a block of its exact size with canaries. */
static int enc_run(struct enc *e, uint8_t *out, size_t cap, const uint8_t *in, size_t len)
{
	uint8_t *i = malloc(len + 1), *o = malloc(cap + 2 * CANARY), canary[CANARY];
	unsigned calls = e->counter.calls;
	int n;

	assert_true(i && o);
	memcpy(i, in, len);
	memset(canary, CANARY_VAL, CANARY);
	memset(o, CANARY_VAL, cap + 2 * CANARY);
	i = realloc(i, len ? len : 1);
	assert_non_null(i);
	n = e->c->encode(e->ctx, o + CANARY, cap, i, len);
	assert_memory_equal(o, canary, CANARY);
	assert_memory_equal(o + CANARY + cap, canary, CANARY);
	assert_memory_equal(i, in, len);
	assert_int_equal(e->counter.calls, calls);
	if (n > 0) {
		assert_true((size_t)n <= cap);
		memcpy(out, o + CANARY, (size_t)n);
	} else {
		assert_int_equal(n, -THR_ENOSPC);
	}
	free(i);
	free(o);
	return n;
}

static void decode_by(const struct cz_codec *c, const uint8_t *stream, size_t slen,
	const uint8_t *want, size_t len)
{
	struct counter counter = {0};
	struct thr_alloc mem = {counter_get, counter_put, &counter};
	uint8_t *got = malloc(len + 1);
	void *ctx = dirty(c->decode_ctx_size);

	assert_non_null(got);
	assert_int_equal(c->decode_init(ctx, &mem), 0);
	assert_int_equal(c->decode(ctx, got, len, stream, slen), 0);
	assert_memory_equal(got, want, len);
	c->decode_fini(ctx);
	assert_int_equal(counter.live, 0);
	free(ctx);
	free(got);
}

/* By all decoders of that id. */
static void decode(enum cz_codec_id id, const uint8_t *stream, size_t slen, const uint8_t *want,
	size_t len)
{
	const struct cz_codec *c;

	for (unsigned i = 0; (c = cz_codec_built(i)); i++) {
		if (c->id == id)
			decode_by(c, stream, slen, want, len);
	}
}

/* Room for whatever a stream of @len bytes may come to. */
static size_t room(size_t len)
{
	return len + len / 8 + 256;
}

/* Every level for small buffers, as some take long. */
static int next_level(const struct cz_codec *c, int level, size_t len)
{
	if (len <= 4096)
		return level + 1;
	if (level < c->level_default)
		return c->level_default;
	return level < c->level_max ? c->level_max : c->level_max + 1;
}

/* ---- tests ---------------------------------------------------------------- */

static void table(void **state)
{
	const struct cz_codec *c;
	unsigned n;

	(void)state;
	for (n = 0; (c = cz_codec_built(n)); n++) {
		uint8_t stack[64];
		const int bad[] = {0, -1, c->level_min - 1, c->level_max + 1};

		assert_string_equal(c->name, cz_codec_name(c->id));
		assert_non_null(c->lib);
		assert_in_range(c->level_default, c->level_min, c->level_max);
		assert_true(c->level_min > 0);
		for (unsigned i = 0; i < THR_ARRAY_SIZE(bad); i++)
			assert_int_equal(
				c->encode_init(stack, &thr_heap, bad[i], 512), -THR_EINVAL);
		assert_int_equal(
			c->encode_init(stack, &thr_heap, c->level_default, CZ_ENCODE_MAX + 1),
			-THR_EINVAL);
	}
	assert_null(cz_codec_built(n));
	assert_null(cz_codec_built(n + 1));
	assert_null(cz_codec_built(UINT32_MAX));
	/* The preferred one comes first. */
	for (unsigned i = 0; (c = cz_codec_built(i)); i++) {
		if (c->id != CZ_DEFLATE)
			continue;
		assert_ptr_equal(cz_codec_find(CZ_DEFLATE), c);
#ifdef CONFIG_CZ_LIBDEFLATE
		assert_string_equal(c->lib, "libdeflate");
#endif
		break;
	}
}

static void round_trips(void **state)
{
	static const size_t lens[] = {1, 2, 3, 511, 512, 4096, 65535, 65536, 300000};
	const struct cz_codec *c;

	(void)state;
	for (unsigned k = 0; (c = cz_codec_built(k)); k++) {
		for (unsigned i = 0; i < THR_ARRAY_SIZE(lens) * DATA_KINDS; i++) {
			size_t len = lens[i / DATA_KINDS];
			uint8_t *in = malloc(len), *out = malloc(room(len));

			assert_true(in && out);
			fill(in, len, i % DATA_KINDS);
			for (int l = c->level_min; l <= c->level_max;
				l = next_level(c, l, len)) {
				struct enc e;
				int n;

				enc_open(&e, c, l, len);
				n = enc_run(&e, out, room(len), in, len);
				assert_true(n > 0);
				decode(c->id, out, (size_t)n, in, len);
				enc_close(&e);
			}
			free(in);
			free(out);
		}
	}
}

/* Runs, steps and repeats of every length up to a little over 258, deflate's
 * longest match, at the edges of what window, table and block sizes there are. */
static void adversarial(void **state)
{
	enum { LEN = 70000 };
	uint8_t *in = malloc(LEN), *out = malloc(room(LEN));
	const struct cz_codec *c;

	(void)state;
	assert_true(in && out);
	for (unsigned k = 0; (c = cz_codec_built(k)); k++) {
		struct enc e;

		enc_open(&e, c, c->level_default, LEN);
		for (unsigned period = 1; period < 300; period += 1 + period / 8) {
			uint32_t s = period;
			int n;

			for (unsigned i = 0; i < LEN; i++) {
				/* Now and then a byte breaks the repeat. */
				in[i] = i >= period ? in[i - period] : (uint8_t)rnd(&s);
				if (rnd(&s) % 1024 == 0)
					in[i] = (uint8_t)rnd(&s);
			}
			n = enc_run(&e, out, room(LEN), in, LEN);
			assert_in_range(n, 1, LEN / 2);
			decode(c->id, out, (size_t)n, in, LEN);
		}
		enc_close(&e);
	}
	free(in);
	free(out);
}

/* Less room than the stream takes is refused; that and the slack are enough. */
static void room_for_it(void **state)
{
	static const size_t lens[] = {1, 100, 4096, 65536};
	const struct cz_codec *c;

	(void)state;
	for (unsigned k = 0; (c = cz_codec_built(k)); k++) {
		for (unsigned i = 0; i < THR_ARRAY_SIZE(lens) * DATA_KINDS; i++) {
			size_t len = lens[i / DATA_KINDS];
			uint8_t *in = malloc(len), *a = malloc(room(len)),
				*b = malloc(room(len));
			struct enc e;
			int n;

			assert_true(in && a && b);
			fill(in, len, i % DATA_KINDS);
			enc_open(&e, c, c->level_default, len);
			n = enc_run(&e, a, room(len), in, len);
			assert_true(n > 0);
			for (int less = 1; less <= n; less += 1 + less / 3)
				assert_int_equal(enc_run(&e, b, (size_t)(n - less), in, len),
					-THR_ENOSPC);
			assert_int_equal(
				enc_run(&e, b, (size_t)n + CZ_ENCODE_SLACK, in, len), n);
			assert_memory_equal(a, b, (size_t)n);
			enc_close(&e);
			free(in);
			free(a);
			free(b);
		}
	}
}

/* What cannot shrink is refused when there is room for one byte less. */
static void noise_does_not_fit(void **state)
{
	enum { LEN = 65536 };
	uint8_t *in = malloc(LEN), *out = malloc(LEN);
	const struct cz_codec *c;

	(void)state;
	assert_true(in && out);
	fill(in, LEN, DATA_NOISE);
	for (unsigned k = 0; (c = cz_codec_built(k)); k++) {
		for (int l = c->level_min; l <= c->level_max; l++) {
			struct enc e;

			enc_open(&e, c, l, LEN);
			assert_int_equal(enc_run(&e, out, LEN - 1, in, LEN), -THR_ENOSPC);
			enc_close(&e);
		}
	}
	free(in);
	free(out);
}

/* The same bytes whatever a context did before: threads share out the clusters as
 * they come, and the image must not show it. */
static void deterministic(void **state)
{
	enum { LEN = 16384, ROUNDS = 12 };
	uint8_t *in = malloc(LEN), *a = malloc(room(LEN)), *b = malloc(room(LEN));
	const struct cz_codec *c;

	(void)state;
	assert_true(in && a && b);
	for (unsigned k = 0; (c = cz_codec_built(k)); k++) {
		for (int l = c->level_min; l <= c->level_max; l++) {
			struct enc used;

			enc_open(&used, c, l, LEN);
			for (unsigned i = 0; i < ROUNDS; i++) {
				size_t len = i % 3 ? LEN : 1 + i * 700;
				struct enc fresh;
				int n;

				/* Alike enough for old tables to matter. */
				fill(in, len, i % 2 ? DATA_WORDS : DATA_KINDS - 1);
				in[i] ^= 0x55;
				enc_open(&fresh, c, l, LEN);
				n = enc_run(&fresh, a, room(LEN), in, len);
				assert_int_equal(enc_run(&used, b, room(LEN), in, len), n);
				assert_memory_equal(a, b, (size_t)n);
				enc_close(&fresh);
				/* One that does not fit leaves no trace either. */
				if (i % 5 == 0)
					assert_int_equal(
						enc_run(&used, b, (size_t)n / 2, in, len),
						-THR_ENOSPC);
			}
			enc_close(&used);
		}
	}
	free(in);
	free(a);
	free(b);
}

/* The largest cluster, at levels that take most. */
static void large(void **state)
{
	enum { LEN = 2 << 20 };
	uint8_t *in = malloc(LEN), *out = malloc(room(LEN));
	const struct cz_codec *c;

	(void)state;
	assert_true(in && out);
	fill(in, LEN, DATA_FAR);
	memset(in, 'x', 6000);
	for (unsigned k = 0; (c = cz_codec_built(k)); k++) {
		for (int l = c->level_min; l <= c->level_max; l = next_level(c, l, LEN)) {
			struct enc e;
			int n;

			enc_open(&e, c, l, LEN);
			n = enc_run(&e, out, room(LEN), in, LEN);
			assert_true(n > 0);
			decode(c->id, out, (size_t)n, in, LEN);
			/* A short one in the same context. */
			n = enc_run(&e, out, room(LEN), in, 5000);
			assert_in_range(n, 1, 5000 / 2);
			decode(c->id, out, (size_t)n, in, 5000);
			enc_close(&e);
		}
	}
	free(in);
	free(out);
}

/* Streams of ours that are cut or damaged: an error or the wrong bytes, no more. */
static void damaged(void **state)
{
	enum { LEN = 5000 };
	uint8_t in[LEN], out[2 * LEN], got[LEN];
	const struct cz_codec *c;

	(void)state;
	fill(in, LEN, DATA_WORDS);
	for (unsigned i = 0; i < LEN; i += 7)
		in[i] = (uint8_t)i;
	for (unsigned k = 0; (c = cz_codec_built(k)); k++) {
		unsigned found = 0;
		struct enc e;
		void *ctx = dirty(c->decode_ctx_size);
		int n;

		enc_open(&e, c, c->level_default, LEN);
		n = enc_run(&e, out, sizeof(out), in, LEN);
		assert_true(n > 0);
		assert_int_equal(c->decode_init(ctx, &e.mem), 0);
		for (size_t i = 0; i < (size_t)n; i++) {
			uint8_t *s = malloc((size_t)n);
			int err;

			assert_non_null(s);
			memcpy(s, out, (size_t)n);
			s[i] ^= (uint8_t)(1 << i % 8);
			err = c->decode(ctx, got, LEN, s, (size_t)n);
			assert_true(!err || err == -THR_EIO);
			found += err || memcmp(got, in, LEN);
			if (i < (size_t)n - 8) {
				memcpy(s, out, i);
				s = realloc(s, i ? i : 1);
				assert_int_equal(c->decode(ctx, got, LEN, s, i), -THR_EIO);
			}
			free(s);
		}
		assert_true(found > (unsigned)n / 2);
		assert_int_equal(c->decode(ctx, got, LEN, out, (size_t)n), 0);
		assert_memory_equal(got, in, LEN);
		c->decode_fini(ctx);
		enc_close(&e);
		free(ctx);
	}
}

static void no_memory(void **state)
{
	const struct cz_codec *c;

	(void)state;
	for (unsigned k = 0; (c = cz_codec_built(k)); k++) {
		struct counter counter = {0};
		struct thr_alloc mem = {counter_get, counter_put, &counter};
		void *ctx = dirty(c->encode_ctx_size);
		int err;

		for (unsigned n = 1;; n++) {
			counter.calls = 0;
			counter.fail_at = n;
			err = c->encode_init(ctx, &mem, c->level_default, 65536);
			if (!err)
				break;
			assert_int_equal(err, -THR_ENOMEM);
			assert_int_equal(counter.live, 0);
		}
		/* libdeflate's memory is not ours. */
		assert_int_equal(counter.calls > 0, strcmp(c->lib, "libdeflate") != 0);
		c->encode_fini(ctx);
		assert_int_equal(counter.live, 0);
		free(ctx);
	}
}

#ifdef CONFIG_CZ_DEFLATE
/* A reader that asks zlib for 4 KiB of window. At @at_once bytes of output a call;
 * returns whether it could read the stream. */
static bool read_12_bits(
	const uint8_t *stream, size_t slen, const uint8_t *want, size_t len, size_t at_once)
{
	uint8_t *got = malloc(len), *piece = malloc(at_once);
	z_stream z = {0};
	size_t done = 0;
	bool same;

	assert_true(got && piece);
	assert_int_equal(inflateInit2(&z, -12), Z_OK);
	z.next_in = (Bytef *)stream;
	z.avail_in = (uInt)slen;
	while (done < len) {
		size_t n = THR_MIN(at_once, len - done);
		int ret;

		/* Each piece to the same place: what zlib did not keep is gone. */
		z.next_out = piece;
		z.avail_out = (uInt)n;
		ret = inflate(&z, n == len ? Z_FINISH : Z_NO_FLUSH);
		if (z.avail_out || (ret != Z_OK && ret != Z_STREAM_END && ret != Z_BUF_ERROR))
			break;
		memcpy(got + done, piece, n);
		done += n;
	}
	same = done == len && !memcmp(got, want, len);
	inflateEnd(&z);
	free(got);
	free(piece);
	return same;
}

static void twelve_bits(void **state)
{
	static const size_t lens[] = {512, 65536, 2 << 20};
	const struct cz_codec *c;

	(void)state;
	for (unsigned i = 0; i < THR_ARRAY_SIZE(lens) * DATA_KINDS; i++) {
		size_t len = lens[i / DATA_KINDS];
		uint8_t *in = malloc(len), *out = malloc(room(len));

		assert_true(in && out);
		fill(in, len, i % DATA_KINDS);
		for (unsigned k = 0; (c = cz_codec_built(k)); k++) {
			struct enc e;
			int n;

			if (c->id != CZ_DEFLATE)
				continue;
			enc_open(&e, c, c->level_default, len);
			n = enc_run(&e, out, room(len), in, len);
			assert_true(n > 0);
			assert_true(read_12_bits(out, (size_t)n, in, len, len));
			/* zlib's encoder serves readers that pass it on, too. */
			if (!strcmp(c->lib, "zlib"))
				assert_true(read_12_bits(out, (size_t)n, in, len, 300));
			enc_close(&e);
		}
		free(in);
		free(out);
	}
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table),
		cmocka_unit_test(round_trips),
		cmocka_unit_test(adversarial),
		cmocka_unit_test(room_for_it),
		cmocka_unit_test(noise_does_not_fit),
		cmocka_unit_test(deterministic),
		cmocka_unit_test(large),
		cmocka_unit_test(damaged),
		cmocka_unit_test(no_memory),
#ifdef CONFIG_CZ_DEFLATE
		cmocka_unit_test(twelve_bits),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
