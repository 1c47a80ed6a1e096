/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/fuzz/qcow2_mutate.c - changes qcow2 images where it matters.
 *
 * Bytes changed by chance are found out by the first check that they meet. Here a
 * change is one of a field or a table entry, to a value next to the old one or next
 * to what a parser compares it with, and the magic number and the version are put
 * right at the end, so that most images get as far as the check that is under test.
 */
#include <stdlib.h>

#include "t/fuzz/fuzz.h"

struct field {
	uint16_t off;
	uint8_t width;
};

/* Of the header. */
static const struct field fields[] = {
	{4, 4},
	{8, 8},
	{16, 4},
	{20, 4},
	{24, 8},
	{32, 4},
	{36, 4},
	{40, 8},
	{48, 8},
	{56, 4},
	{60, 4},
	{64, 8},
	{72, 8},
	{80, 8},
	{88, 8},
	{96, 4},
	{100, 4},
	{104, 1},
};

struct mutator {
	struct fuzz_image m;
	uint64_t state;
	uint64_t cluster;
	unsigned entry; /* bytes of one in an L2 table */
};

static uint64_t chance(struct mutator *u, uint64_t n)
{
	return fuzz_below(&u->state, n);
}

static uint64_t load(const struct mutator *u, uint64_t off, unsigned width)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < width; i++)
		v = v << 8 | (thr_within(off + i, 1, u->m.size) ? u->m.p[off + i] : 0);
	return v;
}

static void store(struct mutator *u, uint64_t off, unsigned width, uint64_t v)
{
	for (unsigned i = width; i--; v >>= 8)
		if (thr_within(off + i, 1, u->m.size))
			u->m.p[off + i] = (uint8_t)v;
}

/* A place in the file that a table or a cluster may begin at. */
static uint64_t place(struct mutator *u)
{
	uint64_t clusters = u->m.size / u->cluster + 1;
	uint64_t off = chance(u, clusters + 1) * u->cluster;

	return chance(u, 16) ? off : off + 512 * chance(u, 8);
}

static uint64_t value(struct mutator *u, uint64_t old)
{
	switch (chance(u, 10)) {
	case 0:
		return old + 1 - 2 * chance(u, 2);
	case 1:
	case 2:
		return old ^ 1ull << chance(u, 64);
	case 3:
		return 1ull << chance(u, 64);
	case 4:
		return (1ull << chance(u, 64)) - 1;
	case 5:
		return 0;
	case 6:
		return chance(u, 256);
	case 7:
		return u->m.size + 1 - chance(u, 3);
	default:
		return place(u);
	}
}

/* An entry of a table of clusters: mostly a place with flags. */
static uint64_t entry(struct mutator *u, uint64_t old)
{
	static const uint64_t flags[] = {0, 1, 1ull << 63, 1ull << 62, 1ull << 63 | 1};
	uint64_t v;

	switch (chance(u, 5)) {
	case 0:
		return value(u, old);
	case 1:
		return old ^ flags[chance(u, THR_ARRAY_SIZE(flags))];
	}
	v = place(u) | flags[chance(u, THR_ARRAY_SIZE(flags))];
	if (v >> 62 & 1) /* compressed: how many sectors it takes */
		v |= chance(u, 256) << (62 - (thr_log2(u->cluster) - 8));
	return v;
}

/* One of the first @n entries of @width bytes of the table at @off, most likely one in
 * use; and at times any. */
static uint64_t pick_of(struct mutator *u, uint64_t off, uint64_t n, unsigned width)
{
	if (chance(u, 4))
		n = THR_MIN(n, 16);
	return off + width * chance(u, n ? n : 1);
}

static uint64_t pick_entry(struct mutator *u, uint64_t off, uint64_t n)
{
	return pick_of(u, off, n, 8);
}

static void change_header(struct mutator *u)
{
	const struct field *f = &fields[chance(u, THR_ARRAY_SIZE(fields))];

	store(u, f->off, f->width, value(u, load(u, f->off, f->width)));
}

/* Type or length of an extension, or a string that comes along. */
static void change_extension(struct mutator *u)
{
	static const uint32_t types[] = {
		0, 0xe2792acau, 0x6803f857u, 0x23852875u, 0x0537be77u, 0x44415441u};
	uint64_t off = load(u, 4, 4) < 3 ? 72 : load(u, 100, 4);

	for (uint64_t n = chance(u, 4); n; n--)
		off += 8 + ((load(u, off + 4, 4) + 7) & ~7ull);
	if (chance(u, 2))
		store(u, off, 4, types[chance(u, THR_ARRAY_SIZE(types))]);
	else
		store(u, off + 4, 4,
			chance(u, 2) ? chance(u, 64) : value(u, load(u, off + 4, 4)));
}

/* Subclusters: the low half says which are there, the high one which are zero. Mostly
 * none is both. */
static void change_bitmap(struct mutator *u, uint64_t at)
{
	uint64_t v = load(u, at, 8), bits = fuzz_next(&u->state);
	uint32_t run = (uint32_t)(UINT32_MAX << chance(u, 32)) >> chance(u, 32);

	switch (chance(u, 5)) {
	case 0:
		v ^= 1ull << chance(u, 64);
		break;
	case 1: /* of some, another state */
		v = (v & ~((uint64_t)run << 32 | run)) | (uint64_t)run << 32 * chance(u, 2);
		break;
	case 2:
		v = (v & ~((uint64_t)run << 32 | run));
		break;
	case 3:
		v = (bits & ~(bits >> 32) & UINT32_MAX) | (bits >> 32 << 32);
		break;
	default:
		v = 0;
	}
	store(u, at, 8, v);
}

