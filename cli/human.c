/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/human.c - sizes for people: three significant digits, and the unit in which
 * they are below 1000.
 */
#include "cli/cli.h"

const char *cli_human_size(uint64_t bytes, char buf[CLI_HUMAN_SIZE])
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double v = (double)bytes;
	unsigned i = 0;

	for (; v >= 1000.0; i++)
		v /= 1024.0;
	snprintf(buf, CLI_HUMAN_SIZE, "%0.3g %s", v, units[i]);
	return buf;
}
