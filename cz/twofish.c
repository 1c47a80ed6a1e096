/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cz/twofish.c - Twofish (B. Schneier, J. Kelsey, D. Whiting, D. Wagner, C. Hall, N.
 * Ferguson: "Twofish: A 128-Bit Block Cipher", 1998), with "full keying" (section 5.1):
 * the key-dependent S-boxes and the MDS matrix after them are four tables of 256 words,
 * made once for a key, and g() is four look-ups.
 */
#include "cz/private.h"

#define ROUNDS 16
#define BLOCK  16

struct schedule {
	uint32_t s[4][256];
	uint32_t k[8 + 2 * ROUNDS];
};

static inline uint32_t rol(uint32_t v, int n)
{
	return v << n | v >> (32 - n);
}

/* ---- tables of the definition ------------------------------------------------------ */

/* Section 4.3.5: t0 to t3 of the fixed permutations q0 and q1. */
static const uint8_t nibbles[2][4][16] = {
	{
		{0x8, 0x1, 0x7, 0xd, 0x6, 0xf, 0x3, 0x2, 0x0, 0xb, 0x5, 0x9, 0xe, 0xc, 0xa,
			0x4},
		{0xe, 0xc, 0xb, 0x8, 0x1, 0x2, 0x3, 0x5, 0xf, 0x4, 0xa, 0x6, 0x7, 0x0, 0x9,
			0xd},
		{0xb, 0xa, 0x5, 0xe, 0x6, 0xd, 0x9, 0x0, 0xc, 0x8, 0xf, 0x3, 0x2, 0x4, 0x7,
			0x1},
		{0xd, 0x7, 0xf, 0x4, 0x1, 0x2, 0x6, 0xe, 0x9, 0xb, 0x3, 0x0, 0x8, 0x5, 0xc,
			0xa},
	},
	{
		{0x2, 0x8, 0xb, 0xd, 0xf, 0x7, 0x6, 0xe, 0x3, 0x1, 0x9, 0x4, 0x0, 0xa, 0xc,
			0x5},
		{0x1, 0xe, 0x2, 0xb, 0x4, 0xc, 0x3, 0x7, 0x6, 0xd, 0xa, 0x5, 0xf, 0x9, 0x0,
			0x8},
		{0x4, 0xc, 0x7, 0x5, 0x1, 0x6, 0x9, 0xa, 0x0, 0xe, 0xd, 0x8, 0x2, 0xb, 0x3,
			0xf},
		{0xb, 0x9, 0x5, 0x1, 0xc, 0x3, 0xd, 0xe, 0x6, 0x4, 0x7, 0xf, 0x2, 0x0, 0x8,
			0xa},
	},
};

static const uint8_t mds[4][4] = {
	{0x01, 0xef, 0x5b, 0x5b},
	{0x5b, 0xef, 0xef, 0x01},
	{0xef, 0x5b, 0x01, 0xef},
	{0xef, 0x01, 0xef, 0x5b},
};
#define MDS_POLY 0x169

static const uint8_t rs[4][8] = {
	{0x01, 0xa4, 0x55, 0x87, 0x5a, 0x58, 0xdb, 0x9e},
	{0xa4, 0x56, 0x82, 0xf3, 0x1e, 0xc6, 0x68, 0xe5},
	{0x02, 0xa1, 0xfc, 0xc1, 0x47, 0xae, 0x3d, 0x19},
	{0xa4, 0x55, 0x87, 0x5a, 0x58, 0xdb, 0x9e, 0x03},
};
#define RS_POLY 0x14d

/* Which of q0 and q1 a byte goes through: in the stages of the key words L3, L2, L1,
 * L0, and last. */
static const uint8_t which[5][4] = {
	{1, 0, 0, 1},
	{1, 1, 0, 0},
	{0, 1, 0, 1},
	{0, 0, 1, 1},
	{1, 0, 1, 0},
};

/* ---- the key schedule (section 4.3) ------------------------------------------------- */

/* What it works with, to be wiped as one. */
struct work {
	uint8_t q[2][256];
	uint8_t even[4][4], odd[4][4], s[4][4]; /* Me, Mo and S, each word's bytes */
	uint8_t k;                              /* words of each */
};

static uint8_t permute(const uint8_t t[4][16], unsigned x)
{
	unsigned a = x >> 4, b = x & 15, c;

	for (int i = 0; i < 4; i += 2) {
		c = a ^ b;
		b = (a ^ (b >> 1 | b << 3) ^ a << 3) & 15;
		a = t[i][c];
		b = t[i + 1][b];
	}
	return (uint8_t)(b << 4 | a);
}

static unsigned times(unsigned a, unsigned b, unsigned poly)
{
	unsigned r = 0;

	for (; b; b >>= 1) {
		r ^= a * (b & 1);
		a <<= 1;
		a ^= poly * (a >> 8);
	}
	return r;
}

/* Byte @i of h() of the words @l before the matrix. */
static uint8_t substitute(const struct work *w, const uint8_t l[4][4], int i, uint8_t x)
{
	for (int j = w->k - 1; j >= 0; j--)
		x = w->q[which[3 - j][i]][x] ^ l[j][i];
	return w->q[which[4][i]][x];
}

/* The share of byte @i in the matrix times that. */
static uint32_t column(int i, uint8_t y)
{
	uint32_t v = 0;

	for (int row = 0; row < 4; row++)
		v |= (uint32_t)times(y, mds[row][i], MDS_POLY) << 8 * row;
	return v;
}

