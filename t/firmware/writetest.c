/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/firmware/writetest.c - what the firmware profile that writes is shown to do.
 *
 * Takes the image that the host has made (file DISK) into a disk in memory, does random
 * writes, zero writes, discards, flushes and opens to it beside a plain copy of what the
 * guest should see, compares the two all along, and checks the image. Then it goes on in
 * less and less memory: a step fails for lack of it, and nothing else is lost. The image is
 * given back as the file DISK.out for the host to check, with the CRC-32 of its content.
 */
#include "fmt/fmt.h"
#include "t/firmware/arena.h"
#include "t/firmware/board.h"
#include "t/firmware/ramdisk.h"
#include "t/firmware/say.h"

#define GUEST  (1u << 20)
#define DISK   (3u << 20)
#define HEAP   (2u << 20)
#define STEPS  3000
#define FEW    60
#define LENGTH (24u << 10) /* of a request, at most */

static uint8_t guest[GUEST], buf[LENGTH];
static uint32_t state = 2463534242u;
static uint32_t last_off, last_len; /* what the last step was about */

/* Marsaglia's xorshift, 32 bits. */
static uint32_t dice(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state % below;
}

static int fail(const char *what, int code)
{
	board_print(what);
	say_number(code);
	board_print("\n");
	return 1;
}

static int open_disk(struct blk **out, uint8_t *disk, size_t size, const struct thr_alloc *mem)
{
	struct blk_err err = BLK_ERR_INIT;
	struct fmt_open o = {.format = "qcow2", .mem = mem, .blk_flags = BLK_RDWR};
	struct blk *file;
	int code = ramdisk_open(&file, disk, size, DISK, mem);

	if (code)
		return code;
	code = fmt_open_on(out, file, &o, &err);
	if (code)
		blk_close(file);
	return code;
}

static void fill(uint8_t *p, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		p[i] = (uint8_t)(dice(256) | 1);
}

static int write_some(struct blk *b, uint32_t off, uint32_t len)
{
	fill(guest + off, len);
	return blk_pwrite(b, off, guest + off, len);
}

static int zero_some(struct blk *b, uint32_t off, uint32_t len)
{
	struct blk_req r = {.off = off, .len = len, .flags = dice(2) ? BLK_UNMAP : 0};

	memset(guest + off, 0, len);
	return blk_zero(b, &r);
}

/* What is discarded reads as it did or as zeroes: it is made to be known. */
static int discard_some(struct blk *b, uint32_t off, uint32_t len)
{
	struct blk_req r = {.off = off, .len = len};
	int err = blk_discard(b, &r);

	return err ? err : zero_some(b, off, len);
}

static int compare_some(struct blk *b, uint32_t off, uint32_t len)
{
	int err = blk_pread(b, off, buf, len);

	if (!err && memcmp(buf, guest + off, len))
		err = -THR_EIO;
	return err;
}

static int step(struct blk *b)
{
	uint32_t off = dice(GUEST), len = 1 + dice(dice(4) ? 3000 : LENGTH);

	len = THR_MIN(len, GUEST - off);
	last_off = off;
	last_len = len;
	switch (dice(10)) {
	case 0:
		return zero_some(b, off, len);
	case 1:
		return discard_some(b, off, len);
	case 2:
		return blk_flush(b);
	case 3:
	case 4:
	case 5:
		return compare_some(b, off, len);
	default:
		return write_some(b, off, len);
	}
}

static int check(struct blk *b, unsigned fix)
{
	struct blk_err err = BLK_ERR_INIT;
	struct fmt_check c = {.fix = fix};
	int code = fmt_driver_of(b)->check(b, &c, &err);

	if (code)
		return code;
	return c.corruptions || c.leaks || c.check_errors ? -THR_EUCLEAN : 0;
}

static int compare_all(struct blk *b)
{
	int code = 0;

	for (uint32_t at = 0; !code && at < GUEST; at += 16384)
		code = compare_some(b, at, 16384);
	return code;
}

