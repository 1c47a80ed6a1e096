/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/fuzz/create.c - any text after `create -o`. What is made of it is a sound image of
 * the length that was asked for, in no more bytes than measure has said.
 */
#include <stdlib.h>

#include "cli/args.c"
#include "t/fuzz/fuzz.h"

#define DISK_MAX (64u << 20)

const char *cli_prog = "fuzz";

void cli_help(void)
{
}

int cli_error(const char *fmt, ...)
{
	(void)fmt;
	return 1;
}

int cli_usage(const char *fmt, ...)
{
	(void)fmt;
	return 1;
}

int cli_object_add(char *arg)
{
	(void)arg;
	return 1;
}

int cli_no_memory(void)
{
	return 1;
}

int cli_done(int status)
{
	return status;
}

static struct blk *empty_disk(void)
{
	static const struct blk_opt size = {"size", "0"};
	static const struct blk_opts opts = {&size, 1};
	struct blk_open o = {
		.driver = "mem", .flags = BLK_RDWR, .opts = &opts, .mem = &fuzz_mem};
	struct blk *b;

	FUZZ_MUST(!blk_open(&b, &o, NULL));
	return b;
}

/* Takes @file. */
static void sound(struct blk *file, const struct fmt_create *c)
{
	struct fmt_open o = {.format = c->format, .mem = &fuzz_mem};
	struct blk_err err = BLK_ERR_INIT;
	struct fmt_check check = {0};
	struct blk *b;
	int code = fmt_open_on(&b, file, &o, &err);

	fuzz_explained(code, &err);
	if (code) {
		FUZZ_MUST(fuzz_mem_ran_out());
		blk_close(file);
		return;
	}
	FUZZ_MUST(blk_size(b) >= c->size && blk_size(b) - c->size < 512);
	code = fmt_check(b, &check, &err);
	fuzz_explained(code, &err);
	FUZZ_MUST(code || !(check.corruptions | check.leaks | check.check_errors));
	(void)fmt_close(b);
}

static void create(struct fmt_create *c)
{
	const struct fmt_driver *d;
	struct blk_err err = BLK_ERR_INIT;
	struct fmt_layout l = {0};
	struct blk *file;
	int code = fmt_create_check(c, &err);
	int measured;

	fuzz_explained(code, &err);
	d = fmt_driver_find(c->format);
	if (code)
		return;
	measured = d->measure ? d->measure(c, &l, &err) : -1;
	if (measured && d->measure)
		fuzz_explained(measured, &err);
	err = (struct blk_err)BLK_ERR_INIT;
	file = empty_disk();
	code = d->create(file, c, &err);
	fuzz_explained(code, &err);
	if (code) {
		blk_close(file);
		return;
	}
	FUZZ_MUST(!d->measure || !measured);
	/* As qemu-img, measure leaves the L1 table of an empty disk out. */
	FUZZ_MUST(measured || !c->size || blk_size(file) <= l.metadata + l.data);
	sound(file, c);
}

/* be32 size of the disk, then the text. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fmt_create c = {.name = "image",
		.format = "qcow2",
		.has_size = true,
		.unsafe_backing = true,
		.mem = &fuzz_mem};
	struct cli_opts l = {0};
	char *text, *backing = NULL, *format = NULL;

	if (len < 4)
		return -1;
	c.size = thr_be32(data) % DISK_MAX;
	text = malloc(len - 3);
	FUZZ_MUST(text);
	memcpy(text, data + 4, len - 4);
	text[len - 4] = '\0';
	if (!cli_opts_add(&l, text)) {
		c.backing = backing = cli_opts_take(&l, "backing_file");
		c.backing_format = format = cli_opts_take(&l, "backing_fmt");
		c.opts = &l.o;
		create(&c);
	}
	free(backing);
	free(format);
	cli_opts_free(&l);
	free(text);
	fuzz_mem_end();
	return 0;
}
