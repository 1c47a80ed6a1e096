# SPDX-License-Identifier: BSD-2-Clause
#
# The tests of a configuration; t/README says how to add one.
#   unit-y    t/unit/NAME.c      conf-y    t/conf/NAME.c
#   interop-y t/interop/NAME.sh  perf-y    t/perf/NAME.c   perf-sh-y  t/perf/NAME.sh
#   t-y       objects in t/ that every C test is linked with
#   crash-y   t/crash/NAME.c: power cuts, whose rows are in t/crash/rows.c; make crash
#   tool-y    programs t/NAME.c that scripts use, built as $B/t/NAME; linked with t-y too
#   $(call on,A B) is y where CONFIG_A and CONFIG_B are on
#   TIME_NAME seconds that NAME may take (default 60)
#   vg-y      tests that make check runs under valgrind too
#   tsan-y    tests that make check runs under TSan too
#   fuzz-y    t/fuzz/NAME.c, programs of libFuzzer: make fuzz
#   slim-y    scripts that make check runs with core_defconfig
#   brief-y   tests that make check runs in configurations that are thrown for
#   asan-y    scripts that make check runs under ASan and UBSan, beside all C tests

# the build system (make t T=@tree; not in a plain make t)
tree-y := runner kconfig buildable barriers layers install firmware man menuconfig musl dist symbols \
	$(if $(CONFIG_HOSTED),appliance lto)
TIME_appliance := 300
TIME_barriers := 600
TIME_install := 300
TIME_musl := 120
TIME_dist := 240
TIME_lto := 240
TIME_buildable := 120
TIME_firmware := 300

# thr
unit-y += thr_base thr_none
thr-tests := thr_fiber thr_exec thr_lock thr_seq thr_group thr_offload thr_fd
unit-$(CONFIG_THR_FIBERS) += $(thr-tests)
perf-$(CONFIG_THR_FIBERS) += thr
vg-y += thr_base thr_none $(if $(CONFIG_THR_FIBERS),$(thr-tests))
tsan-$(CONFIG_THR_FIBERS) += $(thr-tests)

# cz
cz-tests := cz_codec cz_encode cz_estimate cz_secret cz_zero
cz-tests += $(if $(CONFIG_CZ_CRYPTO),cz_cipher cz_digest)
unit-y += $(cz-tests)
perf-y += cz_codec cz_zero
perf-$(CONFIG_CZ_CRYPTO) += cz_cipher cz_digest
$(B)/t/perf/cz_cipher $(B)/t/perf/cz_digest: third += -lcrypto
vg-y += $(filter-out cz_encode,$(cz-tests))

# blk
blk-tests := blk_err blk_opt blk_req
blk-tests += $(if $(CONFIG_BLK_MEM_SPARSE),blk_mem) $(if $(CONFIG_BLK_NULL),blk_null)
blk-tests += $(if $(CONFIG_BLK_LOG),blk_log) $(if $(CONFIG_BLK_FAULT),blk_fault)
blk-par := $(if $(CONFIG_THR_FIBERS),blk_range blk_gate blk_par)
unit-$(call on,BLK_WRITE BLK_MEM) += $(blk-tests) $(blk-par)
vg-$(call on,BLK_WRITE BLK_MEM) += $(blk-tests) $(blk-par)
tsan-$(call on,BLK_WRITE BLK_MEM) += $(blk-par)
tsan-$(CONFIG_THR_FIBERS) += $(if $(CONFIG_BLK_MEM_SPARSE),blk_mem)
perf-$(if $(CONFIG_THR_FIBERS),$(CONFIG_BLK_NULL)) += blk_null

