/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/op/convert_plan.c - the planner of a conversion: what is to be done, in order.
 *
 * The map of the sources is asked extent by extent, in steps as long as the drivers
 * give. What need not be touched is passed over here and never becomes a chunk.
 */
#include "fmt/op/convert.h"

/* Zeroes are written in pieces of at most this much, so that progress shows. */
#define ZERO_STEP (1ull << 30)

void fmt_convert_fail(struct convert *cv, enum blk_err_id id, int code, uint64_t off)
{
	thr_mutex_lock(&cv->lock);
	if (!cv->failed || off < cv->fail_off) {
		cv->fail_off = off;
		cv->fail_id = id;
		cv->fail_code = code;
		__atomic_store_n(&cv->failed, true, __ATOMIC_RELEASE);
	}
	thr_mutex_unlock(&cv->lock);
}

bool fmt_convert_beyond(struct convert *cv, uint64_t off)
{
	bool beyond;

	if (THR_LIKELY(!__atomic_load_n(&cv->failed, __ATOMIC_ACQUIRE)))
		return false;
	thr_mutex_lock(&cv->lock);
	beyond = off > cv->fail_off;
	thr_mutex_unlock(&cv->lock);
	return beyond;
}

static struct blk *source(const struct convert *cv)
{
	return cv->c->src[cv->src];
}

static enum convert_kind kind_of(const struct fmt_map_extent *e)
{
	if (!e->flags)
		return CONVERT_SKIP;
	return e->flags & BLK_EXT_ZERO ? CONVERT_ZERO : CONVERT_DATA;
}

/* Makes cv->ext the extent that begins at or before cv->pos and ends after it. */
static int find_extent(struct convert *cv)
{
	uint64_t off;
	int err;

	while (cv->pos - cv->src_at >= blk_size(source(cv))) {
		cv->src_at += blk_size(source(cv));
		cv->src++;
		cv->ext.len = 0;
	}
	off = cv->pos - cv->src_at;
	if (cv->ext.len && off - cv->ext.off < cv->ext.len)
		return 0;
	cv->ext.len = 0;
	err = fmt_map(
		source(cv), cv->c->base, off, blk_size(source(cv)) - off, &cv->holes, &cv->ext);
	if (!err || !cv->c->lost)
		return err;
	/* Reading will tell what can be had of it. */
	cv->ext.off = off;
	cv->ext.len = THR_MIN(blk_size(source(cv)) - off, cv->chunk);
	cv->ext.flags = BLK_EXT_DATA;
	return 0;
}

static uint64_t extent_end(const struct convert *cv)
{
	return cv->src_at + cv->ext.off + cv->ext.len;
}

static uint64_t chunk_end(const struct convert *cv)
{
	return THR_MIN(thr_align_down(cv->pos, cv->chunk) + cv->chunk, cv->total);
}

/* Whether zeroes need no writing. */
static bool drop_zeroes(const struct convert *cv)
{
	return cv->c->dst_is_zero && cv->c->sparse;
}

/* The length of what lies at the cursor and is dealt with in one step, whole chunks
 * at a time: 0 where there is nothing such. */
static uint64_t long_step(const struct convert *cv, enum convert_kind kind)
{
	uint64_t end = extent_end(cv);

	if (kind == CONVERT_DATA || (kind == CONVERT_ZERO && !cv->c->sparse))
		return 0;
	if (end < cv->total)
		end = thr_align_down(end, cv->chunk);
	return end > cv->pos ? end - cv->pos : 0;
}

static void add_seg(
	struct convert *cv, struct convert_chunk *ck, uint64_t len, enum convert_kind kind)
{
	struct convert_seg *last = ck->nsegs ? &ck->segs[ck->nsegs - 1] : NULL;

	if (last && last->kind == kind && last->src == cv->src) {
		last->len += (uint32_t)len;
		return;
	}
	ck->segs[ck->nsegs++] = (struct convert_seg){
		.off = (uint32_t)(cv->pos - ck->off),
		.len = (uint32_t)len,
		.kind = kind,
		.src = cv->src,
		.src_off = cv->pos - cv->src_at,
	};
}

/* What lies at the cursor, at most to @end of the chunk. What is compressed is whole
 * units, so where the backing file has only a part of one, all of it is read. */
static uint64_t piece(const struct convert *cv, uint64_t end, enum convert_kind *kind)
{
	uint64_t to = THR_MIN(extent_end(cv), end), into = to & (cv->unit - 1);

	*kind = kind_of(&cv->ext);
	if (!cv->c->base || !into || to == end)
		return to - cv->pos;
	if (*kind == CONVERT_SKIP && to - into > cv->pos)
		return to - into - cv->pos;
	*kind = CONVERT_DATA;
	return THR_MIN(to - into + cv->unit, end) - cv->pos;
}

