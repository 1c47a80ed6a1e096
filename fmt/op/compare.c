/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/op/compare.c - whether two images hold the same.
 *
 * One cursor walks both maps and hands out pieces, in order; workers read and compare
 * them. The first difference or error in the order of the images is the result,
 * whoever finds what first: once something is found, only pieces before it matter, and
 * those have been handed out.
 */
#include "cz/cz.h"
#include "fmt/drivers.h"
#include "fmt/op/bufs.h"

#define PIECE       (256u << 10) /* two of them stay in a processor's cache */
#define MAX_WORKERS 32u
#define SECTOR      512u

enum verdict { NOTHING, CONTENT, ALLOCATION, FAILED };

struct cursor {
	struct blk *image;
	struct fmt_map_extent e; /* len 0: none */
	struct fmt_holes holes;
};

struct compare {
	struct fmt_compare *c;
	const struct thr_alloc *mem;
	uint64_t common, total;

	struct thr_mutex lock;
	struct cursor a, b;
	uint64_t pos;
	uint64_t done;
	bool over;
	bool tail; /* the cursor has reached the part that only one of them has */
	struct fmt_bufs bufs;
	unsigned workers; /* atomic: who has or hopes for a buffer */

	/* What comes first, under the lock. */
	enum verdict verdict;
	uint64_t at;
	int code;
	enum blk_err_id id;
	const struct blk *whose;
};

/* What is to be compared: a or b NULL where zeroes are expected. */
struct piece {
	uint64_t off;
	uint32_t len;
	struct blk *a, *b;
};

struct worker {
	struct compare *cm;
	uint8_t *buf; /* two pieces, while there is one to compare */
};

/* ---- what was found -------------------------------------------------------------- */

static void found_locked(struct compare *cm, enum verdict v, uint64_t at)
{
	if (cm->verdict != NOTHING && at >= cm->at)
		return;
	cm->verdict = v;
	cm->at = at;
}

static void found(struct compare *cm, enum verdict v, uint64_t at)
{
	thr_mutex_lock(&cm->lock);
	found_locked(cm, v, at);
	thr_mutex_unlock(&cm->lock);
}

static void failed_locked(
	struct compare *cm, const struct blk *whose, enum blk_err_id id, int code, uint64_t at)
{
	if (cm->verdict != NOTHING && at >= cm->at)
		return;
	found_locked(cm, FAILED, at);
	cm->whose = whose;
	cm->id = id;
	cm->code = code;
}

/* ---- the cursor -------------------------------------------------------------------- */

/* Makes c->e the extent at @pos. Past the end of an image there are zeroes. */
static int find_extent(struct compare *cm, struct cursor *c, uint64_t pos)
{
	uint64_t size = blk_size(c->image);
	int err;

	if (c->e.len && pos - c->e.off < c->e.len)
		return 0;
	if (pos >= size) {
		c->e = (struct fmt_map_extent){
			.off = pos, .len = cm->total - pos, .flags = BLK_EXT_ZERO};
		return 0;
	}
	err = fmt_map(c->image, NULL, pos, size - pos, &c->holes, &c->e);
	if (!err)
		return 0;
	c->e.len = 0;
	failed_locked(cm, c->image, BLK_E_MAP_AT, err, pos);
	return err;
}

static uint64_t extent_left(const struct cursor *c, uint64_t pos)
{
	return c->e.off + c->e.len - pos;
}

static bool is_zero(const struct cursor *c)
{
	return c->e.flags & BLK_EXT_ZERO;
}

/* One step of the cursor: true where it gave a piece. */
static bool step(struct compare *cm, struct piece *p)
{
	uint64_t pos = cm->pos;
	uint64_t len;

	cm->tail |= pos >= cm->common;
	if (find_extent(cm, &cm->a, pos) || find_extent(cm, &cm->b, pos))
		return false;
	len = THR_MIN(extent_left(&cm->a, pos), extent_left(&cm->b, pos));
	if (cm->c->strict && !cm->tail && cm->a.e.flags != cm->b.e.flags) {
		found_locked(cm, ALLOCATION, pos);
		return false;
	}
	if (is_zero(&cm->a) && is_zero(&cm->b)) {
		cm->pos += len;
		cm->done += len;
		return false;
	}
	p->off = pos;
	p->len = (uint32_t)THR_MIN(len, PIECE - (pos & (PIECE - 1)));
	p->a = is_zero(&cm->a) ? NULL : cm->a.image;
	p->b = is_zero(&cm->b) ? NULL : cm->b.image;
	cm->pos += p->len;
	return true;
}

static bool next_piece(struct compare *cm, uint64_t done, struct piece *p)
{
	const struct fmt_progress *pr = &cm->c->progress;
	bool have = false;

	thr_mutex_lock(&cm->lock);
	cm->done += done;
	while (!have && cm->verdict == NOTHING && cm->pos < cm->total)
		have = step(cm, p);
	if (pr->fn)
		pr->fn(pr->ctx, cm->done, cm->total);
	thr_mutex_unlock(&cm->lock);
	return have;
}

/* ---- workers -------------------------------------------------------------------------- */

static int read_one(struct compare *cm, struct blk *b, uint8_t *buf, const struct piece *p)
{
	int err = blk_pread(b, p->off, buf, p->len);

	if (!err)
		return 0;
	thr_mutex_lock(&cm->lock);
	failed_locked(cm, b, BLK_E_READ_AT, err, p->off);
	thr_mutex_unlock(&cm->lock);
	return err;
}

