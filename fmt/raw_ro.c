/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/raw_ro.c - the raw driver of a build that writes nothing.
 */
#include "fmt/raw.h"

const struct blk_ops fmt_raw_ops = {
	.name = "raw",
	.preadv = raw_preadv,
	.status = raw_status,
	.same = raw_same,
	.close = raw_close,
};

const struct fmt_driver fmt_raw_driver = {
	.name = "raw",
	.ops = &fmt_raw_ops,
	.probe = raw_probe,
	.open = raw_open,
	.info = raw_info,
};
