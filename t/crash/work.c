/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/crash/work.c - the workload: what a guest does, on one fiber or several, each in a
 * part of the disk of its own; and in between the commands that rewrite an image. What
 * comes next is drawn when the last has ended, so all follows from the seed.
 */
#include <stdio.h>
#include <stdlib.h>

#include "t/crash/crash.h"

static uint32_t rnd(struct crash *c, uint32_t below)
{
	return crash_rnd(&c->rnd, below);
}

static bool has(const struct crash *c, unsigned flag)
{
	return c->row->flags & flag;
}

static bool wrong(struct crash *c, const char *what, int code)
{
	if (!c->where[0])
		snprintf(c->where, sizeof(c->where), "operation %u: %s: %s", c->m.nops, what,
			code ? blk_strerror(code) : "");
	return false;
}

static struct op *begin(struct crash *c, enum op_kind kind)
{
	struct op *o = &c->m.op[c->m.nops++];

	*o = (struct op){.kind = kind, .began = ++c->rec.clock, .ended = NEVER};
	return o;
}

static bool end(struct crash *c, struct op *o, const char *what, int code)
{
	if (code)
		return wrong(c, what, code);
	o->ended = ++c->rec.clock;
	return true;
}

/* ---- single requests ------------------------------------------------------------- */

/* Where: anywhere in the fiber's part, or again and again in a few clusters. Borders of
 * clusters and sectors, or next to them. */
static void place(struct crash *c, struct op *o, unsigned fiber)
{
	uint64_t cluster = THR_MAX(c->image->zero_align, 4096u),
		 all = blk_size(c->image) / SECTOR;
	uint64_t part = all / c->fibers * SECTOR, first, reach, end;

	/* Whole clusters are compressed: none may be in two parts. */
	if (has(c, ROW_COMPRESS) && c->fibers > 1)
		part = thr_align_down(part, cluster);
	first = part * fiber;
	reach = rnd(c, 2) ? THR_MIN(part, 6 * cluster) : part;
	o->off = rnd(c, (uint32_t)(reach / SECTOR)) * (uint64_t)SECTOR;
	o->len = rnd(c, (uint32_t)cluster / SECTOR * 2 + 2) * (uint64_t)SECTOR + SECTOR;
	if (!rnd(c, 5) || has(c, ROW_LARGE))
		o->len += rnd(c, (uint32_t)cluster / SECTOR * 24) * (uint64_t)SECTOR;
	if (has(c, ROW_LARGE) && rnd(c, 2))
		o->len += rnd(c, 256 << 10) & ~511u;
	if (!rnd(c, 3))
		o->off = thr_align_down(o->off, c->image->zero_align);
	if (!rnd(c, 3))
		o->len = thr_align_up(o->len, c->image->zero_align);
	if (!rnd(c, 6)) {
		o->off += rnd(c, SECTOR);
		o->len = o->len > SECTOR ? o->len - rnd(c, SECTOR) : rnd(c, SECTOR) + 1;
	}
	end = THR_MIN(o->off + o->len, part);
	o->len = end > o->off ? end - o->off : 0;
	o->off += first;
}

static bool do_write(struct crash *c, struct op *o)
{
	uint32_t seq = (uint32_t)(o - c->m.op) + 1;
	uint64_t first = o->off / SECTOR, n = (o->off + o->len - 1) / SECTOR - first + 1;
	uint8_t *buf = malloc(n * SECTOR);
	struct thr_iov v = {buf, n * SECTOR};
	struct blk_req r = {
		.off = o->off, .len = o->len, .iov = &v, .niov = 1, .flags = o->flags};
	int code;

	THR_ASSERT(buf);
	r.iov_off = (size_t)(o->off % SECTOR);
	for (uint64_t i = 0; i < n; i++)
		model_fill(seq, first + i, buf + i * SECTOR);
	model_put(&c->m, o, seq);
	code = blk_pwritev(c->image, &r);
	free(buf);
	return end(c, o, "write", code);
}

static bool do_zero(struct crash *c, struct op *o)
{
	struct blk_req r = {.off = o->off, .len = o->len, .flags = o->flags};

	model_put(&c->m, o, 0);
	return end(c, o, "zero", blk_zero(c->image, &r));
}

/* What a discard leaves is the driver's, but it stays that. */
static bool take(struct crash *c, struct op *o, const char *what)
{
	uint8_t *buf = malloc(o->len + 1);
	int code;
	int64_t bad;

	THR_ASSERT(buf);
	code = o->len ? blk_pread(c->image, o->off, buf, o->len) : 0;
	bad = code ? -1 : model_take(&c->m, o, buf);
	free(buf);
	if (code)
		return wrong(c, "read", code);
	if (bad < 0)
		return true;
	snprintf(c->where, sizeof(c->where),
		"operation %u: %s left what was never in sector %lld", c->m.nops, what,
		(long long)bad);
	return false;
}

