# SPDX-License-Identifier: BSD-2-Clause
# fmt-y: the objects of this room; fmt-lib-SYMBOL: a library (scripts/libs) that CONFIG_SYMBOL needs.
fmt-y += drivers.o probe.o image.o chain.o cache.o
ifeq ($(CONFIG_HOSTED),y)
fmt-y += cache_clean.o open.o names.o opts.o $(if $(CONFIG_FMT_JSON),json.o,json_none.o)
endif
fmt-lib-FMT_JSON := jansson
fmt-$(CONFIG_FMT_RAW) += raw.o
ifeq ($(CONFIG_BLK_WRITE),y)
fmt-y += write.o order.o
fmt-$(CONFIG_FMT_RAW) += raw_rw.o $(if $(CONFIG_HOSTED),raw_create.o)
else
fmt-y += nowrite.o
fmt-$(CONFIG_FMT_RAW) += raw_ro.o
endif

fmt-$(CONFIG_FMT_OP_AMEND) += op/amend.o
fmt-$(CONFIG_FMT_OP_CREATE) += op/create.o
fmt-$(CONFIG_HOSTED) += op/snapshot.o
fmt-$(CONFIG_FMT_OP_INFO) += op/info.o
fmt-$(CONFIG_FMT_OP_CONVERT) += op/convert.o op/convert_plan.o
fmt-$(CONFIG_FMT_OP_COMMIT) += op/commit.o
fmt-$(CONFIG_FMT_OP_CHECK) += op/check.o
fmt-$(CONFIG_FMT_OP_COMPARE) += op/compare.o
fmt-$(CONFIG_FMT_OP_CHECKSUM) += op/checksum.o op/checksum_plan.o op/checksum_sum.o
fmt-y += $(if $(CONFIG_FMT_OP_CONVERT)$(CONFIG_FMT_OP_COMPARE)$(CONFIG_FMT_OP_CHECKSUM),op/bufs.o)
fmt-$(CONFIG_FMT_OP_MAP) += op/map.o
fmt-$(CONFIG_FMT_OP_RESIZE) += op/resize.o
fmt-$(CONFIG_FMT_OP_MEASURE) += op/measure.o
fmt-$(CONFIG_FMT_OP_BENCH) += op/bench.o
fmt-$(CONFIG_FMT_OP_SERVE) += op/serve.o

include $(srctree)/fmt/cow/build.mk
include $(srctree)/fmt/luks/build.mk
include $(srctree)/fmt/qcow2/build.mk
