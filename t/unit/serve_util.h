/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/serve_util.h - an NBD server on one end of a socket, and a client's words on the
 * other. The client is the test's own thread, the server a pool of one executor; memory
 * is counted.
 */
#ifndef T_UNIT_SERVE_UTIL_H
#define T_UNIT_SERVE_UTIL_H

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "blk/nbd_proto.h"
#include "blk_util.h"

#define MIB  (1u << 20)
#define SIZE (8u * MIB)

struct rig {
	struct purse purse;
	struct thr_pool *pool;
	uint8_t *disk;
	struct blk *dev;
	struct blk_nbd_export exports[2];
	struct blk_nbd_context contexts[2];
	struct blk_nbd_server server;
	int mine, theirs; /* ends of the connection */
	int ret;
};

/* ---- contexts ---- */

/* The second MiB is a hole. */
static inline int allocation(
	void *arg, uint64_t off, uint64_t len, uint64_t *n, uint32_t *flags)
{
	(void)arg;
	(void)len;
	*flags = off / MIB == 1 ? BLK_NBD_HOLE | BLK_NBD_ZERO : 0u;
	*n = off < MIB ? MIB - off : off < 2 * MIB ? 2 * MIB - off : SIZE - off;
	return 0;
}

/* Every other 64 KiB is dirty, and the last MiB cannot be told. */
static inline int dirty(void *arg, uint64_t off, uint64_t len, uint64_t *n, uint32_t *flags)
{
	(void)arg;
	(void)len;
	*flags = off / 65536 & 1;
	*n = 65536 - off % 65536;
	return off >= 7 * MIB ? -EIO : 0;
}

/* ---- both sides ---- */

static inline void serve_fiber(void *arg)
{
	struct rig *g = (struct rig *)arg;

	g->ret = blk_nbd_serve_one(&g->server, g->theirs);
}

static inline void rig_open(struct rig *g, unsigned flags)
{
	memset(g, 0, sizeof(*g));
	purse_init(&g->purse);
	g->disk = (uint8_t *)malloc(SIZE);
	for (unsigned i = 0; i < SIZE; i++)
		g->disk[i] = (uint8_t)(i * 7 + i / 4096);
	memset(g->disk + MIB, 0, MIB);
	assert_int_equal(blk_mem_open(&g->dev, g->disk, SIZE, flags, &thr_heap, NULL), 0);
	g->contexts[0] = (struct blk_nbd_context){"base:allocation", allocation, g};
	g->contexts[1] = (struct blk_nbd_context){"qemu:dirty-bitmap:b0", dirty, g};
	g->exports[0] = (struct blk_nbd_export){.dev = g->dev,
		.name = "disk",
		.description = "a disk",
		.contexts = g->contexts,
		.ncontexts = 2};
	g->exports[1] = (struct blk_nbd_export){.dev = g->dev, .name = "", .read_only = true};
	g->server = (struct blk_nbd_server){
		.exports = g->exports, .nexports = 2, .stop_fd = -1, .mem = &g->purse.mem};
	assert_int_equal(thr_pool_open(&g->pool, 1, &thr_heap), 0);
}

