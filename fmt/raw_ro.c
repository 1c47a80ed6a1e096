/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/raw_ro.c - the raw driver of a build that writes nothing.
 */
#include "fmt/raw.h"

const struct blk_ops fmt_raw_ops = {
	.name = "raw",
	.preadv = fmt_raw_preadv,
	.status = fmt_raw_status,
	.same = fmt_raw_same,
	.close = fmt_raw_close,
};

const struct fmt_driver fmt_raw_driver = {
	.name = "raw",
	.ops = &fmt_raw_ops,
	.probe = fmt_raw_probe,
	.open = fmt_raw_open,
	.info = fmt_raw_info,
};
