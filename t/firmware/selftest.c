/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/firmware/selftest.c - what the firmware profile is shown to do, on the board itself.
 *
 * Reads the images that the file LIST names, one to a line, with their backing files,
 * and prints for each the CRC-32 of what the guest sees or why it cannot be read. An
 * image in flash comes first. Last it opens and reads the first of them in less and less
 * memory: each time that must work, or fail for lack of memory and leave nothing behind.
 * t/tree/firmware.sh knows what has to be printed.
 */
#include "fmt/fmt.h"
#include "t/firmware/arena.h"
#include "t/firmware/board.h"
#include "t/firmware/hostfile.h"
#include "t/firmware/inflate.h"
#include "t/firmware/say.h"

#define STEP       3000u /* no multiple of anything, so that reads straddle */
#define WHOLE      (8u << 20)
#define PART       (128u << 10)
#define CHAIN      4
#define NAME       96
#define LIST_BYTES 12288

/* ---- reading --------------------------------------------------------------------------- */

static int read_range(struct blk *b, uint64_t off, uint64_t end, uint32_t *crc)
{
	static uint8_t buf[STEP];

	while (off < end) {
		size_t n = (size_t)THR_MIN(end - off, STEP);
		int err = blk_pread(b, off, buf, n);

		if (err)
			return err;
		*crc = crc_add(*crc, buf, n);
		off += n;
	}
	return 0;
}

/* All of the disk, or the two ends of a large one. */
static int read_disk(struct blk *b, uint32_t *crc)
{
	uint64_t size = blk_size(b);
	int err;

	*crc = 0xffffffffu;
	if (size <= WHOLE) {
		err = read_range(b, 0, size, crc);
	} else {
		err = read_range(b, 0, PART, crc);
		if (!err)
			err = read_range(b, size - PART, size, crc);
	}
	*crc = ~*crc;
	return err;
}

/* Opens @file as one image of a chain whose tables share @cache. */
static int open_layer(
	struct blk **out, struct blk *file, const struct fmt_open *o, struct blk_err *err)
{
	int code = fmt_open_on(out, file, o, err);

	if (code)
		blk_close(file);
	return code;
}

/* The images below @top, by the names that they have for each other. */
static int open_below(struct blk *top, const struct thr_alloc *mem, struct blk_err *err)
{
	const char *name, *format;
	struct blk *file, *image;

	for (int i = 0; i < CHAIN; i++, top = image) {
		struct fmt_open o = {.mem = mem};
		const struct fmt_driver *d = fmt_driver_of(top);
		int code = d->backing ? d->backing(top, &name, &format) : -THR_ENOENT;

		if (code)
			return code == -THR_ENOENT ? 0 : code;
		o.format = *format ? format : NULL;
		code = hostfile_open(&file, name, mem);
		if (!code)
			code = open_layer(&image, file, &o, err);
		if (code)
			return code;
		fmt_set_backing(top, image);
	}
	return -THR_ELOOP;
}

/* Takes over @file. */
static int read_image(
	struct blk *file, const struct thr_alloc *mem, uint32_t *crc, struct blk_err *err)
{
	struct fmt_open o = {.format = "qcow2", .mem = mem};
	struct blk *image;
	int code = open_layer(&image, file, &o, err);

	if (code)
		return code;
	code = open_below(image, mem, err);
	if (!code)
		code = read_disk(image, crc);
	(void)fmt_close(image);
	return code;
}

static int read_named(
	const char *name, const struct thr_alloc *mem, uint32_t *crc, struct blk_err *err)
{
	struct blk *file;
	int code = hostfile_open(&file, name, mem);

	return code ? code : read_image(file, mem, crc, err);
}

/* ---- the parts of the test ------------------------------------------------------------ */

static int report(struct arena *a, const char *name, int code, uint32_t crc)
{
	board_print(name);
	if (code)
		say_number(code);
	else
		say_hex(crc);
	board_print("\n");
	if (!a->used)
		return 0;
	board_print("memory was not given back\n");
	return 1;
}

static int try_flash(struct arena *a)
{
	struct blk_err err = BLK_ERR_INIT;
	uint32_t crc = 0;
	struct blk *file;
	int code;

	if (!board_flash_size)
		return 0;
	code = blk_mem_open(
		&file, (void *)(uintptr_t)board_flash, board_flash_size, 0, &a->mem, &err);
	if (!code)
		code = read_image(file, &a->mem, &crc, &err);
	return report(a, "flash", code, crc);
}

static int try_list(struct arena *a, char *list)
{
	int bad = 0;

	while (*list) {
		struct blk_err err = BLK_ERR_INIT;
		char *name = list;
		uint32_t crc = 0;
		int code;

		while (*list && *list != '\n')
			list++;
		if (*list)
			*list++ = 0;
		code = read_named(name, &a->mem, &crc, &err);
		bad |= report(a, name, code, crc);
	}
	return bad;
}

static int in_less_memory(const char *name)
{
	size_t size, step, peak = 0;
	struct arena a;

	for (size = board_memory_size; size >= 16; size -= step) {
		struct blk_err err = BLK_ERR_INIT;
		uint32_t crc;
		int code;

		arena_init(&a, board_memory, size);
		code = read_named(name, &a.mem, &crc, &err);
		if (a.used || (code && code != -THR_ENOMEM)) {
			board_print("in little memory:");
			say_number((int32_t)size);
			say_number(code);
			board_print("\n");
			return 1;
		}
		step = size > 16384 ? size >> 8 & ~(size_t)15 : 16;
		if (code)
			continue;
		/* What is more than it needs need not be shown again. */
		peak = a.peak;
		size = THR_MIN(size, peak + 64) & ~(size_t)15;
		step = 16;
	}
	board_print("memory needed:");
	say_number((int32_t)peak);
	board_print("\n");
	return peak == 0;
}

static char list[LIST_BYTES];

static int read_list(void)
{
	int handle = board_open("LIST");
	int64_t size = handle < 0 ? -1 : board_size(handle);

	if (size <= 0 || size >= LIST_BYTES || board_read(handle, 0, list, (size_t)size)) {
		board_print("no LIST\n");
		return 1;
	}
	board_close(handle);
	return 0;
}

int selftest(void)
{
	static char first[NAME];
	struct arena a;
	int bad = read_list();

	if (bad)
		return bad;
	for (size_t i = 0; i < NAME - 1 && list[i] != '\n'; i++)
		first[i] = list[i];
	inflate_register();
	arena_init(&a, board_memory, board_memory_size);
	bad |= try_flash(&a);
	bad |= try_list(&a, list);
	bad |= in_less_memory(first);
	board_print(bad ? "FAILED\n" : "done\n");
	return bad;
}
