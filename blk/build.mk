# SPDX-License-Identifier: BSD-2-Clause
# blk-y: the objects of this room; blk-lib-SYMBOL: a library (scripts/libs) that CONFIG_SYMBOL needs.

blk-$(CONFIG_BLK_FILE) += file.o file_open.o file_rw.o file_flush.o file_space.o file_status.o
blk-$(CONFIG_BLK_FILE) += lock.o engine_auto.o engine_sync.o
blk-$(CONFIG_BLK_FILE_THREADS) += engine_threads.o
blk-$(CONFIG_BLK_FILE_AIO) += engine_aio.o
blk-$(CONFIG_BLK_FILE_URING) += engine_uring.o
blk-lib-BLK_FILE_AIO := aio
blk-lib-BLK_FILE_URING := uring

blk-$(CONFIG_BLK_NBD) += nbd.o nbd_name.o nbd_dial.o nbd_source.o nbd_revive.o
blk-$(CONFIG_BLK_NBD_DLOPEN) += nbd_load.o
blk-$(CONFIG_BLK_NBD_LINK) += nbd_link.o
blk-lib-BLK_NBD_DLOPEN := nbd-loaded
blk-lib-BLK_NBD_LINK := nbd

blk-$(CONFIG_BLK_NBD_SERVER) += serve.o serve_listen.o serve_sock.o serve_buf.o
blk-$(CONFIG_BLK_NBD_SERVER) += serve_hello.o serve_meta.o serve_talk.o serve_read.o serve_status.o serve_part.o
blk-$(CONFIG_BLK_NBD_SERVER) += $(if $(CONFIG_BLK_NBD_SERVER_TLS),serve_tls.o,serve_tls_none.o)
blk-$(CONFIG_BLK_NBD_SERVER) += $(if $(CONFIG_BLK_FILE),serve_file.o,serve_file_none.o)
blk-$(CONFIG_BLK_NBD_SERVER_TLS) += $(if $(CONFIG_CZ_CRYPTO_DLOPEN),ssl_load.o,ssl_link.o)
blk-lib-BLK_NBD_TLS_LOAD := ssl-loaded
blk-lib-BLK_NBD_TLS_LINK := ssl crypto

blk-$(CONFIG_HOSTED) += prefetch.o
blk-y += gate.o read.o widen.o iov.o range.o turn.o opt.o drivers.o
blk-$(CONFIG_BLK_WRITE) += write.o widen_write.o
blk-y += $(if $(CONFIG_BLK_ERR_TEXT),err.o,err_bare.o)

blk-$(CONFIG_BLK_MEM) += mem.o
blk-$(CONFIG_BLK_MEM_SPARSE) += sparse.o
blk-$(CONFIG_BLK_NULL) += null.o
blk-$(CONFIG_BLK_LOG) += log.o log_replay.o
blk-$(CONFIG_BLK_FAULT) += fault.o
blk-y += $(if $(CONFIG_BLK_LOG)$(CONFIG_BLK_FAULT),filter.o)
blk-y += $(if $(CONFIG_BLK_NULL)$(CONFIG_BLK_FAULT),$(if $(CONFIG_THR_FIBERS),pause.o,pause_none.o))
