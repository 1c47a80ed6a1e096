/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/overlay.c - an image that takes all writes in a temporary file (-s of qemu-nbd): a
 * qcow2 overlay in $TMPDIR or /var/tmp that has no name any more once it is open.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

static int open_overlay(struct blk **out, const char *name, uint64_t size, struct blk_err *err)
{
	struct fmt_create c = {
		.name = name,
		.format = "qcow2",
		.size = size,
		.has_size = true,
		.mem = &thr_heap,
	};
	/* Nobody else opens it, and nobody sees it after a power cut. */
	unsigned flags = BLK_RDWR | BLK_NO_LOCK | BLK_NOFLUSH;
	struct blk_open at = {.name = name, .driver = "file", .flags = flags, .mem = &thr_heap};
	struct fmt_open o = {.format = "qcow2", .blk_flags = flags, .mem = &thr_heap};
	struct blk *file;
	int code = fmt_create(&c, err);

	if (!code)
		code = blk_open(&file, &at, err);
	if (code)
		return code;
	code = fmt_open_on(out, file, &o, err);
	if (code)
		blk_close(file);
	return code;
}

int cli_overlay(struct blk **image)
{
	const char *dir = getenv("TMPDIR");
	struct blk_err err = BLK_ERR_INIT;
	struct blk *top = NULL;
	char *name;
	int fd, code;

	if (asprintf(&name, "%s/platter.XXXXXX", dir && *dir ? dir : "/var/tmp") < 0)
		return cli_no_memory();
	fd = mkstemp(name);
	if (fd < 0) {
		code = cli_error(
			"Could not create temporary file '%s': %s", name, strerror(errno));
		free(name);
		return code;
	}
	close(fd);
	code = open_overlay(&top, name, blk_size(*image), &err);
	unlink(name);
	free(name);
	if (code)
		return cli_fail_in("Could not create temporary overlay", &err);
	fmt_set_backing(top, *image);
	*image = top;
	return 0;
}
