/* SPDX-License-Identifier: BSD-2-Clause
 *
 * thr/sleep_none.c - sleeping where there are no fibers: the thread sleeps.
 */
#include <errno.h>
#include <time.h>

#include "thr/thr.h"

void thr_sleep(uint64_t ns)
{
	struct timespec ts = {
		.tv_sec = (time_t)(ns / 1000000000u),
		.tv_nsec = (long)(ns % 1000000000u),
	};

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, &ts) == EINTR)
		;
}
