/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cz/cast6.c - CAST-256 (RFC 2612), which LUKS and dm-crypt call cast6.
 */
#include "cz/cast6_box.h"

#define QUADS 12
#define BLOCK 16

struct schedule {
	uint32_t m[QUADS][4]; /* Km: the masks */
	uint8_t r[QUADS][4];  /* Kr: the rotations, 0 to 31 */
};

static inline uint32_t rol(uint32_t v, unsigned n)
{
	return v << n | v >> (-n & 31);
}

#define S(n, shift) box[n][i >> (shift)&255]

/* Section 2.1: the three round functions. */
static inline uint32_t f1(uint32_t d, uint32_t m, unsigned r)
{
	uint32_t i = rol(m + d, r);

	return ((S(0, 24) ^ S(1, 16)) - S(2, 8)) + S(3, 0);
}

static inline uint32_t f2(uint32_t d, uint32_t m, unsigned r)
{
	uint32_t i = rol(m ^ d, r);

	return ((S(0, 24) - S(1, 16)) + S(2, 8)) ^ S(3, 0);
}

static inline uint32_t f3(uint32_t d, uint32_t m, unsigned r)
{
	uint32_t i = rol(m - d, r);

	return ((S(0, 24) + S(1, 16)) ^ S(2, 8)) - S(3, 0);
}

/* Section 2.2: the quad-rounds; @b is the block's words A to D. */
static inline void forward(uint32_t *b, const uint32_t *m, const uint8_t *r)
{
	b[2] ^= f1(b[3], m[0], r[0]);
	b[1] ^= f2(b[2], m[1], r[1]);
	b[0] ^= f3(b[1], m[2], r[2]);
	b[3] ^= f1(b[0], m[3], r[3]);
}

static inline void reverse(uint32_t *b, const uint32_t *m, const uint8_t *r)
{
	b[3] ^= f1(b[0], m[3], r[3]);
	b[0] ^= f3(b[1], m[2], r[2]);
	b[1] ^= f2(b[2], m[1], r[1]);
	b[2] ^= f1(b[3], m[0], r[0]);
}

/* Decrypting takes the keys of the quad-rounds backwards: @from and then each @step. */
static inline void run(const struct schedule *s, uint8_t *dst, const uint8_t *src,
	size_t blocks, int from, int step)
{
	for (; blocks; blocks--, src += BLOCK, dst += BLOCK) {
		uint32_t b[4];
		int q = from;

		for (int i = 0; i < 4; i++)
			b[i] = thr_be32(src + 4 * i);
		for (int i = 0; i < QUADS / 2; i++, q += step)
			forward(b, s->m[q], s->r[q]);
		for (int i = 0; i < QUADS / 2; i++, q += step)
			reverse(b, s->m[q], s->r[q]);
		for (int i = 0; i < 4; i++)
			thr_put_be32(dst + 4 * i, b[i]);
	}
}

static void encrypt(const void *ks, uint8_t *dst, const uint8_t *src, size_t blocks)
{
	run(ks, dst, src, blocks, 0, 1);
}

static void decrypt(const void *ks, uint8_t *dst, const uint8_t *src, size_t blocks)
{
	run(ks, dst, src, blocks, QUADS - 1, -1);
}

/* ---- the key schedule (section 2.4) --------------------------------------------------- */

/* The constants Tm and Tr, in the order in which they are used. */
struct constants {
	uint32_t m;
	unsigned r;
};

static uint32_t next_mask(struct constants *t)
{
	uint32_t m = t->m;

	t->m += 0x6ed9eba1;
	return m;
}

static unsigned next_rotation(struct constants *t)
{
	unsigned r = t->r;

	t->r = (t->r + 17) & 31;
	return r;
}

/* A forward octave: word 6 (G) first, down to 0 (A), then 7 (H). */
static void octave(uint32_t *k, struct constants *t)
{
	for (unsigned n = 0; n < 8; n++) {
		uint32_t *to = &k[(6 - n) & 7], from = k[(7 - n) & 7];
		uint32_t m = next_mask(t);
		unsigned r = next_rotation(t);

		*to ^= n % 3 == 0   ? f1(from, m, r)
		       : n % 3 == 1 ? f2(from, m, r)
				    : f3(from, m, r);
	}
}

static void schedule(void *ks, const uint8_t *key, size_t key_len)
{
	struct schedule *s = ks;
	struct constants t = {0x5a827999, 19};
	uint32_t k[8] = {0};

	for (size_t i = 0; i < key_len / 4; i++)
		k[i] = thr_be32(key + 4 * i);
	for (int q = 0; q < QUADS; q++) {
		octave(k, &t);
		octave(k, &t);
		for (int i = 0; i < 4; i++) {
			s->r[q][i] = k[2 * i] & 31;
			s->m[q][i] = k[7 - 2 * i];
		}
	}
	cz_wipe(k, sizeof(k));
}

const struct cz_own cz_cast6 = {
	.size = sizeof(struct schedule),
	.schedule = schedule,
	.encrypt = encrypt,
	.decrypt = decrypt,
};
