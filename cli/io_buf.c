/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/io_buf.c - buffers of requests: filled with a pattern, compared with one, shown.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/io.h"

/* Where O_DIRECT wants its memory, and with -m where it does not. */
#define ALIGN    4096
#define MISALIGN 16

void *io_buf_get(const struct io *io, size_t len, int fill)
{
	size_t skip = io->misalign ? MISALIGN : 0;
	void *p;

	if (posix_memalign(&p, ALIGN, len + skip + !len))
		return NULL;
	memset((char *)p + skip, fill, len);
	return (char *)p + skip;
}

void io_buf_put(const struct io *io, void *buf)
{
	if (buf)
		free((char *)buf - (io->misalign ? MISALIGN : 0));
}

int io_buf_pattern(const char *arg)
{
	char *end;
	unsigned long v;

	errno = 0;
	v = strtoul(arg, &end, 0);
	if (!errno && end != arg && !*end && v <= UINT8_MAX)
		return (int)v;
	printf("%s is not a valid pattern byte\n", arg);
	return -1;
}

/* After the bytes at the start of the buffer the same again and again. */
static void repeat(char *buf, size_t have, size_t len)
{
	for (; have < len; have *= 2)
		memcpy(buf + have, buf, THR_MIN(have, len - have));
}

int io_buf_from_file(char *buf, size_t len, const char *name)
{
	FILE *f = fopen(name, "rb");
	const char *wrong = NULL;
	size_t n = 0;

	if (f) {
		n = fread(buf, 1, len, f);
		wrong = ferror(f) ? strerror(errno) : n || !len ? NULL : "file is empty";
		fclose(f);
	} else {
		wrong = strerror(errno);
	}
	if (wrong) {
		fflush(stdout);
		fprintf(stderr, "%s: %s\n", name, wrong);
		return -1;
	}
	repeat(buf, n, len);
	return 0;
}

bool io_buf_is(const char *buf, int pattern, size_t len)
{
	return !len || (buf[0] == (char)pattern && !memcmp(buf, buf + 1, len - 1));
}

void io_buf_dump(const char *buf, uint64_t off, size_t len)
{
	for (size_t at = 0; at < len; at += 16) {
		size_t n = THR_MIN(len - at, (size_t)16);
		const unsigned char *p = (const unsigned char *)buf + at;

		printf("%08" PRIx64 ":  ", off + at);
		for (size_t i = 0; i < n; i++)
			printf("%02x ", p[i]);
		putchar(' ');
		for (size_t i = 0; i < n; i++)
			putchar(p[i] < 0x80 && isalnum(p[i]) ? p[i] : '.');
		putchar('\n');
	}
}
