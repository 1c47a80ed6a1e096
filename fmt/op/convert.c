/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/op/convert.c - the workers of a conversion (see convert.h), and its frame.
 *
 * A worker does one chunk after another: read, find the zeroes, write the rest. It has
 * one buffer meanwhile, so memory is bounded by the number of workers.
 */
#include "cz/cz.h"
#include "fmt/op/convert.h"

#define DEFAULT_FIBERS 8u
#define DEFAULT_MEMORY (32u << 20)
#define GRAIN          4096u

/* A part of a chunk that is written in one request. */
struct run {
	struct worker *w;
	uint32_t off, len; /* in the chunk */
	bool zero;
	uint64_t ticket;
};

struct worker {
	struct convert *cv;
	struct convert_chunk ck;
	uint8_t *buf;     /* a chunk, while there is one */
	struct run *runs; /* behind it: as many as a chunk can have */
	unsigned nruns;
	struct thr_group group;
};

static const struct thr_alloc *memory(const struct convert *cv)
{
	return cv->c->dst->mem;
}

/* ---- reading ------------------------------------------------------------------ */

#define SECTOR 512u

/* Reads what can be read, in the smallest pieces; the rest is zeroes. */
static int salvage(struct worker *w, struct blk *src, uint64_t off, uint8_t *buf, uint32_t len)
{
	uint32_t step = THR_MAX(SECTOR, src->align);
	uint64_t lost = 0;
	uint32_t n;

	for (uint32_t at = 0; at < len; at += n) {
		n = THR_MIN(len - at, step - ((uint32_t)(off + at) & (step - 1)));
		if (!blk_pread(src, off + at, buf + at, n))
			continue;
		memset(buf + at, 0, n);
		lost += n;
	}
	__atomic_add_fetch(w->cv->c->lost, lost, __ATOMIC_RELAXED);
	return 0;
}

/* From one source after another. */
static int read_data(struct worker *w, const struct convert_seg *s)
{
	uint64_t off = s->src_off;
	unsigned src = s->src;
	uint32_t n;

	for (uint32_t at = 0; at < s->len; at += n, off = 0, src++) {
		struct blk *b = w->cv->c->src[src];
		uint8_t *to = w->buf + s->off + at;
		int err = 0;

		n = (uint32_t)THR_MIN(s->len - at, blk_size(b) - off);
		if (n)
			err = blk_pread(b, off, to, n);
		if (err && w->cv->c->lost)
			err = salvage(w, b, off, to, n);
		if (err)
			return err;
	}
	return 0;
}

static int read_seg(struct worker *w, const struct convert_seg *s)
{
	if (s->kind == CONVERT_ZERO)
		memset(w->buf + s->off, 0, s->len);
	return s->kind == CONVERT_DATA ? read_data(w, s) : 0;
}

static int read_chunk(struct worker *w, uint64_t *off)
{
	for (unsigned i = 0; i < w->ck.nsegs; i++) {
		const struct convert_seg *s = &w->ck.segs[i];
		int err = read_seg(w, s);

		*off = w->ck.off + s->off;
		if (err)
			return err;
	}
	return 0;
}

/* ---- runs ---------------------------------------------------------------------- */

static void push(struct worker *w, uint32_t off, uint32_t len, bool zero)
{
	struct run *last = w->nruns ? &w->runs[w->nruns - 1] : NULL;

	if (last && last->zero == zero && last->off + last->len == off) {
		last->len += len;
		return;
	}
	w->runs[w->nruns++] = (struct run){.w = w, .off = off, .len = len, .zero = zero};
}

/* Finds the runs of one part of the chunk, in steps of the grain counted from the
 * start of the target. */
static void scan(struct worker *w, uint32_t off, uint32_t end)
{
	const struct convert *cv = w->cv;

	if (!cv->c->sparse) {
		push(w, off, end - off, false);
		return;
	}
	while (off < end) {
		uint32_t into = (uint32_t)(w->ck.off + off) & (cv->grain - 1);
		uint32_t len = end - off;
		bool zero;

		if (into)
			len = THR_MIN(len, cv->grain - into);
		len = (uint32_t)cz_zero_run(w->buf + off, len, cv->grain, &zero);
		push(w, off, len, zero);
		off += len;
	}
}

/* Zeroes between data that are fewer than asked for are data. Those at the ends may
 * go on in the chunks next to this one. */
static void join_short(struct worker *w)
{
	unsigned n = w->nruns;

	w->nruns = 0;
	for (unsigned i = 0; i < n; i++) {
		struct run r = w->runs[i];

		if (r.zero && r.len < w->cv->c->sparse && i && i + 1 < n)
			r.zero = false;
		push(w, r.off, r.len, r.zero);
	}
}

static void drop_zero_runs(struct worker *w)
{
	unsigned n = 0;

	for (unsigned i = 0; i < w->nruns; i++)
		if (!w->runs[i].zero)
			w->runs[n++] = w->runs[i];
	w->nruns = n;
}

