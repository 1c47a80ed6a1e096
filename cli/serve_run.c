/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/serve_run.c - the server's life: forked before there are threads, listening before
 * the parent returns, ended by SIGTERM or SIGINT or with the last client. What was written
 * is flushed before it exits.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/serve.h"

#define FIRST_FD 3 /* of those that a service manager hands over */
#define MAX_FDS  8

/* What a context says of the image, seen from where the export begins. */
struct view {
	int (*status)(void *arg, uint64_t off, uint64_t len, uint64_t *n, uint32_t *flags);
	void *arg;
	uint64_t offset;
};

struct job {
	struct serve *s;
	struct blk *image, *part; /* part: of the image, with -o; or NULL */
	struct blk_nbd_tls *tls;
	struct blk_nbd_export export;
	struct blk_nbd_context contexts[2 + SERVE_BITMAPS];
	struct view views[2 + SERVE_BITMAPS]; /* of the contexts */
	char *names[SERVE_BITMAPS];
	struct fmt_bitmap maps[SERVE_BITMAPS];
	unsigned nmaps;
	int fds[MAX_FDS];
	unsigned nfds;
	bool handed; /* the sockets came from a service manager */
	int stop_fd;
	int ready; /* of the pipe to the parent, or -1 */
	struct blk_err err;
};

/* ---- sockets
 * --------------------------------------------------------------------------------- */

static bool number_is(const char *name, unsigned min, unsigned max, unsigned *out)
{
	const char *v = getenv(name);

	return v && !cli_number(v, min, max, out);
}

/* sd_listen_fds(3). */
static int take_handed(struct job *j)
{
	unsigned pid, n;

	if (!number_is("LISTEN_PID", 0, INT32_MAX, &pid) || pid != (unsigned)getpid())
		return 0;
	if (!number_is("LISTEN_FDS", 1, MAX_FDS, &n))
		return cli_error("LISTEN_FDS is not a number from 1 to %d", MAX_FDS);
	if (j->s->socket || j->s->bind || j->s->port)
		return cli_error("With a socket that is handed over there is no -k, -b or -p");
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	for (unsigned i = 0; i < n; i++) {
		int fd = FIRST_FD + (int)i;

		if (fcntl(fd, F_SETFD, FD_CLOEXEC) ||
			fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK))
			return cli_error(
				"The socket that was handed over is none: %s", strerror(errno));
		j->fds[j->nfds++] = fd;
	}
	j->handed = true;
	return 0;
}

static int listen_at(struct job *j)
{
	const struct serve *s = j->s;
	struct blk_err err = BLK_ERR_INIT;
	int code;

	if (j->handed)
		return 0;
	if (s->socket) {
		code = blk_nbd_listen_unix(s->socket, &j->fds[0], &err);
		j->nfds = !code;
	} else {
		code = blk_nbd_listen_tcp(
			s->bind, s->port ? s->port : "10809", j->fds, MAX_FDS, &j->nfds, &err);
	}
	if (code)
		return cli_fail(&err);
	if (s->verbose && s->socket)
		fprintf(stderr, "%s: listening on %s\n", cli_prog, s->socket);
	else if (s->verbose)
		fprintf(stderr, "%s: listening on %s:%s\n", cli_prog,
			s->bind ? s->bind : "localhost", s->port ? s->port : "10809");
	return 0;
}

static int write_pid(const char *path)
{
	FILE *f = path ? fopen(path, "we") : NULL;
	bool bad = path && !f;

	if (f) {
		fprintf(f, "%ld\n", (long)getpid());
		bad = fclose(f) != 0;
	}
	return bad ? cli_error("cannot create PID file %s: %s", path, strerror(errno)) : 0;
}

/* ---- the image
 * ---------------------------------------------------------------------------------- */

static int open_image(struct job *j)
{
	struct serve *s = j->s;
	struct blk_opt engine = {"file.engine", s->engine};
	struct blk_opts opts = {&engine, s->engine ? 1u : 0u};
	struct blk_err err = BLK_ERR_INIT;

	s->read_only |= s->snapshot != NULL;
	s->open.opts = &opts;
	s->open.blk_flags = s->read_only || s->temporary ? 0u : BLK_RDWR;
	if (cli_open(&j->image, &s->open))
		return 1;
	s->open.opts = NULL;
	if (s->snapshot && fmt_snapshot_select(j->image, s->snapshot, &err))
		return cli_fail(&err);
	if (s->temporary && !s->read_only)
		return cli_overlay(&j->image);
	if (!s->read_only && !s->open.format && !s->open.image_opts && j->image->file &&
		fmt_driver_of(j->image) == fmt_driver_find("raw"))
		cli_warn("Image format was not specified for '%s' and probing guessed raw",
			s->name);
	return 0;
}

static int view_status(void *arg, uint64_t off, uint64_t len, uint64_t *n, uint32_t *flags)
{
	const struct view *v = (const struct view *)arg;

	return v->status(v->arg, v->offset + off, len, n, flags);
}

static void add_context(struct job *j, const char *name,
	int (*status)(void *, uint64_t, uint64_t, uint64_t *, uint32_t *), void *arg)
{
	unsigned i = j->export.ncontexts++;

	j->views[i] = (struct view){status, arg, j->s->offset};
	j->contexts[i] = (struct blk_nbd_context){name, view_status, &j->views[i]};
}

