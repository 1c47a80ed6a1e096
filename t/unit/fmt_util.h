/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/fmt_util.h - what the tests of fmt share: a layer of which every block is data,
 * zero or absent, and running something in a pool.
 */
#ifndef FMT_UTIL_H
#define FMT_UTIL_H

#include "t/unit/blk_util.h"

#include "fmt/fmt.h"

#define BLOCK 512u

enum kind { ABSENT, DATA, ZERO };

/* An image in memory. Reads of what is known to be zero or absent are counted: who asks
 * the map first has no need of them. */
struct layer {
	struct blk b;
	uint8_t *data;
	uint8_t *kind;        /* of each block */
	unsigned idle_reads;  /* atomic */
	uint64_t fail_status; /* status of this block fails; UINT64_MAX: none */
	unsigned step;        /* the longest extent that status gives, in blocks; 0: any */
	bool compressed;      /* data is not mapped */
};

static inline struct layer *layer_of(struct blk *b)
{
	return THR_CONTAINER(b, struct layer, b);
}

static inline uint64_t layer_run(const struct layer *l, uint64_t block, uint64_t end)
{
	uint64_t n = 1;

	while (block + n < end && l->kind[block + n] == l->kind[block] &&
		(!l->step || n < l->step))
		n++;
	return n;
}

static inline int layer_status(struct blk *b, uint64_t off, uint64_t len, struct blk_extent *e)
{
	struct layer *l = layer_of(b);
	uint64_t block = off / BLOCK;
	uint64_t run = layer_run(l, block, (blk_size(b) + BLOCK - 1) / BLOCK);
	static const unsigned flags[] = {
		0, BLK_EXT_ALLOC | BLK_EXT_DATA | BLK_EXT_MAPPED, BLK_EXT_ALLOC | BLK_EXT_ZERO};

	if (l->fail_status >= block && l->fail_status < block + run) {
		if (l->fail_status == block)
			return -THR_EUCLEAN;
		run = l->fail_status - block;
	}
	e->len = THR_MIN(len, (block + run) * BLOCK - off);
	e->flags = flags[l->kind[block]];
	e->map = off;
	if (l->compressed && e->flags & BLK_EXT_DATA)
		e->flags ^= BLK_EXT_MAPPED | BLK_EXT_COMPRESSED;
	return 0;
}

static inline int layer_preadv(struct blk *b, struct blk_req *r)
{
	struct layer *l = layer_of(b);
	uint64_t n;
	int err = 0;

	for (uint64_t done = 0; !err && done < r->len; done += n) {
		uint64_t off = r->off + done;
		struct blk_req part = *r;

		n = THR_MIN(BLOCK - off % BLOCK, r->len - done);
		part.off = off;
		part.len = n;
		part.iov_off += (size_t)done;
		if (l->kind[off / BLOCK] != DATA)
			__atomic_add_fetch(&l->idle_reads, 1, __ATOMIC_RELAXED);
		if (l->kind[off / BLOCK] == DATA)
			blk_req_from_buf(&part, 0, l->data + off, (size_t)n);
		else if (l->kind[off / BLOCK] == ZERO)
			blk_req_fill(&part, 0, 0, (size_t)n);
		else
			err = fmt_read_below(b, &part);
	}
	return err;
}

static inline void layer_close(struct blk *b)
{
	struct layer *l = layer_of(b);

	blk_fini(b);
	free(l->data);
	free(l->kind);
	free(l);
}

static const struct blk_ops layer_ops = {
	.name = "layer",
	.preadv = layer_preadv,
	.status = layer_status,
	.close = layer_close,
};

/* All absent. */
static inline struct layer *layer_new(uint64_t size, struct layer *below)
{
	struct layer *l = calloc(1, sizeof(*l));

	assert_non_null(l);
	blk_init(&l->b, &layer_ops, "layer", 0, &thr_heap);
	l->data = calloc(1, size + BLOCK);
	l->kind = calloc(1, size / BLOCK + 1);
	assert_true(l->data && l->kind);
	l->fail_status = UINT64_MAX;
	blk_set_size(&l->b, size);
	l->b.backing = below ? &below->b : NULL;
	return l;
}

static inline void layer_set(
	struct layer *l, uint64_t block, uint64_t n, enum kind kind, uint8_t byte)
{
	memset(l->kind + block, kind, n);
	memset(l->data + block * BLOCK, byte, n * BLOCK);
}

/* Runs of random lengths and kinds; data is random, but one run in four is zeroes. */
static inline void layer_scatter(struct layer *l, uint32_t *seed, unsigned longest)
{
	uint64_t blocks = blk_size(&l->b) / BLOCK;
	uint64_t n;

	for (uint64_t at = 0; at < blocks; at += n) {
		enum kind kind = (enum kind)(rnd(seed) % 3);
		bool zeroes = rnd(seed) % 4 == 0;

		n = 1 + rnd(seed) % longest;
		n = THR_MIN(n, blocks - at);
		layer_set(l, at, n, kind, 0);
		if (kind != DATA || zeroes)
			continue;
		for (uint64_t i = 0; i < n * BLOCK; i += 4) {
			uint32_t v = rnd(seed);

			memcpy(l->data + at * BLOCK + i, &v, 4);
		}
	}
}

/* What a chain holds, worked out byte by byte. */
static inline void layer_expect(struct layer *top, uint8_t *out)
{
	for (uint64_t off = 0; off < blk_size(&top->b); off++) {
		struct blk *b = &top->b;

		while (b && off < blk_size(b) && layer_of(b)->kind[off / BLOCK] == ABSENT)
			b = b->backing;
		out[off] = b && off < blk_size(b) && layer_of(b)->kind[off / BLOCK] == DATA
				   ? layer_of(b)->data[off]
				   : 0;
	}
}

static inline void layers_close(struct layer *top)
{
	struct blk *b = &top->b;

	while (b) {
		struct blk *below = b->backing;

		b->backing = NULL;
		blk_close(b);
		b = below;
	}
}

/* A growing disk in memory. */
static inline struct blk *disk_new(const char *size, const struct thr_alloc *mem)
{
	struct blk_opt v[] = {{"size", size}};
	struct blk_opts opts = {v, 1};
	struct blk_open o = {.driver = "mem", .flags = BLK_RDWR, .opts = &opts, .mem = mem};
	struct blk *b;

	assert_int_equal(blk_open(&b, &o, NULL), 0);
	return b;
}

static inline int open_as(struct blk **out, struct blk *file, const char *format,
	unsigned flags, struct blk_err *err)
{
	struct fmt_open o = {.format = format, .blk_flags = flags, .mem = &thr_heap};

	return fmt_open_on(out, file, &o, err);
}

/* Calls fn in a fiber of a pool of @threads, or here if that is 0. */
static inline int in_pool(unsigned threads, int (*fn)(void *arg), void *arg)
{
	struct thr_pool *p;
	int ret;

	if (!threads)
		return fn(arg);
	assert_int_equal(thr_pool_open(&p, threads, &thr_heap), 0);
	ret = thr_pool_run(p, fn, arg);
	thr_pool_close(p);
	return ret;
}

/* Progress, for struct fmt_progress: it never goes back, and one tells of it at a time. */
struct seen {
	uint64_t last, total;
	unsigned calls;
	bool inside;
};

static inline void see(void *ctx, uint64_t done, uint64_t total)
{
	struct seen *s = ctx;

	assert_false(s->inside);
	s->inside = true;
	assert_true(done >= s->last && done <= total);
	s->last = done;
	s->total = total;
	s->calls++;
	s->inside = false;
}

#endif