file-tests := blk_file blk_file_lock $(if $(CONFIG_THR_FIBERS),blk_engine)
unit-$(call on,BLK_WRITE BLK_FILE BLK_ERR_TEXT) += $(file-tests)
vg-$(call on,BLK_WRITE BLK_FILE BLK_ERR_TEXT) += $(file-tests)
tsan-$(call on,BLK_WRITE BLK_FILE BLK_ERR_TEXT) += $(if $(CONFIG_THR_FIBERS),blk_engine)
TIME_blk_engine := 120
tool-$(call on,BLK_FILE BLK_ERR_TEXT) += fixtures/hold
file-cli := $(if $(CONFIG_CLI_INFO),$(if $(CONFIG_CLI_CHECK),$(CONFIG_CLI_RESIZE)))
file-cli := $(if $(CONFIG_FMT_QCOW2_WRITE),$(if $(CONFIG_CLI_CONVERT),$(file-cli)))
interop-$(if $(CONFIG_BLK_FILE),$(file-cli)) += lock
perf-$(if $(CONFIG_THR_FIBERS),$(CONFIG_BLK_FILE)) += file_bench
perf-sh-$(if $(CONFIG_THR_FIBERS),$(CONFIG_BLK_FILE)) += file_peer

unit-$(CONFIG_BLK_NBD) += blk_nbd $(if $(CONFIG_BLK_WRITE),blk_nbd_io)
tsan-$(call on,BLK_NBD BLK_WRITE) += blk_nbd_io
TIME_blk_nbd_io := 120
interop-$(call on,BLK_NBD FMT_RAW FMT_QCOW2_CREATE CLI_INFO CLI_MAP CLI_CONVERT CLI_COMPARE CLI_CHECK) += nbd
interop-$(call on,BLK_NBD FMT_RAW FMT_QCOW2_CREATE CLI_INFO CLI_MAP CLI_CONVERT CLI_COMPARE CLI_CHECKSUM CLI_BENCH CLI_IO CLI_CREATE CLI_RESIZE) += nbd_ends
TIME_nbd := 120
TIME_nbd_ends := 120
perf-sh-$(call on,BLK_NBD FMT_RAW CLI_CONVERT) += nbd
vg-$(CONFIG_BLK_NBD) += blk_nbd
unit-$(call on,BLK_NBD_SERVER BLK_MEM) += blk_serve blk_serve_many
tsan-$(call on,BLK_NBD_SERVER BLK_MEM) += blk_serve blk_serve_many
unit-$(call on,BLK_NBD_SERVER BLK_MEM BLK_FILE) += blk_serve_file
perf-sh-$(call on,CLI_SERVE FMT_RAW) += serve
tool-$(CONFIG_BLK_NBD_SERVER) += fixtures/crowd
interop-$(call on,CLI_SERVE FMT_RAW FMT_QCOW2_CREATE CZ_DEFLATE CLI_INFO) += serve
TIME_serve := 240
interop-$(call on,CLI_SERVE FMT_RAW FMT_COW_WRITE FMT_QCOW2_CREATE FMT_QCOW2_CHECK CLI_CREATE CLI_COMPARE CLI_CHECK) += serve_io

# fmt
tool-$(CONFIG_HOSTED) += fixtures/assemble
t-$(CONFIG_HOSTED) += fixtures/expr.o
unit-$(CONFIG_BLK_WRITE) += fmt_cache fmt_cache_clean
tsan-$(call on,BLK_WRITE THR_FIBERS) += fmt_cache_clean
conform-needs := FMT_RAW FMT_QCOW2_CREATE FMT_QCOW2_CHECK FMT_OP_CREATE FMT_OP_INFO \
	FMT_OP_CONVERT FMT_OP_CHECK FMT_OP_COMPARE FMT_OP_MAP FMT_OP_RESIZE BLK_FILE BLK_MEM
conf-$(call on,$(conform-needs)) += conform
t-$(call on,$(conform-needs)) += conf/rig.o conf/rows.o conf/cases.o
nbd-conf := $(call on,$(conform-needs) BLK_NBD FMT_OP_SERVE THR_FIBERS)
t-$(nbd-conf) += conf/place_nbd.o
conf-$(nbd-conf) += conform_nbd
TIME_conform_nbd := 120
TIME_conform := 240

