/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/amend.c - options of an image that can be changed: lazy reference counts, by
 * one write of the header, and key slots.
 */
#include "fmt/qcow2/write.h"

const struct fmt_opt qcow2_amend_opts[] = {
	{"lazy_refcounts", FMT_OPT_BOOL, "Postpone refcount updates", NULL},
#ifdef CONFIG_FMT_LUKS
	{"encrypt.state", FMT_OPT_STRING,
		"Select new state of affected keyslots (active/inactive)", NULL},
	{"encrypt.keyslot", FMT_OPT_NUMBER, "Select a single keyslot to modify explicitly",
		NULL},
	{"encrypt.old-secret", FMT_OPT_STRING, "Select all keyslots that match this password",
		NULL},
	{"encrypt.new-secret", FMT_OPT_STRING, "New secret to set in the keyslot", NULL},
	{"encrypt.iter-time", FMT_OPT_NUMBER, "Time to spend in PBKDF in milliseconds", NULL},
#endif
	{NULL, FMT_OPT_BOOL, NULL, NULL},
};

static int set_lazy(struct qcow2 *q, bool on, struct blk_err *err)
{
	struct qcow2_header h;
	int ret = 0;

	if (q->h.version < 3)
		return on ? blk_fail_str(
				    err, -THR_EINVAL, BLK_E_QCOW2_NEEDS_V3, "lazy_refcounts")
			  : 0;
	qcow2_layout_lock(q);
	h = q->h;
	h.compatible &= ~(uint64_t)QCOW2_COMPAT_LAZY;
	h.compatible |= on ? QCOW2_COMPAT_LAZY : 0;
	if (h.compatible != q->h.compatible)
		ret = qcow2_header_switch(q, &h);
	qcow2_layout_unlock(q);
	return ret ? blk_fail(err, ret, BLK_E_SYS, 0, 0) : 0;
}

static bool about_keys(const char *key)
{
	static const char prefix[] = "encrypt.";

	for (unsigned i = 0; prefix[i]; i++)
		if (key[i] != prefix[i])
			return false;
	return true;
}

int qcow2_amend(struct blk *b, const struct fmt_amend *m, struct blk_err *err)
{
	struct qcow2 *q = qcow2_of(b);
	bool lazy, keys = false;
	int ret = blk_opt_bool(m->opts, "lazy_refcounts", false, &lazy, err);

	if (!ret && blk_opt(m->opts, "lazy_refcounts"))
		ret = set_lazy(q, lazy, err);
	for (unsigned i = 0; i < m->opts->n; i++)
		keys |= about_keys(m->opts->v[i].key);
	return ret || !keys ? ret : qcow2_crypt_amend(q, m, err);
}
