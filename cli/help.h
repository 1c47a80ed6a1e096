/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/help.h - help and version, which main.c prints because it has the table of
 * commands.
 */
#ifndef CLI_HELP_H
#define CLI_HELP_H

void cli_help(void);
void cli_version(void);

#endif
