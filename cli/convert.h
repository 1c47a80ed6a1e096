/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/convert.h - what convert was asked to do.
 */
#ifndef CLI_CONVERT_H
#define CLI_CONVERT_H

#include "cli/cli.h"

struct cli_convert {
	char **names; /* of the sources */
	unsigned nsrc;
	const char *target;
	const char *format, *out_format; /* out_format NULL: raw */
	const char *cache, *src_cache;
	const char *backing, *backing_format;
	const char *snapshot;                   /* of the source, or NULL */
	const char *seed;                       /* --reproducible */
	char *opt_backing, *opt_backing_format; /* from -o */
	struct cli_opts opts;
	uint32_t sparse;
	uint64_t rate;
	unsigned fibers, threads;
	bool compress, sparse_given, opts_given, offload, progress, quiet, no_create, unordered,
		share, target_is_zero, image_opts, target_image_opts, salvage;
};

/* Opens, creates, copies and closes; the exit status. */
int cli_convert_run(const struct cli_convert *a);

#endif