static void find_runs(struct worker *w)
{
	const struct convert_chunk *ck = &w->ck;
	unsigned i = 0;

	w->nruns = 0;
	while (i < ck->nsegs) {
		uint32_t from = ck->segs[i].off;
		uint32_t to = from;

		for (; i < ck->nsegs && ck->segs[i].kind != CONVERT_SKIP; i++)
			to += ck->segs[i].len;
		if (to > from)
			scan(w, from, to);
		else
			i++;
	}
	if (w->cv->c->sparse > w->cv->grain)
		join_short(w);
	if (w->cv->c->dst_is_zero)
		drop_zero_runs(w);
}

/* ---- writing -------------------------------------------------------------------- */

static int write_run(void *arg)
{
	struct run *run = arg;
	struct worker *w = run->w;
	struct convert *cv = w->cv;
	struct blk_turn turn = {.seq = &cv->writes, .ticket = run->ticket};
	struct thr_iov v = {.base = w->buf + run->off, .len = run->len};
	struct blk_req r = {
		.off = w->ck.off + run->off,
		.len = run->len,
		.turn = &turn,
	};
	int err;

	thr_fiber_ticket(w->ck.ticket);
	if (fmt_convert_beyond(cv, r.off)) {
		blk_turn_leave(&turn);
		return 0;
	}
	if (run->zero) {
		r.flags = BLK_UNMAP;
		err = blk_zero(cv->c->dst, &r);
	} else {
		r.iov = &v;
		r.niov = 1;
		r.flags = cv->c->compress ? BLK_COMPRESS : 0;
		err = blk_pwritev(cv->c->dst, &r);
	}
	if (err)
		fmt_convert_fail(cv, BLK_E_WRITE_AT, err, r.off);
	return 0;
}

static struct thr_exec *spread(struct convert *cv)
{
	struct thr_pool *p = thr_pool_self();
	unsigned i = __atomic_fetch_add(&cv->next_exec, 1, __ATOMIC_RELAXED);

	return p ? thr_pool_exec(p, i % thr_pool_count(p)) : NULL;
}

/* All but the last run of a chunk are fibers of their own: each waits for its turn
 * to allocate, and their data is written at the same time. */
static void spawn_run(struct worker *w, struct run *run)
{
	int err = thr_group_spawn(&w->group, spread(w->cv), write_run, run);

	if (!err)
		return;
	thr_seq_pass(&w->cv->writes, run->ticket);
	fmt_convert_fail(w->cv, BLK_E_WRITE_AT, err, w->ck.off + run->off);
}

static void write_runs(struct worker *w)
{
	struct convert *cv = w->cv;

	if (!w->nruns) {
		thr_seq_pass(&cv->chunks, w->ck.ticket);
		return;
	}
	thr_group_init(&w->group);
	(void)thr_seq_enter(&cv->chunks, w->ck.ticket);
	for (unsigned i = 0; i < w->nruns; i++) {
		w->runs[i].ticket = thr_seq_take(&cv->writes);
		if (i + 1 < w->nruns)
			spawn_run(w, &w->runs[i]);
	}
	thr_seq_pass(&cv->chunks, w->ck.ticket);
	/* The next ones pass on theirs before this one computes for long. */
	if (cv->c->compress)
		thr_yield();
	(void)write_run(&w->runs[w->nruns - 1]);
	(void)thr_group_wait(&w->group);
}

/* ---- workers --------------------------------------------------------------------- */

/* One request that makes a long range read as zeroes. */
static void zero_chunk(struct worker *w)
{
	struct convert *cv = w->cv;
	struct blk_turn turn = {.seq = &cv->writes};
	struct blk_req r = {
		.off = w->ck.off,
		.len = w->ck.len,
		.flags = BLK_UNMAP,
		.turn = &turn,
	};
	int err;

	(void)thr_seq_enter(&cv->chunks, w->ck.ticket);
	turn.ticket = thr_seq_take(&cv->writes);
	thr_seq_pass(&cv->chunks, w->ck.ticket);
	err = blk_zero(cv->c->dst, &r);
	if (err)
		fmt_convert_fail(cv, BLK_E_WRITE_AT, err, r.off);
}

static void do_chunk(struct worker *w)
{
	uint64_t off = w->ck.off;
	int err = 0;

	w->nruns = 0;
	if (!fmt_convert_beyond(w->cv, off)) {
		if (w->ck.zero) {
			zero_chunk(w);
			return;
		}
		err = read_chunk(w, &off);
		if (err)
			fmt_convert_fail(w->cv, BLK_E_READ_AT, err, off);
		else
			find_runs(w);
	}
	write_runs(w);
}

/* False where there is no memory. The last worker has to have some; the others leave
 * the work to those who do. */
static bool take_buffer(struct worker *w, unsigned *number)
{
	struct convert *cv = w->cv;

	w->buf = fmt_bufs_take(&cv->bufs, number);
	if (w->buf) {
		w->runs = (struct run *)(void *)(w->buf + cv->chunk);
		return true;
	}
	if (__atomic_sub_fetch(&cv->workers, 1, __ATOMIC_ACQ_REL) == 0)
		fmt_convert_fail(cv, BLK_E_SYS, -THR_ENOMEM, 0);
	return false;
}

