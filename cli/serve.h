/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/serve.h - what the files of the command serve share.
 */
#ifndef CLI_SERVE_H
#define CLI_SERVE_H

#include "cli/cli.h"

#define SERVE_BITMAPS 16

struct serve {
	struct cli_open open;
	const char *name; /* of the image */
	const char *engine, *snapshot;
	const char *socket, *bind, *port;
	const char *export, *description;
	const char *bitmaps[SERVE_BITMAPS];
	unsigned nbitmaps;
	const char *pid_file, *tls_creds, *tls_hostname;
	bool depth, read_only, persistent, fork, verbose, list;
	bool keep_space;
	enum blk_nbd_detect detect;
	bool temporary;  /* -s */
	uint64_t offset; /* -o: where in the image the export begins */
	unsigned clients, threads;
};

/* Opens, listens, serves until the end. */
int serve_run(struct serve *s);
int serve_list(const struct serve *s);
/* The credentials that --tls-creds names. */
int serve_tls_open(struct blk_nbd_tls **out, const char *id);

#endif
