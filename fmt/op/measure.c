/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/op/measure.c - how large the file of a new image will be.
 *
 * Its driver says what a fully allocated image takes. From that the clusters are taken
 * away in which the source holds nothing. Metadata is counted as for the full image,
 * so the result is what convert may need at most, not to the byte what it will use.
 */
#include "fmt/drivers.h"

/* Clusters of the new image that have data, counted along the source. */
struct count {
	uint32_t cluster;
	uint64_t next; /* the first byte that no counted cluster holds */
	uint64_t clusters;
	struct blk *layer; /* what has been found out about it: */
	bool hollow;
};

/* Whether the holes in the file of a layer count as zeroes where its format has put data.
 * They do if it looks as if space was made and not used: a tenth of the clusters, and at
 * least two, are not there. So qemu-img 7.2 judges, as ever fuller images show. */
static bool is_hollow(struct blk *layer)
{
	struct fmt_info info;
	uint64_t used, total;

	if (fmt_info(layer, &info) || !info.cluster_size || !layer->file ||
		blk_allocated(blk_map_file(layer), &used))
		return true;
	used /= info.cluster_size;
	total = (blk_size(blk_map_file(layer)) + info.cluster_size - 1) / info.cluster_size;
	return used < total && total - used >= THR_MAX(total / 10, 2u);
}

static bool has_data(struct count *c, const struct fmt_map_extent *e)
{
	if (!(e->flags & BLK_EXT_DATA))
		return false;
	if (!(e->flags & BLK_EXT_ZERO))
		return true;
	if (c->layer != e->layer) {
		c->layer = e->layer;
		c->hollow = is_hollow(e->layer);
	}
	return !c->hollow;
}

static void add_extent(void *ctx, const struct fmt_map_extent *e)
{
	struct count *c = ctx;
	uint64_t end = thr_align_up(e->off + e->len, c->cluster);
	uint64_t start = THR_MAX(c->next, thr_align_down(e->off, c->cluster));

	if (end <= start || !has_data(c, e))
		return;
	c->clusters += (end - start) / c->cluster;
	c->next = end;
}

static int count_data(struct blk *src, uint32_t cluster, uint64_t *bytes, struct blk_err *err)
{
	struct count c = {.cluster = cluster};
	int code = fmt_map_list(src, 0, blk_size(src), add_extent, &c, err);

	*bytes = c.clusters * cluster;
	return code;
}

static int required(const struct fmt_create *c, struct blk *src, const struct fmt_layout *l,
	struct fmt_measure *m, struct blk_err *err)
{
	uint64_t data = 0;
	int code = 0;

	/* With a backing file nobody knows what lies in it. */
	m->required = m->fully_allocated;
	if (!l->cluster || l->preallocated || (src && c->backing))
		return 0;
	if (src)
		code = count_data(src, l->cluster, &data, err);
	m->required = l->metadata + data;
	return code;
}

static int bitmaps(
	struct blk *src, const struct fmt_layout *l, struct fmt_measure *m, struct blk_err *err)
{
	const struct fmt_driver *d = src ? fmt_driver_of(src) : NULL;
	int code;

	if (!l->bitmaps || !d || !d->bitmaps)
		return 0;
	code = d->bitmaps(src, l->cluster, &m->bitmaps, err);
	m->has_bitmaps = !code;
	return code == -THR_ENOTSUP ? 0 : code;
}

int fmt_measure(
	const struct fmt_create *c, struct blk *src, struct fmt_measure *m, struct blk_err *err)
{
	struct fmt_create own = *c;
	struct fmt_layout l = {0};
	const struct fmt_driver *d;
	int code;

	memset(m, 0, sizeof(*m));
	if (!own.format)
		own.format = "raw";
	own.backing = NULL;
	own.backing_format = NULL;
	code = fmt_driver_get(own.format, &d, err);
	if (!code && !d->measure)
		code = blk_fail_str(err, -THR_ENOTSUP, BLK_E_NO_MEASURE, d->name);
	if (!code)
		code = fmt_create_opts_known(d, own.opts, err);
	if (!code)
		code = d->measure(&own, &l, err);
	if (code)
		return code;
	m->fully_allocated = l.metadata + l.data;
	code = required(c, src, &l, m, err);
	return code ? code : bitmaps(src, &l, m, err);
}
