/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/firmware/hostfile.h - a block device over a file of the board's host.
 */
#ifndef T_FIRMWARE_HOSTFILE_H
#define T_FIRMWARE_HOSTFILE_H

#include "blk/blk.h"

/* As blk_open(); @name must outlive it. */
int hostfile_open(struct blk **out, const char *name, const struct thr_alloc *mem);

#endif
