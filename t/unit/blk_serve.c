/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/blk_serve.c - the NBD server, byte by byte over a socket: every option and
 * command, and clients that break the protocol. The client is the test's own thread, the
 * server a pool of one executor; memory is counted.
 */
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

/* ---- contexts
 * -------------------------------------------------------------------------------- */

/* The second MiB is a hole. */
static int allocation(void *arg, uint64_t off, uint64_t len, uint64_t *n, uint32_t *flags)
{
	(void)arg;
	(void)len;
	*flags = off / MIB == 1 ? BLK_NBD_HOLE | BLK_NBD_ZERO : 0u;
	*n = off < MIB ? MIB - off : off < 2 * MIB ? 2 * MIB - off : SIZE - off;
	return 0;
}

/* Every other 64 KiB is dirty, and the last MiB cannot be told. */
static int dirty(void *arg, uint64_t off, uint64_t len, uint64_t *n, uint32_t *flags)
{
	(void)arg;
	(void)len;
	*flags = off / 65536 & 1;
	*n = 65536 - off % 65536;
	return off >= 7 * MIB ? -EIO : 0;
}

/* ---- both sides
 * ------------------------------------------------------------------------------- */

static void serve_fiber(void *arg)
{
	struct rig *g = (struct rig *)arg;

	g->ret = blk_nbd_serve_one(&g->server, g->theirs);
}

static void rig_open(struct rig *g, unsigned flags)
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

static void join(struct rig *g)
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
static void leave(struct rig *g)
{
	close(g->mine);
	thr_pool_close(g->pool);
	assert_int_equal(g->purse.live, 0);
	assert_int_equal(thr_pool_open(&g->pool, 1, &thr_heap), 0);
}

static void rig_close(struct rig *g)
{
	thr_pool_close(g->pool);
	blk_close(g->dev);
	free(g->disk);
}

static void put(struct rig *g, const void *p, size_t len)
{
	while (len) {
		ssize_t n = send(g->mine, p, len, MSG_NOSIGNAL);

		assert_true(n > 0);
		p = (const uint8_t *)p + n;
		len -= (size_t)n;
	}
}

static void get(struct rig *g, void *p, size_t len)
{
	while (len) {
		ssize_t n = recv(g->mine, p, len, 0);

		assert_true(n > 0);
		p = (uint8_t *)p + n;
		len -= (size_t)n;
	}
}

static uint32_t get32(struct rig *g)
{
	uint8_t b[4];

	get(g, b, 4);
	return thr_be32(b);
}

static uint64_t get64(struct rig *g)
{
	uint8_t b[8];

	get(g, b, 8);
	return thr_be64(b);
}

static unsigned get16(struct rig *g)
{
	uint8_t b[2];

	get(g, b, 2);
	return thr_be16(b);
}

static void pass_over(struct rig *g, size_t len)
{
	uint8_t b[4096];

	for (; len; len -= THR_MIN(len, sizeof(b)))
		get(g, b, THR_MIN(len, sizeof(b)));
}

/* The server has hung up. */
static void expect_end(struct rig *g)
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

static void greet(struct rig *g, uint32_t flags)
{
	uint8_t b[4];

	join(g);
	assert_int_equal(get64(g), NBDP_MAGIC);
	assert_int_equal(get64(g), NBDP_OPT_MAGIC);
	assert_int_equal(get16(g), 3);
	thr_put_be32(b, flags);
	put(g, b, 4);
}

static void opt(struct rig *g, uint32_t o, const void *data, uint32_t len)
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
static uint32_t reply(struct rig *g, uint32_t o, uint8_t *data, uint32_t *len)
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

static void expect(struct rig *g, uint32_t o, uint32_t type)
{
	uint8_t b[512];

	assert_int_equal(reply(g, o, b, NULL), type);
}

static uint32_t go_data(uint8_t *b, const char *name, unsigned infos)
{
	uint32_t n = (uint32_t)strlen(name);

	thr_put_be32(b, n);
	memcpy(b + 4, name, n);
	thr_put_be16(b + 4 + n, (uint16_t)infos);
	for (unsigned i = 0; i < infos; i++)
		thr_put_be16(b + 6 + n + 2 * i, (uint16_t)(i + 1));
	return 6 + n + 2 * infos;
}

