/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/op/map.c - the extents of an image, in order. Neighbours that continue each
 * other are one: drivers end an extent where their tables do.
 */
#include "fmt/drivers.h"

static bool continues(const struct fmt_map_extent *a, const struct fmt_map_extent *b)
{
	if (a->flags != b->flags || a->depth != b->depth || a->layer != b->layer)
		return false;
	return !(a->flags & BLK_EXT_MAPPED) || b->map == a->map + a->len;
}

int fmt_map_list(struct blk *image, uint64_t off, uint64_t len,
	void (*fn)(void *ctx, const struct fmt_map_extent *e), void *ctx, struct blk_err *err)
{
	uint64_t end;
	struct fmt_map_extent e, next;
	struct fmt_holes holes = {0};
	bool have = false;

	if (off >= blk_size(image))
		return 0;
	end = off + THR_MIN(len, blk_size(image) - off);
	for (; off < end; off += next.len) {
		int code = fmt_map(image, NULL, off, end - off, &holes, &next);

		if (code)
			return blk_fail(err, code, BLK_E_MAP_AT, off, 0);
		if (have && continues(&e, &next)) {
			e.len += next.len;
			continue;
		}
		if (have)
			fn(ctx, &e);
		e = next;
		have = true;
	}
	if (have)
		fn(ctx, &e);
	return 0;
}
