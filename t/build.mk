# SPDX-License-Identifier: BSD-2-Clause
#
# The tests of a configuration; t/README says how to add one.
#   unit-y    t/unit/NAME.c      conf-y    t/conf/NAME.c
#   interop-y t/interop/NAME.sh  perf-y    t/perf/NAME.c   perf-sh-y  t/perf/NAME.sh
#   t-y       objects in t/ that every C test is linked with
#   tool-y    programs t/NAME.c that scripts use, built as $B/t/NAME; linked with t-y too
#   TIME_NAME seconds that NAME may take (default 60)
#   vg-y      tests that make check runs under valgrind too
#   tsan-y    tests that make check runs under TSan too
#   asan-y    scripts that make check runs under ASan and UBSan, beside all C tests

# the build system (make t T=@tree; not in a plain make t)
tree-y := runner kconfig buildable layers install
TIME_install := 300
TIME_buildable := 120

# thr
unit-y += thr_base thr_none
thr-tests := thr_fiber thr_exec thr_lock thr_seq thr_group thr_offload
unit-$(CONFIG_THR_FIBERS) += $(thr-tests)
perf-$(CONFIG_THR_FIBERS) += thr
vg-y += thr_base thr_none $(if $(CONFIG_THR_FIBERS),$(thr-tests))
tsan-$(CONFIG_THR_FIBERS) += $(thr-tests)

# cz
unit-y += cz_codec cz_zero
perf-y += cz_zero
vg-y += cz_codec cz_zero

# blk
blk-tests := blk_err blk_opt blk_req
blk-tests += $(if $(CONFIG_BLK_MEM_SPARSE),blk_mem) $(if $(CONFIG_BLK_NULL),blk_null)
blk-tests += $(if $(CONFIG_BLK_LOG),blk_log) $(if $(CONFIG_BLK_FAULT),blk_fault)
blk-par := $(if $(CONFIG_THR_FIBERS),blk_range blk_gate blk_par)
unit-$(CONFIG_BLK_WRITE) += $(blk-tests) $(blk-par)
vg-$(CONFIG_BLK_WRITE) += $(blk-tests) $(blk-par)
tsan-$(CONFIG_BLK_WRITE) += $(blk-par)
tsan-$(CONFIG_THR_FIBERS) += $(if $(CONFIG_BLK_MEM_SPARSE),blk_mem)
perf-$(if $(CONFIG_THR_FIBERS),$(CONFIG_BLK_NULL)) += blk_null

file-tests := blk_file blk_file_lock $(if $(CONFIG_THR_FIBERS),blk_engine)
unit-$(if $(CONFIG_BLK_WRITE),$(CONFIG_BLK_FILE)) += $(file-tests)
vg-$(if $(CONFIG_BLK_WRITE),$(CONFIG_BLK_FILE)) += $(file-tests)
tsan-$(if $(CONFIG_BLK_WRITE),$(CONFIG_BLK_FILE)) += $(if $(CONFIG_THR_FIBERS),blk_engine)
TIME_blk_engine := 120
tool-$(CONFIG_BLK_FILE) += fixtures/hold
file-cli := $(if $(CONFIG_CLI_INFO),$(if $(CONFIG_CLI_CHECK),$(CONFIG_CLI_RESIZE)))
file-cli := $(if $(CONFIG_FMT_QCOW2_WRITE),$(if $(CONFIG_CLI_CONVERT),$(file-cli)))
interop-$(if $(CONFIG_BLK_FILE),$(file-cli)) += lock
perf-$(if $(CONFIG_THR_FIBERS),$(CONFIG_BLK_FILE)) += file_bench

# fmt
tool-$(CONFIG_HOSTED) += fixtures/assemble
t-$(CONFIG_HOSTED) += fixtures/expr.o
unit-$(CONFIG_BLK_WRITE) += fmt_cache
conf-$(CONFIG_FMT_OP_CREATE) += conform
t-$(CONFIG_FMT_OP_CREATE) += conf/rig.o conf/rows.o
TIME_conform := 240

# qcow2, written
qcow2-rig := $(if $(CONFIG_FMT_QCOW2_CREATE),$(if $(CONFIG_BLK_LOG),$(CONFIG_BLK_MEM_SPARSE)))
qcow2-tests := qcow2_write qcow2_order
t-$(qcow2-rig) += fixtures/qcow2_rig.o fixtures/qcow2_verify.o
unit-$(if $(CONFIG_THR_FIBERS),$(qcow2-rig)) += $(qcow2-tests)

# bad images (t/fixtures/README)
hostile-needs := FMT_QCOW2 CZ_DEFLATE CLI_INFO CLI_CHECK CLI_MAP CLI_CONVERT
ifeq ($(foreach s,$(hostile-needs),$(CONFIG_$(s))),$(foreach s,$(hostile-needs),y))
interop-y += hostile
asan-y += hostile
TIME_hostile := 120
endif

# cli

