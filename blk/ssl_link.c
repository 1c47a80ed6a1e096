/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/ssl_link.c - libssl, linked with.
 */
#include "blk/ssl_lib.h"

struct ssl_lib blk_ssl_lib = {
#define SSL_ENTRY(f) .f = f,
	SSL_FUNCTIONS(SSL_ENTRY)
#undef SSL_ENTRY
};

int blk_ssl_need(struct blk_err *err)
{
	(void)err;
	return 0;
}