static void choose(struct rig *g, const char *name)
{
	uint8_t b[512];
	uint32_t len;

	opt(g, NBDP_OPT_GO, b, go_data(b, name, 0));
	assert_int_equal(reply(g, NBDP_OPT_GO, b, &len), NBDP_REP_INFO);
	assert_int_equal(len, 12);
	assert_true(thr_be64(b + 2) == SIZE);
	expect(g, NBDP_OPT_GO, NBDP_REP_ACK);
}

static uint32_t meta_data(uint8_t *b, const char *name, const char *q1, const char *q2)
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

static void start(struct rig *g, const char *name, bool structured)
{
	greet(g, 3);
	if (structured) {
		opt(g, NBDP_OPT_STRUCTURED_REPLY, NULL, 0);
		expect(g, NBDP_OPT_STRUCTURED_REPLY, NBDP_REP_ACK);
	}
	choose(g, name);
}

static void options(void **state)
{
	struct rig g;
	uint8_t b[512];
	uint32_t len;

	(void)state;
	rig_open(&g, BLK_RDWR);
	greet(&g, 3);
	opt(&g, NBDP_OPT_LIST, NULL, 0);
	assert_int_equal(reply(&g, NBDP_OPT_LIST, b, &len), NBDP_REP_SERVER);
	assert_int_equal(len, 14);
	assert_memory_equal(b, "\0\0\0\4diska disk", 14);
	assert_int_equal(reply(&g, NBDP_OPT_LIST, b, &len), NBDP_REP_SERVER);
	assert_int_equal(len, 4);
	expect(&g, NBDP_OPT_LIST, NBDP_REP_ACK);
	opt(&g, NBDP_OPT_LIST, "x", 1);
	expect(&g, NBDP_OPT_LIST, NBDP_REP_ERR_INVALID);

	opt(&g, NBDP_OPT_INFO, b, go_data(b, "nobody", 0));
	expect(&g, NBDP_OPT_INFO, NBDP_REP_ERR_UNKNOWN);
	opt(&g, NBDP_OPT_INFO, b, go_data(b, "disk", 3));
	assert_int_equal(reply(&g, NBDP_OPT_INFO, b, &len), NBDP_REP_INFO);
	assert_memory_equal(b, "\0\1disk", 6);
	assert_int_equal(reply(&g, NBDP_OPT_INFO, b, &len), NBDP_REP_INFO);
	assert_memory_equal(b, "\0\2a disk", 8);
	assert_int_equal(reply(&g, NBDP_OPT_INFO, b, &len), NBDP_REP_INFO);
	assert_int_equal(thr_be16(b), NBDP_INFO_BLOCK_SIZE);
	assert_int_equal(thr_be32(b + 2), 1);
	assert_int_equal(thr_be32(b + 10), 32 * MIB);
	assert_int_equal(reply(&g, NBDP_OPT_INFO, b, &len), NBDP_REP_INFO);
	assert_int_equal(thr_be16(b + 10) & (NBDP_READ_ONLY | NBDP_SEND_DF), 0);
	assert_true(thr_be16(b + 10) & NBDP_CAN_MULTI_CONN);
	expect(&g, NBDP_OPT_INFO, NBDP_REP_ACK);

	/* Lengths that contradict each other. */
	len = go_data(b, "disk", 2);
	opt(&g, NBDP_OPT_GO, b, len - 1);
	expect(&g, NBDP_OPT_GO, NBDP_REP_ERR_INVALID);
	thr_put_be32(b, UINT32_MAX);
	opt(&g, NBDP_OPT_GO, b, len);
	expect(&g, NBDP_OPT_GO, NBDP_REP_ERR_INVALID);
	opt(&g, NBDP_OPT_GO, "abc", 3);
	expect(&g, NBDP_OPT_GO, NBDP_REP_ERR_INVALID);

	opt(&g, 77, "what", 4);
	expect(&g, 77, NBDP_REP_ERR_UNSUP);
	opt(&g, 11, NULL, 0);
	expect(&g, 11, NBDP_REP_ERR_UNSUP);
	opt(&g, NBDP_OPT_STARTTLS, NULL, 0);
	expect(&g, NBDP_OPT_STARTTLS, NBDP_REP_ERR_POLICY);
	opt(&g, NBDP_OPT_STRUCTURED_REPLY, "x", 1);
	expect(&g, NBDP_OPT_STRUCTURED_REPLY, NBDP_REP_ERR_INVALID);
	opt(&g, NBDP_OPT_ABORT, NULL, 0);
	expect(&g, NBDP_OPT_ABORT, NBDP_REP_ACK);
	expect_end(&g);
	leave(&g);
	rig_close(&g);
}

