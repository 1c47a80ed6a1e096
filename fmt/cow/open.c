/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/cow/open.c - the driver table, opening and closing, reading, and what info says.
 */
#include "fmt/cow/cow.h"

/* Memory for the bitmap of an image that brings no cache: enough for 4 GiB of disk. */
#define CACHE_SLICE  4096u
#define CACHE_SLICES 256u

int cow_preadv(struct blk *b, struct blk_req *r)
{
	struct cow *c = cow_of(b);
	struct blk_req part;
	uint64_t n;
	bool set;
	int err;

	for (uint64_t done = 0; done < r->len; done += n) {
		err = cow_run(c, r->off + done, r->len - done, &set, &n);
		if (err)
			return err;
		part = fmt_req_part(r, done, n, r->off + done);
		part.flags = BLK_CHILD | BLK_EOF_ZERO;
		if (set) {
			part.off += c->lay.data;
			err = blk_preadv(b->file, &part);
		} else {
			err = fmt_read_below(b, &part);
		}
		if (err)
			return err;
	}
	return 0;
}

/* Requests are of any length here: the sectors that they touch count. */
int cow_status(struct blk *b, uint64_t off, uint64_t len, struct blk_extent *e)
{
	struct cow *c = cow_of(b);
	uint64_t in = off & (COW_SECTOR - 1);
	bool set;
	int err = cow_run(c, off - in, thr_align_up(in + len, COW_SECTOR), &set, &e->len);

	if (err)
		return err;
	e->len = THR_MIN(e->len - in, len);
	e->flags = 0;
	if (set) {
		e->flags = BLK_EXT_ALLOC | BLK_EXT_DATA | BLK_EXT_MAPPED;
		e->map = c->lay.data + off;
	}
	return 0;
}

static int attach_cache(struct cow *c, const struct fmt_open *o, struct blk_err *err)
{
	int code;

	if (o->cache) {
		c->cache = o->cache;
		return 0;
	}
	code = fmt_cache_open(&c->cache, CACHE_SLICE, CACHE_SLICES, c->blk.mem);
	if (code)
		return blk_fail(err, code, BLK_E_SYS, 0, 0);
	c->own_cache = true;
	return 0;
}

static void release(struct cow *c)
{
	const struct thr_alloc *mem = c->blk.mem;

	if (c->own_cache) {
		fmt_cache_close(c->cache);
	} else if (c->cache) {
		fmt_cache_lock(c->cache);
		fmt_cache_forget(c->cache, c->blk.file, 0, UINT64_MAX);
		fmt_cache_unlock(c->cache);
	}
	thr_put(mem, c->backing, FMT_NAME_MAX);
	blk_fini(&c->blk);
	thr_put(mem, c, sizeof(*c));
}

void cow_close(struct blk *b)
{
	struct blk *file = b->file;

	cow_write_close(cow_of(b));
	release(cow_of(b));
	blk_close(file);
}

static int cow_open(
	struct blk **out, struct blk *file, const struct fmt_open *o, struct blk_err *err)
{
	struct cow *c = thr_zget(o->mem, sizeof(*c));
	int code;

	if (!c)
		return blk_fail(err, -THR_ENOMEM, BLK_E_SYS, 0, 0);
	blk_init(&c->blk, &cow_ops, file->name, o->blk_flags, o->mem);
	c->blk.file = file;
	c->blk.align = COW_SECTOR;
	c->blk.zero_align = COW_SECTOR;
	code = cow_header_read(c, file, err);
	if (!code)
		blk_set_size(&c->blk, thr_align_up(c->stored, COW_SECTOR));
	if (!code && !(o->flags & FMT_NO_IO)) {
		code = attach_cache(c, o, err);
		if (!code && o->blk_flags & BLK_RDWR)
			code = cow_write_open(c, err);
	}
	if (code)
		release(c);
	else
		*out = &c->blk;
	return code;
}

static int cow_backing(struct blk *b, const char **name, const char **format)
{
	struct cow *c = cow_of(b);

	if (!c->backing)
		return -THR_ENOENT;
	*name = c->backing;
	*format = "";
	return 0;
}

static int cow_backed(struct blk *b, struct blk_err *odd)
{
	struct cow *c = cow_of(b);
	uint64_t size = fmt_bytes(b->backing);
	int64_t mtime;

	if (c->at->whole ? blk_size(b->backing) != blk_size(b) : size != c->stored) {
		blk_fail_str(odd, -THR_EUCLEAN, BLK_E_COW_BASE_SIZE, c->backing);
		odd->off = size;
		odd->val = c->stored;
		return odd->code;
	}
	if (!c->mtime || blk_mtime(b->backing, &mtime) || (uint32_t)mtime == c->mtime)
		return 0;
	blk_fail_str(odd, -THR_EUCLEAN, BLK_E_COW_BASE_MTIME, c->backing);
	odd->off = (uint32_t)mtime;
	odd->val = c->mtime;
	return odd->code;
}

static int cow_info(struct blk *b, struct fmt_info *info)
{
	struct cow *c = cow_of(b);

	info->format = "cow";
	info->virtual_size = blk_size(b);
	info->has_backing = c->backing;
	info->backing = c->backing;
	return 0;
}

static void cow_props(struct blk *b, struct fmt_sink *s)
{
	struct cow *c = cow_of(b);

	s->num(s, "version", c->at->version);
	s->str(s, "layout", c->at->maker);
	if (c->mtime)
		s->num(s, "backing-mtime", c->mtime);
	s->num(s, "alignment", c->align);
	s->num(s, "data-offset", c->lay.data);
}

const struct blk_ops cow_ops = {
	.name = "cow",
	.preadv = cow_preadv,
	.status = cow_status,
	.close = cow_close,
};

static const char *const open_opts[] = {NULL};

const struct fmt_driver fmt_cow_driver = {
	.name = "cow",
	.ops = &cow_ops,
	.probe = cow_probe,
	.open = cow_open,
	.backing = cow_backing,
	.raw_backing = true,
	.backed = cow_backed,
	.info = cow_info,
	.props = cow_props,
	.check = cow_check,
	.open_opts = open_opts,
#ifdef CONFIG_FMT_COW_WRITE
	.empty = cow_empty,
	.create = cow_create,
	.create_opts = cow_create_opts,
	.measure = cow_measure,
#endif
};
