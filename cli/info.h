/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/info.h - the two ways in which info shows an image.
 */
#ifndef CLI_INFO_H
#define CLI_INFO_H

#include "cli/cli.h"

struct cli_image {
	struct blk *blk;
	const char *name;
	struct fmt_info info;
	bool has_allocated;
	uint64_t allocated;
	char full_backing[FMT_NAME_MAX]; /* empty: none, or it cannot be told */
};

void cli_info_human(const struct cli_image *im);
void cli_info_json(struct cli_json *j, const struct cli_image *im);

#endif