/* The chunk at the cursor, up to its end. With more parts than there is room for,
 * what is left is taken as data, whatever source has it, unless the target's backing file has
 * some of it: then the chunk ends early. */
static int collect(struct convert *cv, struct convert_chunk *ck)
{
	uint64_t end = chunk_end(cv);

	ck->off = cv->pos;
	ck->nsegs = 0;
	ck->zero = false;
	while (cv->pos < end) {
		enum convert_kind kind;
		uint64_t len;
		int err = find_extent(cv);

		if (err)
			return err;
		len = piece(cv, end, &kind);
		if (ck->nsegs == CONVERT_SEGS - 1 && cv->c->base)
			break;
		if (ck->nsegs == CONVERT_SEGS - 1) {
			len = end - cv->pos;
			kind = CONVERT_DATA;
			cv->ext.len = 0;
		}
		add_seg(cv, ck, len, kind);
		cv->pos += len;
	}
	ck->len = cv->pos - ck->off;
	return 0;
}

static bool nothing_to_do(const struct convert *cv, const struct convert_chunk *ck)
{
	for (unsigned i = 0; i < ck->nsegs; i++)
		if (ck->segs[i].kind == CONVERT_DATA ||
			(ck->segs[i].kind == CONVERT_ZERO && !drop_zeroes(cv)))
			return false;
	return true;
}

/* One step of the cursor: *found where it gave a chunk. */
static int step(struct convert *cv, struct convert_chunk *ck, bool *found)
{
	enum convert_kind kind;
	uint64_t len;
	int err = find_extent(cv);

	*found = false;
	if (err)
		return err;
	kind = kind_of(&cv->ext);
	len = long_step(cv, kind);
	if (!len) {
		err = collect(cv, ck);
		*found = !err && !nothing_to_do(cv, ck);
		if (!err && !*found)
			cv->done += ck->len;
		return err;
	}
	if (kind == CONVERT_SKIP || drop_zeroes(cv)) {
		cv->pos += len;
		cv->done += len;
		return 0;
	}
	ck->off = cv->pos;
	ck->len = THR_MIN(len, ZERO_STEP);
	ck->zero = true;
	ck->nsegs = 0;
	cv->pos += ck->len;
	*found = true;
	return 0;
}

static bool next_locked(struct convert *cv, struct convert_chunk *ck, int *err)
{
	bool found = false;

	*err = 0;
	while (!found && !cv->over && cv->pos < cv->total) {
		if (__atomic_load_n(&cv->failed, __ATOMIC_RELAXED))
			break;
		*err = step(cv, ck, &found);
		if (*err)
			break;
	}
	if (found)
		ck->ticket = thr_seq_take(&cv->chunks);
	else
		cv->over = true;
	return found;
}

/* Chunks begin no earlier than what was copied before them allows, whoever copies them. */
static uint64_t pace(struct convert *cv, const struct convert_chunk *ck)
{
	uint64_t rate = cv->c->rate;
	uint64_t now, wait;

	if (!rate || ck->zero)
		return 0;
	now = thr_now();
	wait = cv->next_ns > now ? cv->next_ns - now : 0;
	cv->next_ns =
		now + wait + ck->len / rate * 1000000000u + ck->len % rate * 1000000000u / rate;
	return wait;
}

bool fmt_convert_next(struct convert *cv, uint64_t done, struct convert_chunk *ck)
{
	const struct fmt_progress *p = &cv->c->progress;
	uint64_t pos;
	bool found;
	int err;

	thr_mutex_lock(&cv->lock);
	cv->done += done;
	found = next_locked(cv, ck, &err);
	pos = cv->pos;
	if (found)
		ck->wait_ns = pace(cv, ck);
	if (p->fn)
		p->fn(p->ctx, cv->done, cv->total);
	thr_mutex_unlock(&cv->lock);
	if (err)
		fmt_convert_fail(cv, BLK_E_MAP_AT, err, pos);
	return found;
}

bool fmt_reads_zero(struct blk *image)
{
	struct fmt_map_extent e;
	struct fmt_holes holes = {0};
	uint64_t size = blk_size(image);

	for (uint64_t off = 0; off < size; off += e.len)
		if (fmt_map(image, NULL, off, size - off, &holes, &e) ||
			!(e.flags & BLK_EXT_ZERO))
			return false;
	return true;
}