static bool sector_differs(const uint8_t *a, const uint8_t *b, uint32_t len)
{
	return b ? memcmp(a, b, len) != 0 : !cz_is_zero(a, len);
}

/* @b NULL: zeroes. Finds the first sector that differs. */
static void compare_data(
	struct compare *cm, const struct piece *p, const uint8_t *a, const uint8_t *b)
{
	uint32_t len;

	if (!sector_differs(a, b, p->len))
		return;
	for (uint32_t off = 0; off < p->len; off += len) {
		len = THR_MIN(SECTOR - ((uint32_t)(p->off + off) & (SECTOR - 1)), p->len - off);
		if (!sector_differs(a + off, b ? b + off : NULL, len))
			continue;
		found(cm, CONTENT, thr_align_down(p->off + off, SECTOR));
		return;
	}
}

static void do_piece(struct worker *w, const struct piece *p)
{
	struct compare *cm = w->cm;
	uint8_t *second = w->buf + PIECE;

	if (p->a && read_one(cm, p->a, w->buf, p))
		return;
	if (p->b && read_one(cm, p->b, p->a ? second : w->buf, p))
		return;
	compare_data(cm, p, w->buf, p->a && p->b ? second : NULL);
}

/* False where there is no memory. The last worker has to have some; the others leave
 * the work to those who do. */
static bool take_buffer(struct worker *w, unsigned *number)
{
	struct compare *cm = w->cm;

	w->buf = fmt_bufs_take(&cm->bufs, number);
	if (w->buf)
		return true;
	if (__atomic_sub_fetch(&cm->workers, 1, __ATOMIC_ACQ_REL) == 0) {
		thr_mutex_lock(&cm->lock);
		failed_locked(cm, cm->a.image, BLK_E_SYS, -THR_ENOMEM, 0);
		thr_mutex_unlock(&cm->lock);
	}
	return false;
}

static int work(void *arg)
{
	struct worker *w = arg;
	struct piece p;
	uint64_t done = 0;
	bool more = true;
	unsigned number;

	while (more && take_buffer(w, &number)) {
		more = next_piece(w->cm, done, &p);
		if (more) {
			do_piece(w, &p);
			done = p.len;
		}
		fmt_bufs_give(&w->cm->bufs, number);
		/* Where nothing ever waits, nobody else would get to run here. */
		thr_yield();
	}
	return 0;
}

/* ---- the frame --------------------------------------------------------------------------- */

static void run_workers(struct compare *cm)
{
	struct thr_pool *pool = thr_pool_self();
	unsigned execs = pool ? thr_pool_count(pool) : 1;
	unsigned n = thr_in_fiber() ? THR_MIN(4 * execs, MAX_WORKERS) : 1;
	struct worker w[MAX_WORKERS];
	struct thr_group g;

	fmt_bufs_init(&cm->bufs, n, 2 * PIECE, cm->mem);
	cm->workers = n;
	thr_group_init(&g);
	for (unsigned i = 0; i < n; i++)
		w[i].cm = cm;
	for (unsigned i = 1; i < n; i++)
		if (thr_group_spawn(
			    &g, pool ? thr_pool_exec(pool, i % execs) : NULL, work, &w[i]))
			__atomic_sub_fetch(&cm->workers, 1, __ATOMIC_ACQ_REL);
	(void)work(&w[0]);
	(void)thr_group_wait(&g);
	fmt_bufs_fini(&cm->bufs);
}

static int conclude(struct compare *cm, struct blk_err *err)
{
	struct fmt_compare *c = cm->c;

	/* What lies in the common part is said without a word about lengths. */
	c->warn_size = cm->tail && (cm->verdict == NOTHING || cm->at >= cm->common);
	switch (cm->verdict) {
	case NOTHING:
		return 0;
	case CONTENT:
	case ALLOCATION:
		c->result = FMT_DIFFERENT;
		c->offset = cm->at;
		c->allocation = cm->verdict == ALLOCATION;
		return 0;
	case FAILED:
		break;
	}
	blk_fail(err, cm->code, cm->id, cm->at, 0);
	blk_err_where(err, "Could not compare", cm->whose->name);
	return cm->code;
}

int fmt_compare(struct fmt_compare *c, struct blk_err *err)
{
	uint64_t a = blk_size(c->a), b = blk_size(c->b);
	struct compare *cm;
	int code;

	c->result = FMT_SAME;
	c->offset = 0;
	c->allocation = c->warn_size = false;
	if (c->strict && a != b) {
		c->result = FMT_SIZE_DIFFERS;
		return 0;
	}
	cm = thr_zget(c->a->mem, sizeof(*cm));
	if (!cm)
		return blk_fail(err, -THR_ENOMEM, BLK_E_SYS, 0, 0);
	cm->c = c;
	cm->mem = c->a->mem;
	cm->common = THR_MIN(a, b);
	cm->total = THR_MAX(a, b);
	cm->a.image = c->a;
	cm->b.image = c->b;
	thr_mutex_init(&cm->lock);
	run_workers(cm);
	code = conclude(cm, err);
	thr_put(cm->mem, cm, sizeof(*cm));
	return code;
}
