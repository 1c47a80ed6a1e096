/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/write.c - writing.
 *
 * What is mapped and ours alone is written in place. Everything else gets new
 * clusters: in its turn, under the lock of the guest range, a batch of the request
 * is mapped and allocated, one run for as many guest clusters as need it; then,
 * with no lock but the range, the data is written, and last the L2 entries are
 * pointed at it. They go to the disk after the flush that follows the data, always:
 * it makes a copy durable before the original is given up, keeps what a reused
 * cluster held from showing, and keeps an entry from pointing past the end of a
 * file whose growth was lost. It costs no flush of its own as long as the counts
 * have to be flushed before the entries anyway.
 *
 * Parts of a new cluster that the request does not cover are filled with what was
 * there before, in the same write; where entries are extended, only those of the
 * subclusters that the request begins and ends in, and subclusters that lie in the
 * shared cluster that is given up. They are left out where that is zeroes and the
 * cluster has never been written.
 */
#include "fmt/barrier.h"
#include "fmt/qcow2/write.h"

enum seg_kind {
	SEG_IN_PLACE,
	SEG_REUSED, /* a cluster that is there but does not count, with whatever it holds */
	SEG_NEW,
	SEG_FRESH, /* new, and reads as zeroes */
};

/* A part of a request, of which all clusters are contiguous in the host. */
struct seg {
	enum seg_kind kind;
	uint64_t off, len; /* in the guest */
	uint64_t host;     /* of off */
	uint64_t lo, hi;   /* what is written if it is not in place: in whole units */
};

#ifdef CONFIG_THR_NONE
#define SEGS 4u
#else
#define SEGS 8u
#endif
struct plan {
	struct seg seg[SEGS];
	unsigned n;
	uint64_t clusters;
	uint64_t end; /* how far it goes in the guest */
};

/* ---- small things ------------------------------------------------------------- */

void qcow2_layout_lock(struct qcow2 *q)
{
	thr_mutex_lock(&q->w->layout);
	fmt_cache_lock(q->cache);
}

void qcow2_layout_unlock(struct qcow2 *q)
{
	fmt_cache_unlock(q->cache);
	thr_mutex_unlock(&q->w->layout);
}

int qcow2_make_room(struct qcow2 *q)
{
	int err = __atomic_load_n(&q->w->err, __ATOMIC_ACQUIRE);

	if (err)
		return err;
	fmt_cache_lock(q->cache);
	if (fmt_cache_pressed(q->cache))
		err = fmt_cache_writeback(q->cache, q->blk.file);
	fmt_cache_unlock(q->cache);
	return err ? err : qcow2_drops_bound(q);
}

int qcow2_zero_below(struct qcow2 *q, uint64_t off, uint64_t len, bool *zero, uint64_t *n)
{
	*n = len;
	*zero = !q->backing;
	return q->blk.backing ? fmt_zero_below(&q->blk, off, len, zero, n) : 0;
}

static uint64_t cluster_start(const struct qcow2 *q, uint64_t off)
{
	return off & ~(uint64_t)q->cluster_mask;
}

static uint64_t cluster_end(const struct qcow2 *q, uint64_t off)
{
	return (off + q->cluster_mask) & ~(uint64_t)q->cluster_mask;
}

static uint64_t unit_start(const struct qcow2 *q, uint64_t off)
{
	return off & ~(uint64_t)q->unit_mask;
}

static uint64_t unit_end(const struct qcow2 *q, uint64_t off)
{
	return (off + q->unit_mask) & ~(uint64_t)q->unit_mask;
}

static uint64_t clusters_of(const struct qcow2 *q, const struct seg *s)
{
	return (cluster_end(q, s->off + s->len) - cluster_start(q, s->off)) >>
	       q->h.cluster_bits;
}

static bool in_place(const struct qcow2_extent *e)
{
	return e->kind == QCOW2_NORMAL && e->copied;
}

static bool reusable(const struct qcow2_extent *e)
{
	return e->mapped && e->copied && e->kind != QCOW2_NORMAL;
}

