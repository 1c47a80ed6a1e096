/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/help.h - help and version, which main.c prints because it has the table of
 * commands.
 */
#ifndef CLI_HELP_H
#define CLI_HELP_H

struct cli_opt;

void cli_help(void);
/* The help of one command with these options; through a link called qemu-img all of it. */
void cli_command_help(const char *name, const struct cli_opt *opts);
void cli_version(void);

#endif
