/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/checksum_list.c - lists of checksums, as sha256sum writes and verifies them: lines
 * of "DIGEST  NAME" (or " *NAME"). In a name a backslash is "\\", a newline "\n" and a
 * carriage return "\r", and then the line begins with a backslash.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/checksum.h"

static void put_name(FILE *out, const char *name)
{
	for (; *name; name++) {
		if (*name == '\\')
			fputs("\\\\", out);
		else if (*name == '\n')
			fputs("\\n", out);
		else if (*name == '\r')
			fputs("\\r", out);
		else
			fputc(*name, out);
	}
}

static const char *escape(const char *name)
{
	return strpbrk(name, "\\\n\r") ? "\\" : "";
}

void checksum_line(FILE *out, const char *hex, const char *name)
{
	fprintf(out, "%s%s  ", escape(name), hex);
	put_name(out, name);
	fputc('\n', out);
}

/* ---- reading a line --------------------------------------------------------------------- */

struct line {
	char *hex, *name;
};

/* Undoes what put_name() did; false where there is anything else. */
static bool unescape(char *name)
{
	char *to = name;

	for (; *name; name++) {
		if (*name != '\\') {
			*to++ = *name;
			continue;
		}
		name++;
		if (*name == 'n')
			*to++ = '\n';
		else if (*name == 'r')
			*to++ = '\r';
		else if (*name == '\\')
			*to++ = '\\';
		else
			return false;
	}
	*to = '\0';
	return true;
}

static bool parse_line(char *s, struct line *l)
{
	bool escaped;
	size_t n;

	s[strcspn(s, "\n")] = '\0';
	s += strspn(s, " \t");
	escaped = *s == '\\';
	s += escaped;
	l->hex = s;
	n = strspn(s, "0123456789abcdefABCDEF");
	if (n < 2 || n % 2 || n >= CHECKSUM_HEX || s[n] != ' ')
		return false;
	s[n] = '\0';
	s += n + 1;
	if (*s != ' ' && *s != '*')
		return false;
	l->name = s + 1;
	return *l->name && (!escaped || unescape(l->name));
}

/* ---- verifying ------------------------------------------------------------------------------
 */

struct tally {
	unsigned good, bad_lines, unread, wrong;
};

/* As in coreutils: only what has a newline is not shown as it is. */
static void say_name(const char *name)
{
	if (strchr(name, '\n')) {
		putchar('\\');
		put_name(stdout, name);
	} else {
		fputs(name, stdout);
	}
}

static void say(
	const struct checksum_args *a, struct cli_json *j, const char *name, const char *result)
{
	if (a->json) {
		cli_json_open(j, NULL, false);
		cli_json_str(j, "filename", name);
		cli_json_str(j, "result", result);
		cli_json_close(j, false);
		return;
	}
	if (a->quiet && !strcmp(result, "OK"))
		return;
	say_name(name);
	printf(": %s\n", result);
}

static void verify_line(const struct checksum_args *a, const struct line *l, struct tally *t,
	struct cli_json *j)
{
	struct fmt_checksum c;
	char hex[CHECKSUM_HEX];

	t->good++;
	if (checksum_file(a, l->name, &c, hex)) {
		t->unread++;
		say(a, j, l->name, "FAILED open or read");
	} else if (strcasecmp(hex, l->hex) != 0) {
		t->wrong++;
		say(a, j, l->name, "FAILED");
	} else {
		say(a, j, l->name, "OK");
	}
}

static void count(unsigned n, const char *one, const char *many)
{
	if (n)
		fprintf(stderr, "%s: WARNING: %u %s\n", cli_prog, n, n == 1 ? one : many);
}

static int conclude(const struct tally *t, const char *name)
{
	fflush(stdout);
	if (!t->good)
		return cli_error("%s: no properly formatted checksum lines found", name);
	count(t->bad_lines, "line is improperly formatted", "lines are improperly formatted");
	count(t->unread, "listed file could not be read", "listed files could not be read");
	count(t->wrong, "computed checksum did NOT match", "computed checksums did NOT match");
	return t->unread || t->wrong;
}

int checksum_verify(const struct checksum_args *a, const char *name, struct cli_json *j)
{
	bool input = !strcmp(name, "-");
	FILE *f = input ? stdin : fopen(name, "re");
	struct tally t = {0};
	char *text = NULL;
	size_t room = 0;
	struct line l;
	int bad;

	if (!f)
		return cli_error("%s: %s", name, strerror(errno));
	while (getline(&text, &room, f) > 0) {
		if (*text == '#')
			continue;
		if (parse_line(text, &l))
			verify_line(a, &l, &t, j);
		else
			t.bad_lines++;
	}
	bad = ferror(f);
	free(text);
	if (!input)
		fclose(f);
	return bad ? cli_error("%s: read error", name) : conclude(&t, name);
}
