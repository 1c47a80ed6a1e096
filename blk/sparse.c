/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/sparse.c - the driver "mem": a sparse disk in memory, up to any length.
 *
 * Chunks of 64 KiB hang on a radix tree of 512-way nodes that is as high as the
 * highest chunk needs; a chunk that is not there reads as zeroes. The lock
 * guards the tree: requests copy under it shared, whoever adds or frees chunks has
 * it exclusively. All copying is memory speed, so nobody waits long.
 */
#include "blk/private.h"

#define CHUNK_BITS 16
#define CHUNK      (1u << CHUNK_BITS)
#define NODE_BITS  9
#define NODE_SLOTS (1u << NODE_BITS)

struct node {
	void *slot[NODE_SLOTS]; /* nodes, or chunks at the bottom */
};

struct sparse {
	struct blk b;
	struct thr_rwlock lock;
	void *root;      /* a node, or the only chunk where height is 0 */
	unsigned height; /* nodes on the way to a chunk */
	uint64_t chunks;
};

static struct sparse *sparse_of(struct blk *b)
{
	return THR_CONTAINER(b, struct sparse, b);
}

/* Chunks below a tree of that height. */
static uint64_t span(unsigned height)
{
	return (uint64_t)1 << (height * NODE_BITS);
}

static unsigned slot_of(uint64_t idx, unsigned height)
{
	return (unsigned)(idx >> ((height - 1) * NODE_BITS)) & (NODE_SLOTS - 1);
}

static uint8_t *chunk_find(const struct sparse *m, uint64_t idx)
{
	void *p = idx < span(m->height) ? m->root : NULL;

	for (unsigned h = m->height; p && h; h--)
		p = ((struct node *)p)->slot[slot_of(idx, h)];
	return p;
}

static int tree_raise(struct sparse *m, uint64_t idx)
{
	while (idx >= span(m->height)) {
		struct node *n;

		if (m->root) {
			n = thr_zget(m->b.mem, sizeof(*n));
			if (!n)
				return -THR_ENOMEM;
			n->slot[0] = m->root;
			m->root = n;
		}
		m->height++;
	}
	return 0;
}

static int chunk_add(struct sparse *m, uint64_t idx)
{
	int err = tree_raise(m, idx);
	void **at = &m->root;

	if (err)
		return err;
	for (unsigned h = m->height; h; h--) {
		if (!*at)
			*at = thr_zget(m->b.mem, sizeof(struct node));
		if (!*at)
			return -THR_ENOMEM;
		at = &((struct node *)*at)->slot[slot_of(idx, h)];
	}
	if (*at)
		return 0;
	*at = thr_zget(m->b.mem, CHUNK);
	if (!*at)
		return -THR_ENOMEM;
	m->chunks++;
	return 0;
}

/* Frees the chunks first to last of the tree at *at, which has this height, and
 * the nodes that become empty. As deep as the tree is high: at most 6. */
static void tree_free(
	struct sparse *m, void **at, unsigned height, uint64_t first, uint64_t last)
{
	struct node *n = *at;
	uint64_t each;
	bool empty = true;

	if (!n)
		return;
	if (!height) {
		thr_put(m->b.mem, *at, CHUNK);
		*at = NULL;
		m->chunks--;
		return;
	}
	each = span(height - 1);
	for (unsigned i = 0; i < NODE_SLOTS; i++) {
		uint64_t base = i * each;

		if (first < base + each && last >= base)
			tree_free(m, &n->slot[i], height - 1, first > base ? first - base : 0,
				THR_MIN(last - base, each - 1));
		empty &= !n->slot[i];
	}
	if (empty) {
		thr_put(m->b.mem, n, sizeof(*n));
		*at = NULL;
	}
}

/* The first chunk from @idx on, relative to this tree, or its span. */
static uint64_t tree_next(const void *p, unsigned height, uint64_t idx)
{
	const struct node *n = p;
	uint64_t each;

	if (!p)
		return span(height);
	if (!height)
		return idx;
	each = span(height - 1);
	for (unsigned i = slot_of(idx, height); i < NODE_SLOTS; i++) {
		uint64_t base = i * each;
		uint64_t in = tree_next(n->slot[i], height - 1, idx > base ? idx - base : 0);

		if (in < each)
			return base + in;
	}
	return span(height);
}

/* ---- requests ------------------------------------------------------------------ */

static size_t chunk_piece(uint64_t off, uint64_t left)
{
	return (size_t)THR_MIN(left, CHUNK - (off & (CHUNK - 1)));
}

static int sparse_preadv(struct blk *b, struct blk_req *r)
{
	struct sparse *m = sparse_of(b);
	size_t n;

	thr_rwlock_rdlock(&m->lock);
	for (uint64_t at = 0; at < r->len; at += n) {
		uint64_t off = r->off + at;
		const uint8_t *c = chunk_find(m, off >> CHUNK_BITS);

		n = chunk_piece(off, r->len - at);
		if (c)
			blk_req_from_buf(r, at, c + (off & (CHUNK - 1)), n);
		else
			blk_req_fill(r, at, 0, n);
	}
	thr_rwlock_rdunlock(&m->lock);
	return 0;
}

/* As far as there are chunks; the bytes that it has written. */
static uint64_t write_present(struct sparse *m, const struct blk_req *r, uint64_t at)
{
	thr_rwlock_rdlock(&m->lock);
	while (at < r->len) {
		uint64_t off = r->off + at;
		uint8_t *c = chunk_find(m, off >> CHUNK_BITS);
		size_t n = chunk_piece(off, r->len - at);

		if (!c)
			break;
		blk_req_to_buf(r, at, c + (off & (CHUNK - 1)), n);
		at += n;
	}
	thr_rwlock_rdunlock(&m->lock);
	return at;
}

