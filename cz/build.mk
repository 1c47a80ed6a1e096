# SPDX-License-Identifier: BSD-2-Clause
cz-y += codec.o zero.o
cz-$(CONFIG_CZ_DEFLATE) += deflate_zlib.o
cz-$(CONFIG_CZ_ZSTD) += zstd.o
ifneq ($(CONFIG_CZ_DEFLATE)$(CONFIG_CZ_ZSTD),)
cz-y += lent.o
endif

cz-lib-CZ_DEFLATE := zlib
cz-lib-CZ_ZSTD := zstd