# the core of fmt, and what is done with images
fmt-disk := FMT_RAW BLK_WRITE BLK_MEM_SPARSE BLK_FAULT THR_FIBERS BLK_ERR_TEXT
fmt-tests := $(if $(call on,$(fmt-disk)),fmt_probe) \
	$(if $(call on,$(fmt-disk) FMT_OP_INFO FMT_OP_CHECK FMT_OP_RESIZE),fmt_raw) \
	$(if $(call on,$(fmt-disk) FMT_OP_MAP FMT_OP_CONVERT),fmt_map)
fmt-par := $(if $(call on,$(fmt-disk) FMT_OP_CONVERT),fmt_convert) \
	$(if $(call on,$(fmt-disk) FMT_OP_CHECKSUM),fmt_checksum) \
	$(if $(call on,$(fmt-disk) FMT_OP_COMPARE),fmt_compare) \
	$(if $(call on,FMT_RAW BLK_FILE THR_FIBERS FMT_QCOW2_CREATE FMT_OP_CREATE),fmt_chain)
unit-y += $(fmt-tests) $(fmt-par)
vg-y += $(fmt-tests) $(filter-out fmt_checksum,$(fmt-par))
tsan-y += $(fmt-par)
TIME_fmt_convert := 120
TIME_fmt_checksum := 240

# qcow2, read, created and checked
qcow2-mem := FMT_QCOW2 BLK_MEM HOSTED BLK_ERR_TEXT
qcow2-all := $(qcow2-mem) FMT_QCOW2_CHECK FMT_OP_CHECK FMT_OP_INFO
qcow2-reads := $(if $(call on,$(qcow2-mem) FMT_OP_INFO),qcow2_header) \
	$(if $(call on,$(qcow2-mem)),qcow2_map qcow2_refcount) \
	$(if $(call on,$(qcow2-mem) FMT_QCOW2_COMPRESSED),qcow2_read)
qcow2-makes := \
	$(if $(call on,$(qcow2-all) FMT_QCOW2_CREATE BLK_MEM_SPARSE),qcow2_create qcow2_check)
unit-y += $(qcow2-reads) $(qcow2-makes) $(if $(call on,$(qcow2-all)),qcow2_traps_read)
vg-y += $(qcow2-reads) $(filter-out qcow2_create,$(qcow2-makes))
unit-$(call on,$(qcow2-all) FMT_QCOW2_CREATE BLK_MEM_SPARSE BLK_LOG) += qcow2_snapshot qcow2_data
tsan-$(call on,$(qcow2-mem) FMT_QCOW2_COMPRESSED THR_FIBERS) += qcow2_read
TIME_qcow2_create := 120
TIME_qcow2_check := 240
TIME_qcow2_traps_read := 120
qcow2-cli := FMT_QCOW2_WRITE FMT_QCOW2_CHECK FMT_RAW BLK_FILE CZ_DEFLATE CLI_CONVERT CLI_CHECK
interop-$(call on,$(qcow2-cli) CLI_MAP CLI_INFO) += qcow2_read qcow2_check
interop-$(call on,$(qcow2-cli) CLI_MAP CLI_INFO CLI_CREATE CLI_COMPARE) += extl2
TIME_extl2 := 180
TIME_qcow2_read := 180
interop-$(call on,$(qcow2-cli) CZ_ZSTD CLI_COMPARE CLI_IO CLI_CREATE CLI_COMMIT CLI_MAP) += matrix
TIME_matrix := 120

# qcow2, written
qcow2-rig := $(if $(CONFIG_FMT_QCOW2_CREATE),$(if $(CONFIG_BLK_LOG),$(CONFIG_BLK_MEM_SPARSE)))
qcow2-tests := qcow2_alloc qcow2_write qcow2_order qcow2_cut qcow2_resize qcow2_traps_write \
	$(if $(call on,FMT_OP_INFO FMT_OP_CHECK),qcow2_overlap) \
	$(if $(CONFIG_BLK_FAULT),qcow2_fault)
