/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/serve_tls_none.c - stands in where TLS is left out: there are no credentials, so
 * nobody gets as far as using them.
 */
#include <errno.h>

#include "blk/serve.h"

int blk_nbd_tls_open(
	struct blk_nbd_tls **out, const struct blk_nbd_tls_open *o, struct blk_err *err)
{
	(void)out;
	(void)o;
	return blk_fail_str(err, -ENOTSUP, BLK_E_NOT_BUILT, "CONFIG_BLK_NBD_SERVER_TLS");
}

void blk_nbd_tls_close(struct blk_nbd_tls *t)
{
	(void)t;
}

int blk_srv_tls_start(struct srv_conn *c)
{
	(void)c;
	return -ENOTSUP;
}

void blk_srv_tls_end(struct srv_conn *c)
{
	(void)c;
}

int64_t blk_srv_tls_recv(struct srv_conn *c, void *buf, size_t len, enum thr_fd_dir *dir)
{
	(void)c;
	(void)buf;
	(void)len;
	(void)dir;
	return -ENOTSUP;
}

int64_t blk_srv_tls_send(
	struct srv_conn *c, const struct thr_iov *v, unsigned n, enum thr_fd_dir *dir)
{
	(void)c;
	(void)v;
	(void)n;
	(void)dir;
	return -ENOTSUP;
}
