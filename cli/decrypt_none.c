/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/decrypt_none.c - builds without ciphers take secrets as they are only.
 */
#include "cli/cli.h"

int cli_decrypt(const char *id, const struct fmt_secret *key, const uint8_t *iv, uint8_t *data,
	size_t *len)
{
	(void)id;
	(void)key;
	(void)iv;
	(void)data;
	(void)len;
	return cli_error(
		"An encrypted secret needs CONFIG_CZ_CRYPTO, which this build is without");
}