t-$(qcow2-rig) += fixtures/cut.o fixtures/qcow2_rig.o fixtures/qcow2_verify.o
unit-$(if $(CONFIG_THR_FIBERS),$(qcow2-rig)) += $(qcow2-tests)
vg-$(if $(CONFIG_THR_FIBERS),$(qcow2-rig)) += $(filter-out qcow2_write,$(qcow2-tests))
tsan-$(if $(CONFIG_THR_FIBERS),$(qcow2-rig)) += qcow2_alloc qcow2_write
unit-$(if $(call on,THR_FIBERS CZ_DEFLATE FMT_QCOW2_COMPRESS),$(qcow2-rig)) += qcow2_pack
vg-$(if $(call on,THR_FIBERS CZ_DEFLATE FMT_QCOW2_COMPRESS),$(qcow2-rig)) += qcow2_pack
tsan-$(if $(call on,THR_FIBERS CZ_DEFLATE FMT_QCOW2_COMPRESS),$(qcow2-rig)) += qcow2_pack
TIME_qcow2_pack := 120

# commit, onto raw
commit-needs := FMT_OP_COMMIT FMT_RAW BLK_FAULT THR_FIBERS
unit-$(if $(call on,$(commit-needs)),$(qcow2-rig)) += fmt_commit
vg-$(if $(call on,$(commit-needs)),$(qcow2-rig)) += fmt_commit

# cow
cow-rig := $(call on,FMT_COW_WRITE FMT_RAW FMT_OP_CHECK BLK_FAULT BLK_ERR_TEXT THR_FIBERS)
unit-$(if $(cow-rig),$(qcow2-rig)) += cow_order
vg-$(if $(cow-rig),$(qcow2-rig)) += cow_order
TIME_cow_order := 120
perf-sh-$(call on,FMT_COW_WRITE CLI_CREATE CLI_IO) += cow
cow-cli := FMT_COW_WRITE FMT_RAW FMT_QCOW2_CREATE BLK_FILE BLK_ERR_TEXT CLI_CREATE CLI_INFO \
	CLI_CONVERT CLI_CHECK CLI_COMMIT CLI_COMPARE CLI_MAP CLI_RESIZE CLI_IO
interop-$(call on,$(cow-cli)) += cow
asan-$(call on,$(cow-cli)) += cow

# LUKS
unit-$(call on,FMT_LUKS BLK_MEM BLK_LOG BLK_ERR_TEXT) += luks_header
vg-$(call on,FMT_LUKS BLK_MEM BLK_LOG BLK_ERR_TEXT) += luks_header
interop-$(call on,FMT_LUKS FMT_RAW FMT_QCOW2_CREATE CLI_CREATE CLI_INFO CLI_CONVERT CLI_MAP CLI_CHECK CLI_COMPARE CLI_AMEND CLI_RESIZE CLI_IO) += luks
luks-damage := $(call on,FMT_LUKS FMT_RAW FMT_QCOW2_CREATE CLI_INFO CLI_CONVERT CLI_MAP CLI_AMEND)
interop-$(luks-damage) += luks_damage
asan-$(luks-damage) += luks_damage
TIME_luks_damage := 120
perf-sh-$(call on,FMT_LUKS FMT_RAW FMT_QCOW2_CREATE CLI_CONVERT) += luks
TIME_luks_header := 120
TIME_luks := 240

# every format, in memory
ram-needs := FMT_RAW FMT_QCOW2_CREATE FMT_QCOW2_CHECK FMT_OP_CREATE FMT_OP_CHECK FMT_OP_RESIZE \
	BLK_LOG BLK_MEM_SPARSE BLK_ERR_TEXT
