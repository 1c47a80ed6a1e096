/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/serve_listen.c - sockets that an NBD server listens on.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "blk/serve.h"

#define BACKLOG 64
#define KIND    (SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK)

/* Whether a socket's file is one that nobody listens on any more. */
static bool stale(const struct sockaddr_un *a)
{
	struct stat st;
	bool dead;
	int fd;

	if (lstat(a->sun_path, &st) || !S_ISSOCK(st.st_mode))
		return false;
	fd = socket(AF_UNIX, KIND, 0);
	if (fd < 0)
		return false;
	dead = connect(fd, (const struct sockaddr *)a, sizeof(*a)) && errno == ECONNREFUSED;
	close(fd);
	return dead;
}

static int bind_unix(int fd, const struct sockaddr_un *a)
{
	if (!bind(fd, (const struct sockaddr *)a, sizeof(*a)))
		return 0;
	if (errno != EADDRINUSE)
		return -errno;
	if (!stale(a))
		return -EADDRINUSE;
	if (unlink(a->sun_path) || bind(fd, (const struct sockaddr *)a, sizeof(*a)))
		return -errno;
	return 0;
}

int blk_nbd_listen_unix(const char *path, int *out, struct blk_err *err)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int code, fd;

	if (strlen(path) >= sizeof(a.sun_path))
		return blk_fail_str(err, -ENAMETOOLONG, BLK_E_NBD_LISTEN, path);
	memcpy(a.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, KIND, 0);
	if (fd < 0)
		return blk_fail_str(err, -errno, BLK_E_NBD_LISTEN, path);
	code = bind_unix(fd, &a);
	if (!code && listen(fd, BACKLOG))
		code = -errno;
	if (code) {
		close(fd);
		return blk_fail_str(err, code, BLK_E_NBD_LISTEN, path);
	}
	*out = fd;
	return 0;
}

static int listen_at(const struct addrinfo *a)
{
	int one = 1, code;
	int fd = socket(a->ai_family, KIND, 0);

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (a->ai_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	if (!bind(fd, a->ai_addr, a->ai_addrlen) && !listen(fd, BACKLOG))
		return fd;
	code = -errno;
	close(fd);
	return code;
}

int blk_nbd_listen_tcp(const char *host, const char *port, int *fds, unsigned max, unsigned *n,
	struct blk_err *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC};
	struct addrinfo *list, *a;
	const char *what = host && *host ? host : port;
	int code = -EADDRNOTAVAIL, fd;

	*n = 0;
	if (host && !*host) {
		host = NULL;
		hints.ai_flags = AI_PASSIVE;
	}
	if (getaddrinfo(host, port, &hints, &list))
		return blk_fail_str(err, -EADDRNOTAVAIL, BLK_E_NBD_LISTEN, what);
	for (a = list; a && *n < max; a = a->ai_next) {
		fd = listen_at(a);
		if (fd >= 0)
			fds[(*n)++] = fd;
		else
			code = fd;
	}
	freeaddrinfo(list);
	/* A machine may have one kind of address only. */
	return *n ? 0 : blk_fail_str(err, code, BLK_E_NBD_LISTEN, what);
}
