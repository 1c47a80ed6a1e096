/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/blk_serve_file.c - reads that an NBD server sends out of a file in memory. The
 * device and the file that it is said to be differ here, so that what arrives tells
 * which of them it came from.
 */
#include <sys/mman.h>

#include "serve_util.h"

#define LEN MIB

static uint8_t got[LEN];

struct file_rig {
	struct rig g;
	int fd;
	struct blk *plain;
};

static uint8_t plain_byte(uint64_t i)
{
	return (uint8_t)(i * 5 + i / 4096 * 3 + 1);
}

static void file_open(struct file_rig *f, uint64_t size)
{
	static uint8_t some[65536];
	char name[64];
	struct blk_open o = {.name = name, .flags = BLK_NO_LOCK, .mem = &thr_heap};

	rig_open(&f->g, BLK_RDWR);
	f->fd = memfd_create("plain", MFD_CLOEXEC);
	assert_true(f->fd >= 0);
	for (uint64_t off = 0; off < size; off += sizeof(some)) {
		for (unsigned i = 0; i < sizeof(some); i++)
			some[i] = plain_byte(off + i);
		assert_int_equal(
			pwrite(f->fd, some, sizeof(some), (off_t)off), (int)sizeof(some));
	}
	snprintf(name, sizeof(name), "/proc/self/fd/%d", f->fd);
	assert_int_equal(blk_open(&f->plain, &o, NULL), 0);
	f->g.exports[0].plain = f->plain;
}

static void file_close(struct file_rig *f)
{
	rig_close(&f->g);
	blk_close(f->plain);
	close(f->fd);
}

static bool from_plain(uint64_t off, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		if (got[i] != plain_byte(off + i))
			return false;
	return true;
}

/* The reply's payload is in got[]. */
static void read_it(struct rig *g, bool structured, uint64_t off, uint32_t len)
{
	ask(g, NBDP_CMD_READ, 0, 9, off, len);
	if (structured) {
		struct chunk k = chunk(g, 9);

		assert_int_equal(k.type, NBDP_REPLY_OFFSET_DATA);
		assert_int_equal(k.flags, NBDP_REPLY_DONE);
		assert_int_equal(k.len, len + 8);
		assert_true(get64(g) == off);
	} else {
		assert_int_equal(simple(g, 9), 0);
	}
	get(g, got, len);
}

static void from_the_file(void **state)
{
	struct file_rig f;
	struct rig *g = &f.g;

	(void)state;
	file_open(&f, SIZE);
	for (int structured = 0; structured < 2; structured++) {
		start(g, "disk", structured);
		read_it(g, structured, 3 * MIB, LEN);
		assert_true(from_plain(3 * MIB, LEN));
		read_it(g, structured, 5 * MIB + 512, LEN - 512);
		assert_true(from_plain(5 * MIB + 512, LEN - 512));
		/* Short ones are copied. */
		read_it(g, structured, 3 * MIB + 1, 4096);
		assert_memory_equal(got, g->disk + 3 * MIB + 1, 4096);
		leave(g);
	}
	file_close(&f);
}

/* More than a socket takes at once, from a client that is slow to read them. */
static void many_at_once(void **state)
{
	struct file_rig f;
	struct rig *g = &f.g;

	(void)state;
	file_open(&f, SIZE);
	start(g, "disk", false);
	for (unsigned i = 0; i < 24; i++)
		ask(g, NBDP_CMD_READ, 0, 9, 2 * MIB + i * 4096, i % 3 ? LEN : 4096);
	usleep(20000);
	for (unsigned i = 0; i < 24; i++) {
		uint32_t len = i % 3 ? LEN : 4096;

		assert_int_equal(simple(g, 9), 0);
		get(g, got, len);
		if (i % 3)
			assert_true(from_plain(2 * MIB + i * 4096, len));
		else
			assert_memory_equal(got, g->disk + 2 * MIB + i * 4096, len);
	}
	leave(g);
	file_close(&f);
}

/* The file is shorter than the export, or has become so: the device is asked. */
static void past_its_end(void **state)
{
	struct file_rig f;
	struct rig *g = &f.g;

	(void)state;
	file_open(&f, 4 * MIB);
	start(g, "disk", true);
	read_it(g, true, 4 * MIB - 4096, LEN);
	assert_memory_equal(got, g->disk + 4 * MIB - 4096, LEN);
	assert_int_equal(ftruncate(f.fd, 3 * MIB), 0);
	read_it(g, true, 3 * MIB, LEN);
	assert_memory_equal(got, g->disk + 3 * MIB, LEN);
	read_it(g, true, 2 * MIB, LEN);
	assert_true(from_plain(2 * MIB, LEN));
	leave(g);
	file_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(from_the_file),
		cmocka_unit_test(many_at_once),
		cmocka_unit_test(past_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
