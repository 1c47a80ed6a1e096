/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/create_crypt.c - the LUKS header of a new image.
 */
#include "fmt/luks/luks.h"
#include "fmt/qcow2/create.h"

int qcow2_plan_crypt(struct qcow2_plan *p, const struct fmt_create *c, struct blk_err *err)
{
	const char *format = blk_opt(c->opts, "encrypt.format");
	bool old;
	int ret = blk_opt_bool(c->opts, "encryption", false, &old, err);

	if (ret)
		return ret;
	if (old || (format && !strcmp(format, "aes")))
		return blk_fail(err, -THR_ENOTSUP, BLK_E_QCOW2_AES_NEW, 0, 0);
	for (unsigned i = 0; !format && c->opts && i < c->opts->n; i++)
		if (!strncmp(c->opts->v[i].key, "encrypt.", 8))
			return blk_fail_str(
				err, -THR_EINVAL, BLK_E_NEED_OPTION, "encrypt.format");
	if (!format)
		return 0;
	if (strcmp(format, "luks") != 0)
		return blk_fail_str(err, -THR_EINVAL, BLK_E_BAD_VALUE, "encrypt.format");
	if (p->prealloc != BLK_PREALLOC_OFF && p->h.version < 3)
		return blk_fail(err, -THR_EINVAL, BLK_E_QCOW2_CRYPT_PREALLOC, 0, 0);
	p->luks = thr_zget(c->mem, sizeof(*p->luks));
	if (!p->luks)
		return blk_fail(err, -THR_ENOMEM, BLK_E_SYS, 0, 0);
	ret = luks_setup_options(p->luks, c, "encrypt.", err);
	if (ret) {
		qcow2_plan_crypt_free(p, c->mem);
		return ret;
	}
	p->h.crypt_method = QCOW2_CRYPT_LUKS;
	p->crypt = qcow2_plan_clusters(p, qcow2_plan_crypt_bytes(p));
	return 0;
}

void qcow2_plan_crypt_free(struct qcow2_plan *p, const struct thr_alloc *mem)
{
	thr_put(mem, p->luks, sizeof(*p->luks));
	p->luks = NULL;
}

uint64_t qcow2_plan_crypt_bytes(const struct qcow2_plan *p)
{
	return p->luks ? (uint64_t)p->luks->h.payload * LUKS_SECTOR : 0;
}

int qcow2_plan_crypt_write(
	struct blk *file, struct qcow2_plan *p, const struct fmt_create *c, struct blk_err *err)
{
	struct luks_area a;

	if (!p->luks)
		return 0;
	luks_area_init(&a, file, p->crypt_off, qcow2_plan_crypt_bytes(p));
	return luks_setup_write(p->luks, &a, c->seed, c->mem, err);
}
