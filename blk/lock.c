/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/lock.c - byte-range locks on image files, compatible with QEMU's.
 *
 * What a user of an image does is a set of numbered permissions: 0 reads consistent
 * data, 1 writes, 3 resizes. Doing permission n is shown by a shared lock on byte
 * 100 + n; not letting others do it by a shared lock on byte 200 + n. Shared locks
 * never collide, so a user first takes its own and then asks whether anybody holds
 * the opposite byte; two that start together both see each other, and at least one
 * gives up. The locks belong to the open file description (F_OFD_SETLK) and go when
 * it is closed. The bytes were learnt by watching qemu-img and qemu-io 7.2.
 *
 * A reader keeps writers out, because an image that changes underneath has no
 * consistent content; -U (the shared kinds) asks for less.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "blk/file.h"

enum {
	DOES = 100,
	DENIES = 200,
	READ = 1u << 0,
	WRITE = 1u << 1,
	RESIZE = 1u << 3,
};

static const struct {
	uint8_t does;
	uint8_t denies;
} sets[] = {
	[FILE_LOCK_READ] = {READ, WRITE | RESIZE},
	[FILE_LOCK_READ_SHARED] = {READ, 0},
	[FILE_LOCK_WRITE] = {READ | WRITE | RESIZE, WRITE | RESIZE},
	[FILE_LOCK_WRITE_SHARED] = {READ | WRITE | RESIZE, 0},
	[FILE_LOCK_CREATE] = {WRITE | RESIZE, RESIZE},
};

static const char *const names[][2] = {
	{"\"consistent read\"", "shared \"consistent read\""},
	{"\"write\"", "shared \"write\""},
	{"\"write unchanged\"", "shared \"write unchanged\""},
	{"\"resize\"", "shared \"resize\""},
};

static int lock_byte(int fd, unsigned byte)
{
	struct flock l = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

	while (fcntl(fd, F_OFD_SETLK, &l)) {
		if (errno != EINTR)
			return -errno;
	}
	return 0;
}

/* -EAGAIN where another description holds @byte. */
static int ask_byte(int fd, unsigned byte)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

	while (fcntl(fd, F_OFD_GETLK, &l)) {
		if (errno != EINTR)
			return -errno;
	}
	return l.l_type == F_UNLCK ? 0 : -EAGAIN;
}

static int refuse(int code, unsigned perm, bool shared, struct blk_err *err)
{
	if (code != -EAGAIN && code != -EACCES)
		return blk_fail_str(err, code, BLK_E_SYS_WHAT, "Failed to lock the file");
	if (perm == 1)
		return blk_fail(err, -EAGAIN,
			shared ? BLK_E_LOCK_SHARED_WRITE : BLK_E_LOCK_WRITE, 0, 0);
	return blk_fail_str(err, -EAGAIN, BLK_E_LOCK_OTHER, names[perm][shared]);
}

static int take(int fd, unsigned base, unsigned perms, struct blk_err *err)
{
	for (unsigned n = 0; n < THR_ARRAY_SIZE(names); n++) {
		int code = perms & 1u << n ? lock_byte(fd, base + n) : 0;

		if (code)
			return refuse(code, n, base == DENIES, err);
	}
	return 0;
}

/* Does anybody hold the bytes that are opposite to @perms? */
static int ask(int fd, unsigned opposite, unsigned perms, struct blk_err *err)
{
	for (unsigned n = 0; n < THR_ARRAY_SIZE(names); n++) {
		int code = perms & 1u << n ? ask_byte(fd, opposite + n) : 0;

		if (code)
			return refuse(code, n, opposite == DOES, err);
	}
	return 0;
}

static void let_go(int fd)
{
	struct flock l = {.l_type = F_UNLCK,
		.l_whence = SEEK_SET,
		.l_start = DOES,
		.l_len = DENIES - DOES + THR_ARRAY_SIZE(names)};

	fcntl(fd, F_OFD_SETLK, &l);
}

int blk_file_lock(
	int fd, enum file_lock_for what, enum file_locking locking, struct blk_err *err)
{
	struct flock l = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0};
	int ret;

	if (locking == FILE_LOCK_OFF)
		return 0;
	if (fcntl(fd, F_OFD_GETLK, &l) && locking == FILE_LOCK_AUTO)
		return 0;

	ret = take(fd, DOES, sets[what].does, err);
	if (!ret)
		ret = take(fd, DENIES, sets[what].denies, err);
	if (!ret)
		ret = ask(fd, DENIES, sets[what].does, err);
	if (!ret)
		ret = ask(fd, DOES, sets[what].denies, err);
	if (ret)
		let_go(fd);
	return ret;
}
