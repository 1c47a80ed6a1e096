/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The table of geometries: a format takes part in the whole suite by its rows.
 */
#include "t/conf/conf.h"

#define M (1u << 20)
#define K (1u << 10)

#define V2(cl)                                                                                 \
	{"compat", "0.10"},                                                                    \
	{                                                                                      \
		"cluster_size", cl                                                             \
	}
#define V3(cl, bits)                                                                           \
	{"compat", "1.1"}, {"cluster_size", cl},                                               \
	{                                                                                      \
		"refcount_bits", bits                                                          \
	}

#define EXTL2(cl)                                                                              \
	{"compat", "1.1"}, {"cluster_size", cl},                                               \
	{                                                                                      \
		"extended_l2", "on"                                                            \
	}

#define LUKS                                                                                   \
	{"encrypt.format", "luks"}, {"encrypt.key-secret", "s"},                               \
	{                                                                                      \
		"encrypt.iter-time", "1"                                                       \
	}

const struct conf_row conf_rows[] = {
#ifdef CONFIG_FMT_RAW
	{.name = "raw", .format = "raw", .size = 3 * M + 512},
#endif
#ifdef CONFIG_FMT_LUKS
	{.name = "luks-xts",
		.format = "luks",
		.size = M + 512,
		.noise = true,
		.opts = {{"key-secret", "s"}, {"iter-time", "1"}}},
	{.name = "luks-cbc",
		.format = "luks",
		.size = M,
		.noise = true,
		.opts = {{"key-secret", "s"}, {"iter-time", "1"}, {"cipher-mode", "cbc"},
			{"ivgen-alg", "essiv"}, {"cipher-alg", "aes-128"}}},
#endif
#if defined(CONFIG_FMT_LUKS) && defined(CONFIG_FMT_QCOW2_CREATE)
	{.name = "v2-luks-512", .format = "qcow2", .size = M / 2, .opts = {V2("512"), LUKS}},
	{.name = "v3-luks-64k",
		.format = "qcow2",
		.size = 2 * M,
		.opts = {{"cluster_size", "64k"}, LUKS}},
	{.name = "v3-luks-metadata",
		.format = "qcow2",
		.size = 2 * M,
		.opts = {{"preallocation", "metadata"}, LUKS}},
	{.name = "v3-luks-over-short",
		.format = "qcow2",
		.size = 2 * M,
		.backing = M + 512 * 5,
		.opts = {{"cluster_size", "4k"}, LUKS}},
	{.name = "extl2-luks",
		.format = "qcow2",
		.size = M + 512,
		.opts = {EXTL2("16k"), LUKS}},
#endif
#ifdef CONFIG_FMT_QCOW2_CREATE
	{.name = "v2-512", .format = "qcow2", .size = M / 2 + 512, .opts = {V2("512")}},
	{.name = "v2-4k", .format = "qcow2", .size = 2 * M, .opts = {V2("4k")}},
	{.name = "v2-64k", .format = "qcow2", .size = 4 * M, .opts = {V2("64k")}},
	{.name = "v2-2M", .format = "qcow2", .size = 9 * M, .opts = {V2("2M")}},
	{.name = "v3-512-r1", .format = "qcow2", .size = M / 2, .opts = {V3("512", "1")}},
	{.name = "v3-512-r64", .format = "qcow2", .size = M / 2, .opts = {V3("512", "64")}},
	{.name = "v3-4k-r2", .format = "qcow2", .size = 2 * M, .opts = {V3("4k", "2")}},
	{.name = "v3-4k-r4", .format = "qcow2", .size = 2 * M, .opts = {V3("4k", "4")}},
	{.name = "v3-4k-r8", .format = "qcow2", .size = 2 * M, .opts = {V3("4k", "8")}},
	{.name = "v3-4k-r32", .format = "qcow2", .size = 2 * M, .opts = {V3("4k", "32")}},
	{.name = "v3-64k-r1", .format = "qcow2", .size = 4 * M, .opts = {V3("64k", "1")}},
	{.name = "v3-64k-r16", .format = "qcow2", .size = 4 * M, .opts = {V3("64k", "16")}},
	{.name = "v3-64k-r64", .format = "qcow2", .size = 4 * M, .opts = {V3("64k", "64")}},
	{.name = "v3-2M-r16", .format = "qcow2", .size = 9 * M, .opts = {V3("2M", "16")}},
	{.name = "v3-lazy",
		.format = "qcow2",
		.size = 2 * M,
		.opts = {V3("4k", "16"), {"lazy_refcounts", "on"}}},
	{.name = "v3-odd-size",
		.format = "qcow2",
		.size = M + 512 * 3,
		.opts = {V3("64k", "16")}},
	{.name = "v3-metadata",
		.format = "qcow2",
		.size = 2 * M,
		.opts = {V3("64k", "16"), {"preallocation", "metadata"}}},
	{.name = "v3-falloc",
		.format = "qcow2",
		.size = 2 * M,
		.opts = {V3("64k", "16"), {"preallocation", "falloc"}}},
	{.name = "v3-full",
		.format = "qcow2",
		.size = 2 * M,
		.opts = {V3("64k", "16"), {"preallocation", "full"}}},
	{.name = "v2-over-short",
		.format = "qcow2",
		.size = 2 * M,
		.backing = M + 512 * 5,
		.opts = {V2("64k")}},
	{.name = "v2-over-long",
		.format = "qcow2",
		.size = M + 512,
		.backing = 2 * M,
		.opts = {V2("4k")}},
	{.name = "v2-512-over-short",
		.format = "qcow2",
		.size = M / 2,
		.backing = M / 4 + 512,
		.opts = {V2("512")}},
	{.name = "v3-over-short",
		.format = "qcow2",
		.size = 2 * M,
		.backing = M + 512 * 5,
		.opts = {V3("64k", "16")}},
	{.name = "v3-over-long",
		.format = "qcow2",
		.size = M + 512,
		.backing = 2 * M,
		.opts = {V3("4k", "16")}},
	{.name = "v3-512-over-long",
		.format = "qcow2",
		.size = M / 4,
		.backing = M / 2,
		.opts = {V3("512", "8")}},
	{.name = "v3-2M-over-short",
		.format = "qcow2",
		.size = 7 * M,
		.backing = 3 * M + 512,
		.opts = {V3("2M", "16")}},
	{.name = "v3-lazy-over-same",
		.format = "qcow2",
		.size = 2 * M,
		.backing = 2 * M,
		.opts = {V3("64k", "16"), {"lazy_refcounts", "on"}}},
	{.name = "extl2-16k", .format = "qcow2", .size = M + 512, .opts = {EXTL2("16k")}},
	{.name = "extl2-64k", .format = "qcow2", .size = 4 * M, .opts = {EXTL2("64k")}},
	{.name = "extl2-2M", .format = "qcow2", .size = 9 * M, .opts = {EXTL2("2M")}},
	{.name = "extl2-lazy",
		.format = "qcow2",
		.size = M,
		.opts = {EXTL2("16k"), {"lazy_refcounts", "on"}}},
	{.name = "extl2-metadata",
		.format = "qcow2",
		.size = 2 * M,
		.opts = {EXTL2("64k"), {"preallocation", "metadata"}}},
	{.name = "extl2-over-short",
		.format = "qcow2",
		.size = 2 * M,
		.backing = M + 512 * 5,
		.opts = {EXTL2("64k")}},
	{.name = "extl2-over-long",
		.format = "qcow2",
		.size = M + 512,
		.backing = 2 * M,
		.opts = {EXTL2("16k")}},
	{.name = "extl2-2M-over-short",
		.format = "qcow2",
		.size = 7 * M,
		.backing = 3 * M + 512,
		.opts = {EXTL2("2M")}},
#endif
};
const unsigned conf_nrows = THR_ARRAY_SIZE(conf_rows);
