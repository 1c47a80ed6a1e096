/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/crash/state.c - what a power cut may leave of the devices.
 *
 * Cuts come in order of time, so what must have survived only grows: it is kept in
 * c->base and added to. On top of it, in c->state, comes what may be lost, as the mode
 * has it. Lost writes are lost by the sector; those that change a part of a sector take
 * along what was written there before them, since it is sectors that reach the disk.
 *
 * That what was flushed comes first is no loss: what may be lost and came before it was in
 * flight together with it. A write that was durable by itself (BLK_FUA) has no such place:
 * until a flush has covered what came before, it stays among what may be lost, and is not.
 */
#include <stdlib.h>

#include "t/crash/crash.h"

static int by_durable(const void *a, const void *b)
{
	const struct entry *x = *(const struct entry *const *)a;
	const struct entry *y = *(const struct entry *const *)b;

	if (x->durable != y->durable)
		return x->durable < y->durable ? -1 : 1;
	return x < y ? -1 : x > y;
}

void state_begin(struct crash *c)
{
	for (unsigned i = 0; i < DEVS; i++) {
		if (!c->start[i])
			continue;
		c->base[i] = store_new(c->start[i]);
		c->state[i] = store_new(c->base[i]);
	}
	c->order = malloc((c->rec.n + 1) * sizeof(*c->order));
	THR_ASSERT(c->order);
	for (size_t i = 0; i < c->rec.n; i++)
		c->order[i] = &c->rec.v[i];
	qsort(c->order, c->rec.n, sizeof(*c->order), by_durable);
	c->applied = 0;
}

void state_end(struct crash *c)
{
	for (unsigned i = 0; i < DEVS; i++) {
		store_free(c->state[i]);
		store_free(c->base[i]);
		c->state[i] = NULL;
		c->base[i] = NULL;
	}
	free(c->order);
	c->order = NULL;
}

/* ---- doing entries again ------------------------------------------------------------ */

static bool has_bytes(const struct crash *c, const struct entry *e)
{
	return e->op == BLK_OP_WRITE || e->op == BLK_OP_ZERO ||
	       (e->op == BLK_OP_DISCARD && !c->stale);
}

/* Bytes [lo, hi) of the device, as far as the entry has them. */
static void apply_range(
	struct crash *c, const struct entry *e, struct store *to, uint64_t lo, uint64_t hi)
{
	lo = THR_MAX(lo, e->off);
	hi = THR_MIN(hi, e->off + e->len);
	(void)c;
	/* Nothing is there to discard past the end. */
	if (e->op == BLK_OP_DISCARD)
		hi = THR_MIN(hi, to->size);
	if (lo < hi)
		store_write(to, lo, e->data ? e->data + (lo - e->off) : NULL, hi - lo);
}

static void apply(struct crash *c, const struct entry *e, struct store *to)
{
	if (e->op == BLK_OP_TRUNCATE)
		store_truncate(to, e->off);
	else if (has_bytes(c, e))
		apply_range(c, e, to, e->off, e->off + e->len);
}

/* What was written before @e into the sector at @at, of which it has a part. Where the
 * order is not that of submission, what is there may be from later, and goes. */
static void apply_before(struct crash *c, const struct cut *cut, struct entry *const *maybe,
	size_t n, const struct entry *e, uint64_t at)
{
	uint8_t buf[SECTOR];

	if (cut->mode == MODE_REORDER) {
		store_read(c->base[e->dev], at, buf, SECTOR);
		if (at + SECTOR <= c->state[e->dev]->size)
			store_write(c->state[e->dev], at, buf, SECTOR);
	}
	for (size_t i = 0; i < n; i++) {
		const struct entry *b = maybe[i];

		if (b->dev == e->dev && b->completed < e->submitted && has_bytes(c, b))
			apply_range(c, b, c->state[e->dev], at, at + SECTOR);
	}
}

static void apply_piece(struct crash *c, const struct cut *cut, struct entry *const *maybe,
	size_t n, const struct entry *e, uint64_t lo, uint64_t hi)
{
	uint64_t first = thr_align_down(THR_MAX(lo, e->off), SECTOR);
	uint64_t end = THR_MIN(hi, e->off + e->len);
	uint64_t last = thr_align_down(end, SECTOR);

	if (e->off > first)
		apply_before(c, cut, maybe, n, e, first);
	if (end > last && (last != first || e->off <= first))
		apply_before(c, cut, maybe, n, e, last);
	apply_range(c, e, c->state[e->dev], lo, hi);
}