static int work(struct blk *b)
{
	int code = 0;

	for (int i = 0; !code && i < STEPS; i++)
		code = step(b);
	if (!code)
		code = compare_all(b);
	if (!code)
		code = blk_flush(b);
	return code ? code : check(b, 0);
}

/* The image is opened three times, for what is only seen after a close. */
static int all_work(uint8_t *disk, size_t *size, struct arena *a)
{
	int code = 0;

	for (int round = 0; !code && round < 3; round++) {
		struct blk *b;

		code = open_disk(&b, disk, *size, &a->mem);
		if (code)
			break;
		code = work(b);
		*size = (size_t)blk_size(b->file);
		if (!code)
			code = fmt_close(b);
		else
			(void)fmt_close(b);
		if (!code && a->used)
			code = -THR_EBUSY;
	}
	return code;
}

/* After a step that has failed with @code, and a close with @closed: what that step was
 * about is taken as it is, and all of it if what came before it may not be durable; the
 * rest is as it should be. Leaks are allowed, also where all went well: a cluster that there
 * is no memory to remember is one. They are repaired. */
static int mend(uint8_t *disk, struct arena *a, int code, int closed)
{
	struct blk *b;
	int err = open_disk(&b, disk, DISK, &a->mem);

	if (err)
		return err;
	if (closed)
		err = blk_pread(b, 0, guest, GUEST);
	else if (code)
		err = blk_pread(b, last_off, guest + last_off, last_len);
	if (!err)
		err = check(b, FMT_FIX_LEAKS);
	if (!err)
		err = compare_all(b);
	return err ? (void)fmt_close(b), err : fmt_close(b);
}

static int try_in(uint8_t *disk, uint8_t *heap, size_t bytes, bool *enough)
{
	struct arena a;
	struct blk *b;
	int code, closed = 0;

	arena_init(&a, heap, bytes);
	last_len = 0;
	code = open_disk(&b, disk, DISK, &a.mem);
	if (!code) {
		for (int i = 0; !code && i < FEW; i++)
			code = step(b);
		closed = fmt_close(b);
	}
	*enough = !code && !closed;
	if ((code && code != -THR_ENOMEM) || (closed && closed != -THR_ENOMEM))
		return code ? code : closed;
	if (a.used)
		return -THR_EBUSY;
	arena_init(&a, heap, HEAP);
	return mend(disk, &a, code, closed);
}

/* From what all of the work needed, down to nothing. */
static int in_less_memory(uint8_t *disk, uint8_t *heap, size_t peak)
{
	unsigned good = 0, bad = 0;
	int code = 0;

	for (size_t bytes = peak; !code && bytes >= 64; bytes -= bytes / 12 + 16) {
		bool enough;

		code = try_in(disk, heap, bytes, &enough);
		good += enough;
		bad += !enough;
	}
	board_print("in less memory, well and not:");
	say_number((int32_t)good);
	say_number((int32_t)bad);
	board_print("\n");
	return code ? code : good && bad ? 0 : -THR_EINVAL;
}

int selftest(void)
{
	uint8_t *disk = board_memory, *heap = board_memory + DISK;
	int handle = board_open("DISK"), code;
	int64_t size = handle < 0 ? -1 : board_size(handle);
	struct arena a;
	size_t len;

	if (size <= 0 || size > DISK || board_read(handle, 0, disk, (size_t)size))
		return fail("no DISK", 0);
	board_close(handle);
	len = (size_t)size;
	arena_init(&a, heap, HEAP);
	code = all_work(disk, &len, &a);
	if (code)
		return fail("FAILED", code);
	/* From here on the file has its full length: who closes it need not be asked. */
	memset(disk + len, 0, DISK - len);
	code = in_less_memory(disk, heap, a.peak);
	if (code)
		return fail("FAILED in little memory", code);
	if (board_save("DISK.out", disk, DISK))
		return fail("DISK.out cannot be written", 0);
	board_print("content");
	say_hex(~crc_add(0xffffffffu, guest, GUEST));
	board_print("\nmemory needed:");
	say_number((int32_t)a.peak);
	board_print("\ndone\n");
	return 0;
}