/* ---- data into the file ------------------------------------------------------------ */

/* @len bytes of the data of @r, from guest offset @off on, to the file at @host. */
static int write_data(
	struct qcow2 *q, const struct blk_req *r, uint64_t off, uint64_t len, uint64_t host)
{
	struct blk_req sub = *r;

	sub.off = off;
	sub.len = len;
	if (r->iov)
		sub.iov_off += (size_t)(off - r->off);
	return qcow2_data_write(q, &sub, host);
}

/* What lies before or behind the data in its first or last cluster. */
struct edge {
	uint64_t off;
	uint32_t len;
	bool zero; /* all of it is zero */
	bool write;
	uint8_t *buf; /* of len bytes, once it is to be written */
};

static int edge_is_zero(struct qcow2 *q, struct edge *g)
{
	uint64_t off = g->off, end = off + g->len, n;
	struct qcow2_extent x;
	int err = 0;

	for (g->zero = true; !err && g->zero && off < end; off += n) {
		err = qcow2_map(q, off, end - off, &x);
		n = x.len;
		if (err)
			break;
		if (x.kind != QCOW2_UNALLOCATED)
			g->zero = x.kind == QCOW2_ZERO || x.kind == QCOW2_ZERO_ALLOC;
		else if (q->blk.backing)
			err = fmt_zero_below(&q->blk, off, x.len, &g->zero, &n);
	}
	return err;
}

static int edge_look(struct qcow2 *q, struct edge *g, bool fresh)
{
	int err = g->len ? edge_is_zero(q, g) : 0;

	g->write = g->len && !(g->zero && fresh);
	return err;
}

/* What lies past the end of the disk is zero, and stays so. */
static int edge_read(struct qcow2 *q, struct edge *g)
{
	uint64_t size = blk_size(&q->blk);
	uint32_t len = g->zero || g->off >= size ? 0 : (uint32_t)THR_MIN(g->len, size - g->off);
	struct thr_iov v = {g->buf, len};
	struct blk_req r = {
		.off = g->off, .len = len, .iov = &v, .niov = 1, .flags = BLK_CHILD};

	memset(g->buf + len, 0, g->len - len);
	return len ? qcow2_preadv(&q->blk, &r) : 0;
}

/* The data of a request with edges around it, in one vector. */
static unsigned gather(
	struct thr_iov *v, const struct blk_req *r, const struct seg *s, struct edge g[2])
{
	size_t skip = r->iov_off + (size_t)(s->off - r->off), left = (size_t)s->len;
	unsigned n = 0, i;

	if (g[0].write)
		v[n++] = (struct thr_iov){g[0].buf, g[0].len};
	for (i = 0; left; i++) {
		size_t len = r->iov[i].len;

		if (skip >= len) {
			skip -= len;
			continue;
		}
		len = THR_MIN(len - skip, left);
		v[n++] = (struct thr_iov){(char *)r->iov[i].base + skip, len};
		skip = 0;
		left -= len;
	}
	if (g[1].write)
		v[n++] = (struct thr_iov){g[1].buf, g[1].len};
	return n;
}

static int write_gathered(
	struct qcow2 *q, const struct blk_req *r, const struct seg *s, struct edge g[2])
{
	size_t bytes = (r->niov + 2) * sizeof(struct thr_iov);
	uint32_t head = g[0].write ? g[0].len : 0;
	struct blk_req sub = {
		.off = s->off - head,
		.len = head + s->len + (g[1].write ? g[1].len : 0),
	};
	struct thr_iov *v = thr_get(q->blk.mem, bytes, 16);
	int err;

	if (!v)
		return -THR_ENOMEM;
	sub.iov = v;
	sub.niov = gather(v, r, s, g);
	err = qcow2_data_write(q, &sub, s->host - head);
	thr_put(q->blk.mem, v, bytes);
	return err;
}

