/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/crash/record.c - devices that are recorded, all on one clock, and the images on
 * them.
 *
 * Each device stands on a log of blk/log, whose entries are copied here. A flush covers
 * what had completed on its device before it was submitted.
 */
#include <stdio.h>
#include <stdlib.h>

#include "t/crash/crash.h"

uint32_t crash_rnd(uint64_t *seed, uint32_t below)
{
	uint64_t z = *seed += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return (uint32_t)((z ^ z >> 31) % below);
}

/* ---- entries -------------------------------------------------------------------- */

static void event(struct record *r)
{
	if (r->nevents == r->event_room) {
		r->event_room = r->event_room * 2 + 256;
		r->event = realloc(r->event, r->event_room * sizeof(*r->event));
		THR_ASSERT(r->event);
	}
	r->event[r->nevents++] = ++r->clock;
}

static void submitted(struct record *r, unsigned dev, const struct blk_log_entry *e)
{
	struct entry *n;

	if (r->n == r->room) {
		r->room = r->room * 2 + 256;
		r->v = realloc(r->v, r->room * sizeof(*r->v));
		THR_ASSERT(r->v);
	}
	event(r);
	n = &r->v[r->n++];
	*n = (struct entry){
		.dev = dev,
		.op = e->op,
		.off = e->off,
		.len = e->len,
		.pending = true,
		.fua = e->flags & BLK_FUA,
		.submitted = r->clock,
		.completed = NEVER,
		.durable = NEVER,
		.gone = NEVER,
	};
	if (e->data) {
		n->data = malloc((size_t)e->len);
		THR_ASSERT(n->data);
		memcpy(n->data, e->data, (size_t)e->len);
	}
}

static void flushed(struct record *r, const struct entry *f)
{
	r->flushes++;
	for (size_t i = 0; i < r->n; i++) {
		struct entry *e = &r->v[i];

		if (e->dev == f->dev && e->op != BLK_OP_FLUSH && e->completed < f->submitted &&
			e->durable == NEVER)
			e->durable = r->clock;
	}
}

/* The one that has been in flight the longest of those that are the same: which of
 * them it is makes no difference. */
static void completed(struct record *r, unsigned dev, const struct blk_log_entry *e)
{
	for (size_t i = 0; i < r->n; i++) {
		struct entry *n = &r->v[i];

		if (n->dev != dev || !n->pending || n->op != e->op || n->off != e->off ||
			n->len != e->len)
			continue;
		event(r);
		n->pending = false;
		if (e->err)
			return;
		n->completed = r->clock;
		if (e->op == BLK_OP_FLUSH)
			flushed(r, n);
		return;
	}
}

static void watched(void *arg, const struct blk_log_entry *e)
{
	struct watch *w = arg;

	if (w->c->fuse.dead)
		return;
	if (e->completed == BLK_LOG_NEVER)
		submitted(&w->c->rec, w->dev, e);
	else
		completed(&w->c->rec, w->dev, e);
}

void crash_gone(struct crash *c)
{
	c->rec.clock++;
	for (size_t i = 0; i < c->rec.n; i++) {
		struct entry *e = &c->rec.v[i];

		if (e->pending)
			e->gone = c->rec.clock;
		e->pending = false;
	}
}

/* ---- images ----------------------------------------------------------------------- */

static struct blk_opts opts_of(const struct blk_opt v[OPTS])
{
	struct blk_opts o = {v, 0};

	while (o.n < OPTS && v[o.n].key)
		o.n++;
	return o;
}

static int make_image(const struct crash_row *r, struct blk *dev[DEVS], struct blk_err *err)
{
	struct blk_opts opts = opts_of(r->create);
	struct fmt_create f = {
		.name = "image",
		.format = r->format,
		.size = r->size,
		.has_size = true,
		.backing = r->backing ? "base" : NULL,
		.backing_format = !r->backing      ? NULL
				  : r->base_format ? r->base_format
						   : "raw",
		.unsafe_backing = true,
		.data = dev[DEV_SECOND],
		.opts = &opts,
		.secrets = r->secrets,
		.mem = &thr_heap,
	};
	const struct fmt_driver *d = fmt_driver_find(r->format);

	return d && d->create ? d->create(dev[DEV_IMAGE], &f, err) : -THR_ENOTSUP;
}

/* The base, full of what a base has. */
static int make_base(const struct crash_row *r, struct blk *dev, struct blk_err *err)
{
	struct blk_opts opts = opts_of(r->base);
	const char *format = r->base_format ? r->base_format : "raw";
	struct fmt_create f = {
		.name = "base",
		.format = format,
		.size = r->backing,
		.has_size = true,
		.opts = &opts,
		.mem = &thr_heap,
	};
	struct fmt_open o = {.format = format, .blk_flags = BLK_RDWR, .mem = &thr_heap};
	uint8_t buf[SECTOR];
	struct blk *b;
	int code = fmt_driver_find(format)->create(dev, &f, err);

	if (!code)
		code = fmt_open_on(&b, dev, &o, err);
	if (code) {
		blk_close(dev);
		return code;
	}
	for (uint64_t s = 0; !code && s < r->backing / SECTOR; s++) {
		/* Some of it is zeroes there. */
		if (s % 16 >= 13)
			continue;
		model_fill(VAL_BASE, s, buf);
		code = blk_pwrite(b, s * SECTOR, buf, SECTOR);
	}
	return fmt_close(b) || code ? -THR_EIO : 0;
}

