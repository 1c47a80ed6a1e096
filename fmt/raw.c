/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/raw.c - the image is the disk, byte for byte: reading.
 *
 * A disk has whole sectors: a file that ends within one is followed by zeroes up to
 * its end. Alignment is the file's business, so this layer states none of its own.
 */
#include "fmt/raw.h"

/* Anything can be raw, so it is what remains when nothing else matches. */
int fmt_raw_probe(const uint8_t *head, size_t len, uint64_t size)
{
	(void)head;
	(void)len;
	(void)size;
	return 1;
}

int fmt_raw_open(
	struct blk **out, struct blk *file, const struct fmt_open *o, struct blk_err *err)
{
	uint64_t size = blk_size(file);
	struct blk *b;

	if (size > UINT64_MAX - RAW_SECTOR)
		return blk_fail(err, -THR_EFBIG, BLK_E_SYS, 0, size);
	b = thr_zget(o->mem, sizeof(*b));
	if (!b)
		return blk_fail(err, -THR_ENOMEM, BLK_E_SYS, 0, 0);
	blk_init(b, &fmt_raw_ops, file->name, file->flags, o->mem);
	b->file = file;
	b->zero_align = file->zero_align;
	b->fua = true;
	blk_set_size(b, thr_align_up(size, RAW_SECTOR));
	*out = b;
	return 0;
}

int fmt_raw_info(struct blk *image, struct fmt_info *info)
{
	info->virtual_size = blk_size(image);
	return 0;
}

int fmt_raw_preadv(struct blk *b, struct blk_req *r)
{
	r->flags |= BLK_EOF_ZERO | BLK_CHILD;
	return blk_preadv(b->file, r);
}

int fmt_raw_status(struct blk *b, uint64_t off, uint64_t len, struct blk_extent *e)
{
	uint64_t size = blk_size(b->file);
	int err = 0;

	if (off < size) {
		err = blk_status(b->file, off, THR_MIN(len, size - off), e);
	} else {
		e->len = len;
		e->flags = BLK_EXT_ZERO;
	}
	e->flags &= BLK_EXT_DATA | BLK_EXT_ZERO;
	e->flags |= BLK_EXT_ALLOC | BLK_EXT_MAPPED;
	e->map = off;
	return err;
}

bool fmt_raw_same(struct blk *a, struct blk *b)
{
	return blk_same(a->file, b->file);
}

void fmt_raw_close(struct blk *b)
{
	const struct thr_alloc *mem = b->mem;

	blk_close(b->file);
	blk_fini(b);
	thr_put(mem, b, sizeof(*b));
}