static void oversize_option(void **state)
{
	struct rig g;
	static uint8_t junk[200000];

	(void)state;
	rig_open(&g, BLK_RDWR);
	greet(&g, 1);
	opt(&g, NBDP_OPT_LIST, junk, sizeof(junk));
	expect(&g, NBDP_OPT_LIST, NBDP_REP_ERR_TOO_BIG);
	choose(&g, "disk");
	leave(&g);
	greet(&g, 1);
	opt(&g, NBDP_OPT_LIST, NULL, UINT32_MAX);
	expect_end(&g);
	leave(&g);
	greet(&g, 1);
	opt(&g, NBDP_OPT_EXPORT_NAME, NULL, 1u << 20);
	expect_end(&g);
	leave(&g);
	rig_close(&g);
}

static void export_name(void **state)
{
	struct rig g;

	(void)state;
	rig_open(&g, BLK_RDWR);
	for (unsigned flags = 1; flags <= 3; flags += 2) {
		greet(&g, flags);
		opt(&g, NBDP_OPT_EXPORT_NAME, "disk", 4);
		assert_int_equal(get64(&g), SIZE);
		assert_true(get16(&g) & NBDP_HAS_FLAGS);
		if (flags == 1)
			pass_over(&g, 124);
		leave(&g);
	}
	greet(&g, 3);
	opt(&g, NBDP_OPT_EXPORT_NAME, "none", 4);
	expect_end(&g);
	leave(&g);
	rig_close(&g);
}

static void meta_contexts(void **state)
{
	struct rig g;
	uint8_t b[512];
	uint32_t len;

	(void)state;
	rig_open(&g, BLK_RDWR);
	greet(&g, 3);
	opt(&g, NBDP_OPT_LIST_META_CONTEXT, b, meta_data(b, "disk", NULL, NULL));
	expect(&g, NBDP_OPT_LIST_META_CONTEXT, NBDP_REP_ERR_INVALID);
	opt(&g, NBDP_OPT_STRUCTURED_REPLY, NULL, 0);
	expect(&g, NBDP_OPT_STRUCTURED_REPLY, NBDP_REP_ACK);

	opt(&g, NBDP_OPT_LIST_META_CONTEXT, b, meta_data(b, "disk", NULL, NULL));
	expect(&g, NBDP_OPT_LIST_META_CONTEXT, NBDP_REP_META_CONTEXT);
	expect(&g, NBDP_OPT_LIST_META_CONTEXT, NBDP_REP_META_CONTEXT);
	expect(&g, NBDP_OPT_LIST_META_CONTEXT, NBDP_REP_ACK);
	opt(&g, NBDP_OPT_LIST_META_CONTEXT, b, meta_data(b, "disk", "qemu:", "x:"));
	assert_int_equal(reply(&g, NBDP_OPT_LIST_META_CONTEXT, b, &len), NBDP_REP_META_CONTEXT);
	assert_int_equal(len, 4 + 20);
	assert_memory_equal(b + 4, "qemu:dirty-bitmap:b0", 20);
	expect(&g, NBDP_OPT_LIST_META_CONTEXT, NBDP_REP_ACK);
	opt(&g, NBDP_OPT_LIST_META_CONTEXT, b, meta_data(b, "none", NULL, NULL));
	expect(&g, NBDP_OPT_LIST_META_CONTEXT, NBDP_REP_ERR_UNKNOWN);
	/* The default export was given no contexts and has the one. */
	opt(&g, NBDP_OPT_LIST_META_CONTEXT, b, meta_data(b, "", NULL, NULL));
	expect(&g, NBDP_OPT_LIST_META_CONTEXT, NBDP_REP_META_CONTEXT);
	expect(&g, NBDP_OPT_LIST_META_CONTEXT, NBDP_REP_ACK);

	/* Wildcards select nothing, nor does no query. */
	opt(&g, NBDP_OPT_SET_META_CONTEXT, b, meta_data(b, "disk", "qemu:", NULL));
	expect(&g, NBDP_OPT_SET_META_CONTEXT, NBDP_REP_ACK);
	opt(&g, NBDP_OPT_SET_META_CONTEXT, b, meta_data(b, "disk", NULL, NULL));
	expect(&g, NBDP_OPT_SET_META_CONTEXT, NBDP_REP_ACK);
	len = meta_data(b, "disk", "base:allocation", NULL);
	opt(&g, NBDP_OPT_SET_META_CONTEXT, b, len - 1);
	expect(&g, NBDP_OPT_SET_META_CONTEXT, NBDP_REP_ERR_INVALID);
	thr_put_be32(b + 8, UINT32_MAX);
	opt(&g, NBDP_OPT_SET_META_CONTEXT, b, len);
	expect(&g, NBDP_OPT_SET_META_CONTEXT, NBDP_REP_ERR_INVALID);
	leave(&g);
	rig_close(&g);
}