static int write_edge(struct qcow2 *q, const struct edge *g, uint64_t host)
{
	struct thr_iov v = {g->buf, g->len};
	struct blk_req r = {.off = g->off, .len = g->len, .iov = &v, .niov = 1};

	return qcow2_data_write(q, &r, host);
}

/* Zeroes with edges around them: edges that are zero too are zeroed along. */
static int zero_between(
	struct qcow2 *q, const struct blk_req *r, const struct seg *s, struct edge g[2])
{
	uint32_t head = g[0].write && g[0].zero ? g[0].len : 0;
	uint32_t tail = g[1].write && g[1].zero ? g[1].len : 0;
	int err = write_data(q, r, s->off - head, head + s->len + tail, s->host - head);

	if (!err && g[0].write && !g[0].zero)
		err = write_edge(q, &g[0], s->host - g[0].len);
	if (!err && g[1].write && !g[1].zero)
		err = write_edge(q, &g[1], s->host + s->len);
	return err;
}

static int write_edges(
	struct qcow2 *q, const struct blk_req *r, const struct seg *s, struct edge g[2])
{
	int err = 0;

	for (int i = 0; i < 2 && !err; i++)
		if (g[i].write)
			err = edge_read(q, &g[i]);
	if (err)
		return err;
	return r->iov ? write_gathered(q, r, s, g) : zero_between(q, r, s, g);
}

/* Where a segment's last unit ends: an external file has no bytes past the disk's. */
static uint64_t seg_hi(const struct qcow2 *q, const struct seg *s)
{
	if (!qcow2_external(q))
		return s->hi;
	return THR_MIN(s->hi, THR_MAX(s->off + s->len, blk_size(&q->blk)));
}

/* Writes a segment's units whole, as far as they are not zero already. */
static int write_clusters(struct qcow2 *q, const struct blk_req *r, const struct seg *s)
{
	uint64_t end = s->off + s->len;
	bool fresh = s->kind == SEG_FRESH;
	struct edge g[2] = {
		{.off = s->lo, .len = (uint32_t)(s->off - s->lo)},
		{.off = end, .len = (uint32_t)(seg_hi(q, s) - end)},
	};
	size_t bytes;
	uint8_t *buf;
	int err = edge_look(q, &g[0], fresh);

	if (!err)
		err = edge_look(q, &g[1], fresh);
	if (err)
		return err;
	if (!g[0].write && !g[1].write)
		return write_data(q, r, s->off, s->len, s->host);
	bytes = (size_t)g[0].len + g[1].len;
	buf = thr_get(q->blk.mem, bytes, 512);
	if (!buf)
		return -THR_ENOMEM;
	g[0].buf = buf;
	g[1].buf = buf + g[0].len;
	err = write_edges(q, r, s, g);
	thr_put(q->blk.mem, buf, bytes);
	return err;
}

/* ---- planning: in its turn, with range and layout ------------------------------------- */

/* How far from @at on everything needs new clusters: *end. */
static int extent_of_new(struct qcow2 *q, uint64_t at, uint64_t *end)
{
	struct qcow2_extent x;

	while (at < *end) {
		int err = qcow2_map_locked(q, at, *end - at, &x);

		if (err)
			return err;
		if (in_place(&x) || reusable(&x)) {
			*end = at;
			break;
		}
		at += x.len;
	}
	return 0;
}

/* Extends what is written of a new cluster, that of @at, to all that the old one had:
 * a compressed one is whole, of a shared one some subclusters are allocated. */
static int bring_along(struct qcow2 *q, struct seg *s, uint64_t at)
{
	uint64_t base = cluster_start(q, at);
	unsigned first = 0, last = QCOW2_SUBS - 1;
	struct qcow2_extent x;
	int err = qcow2_map_locked(q, at, 1, &x);

	if (err || !(x.kind == QCOW2_COMPRESSED_CLUSTER || (uint32_t)x.bitmap))
		return err;
	if (x.kind != QCOW2_COMPRESSED_CLUSTER) {
		while (!(x.bitmap >> first & 1))
			first++;
		while (!(x.bitmap >> last & 1))
			last--;
	}
	s->lo = THR_MIN(s->lo, base + ((uint64_t)first << q->unit_bits));
	s->hi = THR_MAX(s->hi, base + ((uint64_t)(last + 1) << q->unit_bits));
	return 0;
}

