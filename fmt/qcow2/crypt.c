/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/crypt.c - encrypted images: a LUKS header in clusters of its own, which an
 * extension of the header names; or the older method, AES-128-CBC under the password
 * itself, which is read so that data can be got out, and never written.
 *
 * The number of a sector is that of its place in the file for LUKS, and that of its
 * place on the disk for the older method.
 */
#include "fmt/luks/luks.h"
#include "fmt/qcow2/qcow2.h"

#define METHOD_AES 1u
#define AES_KEY    16u

/* More than any key length gives. */
#define HEADER_MAX (16u << 20)

struct qcow2_crypt {
	struct luks_area area;
	struct luks_header h;
	struct luks_crypt *luks; /* NULL: for info only */
};

int qcow2_crypt_extension(struct qcow2 *q, uint64_t off, uint32_t len, struct blk_err *err)
{
	uint8_t p[16];
	int ret;

	if (len != sizeof(p) || q->h.crypt_method != QCOW2_CRYPT_LUKS)
		return blk_fail(err, -THR_EINVAL, BLK_E_QCOW2_CRYPT_EXT, off, len);
	ret = blk_pread(q->blk.file, off, p, sizeof(p));
	if (ret)
		return blk_fail(err, ret, BLK_E_SYS, off, 0);
	q->crypt_off = thr_be64(p);
	q->crypt_len = thr_be64(p + 8);
	if (q->crypt_off < q->cluster_size || q->crypt_off & q->cluster_mask ||
		q->crypt_len < LUKS_HEADER || q->crypt_len > HEADER_MAX ||
		!thr_within(q->crypt_off, q->crypt_len, blk_size(q->blk.file)))
		return blk_fail(err, -THR_EINVAL, BLK_E_QCOW2_CRYPT_EXT, off, len);
	return 0;
}

static int unlock_luks(struct qcow2 *q, const struct fmt_open *o, const struct fmt_secret *pass,
	struct blk_err *err)
{
	struct qcow2_crypt *c = q->crypt;
	uint8_t key[LUKS_KEY_MAX];
	unsigned slot;
	int ret = luks_unlock(&c->area, &c->h, pass, key, &slot, o->mem, err);

	if (ret)
		return ret;
	ret = luks_crypt_open(&c->luks, &c->h.spec, key, c->h.key_len, o->mem);
	cz_wipe(key, sizeof(key));
	return ret ? blk_fail(err, ret, BLK_E_SYS, 0, 0) : 0;
}

/* The password is the key, cut or filled up with zeroes. Any will do: what a wrong one
 * gives cannot be told from data. */
static int unlock_aes(struct qcow2 *q, const struct fmt_open *o, const struct fmt_secret *pass,
	struct blk_err *err)
{
	static const struct cz_cipher_spec spec = {
		.cipher = CZ_AES_128, .mode = CZ_CBC, .iv = CZ_IV_PLAIN64};
	uint8_t key[AES_KEY] = {0};
	int ret;

	if (o->blk_flags & BLK_RDWR && !(o->flags & FMT_REPAIR))
		return blk_fail(err, -THR_ENOTSUP, BLK_E_QCOW2_AES, 32, METHOD_AES);
	memcpy(key, pass->data, THR_MIN(pass->len, sizeof(key)));
	ret = luks_crypt_open(&q->crypt->luks, &spec, key, sizeof(key), o->mem);
	cz_wipe(key, sizeof(key));
	return ret ? blk_fail(err, ret, BLK_E_SYS, 0, 0) : 0;
}

static int check_format(const struct qcow2 *q, const struct fmt_open *o, struct blk_err *err)
{
	const char *is = q->h.crypt_method == METHOD_AES ? "aes" : "luks";
	const char *format = blk_opt(o->opts, "encrypt.format");

	if (format && strcmp(format, is) != 0)
		return blk_fail_str(err, -THR_EINVAL, BLK_E_BAD_VALUE, "encrypt.format");
	return 0;
}

