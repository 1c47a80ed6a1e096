/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/fuzz/words.c - any text where the libraries expect a size, a switch, a cache mode,
 * a preallocation mode or the name of a backing file.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "fmt/fmt.h"
#include "t/fuzz/fuzz.h"

static void sizes(const char *s)
{
	uint64_t v = 1, again = 0;
	char text[24];
	int code = blk_parse_size(s, &v);

	FUZZ_MUST(!code || code == -THR_EINVAL || code == -THR_ERANGE);
	if (code)
		return;
	snprintf(text, sizeof(text), "%" PRIu64, v);
	FUZZ_MUST(!blk_parse_size(text, &again) && again == v);
}

static void modes(const char *s)
{
	unsigned flags = BLK_RDWR | BLK_SHARE;
	enum blk_prealloc p;

	if (!blk_cache_parse(s, &flags))
		FUZZ_MUST(*s);
	FUZZ_MUST((flags & (BLK_RDWR | BLK_SHARE)) == (BLK_RDWR | BLK_SHARE));
	FUZZ_MUST(!(flags & ~(unsigned)(BLK_RDWR | BLK_SHARE | BLK_NOCACHE | BLK_NOFLUSH |
					BLK_WRITETHROUGH)));
	if (!blk_prealloc_parse(s, &p))
		FUZZ_MUST(p <= BLK_PREALLOC_FULL);
}

static void options(const char *key, const char *val)
{
	static const char *const known[] = {"size", "cluster_size", NULL};
	const struct blk_opt v[] = {{"size", "1"}, {key, val}, {"flag", val}};
	const struct blk_opts o = {v, THR_ARRAY_SIZE(v)};
	struct blk_err err = BLK_ERR_INIT;
	uint64_t n;
	bool on;
	int code = blk_opt_bool(&o, "flag", true, &on, &err);

	fuzz_explained(code, &err);
	err = (struct blk_err)BLK_ERR_INIT;
	code = blk_opt_size(&o, key, 7, &n, &err);
	fuzz_explained(code, &err);
	err = (struct blk_err)BLK_ERR_INIT;
	code = blk_opts_known(&o, known, &err);
	FUZZ_MUST(code); /* "flag" is not */
	fuzz_explained(code, &err);
	FUZZ_MUST(blk_opt(&o, "flag"));
}

static void names(const char *image, const char *name)
{
	size_t size = strlen(image) + strlen(name) + 1;
	char *buf = malloc(size);
	int code;

	FUZZ_MUST(buf);
	code = fmt_backing_path(image, name, buf, size);
	FUZZ_MUST(!code);
	FUZZ_MUST(strlen(buf) >= strlen(name));
	FUZZ_MUST(!strcmp(buf + strlen(buf) - strlen(name), name));
	free(buf);
	/* One byte too few, if the folder is needed, and never one too many. */
	size = 1 + strlen(name) / 2;
	buf = malloc(size);
	FUZZ_MUST(buf);
	code = fmt_backing_path(image, name, buf, size);
	FUZZ_MUST(code == -THR_ENAMETOOLONG || strlen(buf) < size);
	free(buf);
}

/* Two texts, with a NUL between. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *text = malloc(len + 2);
	const char *second;

	FUZZ_MUST(text);
	memcpy(text, data, len);
	text[len] = text[len + 1] = '\0';
	second = text + strlen(text) + 1;
	if (second > text + len)
		second = text + len;
	sizes(text);
	modes(text);
	options(second, text);
	names(text, second);
	free(text);
	return 0;
}