ram-rig := $(call on,$(ram-needs))
t-$(ram-rig) += conf/ram.o firmware/arena.o
conf-$(ram-rig) += arena model matrix
vg-$(ram-rig) += model matrix
TIME_model := 180
TIME_model_par := 180
ram-par := $(call on,$(ram-needs) THR_FIBERS)
conf-$(ram-par) += model_par
vg-$(ram-par) += model_par
tsan-$(ram-par) += model_par
ram-fault := $(call on,$(ram-needs) THR_FIBERS BLK_FAULT BLK_FILE FMT_OP_CONVERT FMT_OP_COMPARE \
	FMT_OP_COMMIT FMT_OP_AMEND FMT_OP_CHECKSUM)
t-$(ram-fault) += $(addprefix conf/,fault_cases.o fault_image.o fault_ops.o) fixtures/poor.o
conf-$(ram-fault) += fault fault_files
vg-$(ram-fault) += fault fault_files
TIME_fault := 120
tool-$(call on,BLK_FILE FMT_QCOW2_WRITE BLK_ERR_TEXT) += fixtures/steps
interop-$(if $(CONFIG_BLK_FILE),$(if $(CONFIG_CZ_DEFLATE),$(CONFIG_FMT_QCOW2_WRITE))) += qcow2_write
TIME_qcow2_write := 120
TIME_qcow2_cut := 120

# power cuts, for every format that is written
crash-needs := FMT_RAW FMT_QCOW2_CREATE FMT_QCOW2_CHECK FMT_OP_CREATE FMT_OP_CHECK FMT_OP_INFO \
	FMT_OP_COMMIT FMT_OP_RESIZE BLK_LOG BLK_ERR_TEXT THR_FIBERS HOSTED
crash-on := $(call on,$(crash-needs))
t-$(if $(crash-on),$(CONFIG_FMT_LUKS)) += crash/luks.o
t-$(crash-on) += $(addprefix crash/,model.o record.o rows.o state.o store.o verify.o work.o)
crash-$(crash-on) += crash
interop-$(call on,FMT_RAW FMT_QCOW2_CREATE FMT_QCOW2_CHECK BLK_FILE CLI_IO CLI_BENCH CLI_CONVERT CLI_CHECK) += kill
TIME_kill := 120
interop-$(crash-on) += crash_peer
TIME_crash_peer := 120
TIME_crash := 180

# bad images (t/fixtures/README)
hostile-needs := FMT_QCOW2 CZ_DEFLATE CLI_INFO CLI_CHECK CLI_MAP CLI_CONVERT
ifeq ($(foreach s,$(hostile-needs),$(CONFIG_$(s))),$(foreach s,$(hostile-needs),y))
interop-y += hostile
asan-y += hostile untrusted
TIME_hostile := 120
endif

interop-$(call on,$(hostile-needs) CLI_CREATE CLI_COMPARE CLI_RESIZE CLI_MEASURE CLI_BENCH CLI_IO FMT_QCOW2_CREATE) += untrusted

# any bytes for whatever reads some
fuzz-all := BLK_MEM FMT_QCOW2 FMT_RAW FMT_OP_INFO FMT_OP_CHECK FMT_OP_MAP BLK_ERR_TEXT HOSTED
fuzz-on := $(call on,$(fuzz-all))
t-$(fuzz-on) += fuzz/fuzz.o fuzz/packed.o fuzz/qcow2_mutate.o
tool-$(fuzz-on) += fuzz/pack
fuzz-$(fuzz-on) += qcow2 probe words $(if $(CONFIG_CZ_DEFLATE)$(CONFIG_CZ_ZSTD),codec)
fuzz-$(call on,$(fuzz-all) FMT_COW_WRITE FMT_OP_RESIZE BLK_MEM_SPARSE) += cow
fuzz-$(call on,$(fuzz-all) FMT_QCOW2_WRITE FMT_QCOW2_CHECK FMT_OP_RESIZE BLK_MEM_SPARSE) += qcow2_write
fuzz-$(call on,$(fuzz-all) FMT_QCOW2_CREATE FMT_OP_CREATE BLK_MEM_SPARSE CLI) += create
fuzz-$(call on,$(fuzz-all) BLK_NBD_SERVER) += nbd_serve
fuzz-$(call on,$(fuzz-all) FMT_LUKS) += luks
fuzz-$(call on,$(fuzz-all) FMT_JSON BLK_NBD CLI) += names
fuzz-$(call on,$(fuzz-all) CLI_CHECKSUM) += lists