static bool do_discard(struct crash *c, struct op *o)
{
	struct blk_req r;
	int code;

	o->off = thr_align_up(o->off, SECTOR);
	o->len &= ~(uint64_t)(SECTOR - 1);
	r = (struct blk_req){.off = o->off, .len = o->len};
	/* Until it has ended the sectors may be what they were, or zeroes. */
	code = blk_discard(c->image, &r);
	return end(c, o, "discard", code) && take(c, o, "discard");
}

static bool do_resize(struct crash *c, struct op *o)
{
	uint64_t was = blk_size(c->image),
		 max = c->row->max ? c->row->max : c->row->size * 3 / 2;
	uint64_t size = (1 + rnd(c, (uint32_t)(max / SECTOR))) * (uint64_t)SECTOR;

	/* Seldom very short: there would be little to look at. */
	if (size < c->row->size / 2 && rnd(c, 3))
		size += c->row->size / 2;
	size = THR_MAX(size, c->fibers * 16u * SECTOR);
	o->size = size;
	o->off = was;
	o->len = size > was ? size - was : 0;
	model_put(&c->m, o, 0);
	return end(c, o, "resize", blk_truncate(c->image, size, BLK_PREALLOC_OFF, NULL));
}

static enum op_kind kind_of(struct crash *c)
{
	static const enum op_kind kinds[] = {OP_WRITE, OP_WRITE, OP_WRITE, OP_WRITE, OP_WRITE,
		OP_WRITE, OP_FLUSH, OP_FLUSH, OP_FLUSH, OP_RESIZE, OP_ZERO, OP_DISCARD,
		OP_DISCARD};
	unsigned n = THR_ARRAY_SIZE(kinds) - (has(c, ROW_FEW_ZEROES) ? 3 : 0);
	enum op_kind k = kinds[rnd(c, n)];

	if (k == OP_RESIZE && (c->fibers > 1 || !has(c, ROW_RESIZE) || rnd(c, 2)))
		return OP_WRITE;
	if (k == OP_WRITE && has(c, ROW_COMPRESS) && rnd(c, 2))
		return OP_COMPRESSED;
	return k;
}

static void whole_clusters(struct crash *c, struct op *o)
{
	uint64_t cluster = c->image->zero_align, end;

	o->off = thr_align_down(o->off, cluster);
	end = thr_align_down(blk_size(c->image), cluster);
	o->len = o->off < end ? THR_MIN(thr_align_up(o->len, cluster), end - o->off) : 0;
	o->flags = BLK_COMPRESS;
}

static bool request(struct crash *c, unsigned fiber)
{
	enum op_kind kind = kind_of(c);
	struct op *o = begin(c, kind);

	if (kind == OP_FLUSH)
		return end(c, o, "flush", blk_flush(c->image));
	if (kind == OP_RESIZE)
		return do_resize(c, o);
	place(c, o, fiber);
	if (kind == OP_COMPRESSED)
		whole_clusters(c, o);
	if (!o->len) {
		o->kind = OP_FLUSH;
		return end(c, o, "flush", blk_flush(c->image));
	}
	if (kind == OP_DISCARD)
		return do_discard(c, o);
	if (kind == OP_ZERO) {
		o->flags |= rnd(c, 2) ? BLK_UNMAP : 0;
		return do_zero(c, o);
	}
	o->flags |= rnd(c, 12) ? 0 : BLK_FUA;
	return do_write(c, o);
}

/* ---- fibers ------------------------------------------------------------------------ */

struct worker {
	struct crash *c;
	unsigned fiber, until;
};

static void work(void *arg)
{
	struct worker *w = arg;

	while (w->c->m.nops < w->until && !w->c->where[0])
		(void)request(w->c, w->fiber);
}

static bool work_all(struct crash *c, unsigned n)
{
	struct worker w[4];
	struct thr_exec *e;
	unsigned until = THR_MIN(c->m.nops + n, c->ops);

	THR_ASSERT(!thr_exec_open(&e, &thr_heap));
	for (unsigned i = 0; i < c->fibers; i++) {
		w[i] = (struct worker){c, i, until};
		THR_ASSERT(!thr_spawn(e, work, &w[i]));
	}
	thr_exec_run(e);
	thr_exec_close(e);
	return !c->where[0];
}

/* ---- commands -------------------------------------------------------------------------- */

static bool open_live(struct crash *c, unsigned flags, struct blk_err *err)
{
	int code = crash_open(c, c->live, true, BLK_RDWR, flags, err);
	char text[100];

	if (!code)
		return true;
	blk_err_text(err, text, sizeof(text));
	snprintf(c->where, sizeof(c->where), "operation %u: %s", c->m.nops, text);
	return false;
}

