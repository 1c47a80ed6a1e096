# SPDX-License-Identifier: BSD-2-Clause
# cli-y: the objects of this room; cli-lib-SYMBOL: a library (scripts/libs) that CONFIG_SYMBOL needs.
ifeq ($(CONFIG_CLI),y)
cli-y += main.o error.o args.o parse.o human.o json.o object.o object_tls.o open.o
cli-y += $(if $(CONFIG_CZ_CRYPTO),decrypt.o,decrypt_none.o)
cli-$(CONFIG_CLI_AMEND) += amend.o
cli-$(CONFIG_CLI_CREATE) += create.o
cli-$(CONFIG_CLI_INFO) += info.o info_human.o info_json.o
cli-$(CONFIG_CLI_CONVERT) += convert.o convert_run.o
cli-$(CONFIG_CLI_COMMIT) += commit.o
cli-$(CONFIG_CLI_CHECK) += check.o
cli-$(CONFIG_CLI_CHECKSUM) += checksum.o checksum_list.o
cli-$(CONFIG_CLI_COMPARE) += compare.o
cli-$(CONFIG_CLI_MAP) += map.o
cli-$(CONFIG_CLI_RESIZE) += resize.o
cli-$(CONFIG_CLI_MEASURE) += measure.o
cli-$(CONFIG_CLI_BENCH) += bench.o
cli-$(CONFIG_CLI_IO) += io.o io_cmd.o io_rw.o io_misc.o io_job.o io_buf.o io_text.o
cli-$(CONFIG_CLI_SERVE) += serve.o serve_run.o serve_tls.o $(if $(CONFIG_BLK_NBD),serve_list.o)
cli-y += $(if $(CONFIG_CLI_SERVE)$(CONFIG_CLI_IO),$(if $(CONFIG_FMT_QCOW2_CREATE),overlay.o,overlay_none.o))
cli-y += $(if $(CONFIG_CLI_INFO)$(CONFIG_CLI_IO),props.o)
cli-y += $(if $(CONFIG_CLI_AMEND)$(CONFIG_CLI_CREATE)$(CONFIG_CLI_CONVERT),options.o)
cli-y += $(if $(CONFIG_CLI_CHECKSUM)$(CONFIG_CLI_COMPARE)$(CONFIG_CLI_CONVERT)$(CONFIG_CLI_COMMIT),progress.o)
cli-y += $(if $(CONFIG_CLI_CHECKSUM)$(CONFIG_CLI_COMPARE)$(CONFIG_CLI_CONVERT)$(CONFIG_CLI_COMMIT)$(CONFIG_CLI_BENCH)$(CONFIG_CLI_SERVE),$(if $(CONFIG_THR_FIBERS),pool.o,pool_none.o))
endif
