/* SPDX-License-Identifier: BSD-2-Clause
 *
 * appliance - serves an encrypted disk by NBD on a Unix socket.
 *
 *	appliance OVERLAY KEYFILE SOCKET
 *
 * OVERLAY is a qcow2 image with LUKS encryption; KEYFILE has its passphrase, to the last
 * byte. Its backing file is whatever it names: a compressed image, for instance. Prints a
 * line when clients may connect, and ends when it gets SIGINT or SIGTERM: requests under
 * way end first, and what was written is durable when the program has ended well.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cz/cz.h"
#include "fmt/fmt.h"

struct appliance {
	const char *image, *socket;
	struct fmt_secret key;
	int stop_fd;
	struct blk_err err;
};

/* In a fiber of the pool. Connections are fibers of all its executors. */
static int serve(struct appliance *a, struct blk *disk)
{
	struct blk_nbd_context map = {"base:allocation", fmt_nbd_allocation, disk};
	struct blk_nbd_export export = {
		.dev = disk,
		.name = "",
		.contexts = &map,
		.ncontexts = 1,
	};
	int fd, code = blk_nbd_listen_unix(a->socket, &fd, &a->err);
	struct blk_nbd_server server = {
		.exports = &export,
		.nexports = 1,
		.fds = &fd,
		.nfds = 1,
		.stop_fd = a->stop_fd,
		.persistent = true,
		.mem = &thr_heap,
	};

	if (code)
		return code;
	printf("serving %llu bytes\n", (unsigned long long)blk_size(disk));
	fflush(stdout);
	code = blk_nbd_serve(&server, &a->err);
	unlink(a->socket);
	close(fd);
	return code;
}

static int run(void *arg)
{
	struct appliance *a = arg;
	struct blk_opt key = {"encrypt.key-secret", a->key.id};
	struct blk_opts opts = {&key, 1};
	struct fmt_secrets secrets = {&a->key, 1};
	struct fmt_open how = {
		.name = a->image,
		.format = "qcow2",
		.blk_flags = BLK_RDWR,
		.opts = &opts,
		.secrets = &secrets,
		.mem = &thr_heap,
	};
	struct blk *disk;
	int closed, code = fmt_open(&disk, &how, &a->err);

	if (code)
		return code;
	code = serve(a, disk);
	closed = fmt_close(disk);
	return code ? code : closed;
}

/* Before there are threads, so that all of them leave the signals to the descriptor. */
static int signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

int main(int argc, char **argv)
{
	uint8_t passphrase[512];
	struct appliance a = {.key = {.id = "key", .data = passphrase}};
	struct thr_pool *pool;
	FILE *f = argc == 4 ? fopen(argv[2], "rb") : NULL;
	char text[1024];
	int code;

	if (!f)
		return fputs("appliance OVERLAY KEYFILE SOCKET\n", stderr), 1;
	a.key.len = fread(passphrase, 1, sizeof(passphrase), f);
	fclose(f);
	a.image = argv[1];
	a.socket = argv[3];
	a.stop_fd = signals();
	code = thr_pool_open(&pool, 0, &thr_heap);
	if (!code) {
		code = thr_pool_run(pool, run, &a);
		thr_pool_close(pool);
	}
	cz_wipe(passphrase, sizeof(passphrase));
	if (code) {
		blk_err_text(&a.err, text, sizeof(text));
		fprintf(stderr, "%s\n", a.err.code ? text : blk_strerror(code));
	}
	return code != 0;
}
