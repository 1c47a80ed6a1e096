/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/options.h - "-o help".
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include "cli/cli.h"

/* Lists the options of creating a format (NULL: raw). With @target a file is named, so
 * what the list says is all there is. */
int cli_amend_help(const struct fmt_driver *d);
int cli_options_help(const char *format, bool target);

#endif