/* ---- transmission
 * -------------------------------------------------------------------------------- */

static void ask(struct rig *g, unsigned cmd, unsigned flags, uint64_t cookie, uint64_t off,
	uint32_t len)
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

static uint32_t simple(struct rig *g, uint64_t cookie)
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

static struct chunk chunk(struct rig *g, uint64_t cookie)
{
	struct chunk k;

	assert_int_equal(get32(g), NBDP_STRUCTURED_MAGIC);
	k.flags = get16(g);
	k.type = get16(g);
	assert_true(get64(g) == cookie);
	k.len = get32(g);
	return k;
}

static uint32_t error_chunk(struct rig *g, uint64_t cookie)
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

static void data_is(struct rig *g, uint64_t off, size_t len)
{
	static uint8_t buf[SIZE];

	get(g, buf, len);
	assert_memory_equal(buf, g->disk + off, len);
}

static void simple_reads(void **state)
{
	static const uint32_t lens[] = {1, 28, 4096, 65536, MIB, 2 * MIB, 3 * MIB + 5};
	struct rig g;

	(void)state;
	rig_open(&g, BLK_RDWR);
	start(&g, "disk", false);
	for (unsigned i = 0; i < THR_ARRAY_SIZE(lens); i++) {
		ask(&g, NBDP_CMD_READ, 0, i, 3 * i, lens[i]);
		assert_int_equal(simple(&g, i), 0);
		data_is(&g, 3 * i, lens[i]);
	}
	ask(&g, NBDP_CMD_READ, 0, 9, 0, 0);
	assert_int_equal(simple(&g, 9), 0);
	ask(&g, NBDP_CMD_READ, NBDP_CMD_DF, 9, 0, 512);
	assert_int_equal(simple(&g, 9), NBDP_EINVAL);
	ask(&g, NBDP_CMD_BLOCK_STATUS, 0, 9, 0, 512);
	assert_int_equal(simple(&g, 9), NBDP_EINVAL);
	leave(&g);
	rig_close(&g);
}

/* All of a structured read; how many chunks were holes. */
static unsigned read_chunks(struct rig *g, uint64_t off, uint32_t len, unsigned flags)
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

static void structured_reads(void **state)
{
	struct rig g;

	(void)state;
	rig_open(&g, BLK_RDWR);
	start(&g, "disk", true);
	assert_int_equal(read_chunks(&g, 0, 4096, 0), 0);
	assert_int_equal(read_chunks(&g, 0, 3 * MIB, 0), 1);
	assert_int_equal(read_chunks(&g, 0, 2 * MIB, 0), 1);
	assert_int_equal(read_chunks(&g, 0, 2 * MIB, NBDP_CMD_DF), 0);
	assert_int_equal(read_chunks(&g, MIB, MIB, 0), 1);
	assert_int_equal(read_chunks(&g, MIB + 1, 100000, 0), 1);
	assert_int_equal(read_chunks(&g, 1, SIZE - 1, 0), 1);
	ask(&g, NBDP_CMD_READ, NBDP_CMD_DF, 6, 0, 3 * MIB);
	assert_int_equal(error_chunk(&g, 6), NBDP_EOVERFLOW);
	ask(&g, NBDP_CMD_READ, 0, 6, SIZE - 1, 2);
	assert_int_equal(error_chunk(&g, 6), NBDP_EINVAL);
	ask(&g, NBDP_CMD_READ, 0, 6, UINT64_MAX, 2);
	assert_int_equal(error_chunk(&g, 6), NBDP_EINVAL);
	ask(&g, NBDP_CMD_READ, 0, 6, 0, UINT32_MAX);
	assert_int_equal(error_chunk(&g, 6), NBDP_EINVAL);
	ask(&g, NBDP_CMD_READ, NBDP_CMD_REQ_ONE, 6, 0, 1);
	assert_int_equal(error_chunk(&g, 6), NBDP_EINVAL);
	ask(&g, NBDP_CMD_READ, NBDP_CMD_FUA, 6, 0, 0);
	assert_int_equal(chunk(&g, 6).type, NBDP_REPLY_NONE);
	leave(&g);
	rig_close(&g);
}

