/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/pause_none.c - artificial latency where there is one thread of control: it
 * is refused when a device is opened.
 */
#include "blk/private.h"

const bool blk_can_pause = false;

void blk_pause(uint64_t ns)
{
	(void)ns;
	thr_panic("a pause with nobody to end it");
}
