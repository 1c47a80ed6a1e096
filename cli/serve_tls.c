/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/serve_tls.c - the credentials that --tls-creds names, as qemu-nbd takes them.
 */
#include <string.h>

#include "cli/serve.h"

int serve_tls_open(struct blk_nbd_tls **out, const char *id)
{
	const struct blk_opts *o = cli_tls_find(id);
	struct blk_nbd_tls_open t = {.mem = &thr_heap};
	struct blk_err err = BLK_ERR_INIT;
	const char *end = o ? blk_opt(o, "endpoint") : NULL;

	if (!o)
		return cli_error("No TLS credentials with id '%s'", id);
	if (!end || strcmp(end, "server"))
		return cli_error("Expecting TLS credentials with a server endpoint");
	t.dir = blk_opt(o, "dir");
	t.psk = !strcmp(blk_opt(o, "qom-type"), "tls-creds-psk");
	if (blk_opt_bool(o, "verify-peer", true, &t.verify_peer, &err) ||
		blk_nbd_tls_open(out, &t, &err))
		return cli_fail(&err);
	return 0;
}
