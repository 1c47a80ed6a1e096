/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/fuzz/lists.c - any bytes as a list of checksums to verify (cli/checksum_list.c). A
 * line that is one is the same when it is written again and read once more. Nothing is
 * opened.
 */
#include <stdlib.h>

#include "cli/checksum_list.c"
#include "t/fuzz/fuzz.h"

const char *cli_prog = "fuzz";

int cli_error(const char *fmt, ...)
{
	(void)fmt;
	return 1;
}

void cli_json_open(struct cli_json *j, const char *key, bool array)
{
	(void)j;
	(void)key;
	(void)array;
}

void cli_json_str(struct cli_json *j, const char *key, const char *val)
{
	(void)j;
	FUZZ_MUST(*key && *val);
}

void cli_json_close(struct cli_json *j, bool array)
{
	(void)j;
	(void)array;
}

int checksum_file(
	const struct checksum_args *a, const char *name, struct fmt_checksum *c, char *hex)
{
	(void)a;
	(void)name;
	(void)c;
	(void)hex;
	return 1;
}

static void again(const struct line *l)
{
	struct line m;
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	FUZZ_MUST(f);
	checksum_line(f, l->hex, l->name);
	FUZZ_MUST(!fclose(f));
	FUZZ_MUST(n && text[n - 1] == '\n' && !memchr(text, '\n', n - 1));
	FUZZ_MUST(parse_line(text, &m));
	FUZZ_MUST(!strcmp(m.hex, l->hex) && !strcmp(m.name, l->name));
	free(text);
}

static void one_line(const uint8_t *data, size_t len)
{
	char *text = malloc(len + 1);
	struct line l;

	FUZZ_MUST(text);
	memcpy(text, data, len);
	text[len] = '\0';
	if (parse_line(text, &l)) {
		FUZZ_MUST(l.hex >= text && strlen(l.hex) < CHECKSUM_HEX);
		FUZZ_MUST(l.name + strlen(l.name) <= text + len);
		again(&l);
	}
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const uint8_t *nl;

	for (; len; len -= (size_t)(nl - data), data = nl) {
		nl = memchr(data, '\n', len);
		nl = nl ? nl + 1 : data + len;
		one_line(data, (size_t)(nl - data));
	}
	return 0;
}
