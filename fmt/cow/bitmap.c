/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/cow/bitmap.c - the bitmap, read: which sectors are in the image. A bit for each,
 * the lowest of a byte first.
 */
#include "fmt/cow/cow.h"

/* So many slices are looked at for one answer. */
#define RUN_SLICES 8u

uint64_t cow_bits_until(const uint8_t *map, uint64_t first, uint64_t end, bool set)
{
	uint64_t flip = set ? UINT64_MAX : 0;

	while (first < end) {
		uint64_t word;

		if (first & 7 || end - first < 64) {
			if ((map[first / 8] >> (first & 7) & 1) != set)
				return first;
			first++;
			continue;
		}
		word = thr_le64(map + first / 8) ^ flip;
		if (word)
			return first + (unsigned)__builtin_ctzll(word);
		first += 64;
	}
	return end;
}

/* How many of the @n sectors from @sector on have one bit, as far as one slice says.
 * *set is the answer of the first if @first, and otherwise what the rest must be. */
static int scan_slice(
	struct cow *c, uint64_t sector, uint64_t n, bool first, bool *set, uint64_t *same)
{
	uint64_t pos = c->lay.bitmap + sector / 8, skip = sector & 7, room;
	const uint8_t *map;
	struct fmt_slice *s;
	int err = fmt_slice_get(c->cache, c->blk.file, pos, &s);

	if (err)
		return err;
	map = s->data + (pos - s->off);
	room = (fmt_cache_slice_size(c->cache) - (pos - s->off)) * 8 - skip;
	n = THR_MIN(n, room);
	if (first)
		*set = map[0] >> skip & 1;
	*same = cow_bits_until(map, skip, skip + n, *set) - skip;
	fmt_slice_put(c->cache, s);
	return *same < n ? 1 : 0;
}

int cow_run(struct cow *c, uint64_t off, uint64_t len, bool *set, uint64_t *n)
{
	uint64_t sector = off / COW_SECTOR, want = len / COW_SECTOR, done = 0;
	uint64_t same = 0;
	int ret = 0;

	fmt_cache_lock(c->cache);
	for (unsigned i = 0; !ret && i < RUN_SLICES && done < want; i++) {
		ret = scan_slice(c, sector + done, want - done, !i, set, &same);
		if (ret >= 0)
			done += same;
	}
	fmt_cache_unlock(c->cache);
	*n = done * COW_SECTOR;
	return ret < 0 ? ret : 0;
}