static void apply_whole(struct crash *c, const struct cut *cut, struct entry *const *maybe,
	size_t n, const struct entry *e)
{
	if (e->op == BLK_OP_TRUNCATE)
		apply(c, e, c->state[e->dev]);
	else
		apply_piece(c, cut, maybe, n, e, e->off, e->off + e->len);
}

/* Some blocks of an entry, in @grain. */
static void apply_torn(struct crash *c, const struct cut *cut, struct entry *const *maybe,
	size_t n, const struct entry *e, uint64_t *seed)
{
	uint64_t grain = c->row->grain ? c->row->grain : SECTOR;
	uint32_t kept = crash_rnd(seed, 4);

	grain = cut->mode == MODE_TORN_4K ? THR_MAX(grain, 4096u) : grain;
	for (uint64_t at = thr_align_down(e->off, grain); at < e->off + e->len; at += grain)
		if (crash_rnd(seed, 4) <= kept)
			apply_piece(c, cut, maybe, n, e, at, at + grain);
}

/* ---- states --------------------------------------------------------------------------- */

/* Entries that may be lost at @at, in order of submission. */
static size_t maybe_list(struct crash *c, uint64_t at, struct entry **list)
{
	size_t n = 0;

	for (size_t i = 0; i < c->rec.n; i++) {
		struct entry *e = &c->rec.v[i];

		if (e->submitted > at)
			break;
		if (e->durable > at && e->gone > at &&
			(e->op == BLK_OP_TRUNCATE || has_bytes(c, e)))
			list[n++] = e;
	}
	return n;
}

unsigned state_maybe(struct crash *c, uint64_t at)
{
	struct entry **list = malloc((c->rec.n + 1) * sizeof(*list));
	size_t n;

	THR_ASSERT(list);
	n = maybe_list(c, at, list);
	free(list);
	return (unsigned)n;
}

/* Durable by itself. */
static bool must(const struct entry *e, uint64_t at)
{
	return e->fua && e->completed <= at;
}

/* A truncation stays where it is, as no file system writes what it has cut off; and so
 * does what was durable by itself. */
static bool stays(const struct entry *e, uint64_t at)
{
	return e->op == BLK_OP_TRUNCATE || must(e, at);
}

static void shuffle(struct entry **v, size_t n, uint64_t at, uint64_t *seed)
{
	for (size_t i = 0, end = 0; i < n; i++) {
		struct entry *t = v[i];
		size_t j;

		while (end < n && (end <= i || !stays(v[end], at)))
			end++;
		if (stays(t, at))
			continue;
		j = i + crash_rnd(seed, (uint32_t)(end - i));
		v[i] = v[j];
		v[j] = t;
	}
}

static void apply_some(struct crash *c, const struct cut *cut, struct entry *const *maybe,
	size_t n, const struct entry *e, uint64_t *seed)
{
	uint32_t how = crash_rnd(seed, 3);

	if (how == 0)
		return;
	if (how == 1 || cut->mode == MODE_SUBSET || e->op == BLK_OP_TRUNCATE)
		apply_whole(c, cut, maybe, n, e);
	else
		apply_torn(c, cut, maybe, n, e, seed);
}

unsigned state_build(struct crash *c, const struct cut *cut)
{
	struct entry **maybe = malloc((c->rec.n + 1) * 2 * sizeof(*maybe)), **order;
	uint64_t seed =
		(c->seed * 31 + cut->mode) * 0x100000001b3ull + cut->at * 131 + cut->sub;
	size_t n;

	THR_ASSERT(maybe);
	order = maybe + c->rec.n + 1;
	for (; c->applied < c->rec.n && c->order[c->applied]->durable <= cut->at; c->applied++)
		apply(c, c->order[c->applied], c->base[c->order[c->applied]->dev]);
	for (unsigned i = 0; i < DEVS; i++)
		if (c->state[i])
			store_reset(c->state[i]);
	n = maybe_list(c, cut->at, maybe);
	memcpy(order, maybe, n * sizeof(*order));
	if (cut->mode == MODE_REORDER)
		shuffle(order, n, cut->at, &seed);
	for (size_t i = 0; i < n; i++) {
		struct entry *e = order[i];
		bool bit = cut->bits && i < 64 && cut->sub >> i & 1;

		if (cut->mode == MODE_ALL)
			apply(c, e, c->state[e->dev]);
		else if (bit || must(e, cut->at))
			apply_whole(c, cut, maybe, n, e);
		else if (!cut->bits && cut->mode != MODE_NONE)
			apply_some(c, cut, maybe, n, e, &seed);
	}
	free(maybe);
	return (unsigned)n;
}
