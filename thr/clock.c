/* SPDX-License-Identifier: BSD-2-Clause
 *
 * thr/clock.c - what time it is. In builds with and without fibers.
 */
#include <time.h>

#include "thr/thr.h"

uint64_t thr_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}