static int plan_new(struct qcow2 *q, struct plan *p, struct seg *s)
{
	uint64_t table = 1ull << (q->h.cluster_bits + q->l2_bits);
	uint64_t start = cluster_start(q, s->off), end = s->off + s->len, at, n, host;
	bool fresh;
	int err;

	for (at = start; at < end; at = (at | (table - 1)) + 1) {
		err = qcow2_l2_prepare(q, at);
		if (err)
			return err;
	}
	if (qcow2_extended(q)) {
		err = bring_along(q, s, s->off);
		if (!err)
			err = bring_along(q, s, end - 1);
		if (err)
			return err;
	}
	n = clusters_of(q, s);
	err = qcow2_data_alloc(q, start, n, &host, &fresh);
	if (err)
		return err;
	s->kind = fresh && !qcow2_encrypted(q) ? SEG_FRESH : SEG_NEW;
	s->host = host + (s->off - start);
	p->clusters += n;
	return 0;
}

static int plan_seg(struct qcow2 *q, struct plan *p, uint64_t end)
{
	uint64_t room = (uint64_t)(QCOW2_BATCH - p->clusters) << q->h.cluster_bits;
	struct seg *s = &p->seg[p->n];
	struct qcow2_extent x;
	int err;

	end = THR_MIN(end, cluster_start(q, p->end) + room);
	s->off = p->end;
	err = qcow2_map_locked(q, s->off, end - s->off, &x);
	if (err)
		return err;
	s->len = x.len;
	s->host = x.host;
	s->lo = unit_start(q, s->off);
	s->hi = unit_end(q, s->off + s->len);
	if (in_place(&x) || reusable(&x)) {
		err = qcow2_data_guard(q, x.host, x.len);
		if (err)
			return err;
	}
	if (in_place(&x)) {
		s->kind = SEG_IN_PLACE;
	} else if (reusable(&x)) {
		s->kind = SEG_REUSED;
	} else {
		err = extent_of_new(q, s->off + s->len, &end);
		s->len = end - s->off;
		s->hi = unit_end(q, end);
		if (!err)
			err = plan_new(q, p, s);
		if (err)
			return err;
	}
	p->end = s->off + s->len;
	p->n++;
	return 0;
}

/* Maps and allocates as much from @off on as one batch takes. */
static int plan_batch(struct qcow2 *q, struct plan *p, uint64_t off, uint64_t end)
{
	int err = 0;

	p->n = 0;
	p->clusters = 0;
	p->end = off;
	qcow2_layout_lock(q);
	while (!err && p->end < end && p->n < SEGS && p->clusters < QCOW2_BATCH)
		err = plan_seg(q, p, end);
	qcow2_layout_unlock(q);
	return err;
}

/* ---- carrying out -------------------------------------------------------------------------
 */

/* Points the entries of a segment at its clusters, whose data has been written;
 * *done of them, also after an error. */
static int map_seg(struct qcow2 *q, const struct seg *s, uint64_t *done)
{
	struct qcow2_edit e = {
		.mode = QCOW2_EDIT_DATA,
		.host = cluster_start(q, s->host),
		.lo = s->lo,
		.hi = s->hi,
	};
	int err;

	fmt_cache_lock(q->cache);
	fmt_cache_wrote(q->cache, q->blk.file);
	if (FMT_BARRIER(DATA_BEFORE_TABLE))
		e.after = fmt_cache_epoch(q->cache, q->blk.file);
	err = qcow2_l2_edit(q, s->off, clusters_of(q, s), &e);
	fmt_cache_unlock(q->cache);
	*done = e.done;
	return err;
}

