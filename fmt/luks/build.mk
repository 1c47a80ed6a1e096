# SPDX-License-Identifier: BSD-2-Clause
# LUKS: rows of fmt-y, included by fmt/build.mk.
fmt-$(CONFIG_FMT_LUKS) += luks/luks.o luks/header.o luks/af.o luks/keyslot.o luks/setup.o \
	luks/amend.o luks/props.o luks/crypt.o
