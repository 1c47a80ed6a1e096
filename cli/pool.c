/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/pool.c - threads for the commands that move data. The others start none.
 */
#include <malloc.h>

#include "cli/cli.h"

int cli_run(unsigned threads, int (*fn)(void *arg), void *arg)
{
	struct thr_pool *pool;
	int err;

#ifdef M_ARENA_MAX
	/* An arena takes 64 MiB of address space, and a thread wants its own. */
	mallopt(M_ARENA_MAX, 2);
#endif
	err = thr_pool_open(&pool, threads, &thr_heap);
	if (err)
		return err;
	err = thr_pool_run(pool, fn, arg);
	thr_pool_close(pool);
	return err;
}

void cli_trim(void)
{
#ifdef __GLIBC__
	(void)malloc_trim(0);
#endif
}