/* Frees the clusters of a segment behind the first @done, which nothing points to. */
static void free_seg(struct qcow2 *q, const struct seg *s, uint64_t done)
{
	if (s->kind != SEG_NEW && s->kind != SEG_FRESH)
		return;
	qcow2_layout_lock(q);
	qcow2_data_unalloc(q, cluster_start(q, s->host) + (done << q->h.cluster_bits),
		clusters_of(q, s) - done);
	qcow2_layout_unlock(q);
}

static int do_seg(struct qcow2 *q, const struct blk_req *r, const struct seg *s)
{
	uint64_t done = 0;
	int err;

	if (s->kind == SEG_IN_PLACE) {
		err = write_data(q, r, s->off, s->len, s->host);
		qcow2_data_wrote(q);
		return err;
	}
	err = write_clusters(q, r, s);
	if (!err)
		err = map_seg(q, s, &done);
	if (err)
		free_seg(q, s, done);
	return err;
}

static int do_plan(struct qcow2 *q, const struct blk_req *r, const struct plan *p, int err)
{
	for (unsigned i = 0; i < p->n; i++) {
		if (err)
			free_seg(q, &p->seg[i], 0);
		else
			err = do_seg(q, r, &p->seg[i]);
	}
	return err;
}

int qcow2_write_range(struct qcow2 *q, const struct blk_req *r, struct blk_turn *turn)
{
	uint64_t off = r->off, end = r->off + r->len;
	struct blk_range lock;
	struct plan p;
	int err = qcow2_touch(q);

	while (!err && off < end) {
		blk_range_lock(&q->w->ranges, &lock, cluster_start(q, off),
			cluster_end(q, end) - cluster_start(q, off), false);
		err = plan_batch(q, &p, off, end);
		if (err || p.end == end)
			blk_turn_leave(turn);
		err = do_plan(q, r, &p, err);
		blk_range_unlock(&q->w->ranges, &lock);
		off = p.end;
	}
	return err;
}

/* The extent at @off, if it may be written in place. */
static int map_in_place(
	struct qcow2 *q, uint64_t off, uint64_t len, struct qcow2_extent *x, bool *may)
{
	int err;

	fmt_cache_lock(q->cache);
	err = qcow2_map_locked(q, off, len, x);
	*may = !err && in_place(x);
	if (*may)
		err = qcow2_data_guard(q, x->host, x->len);
	fmt_cache_unlock(q->cache);
	return err;
}

/* Writes in place what can be, from the start of the request on; *done says how much.
 * For requests whose order does not matter. */
static int write_mapped(struct qcow2 *q, const struct blk_req *r, uint64_t *done)
{
	struct qcow2_extent x;
	int err = 0;

	for (*done = 0; !err && *done < r->len; *done += x.len) {
		bool may;

		err = map_in_place(q, r->off + *done, r->len - *done, &x, &may);
		if (err || !may)
			break;
		err = write_data(q, r, r->off + *done, x.len, x.host);
	}
	if (*done || err)
		qcow2_data_wrote(q);
	return err;
}

static int write_entered(struct qcow2 *q, const struct blk_req *r)
{
	struct blk_req rest = *r;
	uint64_t done = 0;
	int err = r->turn ? 0 : write_mapped(q, r, &done);

	if (err || done == r->len)
		return err;
	rest.off += done;
	rest.len -= done;
	rest.iov_off += (size_t)done;
	return qcow2_write_range(q, &rest, r->turn);
}

int qcow2_pwritev(struct blk *b, struct blk_req *r)
{
	struct qcow2 *q = qcow2_of(b);
	unsigned cookie;
	int err;

	if (r->flags & BLK_COMPRESS)
		return qcow2_write_packed(q, r);
	err = qcow2_make_room(q);
	if (!err)
		err = blk_turn_enter(r->turn);
	if (err)
		return err;
	cookie = qcow2_enter(q);
	err = write_entered(q, r);
	qcow2_exit(q, cookie);
	return qcow2_guarded(q, err);
}
