/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/luks/header.c - the header of LUKS1: parsed, validated, written.
 *
 * Nothing is used before it has been checked here, and what the checks promise is
 * relied upon: cipher, mode and hash are known and go with the key's length; the key
 * material of every slot lies behind the header and apart from the others', and before
 * the payload where that is in the same area; that of an active slot lies in the area;
 * iterations are from 1 to LUKS_ITER_MAX.
 */
#include "fmt/luks/luks.h"

static const uint8_t magic[6] = {'L', 'U', 'K', 'S', 0xba, 0xbe};

#define SLOT_ON  0x00ac71f3u
#define SLOT_OFF 0x0000deadu

enum {
	AT_VERSION = 6,
	AT_CIPHER = 8,
	AT_MODE = 40,
	AT_HASH = 72,
	AT_PAYLOAD = 104,
	AT_KEY_LEN = 108,
	AT_DIGEST = 112,
	AT_SALT = 132,
	AT_ITERATIONS = 164,
	AT_UUID = 168,
	AT_SLOTS = 208,
	SLOT_BYTES = 48,
};

/* ---- areas ---- */

static int area_read(const struct luks_area *a, uint64_t off, void *buf, size_t len)
{
	return thr_within(off, len, a->size) ? blk_pread(a->blk, a->base + off, buf, len)
					     : -THR_EINVAL;
}

static int area_write(const struct luks_area *a, uint64_t off, const void *buf, size_t len)
{
	if (!thr_within(off, len, a->size) && !a->alone)
		return -THR_EINVAL;
	return blk_pwrite(a->blk, a->base + off, buf, len);
}

static int area_flush(const struct luks_area *a)
{
	return blk_flush(a->blk);
}

void luks_area_init(struct luks_area *a, struct blk *b, uint64_t base, uint64_t size)
{
	*a = (struct luks_area){area_read, area_write, area_flush, b, base, size, false};
}

/* ---- from disk ---- */

static int take_string(
	char *to, const uint8_t *from, size_t size, const char *what, struct blk_err *err)
{
	memcpy(to, from, size);
	to[size] = 0;
	return memchr(from, 0, size) ? 0
				     : blk_fail_str(err, -THR_EINVAL, BLK_E_LUKS_STRING, what);
}

static int take_strings(struct luks_header *h, const uint8_t *p, struct blk_err *err)
{
	int ret = take_string(h->cipher, p + AT_CIPHER, 32, "cipher-name", err);

	if (!ret)
		ret = take_string(h->mode, p + AT_MODE, 32, "cipher-mode", err);
	if (!ret)
		ret = take_string(h->hash, p + AT_HASH, 32, "hash-spec", err);
	if (!ret)
		ret = take_string(h->uuid, p + AT_UUID, 40, "uuid", err);
	return ret;
}

static int check_cipher(struct luks_header *h, struct blk_err *err)
{
	int hash = cz_digest_find(h->hash);
	char text[72];
	size_t n = strlen(h->cipher);
	int ret;

	memcpy(text, h->cipher, n);
	text[n] = '-';
	memcpy(text + n + 1, h->mode, strlen(h->mode) + 1);
	if (hash < 0)
		return blk_fail_str(err, -THR_ENOTSUP, BLK_E_LUKS_HASH, h->hash);
	h->hash_id = (enum cz_digest_id)hash;
	if (!h->key_len || h->key_len > LUKS_KEY_MAX)
		return blk_fail(err, -THR_EINVAL, BLK_E_LUKS_KEY, AT_KEY_LEN, h->key_len);
	ret = cz_cipher_parse(&h->spec, h->cipher, h->mode, h->key_len);
	if (ret)
		return blk_fail_str(err, -THR_ENOTSUP, BLK_E_LUKS_CIPHER, text);
	if (cz_cipher_key_len(&h->spec) != h->key_len)
		return blk_fail(err, -THR_EINVAL, BLK_E_LUKS_KEY, AT_KEY_LEN, h->key_len);
	return 0;
}

static int take_slot(struct luks_slot *s, const uint8_t *p, unsigned i, struct blk_err *err)
{
	uint32_t state = thr_be32(p);
	uint64_t at = AT_SLOTS + (uint64_t)i * SLOT_BYTES;

	if (state != SLOT_ON && state != SLOT_OFF)
		return blk_fail(err, -THR_EUCLEAN, BLK_E_LUKS_STATE, at, i);
	s->active = state == SLOT_ON;
	s->iterations = thr_be32(p + 4);
	memcpy(s->salt, p + 8, LUKS_SALT);
	s->sector = thr_be32(p + 40);
	if (thr_be32(p + 44) != LUKS_STRIPES)
		return blk_fail(err, -THR_EUCLEAN, BLK_E_LUKS_STRIPES, at + 44, i);
	if (s->active && (!s->iterations || s->iterations > LUKS_ITER_MAX))
		return blk_fail(
			err, -THR_EUCLEAN, BLK_E_LUKS_ITERATIONS, at + 4, s->iterations);
	return 0;
}

uint32_t luks_material(uint32_t key_len)
{
	return (uint32_t)thr_align_up(key_len * LUKS_STRIPES, LUKS_SECTOR);
}

