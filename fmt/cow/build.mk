# SPDX-License-Identifier: BSD-2-Clause
fmt-$(CONFIG_FMT_COW) += $(addprefix cow/,header.o bitmap.o open.o check.o)
fmt-$(CONFIG_FMT_COW) += $(addprefix cow/,$(if $(CONFIG_FMT_COW_WRITE),write.o resize.o create.o,nowrite.o))
