/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/cow/header.c - the header of a cow image: where its fields are, and what they
 * may say. All numbers are big-endian.
 *
 * Two programs have written version 2 with names of different lengths. The sector size,
 * which is 512 in both, tells them apart: where one has it the other has the end of a
 * name, which is zero, as a name that is as long as that is refused.
 */
#include "fmt/cow/cow.h"

#define BITS_BYTE  8u
#define ALIGN_MAX  (1u << 24)
#define SIZE_LIMIT ((uint64_t)INT64_MAX)

const struct cow_places cow_v2 = {
	.maker = "qemu",
	.version = 2,
	.whole = true,
	.name = 8,
	.name_size = 1024,
	.mtime = 1032,
	.size = 1040,
	.sector = 1048,
	.len = 1056,
};

/* Read and written, not created. */
static const struct cow_places cow_v2_uml = {
	.maker = "uml",
	.version = 2,
	.name = 8,
	.name_size = 4096,
	.mtime = 4104,
	.size = 4108,
	.sector = 4116,
	.len = 4120,
};

const struct cow_places cow_v3 = {
	.maker = "uml",
	.version = 3,
	.mtime = 8,
	.size = 12,
	.sector = 20,
	.align = 24,
	.format = 28,
	.name = 32,
	.name_size = 4096,
	.len = COW_HEAD,
};

int cow_layout(const struct cow_places *at, uint32_t align, uint64_t size, struct cow_layout *l)
{
	uint64_t end;

	if (size > SIZE_LIMIT - COW_SECTOR)
		return -THR_EFBIG;
	size = thr_align_up(size, COW_SECTOR);
	l->bitmap = at->align ? thr_align_up(at->len, align) : at->len;
	l->bitmap_len = thr_align_up(size / COW_SECTOR, BITS_BYTE) / BITS_BYTE;
	l->data = thr_align_up(l->bitmap + l->bitmap_len, align);
	if (thr_add_over(l->data, size, &end) || end > SIZE_LIMIT)
		return -THR_EFBIG;
	return 0;
}

uint64_t cow_stored_size(const struct cow_places *at, uint64_t size, uint64_t backing)
{
	bool same = backing <= size && size - backing < COW_SECTOR;

	return same && !at->whole ? backing : size;
}

/* ---- reading ---------------------------------------------------------------------- */

/* The first version has the byte order of its machine, and other fields. */
static bool is_v1(const uint8_t *head)
{
	return thr_le32(head) == COW_MAGIC && thr_le32(head + 4) == 1;
}

static int choose_places(struct cow *c, const uint8_t *head, struct blk_err *err)
{
	uint32_t version = thr_be32(head + 4);

	if (is_v1(head))
		return blk_fail(err, -THR_ENOTSUP, BLK_E_COW_VERSION, 4, 1);
	if (thr_be32(head) != COW_MAGIC)
		return blk_fail_str(err, -THR_EINVAL, BLK_E_NOT_FORMAT, "cow");
	if (version != 2 && version != 3)
		return blk_fail(err, -THR_ENOTSUP, BLK_E_COW_VERSION, 4, version);
	c->at = version == 3 ? &cow_v3 : &cow_v2;
	if (version == 2 && thr_be32(head + cow_v2.sector) != COW_SECTOR &&
		thr_be32(head + cow_v2_uml.sector) == COW_SECTOR)
		c->at = &cow_v2_uml;
	return 0;
}

static int take_name(struct cow *c, const uint8_t *head, struct blk_err *err)
{
	uint32_t max = THR_MIN(c->at->name_size, FMT_NAME_MAX);
	const uint8_t *name = head + c->at->name;

	if (!memchr(name, 0, max))
		return blk_fail(err, -THR_EINVAL, BLK_E_COW_NAME, c->at->name, max - 1);
	if (!*name)
		return 0;
	c->backing = thr_zget(c->blk.mem, FMT_NAME_MAX);
	if (!c->backing)
		return blk_fail(err, -THR_ENOMEM, BLK_E_SYS, 0, 0);
	memcpy(c->backing, name, max);
	return 0;
}

static int take_numbers(struct cow *c, const uint8_t *head, uint64_t have, struct blk_err *err)
{
	const struct cow_places *at = c->at;
	uint32_t sector = thr_be32(head + at->sector);

	c->align = at->align ? thr_be32(head + at->align) : COW_SECTOR;
	c->stored = thr_be64(head + at->size);
	c->mtime = thr_be32(head + at->mtime);
	if (sector != COW_SECTOR)
		return blk_fail(err, -THR_ENOTSUP, BLK_E_COW_SECTOR, at->sector, sector);
	if (!thr_is_pow2(c->align) || c->align < COW_SECTOR || c->align > ALIGN_MAX)
		return blk_fail(err, -THR_ENOTSUP, BLK_E_COW_ALIGN, at->align, c->align);
	if (at->format && thr_be32(head + at->format))
		return blk_fail(err, -THR_ENOTSUP, BLK_E_COW_FORMAT, at->format,
			thr_be32(head + at->format));
	if (cow_layout(at, c->align, c->stored, &c->lay))
		return blk_fail(err, -THR_EFBIG, BLK_E_COW_SIZE, at->size, c->stored);
	if (have < c->lay.bitmap + c->lay.bitmap_len)
		return blk_fail(err, -THR_EINVAL, BLK_E_COW_BITMAP, have, c->stored);
	return 0;
}

int cow_header_read(struct cow *c, struct blk *file, struct blk_err *err)
{
	uint64_t have = blk_size(file);
	uint8_t *head = thr_get(c->blk.mem, COW_HEAD, COW_SECTOR);
	struct thr_iov v = {.base = head, .len = COW_HEAD};
	struct blk_req r = {.len = COW_HEAD, .iov = &v, .niov = 1, .flags = BLK_EOF_ZERO};
	int code;

	if (!head)
		return blk_fail(err, -THR_ENOMEM, BLK_E_SYS, 0, 0);
	code = blk_preadv(file, &r);
	if (code)
		blk_fail(err, code, BLK_E_READ_AT, 0, 0);
	else
		code = choose_places(c, head, err);
	if (!code && have < c->at->len)
		code = blk_fail(err, -THR_EINVAL, BLK_E_COW_SHORT, have, 0);
	if (!code)
		code = take_numbers(c, head, have, err);
	if (!code)
		code = take_name(c, head, err);
	thr_put(c->blk.mem, head, COW_HEAD);
	return code;
}

/* Whatever has the mark of the format is told what is wrong with it, by the driver. */
int cow_probe(const uint8_t *head, size_t len, uint64_t size)
{
	(void)size;
	return len >= 8 && (thr_be32(head) == COW_MAGIC || is_v1(head)) ? 100 : 0;
}

/* ---- making ------------------------------------------------------------------------ */

void cow_header_make(const struct cow_places *at, uint8_t *head, const char *name,
	uint64_t size, uint32_t mtime)
{
	thr_put_be32(head, COW_MAGIC);
	thr_put_be32(head + 4, at->version);
	memcpy(head + at->name, name, strlen(name));
	thr_put_be32(head + at->mtime, mtime);
	thr_put_be64(head + at->size, size);
	thr_put_be32(head + at->sector, COW_SECTOR);
	if (at->align)
		thr_put_be32(head + at->align, COW_V3_ALIGN);
}
