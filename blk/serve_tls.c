/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/serve_tls.c - TLS for NBD connections, by OpenSSL, which reads and writes the
 * non-blocking socket itself. One record is filled from several pieces before it is
 * encrypted, so that a reply's header takes no record of its own.
 *
 * Shared keys are lines "NAME:HEX" in keys.psk, as GnuTLS's psktool writes them.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "blk/serve.h"
#include "blk/ssl_lib.h"

#define RECORD   16384
#define PATH_LEN 1024
#define KEYS_MAX 1024
#define KEY_LEN  64

struct key {
	char name[129];
	uint8_t key[KEY_LEN];
	unsigned len;
};

struct blk_nbd_tls {
	const struct thr_alloc *mem;
	SSL_CTX *ctx;
	struct key *keys;
	unsigned nkeys;
};

/* ---- shared keys
 * ------------------------------------------------------------------------------ */

static int digit(char ch)
{
	if (ch >= '0' && ch <= '9')
		return ch - '0';
	if (ch >= 'a' && ch <= 'f')
		return ch - 'a' + 10;
	return ch >= 'A' && ch <= 'F' ? ch - 'A' + 10 : -1;
}

static bool parse_key(const char *line, struct key *k)
{
	const char *colon = strchr(line, ':');
	size_t name = colon ? (size_t)(colon - line) : 0;
	const char *p;

	if (!name || name >= sizeof(k->name))
		return false;
	memcpy(k->name, line, name);
	k->name[name] = '\0';
	k->len = 0;
	for (p = colon + 1; digit(p[0]) >= 0 && digit(p[1]) >= 0 && k->len < KEY_LEN; p += 2)
		k->key[k->len++] = (uint8_t)(digit(p[0]) << 4 | digit(p[1]));
	return k->len && (!*p || *p == '\n' || *p == '\r');
}

static int read_keys(struct blk_nbd_tls *t, const char *path, struct blk_err *err)
{
	char line[512];
	FILE *f = fopen(path, "re");
	int code = 0;

	if (!f)
		return blk_fail_str(err, -errno, BLK_E_SYS_WHAT, path);
	setvbuf(f, NULL, _IONBF, 0);
	t->keys = (struct key *)thr_zget(t->mem, KEYS_MAX * sizeof(*t->keys));
	if (!t->keys)
		code = blk_fail(err, -ENOMEM, BLK_E_SYS, 0, 0);
	while (!code && t->nkeys < KEYS_MAX && fgets(line, sizeof(line), f)) {
		if (line[0] == '#' || line[0] == '\n')
			continue;
		if (!parse_key(line, &t->keys[t->nkeys]))
			code = blk_fail_str(err, -EINVAL, BLK_E_NBD_TLS,
				"keys.psk has a line that is no key");
		t->nkeys++;
	}
	explicit_bzero(line, sizeof(line));
	fclose(f);
	return code;
}

static unsigned find_key(SSL *ssl, const char *name, unsigned char *out, unsigned max)
{
	struct blk_nbd_tls *t = (struct blk_nbd_tls *)libssl.SSL_CTX_get_ex_data(
		libssl.SSL_get_SSL_CTX(ssl), 0);

	for (unsigned i = 0; i < t->nkeys; i++) {
		const struct key *k = &t->keys[i];

		if (strcmp(k->name, name) || k->len > max)
			continue;
		memcpy(out, k->key, k->len);
		return k->len;
	}
	return 0;
}

/* ---- credentials
 * --------------------------------------------------------------------------------- */

static int openssl_says(struct blk_err *err, const char *what)
{
	const char *why = libssl.ERR_reason_error_string(libssl.ERR_get_error());
	char text[BLK_ERR_STR_MAX];

	libssl.ERR_clear_error();
	snprintf(text, sizeof(text), "%s: %s", what, why ? why : "OpenSSL gives no reason");
	return blk_fail_str(err, -EINVAL, BLK_E_NBD_TLS, text);
}

static int use_certificates(
	struct blk_nbd_tls *t, const struct blk_nbd_tls_open *o, struct blk_err *err)
{
	char ca[PATH_LEN], cert[PATH_LEN], key[PATH_LEN];

	snprintf(ca, sizeof(ca), "%s/ca-cert.pem", o->dir);
	snprintf(cert, sizeof(cert), "%s/server-cert.pem", o->dir);
	snprintf(key, sizeof(key), "%s/server-key.pem", o->dir);
	if (libssl.SSL_CTX_use_certificate_chain_file(t->ctx, cert) != 1)
		return openssl_says(err, "server-cert.pem");
	if (libssl.SSL_CTX_use_PrivateKey_file(t->ctx, key, SSL_FILETYPE_PEM) != 1)
		return openssl_says(err, "server-key.pem");
	if (libssl.SSL_CTX_check_private_key(t->ctx) != 1)
		return openssl_says(err, "server-key.pem");
	if (!o->verify_peer)
		return 0;
	if (libssl.SSL_CTX_load_verify_locations(t->ctx, ca, NULL) != 1)
		return openssl_says(err, "ca-cert.pem");
	libssl.SSL_CTX_set_verify(
		t->ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	return 0;
}

static int use_keys(
	struct blk_nbd_tls *t, const struct blk_nbd_tls_open *o, struct blk_err *err)
{
	char path[PATH_LEN];
	int code;