static int add_chunks(struct sparse *m, uint64_t off, uint64_t len)
{
	uint64_t last = (off + len - 1) >> CHUNK_BITS;
	int err = 0;

	thr_rwlock_wrlock(&m->lock);
	for (uint64_t i = off >> CHUNK_BITS; !err && i <= last; i++)
		err = chunk_add(m, i);
	thr_rwlock_wrunlock(&m->lock);
	return err;
}

/* A chunk that was added may be discarded again before it is written to. */
static int sparse_pwritev(struct blk *b, struct blk_req *r)
{
	struct sparse *m = sparse_of(b);
	uint64_t at = 0;
	int err;

	for (;;) {
		at = write_present(m, r, at);
		if (at == r->len)
			return 0;
		err = add_chunks(m, r->off + at, r->len - at);
		if (err)
			return err;
	}
}

static void clear_piece(struct sparse *m, uint64_t off, uint64_t len)
{
	uint8_t *c = chunk_find(m, off >> CHUNK_BITS);

	if (c && len)
		memset(c + (off & (CHUNK - 1)), 0, (size_t)len);
}

/* Holding the lock exclusively. */
static void clear_range(struct sparse *m, uint64_t off, uint64_t len)
{
	uint64_t end = off + len;
	uint64_t first = thr_align_up(off, CHUNK);
	uint64_t last = thr_align_down(end, CHUNK);

	if (first > last) {
		clear_piece(m, off, len);
		return;
	}
	clear_piece(m, off, first - off);
	clear_piece(m, last, end - last);
	first >>= CHUNK_BITS;
	last >>= CHUNK_BITS;
	last = THR_MIN(last, span(m->height));
	if (first < last)
		tree_free(m, &m->root, m->height, first, last - 1);
}

static int sparse_zero(struct blk *b, struct blk_req *r)
{
	struct sparse *m = sparse_of(b);

	thr_rwlock_wrlock(&m->lock);
	clear_range(m, r->off, r->len);
	thr_rwlock_wrunlock(&m->lock);
	return 0;
}

static int sparse_status(struct blk *b, uint64_t off, uint64_t len, struct blk_extent *e)
{
	struct sparse *m = sparse_of(b);
	uint64_t first = off >> CHUNK_BITS;
	uint64_t last = (off + len - 1) >> CHUNK_BITS;
	uint64_t i = first;

	thr_rwlock_rdlock(&m->lock);
	if (chunk_find(m, first)) {
		e->flags = BLK_EXT_ALLOC | BLK_EXT_DATA;
		while (i <= last && chunk_find(m, i))
			i++;
	} else {
		e->flags = BLK_EXT_ALLOC | BLK_EXT_ZERO;
		if (first < span(m->height))
			i = tree_next(m->root, m->height, first);
		if (first >= span(m->height) || i == span(m->height))
			i = last + 1;
	}
	thr_rwlock_rdunlock(&m->lock);
	e->len = i > last ? len : (i << CHUNK_BITS) - off;
	return 0;
}

static int sparse_truncate(
	struct blk *b, uint64_t size, enum blk_prealloc p, struct blk_err *err)
{
	struct sparse *m = sparse_of(b);
	uint64_t was;

	if (p != BLK_PREALLOC_OFF)
		return blk_fail_str(err, -THR_ENOTSUP, BLK_E_PREALLOC, blk_prealloc_name(p));
	thr_rwlock_wrlock(&m->lock);
	was = blk_size(b);
	if (size < was)
		clear_range(m, size, was - size);
	blk_set_size(b, size);
	thr_rwlock_wrunlock(&m->lock);
	return 0;
}

static int sparse_allocated(struct blk *b, uint64_t *bytes)
{
	struct sparse *m = sparse_of(b);

	thr_rwlock_rdlock(&m->lock);
	*bytes = m->chunks << CHUNK_BITS;
	thr_rwlock_rdunlock(&m->lock);
	return 0;
}

static void sparse_close(struct blk *b)
{
	struct sparse *m = sparse_of(b);

	blk_fini(b);
	tree_free(m, &m->root, m->height, 0, span(m->height) - 1);
	thr_put(b->mem, m, sizeof(*m));
}

static const struct blk_ops sparse_ops = {
	.name = "mem",
	.preadv = sparse_preadv,
	.pwritev = sparse_pwritev,
	.zero = sparse_zero,
	.discard = sparse_zero,
	.status = sparse_status,
	.truncate = sparse_truncate,
	.allocated = sparse_allocated,
	.close = sparse_close,
};

static int sparse_open(struct blk **out, const struct blk_open *o, struct blk_err *err)
{
	struct sparse *m;
	uint64_t size;
	int code = blk_opt_size(o->opts, "size", 0, &size, err);

	if (code)
		return code;
	if (size > BLK_MAX_SIZE)
		return blk_fail(err, -THR_EFBIG, BLK_E_SYS, 0, size);
	m = thr_zget(o->mem, sizeof(*m));
	if (!m)
		return blk_fail(err, -THR_ENOMEM, BLK_E_SYS, 0, sizeof(*m));
	blk_init(&m->b, &sparse_ops, "memory", o->flags, o->mem);
	m->b.zero_align = CHUNK;
	m->b.grows = !(o->flags & BLK_FIXED_SIZE);
	thr_rwlock_init(&m->lock);
	blk_set_size(&m->b, size);
	*out = &m->b;
	return 0;
}

static const char *const sparse_keys[] = {"size", NULL};

const struct blk_driver blk_mem_driver = {
	.name = "mem",
	.keys = sparse_keys,
	.open = sparse_open,
};