static void send_write(struct rig *g, uint64_t off, uint32_t len, unsigned flags)
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

static uint32_t change(struct rig *g, unsigned cmd, unsigned flags, uint64_t off, uint32_t len)
{
	ask(g, cmd, flags, 3, off, len);
	return simple(g, 3);
}

static void writes(void **state)
{
	struct rig g;
	uint8_t junk[512] = {0};

	(void)state;
	rig_open(&g, BLK_RDWR);
	start(&g, "disk", true);
	send_write(&g, 1, 1, 0);
	send_write(&g, 100, 5000, NBDP_CMD_FUA);
	send_write(&g, 0, 2 * MIB, 0);
	send_write(&g, 12345, 5 * MIB + 3, 0);
	ask(&g, NBDP_CMD_WRITE, 0, 4, SIZE - 1, 512);
	put(&g, junk, 512);
	assert_int_equal(simple(&g, 4), NBDP_ENOSPC);
	ask(&g, NBDP_CMD_WRITE, NBDP_CMD_DF, 4, 0, 512);
	put(&g, junk, 512);
	assert_int_equal(simple(&g, 4), NBDP_EINVAL);

	assert_int_equal(change(&g, NBDP_CMD_WRITE_ZEROES, 0, 1000, 100000), 0);
	for (unsigned i = 0; i < 100000; i++)
		assert_int_equal(g.disk[1000 + i], 0);
	assert_int_equal(
		change(&g, NBDP_CMD_WRITE_ZEROES, NBDP_CMD_NO_HOLE | NBDP_CMD_FUA, 0, 512), 0);
	assert_int_equal(change(&g, NBDP_CMD_WRITE_ZEROES, 0, 1, SIZE), NBDP_ENOSPC);
	assert_int_equal(change(&g, NBDP_CMD_TRIM, 0, 4096, 4096), 0);
	assert_int_equal(change(&g, NBDP_CMD_TRIM, NBDP_CMD_FUA, 4096, 4096), 0);
	assert_int_equal(change(&g, NBDP_CMD_TRIM, 0, SIZE, 1), NBDP_EINVAL);
	assert_int_equal(change(&g, NBDP_CMD_CACHE, 0, 0, SIZE), 0);
	assert_int_equal(change(&g, NBDP_CMD_CACHE, 0, 1, SIZE), NBDP_EINVAL);
	assert_int_equal(change(&g, NBDP_CMD_FLUSH, 0, 0, 0), 0);
	assert_int_equal(change(&g, NBDP_CMD_FLUSH, 0, 0, 1), NBDP_EINVAL);
	assert_int_equal(change(&g, 99, 0, 0, 0), NBDP_EINVAL);
	ask(&g, NBDP_CMD_DISC, 0, 0, 0, 0);
	expect_end(&g);
	leave(&g);
	rig_close(&g);
}

static void read_only(void **state)
{
	static uint8_t junk[4096];
	struct rig g;

	(void)state;
	rig_open(&g, BLK_RDWR);
	start(&g, "", true);
	ask(&g, NBDP_CMD_WRITE, 0, 1, 0, sizeof(junk));
	put(&g, junk, sizeof(junk));
	assert_int_equal(simple(&g, 1), NBDP_EPERM);
	assert_int_equal(change(&g, NBDP_CMD_TRIM, 0, 0, 4096), NBDP_EPERM);
	assert_int_equal(change(&g, NBDP_CMD_WRITE_ZEROES, 0, 0, 4096), NBDP_EPERM);
	assert_int_equal(change(&g, NBDP_CMD_FLUSH, 0, 0, 0), 0);
	assert_int_equal(g.disk[1], 7);
	leave(&g);
	rig_close(&g);
	/* Not open for writing is the same, whatever the export says. */
	rig_open(&g, 0);
	start(&g, "disk", true);
	assert_int_equal(change(&g, NBDP_CMD_WRITE_ZEROES, 0, 0, 4096), NBDP_EPERM);
	leave(&g);
	rig_close(&g);
}

static void zeroes_are_detected(void **state)
{
	static uint8_t zeroes[65536];
	struct rig g;

	(void)state;
	rig_open(&g, BLK_RDWR);
	g.exports[0].detect = BLK_NBD_DETECT_UNMAP;
	start(&g, "disk", false);
	ask(&g, NBDP_CMD_WRITE, 0, 1, 3, sizeof(zeroes));
	put(&g, zeroes, sizeof(zeroes));
	assert_int_equal(simple(&g, 1), 0);
	assert_memory_equal(g.disk + 3, zeroes, sizeof(zeroes));
	send_write(&g, 5, 1000, 0);
	leave(&g);
	rig_close(&g);
}

