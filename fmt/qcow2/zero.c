/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/zero.c - zeroing and discarding.
 *
 * In version 3 an L2 entry has a flag for "reads as zeroes", so whole clusters need
 * no data. Version 2 has none: there a cluster can be unallocated where nothing
 * shows through from below, and needs real zeroes elsewhere. A discard never makes
 * anything from below show that was hidden before; where it could not help that it
 * leaves the cluster alone.
 *
 * With extended entries the same holds for subclusters; of a compressed cluster, which
 * has none, a part is zeroed by data.
 *
 * What reads as zeroes already is passed over in runs, and costs nothing. Tables are
 * changed one at a time, with nothing held in between.
 */
#include "fmt/qcow2/write.h"

struct job {
	bool discard;
	bool unmap;     /* give host clusters up */
	bool must_keep; /* BLK_NO_FALLBACK: no data may be written */
	bool empty;     /* nothing is allocated afterwards: what lies below shows */
};

/* What is to be done from an offset on. */
enum step_kind {
	STEP_SKIP,
	STEP_EDIT, /* change L2 entries as edit says */
	STEP_DATA, /* write zeroes */
};

struct step {
	enum step_kind kind;
	uint64_t len;
	struct qcow2_edit edit;
};

/* ---- deciding ---------------------------------------------------------------- */

/* To the end of the L2 table that @off is in, at most @len. */
static uint64_t to_table_end(const struct qcow2 *q, uint64_t off, uint64_t len)
{
	uint64_t mask = (1ull << (q->h.cluster_bits + q->l2_bits)) - 1;

	return THR_MIN(len, mask + 1 - (off & mask));
}

/* The entries of version 3: each decides for itself, so the rest of the table is
 * done in one step once one needs it. */
static void decide_v3(struct qcow2 *q, const struct job *j, uint64_t off, uint64_t len,
	const struct qcow2_extent *x, bool zero_below, struct step *s)
{
	bool below = q->backing || q->blk.backing;

	s->kind = STEP_SKIP;
	switch (x->kind) {
	case QCOW2_UNALLOCATED:
		if (j->discard || zero_below)
			return;
		break;
	case QCOW2_ZERO:
		return;
	case QCOW2_ZERO_ALLOC:
		if (!j->unmap)
			return;
		break;
	case QCOW2_NORMAL:
	case QCOW2_COMPRESSED_CLUSTER:
		break;
	}
	s->kind = STEP_EDIT;
	s->len = x->kind == QCOW2_UNALLOCATED ? to_table_end(q, off, x->len)
					      : to_table_end(q, off, len);
	s->edit.mode = j->unmap ? QCOW2_EDIT_ZERO : QCOW2_EDIT_ZERO_KEEP;
	s->edit.hide = below && !j->discard;
}

static void decide_v2(struct qcow2 *q, const struct job *j, uint64_t off,
	const struct qcow2_extent *x, bool zero_below, struct step *s)
{
	bool keep = x->kind == QCOW2_NORMAL && x->copied && !j->unmap;

	s->len = to_table_end(q, off, s->len);
	if (x->kind == QCOW2_UNALLOCATED)
		s->kind = j->discard || zero_below ? STEP_SKIP : STEP_DATA;
	else if (zero_below && !keep)
		s->kind = STEP_EDIT;
	else
		s->kind = j->discard ? STEP_SKIP : STEP_DATA;
	if (s->kind == STEP_SKIP && x->kind == QCOW2_UNALLOCATED)
		s->len = x->len;
	s->edit.mode = QCOW2_EDIT_CLEAR;
}

/* The rest of the table in one step, once there is something in it. */
static void decide_empty(struct qcow2 *q, uint64_t off, uint64_t len,
	const struct qcow2_extent *x, struct step *s)
{
	if (x->kind == QCOW2_UNALLOCATED)
		return;
	s->kind = STEP_EDIT;
	s->len = to_table_end(q, off, len);
	s->edit.mode = QCOW2_EDIT_CLEAR;
}

/* A part of a cluster that has no parts. */
static void decide_part(const struct job *j, uint64_t len, struct step *s)
{
	s->kind = j->discard ? STEP_SKIP : STEP_DATA;
	s->len = len;
}

