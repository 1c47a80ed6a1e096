/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/nocrypt.c - stands in for crypt.c where encryption is left out: such images
 * are told what they are, for info, and otherwise refused.
 */
#include "fmt/qcow2/qcow2.h"

int qcow2_crypt_extension(struct qcow2 *q, uint64_t off, uint32_t len, struct blk_err *err)
{
	(void)q;
	(void)off;
	(void)len;
	(void)err;
	return 0;
}

int qcow2_crypt_open(struct qcow2 *q, const struct fmt_open *o, struct blk_err *err)
{
	(void)q;
	if (o->flags & FMT_NO_IO)
		return 0;
	return blk_fail_str(err, -THR_ENOTSUP, BLK_E_NOT_BUILT, "CONFIG_FMT_LUKS");
}

void qcow2_crypt_close(struct qcow2 *q)
{
	(void)q;
}

int qcow2_crypt_read(struct qcow2 *q, const struct blk_req *r, uint64_t host)
{
	(void)q;
	(void)r;
	(void)host;
	return -THR_ENOTSUP;
}

int qcow2_crypt_write(struct qcow2 *q, const struct blk_req *r, uint64_t host)
{
	return qcow2_crypt_read(q, r, host);
}

void qcow2_crypt_props(struct qcow2 *q, struct fmt_sink *s)
{
	s->open(s, "encrypt", false);
	s->str(s, "format", q->h.crypt_method == QCOW2_CRYPT_LUKS ? "luks" : "aes");
	s->close(s);
}
