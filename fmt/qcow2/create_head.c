/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/create_head.c - the first cluster of a new image: header, extensions,
 * the backing file's name.
 */
#include "fmt/qcow2/create.h"

#define FEATURE_ENTRY 48
#define HEAD_MAX      4096u

struct feature {
	uint8_t kind, bit;
	char name[FEATURE_ENTRY - 2];
};

enum { INCOMPATIBLE, COMPATIBLE, AUTOCLEAR };

static const struct feature features[] = {
	{INCOMPATIBLE, 0, "dirty bit"},
	{INCOMPATIBLE, 1, "corrupt bit"},
	{INCOMPATIBLE, 2, "external data file"},
	{INCOMPATIBLE, 3, "compression type"},
	{INCOMPATIBLE, 4, "extended L2 entries"},
	{COMPATIBLE, 0, "lazy refcounts"},
	{AUTOCLEAR, 0, "bitmaps"},
	{AUTOCLEAR, 1, "raw external data"},
};

static size_t length(const char *s)
{
	size_t n = 0;

	while (s[n])
		n++;
	return n;
}

static void put_fields(uint8_t *p, const struct qcow2_header *h)
{
	thr_put_be32(p, QCOW2_MAGIC);
	thr_put_be32(p + 4, h->version);
	thr_put_be64(p + 8, h->backing_off);
	thr_put_be32(p + 16, h->backing_len);
	thr_put_be32(p + 20, h->cluster_bits);
	thr_put_be64(p + 24, h->size);
	thr_put_be32(p + 32, h->crypt_method);
	thr_put_be32(p + 36, h->l1_entries);
	thr_put_be64(p + 40, h->l1_off);
	thr_put_be64(p + 48, h->reft_off);
	thr_put_be32(p + 56, h->reft_clusters);
	if (h->version < 3)
		return;
	thr_put_be64(p + 72, h->incompatible);
	thr_put_be64(p + 80, h->compatible);
	thr_put_be64(p + 88, h->autoclear);
	thr_put_be32(p + 96, h->refcount_order);
	thr_put_be32(p + 100, h->header_length);
	p[QCOW2_HEADER_V3] = h->compression_type;
}

/* An extension at @at; where the next one goes. */
static size_t put_extension(uint8_t *p, size_t at, uint32_t type, const void *data, size_t len)
{
	thr_put_be32(p + at, type);
	thr_put_be32(p + at + 4, (uint32_t)len);
	memcpy(p + at + 8, data, len);
	return at + 8 + (size_t)thr_align_up(len, 8);
}

int qcow2_plan_header(struct qcow2_plan *p, const struct fmt_create *c, struct blk_err *err)
{
	struct qcow2_header *h = &p->h;
	size_t name = c->backing ? length(c->backing) : 0;
	size_t format = c->backing && c->backing_format ? length(c->backing_format) : 0;
	size_t data = p->data_file ? length(p->data_file) : 0;
	size_t max = THR_MIN(1u << h->cluster_bits, HEAD_MAX);
	size_t need = h->header_length + (format ? 8 + thr_align_up(format, 8) : 0) +
		      (data ? 8 + thr_align_up(data, 8) : 0) + 8 + name;
	size_t at = h->header_length;
	uint8_t crypt[16];

	if (p->crypt)
		need += 8 + sizeof(crypt);
	if (format >= FMT_FORMAT_MAX)
		return blk_fail(err, -THR_EINVAL, BLK_E_QCOW2_BACKING_FORMAT, 0, format);
	if (data >= FMT_NAME_MAX || (data && need > max))
		return blk_fail(err, -THR_EINVAL, BLK_E_QCOW2_DATA_NAME, 0, data);
	if (name >= FMT_NAME_MAX || need > max)
		return blk_fail(err, -THR_EINVAL, BLK_E_QCOW2_BACKING_LONG, 0, name);
	p->head = (uint8_t *)thr_zget(c->mem, max);
	if (!p->head)
		return blk_fail(err, -THR_ENOMEM, BLK_E_SYS, 0, 0);
	p->head_size = max;
	if (format)
		at = put_extension(
			p->head, at, QCOW2_EXT_BACKING_FORMAT, c->backing_format, format);
	if (data)
		at = put_extension(p->head, at, QCOW2_EXT_DATA_FILE, p->data_file, data);
	if (p->crypt) {
		thr_put_be64(crypt, p->crypt_off);
		thr_put_be64(crypt + 8, qcow2_plan_crypt_bytes(p));
		at = put_extension(p->head, at, QCOW2_EXT_CRYPTO, crypt, sizeof(crypt));
	}
	if (h->version >= 3 && need + 8 + sizeof(features) <= max)
		at = put_extension(p->head, at, QCOW2_EXT_FEATURES, features, sizeof(features));
	at += 8; /* the end of the extensions: type and length 0 */
	if (name) {
		h->backing_off = at;
		h->backing_len = (uint32_t)name;
		memcpy(p->head + at, c->backing, name);
		at += name;
	}
	put_fields(p->head, h);
	p->head_len = at;
	return 0;
}