static int check_slots(
	const struct luks_header *h, const struct luks_area *a, struct blk_err *err)
{
	uint64_t n = luks_material(h->key_len) / LUKS_SECTOR;

	for (unsigned i = 0; i < LUKS_SLOTS; i++) {
		uint64_t at = h->slot[i].sector;
		bool bad = at * LUKS_SECTOR < LUKS_HEADER;

		if (!a->alone)
			bad |= at + n > h->payload;
		for (unsigned j = 0; j < i; j++)
			bad |= at < h->slot[j].sector + n && h->slot[j].sector < at + n;
		if (bad)
			return blk_fail(err, -THR_EUCLEAN, BLK_E_LUKS_OVERLAP, at, i);
		if (h->slot[i].active && (at + n) * LUKS_SECTOR > a->size)
			return blk_fail(err, -THR_EUCLEAN, BLK_E_LUKS_OUTSIDE, at, i);
	}
	return 0;
}

int luks_header_parse(struct luks_header *h, const uint8_t *raw, const struct luks_area *a,
	struct blk_err *err)
{
	int ret;

	memset(h, 0, sizeof(*h));
	if (memcmp(raw, magic, sizeof(magic)))
		return blk_fail_str(err, -THR_EINVAL, BLK_E_NOT_FORMAT, "LUKS");
	if (thr_be16(raw + AT_VERSION) != 1)
		return blk_fail(err, -THR_ENOTSUP, BLK_E_LUKS_VERSION, AT_VERSION,
			thr_be16(raw + AT_VERSION));
	h->payload = thr_be32(raw + AT_PAYLOAD);
	h->key_len = thr_be32(raw + AT_KEY_LEN);
	memcpy(h->digest, raw + AT_DIGEST, LUKS_DIGEST);
	memcpy(h->salt, raw + AT_SALT, LUKS_SALT);
	h->iterations = thr_be32(raw + AT_ITERATIONS);
	ret = take_strings(h, raw, err);
	if (!ret)
		ret = check_cipher(h, err);
	if (ret)
		return ret;
	if (!h->iterations || h->iterations > LUKS_ITER_MAX)
		return blk_fail(
			err, -THR_EUCLEAN, BLK_E_LUKS_ITERATIONS, AT_ITERATIONS, h->iterations);
	for (unsigned i = 0; !ret && i < LUKS_SLOTS; i++)
		ret = take_slot(&h->slot[i], raw + AT_SLOTS + i * SLOT_BYTES, i, err);
	return ret ? ret : check_slots(h, a, err);
}

int luks_header_read(const struct luks_area *a, struct luks_header *h, struct blk_err *err)
{
	uint8_t raw[LUKS_HEADER];
	int ret;

	if (a->size < LUKS_HEADER)
		return blk_fail(err, -THR_EINVAL, BLK_E_LUKS_SHORT, 0, a->size);
	ret = a->read(a, 0, raw, sizeof(raw));
	if (ret)
		return blk_fail(err, ret, BLK_E_SYS, 0, 0);
	return luks_header_parse(h, raw, a, err);
}

/* ---- to disk ---- */

static void pack_slot(const struct luks_slot *s, uint8_t *p)
{
	thr_put_be32(p, s->active ? SLOT_ON : SLOT_OFF);
	thr_put_be32(p + 4, s->iterations);
	memcpy(p + 8, s->salt, LUKS_SALT);
	thr_put_be32(p + 40, s->sector);
	thr_put_be32(p + 44, LUKS_STRIPES);
}

void luks_header_pack(const struct luks_header *h, uint8_t *raw)
{
	memset(raw, 0, LUKS_HEADER);
	memcpy(raw, magic, sizeof(magic));
	raw[AT_VERSION + 1] = 1;
	memcpy(raw + AT_CIPHER, h->cipher, 32);
	memcpy(raw + AT_MODE, h->mode, 32);
	memcpy(raw + AT_HASH, h->hash, 32);
	thr_put_be32(raw + AT_PAYLOAD, h->payload);
	thr_put_be32(raw + AT_KEY_LEN, h->key_len);
	memcpy(raw + AT_DIGEST, h->digest, LUKS_DIGEST);
	memcpy(raw + AT_SALT, h->salt, LUKS_SALT);
	thr_put_be32(raw + AT_ITERATIONS, h->iterations);
	memcpy(raw + AT_UUID, h->uuid, 40);
	for (unsigned i = 0; i < LUKS_SLOTS; i++)
		pack_slot(&h->slot[i], raw + AT_SLOTS + i * SLOT_BYTES);
}

int luks_slot_save(const struct luks_area *a, const struct luks_header *h, unsigned slot)
{
	uint8_t p[SLOT_BYTES];

	pack_slot(&h->slot[slot], p);
	return a->write(a, AT_SLOTS + (uint64_t)slot * SLOT_BYTES, p, sizeof(p));
}

int luks_slot_switch(const struct luks_area *a, unsigned slot, bool active)
{
	uint8_t p[4];

	thr_put_be32(p, active ? SLOT_ON : SLOT_OFF);
	return a->write(a, AT_SLOTS + (uint64_t)slot * SLOT_BYTES, p, sizeof(p));
}
