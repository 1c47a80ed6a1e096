# SPDX-License-Identifier: BSD-2-Clause
cz-y += codec.o secret.o zero.o
cz-$(CONFIG_HOSTED) += estimate.o random.o
cz-$(CONFIG_CZ_DEFLATE) += deflate_zlib.o lent.o
cz-$(CONFIG_CZ_LIBDEFLATE) += deflate_libdeflate.o
cz-$(CONFIG_CZ_ZSTD) += zstd.o zstd_encode.o
ifeq ($(CONFIG_CZ_DEFLATE),)
cz-$(CONFIG_CZ_ZSTD) += lent.o
endif
cz-$(CONFIG_CZ_CRYPTO) += block.o cipher.o cipher_spec.o digest.o hmac.o openssl.o pbkdf2.o rng.o
cz-$(CONFIG_CZ_CRYPTO_DLOPEN) += crypto_load.o
cz-$(CONFIG_CZ_CRYPTO_LINK) += crypto_link.o
cz-$(CONFIG_CZ_SERPENT) += serpent.o
cz-$(CONFIG_CZ_TWOFISH) += twofish.o
cz-$(CONFIG_CZ_CAST6) += cast6.o

cz-lib-CZ_DEFLATE := zlib
cz-lib-CZ_LIBDEFLATE := libdeflate
cz-lib-CZ_ZSTD := zstd
cz-lib-CZ_CRYPTO_DLOPEN := crypto-loaded
cz-lib-CZ_CRYPTO_LINK := crypto
