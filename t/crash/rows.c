/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/crash/rows.c - what is cut: a row for each kind of image that can be written. Lengths
 * are such that tables are made, grow and move within a few dozen operations.
 */
#include "t/crash/crash.h"

#define QCOW2 (ROW_RESIZE | ROW_SYNC_SIZE)
#define K     1024u

/* clang-format off */
#define CLUSTER(n) {"cluster_size", n}
#define V2         {"compat", "0.10"}
#define BITS(n)    {"refcount_bits", n}
#define LAZY       {"lazy_refcounts", "on"}
#define EXTENDED   {"extended_l2", "on"}
#define ENCRYPT                                                                                \
	{"encrypt.format", "luks"}, {"encrypt.key-secret", "s"},                               \
	{                                                                                      \
		"encrypt.iter-time", "1"                                                       \
	}
/* clang-format on */

const struct crash_row crash_rows[] = {
	{
		.name = "raw",
		.format = "raw",
		.size = 400 * K,
		.flags = ROW_RESIZE | ROW_ANY_SIZE,
	},
	{
		.name = "v2",
		.format = "qcow2",
		.create = {V2, CLUSTER("4096")},
		.size = 900 * K,
		.flags = QCOW2,
	},
	{
		.name = "v3",
		.format = "qcow2",
		.create = {CLUSTER("4096")},
		.size = 900 * K,
		.flags = QCOW2,
	},
	{
		.name = "v2-tiny-backing",
		.format = "qcow2",
		.create = {V2, CLUSTER("512")},
		.size = 200 * K,
		.backing = 150 * K,
		.flags = QCOW2 | ROW_COMMIT,
	},
	{
		.name = "v3-tiny",
		.format = "qcow2",
		.create = {CLUSTER("512")},
		.size = 200 * K,
		.flags = QCOW2,
	},
	{
		.name = "v3-backing",
		.format = "qcow2",
		.create = {CLUSTER("4096")},
		.size = 600 * K,
		.backing = 800 * K,
		.flags = QCOW2 | ROW_COMMIT,
	},
	{
		.name = "v3-over-qcow2",
		.format = "qcow2",
		.create = {CLUSTER("1024"), BITS("8")},
		.size = 300 * K,
		.backing = 200 * K,
		.base_format = "qcow2",
		.base = {CLUSTER("2048")},
		.flags = QCOW2 | ROW_COMMIT,
	},
	{
		.name = "v3-64k",
		.format = "qcow2",
		.size = 1024 * K,
		.backing = 700 * K,
		.flags = QCOW2,
	},
	{
		.name = "bits-1",
		.format = "qcow2",
		.create = {CLUSTER("512"), BITS("1")},
		.size = 200 * K,
		.flags = QCOW2,
	},
	{
		.name = "bits-64",
		.format = "qcow2",
		.create = {CLUSTER("512"), BITS("64")},
		.size = 300 * K,
		.backing = 100 * K,
		.flags = QCOW2,
	},
	{
		.name = "tables",
		.format = "qcow2",
		.create = {CLUSTER("512"), BITS("64")},
		.size = 2800 * K,
		.max = 4000 * K,
		.flags = QCOW2 | ROW_LARGE,
	},
	{
		.name = "device",
		.format = "qcow2",
		.create = {CLUSTER("2048")},
		.size = 400 * K,
		.backing = 100 * K,
		.file_size = 6144 * K,
		.flags = QCOW2 | ROW_FIXED_FILE,
	},
	{
		.name = "lazy",
		.format = "qcow2",
		.create = {CLUSTER("512"), LAZY},
		.size = 200 * K,
		.backing = 100 * K,
		.flags = QCOW2 | ROW_DIRTY,
	},
	{
		.name = "lazy-4k",
		.format = "qcow2",
		.create = {CLUSTER("4096"), LAZY},
		.size = 900 * K,
		.flags = QCOW2 | ROW_DIRTY,
	},
	{
		.name = "extl2",
		.format = "qcow2",
		.create = {CLUSTER("16384"), EXTENDED},
		.size = 800 * K,
		.flags = QCOW2,
	},
	{
		.name = "extl2-backing",
		.format = "qcow2",
		.create = {CLUSTER("16384"), EXTENDED},
		.size = 500 * K,
		.backing = 400 * K,
		.flags = QCOW2 | ROW_COMMIT,
	},
#ifdef CONFIG_FMT_QCOW2_COMPRESS
	{
		.name = "compressed",
		.format = "qcow2",
		.create = {CLUSTER("4096")},
		.size = 600 * K,
		.flags = QCOW2 | ROW_COMPRESS,
	},
	{
		.name = "compressed-backing",
		.format = "qcow2",
		.create = {V2, CLUSTER("2048")},
		.size = 300 * K,
		.backing = 200 * K,
		.flags = QCOW2 | ROW_COMPRESS | ROW_COMMIT,
	},
#endif
	{
		.name = "data-file",
		.format = "qcow2",
		.create = {CLUSTER("4096"), {"data_file", "second"}},
		.size = 600 * K,
		.second = true,
		.flags = QCOW2,
	},
	{
		.name = "data-file-raw",
		.format = "qcow2",
		.create = {CLUSTER("4096"), {"data_file", "second"}, {"data_file_raw", "on"}},
		.size = 600 * K,
		.second = true,
		.flags = QCOW2,
	},
#ifdef CONFIG_FMT_COW_WRITE
	{
		.name = "cow",
		.format = "cow",
		.size = 900 * K,
		.flags = QCOW2,
	},
	{
		.name = "cow-backing",
		.format = "cow",
		.size = 600 * K,
		.backing = 700 * K,
		.flags = QCOW2 | ROW_COMMIT,
	},
	{
		.name = "cow-v2-backing",
		.format = "cow",
		.create = {{"version", "2"}},
		.size = 500 * K,
		.backing = 400 * K,
		.flags = QCOW2 | ROW_COMMIT,
	},
#endif
#ifdef CONFIG_FMT_LUKS
	{
		.name = "luks",
		.format = "luks",
		.create = {{"key-secret", "s"}, {"iter-time", "1"}},
		.size = 300 * K,
		.make = crash_luks_make,
		.open_image = crash_luks_open,
		.amend = crash_luks_amend,
		.slow = 4,
	},
	{
		.name = "qcow2-luks",
		.format = "qcow2",
		.create = {CLUSTER("4096"), ENCRYPT},
		.secrets = &crash_luks_secrets,
		.size = 300 * K,
		.open_image = crash_luks_open_qcow2,
		.amend = crash_luks_amend_qcow2,
		.slow = 4,
		.flags = QCOW2,
	},
	{
		.name = "qcow2-luks-backing",
		.format = "qcow2",
		.create = {V2, CLUSTER("2048"), ENCRYPT},
		.secrets = &crash_luks_secrets,
		.size = 200 * K,
		.backing = 100 * K,
		.open_image = crash_luks_open_qcow2,
		.amend = crash_luks_amend_qcow2,
		.slow = 4,
		.flags = QCOW2,
	},
#endif
	{.name = NULL},
};
