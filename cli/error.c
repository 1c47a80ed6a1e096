/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/error.c - messages on stderr, and the end of the program.
 */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "cli/cli.h"

static void say(const char *kind, const char *fmt, va_list ap)
{
	fflush(stdout);
	fprintf(stderr, "%s: %s", cli_prog, kind);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
}

int cli_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("", fmt, ap);
	va_end(ap);
	return 1;
}

int cli_usage(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("", fmt, ap);
	va_end(ap);
	fprintf(stderr, "Try '%s --help' for more information\n", cli_prog);
	return 1;
}

void cli_warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("warning: ", fmt, ap);
	va_end(ap);
}

int cli_fail(const struct blk_err *err)
{
	char text[BLK_ERR_FILE_MAX + BLK_ERR_STR_MAX + 256];

	blk_err_text(err, text, sizeof(text));
	return cli_error("%s", text);
}

int cli_fail_in(const char *what, const struct blk_err *err)
{
	char text[BLK_ERR_FILE_MAX + BLK_ERR_STR_MAX + 256];

	blk_err_text(err, text, sizeof(text));
	return cli_error("%s: %s", what, text);
}

int cli_no_memory(void)
{
	return cli_error("%s", strerror(ENOMEM));
}

int cli_done(int status)
{
	cli_secrets_wipe();
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	cli_error("Could not write to standard output: %s", strerror(errno));
	return status ? status : 1;
}
