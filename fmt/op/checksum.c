/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/op/checksum.c - the workers of a checksum (see checksum.h), and its frame.
 */
#include "fmt/drivers.h"
#include "fmt/op/checksum.h"

#define SECTOR 512u

struct worker {
	struct checksum *cs;
	struct checksum_piece p;
	struct cz_digest_ctx *digest; /* NULL with plain */
	uint8_t *buf;
	unsigned number;
};

/* ---- in order ------------------------------------------------------------------------ */

static int feed_place(struct checksum *cs, const struct checksum_place *pl)
{
	if (__atomic_load_n(&cs->failed, __ATOMIC_RELAXED))
		return 0;
	if (pl->zero)
		return fmt_sum_zeroes(&cs->sum, pl->len);
	if (cs->sum.plain)
		return fmt_sum_bytes(&cs->sum, pl->buf, pl->len);
	return fmt_sum_digests(&cs->sum, pl->len, pl->digests);
}

static void report_locked(struct checksum *cs, uint64_t done)
{
	const struct fmt_progress *pr = &cs->c->progress;

	cs->done += done;
	if (pr->fn && cs->c->image)
		pr->fn(pr->ctx, cs->done, cs->total);
}

/* Feeds what is ready, in order, unless somebody is at it. */
static void feed(struct checksum *cs, struct checksum_place *mine)
{
	thr_mutex_lock(&cs->lock);
	mine->ready = true;
	while (!cs->feeding && cs->fed < cs->taken) {
		struct checksum_place *pl = &cs->places[cs->fed % CHECKSUM_RING];
		int err;

		if (!pl->ready)
			break;
		cs->feeding = true;
		thr_mutex_unlock(&cs->lock);
		err = feed_place(cs, pl);
		if (err)
			fmt_checksum_fail(cs, BLK_E_SYS, err, 0);
		if (pl->buf)
			fmt_bufs_give(&cs->bufs, pl->number);
		thr_mutex_lock(&cs->lock);
		pl->buf = NULL;
		cs->feeding = false;
		cs->fed++;
		report_locked(cs, pl->len);
		thr_cond_signal(&cs->room);
	}
	thr_mutex_unlock(&cs->lock);
}

/* ---- pieces ---------------------------------------------------------------------------- */

static bool read_piece(struct worker *w)
{
	const struct checksum_piece *p = &w->p;

	for (unsigned i = 0; i < p->nsegs; i++) {
		const struct checksum_seg *s = &p->segs[i];
		int err;

		if (s->zero) {
			memset(w->buf + s->off, 0, s->len);
			continue;
		}
		err = blk_pread(w->cs->c->image, p->off + s->off, w->buf + s->off, s->len);
		if (!err)
			continue;
		fmt_checksum_fail(w->cs, BLK_E_READ_AT, err, p->off + s->off);
		return false;
	}
	return true;
}

static int digest_block(struct worker *w, const uint8_t *block, uint32_t len, uint8_t *out)
{
	const struct checksum_sum *s = &w->cs->sum;
	int err;

	if (len == s->block && cz_is_zero(block, len)) {
		memcpy(out, s->zero_digest, s->size);
		return 0;
	}
	err = cz_digest_update(w->digest, block, len);
	return err ? err : cz_digest_final(w->digest, out);
}

static void digest_piece(struct worker *w, uint8_t *out)
{
	struct checksum *cs = w->cs;
	uint32_t len = (uint32_t)w->p.len;
	int err = 0;

	for (uint32_t off = 0; off < len && !err; off += cs->block) {
		err = digest_block(w, w->buf + off, THR_MIN(cs->block, len - off), out);
		out += cs->sum.size;
	}
	if (err)
		fmt_checksum_fail(cs, BLK_E_SYS, err, w->p.off);
}

static void do_piece(struct worker *w)
{
	struct checksum_place *pl = &w->cs->places[w->p.place];

	if (!w->p.zero && read_piece(w)) {
		if (w->cs->sum.plain) {
			pl->buf = w->buf;
			pl->number = w->number;
			w->buf = NULL;
		} else {
			digest_piece(w, pl->digests);
		}
	}
	if (w->buf)
		fmt_bufs_give(&w->cs->bufs, w->number);
	w->buf = NULL;
	feed(w->cs, pl);
}

/* ---- workers ------------------------------------------------------------------------------
 */

/* False where there is no memory. The last worker has to have some; the others leave
 * the work to those who do. */
static bool equip(struct worker *w)
{
	struct checksum *cs = w->cs;
	int err = 0;

	if (!w->digest && !cs->sum.plain)
		err = cz_digest_named(&w->digest, cs->mem, cs->digest);
	if (!err)
		w->buf = fmt_bufs_take(&cs->bufs, &w->number);
	if (w->buf)
		return true;
	if (__atomic_sub_fetch(&cs->workers, 1, __ATOMIC_ACQ_REL) == 0)
		fmt_checksum_fail(cs, BLK_E_SYS, err ? err : -THR_ENOMEM, 0);
	return false;
}

static int work(void *arg)
{
	struct worker *w = arg;

	while (equip(w)) {
		if (!fmt_checksum_next(w->cs, &w->p, w->buf)) {
			fmt_bufs_give(&w->cs->bufs, w->number);
			break;
		}
		do_piece(w);
		/* Where nothing ever waits, nobody else would get to run here. */
		thr_yield();
	}
	cz_digest_free(w->digest);
	return 0;
}