/* L1 and L2, of the disk or of a snapshot whose entry lies at @head. */
static void change_map(struct mutator *u, uint64_t l1, uint64_t n)
{
	uint64_t at = pick_entry(u, l1, n);

	if (chance(u, 3)) { /* one level down */
		at = pick_of(u, load(u, at, 8) & 0x00fffffffffffe00u, u->cluster / u->entry,
			u->entry);
		if (u->entry > 8 && chance(u, 2)) {
			change_bitmap(u, at + 8);
			return;
		}
	}
	store(u, at, 8, entry(u, load(u, at, 8)));
}

static void change_counts(struct mutator *u)
{
	uint64_t at = pick_entry(u, load(u, 48, 8), u->cluster / 8);

	if (!chance(u, 3)) {
		store(u, at, 8, entry(u, load(u, at, 8)));
		return;
	}
	at = (load(u, at, 8) & ~0x1ffull) + chance(u, THR_MIN(u->cluster, 64));
	store(u, at, 1, value(u, load(u, at, 1)));
}

static void change_snapshot(struct mutator *u)
{
	uint64_t at = load(u, 64, 8);

	if (chance(u, 2)) {
		change_map(u, load(u, at, 8), load(u, at + 8, 4));
		return;
	}
	at += 4 * chance(u, 20);
	store(u, at, 4, value(u, load(u, at, 4)));
}

/* Any eight bytes of a sector that is not empty. */
static void change_word(struct mutator *u)
{
	uint64_t at = 0;

	for (unsigned i = 0; i < 64; i++) {
		at = chance(u, u->m.size / FUZZ_SECTOR + 1) * FUZZ_SECTOR;
		if (load(u, at, 8))
			break;
	}
	at += 8 * chance(u, FUZZ_SECTOR / 8);
	store(u, at, 8, chance(u, 2) ? entry(u, load(u, at, 8)) : value(u, load(u, at, 8)));
}

static void change_bytes(struct mutator *u)
{
	uint64_t at = chance(u, u->m.size / FUZZ_SECTOR + 1) * FUZZ_SECTOR;

	if (chance(u, 2))
		at = place(u);
	if (thr_within(at, 64, u->m.size))
		LLVMFuzzerMutate(u->m.p + at, 64, 64);
}

static void copy_sector(struct mutator *u)
{
	uint64_t from = place(u), to = place(u);

	if (thr_within(from, FUZZ_SECTOR, u->m.size) && thr_within(to, FUZZ_SECTOR, u->m.size))
		memmove(u->m.p + to, u->m.p + from, FUZZ_SECTOR);
}

static void change_length(struct mutator *u)
{
	size_t size = chance(u, 2) ? place(u) : u->m.size + 512 - chance(u, 1024);
	uint8_t *p;

	if (size > FUZZ_IMAGE_MAX)
		return;
	p = realloc(u->m.p, size ? size : 1);
	FUZZ_MUST(p);
	if (size > u->m.size)
		memset(p + u->m.size, 0, size - u->m.size);
	u->m.p = p;
	u->m.size = size;
}

static void change(struct mutator *u)
{
	switch (chance(u, 16)) {
	case 0:
	case 1:
	case 2:
		change_header(u);
		break;
	case 3:
		change_extension(u);
		break;
	case 4:
	case 5:
	case 6:
	case 7:
		change_map(u, load(u, 40, 8), load(u, 36, 4));
		break;
	case 8:
	case 9:
		change_counts(u);
		break;
	case 10:
		change_snapshot(u);
		break;
	case 11:
		change_word(u);
		break;
	case 12:
		change_bytes(u);
		break;
	case 13:
		copy_sector(u);
		break;
	case 14:
		change_length(u);
		break;
	default:
		u->m.seed = (uint32_t)fuzz_next(&u->state);
	}
}

static void put_right(struct mutator *u)
{
	store(u, 0, 4, 0x514649fbu);
	if (load(u, 4, 4) != 2)
		store(u, 4, 4, 3);
	if (load(u, 4, 4) == 3 && (load(u, 100, 4) < 104 || load(u, 100, 4) > 112) &&
		chance(u, 8))
		store(u, 100, 4, chance(u, 2) ? 104 : 112);
	if ((load(u, 20, 4) < 9 || load(u, 20, 4) > 21) && chance(u, 8))
		store(u, 20, 4, 9);
	if (u->entry > 8 && load(u, 20, 4) < 14 && chance(u, 8))
		store(u, 20, 4, 14);
}

size_t fuzz_qcow2_mutate(uint8_t *data, size_t len, size_t max, unsigned seed)
{
	struct mutator u = {.state = seed};
	uint64_t bits;

	if (!fuzz_unpack(&u.m, data, len))
		return LLVMFuzzerMutate(data, len, max);
	bits = load(&u, 20, 4);
	u.entry = load(&u, 4, 4) > 2 && load(&u, 72, 8) & 16 ? 16 : 8;
	u.cluster = 1ull << (bits < 9 || bits > 21 ? 9 : bits);
	for (uint64_t n = 1 + chance(&u, 3); n; n--)
		change(&u);
	if (chance(&u, 16))
		put_right(&u);
	len = fuzz_pack(&u.m, data, max);
	free(u.m.p);
	return len;
}