static int work(void *arg)
{
	struct worker *w = arg;
	uint64_t done = 0;
	bool more = true;
	unsigned number;

	while (more && take_buffer(w, &number)) {
		more = fmt_convert_next(w->cv, done, &w->ck);
		if (more) {
			thr_fiber_ticket(w->ck.ticket);
			if (w->ck.wait_ns)
				thr_sleep(w->ck.wait_ns);
			do_chunk(w);
			done = w->ck.len;
		}
		fmt_bufs_give(&w->cv->bufs, number);
		/* Where nothing ever waits, nobody else would get to run here. */
		thr_yield();
	}
	return 0;
}

/* ---- the frame -------------------------------------------------------------------- */

static unsigned worker_count(const struct convert *cv)
{
	uint64_t bytes = cv->c->memory ? cv->c->memory : DEFAULT_MEMORY;
	unsigned n = cv->c->fibers ? cv->c->fibers : DEFAULT_FIBERS;

	n = THR_MIN(n, FMT_BUFS_MAX);
	if (cv->c->compress)
		bytes /= 2; /* what it is compressed to comes on top */
	if (n > bytes / cv->chunk)
		n = (unsigned)(bytes / cv->chunk);
	return thr_in_fiber() && n ? n : 1;
}

static size_t buffer_size(const struct convert *cv)
{
	return cv->chunk + (cv->chunk / cv->grain + 2 * CONVERT_SEGS) * sizeof(struct run);
}

static int run_workers(struct convert *cv)
{
	unsigned n = worker_count(cv);
	struct worker *w = thr_zget(memory(cv), n * sizeof(*w));
	struct thr_group g;

	if (!w)
		return -THR_ENOMEM;
	fmt_bufs_init(&cv->bufs, n, buffer_size(cv), memory(cv));
	cv->workers = n;
	thr_group_init(&g);
	for (unsigned i = 0; i < n; i++)
		w[i].cv = cv;
	for (unsigned i = 1; i < n; i++)
		if (thr_group_spawn(&g, spread(cv), work, &w[i]))
			__atomic_sub_fetch(&cv->workers, 1, __ATOMIC_ACQ_REL);
	(void)work(&w[0]);
	(void)thr_group_wait(&g);
	fmt_bufs_fini(&cv->bufs);
	thr_put(memory(cv), w, n * sizeof(*w));
	return 0;
}

static uint32_t largest_grain(const struct fmt_convert *c)
{
	uint32_t max = c->dst->zero_align;

	for (unsigned i = 0; i < c->nsrc; i++)
		max = THR_MAX(max, c->src[i]->zero_align);
	return max;
}

/* How data is cut where it is compressed: 1 where it is not. */
static int compress_unit(const struct fmt_convert *c, uint32_t *unit, struct blk_err *err)
{
	const struct fmt_driver *d = fmt_driver_of(c->dst);

	*unit = 1;
	if (!c->compress)
		return 0;
	if (!d || !d->compress)
		return blk_fail(err, -THR_ENOTSUP, BLK_E_NO_COMPRESS, 0, 0);
	return d->compress(c->dst, unit, err);
}

static int plan(struct convert *cv, const struct fmt_convert *c, struct blk_err *err)
{
	int code = compress_unit(c, &cv->unit, err);

	if (code)
		return code;
	cv->c = c;
	cv->chunk = THR_MAX(THR_MAX(CONVERT_CHUNK, cv->unit), largest_grain(c));
	cv->grain = THR_MIN(GRAIN, c->sparse ? c->sparse & -c->sparse : GRAIN);
	cv->grain = THR_MAX(THR_MAX(cv->grain, cv->unit), c->dst->zero_align);
	for (unsigned i = 0; i < c->nsrc; i++)
		if (thr_add_over(cv->total, blk_size(c->src[i]), &cv->total))
			return blk_fail(err, -THR_EFBIG, BLK_E_SYS, 0, 0);
	if (cv->total > blk_size(c->dst))
		return blk_fail(err, -THR_EINVAL, BLK_E_TARGET_SMALL, 0, cv->total);
	thr_mutex_init(&cv->lock);
	thr_seq_init(&cv->chunks);
	thr_seq_init(&cv->writes);
	return 0;
}

int fmt_convert(const struct fmt_convert *c, struct blk_err *err)
{
	struct convert *cv = thr_zget(c->dst->mem, sizeof(*cv));
	int code;

	if (!cv)
		return blk_fail(err, -THR_ENOMEM, BLK_E_SYS, 0, 0);
	code = plan(cv, c, err);
	if (!code) {
		code = run_workers(cv);
		if (code)
			blk_fail(err, code, BLK_E_SYS, 0, 0);
		else if (cv->failed)
			code = blk_fail(err, cv->fail_code, cv->fail_id, cv->fail_off, 0);
	}
	thr_put(c->dst->mem, cv, sizeof(*cv));
	return code;
}
