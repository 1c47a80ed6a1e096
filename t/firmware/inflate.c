/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/firmware/inflate.c - inflate (RFC 1951), small rather than fast: the codes of a
 * block are decoded bit by bit from how many there are of each length. Its output
 * is the window, so it needs no other memory than its two tables.
 */
#include "t/firmware/inflate.h"

#define BITS 15 /* of the longest code */

struct code {
	uint16_t count[BITS + 1]; /* codes of each length */
	uint16_t symbol[288];     /* in the order of the codes */
};

struct inflate {
	const uint8_t *in, *in_end;
	uint8_t *out, *at, *out_end;
	uint32_t hold;
	unsigned held; /* bits */
	bool bad;      /* the stream has ended too early */
	struct code lengths, distances;
};

static unsigned bits(struct inflate *z, unsigned n)
{
	unsigned v;

	while (z->held < n) {
		z->bad |= z->in == z->in_end;
		z->hold |= (z->bad ? 0 : (uint32_t)*z->in++) << z->held;
		z->held += 8;
	}
	v = z->hold & ((1u << n) - 1);
	z->hold >>= n;
	z->held -= n;
	return v;
}

/* -1 where @len, of @n symbols, is more codes than there can be. */
static int code_make(struct code *c, const uint8_t *len, unsigned n)
{
	uint16_t start[BITS + 1];
	int left = 1;

	memset(c->count, 0, sizeof(c->count));
	for (unsigned i = 0; i < n; i++)
		c->count[len[i]]++;
	c->count[0] = 0;
	start[1] = 0;
	for (unsigned i = 1; i <= BITS; i++) {
		left = left * 2 - c->count[i];
		if (left < 0)
			return -1;
		if (i < BITS)
			start[i + 1] = (uint16_t)(start[i] + c->count[i]);
	}
	for (unsigned i = 0; i < n; i++)
		if (len[i])
			c->symbol[start[len[i]]++] = (uint16_t)i;
	return 0;
}

static int code_next(struct inflate *z, const struct code *c)
{
	int value = 0, first = 0, index = 0;

	for (unsigned len = 1; len <= BITS && !z->bad; len++) {
		int count = c->count[len];

		value |= (int)bits(z, 1);
		if (value - first < count)
			return c->symbol[index + value - first];
		index += count;
		first = (first + count) << 1;
		value <<= 1;
	}
	return -1;
}

static int stored(struct inflate *z)
{
	unsigned len, check;

	z->hold = 0;
	z->held = 0;
	len = bits(z, 16);
	check = bits(z, 16);
	if (z->bad || len != (~check & 0xffff) || len > (size_t)(z->in_end - z->in))
		return -1;
	len = (unsigned)THR_MIN(len, (size_t)(z->out_end - z->at));
	memcpy(z->at, z->in, len);
	z->at += len;
	z->in += len;
	return 0;
}

static int copy(struct inflate *z, int symbol)
{
	static const uint16_t len_base[29] = {3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23,
		27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
	static const uint8_t len_extra[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3,
		3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
	static const uint16_t far_base[30] = {1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97,
		129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289,
		16385, 24577};
	size_t len, distance;
	int far;

	if (symbol > 285)
		return -1;
	len = len_base[symbol - 257] + bits(z, len_extra[symbol - 257]);
	far = code_next(z, &z->distances);
	if (far < 0 || far > 29)
		return -1;
	distance = far_base[far] + bits(z, far < 4 ? 0 : (unsigned)far / 2 - 1);
	if (distance > (size_t)(z->at - z->out))
		return -1;
	len = THR_MIN(len, (size_t)(z->out_end - z->at));
	for (; len; len--, z->at++)
		*z->at = z->at[-(ptrdiff_t)distance];
	return 0;
}

static int coded(struct inflate *z)
{
	while (z->at < z->out_end) {
		int symbol = code_next(z, &z->lengths);

		if (symbol < 0)
			return -1;
		if (symbol == 256)
			return 0;
		if (symbol < 256)
			*z->at++ = (uint8_t)symbol;
		else if (copy(z, symbol))
			return -1;
	}
	return 0;
}

static int fixed_codes(struct inflate *z)
{
	uint8_t len[288];

	memset(len, 8, 144);
	memset(len + 144, 9, 112);
	memset(len + 256, 7, 24);
	memset(len + 280, 8, 8);
	if (code_make(&z->lengths, len, 288))
		return -1;
	memset(len, 5, 30);
	return code_make(&z->distances, len, 30);
}

/* The lengths of the codes are coded themselves, with repeats. */
static int code_lengths(struct inflate *z, uint8_t *len, unsigned n)
{
	for (unsigned i = 0; i < n;) {
		int symbol = code_next(z, &z->lengths);
		unsigned times = 1;
		uint8_t value = (uint8_t)symbol;

		if (symbol < 0 || (symbol == 16 && !i))
			return -1;
		if (symbol == 16) {
			value = len[i - 1];
			times = 3 + bits(z, 2);
		} else if (symbol > 16) {
			value = 0;
			times = symbol == 17 ? 3 + bits(z, 3) : 11 + bits(z, 7);
		}
		if (times > n - i)
			return -1;
		memset(len + i, value, times);
		i += times;
	}
	return 0;
}

static int own_codes(struct inflate *z)
{
	static const uint8_t order[19] = {
		16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
	unsigned nlen = bits(z, 5) + 257, nfar = bits(z, 5) + 1, n = bits(z, 4) + 4;
	uint8_t len[288 + 32];

	if (nlen > 286 || nfar > 30)
		return -1;
	memset(len, 0, 19);
	for (unsigned i = 0; i < n; i++)
		len[order[i]] = (uint8_t)bits(z, 3);
	if (code_make(&z->lengths, len, 19) || code_lengths(z, len, nlen + nfar))
		return -1;
	if (code_make(&z->distances, len + nlen, nfar))
		return -1;
	return code_make(&z->lengths, len, nlen);
}

static int block(struct inflate *z, bool *last)
{
	*last = bits(z, 1);
	switch (bits(z, 2)) {
	case 0:
		return stored(z);
	case 1:
		return fixed_codes(z) || coded(z) ? -1 : 0;
	case 2:
		return own_codes(z) || coded(z) ? -1 : 0;
	default:
		return -1;
	}
}

static int inflate_init(void *ctx, const struct thr_alloc *mem)
{
	(void)ctx;
	(void)mem;
	return 0;
}

static void inflate_fini(void *ctx)
{
	(void)ctx;
}

static int inflate_run(void *ctx, void *dst, size_t dlen, const void *src, size_t slen)
{
	struct inflate *z = ctx;
	bool last = false;

	z->in = src;
	z->in_end = z->in + slen;
	z->out = z->at = dst;
	z->out_end = z->out + dlen;
	z->hold = 0;
	z->held = 0;
	z->bad = false;
	while (!last && z->at < z->out_end)
		if (block(z, &last) || z->bad)
			return -THR_EIO;
	return z->at == z->out_end ? 0 : -THR_EIO;
}

static const struct cz_codec inflate_codec = {
	.name = "zlib",
	.lib = "inflate",
	.id = CZ_DEFLATE,
	.decode_ctx_size = sizeof(struct inflate),
	.decode_init = inflate_init,
	.decode_fini = inflate_fini,
	.decode = inflate_run,
};

void inflate_register(void)
{
	cz_codec_register(&inflate_codec);
}