/* ---- block status
 * ------------------------------------------------------------------------------- */

static void choose_contexts(struct rig *g, uint32_t *id0, uint32_t *id1)
{
	uint8_t b[512];

	greet(g, 3);
	opt(g, NBDP_OPT_STRUCTURED_REPLY, NULL, 0);
	expect(g, NBDP_OPT_STRUCTURED_REPLY, NBDP_REP_ACK);
	opt(g, NBDP_OPT_SET_META_CONTEXT, b,
		meta_data(b, "disk", "qemu:dirty-bitmap:b0", "base:allocation"));
	assert_int_equal(reply(g, NBDP_OPT_SET_META_CONTEXT, b, NULL), NBDP_REP_META_CONTEXT);
	*id0 = thr_be32(b);
	assert_memory_equal(b + 4, "base:", 5);
	assert_int_equal(reply(g, NBDP_OPT_SET_META_CONTEXT, b, NULL), NBDP_REP_META_CONTEXT);
	*id1 = thr_be32(b);
	expect(g, NBDP_OPT_SET_META_CONTEXT, NBDP_REP_ACK);
}

static unsigned extents(struct rig *g, uint32_t id, uint32_t (*v)[2], unsigned *flags)
{
	struct chunk k = chunk(g, 8);
	unsigned n = (k.len - 4) / 8;

	assert_int_equal(k.type, NBDP_REPLY_BLOCK_STATUS);
	assert_int_equal(get32(g), id);
	for (unsigned i = 0; i < n; i++) {
		v[i][0] = get32(g);
		v[i][1] = get32(g);
	}
	*flags = k.flags;
	return n;
}

static void block_status(void **state)
{
	struct rig g;
	static uint32_t v[4096][2];
	uint32_t id0, id1;
	unsigned flags;

	(void)state;
	rig_open(&g, BLK_RDWR);
	choose_contexts(&g, &id0, &id1);
	choose(&g, "disk");
	ask(&g, NBDP_CMD_BLOCK_STATUS, 0, 8, 512, 3 * MIB);
	assert_int_equal(extents(&g, id0, v, &flags), 3);
	assert_int_equal(flags, 0);
	assert_int_equal(v[0][0], MIB - 512);
	assert_int_equal(v[0][1], 0);
	assert_int_equal(v[1][0], MIB);
	assert_int_equal(v[1][1], 3);
	assert_int_equal(v[2][0], MIB + 512);
	assert_int_equal(extents(&g, id1, v, &flags), 49);
	assert_int_equal(flags, NBDP_REPLY_DONE);
	assert_int_equal(v[0][0], 65536 - 512);
	assert_int_equal(v[1][1], 1);
	assert_int_equal(v[48][0], 512);

	ask(&g, NBDP_CMD_BLOCK_STATUS, NBDP_CMD_REQ_ONE, 8, MIB, 3 * MIB);
	assert_int_equal(extents(&g, id0, v, &flags), 1);
	assert_int_equal(v[0][0], MIB);
	assert_int_equal(extents(&g, id1, v, &flags), 1);
	assert_int_equal(v[0][0], 65536);

	ask(&g, NBDP_CMD_BLOCK_STATUS, 0, 8, SIZE - 512, 512);
	assert_int_equal(extents(&g, id0, v, &flags), 1);
	assert_int_equal(error_chunk(&g, 8), NBDP_EIO);
	ask(&g, NBDP_CMD_BLOCK_STATUS, 0, 8, SIZE, 512);
	assert_int_equal(error_chunk(&g, 8), NBDP_EINVAL);
	ask(&g, NBDP_CMD_BLOCK_STATUS, 0, 8, 0, 0);
	assert_int_equal(error_chunk(&g, 8), NBDP_EINVAL);
	leave(&g);

	/* Chosen for one export, another one is used. */
	choose_contexts(&g, &id0, &id1);
	choose(&g, "");
	ask(&g, NBDP_CMD_BLOCK_STATUS, 0, 8, 0, 512);
	assert_int_equal(error_chunk(&g, 8), NBDP_EINVAL);
	leave(&g);
	rig_close(&g);
}

/* ---- many requests, hostile clients
 * ------------------------------------------------------------- */

