# SPDX-License-Identifier: BSD-2-Clause
# qcow2: rows of fmt-y, included by fmt/build.mk.
fmt-$(CONFIG_FMT_QCOW2) += qcow2/header.o qcow2/open.o qcow2/map.o qcow2/read.o \
	qcow2/data.o
fmt-$(CONFIG_FMT_QCOW2) += $(if $(CONFIG_FMT_QCOW2_COMPRESSED),qcow2/compressed.o,qcow2/nocompressed.o)
ifeq ($(CONFIG_FMT_QCOW2),y)
fmt-y += $(if $(CONFIG_FMT_LUKS),qcow2/crypt.o,qcow2/nocrypt.o)
fmt-$(CONFIG_BLK_ERR_TEXT) += qcow2/features.o
fmt-$(CONFIG_HOSTED) += qcow2/info.o qcow2/open_opts.o qcow2/data_open.o
fmt-$(CONFIG_FMT_QCOW2_TABLES) += qcow2/snapshot.o qcow2/bitmap.o qcow2/refcount.o
fmt-$(call on,FMT_OP_SERVE FMT_QCOW2_TABLES) += qcow2/bitmap_load.o
fmt-$(CONFIG_FMT_QCOW2_CREATE) += qcow2/measure.o
fmt-$(CONFIG_FMT_QCOW2_CREATE) += qcow2/create.o qcow2/create_opts.o qcow2/create_head.o \
	$(if $(CONFIG_FMT_LUKS),qcow2/create_crypt.o,qcow2/create_nocrypt.o)
ifeq ($(CONFIG_FMT_QCOW2_WRITE),y)
fmt-y += qcow2/write_open.o qcow2/header_write.o qcow2/alloc.o qcow2/alloc_grow.o \
	qcow2/pending.o qcow2/l2.o qcow2/data_write.o qcow2/write.o qcow2/zero.o qcow2/resize.o \
	$(if $(CONFIG_HOSTED),qcow2/amend.o) qcow2/exists.o \
	$(if $(CONFIG_FMT_QCOW2_PREALLOCATE),qcow2/preallocate.o,qcow2/nopreallocate.o) \
	$(if $(CONFIG_FMT_QCOW2_OVERLAP),qcow2/overlap.o,qcow2/nooverlap.o)
fmt-y += $(if $(CONFIG_FMT_QCOW2_COMPRESS),qcow2/pack.o qcow2/pack_alloc.o \
	qcow2/pack_write.o,qcow2/nopack.o)
fmt-y += $(if $(CONFIG_FMT_QCOW2_CHECK),qcow2/repair.o,qcow2/norepair.o)
else
fmt-y += qcow2/nowrite.o
fmt-$(CONFIG_FMT_QCOW2_CHECK) += qcow2/check_only.o
endif
fmt-$(CONFIG_FMT_QCOW2_CHECK) += qcow2/check.o qcow2/check_walk.o qcow2/check_count.o \
	$(if $(CONFIG_BLK_ERR_TEXT),qcow2/check_text.o)
endif
