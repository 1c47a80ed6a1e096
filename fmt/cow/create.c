/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/cow/create.c - new cow images, as uml_mkcow makes them (version 3) or as QEMU did
 * (version 2): the file has its full length, most of it a hole.
 *
 * Version 3 stores the absolute name of the backing file, because the programs that use
 * it take a relative one to be relative to where they are called. In version 2 it is
 * stored as it is given, relative to the image's folder.
 */
#include <unistd.h>

#include "fmt/cow/cow.h"

static int choose_version(
	const struct fmt_create *c, const struct cow_places **at, struct blk_err *err)
{
	const char *v = blk_opt(c->opts, "version");

	*at = v && fmt_streq(v, "2") ? &cow_v2 : &cow_v3;
	if (v && !fmt_streq(v, "2") && !fmt_streq(v, "3"))
		return blk_fail_str(err, -THR_EINVAL, BLK_E_BAD_VALUE, "version");
	return 0;
}

static bool absolute(const char *name)
{
	if (*name == '/')
		return true;
	while (*name && *name != '/' && *name != ':')
		name++;
	return *name == ':';
}

/* The name of the backing file as it will be stored, into @buf. */
static int stored_name(
	const struct cow_places *at, const struct fmt_create *c, char *buf, struct blk_err *err)
{
	size_t here = 0, len;
	int code;

	*buf = 0;
	if (!c->backing)
		return 0;
	if (at->version == 3 && !absolute(c->backing) && !absolute(c->name)) {
		if (!getcwd(buf, FMT_NAME_MAX - 1))
			return blk_fail(err, -THR_ENAMETOOLONG, BLK_E_SYS, 0, 0);
		here = strlen(buf);
		buf[here++] = '/';
	}
	if (at->version == 3) {
		code = fmt_backing_path(c->name, c->backing, buf + here, FMT_NAME_MAX - here);
	} else {
		len = strlen(c->backing);
		code = len < FMT_NAME_MAX ? 0 : -THR_ENAMETOOLONG;
		memcpy(buf, c->backing, code ? 0 : len + 1);
	}
	return code ? blk_fail(err, code, BLK_E_COW_NAME, 0, FMT_NAME_MAX - 1) : 0;
}

/* Space that reads as zeroes: a file grows, of a device the bitmap is cleared. */
static int make_room(struct blk *file, const struct cow_layout *l, uint64_t size,
	enum blk_prealloc p, struct blk_err *err)
{
	struct blk_req r = {.len = l->data};
	uint64_t total = l->data + thr_align_up(size, COW_SECTOR);
	int code;

	if (file->grows && blk_size(file) <= l->data + size)
		return blk_truncate(file, l->data + size, p, err);
	if (blk_size(file) < total)
		return blk_fail(err, -THR_ENOSPC, BLK_E_COW_NO_ROOM, 0, total);
	code = blk_zero(file, &r);
	if (!code)
		code = blk_flush(file);
	return code ? blk_fail(err, code, BLK_E_SYS, 0, 0) : 0;
}

static int plan(const struct fmt_create *c, const struct cow_places **at, struct cow_layout *l,
	enum blk_prealloc *p, struct blk_err *err)
{
	const char *word = blk_opt(c->opts, "preallocation");
	int code = choose_version(c, at, err);

	*p = BLK_PREALLOC_OFF;
	if (code)
		return code;
	if (word && blk_prealloc_parse(word, p))
		return blk_fail_str(err, -THR_EINVAL, BLK_E_BAD_VALUE, "preallocation");
	if (*p == BLK_PREALLOC_METADATA)
		return blk_fail_str(err, -THR_ENOTSUP, BLK_E_PREALLOC, word);
	if (cow_layout(*at, (*at)->align ? COW_V3_ALIGN : COW_SECTOR, c->size, l))
		return blk_fail(err, -THR_EFBIG, BLK_E_COW_SIZE, 0, c->size);
	return 0;
}

static int write_header(struct blk *file, const struct cow_places *at,
	const struct fmt_create *c, uint64_t size, struct blk_err *err)
{
	uint8_t *head = thr_zget(c->mem, COW_HEAD);
	char *name = thr_get(c->mem, FMT_NAME_MAX, 16);
	int code = -THR_ENOMEM;

	if (head && name)
		code = stored_name(at, c, name, err);
	else
		blk_fail(err, code, BLK_E_SYS, 0, 0);
	if (!code) {
		uint32_t mtime = (uint32_t)c->backing_mtime;

		cow_header_make(at, head, name, size, mtime);
		code = blk_pwrite(file, 0, head, at->len);
		if (code)
			blk_fail(err, code, BLK_E_SYS, 0, 0);
	}
	thr_put(c->mem, name, FMT_NAME_MAX);
	thr_put(c->mem, head, COW_HEAD);
	return code;
}

int cow_create(struct blk *file, const struct fmt_create *c, struct blk_err *err)
{
	const struct cow_places *at;
	struct cow_layout l;
	enum blk_prealloc p;
	int code = plan(c, &at, &l, &p, err);
	uint64_t size;

	if (code)
		return code;
	size = cow_stored_size(at, thr_align_up(c->size, COW_SECTOR), c->backing_bytes);
	code = make_room(file, &l, size, p, err);
	return code ? code : write_header(file, at, c, size, err);
}

int cow_measure(const struct fmt_create *c, struct fmt_layout *l, struct blk_err *err)
{
	const struct cow_places *at;
	struct cow_layout lay;
	enum blk_prealloc p;
	int code = plan(c, &at, &lay, &p, err);

	if (code)
		return code;
	l->metadata = lay.data;
	l->data = thr_align_up(c->size, COW_SECTOR);
	return 0;
}

const struct fmt_opt cow_create_opts[] = {
	{"size", FMT_OPT_SIZE, "Virtual disk size", NULL},
	{"backing_file", FMT_OPT_STRING, "File name of a base image", NULL},
	{"backing_fmt", FMT_OPT_STRING, "Format of the base image (not stored)", NULL},
	{"version", FMT_OPT_STRING,
		"Version of the format (3: uml-utilities; 2: QEMU until 2014)", "3"},
	{"preallocation", FMT_OPT_STRING,
		"Preallocation mode (allowed values: off, falloc, full)", NULL},
	{NULL, FMT_OPT_BOOL, NULL, NULL},
};
