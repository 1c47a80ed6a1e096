/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/compressed.c - clusters that are stored compressed.
 *
 * A slot has a decoder, room for the compressed bytes and a decompressed
 * cluster, and remembers which L2 entry that was, so that small reads one after
 * the other decompress once. A slot that is being filled belongs to who fills
 * it, with no lock held; others who want the same cluster wait for it, and who
 * wants another one takes the slot that was used longest ago.
 *
 * Who reads a whole cluster into one piece of memory has it decompressed there, and
 * uses a slot without leaving anything in it.
 *
 * In a writable image the same entry may come to mean other data once its host
 * clusters have been reused, so what slots keep is forgotten when a count goes down
 * there; by then nobody is left who has mapped the entry (pending.c).
 *
 * The slots' memory is bounded whatever the cluster size; it is taken when the
 * first compressed cluster is met, except where there is a single slot: that one
 * is complete before the image has been opened.
 */
#include "cz/cz.h"
#include "fmt/qcow2/qcow2.h"

#ifdef CONFIG_THR_NONE
#define SLOTS 1
#else
#define SLOTS 16
#endif
#define SLOT_MIN   2
#define POOL_BYTES (16u << 20)

struct slot {
	uint64_t entry; /* 0: none; no compressed cluster has that entry */
	uint64_t used;  /* the larger, the later */
	unsigned users;
	bool filling;
	int err;
	uint8_t *mem; /* decoder, compressed bytes, cluster */
};

struct qcow2_codec {
	struct thr_mutex lock;
	struct thr_cond changed;
	uint64_t clock;
	unsigned n;
	struct slot slots[SLOTS];
};

static size_t ctx_size(const struct qcow2 *q)
{
	return (size_t)thr_align_up(q->codec->decode_ctx_size, 16);
}

/* A compressed cluster spans two clusters at most: its length has so many bits. */
static size_t slot_size(const struct qcow2 *q)
{
	return ctx_size(q) + (size_t)q->cluster_size * 3;
}

static uint8_t *slot_in(const struct qcow2 *q, const struct slot *s)
{
	return s->mem + ctx_size(q);
}

static uint8_t *slot_out(const struct qcow2 *q, const struct slot *s)
{
	return slot_in(q, s) + (size_t)q->cluster_size * 2;
}

static int slot_open(struct qcow2 *q, struct slot *s)
{
	int err;

	if (s->mem)
		return 0;
	s->mem = thr_get(q->blk.mem, slot_size(q), 16);
	if (!s->mem)
		return -THR_ENOMEM;
	err = q->codec->decode_init(s->mem, q->blk.mem);
	if (err) {
		thr_put(q->blk.mem, s->mem, slot_size(q));
		s->mem = NULL;
	}
	return err;
}

int qcow2_codecs_open(struct qcow2 *q)
{
	struct qcow2_codec *c;

	if (!q->codec)
		return 0;
	c = thr_zget(q->blk.mem, sizeof(*c));
	if (!c)
		return -THR_ENOMEM;
	thr_mutex_init(&c->lock);
	thr_cond_init(&c->changed);
	for (c->n = 1; c->n < SLOTS; c->n++)
		if (c->n >= SLOT_MIN && (c->n + 1) * slot_size(q) > POOL_BYTES)
			break;
	q->codecs = c;
	return SLOTS == 1 ? slot_open(q, &c->slots[0]) : 0;
}

void qcow2_codecs_close(struct qcow2 *q)
{
	struct qcow2_codec *c = q->codecs;

	if (!c)
		return;
	for (unsigned i = 0; i < c->n; i++) {
		if (!c->slots[i].mem)
			continue;
		q->codec->decode_fini(c->slots[i].mem);
		thr_put(q->blk.mem, c->slots[i].mem, slot_size(q));
	}
	thr_put(q->blk.mem, c, sizeof(*c));
	q->codecs = NULL;
}

/* The slot that has @entry or gets it, or else one that may be taken for it. */
static struct slot *pick(struct qcow2_codec *c, uint64_t entry)
{
	struct slot *best = NULL;

	for (unsigned i = 0; i < c->n; i++) {
		struct slot *s = &c->slots[i];

		if (s->entry == entry)
			return s;
		if (!s->users && (!best || s->used < best->used))
			best = s;
	}
	return best;
}

