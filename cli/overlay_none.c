/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/overlay_none.c - in a build that makes no qcow2 images there are no overlays.
 */
#include "cli/cli.h"

int cli_overlay(struct blk **image)
{
	(void)image;
	return cli_error("This build leaves that out: it needs CONFIG_FMT_QCOW2_CREATE");
}