static inline void join(struct rig *g)
{
	int sv[2];
	struct timeval patience = {.tv_sec = 20};

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv), 0);
	g->mine = sv[0];
	g->theirs = sv[1];
	(void)setsockopt(g->mine, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	(void)setsockopt(g->mine, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	assert_int_equal(thr_spawn(thr_pool_exec(g->pool, 0), serve_fiber, g), 0);
}

/* The client has gone: the server goes too and has given all memory back. */
static inline void leave(struct rig *g)
{
	close(g->mine);
	thr_pool_close(g->pool);
	assert_int_equal(g->purse.live, 0);
	assert_int_equal(thr_pool_open(&g->pool, 1, &thr_heap), 0);
}

static inline void rig_close(struct rig *g)
{
	thr_pool_close(g->pool);
	blk_close(g->dev);
	free(g->disk);
}

static inline void put(struct rig *g, const void *p, size_t len)
{
	while (len) {
		ssize_t n = send(g->mine, p, len, MSG_NOSIGNAL);

		assert_true(n > 0);
		p = (const uint8_t *)p + n;
		len -= (size_t)n;
	}
}

static inline void get(struct rig *g, void *p, size_t len)
{
	while (len) {
		ssize_t n = recv(g->mine, p, len, 0);

		assert_true(n > 0);
		p = (uint8_t *)p + n;
		len -= (size_t)n;
	}
}

static inline uint32_t get32(struct rig *g)
{
	uint8_t b[4];

	get(g, b, 4);
	return thr_be32(b);
}

static inline uint64_t get64(struct rig *g)
{
	uint8_t b[8];

	get(g, b, 8);
	return thr_be64(b);
}

static inline unsigned get16(struct rig *g)
{
	uint8_t b[2];

	get(g, b, 2);
	return thr_be16(b);
}

static inline void pass_over(struct rig *g, size_t len)
{
	uint8_t b[4096];

	for (; len; len -= THR_MIN(len, sizeof(b)))
		get(g, b, THR_MIN(len, sizeof(b)));
}

/* The server has hung up. */
static inline void expect_end(struct rig *g)
{
	uint8_t b[4096];
	ssize_t n;

	do {
		n = recv(g->mine, b, sizeof(b), 0);
	} while (n > 0);
	assert_true(n == 0 || errno == ECONNRESET || errno == EPIPE);
}

/* ---- handshake
 * ---------------------------------------------------------------------------------- */

static inline void greet(struct rig *g, uint32_t flags)
{
	uint8_t b[4];

	join(g);
	assert_int_equal(get64(g), NBDP_MAGIC);
	assert_int_equal(get64(g), NBDP_OPT_MAGIC);
	assert_int_equal(get16(g), 3);
	thr_put_be32(b, flags);
	put(g, b, 4);
}

static inline void opt(struct rig *g, uint32_t o, const void *data, uint32_t len)
{
	uint8_t b[16];

	thr_put_be64(b, NBDP_OPT_MAGIC);
	thr_put_be32(b + 8, o);
	thr_put_be32(b + 12, len);
	put(g, b, 16);
	if (data)
		put(g, data, len);
}

/* The next reply's type; its data follow in @data. */
static inline uint32_t reply(struct rig *g, uint32_t o, uint8_t *data, uint32_t *len)
{
	uint32_t type, n;

	assert_true(get64(g) == NBDP_OPT_REPLY_MAGIC);
	assert_int_equal(get32(g), o);
	type = get32(g);
	n = get32(g);
	assert_true(n <= 512);
	get(g, data, n);
	if (len)
		*len = n;
	return type;
}

static inline void expect(struct rig *g, uint32_t o, uint32_t type)
{
	uint8_t b[512];

	assert_int_equal(reply(g, o, b, NULL), type);
}

static inline uint32_t go_data(uint8_t *b, const char *name, unsigned infos)
{
	uint32_t n = (uint32_t)strlen(name);

	thr_put_be32(b, n);
	memcpy(b + 4, name, n);
	thr_put_be16(b + 4 + n, (uint16_t)infos);
	for (unsigned i = 0; i < infos; i++)
		thr_put_be16(b + 6 + n + 2 * i, (uint16_t)(i + 1));
	return 6 + n + 2 * infos;
}

static inline void choose(struct rig *g, const char *name)
{
	uint8_t b[512];
	uint32_t len;

	opt(g, NBDP_OPT_GO, b, go_data(b, name, 0));
	assert_int_equal(reply(g, NBDP_OPT_GO, b, &len), NBDP_REP_INFO);
	assert_int_equal(len, 12);
	assert_true(thr_be64(b + 2) == SIZE);
	expect(g, NBDP_OPT_GO, NBDP_REP_ACK);
}

static inline uint32_t meta_data(uint8_t *b, const char *name, const char *q1, const char *q2)
{
	const char *q[] = {q1, q2};
	uint32_t n = (uint32_t)strlen(name), at = 8 + n;

	thr_put_be32(b, n);
	memcpy(b + 4, name, n);
	thr_put_be32(b + 4 + n, (q1 != NULL) + (q2 != NULL));
	for (int i = 0; i < 2 && q[i]; i++) {
		uint32_t len = (uint32_t)strlen(q[i]);

		thr_put_be32(b + at, len);
		memcpy(b + at + 4, q[i], len);
		at += 4 + len;
	}
	return at;
}

static inline void start(struct rig *g, const char *name, bool structured)
{
	greet(g, 3);
	if (structured) {
		opt(g, NBDP_OPT_STRUCTURED_REPLY, NULL, 0);
		expect(g, NBDP_OPT_STRUCTURED_REPLY, NBDP_REP_ACK);
	}
	choose(g, name);
}

static inline void ask(struct rig *g, unsigned cmd, unsigned flags, uint64_t cookie,
	uint64_t off, uint32_t len)
{
	uint8_t b[28];

	thr_put_be32(b, NBDP_REQUEST_MAGIC);
	thr_put_be16(b + 4, (uint16_t)flags);
	thr_put_be16(b + 6, (uint16_t)cmd);
	thr_put_be64(b + 8, cookie);
	thr_put_be64(b + 16, off);
	thr_put_be32(b + 24, len);
	put(g, b, 28);
}

static inline uint32_t simple(struct rig *g, uint64_t cookie)
{
	uint32_t error;

	assert_int_equal(get32(g), NBDP_SIMPLE_MAGIC);
	error = get32(g);
	assert_true(get64(g) == cookie);
	return error;
}

struct chunk {
	unsigned flags, type;
	uint32_t len;
};

static inline struct chunk chunk(struct rig *g, uint64_t cookie)
{
	struct chunk k;

	assert_int_equal(get32(g), NBDP_STRUCTURED_MAGIC);
	k.flags = get16(g);
	k.type = get16(g);
	assert_true(get64(g) == cookie);
	k.len = get32(g);
	return k;
}

static inline uint32_t error_chunk(struct rig *g, uint64_t cookie)
{
	struct chunk k = chunk(g, cookie);
	uint32_t error;

	assert_int_equal(k.type, NBDP_REPLY_ERROR);
	assert_int_equal(k.flags, NBDP_REPLY_DONE);
	assert_int_equal(k.len, 6);
	error = get32(g);
	assert_int_equal(get16(g), 0);
	return error;
}

static inline void data_is(struct rig *g, uint64_t off, size_t len)
{
	static uint8_t buf[SIZE];

	get(g, buf, len);
	assert_memory_equal(buf, g->disk + off, len);
}

/* All of a structured read; how many chunks were holes. */
static inline unsigned read_chunks(struct rig *g, uint64_t off, uint32_t len, unsigned flags)
{
	unsigned holes = 0, chunks = 0;
	uint64_t done = 0;
	struct chunk k;

	ask(g, NBDP_CMD_READ, flags, 5, off, len);
	do {
		uint64_t at;
		uint32_t n;

		k = chunk(g, 5);
		chunks++;
		if (k.type == NBDP_REPLY_NONE)
			break;
		at = get64(g);
		assert_true(at == off + done);
		if (k.type == NBDP_REPLY_OFFSET_HOLE) {
			assert_int_equal(k.len, 12);
			n = get32(g);
			holes++;
			assert_true(at >= MIB && at + n <= 2 * MIB);
		} else {
			assert_int_equal(k.type, NBDP_REPLY_OFFSET_DATA);
			n = k.len - 8;
			data_is(g, at, n);
		}
		done += n;
	} while (!(k.flags & NBDP_REPLY_DONE));
	assert_true(done == len);
	assert_true(!(flags & NBDP_CMD_DF) || chunks == 1);
	return holes;
}

static inline void send_write(struct rig *g, uint64_t off, uint32_t len, unsigned flags)
{
	uint8_t *p = (uint8_t *)malloc(len);

	for (uint32_t i = 0; i < len; i++)
		p[i] = (uint8_t)(i * 13 + off);
	ask(g, NBDP_CMD_WRITE, flags, off, off, len);
	put(g, p, len);
	assert_int_equal(simple(g, off), 0);
	assert_memory_equal(g->disk + off, p, len);
	free(p);
}

static inline uint32_t change(
	struct rig *g, unsigned cmd, unsigned flags, uint64_t off, uint32_t len)
{
	ask(g, cmd, flags, 3, off, len);
	return simple(g, 3);
}

#endif
