/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/firmware/ramdisk.h - a disk in memory that grows, up to the memory that it has.
 */
#ifndef T_FIRMWARE_RAMDISK_H
#define T_FIRMWARE_RAMDISK_H

#include "blk/blk.h"

/* @size bytes of @buf are there at first; it can have @max. Neither is owned. */
int ramdisk_open(
	struct blk **out, uint8_t *buf, size_t size, size_t max, const struct thr_alloc *mem);

#endif