static void many_in_flight(void **state)
{
	enum { N = 128 }; /* a socket holds that many, whoever reads first */
	struct rig g;
	bool seen[N] = {false};

	(void)state;
	rig_open(&g, BLK_RDWR);
	g.server.memory = 64 << 10;
	start(&g, "disk", false);
	for (unsigned i = 0; i < N; i++)
		ask(&g, NBDP_CMD_READ, 0, i, 4096 * i, 4096);
	for (unsigned i = 0; i < N; i++) {
		uint64_t cookie;

		assert_int_equal(get32(&g), NBDP_SIMPLE_MAGIC);
		assert_int_equal(get32(&g), 0);
		cookie = get64(&g);
		assert_true(cookie < N && !seen[cookie]);
		seen[cookie] = true;
		data_is(&g, 4096 * cookie, 4096);
	}
	leave(&g);
	rig_close(&g);
}

static void bad_magics(void **state)
{
	static const uint8_t junk[64] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
	struct rig g;
	uint8_t b[28] = {0};

	(void)state;
	rig_open(&g, BLK_RDWR);
	greet(&g, 4);
	expect_end(&g);
	leave(&g);
	greet(&g, 3);
	put(&g, junk, sizeof(junk));
	expect_end(&g);
	leave(&g);
	start(&g, "disk", true);
	put(&g, b, sizeof(b));
	expect_end(&g);
	leave(&g);
	/* Too much of a write that is refused. */
	start(&g, "disk", true);
	ask(&g, NBDP_CMD_WRITE, 0, 0, 0, UINT32_MAX);
	expect_end(&g);
	leave(&g);
	rig_close(&g);
}

static void gone_at_any_byte(void **state)
{
	uint8_t whole[28 + 600] = {0}, b[512];
	struct rig g;
	size_t len;

	(void)state;
	rig_open(&g, BLK_RDWR);
	/* in the handshake */
	len = 16 + go_data(b, "disk", 3);
	thr_put_be64(whole, NBDP_OPT_MAGIC);
	thr_put_be32(whole + 8, NBDP_OPT_GO);
	thr_put_be32(whole + 12, (uint32_t)len - 16);
	memcpy(whole + 16, b, len - 16);
	for (size_t cut = 0; cut <= len; cut++) {
		greet(&g, 3);
		put(&g, whole, cut);
		leave(&g);
	}
	/* in a write */
	memset(whole, 0, sizeof(whole));
	thr_put_be32(whole, NBDP_REQUEST_MAGIC);
	thr_put_be16(whole + 6, NBDP_CMD_WRITE);
	thr_put_be32(whole + 24, 600);
	for (size_t cut = 1; cut <= sizeof(whole); cut += 13) {
		start(&g, "disk", cut & 1);
		put(&g, whole, cut);
		leave(&g);
	}
	/* with replies that nobody takes */
	start(&g, "disk", true);
	for (unsigned i = 0; i < 50; i++)
		ask(&g, NBDP_CMD_READ, 0, i, 0, MIB);
	leave(&g);
	start(&g, "disk", false);
	ask(&g, NBDP_CMD_READ, 0, 0, 0, SIZE);
	pass_over(&g, 16 + 100);
	leave(&g);
	rig_close(&g);
}

static void without_memory(void **state)
{
	struct rig g;
	unsigned n, calls;

	(void)state;
	rig_open(&g, BLK_RDWR);
	start(&g, "disk", true);
	assert_int_equal(read_chunks(&g, 0, 3 * MIB, 0), 1);
	send_write(&g, 0, 3 * MIB, 0);
	leave(&g);
	calls = g.purse.calls;
	assert_true(calls > 4);
	for (n = 1; n <= calls; n++) {
		uint8_t b[64], head[16];

		g.purse.calls = 0;
		g.purse.fail_at = n;
		join(&g);
		/* Whatever the server gives up, what was allocated is given back. */
		memset(b, 0, 4);
		(void)send(g.mine, "\0\0\0\3", 4, MSG_NOSIGNAL);
		thr_put_be64(head, NBDP_OPT_MAGIC);
		thr_put_be32(head + 8, NBDP_OPT_GO);
		thr_put_be32(head + 12, go_data(b, "disk", 0));
		(void)send(g.mine, head, 16, MSG_NOSIGNAL);
		(void)send(g.mine, b, go_data(b, "disk", 0), MSG_NOSIGNAL);
		memset(b, 0, 28);
		thr_put_be32(b, NBDP_REQUEST_MAGIC);
		thr_put_be32(b + 24, 3 * MIB);
		(void)send(g.mine, b, 28, MSG_NOSIGNAL);
		thr_put_be16(b + 6, NBDP_CMD_FLUSH);
		thr_put_be32(b + 24, 0);
		(void)send(g.mine, b, 28, MSG_NOSIGNAL);
		thr_put_be16(b + 6, NBDP_CMD_DISC);
		(void)send(g.mine, b, 28, MSG_NOSIGNAL);
		expect_end(&g);
		leave(&g);
	}
	g.purse.fail_at = 0;
	rig_close(&g);
}

