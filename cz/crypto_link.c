/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cz/crypto_link.c - libcrypto, linked with.
 */
#include "cz/crypto_lib.h"
#include "cz/private.h"

struct cz_crypto_lib cz_crypto_lib = {
#define CRYPTO_ENTRY(f) .f = f,
	CRYPTO_FUNCTIONS(CRYPTO_ENTRY)
#undef CRYPTO_ENTRY
};

int cz_crypto_need(void)
{
	return 0;
}