static int open_image(struct blk **out, const struct crash_row *r, struct blk *const dev[DEVS],
	unsigned blk_flags, unsigned flags, struct blk_err *err)
{
	struct blk_opts opts = opts_of(r->open);
	struct fmt_open o = {
		.format = r->format,
		.blk_flags = blk_flags,
		.flags = flags,
		.opts = &opts,
		.secrets = r->secrets,
		.data = dev[DEV_SECOND],
		.mem = &thr_heap,
	};

	return fmt_open_on(out, dev[DEV_IMAGE], &o, err);
}

static bool has_dev(const struct crash_row *r, unsigned dev)
{
	return dev == DEV_IMAGE || (dev == DEV_SECOND && r->second) ||
	       (dev == DEV_BASE && r->backing);
}

static struct blk *lend(
	struct crash *c, struct store *s, unsigned dev, bool log, unsigned flags)
{
	unsigned how = c->stale ? STORE_STALE : 0;
	struct blk *b, *l;

	if (c->row->flags & ROW_FIXED_FILE && dev == DEV_IMAGE)
		how |= STORE_FIXED;
	if (!log)
		return store_lend(s, how, flags, NULL);
	b = store_lend(s, how | STORE_YIELD, flags, &c->fuse);
	c->watch[dev] = (struct watch){c, dev};
	THR_ASSERT(!blk_log_open(&l, b, watched, &c->watch[dev], &thr_heap, NULL));
	return l;
}

/* The base is open for writing during a commit only. */
static int open_base(struct blk **out, struct crash *c, struct store *s, bool log,
	unsigned flags, struct blk_err *err)
{
	struct fmt_open o = {
		.format = c->row->base_format ? c->row->base_format : "raw",
		.blk_flags = flags & BLK_RDWR,
		.mem = &thr_heap,
	};
	struct blk *dev = lend(c, s, DEV_BASE, log, flags & BLK_RDWR);
	int code = fmt_open_on(out, dev, &o, err);

	if (code)
		blk_close(dev);
	return code;
}

int crash_open(struct crash *c, struct store *const on[DEVS], bool log, unsigned blk_flags,
	unsigned flags, struct blk_err *err)
{
	const struct crash_row *r = c->row;
	bool base_too = flags & OPEN_BASE_RDWR;
	struct blk *base;
	int code;

	flags &= ~(unsigned)OPEN_BASE_RDWR;
	memset(c->dev, 0, sizeof(c->dev));
	for (unsigned i = 0; i < DEV_BASE; i++)
		if (has_dev(r, i))
			c->dev[i] = lend(c, on[i], i, log, blk_flags);
	code = (r->open_image ? r->open_image : open_image)(
		&c->image, r, c->dev, blk_flags, flags, err);
	if (code) {
		blk_close(c->dev[DEV_IMAGE]);
		blk_close(c->dev[DEV_SECOND]);
		c->image = NULL;
		return code;
	}
	if (!r->backing)
		return 0;
	code = open_base(&base, c, on[DEV_BASE], log, base_too ? BLK_RDWR : 0, err);
	if (!code) {
		fmt_set_backing(c->image, base);
		return 0;
	}
	(void)fmt_close(c->image);
	c->image = NULL;
	return code;
}

int crash_make(struct crash *c, struct blk_err *err)
{
	const struct crash_row *r = c->row;
	struct blk *dev[DEVS] = {NULL};
	int code = 0;

	for (unsigned i = 0; i < DEVS; i++)
		if (has_dev(r, i))
			c->live[i] = store_new(NULL);
	if (r->flags & ROW_FIXED_FILE)
		store_truncate(c->live[DEV_IMAGE], r->file_size);
	if (r->backing)
		code = make_base(r, lend(c, c->live[DEV_BASE], DEV_BASE, false, BLK_RDWR), err);
	for (unsigned i = 0; i < DEV_BASE; i++)
		if (has_dev(r, i))
			dev[i] = lend(c, c->live[i], i, false, BLK_RDWR);
	if (!code)
		code = (r->make ? r->make : make_image)(r, dev, err);
	blk_close(dev[DEV_IMAGE]);
	blk_close(dev[DEV_SECOND]);
	for (unsigned i = 0; !code && i < DEVS; i++) {
		if (!c->live[i])
			continue;
		/* What is live from now on stands on what was there at the start. */
		c->start[i] = c->live[i];
		c->live[i] = store_new(c->start[i]);
	}
	return code;
}

void crash_free(struct crash *c)
{
	for (unsigned i = 0; i < DEVS; i++) {
		store_free(c->live[i]);
		store_free(c->start[i]);
	}
	for (size_t i = 0; i < c->rec.n; i++)
		free(c->rec.v[i].data);
	free(c->rec.v);
	free(c->rec.event);
	model_free(&c->m);
}