static int add_bitmap(struct job *j, const char *name)
{
	unsigned n = j->nmaps;
	struct blk_err err = BLK_ERR_INIT;

	if (fmt_bitmap_open(&j->maps[n], j->image, name, &err))
		return cli_fail(&err);
	j->nmaps++;
	if (asprintf(&j->names[n], "qemu:dirty-bitmap:%s", name) < 0) {
		j->names[n] = NULL;
		return cli_no_memory();
	}
	add_context(j, j->names[n], fmt_nbd_dirty, &j->maps[n]);
	return 0;
}

static int take_part(struct job *j)
{
	struct blk_err err = BLK_ERR_INIT;
	uint64_t size = blk_size(j->image), off = j->s->offset;

	if (!off)
		return 0;
	if (off >= size)
		return cli_error("Offset (%llu) has to be smaller than the image size (%llu)",
			(unsigned long long)off, (unsigned long long)size);
	if (blk_nbd_part_open(&j->part, j->image, off, size - off, &thr_heap, &err))
		return cli_fail(&err);
	return 0;
}

static int describe(struct job *j)
{
	const struct serve *s = j->s;
	int ret = 0;

	j->export = (struct blk_nbd_export){
		.dev = j->part ? j->part : j->image,
		.plain = j->part ? NULL : fmt_nbd_plain(j->image),
		.name = s->export,
		.description = s->description,
		.read_only = s->read_only,
		.keep_space = s->keep_space,
		.detect = s->detect,
		.contexts = j->contexts,
	};
	add_context(j, "base:allocation", fmt_nbd_allocation, j->image);
	if (s->depth)
		add_context(j, "qemu:allocation-depth", fmt_nbd_depth, j->image);
	for (unsigned i = 0; !ret && i < s->nbitmaps; i++)
		ret = add_bitmap(j, s->bitmaps[i]);
	return ret;
}

static void release(struct job *j)
{
	for (unsigned i = 0; i < j->nmaps; i++) {
		fmt_bitmap_close(&j->maps[i]);
		free(j->names[i]);
	}
	for (unsigned i = 0; i < j->nfds; i++)
		close(j->fds[i]);
	if (j->s->socket && j->nfds)
		unlink(j->s->socket);
	blk_nbd_tls_close(j->tls);
	if (j->stop_fd >= 0)
		close(j->stop_fd);
}

/* ---- running
 * --------------------------------------------------------------------------------------- */

static int open_stop_fd(struct job *j)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	j->stop_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	return j->stop_fd < 0 ? cli_error("%s", strerror(errno)) : 0;
}

static void tidy(void *image)
{
	if (fmt_tidy(image))
		cli_trim();
}

static int serve_fiber(void *arg)
{
	struct job *j = (struct job *)arg;
	struct blk_nbd_server o = {
		.exports = &j->export,
		.nexports = 1,
		.fds = j->fds,
		.nfds = j->nfds,
		.stop_fd = j->stop_fd,
		.clients = j->s->clients,
		.persistent = j->s->persistent,
		.tls = j->tls,
		.tick = tidy,
		.tick_ctx = j->image,
		.mem = &thr_heap,
	};

	return blk_nbd_serve(&o, &j->err);
}

/* The parent has waited for this. */
static void tell_parent(struct job *j)
{
	int null;

	if (j->ready < 0)
		return;
	fflush(NULL);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; null >= 0 && fd < 3; fd++)
		(void)dup2(null, fd);
	if (write(j->ready, "", 1) != 1)
		j->s->persistent = false; /* nobody knows of us */
	close(j->ready);
	j->ready = -1;
}

static int run(struct job *j)
{
	int err;

	if (open_image(j) || take_part(j) || describe(j) || open_stop_fd(j))
		return 1;
	if (j->s->tls_creds && serve_tls_open(&j->tls, j->s->tls_creds))
		return 1;
	if (listen_at(j) || write_pid(j->s->pid_file))
		return 1;
	tell_parent(j);
	err = cli_run(j->s->threads, serve_fiber, j);
	if (err)
		cli_fail(&j->err);
	return err ? 1 : 0;
}

/* -1 in the child, or the parent's exit status once the child listens or has failed. */
static int fork_off(struct job *j)
{
	int p[2];
	pid_t pid;
	char byte;

	fflush(NULL);
	if (pipe2(p, O_CLOEXEC))
		return cli_error("%s", strerror(errno));
	pid = fork();
	if (pid < 0)
		return cli_error("Failed to fork: %s", strerror(errno));
	if (pid) {
		close(p[1]);
		return read(p[0], &byte, 1) != 1;
	}
	close(p[0]);
	setsid();
	j->ready = p[1];
	return -1;
}

int serve_run(struct serve *s)
{
	struct job *j = calloc(1, sizeof(*j));
	int ret;

	if (!j)
		return cli_no_memory();
	j->s = s;
	j->stop_fd = j->ready = -1;
	ret = take_handed(j);
	if (!ret && s->fork) {
		ret = fork_off(j);
		if (ret >= 0) {
			free(j);
			return ret;
		}
		ret = 0;
	}
	if (!ret)
		ret = run(j);
	release(j);
	blk_close(j->part);
	if (j->image && !s->read_only && blk_flush(j->image) && !ret)
		ret = cli_error("Could not write what was pending");
	if (j->image)
		ret |= cli_close(j->image);
	free(j);
	return ret;
}
