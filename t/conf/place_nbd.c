/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/conf/place_nbd.c - images of the conformance suite in files, with an NBD server on a
 * Unix socket in front of them: ours, in this process on executors of its own, or qemu-nbd.
 *
 * Our server opens the image anew whenever the client is opened, for writing if the client
 * is; so what a client wrote before it was closed has to be in the image. qemu-nbd stays
 * from the making of an image to its removal.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "t/conf/conf.h"

struct conf_nbd {
	char sock[96];
	/* ours */
	struct thr_pool *pool;
	struct blk *image;
	int fd, stop, ret;
	struct thr_wait done;
	struct blk_nbd_context context;
	struct blk_nbd_export export;
	struct blk_nbd_server server;
	/* qemu-nbd */
	pid_t pid;
};

static void files_make(struct conf *c, const uint8_t *backing)
{
	conf_files.make(c, backing);
	c->nbd = calloc(1, sizeof(*c->nbd));
	assert_non_null(c->nbd);
	snprintf(c->nbd->sock, sizeof(c->nbd->sock), "%s/sock", c->dir);
}

/* The server is gone: the image is sound, and holds what the client was told. */
static void files_remove(struct conf *c)
{
	unlink(c->nbd->sock);
	free(c->nbd);
	c->nbd = NULL;
	c->place = &conf_files;
	c->b = conf_files.open(c, 0, 0);
	conf_compare(c);
	assert_int_equal(fmt_close(c->b), 0);
	c->b = NULL;
	conf_check(c);
	conf_files.remove(c);
}

static struct blk *client(struct conf *c, unsigned blk_flags)
{
	const struct blk_opt v[] = {{"path", c->nbd->sock}, {"open-timeout", "20"}};
	struct blk_opts opts = {v, 2};
	struct blk_open at = {
		.driver = "nbd", .flags = blk_flags, .opts = &opts, .mem = &thr_heap};
	struct fmt_open o = {.format = "raw", .blk_flags = blk_flags, .mem = &thr_heap};
	struct blk_err err = BLK_ERR_INIT;
	struct blk *file, *b = NULL;

	if (blk_open(&file, &at, &err))
		conf_fail(&err);
	if (fmt_open_on(&b, file, &o, &err))
		conf_fail(&err);
	return b;
}

/* ---- our server -------------------------------------------------------------------- */

static void serve(void *arg)
{
	struct conf_nbd *n = arg;

	n->ret = blk_nbd_serve(&n->server, NULL);
	thr_wait_wake(&n->done);
}

static void server_stop(struct conf_nbd *n)
{
	if (!n->pool)
		return;
	assert_int_equal(write(n->stop, "\1\0\0\0\0\0\0\0", 8), 8);
	thr_wait_block(&n->done);
	assert_int_equal(n->ret, 0);
	thr_pool_close(n->pool);
	n->pool = NULL;
	close(n->fd);
	close(n->stop);
	assert_int_equal(fmt_close(n->image), 0);
}

static void server_start(struct conf *c, unsigned blk_flags)
{
	struct conf_nbd *n = c->nbd;

	n->image = conf_files.open(c, blk_flags, 0);
	n->context = (struct blk_nbd_context){"base:allocation", fmt_nbd_allocation, n->image};
	n->export = (struct blk_nbd_export){
		.dev = n->image, .name = "", .contexts = &n->context, .ncontexts = 1};
	assert_int_equal(blk_nbd_listen_unix(n->sock, &n->fd, NULL), 0);
	n->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	n->server = (struct blk_nbd_server){.exports = &n->export,
		.nexports = 1,
		.fds = &n->fd,
		.nfds = 1,
		.stop_fd = n->stop,
		.persistent = true,
		.mem = &thr_heap};
	assert_int_equal(thr_pool_open(&n->pool, 2, &thr_heap), 0);
	thr_wait_init(&n->done);
	assert_int_equal(thr_spawn(thr_pool_exec(n->pool, 0), serve, n), 0);
}

static struct blk *ours_open(struct conf *c, unsigned blk_flags, unsigned flags)
{
	assert_int_equal(flags, 0);
	server_stop(c->nbd);
	server_start(c, blk_flags);
	return client(c, blk_flags);
}

static void ours_remove(struct conf *c)
{
	server_stop(c->nbd);
	files_remove(c);
}

const struct conf_place conf_nbd = {
	.make = files_make,
	.open = ours_open,
	.remove = ours_remove,
	.afar = true,
};

/* ---- qemu-nbd ----------------------------------------------------------------------- */

static void peer_make(struct conf *c, const uint8_t *backing)
{
	struct conf_nbd *n;

	files_make(c, backing);
	n = c->nbd;
	n->pid = fork();
	assert_true(n->pid >= 0);
	if (!n->pid) {
		alarm(50); /* it keeps that, and does not outlive the test for long */
		execlp("qemu-nbd", "qemu-nbd", "-t", "-e", "16", "--discard=unmap", "-f",
			c->row->format, "-k", n->sock, c->image, (char *)NULL);
		_exit(127);
	}
	/* The client would wait longer between its tries. */
	for (int i = 0; i < 2000 && access(n->sock, F_OK); i++)
		usleep(2000);
}

static struct blk *peer_open(struct conf *c, unsigned blk_flags, unsigned flags)
{
	assert_int_equal(flags, 0);
	return client(c, blk_flags);
}

static void peer_remove(struct conf *c)
{
	int status;

	assert_int_equal(kill(c->nbd->pid, SIGTERM), 0);
	assert_int_equal(waitpid(c->nbd->pid, &status, 0), c->nbd->pid);
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	files_remove(c);
}

const struct conf_place conf_qemu_nbd = {
	.make = peer_make,
	.open = peer_open,
	.remove = peer_remove,
	.afar = true,
};
