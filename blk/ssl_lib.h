/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/ssl_lib.h - OpenSSL's libssl as a table of its functions, with those of libcrypto
 * that go with it. Loaded with the first credentials (ssl_load.c) where
 * CONFIG_CZ_CRYPTO_DLOPEN says so for libcrypto, else linked with (ssl_link.c). Private.
 */
#ifndef BLK_SSL_LIB_H
#define BLK_SSL_LIB_H

#include <openssl/err.h>
#include <openssl/ssl.h>

struct blk_err;

/* clang-format off */
#define SSL_FUNCTIONS(F) \
	F(ERR_clear_error) \
	F(ERR_get_error) \
	F(ERR_reason_error_string) \
	F(SSL_CTX_check_private_key) \
	F(SSL_CTX_ctrl) \
	F(SSL_CTX_free) \
	F(SSL_CTX_get_ex_data) \
	F(SSL_CTX_load_verify_locations) \
	F(SSL_CTX_new) \
	F(SSL_CTX_set_ex_data) \
	F(SSL_CTX_set_num_tickets) \
	F(SSL_CTX_set_options) \
	F(SSL_CTX_set_psk_server_callback) \
	F(SSL_CTX_set_verify) \
	F(SSL_CTX_use_PrivateKey_file) \
	F(SSL_CTX_use_certificate_chain_file) \
	F(SSL_accept) \
	F(SSL_free) \
	F(SSL_get_SSL_CTX) \
	F(SSL_get_error) \
	F(SSL_new) \
	F(SSL_read) \
	F(SSL_set_fd) \
	F(SSL_shutdown) \
	F(SSL_write) \
	F(TLS_server_method)
/* clang-format on */

struct ssl_lib {
#define SSL_POINTER(f) __typeof__(f) *f;
	SSL_FUNCTIONS(SSL_POINTER)
#undef SSL_POINTER
};

/* Complete once blk_ssl_need() has succeeded. */
extern struct ssl_lib blk_ssl_lib;
#define libssl blk_ssl_lib

/* To be called before all else. May wait. */
int blk_ssl_need(struct blk_err *err);

#endif