/* Of a word whose bytes are all @x. */
static uint32_t h(const struct work *w, const uint8_t l[4][4], uint8_t x)
{
	uint32_t v = 0;

	for (int i = 0; i < 4; i++)
		v ^= column(i, substitute(w, l, i, x));
	return v;
}

static void split_key(struct work *w, const uint8_t *key)
{
	for (int i = 0; i < w->k; i++, key += 8) {
		memcpy(w->even[i], key, 4);
		memcpy(w->odd[i], key + 4, 4);
		for (int row = 0; row < 4; row++) {
			unsigned v = 0;

			for (int n = 0; n < 8; n++)
				v ^= times(rs[row][n], key[n], RS_POLY);
			w->s[w->k - 1 - i][row] = (uint8_t)v;
		}
	}
}

static void schedule(void *ks, const uint8_t *key, size_t key_len)
{
	struct schedule *s = ks;
	struct work w = {.k = (uint8_t)(key_len / 8)};

	for (unsigned x = 0; x < 256; x++) {
		w.q[0][x] = permute(nibbles[0], x);
		w.q[1][x] = permute(nibbles[1], x);
	}
	split_key(&w, key);
	for (unsigned i = 0; i < THR_ARRAY_SIZE(s->k); i += 2) {
		uint32_t a = h(&w, w.even, (uint8_t)i);
		uint32_t b = rol(h(&w, w.odd, (uint8_t)(i + 1)), 8);

		s->k[i] = a + b;
		s->k[i + 1] = rol(a + 2 * b, 9);
	}
	for (int i = 0; i < 4; i++) {
		for (unsigned x = 0; x < 256; x++)
			s->s[i][x] = column(i, substitute(&w, w.s, i, (uint8_t)x));
	}
	cz_wipe(&w, sizeof(w));
}

/* ---- blocks ------------------------------------------------------------------------ */

/* g() of @v after its bytes were rotated left by @by. */
static inline uint32_t g(const struct schedule *s, uint32_t v, int by)
{
	return s->s[by][v & 255] ^ s->s[(by + 1) & 3][v >> 8 & 255] ^
	       s->s[(by + 2) & 3][v >> 16 & 255] ^ s->s[(by + 3) & 3][v >> 24];
}

/* One round on the halves (a, b) and (c, d), which then trade places. */
static inline void round_in(
	const struct schedule *s, int r, uint32_t a, uint32_t b, uint32_t *c, uint32_t *d)
{
	uint32_t t0 = g(s, a, 0), t1 = g(s, b, 1), v = *c ^ (t0 + t1 + s->k[8 + 2 * r]);

	*c = v >> 1 | v << 31;
	*d = rol(*d, 1) ^ (t0 + 2 * t1 + s->k[9 + 2 * r]);
}

static inline void round_out(
	const struct schedule *s, int r, uint32_t a, uint32_t b, uint32_t *c, uint32_t *d)
{
	uint32_t t0 = g(s, a, 0), t1 = g(s, b, 1), v = *d ^ (t0 + 2 * t1 + s->k[9 + 2 * r]);

	*c = rol(*c, 1) ^ (t0 + t1 + s->k[8 + 2 * r]);
	*d = v >> 1 | v << 31;
}

static void encrypt(const void *ks, uint8_t *dst, const uint8_t *src, size_t blocks)
{
	const struct schedule *s = ks;

	for (; blocks; blocks--, src += BLOCK, dst += BLOCK) {
		uint32_t a = thr_le32(src) ^ s->k[0], b = thr_le32(src + 4) ^ s->k[1];
		uint32_t c = thr_le32(src + 8) ^ s->k[2], d = thr_le32(src + 12) ^ s->k[3];

		for (int r = 0; r < ROUNDS; r += 2) {
			round_in(s, r, a, b, &c, &d);
			round_in(s, r + 1, c, d, &a, &b);
		}
		thr_put_le32(dst, c ^ s->k[4]);
		thr_put_le32(dst + 4, d ^ s->k[5]);
		thr_put_le32(dst + 8, a ^ s->k[6]);
		thr_put_le32(dst + 12, b ^ s->k[7]);
	}
}

static void decrypt(const void *ks, uint8_t *dst, const uint8_t *src, size_t blocks)
{
	const struct schedule *s = ks;

	for (; blocks; blocks--, src += BLOCK, dst += BLOCK) {
		uint32_t c = thr_le32(src) ^ s->k[4], d = thr_le32(src + 4) ^ s->k[5];
		uint32_t a = thr_le32(src + 8) ^ s->k[6], b = thr_le32(src + 12) ^ s->k[7];

		for (int r = ROUNDS - 2; r >= 0; r -= 2) {
			round_out(s, r + 1, c, d, &a, &b);
			round_out(s, r, a, b, &c, &d);
		}
		thr_put_le32(dst, a ^ s->k[0]);
		thr_put_le32(dst + 4, b ^ s->k[1]);
		thr_put_le32(dst + 8, c ^ s->k[2]);
		thr_put_le32(dst + 12, d ^ s->k[3]);
	}
}

const struct cz_own cz_twofish = {
	.size = sizeof(struct schedule),
	.schedule = schedule,
	.encrypt = encrypt,
	.decrypt = decrypt,
};