static bool reopen(struct crash *c, unsigned flags, const char *what)
{
	struct blk_err err = BLK_ERR_INIT;
	int code = fmt_close(c->image);

	c->image = NULL;
	if (code)
		return wrong(c, what, code);
	return open_live(c, flags, &err);
}

static bool do_reopen(struct crash *c)
{
	struct op *o = begin(c, OP_REOPEN);

	return reopen(c, 0, "close") && end(c, o, "reopen", 0);
}

static bool do_commit(struct crash *c)
{
	struct op *o;
	struct fmt_commit cm;
	struct blk_err err = BLK_ERR_INIT;
	int code;

	if (!do_reopen(c))
		return false;
	o = begin(c, OP_COMMIT);
	if (!reopen(c, OPEN_BASE_RDWR, "commit"))
		return false;
	cm = (struct fmt_commit){.image = c->image, .base = c->image->backing};
	code = fmt_commit(&cm, &err);
	if (code)
		return wrong(c, "commit", code);
	return reopen(c, 0, "commit") && end(c, o, "commit", 0);
}

static bool do_amend(struct crash *c)
{
	struct op *o = begin(c, OP_AMEND);
	struct blk_err err = BLK_ERR_INIT;

	return end(c, o, "amend", c->row->amend(c->image, rnd(c, UINT32_MAX), &err));
}

static bool check(struct crash *c, unsigned fix, const char *what)
{
	struct fmt_check ck = {.fix = fix};
	struct blk_err err = BLK_ERR_INIT;
	int code = fmt_check(c->image, &ck, &err);

	if (code)
		return wrong(c, what, code);
	if (ck.corruptions || ck.check_errors || (fix && ck.leaks))
		return wrong(c, "check -r left something", 0);
	return true;
}

/* Some requests, in the middle of one of which the process dies. */
static bool fail_soon(struct crash *c)
{
	c->fibers = 1;
	c->fuse.left = 1 + rnd(c, 14);
	for (unsigned i = 0; i < 12 && !c->fuse.dead && c->m.nops < OPS_MAX - 4; i++)
		if (!request(c, 0) && !c->fuse.dead)
			return false;
	c->where[0] = 0;
	return true;
}

/* The device is there no more, and the image goes as it is; what it then has is new, and
 * one of what it might have. */
static bool do_cut(struct crash *c, bool repair)
{
	struct op *o, *fix = NULL;
	struct blk_err err = BLK_ERR_INIT;

	if (rnd(c, 3) && !fail_soon(c))
		return false;
	o = begin(c, OP_CUT);
	c->fuse.dead = true;
	(void)fmt_close(c->image);
	c->image = NULL;
	crash_gone(c);
	c->fuse = (struct fuse){false, 0};
	if (!open_live(c, repair ? FMT_REPAIR : 0, &err))
		return false;
	o->len = o->size = blk_size(c->image);
	if (!take(c, o, "a cut") || !end(c, o, "cut", 0))
		return false;
	if (!repair)
		return true;
	fix = begin(c, OP_REPAIR);
	return check(c, FMT_FIX_LEAKS | FMT_FIX_ERRORS, "check -r") &&
	       reopen(c, 0, "check -r") && end(c, fix, "check -r", 0);
}

static bool command(struct crash *c)
{
	bool checks = fmt_driver_find(c->row->format)->check;

	switch (rnd(c, 5)) {
	case 0:
		return do_reopen(c);
	case 1:
		return has(c, ROW_COMMIT) ? do_commit(c) : true;
	case 2:
		return do_cut(c, checks);
	case 3:
		return c->row->amend ? do_amend(c) : do_cut(c, false);
	}
	return true;
}

bool crash_record(struct crash *c, const struct crash_row *row, uint64_t seed, unsigned ops)
{
	struct blk_err err = BLK_ERR_INIT;
	int code;

	memset(c, 0, sizeof(*c));
	c->row = row;
	c->seed = seed;
	c->rnd = seed * 0x1000193 + 7;
	c->ops = THR_MIN(ops, OPS_MAX - 20);
	c->stale = seed % 2;
	model_init(&c->m, row);
	code = crash_make(c, &err);
	if (code)
		return wrong(c, "create", code);
	if (!open_live(c, 0, &err))
		return false;
	while (c->m.nops < c->ops) {
		c->fibers = rnd(c, 3) ? 1 : 4;
		if (!work_all(c, 6 + rnd(c, 14)) || (c->m.nops < c->ops && !command(c)))
			break;
	}
	if (c->image) {
		code = fmt_close(c->image);
		c->image = NULL;
		if (code)
			wrong(c, "close", code);
	}
	model_settle(&c->m, row);
	return !c->where[0];
}
