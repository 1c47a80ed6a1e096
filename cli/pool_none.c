/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/pool_none.c - stands in for pool.c in a build without threads.
 */
#include "cli/cli.h"

int cli_run(unsigned threads, int (*fn)(void *arg), void *arg)
{
	(void)threads;
	return fn(arg);
}
