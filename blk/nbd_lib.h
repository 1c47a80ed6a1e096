/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/nbd_lib.h - libnbd as a table of its functions, without the prefix nbd_. With
 * CONFIG_BLK_NBD_DLOPEN it is loaded when an NBD device is first opened (nbd_load.c):
 * the TLS library that it brings would triple the time in which a program starts.
 * Without, it is linked with (nbd_link.c). Private.
 */
#ifndef BLK_NBD_LIB_H
#define BLK_NBD_LIB_H

#include <libnbd.h>

struct blk_err;

/* clang-format off */
#define NBD_FUNCTIONS(F) \
	F(add_meta_context) \
	F(aio_block_status) \
	F(aio_cache) \
	F(aio_connect_tcp) \
	F(aio_connect_unix) \
	F(aio_connect_uri) \
	F(aio_connect_vsock) \
	F(aio_disconnect) \
	F(aio_flush) \
	F(aio_get_direction) \
	F(aio_get_fd) \
	F(aio_is_closed) \
	F(aio_is_dead) \
	F(aio_is_negotiating) \
	F(aio_is_ready) \
	F(aio_opt_list) \
	F(aio_pread) \
	F(aio_pwrite) \
	F(aio_trim) \
	F(aio_zero) \
	F(can_cache) \
	F(can_fast_zero) \
	F(can_flush) \
	F(can_fua) \
	F(can_meta_context) \
	F(can_multi_conn) \
	F(can_trim) \
	F(can_zero) \
	F(close) \
	F(create) \
	F(get_block_size) \
	F(get_errno) \
	F(get_error) \
	F(get_size) \
	F(get_tls_negotiated) \
	F(is_read_only) \
	F(poll) \
	F(set_export_name) \
	F(set_opt_mode) \
	F(set_pread_initialize) \
	F(set_strict_mode) \
	F(set_tls) \
	F(set_tls_certificates) \
	F(set_tls_psk_file) \
	F(set_tls_username) \
	F(set_tls_verify_peer) \
	F(set_uri_allow_local_file)
/* clang-format on */

struct nbd_lib {
#define NBD_POINTER(f) __typeof__(nbd_##f) *f;
	NBD_FUNCTIONS(NBD_POINTER)
#undef NBD_POINTER
};

/* Complete once blk_nbd_need() has succeeded. */
extern struct nbd_lib blk_nbd_lib;
#define libnbd blk_nbd_lib

/* To be called before all else. May wait. */
int blk_nbd_need(struct blk_err *err);

#endif
