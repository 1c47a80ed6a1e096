/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/object_tls.c - --object tls-creds-x509 and tls-creds-psk: kept for who names them.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

#define OBJECTS 8

static struct cli_opts objects[OBJECTS];
static unsigned count;

static int keep_tls(struct cli_opts *l, const char *type)
{
	static const char *const known[] = {"qom-type", "id", "dir", "endpoint", "verify-peer",
		"username", "priority", "sanity-check", NULL};
	struct blk_err err = BLK_ERR_INIT;

	if (strcmp(type, "tls-creds-x509") && strcmp(type, "tls-creds-psk"))
		return cli_error("Parameter 'qom-type' does not accept value '%s'", type);
	if (!blk_opt(&l->o, "qom-type")) {
		if (cli_opts_put(l, "qom-type", type))
			return 1;
		free(cli_opts_take(l, type));
	}
	if (blk_opts_known(&l->o, known, &err))
		return cli_fail(&err);
	if (blk_opt(&l->o, "priority"))
		return cli_error("The option 'priority' of TLS credentials is not supported");
	if (!blk_opt(&l->o, "id"))
		return cli_error("Parameter 'id' is missing");
	if (!blk_opt(&l->o, "dir"))
		return cli_error("Parameter 'dir' is missing");
	if (cli_tls_find(blk_opt(&l->o, "id")))
		return cli_error(
			"There are two objects with the id '%s'", blk_opt(&l->o, "id"));
	if (count == OBJECTS)
		return cli_error("There can be %d TLS credentials at most", OBJECTS);
	objects[count++] = *l;
	return 0;
}

int cli_tls_add(struct cli_opts *l, const char *type)
{
	int ret = keep_tls(l, type);

	if (ret)
		cli_opts_free(l);
	return ret;
}

const struct blk_opts *cli_tls_find(const char *id)
{
	for (unsigned i = 0; i < count; i++)
		if (!strcmp(blk_opt(&objects[i].o, "id"), id))
			return &objects[i].o;
	return NULL;
}