# cli
unit-$(CONFIG_CLI) += cli_args
vg-$(CONFIG_CLI) += cli_args
cli-all := CLI_CREATE CLI_INFO CLI_CONVERT CLI_CHECK CLI_COMPARE CLI_MAP CLI_RESIZE \
	FMT_RAW FMT_QCOW2_CREATE FMT_QCOW2_CHECK FMT_QCOW2_COMPRESS CZ_DEFLATE
cli-tests := cli_convert cli_check $(if $(CONFIG_CLI_COMMIT),cli_commit) cli_compare cli_map cli_resize convert determinism \
	limits
interop-$(call on,$(cli-all) CZ_ZSTD) += cli_create cli_info
interop-$(call on,$(cli-all)) += $(cli-tests)
interop-$(call on,$(cli-all) CLI_MEASURE CLI_BENCH FMT_JSON FMT_LUKS) += cli_opts
interop-$(call on,$(cli-all) FMT_QCOW2_COMPRESS CZ_ZSTD CZ_LIBDEFLATE CLI_IO) += compress
TIME_compress := 180
interop-$(call on,$(cli-all) BLK_FAULT) += convert_opts
asan-$(call on,$(cli-all) CLI_MEASURE CLI_BENCH FMT_JSON FMT_LUKS) += cli_opts
asan-$(call on,$(cli-all)) += cli_convert cli_map
interop-$(call on,$(cli-all) CLI_CHECKSUM FMT_JSON) += checksum
asan-$(call on,$(cli-all) CLI_CHECKSUM FMT_JSON) += checksum
perf-sh-$(call on,CLI_CHECKSUM FMT_RAW FMT_QCOW2) += checksum
TIME_checksum := 120
perf-sh-$(call on,$(cli-all)) += convert
perf-sh-$(call on,$(cli-all) FMT_QCOW2_COMPRESS CZ_ZSTD) += compress
unit-$(call on,FMT_OP_BENCH BLK_MEM_SPARSE BLK_LOG BLK_FAULT) += fmt_bench
vg-$(call on,FMT_OP_BENCH BLK_MEM_SPARSE BLK_LOG BLK_FAULT) += fmt_bench
tsan-$(call on,FMT_OP_BENCH BLK_MEM_SPARSE BLK_LOG BLK_FAULT) += fmt_bench
interop-$(call on,CLI_IO FMT_RAW FMT_QCOW2_CREATE BLK_FILE_AIO BLK_FILE_URING) += io
interop-$(call on,CLI_BENCH FMT_RAW FMT_QCOW2_CREATE BLK_FILE_AIO BLK_FILE_URING BLK_NULL) += bench
interop-$(call on,CLI_MEASURE $(cli-all)) += measure snapshots
interop-$(call on,CLI_MEASURE CLI_COMMIT CLI_RESIZE FMT_JSON $(cli-all)) += datafile
asan-$(call on,CLI_IO FMT_RAW FMT_QCOW2_CREATE BLK_FILE_AIO BLK_FILE_URING) += io
perf-sh-$(call on,CLI_BENCH FMT_RAW FMT_QCOW2 BLK_NULL) += bench
perf-sh-$(call on,CLI_IO FMT_QCOW2_WRITE BLK_FILE) += flush
TIME_bench := 120
TIME_io := 120
TIME_measure := 120
TIME_datafile := 180
TIME_cli_commit := 120

# a second or less each
brief-y := $(filter thr_base thr_none thr_fiber cz_codec cz_digest cz_zero blk_err blk_mem blk_opt \
	blk_req fmt_probe fmt_raw qcow2_header qcow2_map qcow2_read cli_args,$(unit-y))

# Without the one that waits for others to derive keys; check-long has it.
slim-y := $(filter-out luks,$(interop-y))
