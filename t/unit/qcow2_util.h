/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/qcow2_util.h - qcow2 images that are made by hand in a buffer, so that a
 * test can say exactly what is in them.
 *
 *   cluster 0 header, 1 reference count table, 2 its block, 3 L1, 4 L2, 5... data
 */
#ifndef T_UNIT_QCOW2_UTIL_H
#define T_UNIT_QCOW2_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fmt/qcow2/qcow2.h"

#define IM_DATA 5 /* the first cluster for data */

struct im {
	uint8_t *p;
	uint64_t size; /* of the file */
	unsigned bits;
	uint32_t cluster;
	unsigned order;
};

static inline void im_be16(struct im *m, uint64_t off, uint16_t v)
{
	thr_put_be16(m->p + off, v);
}

static inline void im_be32(struct im *m, uint64_t off, uint32_t v)
{
	thr_put_be32(m->p + off, v);
}

static inline void im_be64(struct im *m, uint64_t off, uint64_t v)
{
	thr_put_be64(m->p + off, v);
}

static inline void im_count(struct im *m, uint64_t cluster, uint64_t count)
{
	qcow2_refcount_store(m->p + 2 * m->cluster, m->order, (uint32_t)cluster, count);
}

static inline uint64_t im_host(const struct im *m, uint64_t cluster)
{
	return cluster << m->bits;
}

/* Sets an L2 entry of the first L2 table. */
static inline void im_l2(struct im *m, uint32_t guest, uint64_t entry)
{
	im_be64(m, 4ull * m->cluster + guest * 8, entry);
}

/* Guest cluster -> data cluster @cluster, counted once. */
static inline void im_map(struct im *m, uint32_t guest, uint64_t cluster)
{
	im_l2(m, guest, im_host(m, cluster) | QCOW2_COPIED);
	im_count(m, cluster, 1);
}

/* A sound image of @clusters host clusters, none of them data, for a disk of
 * @size bytes. */
static inline void im_new(struct im *m, unsigned version, unsigned bits, unsigned order,
	uint64_t clusters, uint64_t size)
{
	unsigned shift = bits + bits - 3;

	m->bits = bits;
	m->cluster = 1u << bits;
	m->order = order;
	m->size = clusters << bits;
	m->p = calloc(1, m->size);
	assert_non_null(m->p);
	im_be32(m, 0, QCOW2_MAGIC);
	im_be32(m, 4, version);
	im_be32(m, 20, bits);
	im_be64(m, 24, size);
	im_be32(m, 36, (uint32_t)THR_MAX((size + (1ull << shift) - 1) >> shift, 1u));
	im_be64(m, 40, im_host(m, 3));
	im_be64(m, 48, im_host(m, 1));
	im_be32(m, 56, 1);
	if (version >= 3) {
		im_be32(m, 96, order);
		im_be32(m, 100, 104);
	}
	im_be64(m, im_host(m, 1), im_host(m, 2));
	im_be64(m, im_host(m, 3), im_host(m, 4) | QCOW2_COPIED);
	for (unsigned i = 0; i < IM_DATA; i++)
		im_count(m, i, 1);
}

static inline void im_free(struct im *m)
{
	free(m->p);
}

static inline int im_try(struct im *m, unsigned flags, unsigned blk_flags,
	struct fmt_cache *cache, struct blk **out, struct blk_err *err)
{
	struct fmt_open o = {.format = "qcow2",
		.flags = flags,
		.blk_flags = blk_flags,
		.cache = cache,
		.mem = &thr_heap};
	struct blk *file;
	int ret;

	assert_int_equal(blk_mem_open(&file, m->p, m->size, blk_flags, &thr_heap, NULL), 0);
	ret = fmt_open_on(out, file, &o, err);
	if (ret)
		blk_close(file);
	return ret;
}

static inline struct blk *im_open(struct im *m)
{
	struct blk_err err = BLK_ERR_INIT;
	struct blk *b = NULL;
	int ret = im_try(m, 0, 0, NULL, &b, &err);

	if (ret) {
		char text[512];

		blk_err_text(&err, text, sizeof(text));
		fprintf(stderr, "# %s\n", text);
	}
	assert_int_equal(ret, 0);
	return b;
}

/* What opening fails with. */
static inline unsigned im_error(struct im *m, unsigned flags, struct blk_err *e)
{
	struct blk_err err = BLK_ERR_INIT;
	struct blk *b = NULL;
	int ret = im_try(m, flags, 0, NULL, &b, &err);

	if (!ret)
		fmt_close(b);
	if (e)
		*e = err;
	assert_int_equal(ret, err.code);
	return ret ? err.id : BLK_E_NONE;
}

#endif