/* The check of an image has no need of its data. */
static int unlock(struct qcow2 *q, const struct fmt_open *o, struct blk_err *err)
{
	const char *id = blk_opt(o->opts, "encrypt.key-secret");
	const struct fmt_secret *pass = id ? fmt_secret(o->secrets, id) : NULL;

	if (!id && o->flags & FMT_REPAIR)
		return 0;
	if (!id)
		return blk_fail_str(
			err, -THR_EINVAL, BLK_E_CIPHER_SECRET, "encrypt.key-secret");
	if (!pass)
		return blk_fail_str(err, -THR_EINVAL, BLK_E_NO_SECRET, id);
	return q->h.crypt_method == METHOD_AES ? unlock_aes(q, o, pass, err)
					       : unlock_luks(q, o, pass, err);
}

int qcow2_crypt_open(struct qcow2 *q, const struct fmt_open *o, struct blk_err *err)
{
	struct qcow2_crypt *c;
	int ret = check_format(q, o, err);

	if (ret)
		return ret;
	q->crypt = c = thr_zget(q->blk.mem, sizeof(*c));
	if (!c)
		return blk_fail(err, -THR_ENOMEM, BLK_E_SYS, 0, 0);
	if (q->h.crypt_method == QCOW2_CRYPT_LUKS) {
		if (!q->crypt_off)
			return blk_fail(err, -THR_EINVAL, BLK_E_QCOW2_CRYPT_EXT, 0, 0);
		luks_area_init(&c->area, q->blk.file, q->crypt_off, q->crypt_len);
		ret = luks_header_read(&c->area, &c->h, err);
		if (ret)
			return ret;
	}
	q->blk.align = LUKS_SECTOR;
	q->blk.turns = true;
	return o->flags & FMT_NO_IO ? 0 : unlock(q, o, err);
}

void qcow2_crypt_close(struct qcow2 *q)
{
	if (!q->crypt)
		return;
	luks_crypt_close(q->crypt->luks);
	thr_put(q->blk.mem, q->crypt, sizeof(*q->crypt));
}

int qcow2_crypt_read(struct qcow2 *q, const struct blk_req *r, uint64_t host)
{
	uint64_t at = q->h.crypt_method == METHOD_AES ? r->off : host;

	if (!q->crypt->luks)
		return -THR_EACCES;
	return luks_crypt_read(q->crypt->luks, q->data, r, host, at / LUKS_SECTOR);
}

int qcow2_crypt_write(struct qcow2 *q, const struct blk_req *r, uint64_t host)
{
	if (!q->crypt->luks || q->h.crypt_method == METHOD_AES)
		return -THR_EACCES;
	return luks_crypt_write(q->crypt->luks, q->data, r, host, host / LUKS_SECTOR);
}

void qcow2_crypt_props(struct qcow2 *q, struct fmt_sink *s)
{
	s->open(s, "encrypt", false);
	if (q->h.crypt_method == METHOD_AES)
		s->str(s, "format", "aes");
	else
		luks_props(&q->crypt->h, s, true);
	s->close(s);
}

static bool meets(const struct qcow2 *q, uint64_t off, uint64_t len)
{
	return q->crypt_off < off + len && off < q->crypt_off + q->crypt_len;
}

/* Whatever the header says of its length: keys are not written over tables. */
static bool over_tables(const struct qcow2 *q)
{
	return meets(q, q->h.l1_off, (uint64_t)q->h.l1_entries * 8) ||
	       meets(q, q->h.reft_off, (uint64_t)q->h.reft_clusters << q->h.cluster_bits);
}

int qcow2_crypt_amend(struct qcow2 *q, const struct fmt_amend *m, struct blk_err *err)
{
	struct qcow2_crypt *c = q->crypt;

	if (!c || !c->luks || q->h.crypt_method != QCOW2_CRYPT_LUKS)
		return blk_fail(err, -THR_EINVAL, BLK_E_QCOW2_NOT_LUKS, 0, 0);
	if (over_tables(q))
		return blk_fail(
			err, -THR_EUCLEAN, BLK_E_QCOW2_CRYPT_EXT, q->crypt_off, q->crypt_len);
	return luks_amend(&c->area, &c->h, luks_crypt_key(c->luks), m, "encrypt.", err);
}
