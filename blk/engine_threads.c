/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/engine_threads.c - engine "threads": each system call is made on a thread that
 * may block. Works everywhere, and costs two thread switches for each request.
 */
#include "blk/file.h"

static int64_t threads_rw(struct blk_file *f, struct file_io *io)
{
	(void)f;
	return blk_file_offload_rw(io);
}

const struct file_engine blk_file_engine_threads = {
	.name = "threads",
	.alias = "threads",
	.rw = threads_rw,
};
