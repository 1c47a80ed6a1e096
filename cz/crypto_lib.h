/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cz/crypto_lib.h - OpenSSL's libcrypto as a table of its functions. With
 * CONFIG_CZ_CRYPTO_DLOPEN it is loaded when an algorithm is first looked for
 * (crypto_load.c): linked with, it takes half the time in which the program starts.
 * Without, it is linked with (crypto_link.c). Private.
 */
#ifndef CZ_CRYPTO_LIB_H
#define CZ_CRYPTO_LIB_H

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/provider.h>

/* clang-format off */
#define CRYPTO_FUNCTIONS(F) \
	F(ERR_pop_to_mark) \
	F(ERR_set_mark) \
	F(EVP_CIPHER_CTX_free) \
	F(EVP_CIPHER_CTX_new) \
	F(EVP_CIPHER_CTX_set_padding) \
	F(EVP_CIPHER_fetch) \
	F(EVP_CIPHER_free) \
	F(EVP_CipherInit_ex2) \
	F(EVP_CipherUpdate) \
	F(EVP_DigestFinal_ex) \
	F(EVP_DigestInit_ex2) \
	F(EVP_DigestUpdate) \
	F(EVP_MD_CTX_copy_ex) \
	F(EVP_MD_CTX_free) \
	F(EVP_MD_CTX_get0_md) \
	F(EVP_MD_CTX_new) \
	F(EVP_MD_fetch) \
	F(EVP_MD_free) \
	F(EVP_MD_get_block_size) \
	F(EVP_MD_get_size) \
	F(OSSL_LIB_CTX_free) \
	F(OSSL_LIB_CTX_new) \
	F(OSSL_PROVIDER_load) \
	F(OSSL_PROVIDER_unload)
/* clang-format on */

struct cz_crypto_lib {
#define CRYPTO_POINTER(f) __typeof__(f) *f;
	CRYPTO_FUNCTIONS(CRYPTO_POINTER)
#undef CRYPTO_POINTER
};

/* Complete once cz_crypto_need() has succeeded; nothing that came from it is freed
 * where that has not. */
extern struct cz_crypto_lib cz_crypto_lib;
#define libcrypto cz_crypto_lib

/* To be called before all else. -ELIBACC. */
int cz_crypto_need(void);

#endif
