/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/json.c - JSON (RFC 8259) in ASCII, laid out as qemu-img does: four spaces a level,
 * one value a line. What is no UTF-8 becomes U+FFFD.
 */
#include <inttypes.h>

#include "cli/cli.h"

void cli_json_begin(struct cli_json *j, FILE *out)
{
	*j = (struct cli_json){.out = out, .first = true};
}

void cli_json_end(struct cli_json *j)
{
	fputc('\n', j->out);
}

static void indent(struct cli_json *j)
{
	fprintf(j->out, "\n%*s", 4 * (int)j->depth, "");
}

/* ---- strings ----------------------------------------------------------------------- */

#define REPLACEMENT 0xfffdu

/* The bytes of a UTF-8 sequence by its first one, and the least character that may be
 * so long; 0 for what begins none. */
static unsigned sequence(unsigned char c, uint32_t *bits, uint32_t *least)
{
	static const uint32_t leasts[] = {0, 0, 0x80, 0x800, 0x10000};
	unsigned n;

	if (c < 0x80)
		n = 1;
	else if (c >= 0xc2 && c < 0xe0)
		n = 2;
	else if (c >= 0xe0 && c < 0xf0)
		n = 3;
	else if (c >= 0xf0 && c < 0xf5)
		n = 4;
	else
		return 0;
	*bits = n == 1 ? c : c & (0x7fu >> n);
	*least = leasts[n];
	return n;
}

/* The character at *s, which moves on: past the whole of a good one, past as much of a
 * bad one as could have begun one. */
static uint32_t next_char(const char **s)
{
	const unsigned char *p = (const unsigned char *)*s;
	uint32_t c, least;
	unsigned n = sequence(*p, &c, &least);
	unsigned i = 1;

	for (; i < n && (p[i] & 0xc0) == 0x80; i++)
		c = c << 6 | (p[i] & 0x3f);
	*s += i;
	if (!n || i < n || c < least || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return REPLACEMENT;
	return c;
}

static void put_char(FILE *out, uint32_t c)
{
	static const char plain[] = "\"\\\b\f\n\r\t";
	static const char letter[] = "\"\\bfnrt";

	for (unsigned i = 0; plain[i]; i++)
		if (c == (unsigned char)plain[i]) {
			fprintf(out, "\\%c", letter[i]);
			return;
		}
	if (c >= 0x10000)
		fprintf(out, "\\u%04X\\u%04X", 0xd7c0 + (c >> 10), 0xdc00 + (c & 0x3ff));
	else if (c < 0x20 || c >= 0x7f)
		fprintf(out, "\\u%04X", c);
	else
		fputc((int)c, out);
}

static void put_string(FILE *out, const char *s)
{
	fputc('"', out);
	while (*s)
		put_char(out, next_char(&s));
	fputc('"', out);
}

/* ---- values -------------------------------------------------------------------------- */

static void start(struct cli_json *j, const char *key)
{
	if (!j->first)
		fputc(',', j->out);
	if (j->depth)
		indent(j);
	j->first = false;
	if (key) {
		put_string(j->out, key);
		fputs(": ", j->out);
	}
}

void cli_json_open(struct cli_json *j, const char *key, bool array)
{
	start(j, key);
	fputc(array ? '[' : '{', j->out);
	j->depth++;
	j->first = true;
}

void cli_json_close(struct cli_json *j, bool array)
{
	j->depth--;
	indent(j);
	j->first = false;
	fputc(array ? ']' : '}', j->out);
}

void cli_json_str(struct cli_json *j, const char *key, const char *val)
{
	start(j, key);
	put_string(j->out, val);
}

void cli_json_num(struct cli_json *j, const char *key, uint64_t val)
{
	start(j, key);
	fprintf(j->out, "%" PRIu64, val);
}

void cli_json_bool(struct cli_json *j, const char *key, bool val)
{
	start(j, key);
	fputs(val ? "true" : "false", j->out);
}
