/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/fuzz/nbd_serve.c - any bytes as what an NBD client sends: the first byte chooses where
 * it begins (bit 0: in the transmission phase, bit 1: with structured replies, bit 2: an
 * export that may be written). What the server answers is read and forgotten. It must end
 * when the client has hung up, and give back all memory.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "blk/nbd_proto.h"
#include "t/fuzz/fuzz.h"

#define SIZE (1u << 20)

struct job {
	struct blk_nbd_server server;
	int fd;
};

static void serve(void *arg)
{
	struct job *j = (struct job *)arg;

	(void)blk_nbd_serve_one(&j->server, j->fd);
}

static int parts(void *arg, uint64_t off, uint64_t len, uint64_t *n, uint32_t *flags)
{
	(void)arg;
	(void)len;
	*flags = off / 65536 & 3;
	*n = 65536 - off % 65536;
	return 0;
}

static size_t opt(uint8_t *p, uint32_t type, const void *data, uint32_t len)
{
	thr_put_be64(p, NBDP_OPT_MAGIC);
	thr_put_be32(p + 8, type);
	thr_put_be32(p + 12, len);
	memcpy(p + 16, data, len);
	return 16 + len;
}

/* The handshake of a client that knows what it wants. */
static size_t handshake(uint8_t *p, unsigned how)
{
	static const char contexts[] =
		"\0\0\0\1a\0\0\0\2\0\0\0\17base:allocation\0\0\0\6qemu:x";
	size_t n = 4;

	memcpy(p, "\0\0\0\3", 4);
	if (how & 2) {
		n += opt(p + n, NBDP_OPT_STRUCTURED_REPLY, "", 0);
		n += opt(p + n, NBDP_OPT_SET_META_CONTEXT, contexts, sizeof(contexts) - 1);
	}
	return n + opt(p + n, NBDP_OPT_GO, how & 4 ? "\0\0\0\1a\0\0" : "\0\0\0\1r\0\0", 7);
}

static void *drain(void *arg)
{
	int fd = *(int *)arg;
	uint8_t buf[65536];

	while (recv(fd, buf, sizeof(buf), 0) > 0)
		;
	return NULL;
}

static void client(int fd, const uint8_t *data, size_t len)
{
	uint8_t hello[512];
	pthread_t t;
	unsigned how = data[0];

	FUZZ_MUST(!pthread_create(&t, NULL, drain, &fd));
	if (how & 1)
		(void)!send(fd, hello, handshake(hello, how), MSG_NOSIGNAL);
	data++;
	len--;
	while (len) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

		if (n <= 0)
			break;
		data += n;
		len -= (size_t)n;
	}
	(void)shutdown(fd, SHUT_WR);
	pthread_join(t, NULL);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static uint8_t disk[SIZE];
	struct blk_nbd_context contexts[] = {
		{"base:allocation", parts, NULL}, {"qemu:x", parts, NULL}};
	struct blk_nbd_export e[2] = {
		{.name = "a", .description = "b", .contexts = contexts, .ncontexts = 2},
		{.name = "r", .read_only = true},
	};
	struct job j = {
		.server = {.exports = e, .nexports = 2, .stop_fd = -1, .mem = &fuzz_mem}};
	struct thr_pool *pool;
	int sv[2];

	if (!len)
		return 0;
	FUZZ_MUST(!blk_mem_open(&e[0].dev, disk, SIZE, BLK_RDWR, &fuzz_mem, NULL));
	e[1].dev = e[0].dev;
	FUZZ_MUST(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv));
	FUZZ_MUST(!thr_pool_open(&pool, 1, &thr_heap));
	j.fd = sv[1];
	FUZZ_MUST(!thr_spawn(thr_pool_exec(pool, 0), serve, &j));
	client(sv[0], data, len);
	thr_pool_close(pool);
	blk_close(e[0].dev);
	fuzz_mem_end();
	return 0;
}
