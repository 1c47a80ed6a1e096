/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/props.h - the properties that are a format's own, for people.
 */
#ifndef CLI_PROPS_H
#define CLI_PROPS_H

#include "fmt/fmt.h"

/* "Format specific information:" and its lines; nothing where there is none. */
void cli_props(struct blk *image);

#endif
