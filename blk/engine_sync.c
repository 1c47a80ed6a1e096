/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/engine_sync.c - engine "sync": the system call is made on the spot, and the
 * fiber's executor waits with it. Best where nothing waits for long: tmpfs, the page
 * cache.
 */
#include "blk/file.h"

static int64_t sync_rw(struct blk_file *f, struct file_io *io)
{
	(void)f;
	return blk_file_sys_rw(io);
}

const struct file_engine blk_file_engine_sync = {
	.name = "sync",
	.rw = sync_rw,
};