	snprintf(path, sizeof(path), "%s/keys.psk", o->dir);
	code = read_keys(t, path, err);
	if (code)
		return code;
	libssl.SSL_CTX_set_psk_server_callback(t->ctx, find_key);
	return 0;
}

int blk_nbd_tls_open(
	struct blk_nbd_tls **out, const struct blk_nbd_tls_open *o, struct blk_err *err)
{
	int code = blk_ssl_need(err);
	struct blk_nbd_tls *t;

	if (code)
		return code;
	t = (struct blk_nbd_tls *)thr_zget(o->mem, sizeof(*t));
	if (!t)
		return blk_fail(err, -ENOMEM, BLK_E_SYS, 0, 0);
	t->mem = o->mem;
	if (strlen(o->dir) > PATH_LEN - 32)
		code = blk_fail_str(err, -ENAMETOOLONG, BLK_E_SYS_WHAT, o->dir);
	else if (!(t->ctx = libssl.SSL_CTX_new(libssl.TLS_server_method())))
		code = openssl_says(err, "TLS");
	else
		code = o->psk ? use_keys(t, o, err) : use_certificates(t, o, err);
	if (code) {
		blk_nbd_tls_close(t);
		return code;
	}
	libssl.SSL_CTX_set_ex_data(t->ctx, 0, t);
	libssl.SSL_CTX_ctrl(t->ctx, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, NULL);
	libssl.SSL_CTX_ctrl(t->ctx, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, NULL);
	libssl.SSL_CTX_set_num_tickets(t->ctx, 0);
	libssl.SSL_CTX_set_options(
		t->ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF);
	libssl.SSL_CTX_ctrl(t->ctx, SSL_CTRL_MODE,
		SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER, NULL);
	*out = t;
	return 0;
}

void blk_nbd_tls_close(struct blk_nbd_tls *t)
{
	if (!t)
		return;
	libssl.SSL_CTX_free(t->ctx);
	if (t->keys)
		explicit_bzero(t->keys, KEYS_MAX * sizeof(*t->keys));
	thr_put(t->mem, t->keys, KEYS_MAX * sizeof(*t->keys));
	thr_put(t->mem, t, sizeof(*t));
}

/* ---- a connection
 * ---------------------------------------------------------------------------------- */

struct stream {
	SSL *ssl;
	uint8_t record[RECORD]; /* what is being sent */
};

/* What a call of OpenSSL that gave @ret comes to. */
static int64_t outcome(SSL *ssl, int ret, enum thr_fd_dir *dir)
{
	int64_t res;

	if (ret > 0)
		return ret;
	switch (libssl.SSL_get_error(ssl, ret)) {
	case SSL_ERROR_WANT_READ:
		*dir = THR_FD_IN;
		res = -EAGAIN;
		break;
	case SSL_ERROR_WANT_WRITE:
		*dir = THR_FD_OUT;
		res = -EAGAIN;
		break;
	case SSL_ERROR_ZERO_RETURN:
		res = 0;
		break;
	default:
		res = -ECONNRESET;
	}
	libssl.ERR_clear_error();
	return res;
}

static int shake_hands(struct srv_conn *c, SSL *ssl)
{
	enum thr_fd_dir dir = THR_FD_IN;
	int64_t res;
	int err = 0;

	do {
		res = outcome(ssl, libssl.SSL_accept(ssl), &dir);
		if (res == -EAGAIN)
			err = thr_fd_wait(&c->io, dir);
	} while (res == -EAGAIN && !err);
	return res > 0 ? 0 : -EPROTO;
}

int blk_srv_tls_start(struct srv_conn *c)
{
	struct stream *s = (struct stream *)thr_get(c->srv->o->mem, sizeof(*s), 16);
	int err;

	if (!s)
		return -ENOMEM;
	s->ssl = libssl.SSL_new(c->srv->o->tls->ctx);
	err = s->ssl && libssl.SSL_set_fd(s->ssl, c->fd) == 1 ? shake_hands(c, s->ssl)
							      : -ENOMEM;
	if (!err) {
		c->tls = s;
		c->rx_empty = false;
		return 0;
	}
	libssl.SSL_free(s->ssl);
	thr_put(c->srv->o->mem, s, sizeof(*s));
	return err;
}

void blk_srv_tls_end(struct srv_conn *c)
{
	struct stream *s = (struct stream *)c->tls;

	if (!s)
		return;
	if (!c->dead)
		(void)libssl.SSL_shutdown(s->ssl);
	libssl.ERR_clear_error();
	libssl.SSL_free(s->ssl);
	explicit_bzero(s->record, sizeof(s->record));
	thr_put(c->srv->o->mem, s, sizeof(*s));
	c->tls = NULL;
}

int64_t blk_srv_tls_recv(struct srv_conn *c, void *buf, size_t len, enum thr_fd_dir *dir)
{
	SSL *ssl = ((struct stream *)c->tls)->ssl;

	return outcome(ssl, libssl.SSL_read(ssl, buf, (int)THR_MIN(len, 1u << 20)), dir);
}

int64_t blk_srv_tls_send(
	struct srv_conn *c, const struct thr_iov *v, unsigned n, enum thr_fd_dir *dir)
{
	struct stream *s = (struct stream *)c->tls;
	size_t len = 0;

	for (unsigned i = 0; i < n && len < RECORD; i++) {
		size_t part = THR_MIN(v[i].len, RECORD - len);

		memcpy(s->record + len, v[i].base, part);
		len += part;
	}
	return outcome(s->ssl, libssl.SSL_write(s->ssl, s->record, (int)len), dir);
}