/* ---- listening
 * ----------------------------------------------------------------------------------- */

struct listening {
	struct rig *g;
	int stop;
	struct thr_wait done;
	int ret;
};

static void listen_fiber(void *arg)
{
	struct listening *l = (struct listening *)arg;

	l->ret = blk_nbd_serve(&l->g->server, NULL);
	thr_wait_wake(&l->done);
}

static int connect_to(struct rig *g, const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct timeval patience = {.tv_sec = 20};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(a.sun_path, path);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	g->mine = fd;
	return fd;
}

static void hello(struct rig *g)
{
	uint8_t b[18];

	get(g, b, 18);
	assert_true(thr_be64(b) == NBDP_MAGIC);
	put(g, "\0\0\0\3", 4);
}

static void clients_come_and_go(void **state)
{
	enum { MANY = 100 };
	struct rig g;
	struct listening l = {.g = &g};
	int fd, first, second, many[MANY], refused = 0;
	char byte;

	(void)state;
	rig_open(&g, BLK_RDWR);
	assert_int_equal(blk_nbd_listen_unix("s", &fd, NULL), 0);
	assert_int_not_equal(blk_nbd_listen_unix("s", &first, NULL), 0);
	l.stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	g.server.fds = &fd;
	g.server.nfds = 1;
	g.server.stop_fd = l.stop;
	g.server.clients = 1;
	thr_wait_init(&l.done);
	assert_int_equal(thr_spawn(thr_pool_exec(g.pool, 0), listen_fiber, &l), 0);

	/* One who only looks does not end it. */
	first = connect_to(&g, "s");
	hello(&g);
	opt(&g, NBDP_OPT_ABORT, NULL, 0);
	expect_end(&g);
	close(first);

	first = connect_to(&g, "s");
	hello(&g);
	choose(&g, "disk");
	/* The second one waits until the first has gone. */
	second = connect_to(&g, "s");
	for (int i = 0; i < MANY; i++)
		many[i] = connect_to(&g, "s");
	/* BLK_NBD_WAITING may wait; the others are refused. */
	for (int i = BLK_NBD_WAITING - 1; i < MANY; i++)
		refused += recv(many[i], &byte, 1, 0) <= 0;
	assert_int_equal(refused, MANY - BLK_NBD_WAITING + 1);
	for (int i = 0; i < MANY; i++)
		close(many[i]);
	assert_int_equal(recv(second, &byte, 1, MSG_DONTWAIT), -1);
	g.mine = first;
	ask(&g, NBDP_CMD_DISC, 0, 0, 0, 0);
	expect_end(&g);
	close(first);
	g.mine = second;
	hello(&g);
	choose(&g, "disk");
	assert_int_equal(change(&g, NBDP_CMD_FLUSH, 0, 0, 0), 0);
	assert_int_equal(write(l.stop, "\1\0\0\0\0\0\0\0", 8), 8);
	expect_end(&g);
	thr_wait_block(&l.done);
	assert_int_equal(l.ret, 0);
	close(second);
	close(fd);
	close(l.stop);
	unlink("s");
	thr_pool_close(g.pool);
	g.pool = NULL;
	assert_int_equal(g.purse.live, 0);
	rig_close(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options),
		cmocka_unit_test(oversize_option),
		cmocka_unit_test(export_name),
		cmocka_unit_test(meta_contexts),
		cmocka_unit_test(simple_reads),
		cmocka_unit_test(structured_reads),
		cmocka_unit_test(writes),
		cmocka_unit_test(read_only),
		cmocka_unit_test(zeroes_are_detected),
		cmocka_unit_test(block_status),
		cmocka_unit_test(many_in_flight),
		cmocka_unit_test(bad_magics),
		cmocka_unit_test(gone_at_any_byte),
		cmocka_unit_test(without_memory),
		cmocka_unit_test(clients_come_and_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
