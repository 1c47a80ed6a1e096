/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/props.c - what only a format knows of an image, in lines of "key: value".
 */
#include <inttypes.h>
#include <stdio.h>

#include "cli/props.h"

#define MAX_DEPTH 16

/* Nested values are indented by four; the items of a list are numbered. */
struct lines {
	struct fmt_sink sink;
	bool begun;
	unsigned depth;
	int item[MAX_DEPTH]; /* of the list at this depth; -1: no list */
};

static void start(struct lines *l, const char *key)
{
	if (!l->begun)
		puts("Format specific information:");
	l->begun = true;
	printf("%*s", 4 * ((int)l->depth + 1), "");
	if (!key) {
		printf("[%d]:", l->item[l->depth]++);
		return;
	}
	for (; *key; key++)
		putchar(*key == '-' ? ' ' : *key);
	putchar(':');
}

static void put_str(struct fmt_sink *s, const char *key, const char *val)
{
	start((struct lines *)(void *)s, key);
	printf(" %s\n", val);
}

static void put_num(struct fmt_sink *s, const char *key, uint64_t val)
{
	start((struct lines *)(void *)s, key);
	printf(" %" PRIu64 "\n", val);
}

static void put_flag(struct fmt_sink *s, const char *key, bool val)
{
	put_str(s, key, val ? "true" : "false");
}

static void put_open(struct fmt_sink *s, const char *key, bool array)
{
	struct lines *l = (struct lines *)(void *)s;

	(void)array;
	start(l, key);
	putchar('\n');
	l->depth = THR_MIN(l->depth + 1, MAX_DEPTH - 1);
	l->item[l->depth] = 0;
}

static void put_close(struct fmt_sink *s)
{
	struct lines *l = (struct lines *)(void *)s;

	l->depth -= l->depth > 0;
}

void cli_props(struct blk *image)
{
	struct lines l = {.sink = {put_str, put_num, put_flag, put_open, put_close}};

	fmt_props(image, &l.sink);
}
