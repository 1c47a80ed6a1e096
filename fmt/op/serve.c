/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/op/serve.c - what an NBD server tells of an image beside its data: the metadata
 * contexts, answered from the map of the chain and from persistent bitmaps.
 */
#include "fmt/fmt.h"

int fmt_nbd_allocation(void *image, uint64_t off, uint64_t len, uint64_t *n, uint32_t *flags)
{
	struct fmt_holes holes = {0};
	struct fmt_map_extent e;
	int err = fmt_map((struct blk *)image, NULL, off, len, &holes, &e);

	if (err)
		return err;
	*n = e.len;
	*flags = (e.flags & BLK_EXT_DATA ? 0u : BLK_NBD_HOLE) |
		 (e.flags & BLK_EXT_ZERO ? BLK_NBD_ZERO : 0u);
	return 0;
}

int fmt_nbd_depth(void *image, uint64_t off, uint64_t len, uint64_t *n, uint32_t *flags)
{
	struct fmt_map_extent e;
	int err = fmt_map((struct blk *)image, NULL, off, len, NULL, &e);

	if (err)
		return err;
	*n = e.len;
	*flags = e.flags & BLK_EXT_ALLOC ? e.depth + 1 : 0;
	return 0;
}

struct blk *fmt_nbd_plain(struct blk *image)
{
	const struct fmt_driver *d = fmt_driver_of(image);

	return d && !strcmp(d->name, "raw") ? image->file : NULL;
}

/* ---- bitmaps ---------------------------------------------------------------------------- */

int fmt_bitmap_open(
	struct fmt_bitmap *m, struct blk *image, const char *name, struct blk_err *err)
{
	const struct fmt_driver *d = fmt_driver_of(image);

	memset(m, 0, sizeof(*m));
	m->mem = image->mem;
	m->size = blk_size(image);
	if (!d || !d->bitmap)
		return blk_fail_str(err, -THR_ENOENT, BLK_E_NO_BITMAP, name);
	return d->bitmap(image, name, m, err);
}

void fmt_bitmap_close(struct fmt_bitmap *m)
{
	thr_put(m->mem, m->bits, m->bytes);
	m->bits = NULL;
}

static bool bit(const struct fmt_bitmap *m, uint64_t i)
{
	return m->bits[i / 8] >> (i % 8) & 1;
}

/* Where the run of bits like the one at @i ends, or @end. */
static uint64_t run_end(const struct fmt_bitmap *m, uint64_t i, uint64_t end)
{
	bool set = bit(m, i);
	uint8_t all = set ? 0xff : 0;

	while (i < end && bit(m, i) == set) {
		if (i % 8 || m->bits[i / 8] != all)
			i++;
		else
			i += 8;
	}
	return THR_MIN(i, end);
}

int fmt_nbd_dirty(void *bitmap, uint64_t off, uint64_t len, uint64_t *n, uint32_t *flags)
{
	const struct fmt_bitmap *m = (const struct fmt_bitmap *)bitmap;
	uint64_t from = off >> m->granularity_bits;
	uint64_t last = (THR_MIN(off + len, m->size) - 1) >> m->granularity_bits;
	uint64_t to = run_end(m, from, last + 1);

	*flags = bit(m, from) ? FMT_NBD_DIRTY : 0u;
	*n = THR_MIN(to << m->granularity_bits, m->size) - off;
	return 0;
}