/* Decompresses the cluster of @entry to @to, or into the slot where that is NULL. */
static int fill(struct qcow2 *q, struct slot *s, uint64_t entry, uint8_t *to)
{
	struct thr_iov iov;
	struct blk_req r;
	uint64_t off;
	uint32_t len;
	int err = slot_open(q, s);

	if (err)
		return err;
	qcow2_compressed_range(q, entry, &off, &len);
	if (off >= blk_size(q->blk.file))
		return -THR_EUCLEAN;
	iov.base = slot_in(q, s);
	iov.len = len;
	memset(&r, 0, sizeof(r));
	r.off = off;
	r.len = len;
	r.iov = &iov;
	r.niov = 1;
	r.flags = BLK_CHILD | BLK_EOF_ZERO;
	err = blk_preadv(q->blk.file, &r);
	if (err)
		return err;
	return q->codec->decode(
		s->mem, to ? to : slot_out(q, s), q->cluster_size, slot_in(q, s), len);
}

/* Returns with the slot in use; its err says whether it holds the cluster. */
static struct slot *slot_get(struct qcow2 *q, uint64_t entry)
{
	struct qcow2_codec *c = q->codecs;
	struct slot *s;

	thr_mutex_lock(&c->lock);
	while (!(s = pick(c, entry)))
		thr_cond_wait(&c->changed, &c->lock);
	s->users++;
	s->used = ++c->clock;
	if (s->entry == entry) {
		while (s->filling)
			thr_cond_wait(&c->changed, &c->lock);
		thr_mutex_unlock(&c->lock);
		return s;
	}
	s->entry = entry;
	s->filling = true;
	thr_mutex_unlock(&c->lock);
	s->err = fill(q, s, entry, NULL);
	thr_mutex_lock(&c->lock);
	s->filling = false;
	thr_cond_broadcast(&c->changed);
	thr_mutex_unlock(&c->lock);
	return s;
}

static void slot_put(struct qcow2 *q, struct slot *s)
{
	struct qcow2_codec *c = q->codecs;

	thr_mutex_lock(&c->lock);
	if (!--s->users) {
		if (s->err)
			s->entry = 0;
		thr_cond_signal(&c->changed);
	}
	thr_mutex_unlock(&c->lock);
}

void qcow2_codecs_forget(struct qcow2 *q, uint64_t host, uint64_t n)
{
	struct qcow2_codec *c = q->codecs;

	if (!c)
		return;
	thr_mutex_lock(&c->lock);
	for (unsigned i = 0; i < c->n; i++) {
		struct slot *s = &c->slots[i];
		uint64_t off;
		uint32_t len;

		if (!s->entry)
			continue;
		qcow2_compressed_range(q, s->entry, &off, &len);
		if (off < host + n && host < off + len)
			s->entry = 0;
	}
	thr_mutex_unlock(&c->lock);
}

/* A slot in use for nothing that it keeps, or NULL if a slot has @entry. */
static struct slot *slot_borrow(struct qcow2 *q, uint64_t entry)
{
	struct qcow2_codec *c = q->codecs;
	struct slot *s;

	thr_mutex_lock(&c->lock);
	while (!(s = pick(c, entry)))
		thr_cond_wait(&c->changed, &c->lock);
	if (s->entry == entry) {
		s = NULL;
	} else {
		s->users = 1;
		s->entry = 0;
		s->used = 0;
		s->err = 0;
	}
	thr_mutex_unlock(&c->lock);
	return s;
}

/* Where a whole cluster goes to in one piece, or NULL. */
static uint8_t *whole(struct qcow2 *q, const struct blk_req *r, uint64_t at, uint32_t len)
{
	size_t n = len;
	void *p;

	if (len != q->cluster_size)
		return NULL;
	p = blk_req_piece(r, at, &n);
	return n == len ? p : NULL;
}

int qcow2_read_compressed(struct qcow2 *q, uint64_t entry, uint32_t skip,
	const struct blk_req *r, uint64_t at, uint32_t len)
{
	uint8_t *to = q->codec ? whole(q, r, at, len) : NULL;
	struct slot *s;
	int err;

	if (!q->codec)
		return -THR_ENOTSUP;
	thr_give_way();
	s = to ? slot_borrow(q, entry) : NULL;
	if (s) {
		err = fill(q, s, entry, to);
		slot_put(q, s);
		return err;
	}
	s = slot_get(q, entry);
	err = s->err;
	if (!err)
		blk_req_from_buf(r, at, slot_out(q, s) + skip, len);
	slot_put(q, s);
	return err;
}
