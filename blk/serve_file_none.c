/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/serve_file_none.c - a server without files to send.
 */
#include <errno.h>

#include "blk/serve.h"

int blk_srv_file(const struct srv_conn *c, uint64_t off, uint64_t len)
{
	(void)c;
	(void)off;
	(void)len;
	return -1;
}

int64_t blk_srv_sendfile(struct srv_conn *c, const struct srv_out *o, size_t done)
{
	(void)c;
	(void)o;
	(void)done;
	return -EINVAL;
}
