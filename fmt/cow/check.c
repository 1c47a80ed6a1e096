/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/cow/check.c - the bitmap against the length of the file and of the disk.
 *
 * A sector that is here according to the bitmap, but past the end of the file, is an
 * error: it reads as zeroes, which nobody wrote. Repair makes the file as long as it
 * should be, so that it stays that way. Bits past the end of the disk mean nothing, and
 * are counted as leaks. The bitmap is walked in runs.
 */
#include <inttypes.h>
#include <stdio.h>

#include "fmt/cow/cow.h"

#define LINE 160

static void say(struct fmt_check *k, const char *what, uint64_t off, uint64_t n)
{
	char text[LINE];

	if (!k->line)
		return;
	snprintf(text, sizeof(text), "%s: %" PRIu64 " sectors from offset %" PRIu64, what,
		n / COW_SECTOR, off);
	k->line(k->ctx, text);
}

/* A run of sectors that are here. */
static void count(struct cow *c, struct fmt_check *k, uint64_t off, uint64_t n)
{
	uint64_t have = blk_size(c->blk.file), lost;
	uint64_t end = c->lay.data + THR_MIN(off + n, c->stored);

	k->allocated_clusters += n / COW_SECTOR;
	if (end <= have) {
		k->image_end = THR_MAX(k->image_end, end);
		return;
	}
	k->image_end = THR_MAX(k->image_end, have);
	lost = THR_MIN(thr_align_up(end - have, COW_SECTOR), n);
	k->corruptions += lost / COW_SECTOR;
	say(k, "ERROR the file ends before the data of these", off + n - lost, lost);
}

/* Those of the last byte. */
static int check_tail(struct cow *c, struct fmt_check *k, struct blk_err *err)
{
	uint64_t size = blk_size(&c->blk), end = c->lay.bitmap_len * 8 * COW_SECTOR, n;
	bool set, fix = k->fix & FMT_FIX_LEAKS;
	int code = 0;

	for (uint64_t off = size; !code && off < end; off += n) {
		code = cow_run(c, off, end - off, &set, &n);
		if (code || !set)
			continue;
		say(k,
			fix ? "Repairing bits past the end of the disk"
			    : "Leaked bits past the end of the disk",
			off, n);
		if (fix)
			code = cow_clear(c, off, n);
		*(fix ? &k->leaks_fixed : &k->leaks) += n / COW_SECTOR;
	}
	return code ? blk_fail(err, code, BLK_E_SYS, 0, 0) : 0;
}

static int repair(struct cow *c, struct fmt_check *k, struct blk_err *err)
{
	int code;

	if (!k->corruptions || !(k->fix & FMT_FIX_ERRORS))
		return 0;
	code = cow_lengthen(c, blk_size(&c->blk), BLK_PREALLOC_OFF, err);
	if (code)
		return code;
	say(k, "Repairing the length of the file", 0, c->lay.data + blk_size(&c->blk));
	k->corruptions_fixed = k->corruptions;
	k->corruptions = 0;
	return 0;
}

int cow_check(struct blk *b, struct fmt_check *k, struct blk_err *err)
{
	struct cow *c = cow_of(b);
	uint64_t size = blk_size(b), n;
	bool set;
	int code = 0;

	k->total_clusters = size / COW_SECTOR;
	k->image_end = c->lay.bitmap + c->lay.bitmap_len;
	for (uint64_t off = 0; !code && off < size; off += n) {
		code = cow_run(c, off, size - off, &set, &n);
		if (!code && set)
			count(c, k, off, n);
	}
	if (code)
		return blk_fail(err, code, BLK_E_SYS, 0, 0);
	code = repair(c, k, err);
	return code ? code : check_tail(c, k, err);
}
