/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cz/serpent.c - Serpent (R. Anderson, E. Biham, L. Knudsen: "Serpent: A Proposal for
 * the Advanced Encryption Standard", 1998), bitsliced as section 5 of the paper puts
 * it: bit i of the four words of a block is the input of the i-th S-box, so that the
 * initial and final permutations are not there, and an S-box is some logic on words.
 *
 * The logic here works on vectors of four words, one word each of four blocks. What a
 * key or a block says decides no branch and no address. Words are little-endian, as in
 * the NESSIE vectors; those of the submission print blocks and keys backwards.
 */
#include "cz/serpent_box.h"

#define ROUNDS 32
#define BLOCK  16

struct schedule {
	lane k[ROUNDS + 1][4]; /* every word four times */
};

static inline void mix(struct quad *x, const lane *k)
{
	for (int i = 0; i < 4; i++)
		x->w[i] ^= k[i];
}

static inline lane rol(lane v, int n)
{
	return v << n | v >> (32 - n);
}

/* The linear transformation. */
static inline void spread(struct quad *x)
{
	lane *w = x->w;

	w[0] = rol(w[0], 13);
	w[2] = rol(w[2], 3);
	w[1] = rol(w[1] ^ w[0] ^ w[2], 1);
	w[3] = rol(w[3] ^ w[2] ^ w[0] << 3, 7);
	w[0] = rol(w[0] ^ w[1] ^ w[3], 5);
	w[2] = rol(w[2] ^ w[3] ^ w[1] << 7, 22);
}

static inline void gather(struct quad *x)
{
	lane *w = x->w;

	w[2] = rol(w[2], 32 - 22) ^ w[3] ^ w[1] << 7;
	w[0] = rol(w[0], 32 - 5) ^ w[1] ^ w[3];
	w[3] = rol(w[3], 32 - 7) ^ w[2] ^ w[0] << 3;
	w[1] = rol(w[1], 32 - 1) ^ w[0] ^ w[2];
	w[2] = rol(w[2], 32 - 3);
	w[0] = rol(w[0], 32 - 13);
}

#define ROUND(n)                                                                               \
	do {                                                                                   \
		mix(x, k[n]);                                                                  \
		box##n(x);                                                                     \
	} while (0)
#define DNUOR(n)                                                                               \
	do {                                                                                   \
		inv##n(x);                                                                     \
		mix(x, k[n]);                                                                  \
	} while (0)

static void encrypt_quad(const struct schedule *s, struct quad *x)
{
	for (int r = 0; r < ROUNDS; r += 8) {
		const lane(*k)[4] = s->k + r;

		if (r)
			spread(x);
		ROUND(0);
		spread(x);
		ROUND(1);
		spread(x);
		ROUND(2);
		spread(x);
		ROUND(3);
		spread(x);
		ROUND(4);
		spread(x);
		ROUND(5);
		spread(x);
		ROUND(6);
		spread(x);
		ROUND(7);
	}
	mix(x, s->k[ROUNDS]);
}

static void decrypt_quad(const struct schedule *s, struct quad *x)
{
	mix(x, s->k[ROUNDS]);
	for (int r = ROUNDS - 8; r >= 0; r -= 8) {
		const lane(*k)[4] = s->k + r;

		DNUOR(7);
		gather(x);
		DNUOR(6);
		gather(x);
		DNUOR(5);
		gather(x);
		DNUOR(4);
		gather(x);
		DNUOR(3);
		gather(x);
		DNUOR(2);
		gather(x);
		DNUOR(1);
		gather(x);
		DNUOR(0);
		if (r)
			gather(x);
	}
}

/* ---- blocks ---------------------------------------------------------------------- */

/* @n blocks, at most four; the lanes of others are zeros. */
static inline void load(struct quad *x, const uint8_t *src, size_t n)
{
	*x = (struct quad){{{0}}};
	for (size_t i = 0; i < n; i++) {
		for (int w = 0; w < 4; w++)
			x->w[w][i] = thr_le32(src + i * BLOCK + 4 * w);
	}
}

static inline void store(const struct quad *x, uint8_t *dst, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		for (int w = 0; w < 4; w++)
			thr_put_le32(dst + i * BLOCK + 4 * w, x->w[w][i]);
	}
}

static inline void run(const struct schedule *s, uint8_t *dst, const uint8_t *src,
	size_t blocks, void (*quad)(const struct schedule *s, struct quad *x))
{
	struct quad x;

	for (; blocks >= 4; blocks -= 4, src += 4 * BLOCK, dst += 4 * BLOCK) {
		load(&x, src, 4);
		quad(s, &x);
		store(&x, dst, 4);
	}
	if (!blocks)
		return;
	load(&x, src, blocks);
	quad(s, &x);
	store(&x, dst, blocks);
}

static void encrypt(const void *ks, uint8_t *dst, const uint8_t *src, size_t blocks)
{
	run(ks, dst, src, blocks, encrypt_quad);
}

static void decrypt(const void *ks, uint8_t *dst, const uint8_t *src, size_t blocks)
{
	run(ks, dst, src, blocks, decrypt_quad);
}

/* ---- the key schedule (section 4) ------------------------------------------------- */

static void (*const boxes[])(struct quad *x) = {box0, box1, box2, box3, box4, box5, box6, box7};

static void schedule(void *ks, const uint8_t *key, size_t key_len)
{
	struct schedule *s = ks;
	uint8_t padded[32] = {0};
	uint32_t w[8 + 4 * (ROUNDS + 1)];

	memcpy(padded, key, key_len);
	if (key_len < sizeof(padded))
		padded[key_len] = 1;
	for (int i = 0; i < 8; i++)
		w[i] = thr_le32(padded + 4 * i);
	for (uint32_t i = 0; i < 4 * (ROUNDS + 1); i++) {
		uint32_t v = w[i] ^ w[i + 3] ^ w[i + 5] ^ w[i + 7] ^ 0x9e3779b9 ^ i;

		w[i + 8] = v << 11 | v >> 21;
	}
	for (int r = 0; r <= ROUNDS; r++) {
		struct quad x;

		for (int i = 0; i < 4; i++)
			x.w[i] = (lane){0} + w[8 + 4 * r + i];
		boxes[(ROUNDS + 3 - r) % 8](&x);
		memcpy(s->k[r], x.w, sizeof(x.w));
		cz_wipe(&x, sizeof(x));
	}
	cz_wipe(padded, sizeof(padded));
	cz_wipe(w, sizeof(w));
}

const struct cz_own cz_serpent = {
	.size = sizeof(struct schedule),
	.schedule = schedule,
	.encrypt = encrypt,
	.decrypt = decrypt,
};