/* A step is either whole clusters or within one. */
static uint64_t step_len(const struct qcow2 *q, uint64_t off, uint64_t len)
{
	uint64_t in = off & q->cluster_mask;

	if (in || len < q->cluster_size)
		return THR_MIN(len, q->cluster_size - in);
	return len & ~(uint64_t)q->cluster_mask;
}

static bool wants_below(
	const struct qcow2 *q, const struct job *j, const struct qcow2_extent *x)
{
	if (j->empty)
		return false;
	if (x->kind == QCOW2_UNALLOCATED)
		return !j->discard;
	return q->h.version < 3;
}

/* Whole clusters, or subclusters, from @off on. */
static int decide(
	struct qcow2 *q, const struct job *j, uint64_t off, uint64_t len, struct step *s)
{
	struct qcow2_extent x;
	uint32_t unit = q->unit_mask + 1;
	bool zero = false;
	uint64_t n;
	int err;

	len = step_len(q, off, len);
	err = qcow2_map(q, off, len, &x);
	if (err)
		return err;
	n = x.len;
	if (wants_below(q, j, &x)) {
		err = qcow2_zero_below(q, off, x.len, &zero, &n);
		if (err)
			return err;
		/* A cluster that is partly zero below is not. */
		if (zero && n < unit && n < x.len)
			zero = false;
		n = THR_MAX(n & ~(uint64_t)q->unit_mask, unit);
	}
	memset(s, 0, sizeof(*s));
	x.len = THR_MIN(x.len, n);
	s->len = x.len;
	s->edit.flags = j->unmap ? QCOW2_PUNCH : 0;
	if (j->empty)
		decide_empty(q, off, len, &x, s);
	else if (q->h.version < 3)
		decide_v2(q, j, off, &x, zero, s);
	else if (x.kind == QCOW2_COMPRESSED_CLUSTER && len < q->cluster_size)
		decide_part(j, len, s);
	else
		decide_v3(q, j, off, len, &x, zero, s);
	return 0;
}

/* ---- doing --------------------------------------------------------------------- */

static int edit(struct qcow2 *q, const struct job *j, uint64_t off, struct step *s)
{
	uint64_t n = ((off & q->cluster_mask) + s->len + q->cluster_mask) >> q->h.cluster_bits;
	int err = qcow2_touch(q);

	if (err)
		return err;
	if (qcow2_external(q) && s->edit.flags & QCOW2_PUNCH && !j->empty)
		qcow2_data_punch(q, off, s->len);
	s->edit.lo = off;
	s->edit.hi = off + s->len;
	qcow2_layout_lock(q);
	err = qcow2_l2_prepare(q, off);
	if (!err)
		err = qcow2_l2_edit(q, off, n, &s->edit);
	qcow2_layout_unlock(q);
	return err;
}

static int write_zeroes(struct qcow2 *q, const struct job *j, uint64_t off, uint64_t len)
{
	struct blk_req r = {.off = off, .len = len};

	return j->must_keep ? -THR_ENOTSUP : qcow2_write_range(q, &r, NULL);
}

/* One step: the range is held from deciding to doing, so that what is there cannot
 * change in between. Data is written without it, since writing takes it itself; who
 * writes there at the same time has no order with us. */
static int one_step(
	struct qcow2 *q, const struct job *j, uint64_t off, uint64_t len, uint64_t *done)
{
	uint64_t in = off & q->cluster_mask;
	unsigned cookie = qcow2_enter(q);
	struct blk_range lock;
	struct step s;
	int err;

	blk_range_lock(
		&q->w->ranges, &lock, off - in, thr_align_up(in + len, q->cluster_size), false);
	err = decide(q, j, off, len, &s);
	if (!err && s.kind == STEP_EDIT)
		err = edit(q, j, off, &s);
	blk_range_unlock(&q->w->ranges, &lock);
	if (!err && s.kind == STEP_DATA)
		err = write_zeroes(q, j, off, s.len);
	qcow2_exit(q, cookie);
	*done = s.len;
	return err;
}

static int whole_clusters(struct qcow2 *q, const struct job *j, uint64_t off, uint64_t len)
{
	uint64_t done;
	int err = 0;

	while (!err && len) {
		err = qcow2_make_room(q);
		if (!err)
			err = one_step(q, j, off, len, &done);
		if (err)
			break;
		off += done;
		len -= done;
	}
	return err;
}

