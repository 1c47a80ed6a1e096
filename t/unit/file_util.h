/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the tests of the file driver share.
 */
#ifndef T_FILE_UTIL_H
#define T_FILE_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "blk/blk.h"

static inline int t_open(struct blk **out, const char *name, unsigned flags, const char *engine,
	struct blk_err *err)
{
	struct blk_opt v = {"engine", engine};
	struct blk_opts opts = {&v, engine ? 1 : 0};
	struct blk_open o = {
		.name = name,
		.driver = "file",
		.flags = flags,
		.opts = &opts,
		.mem = &thr_heap,
	};

	return blk_open(out, &o, err);
}

/* Opens or fails the test, saying why. */
static inline struct blk *t_must_open(const char *name, unsigned flags, const char *engine)
{
	struct blk_err err = BLK_ERR_INIT;
	struct blk *b = NULL;

	if (t_open(&b, name, flags, engine, &err)) {
		char text[1024];

		blk_err_text(&err, text, sizeof(text));
		fail_msg("%s", text);
	}
	return b;
}

static inline void t_put_file(const char *name, const void *data, size_t len)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
	close(fd);
}

static inline void t_get_file(const char *name, void *data, size_t len)
{
	struct stat st;
	int fd = open(name, O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, len);
	assert_int_equal(read(fd, data, len), len);
	close(fd);
}

static inline uint64_t t_stored(const char *name)
{
	struct stat st;

	assert_int_equal(stat(name, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

/* A generator of one's own, so that a failure repeats. */
static inline uint32_t t_rand(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*seed >> 33);
}

static inline void t_noise(void *p, size_t len, uint64_t seed)
{
	uint8_t *b = (uint8_t *)p;

	for (size_t i = 0; i < len; i++)
		b[i] = (uint8_t)t_rand(&seed);
}

/* Whether the folder's file system does O_DIRECT. */
static inline bool t_direct_works(void)
{
	int fd = open("direct.probe", O_RDWR | O_CREAT | O_DIRECT, 0644);

	if (fd >= 0)
		close(fd);
	unlink("direct.probe");
	return fd >= 0;
}

#define t_skip(why)                                                                            \
	do {                                                                                   \
		print_message("# SKIP %s\n", why);                                             \
		skip();                                                                        \
	} while (0)

#endif