/* Some wait for data while others compute. */
static unsigned worker_count(const struct checksum *cs)
{
	struct thr_pool *pool = thr_pool_self();
	unsigned n = pool ? THR_MAX(8, 4 * thr_pool_count(pool)) : 8;

	if (!thr_in_fiber())
		return 1;
	if (cs->c->fibers)
		n = cs->c->fibers;
	return THR_MIN(n, CHECKSUM_WORKERS);
}

static int run_workers(struct checksum *cs)
{
	struct thr_pool *pool = thr_pool_self();
	unsigned n = worker_count(cs);
	struct worker *w = thr_zget(cs->mem, n * sizeof(*w));
	struct thr_group g;

	if (!w)
		return -THR_ENOMEM;
	/* With plain, those in the ring have one each. */
	fmt_bufs_init(&cs->bufs, n + (cs->sum.plain ? CHECKSUM_RING : 0),
		cs->chunk + cs->segs * sizeof(struct checksum_seg), cs->mem);
	cs->workers = n;
	thr_group_init(&g);
	for (unsigned i = 0; i < n; i++)
		w[i].cs = cs;
	for (unsigned i = 1; i < n; i++)
		if (thr_group_spawn(&g,
			    pool ? thr_pool_exec(pool, i % thr_pool_count(pool)) : NULL, work,
			    &w[i]))
			__atomic_sub_fetch(&cs->workers, 1, __ATOMIC_ACQ_REL);
	(void)work(&w[0]);
	(void)thr_group_wait(&g);
	fmt_bufs_fini(&cs->bufs);
	thr_put(cs->mem, w, n * sizeof(*w));
	return 0;
}

/* ---- the frame ----------------------------------------------------------------------------
 */

/* A raw image has whole sectors, its file need not. */
static uint64_t length_of(const struct fmt_checksum *c)
{
	const struct fmt_driver *d;

	if (!c->image)
		return UINT64_MAX;
	d = fmt_driver_of(c->image);
	if (c->plain && d && c->image->file && !strcmp(d->name, "raw"))
		return THR_MIN(blk_size(c->image), blk_size(c->image->file));
	return blk_size(c->image);
}

static size_t digests_size(const struct checksum *cs)
{
	return cs->sum.plain ? 0 : cs->chunk / cs->block * cs->sum.size;
}

static int compute(struct checksum *cs)
{
	size_t size = digests_size(cs);
	uint8_t *digests = thr_get(cs->mem, CHECKSUM_RING * size + 1, 64);
	int err;

	if (!digests)
		return -THR_ENOMEM;
	for (unsigned i = 0; i < CHECKSUM_RING; i++)
		cs->places[i].digests = digests + i * size;
	err = run_workers(cs);
	thr_put(cs->mem, digests, CHECKSUM_RING * size + 1);
	if (err || cs->failed)
		return err;
	cs->c->sum_len = cs->sum.size;
	cs->c->length = cs->sum.length;
	return fmt_sum_final(&cs->sum, cs->c->sum);
}

static int prepare(struct checksum *cs, struct fmt_checksum *c, struct blk_err *err)
{
	int code;

	cs->c = c;
	cs->digest = c->digest ? c->digest : "sha256";
	cs->block = c->block ? c->block : FMT_CHECKSUM_BLOCK;
	if (!thr_is_pow2(cs->block) || cs->block < FMT_CHECKSUM_MIN ||
		cs->block > FMT_CHECKSUM_MAX)
		return blk_fail_str(err, -THR_EINVAL, BLK_E_BAD_VALUE, "block-size");
	if (c->plain)
		cs->block = FMT_CHECKSUM_BLOCK;
	cs->chunk = THR_MAX(CHECKSUM_CHUNK, cs->block);
	cs->segs = cs->chunk / SECTOR + 2;
	cs->total = length_of(c);
	thr_mutex_init(&cs->source);
	thr_mutex_init(&cs->lock);
	thr_cond_init(&cs->room);
	code = fmt_sum_init(&cs->sum, cs->digest, cs->block, c->plain, cs->mem);
	if (code == -THR_ENOTSUP)
		return blk_fail_str(err, code, BLK_E_BAD_VALUE, "digest");
	return code ? blk_fail(err, code, BLK_E_SYS, 0, 0) : 0;
}

int fmt_checksum(struct fmt_checksum *c, struct blk_err *err)
{
	const struct thr_alloc *mem = c->image ? c->image->mem : c->mem;
	struct checksum *cs = thr_zget(mem, sizeof(*cs));
	int code;

	if (!cs)
		return blk_fail(err, -THR_ENOMEM, BLK_E_SYS, 0, 0);
	cs->mem = cs->sum.mem = mem;
	code = prepare(cs, c, err);
	if (!code) {
		code = compute(cs);
		if (code)
			blk_fail(err, code, BLK_E_SYS, 0, 0);
		else if (cs->failed)
			code = blk_fail(err, cs->fail_code, cs->fail_id, cs->fail_off, 0);
	}
	fmt_sum_fini(&cs->sum);
	thr_put(mem, cs, sizeof(*cs));
	return code;
}
