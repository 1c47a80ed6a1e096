/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cz/openssl.c - algorithms by name from OpenSSL's libcrypto (version 3). The first
 * fetch starts OpenSSL up, nothing before; cz_crypto_need() has loaded it.
 *
 * What is not in the default provider is looked for in the legacy one. That is
 * loaded into a library context of our own: in the default one it would change
 * which algorithms the program around us offers.
 */
#include "cz/crypto_lib.h"
#include "cz/private.h"

/* Failures leave nothing in the caller's error queue. */
static EVP_CIPHER *fetch_cipher(OSSL_LIB_CTX *lib, const char *name)
{
	EVP_CIPHER *c;

	libcrypto.ERR_set_mark();
	c = libcrypto.EVP_CIPHER_fetch(lib, name, NULL);
	libcrypto.ERR_pop_to_mark();
	return c;
}

static EVP_MD *fetch_md(OSSL_LIB_CTX *lib, const char *name)
{
	EVP_MD *m;

	libcrypto.ERR_set_mark();
	m = libcrypto.EVP_MD_fetch(lib, name, NULL);
	libcrypto.ERR_pop_to_mark();
	return m;
}

static bool load_legacy(struct cz_ossl *o)
{
	if (!o->lib)
		o->lib = libcrypto.OSSL_LIB_CTX_new();
	if (o->lib && !o->legacy) {
		libcrypto.ERR_set_mark();
		o->legacy = libcrypto.OSSL_PROVIDER_load(o->lib, "legacy");
		libcrypto.ERR_pop_to_mark();
	}
	return o->legacy;
}

EVP_CIPHER *cz_ossl_cipher(struct cz_ossl *o, const char *name)
{
	EVP_CIPHER *c = fetch_cipher(NULL, name);

	if (!c && load_legacy(o))
		c = fetch_cipher(o->lib, name);
	return c;
}

EVP_MD *cz_ossl_md(struct cz_ossl *o, const char *name)
{
	EVP_MD *m = fetch_md(NULL, name);

	if (!m && load_legacy(o))
		m = fetch_md(o->lib, name);
	return m;
}

void cz_ossl_fini(struct cz_ossl *o)
{
	if (o->legacy)
		libcrypto.OSSL_PROVIDER_unload(o->legacy);
	if (o->lib)
		libcrypto.OSSL_LIB_CTX_free(o->lib);
}
