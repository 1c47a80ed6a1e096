/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/pause.c - artificial latency: waits, and lets others run meanwhile.
 */
#include "blk/private.h"

const bool blk_can_pause = true;

void blk_pause(uint64_t ns)
{
	thr_sleep(ns);
}
