/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/create_nocrypt.c - stands in for create_crypt.c where encryption is left out.
 */
#include "fmt/qcow2/create.h"

int qcow2_plan_crypt(struct qcow2_plan *p, const struct fmt_create *c, struct blk_err *err)
{
	bool wanted;
	int ret = blk_opt_bool(c->opts, "encryption", false, &wanted, err);

	(void)p;
	if (ret)
		return ret;
	for (unsigned i = 0; c->opts && i < c->opts->n; i++)
		wanted |= !strncmp(c->opts->v[i].key, "encrypt.", 8);
	return wanted ? blk_fail_str(err, -THR_ENOTSUP, BLK_E_NOT_BUILT, "CONFIG_FMT_LUKS") : 0;
}

void qcow2_plan_crypt_free(struct qcow2_plan *p, const struct thr_alloc *mem)
{
	(void)p;
	(void)mem;
}

uint64_t qcow2_plan_crypt_bytes(const struct qcow2_plan *p)
{
	(void)p;
	return 0;
}

int qcow2_plan_crypt_write(
	struct blk *file, struct qcow2_plan *p, const struct fmt_create *c, struct blk_err *err)
{
	(void)file;
	(void)p;
	(void)c;
	(void)err;
	return 0;
}