/* Whether a part of a cluster reads as zeroes. */
static int reads_zero(struct qcow2 *q, uint64_t off, uint64_t len, bool *zero)
{
	struct qcow2_extent x;
	uint64_t n, end = off + len;
	int err = qcow2_map(q, off, len, &x);

	*zero = !err && (x.kind == QCOW2_ZERO || x.kind == QCOW2_ZERO_ALLOC);
	if (err || x.kind != QCOW2_UNALLOCATED)
		return err;
	do {
		err = qcow2_zero_below(q, off, end - off, zero, &n);
		off += n;
	} while (!err && *zero && off < end);
	return err;
}

static int part_of_cluster(struct qcow2 *q, const struct job *j, uint64_t off, uint64_t len)
{
	unsigned cookie;
	bool zero;
	int err;

	if (!len || j->discard)
		return 0;
	err = qcow2_make_room(q);
	if (err)
		return err;
	cookie = qcow2_enter(q);
	err = reads_zero(q, off, len, &zero);
	if (!err && !zero)
		err = write_zeroes(q, j, off, len);
	qcow2_exit(q, cookie);
	return err;
}

static int run_job(struct qcow2 *q, const struct job *j, uint64_t off, uint64_t len)
{
	uint64_t end = off + len, mask = q->unit_mask;
	uint64_t first = (off + mask) & ~mask, last = end & ~mask;
	int err;

	/* The cluster that the disk ends in is whole if what is left of the disk is. */
	if (end >= blk_size(&q->blk))
		last = (end + q->cluster_mask) & ~(uint64_t)q->cluster_mask;
	if (first > last)
		return part_of_cluster(q, j, off, len);
	err = part_of_cluster(q, j, off, THR_MIN(first, end) - off);
	if (!err)
		err = whole_clusters(q, j, first, last - first);
	if (!err && end > last)
		err = part_of_cluster(q, j, last, end - last);
	return err;
}

int qcow2_zero_range(struct qcow2 *q, uint64_t off, uint64_t len, unsigned flags)
{
	struct job j = {
		.unmap = flags & BLK_UNMAP,
		.must_keep = flags & BLK_NO_FALLBACK,
	};

	if (!len)
		return 0;
	return qcow2_raw_data(q) ? qcow2_data_zero(q, off, len, flags)
				 : run_job(q, &j, off, len);
}

/* All of it in its turn: tables may have to be made. */
static int in_turn(struct qcow2 *q, const struct job *j, struct blk_req *r)
{
	int err = blk_turn_enter(r->turn);

	if (!err && qcow2_raw_data(q))
		return qcow2_data_zero(q, r->off, r->len, r->flags);
	return qcow2_guarded(q, err ? err : run_job(q, j, r->off, r->len));
}

int qcow2_zero(struct blk *b, struct blk_req *r)
{
	struct job j = {
		.unmap = r->flags & BLK_UNMAP,
		.must_keep = r->flags & BLK_NO_FALLBACK,
	};

	return in_turn(qcow2_of(b), &j, r);
}

int qcow2_discard(struct blk *b, struct blk_req *r)
{
	struct job j = {.discard = true, .unmap = true};
	uint64_t start = thr_align_up(r->off, qcow2_of(b)->cluster_size);
	uint64_t end = r->off + r->len;

	/* Parts of clusters stay, here as well. */
	if (qcow2_raw_data(qcow2_of(b))) {
		if (end < blk_size(b))
			end = thr_align_down(end, qcow2_of(b)->cluster_size);
		if (start >= end)
			return 0;
		return qcow2_data_zero(qcow2_of(b), start, end - start, BLK_UNMAP);
	}

	return in_turn(qcow2_of(b), &j, r);
}

int qcow2_empty(struct blk *b)
{
	struct job j = {.unmap = true, .empty = true};

	struct qcow2 *q = qcow2_of(b);
	int err = run_job(q, &j, 0, blk_size(b));

	if (err || !qcow2_external(q))
		return err;
	/* What is below shows, durably, before the data goes. */
	err = qcow2_flush(b);
	if (!err)
		qcow2_data_punch(q, 0, blk_size(b));
	return err;
}
