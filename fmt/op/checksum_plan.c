/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/op/checksum_plan.c - the planner of a checksum: what is to be read, in order.
 *
 * The map is asked extent by extent, in steps as long as the drivers give. Zeroes that
 * end in the same chunk as they begin are a part of its piece that is not read; longer
 * ones are pieces of their own, of whole blocks.
 */
#include "fmt/op/checksum.h"

/* Zeroes are fed in pieces of at most this much (more if blocks are large), so that progress
 * shows and others get to run: about 20 ms of hashing. */
#define ZERO_BLOCKS (1u << 20)
#define PLAIN_STEP  (32u << 20)

void fmt_checksum_fail(struct checksum *cs, enum blk_err_id id, int code, uint64_t off)
{
	thr_mutex_lock(&cs->lock);
	if (!cs->failed || off < cs->fail_off) {
		cs->fail_off = off;
		cs->fail_id = id;
		cs->fail_code = code;
		__atomic_store_n(&cs->failed, true, __ATOMIC_RELAXED);
	}
	thr_mutex_unlock(&cs->lock);
}

/* ---- images ------------------------------------------------------------------------- */

/* Makes cs->ext the extent that pos lies in. */
static int find_extent(struct checksum *cs)
{
	int err;

	if (cs->ext.len && cs->pos - cs->ext.off < cs->ext.len)
		return 0;
	cs->ext.len = 0;
	err = fmt_map(cs->c->image, NULL, cs->pos, blk_size(cs->c->image) - cs->pos, &cs->holes,
		&cs->ext);
	if (err)
		fmt_checksum_fail(cs, BLK_E_MAP_AT, err, cs->pos);
	return err;
}

static uint64_t extent_end(const struct checksum *cs)
{
	return THR_MIN(cs->ext.off + cs->ext.len, cs->total);
}

static bool is_zero(const struct checksum *cs)
{
	return cs->ext.flags & BLK_EXT_ZERO;
}

/* The whole blocks of zeroes at the cursor. */
static uint64_t zero_step(const struct checksum *cs)
{
	uint64_t end = extent_end(cs);
	uint64_t max = cs->sum.plain ? PLAIN_STEP : (uint64_t)ZERO_BLOCKS * cs->block;

	if (!is_zero(cs))
		return 0;
	if (end < cs->total)
		end = thr_align_down(end, cs->block);
	return end > cs->pos ? THR_MIN(end - cs->pos, max) : 0;
}

static void add_seg(struct checksum_piece *p, uint64_t off, uint64_t len, bool zero)
{
	struct checksum_seg *last = p->nsegs ? &p->segs[p->nsegs - 1] : NULL;

	if (last && last->zero == zero) {
		last->len += (uint32_t)len;
		return;
	}
	p->segs[p->nsegs++] = (struct checksum_seg){
		.off = (uint32_t)(off - p->off), .len = (uint32_t)len, .zero = zero};
}

/* There are more parts than there is room for, which are shorter than sectors: what is left
 * of this block is read, and the piece ends with it. Returns that end. */
static uint64_t fill_up(struct checksum *cs, struct checksum_piece *p, uint64_t end)
{
	uint64_t up = THR_MIN(thr_align_up(cs->pos, cs->block), end);

	if (up > cs->pos)
		add_seg(p, cs->pos, up - cs->pos, false);
	cs->pos = up;
	cs->ext.len = 0;
	return up;
}

/* Where a piece that would reach @end stops: zeroes at the cursor that go on to there are
 * not for it, but for the block that they begin in. */
static uint64_t cut(const struct checksum *cs, uint64_t end)
{
	if (!is_zero(cs) || extent_end(cs) < end)
		return end;
	return THR_MIN(thr_align_up(cs->pos, cs->block), end);
}

/* A piece of data at the cursor. */
static int collect(struct checksum *cs, struct checksum_piece *p)
{
	uint64_t end = THR_MIN(thr_align_down(cs->pos, cs->chunk) + cs->chunk, cs->total);

	p->off = cs->pos;
	p->nsegs = 0;
	p->zero = false;
	while (cs->pos < end) {
		int err = find_extent(cs);
		uint64_t len;

		if (err)
			return err;
		if (p->nsegs == cs->segs - 1) {
			end = fill_up(cs, p, end);
			break;
		}
		end = cut(cs, end);
		len = THR_MIN(extent_end(cs), end) - cs->pos;
		if (len)
			add_seg(p, cs->pos, len, is_zero(cs));
		cs->pos += len;
	}
	p->len = end - p->off;
	return 0;
}

static bool plan(struct checksum *cs, struct checksum_piece *p)
{
	if (cs->pos >= cs->total || find_extent(cs))
		return false;
	p->off = cs->pos;
	p->len = zero_step(cs);
	p->zero = p->len != 0;
	if (!p->zero)
		return !collect(cs, p);
	cs->pos += p->len;
	return true;
}

/* ---- streams -------------------------------------------------------------------------- */

struct fill {
	struct checksum *cs;
	uint8_t *buf;
	size_t len;
};

static int fill_buffer(void *arg)
{
	struct fill *f = arg;
	struct fmt_checksum *c = f->cs->c;
	size_t got = 1;
	int err = 0;

	while (!err && got && f->len < f->cs->chunk) {
		got = 0;
		err = c->read(c->ctx, f->buf + f->len, f->cs->chunk - f->len, &got);
		f->len += got;
	}
	return err;
}

/* Reads a whole piece, or what is left. */
static bool pull(struct checksum *cs, struct checksum_piece *p, uint8_t *buf)
{
	struct fill f = {.cs = cs, .buf = buf};
	int err = thr_offload(fill_buffer, &f);

	if (err)
		fmt_checksum_fail(cs, BLK_E_READ_AT, err, cs->pos + f.len);
	p->off = cs->pos;
	p->len = f.len;
	p->zero = false;
	p->nsegs = 0;
	cs->pos += f.len;
	cs->over |= f.len < cs->chunk;
	return !err && f.len;
}

/* ---- places ---------------------------------------------------------------------------- */

static void take_place(struct checksum *cs, struct checksum_piece *p)
{
	thr_mutex_lock(&cs->lock);
	while (cs->taken - cs->fed == CHECKSUM_RING)
		thr_cond_wait(&cs->room, &cs->lock);
	p->place = (unsigned)(cs->taken++ % CHECKSUM_RING);
	cs->places[p->place].len = p->len;
	cs->places[p->place].zero = p->zero;
	cs->places[p->place].ready = false;
	thr_mutex_unlock(&cs->lock);
}

bool fmt_checksum_next(struct checksum *cs, struct checksum_piece *p, uint8_t *buf)
{
	bool found = false;

	p->segs = (struct checksum_seg *)(void *)(buf + cs->chunk);
	thr_mutex_lock(&cs->source);
	if (!cs->over && !__atomic_load_n(&cs->failed, __ATOMIC_RELAXED))
		found = cs->c->image ? plan(cs, p) : pull(cs, p, buf);
	if (found)
		take_place(cs, p);
	else
		cs->over = true;
	thr_mutex_unlock(&cs->source);
	return found;
}
