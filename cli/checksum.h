/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/checksum.h - lists of checksums: their lines, and verifying one.
 */
#ifndef CLI_CHECKSUM_H
#define CLI_CHECKSUM_H

#include "cli/cli.h"

#define CHECKSUM_HEX (2 * FMT_DIGEST_MAX + 1)

struct checksum_args {
	struct cli_open open;  /* all but the name */
	struct fmt_checksum c; /* how */
	bool progress, quiet, check, json;
	unsigned threads;
};

/* Sums up one file, or standard input where @name is "-": in hexadecimal. 0, or a message
 * has been printed. */
int checksum_file(
	const struct checksum_args *a, const char *name, struct fmt_checksum *c, char *hex);

/* A line of a list: a backslash in front says that the name has some. */
void checksum_line(FILE *out, const char *hex, const char *name);
/* Opens each file that the list @name has and says whether its checksum is right. The
 * exit status. @json: in that array. */
int checksum_verify(const struct checksum_args *a, const char *name, struct cli_json *json);

#endif
