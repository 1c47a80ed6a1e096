/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cz/estimate.c - will it shrink? A compressor saves by what bytes are frequent
 * and by what comes again, so both are looked for in a sample:
 *
 * - 4096 bytes are counted, in 64 pieces spread over the data. How far the histogram
 *   is from a flat one is the chi-square statistic, which for random bytes is 255
 *   give or take 23, and grows by 2 ln 2 * 4096 = 5678 for each bit that the entropy
 *   of a byte falls short of 8.
 * - The pairs of equal bytes within a piece are counted too: 504 give or take 23 in
 *   random bytes. One piece of text or code among noise adds more than a hundred,
 *   which is lost in the histogram of all.
 * - Words that come again. All words are hashed, and the thirty-second part of them
 *   whose hash has five zero bits is remembered: the hash chooses, so a repeat is
 *   chosen where its first occurrence was. The table reaches back about 32 KiB.
 *   Repeats at distances that are no multiple of a word are not seen, which is the
 *   price: data on disks is laid out in blocks.
 */
#include "cz/cz.h"

#define SAMPLE 4096u
#define PIECE  64u
#define PIECES (SAMPLE / PIECE)

/* 0.06 bits, 0.8 % of the data. Deflate does not turn less into a saving, as its
 * code tables cost that much. */
#define CHI2_FLAT 600u
/* Five standard deviations on either side: steps and counters have too few. */
#define PAIRS_MIN 388u
#define PAIRS_MAX 620u

#define WORDS_LOG 7
#define CHOSEN    32u /* one word in so many is remembered */
#define REPEATS   64u /* the part of all words, a 64th, that repeats must come to */

static uint32_t scatter(uint32_t i)
{
	i *= 0x9e3779b1u;
	return i ^ i >> 15;
}

/* Pieces begin at places that no structure of a fixed pitch can hide from. */
static const uint8_t *piece(const uint8_t *p, size_t len, uint32_t i)
{
	size_t pitch = len / PIECES;
	uint64_t span = pitch - PIECE + 1;

	return p + i * pitch + (scatter(i) * span >> 32);
}

static bool uneven(const uint8_t *p, size_t len)
{
	uint16_t all[256];
	uint8_t here[256];
	uint32_t pairs = 0, squares = 0;

	memset(all, 0, sizeof(all));
	for (uint32_t i = 0; i < PIECES; i++) {
		const uint8_t *b = piece(p, len, i);

		memset(here, 0, sizeof(here));
		for (unsigned k = 0; k < PIECE; k++) {
			pairs += here[b[k]]++;
			all[b[k]]++;
		}
		/* Most data is told from noise by its first few pieces. */
		if (pairs > PAIRS_MAX)
			return true;
	}
	for (unsigned i = 0; i < 256; i++)
		squares += (uint32_t)all[i] * all[i];
	return pairs < PAIRS_MIN || squares / (SAMPLE / 256) - SAMPLE > CHI2_FLAT;
}

static bool repeats(const uint8_t *p, size_t len)
{
	uint64_t seen[1 << WORDS_LOG];
	size_t words = len / sizeof(*seen), want = words / CHOSEN / REPEATS, found = 0;

	memset(seen, 0, sizeof(seen));
	for (size_t i = 0; i < words; i++) {
		uint64_t w, h, *slot;

		memcpy(&w, p + i * sizeof(w), sizeof(w));
		h = w * 0x9e3779b97f4a7c15u;
		if (h >> 59)
			continue;
		slot = &seen[h >> (59 - WORDS_LOG)];
		if (*slot == w && found++ >= want)
			return true;
		*slot = w;
	}
	return false;
}

bool cz_will_shrink(const void *p, size_t len)
{
	if (len < SAMPLE)
		return true;
	return uneven(p, len) || repeats(p, len);
}
