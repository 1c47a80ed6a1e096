/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/nbd_name.c - where an NBD server is, from a name or from options.
 *
 * Names are URIs (the NBD project's doc/uri.md), which libnbd takes apart, and the
 * older ones of QEMU: nbd:HOST:PORT[:exportname=NAME], nbd:unix:PATH[:exportname=NAME].
 */
#include <string.h>

#include "blk/nbd.h"

const char *const blk_nbd_keys[] = {"filename", "server.type", "server.path", "server.host",
	"server.port", "server.cid", "path", "host", "port", "export", "tls",
	"tls-certificates", "tls-psk-file", "tls-username", "tls-verify-peer",
	"reconnect-delay", "open-timeout", "connections", NULL};

static const char *keep_part(struct nbd_target *t, const char *s, size_t n)
{
	char *to = t->text + t->used;

	THR_ASSERT(n < t->size - t->used);
	memcpy(to, s, n);
	to[n] = '\0';
	t->used += n + 1;
	return to;
}

static const char *keep(struct nbd_target *t, const char *s)
{
	return s ? keep_part(t, s, strlen(s)) : NULL;
}

/* Every string is kept at most twice, once as the name. */
static int make_room(struct nbd_target *t, const struct blk_open *o)
{
	size_t n = o->name ? strlen(o->name) : 0;

	for (unsigned i = 0; o->opts && i < o->opts->n; i++)
		n += strlen(o->opts->v[i].val) + 1;
	t->size = 2 * n + 64;
	t->text = (char *)thr_get(o->mem, t->size, 1);
	return t->text ? 0 : -THR_ENOMEM;
}

static int bad_name(struct blk_err *err)
{
	return blk_fail(err, -THR_EINVAL, BLK_E_NBD_NAME, 0, 0);
}

static bool is_uri(const char *name)
{
	const char *colon = strchr(name, ':');

	return colon && colon[1] == '/' && colon[2] == '/';
}

/* HOST:PORT in @n bytes, behind which the export's colon may be; a host of IPv6 is in
 * brackets. */
static int take_address(struct nbd_target *t, const char *s, size_t n, struct blk_err *err)
{
	const char *host = s, *close, *colon;

	if (*s == '[') {
		host = s + 1;
		close = memchr(host, ']', n - 1);
		if (!close || close[1] != ':')
			return bad_name(err);
		colon = close + 1;
	} else {
		close = colon = memchr(s, ':', n);
	}
	if (!colon || close == host || colon + 1 >= s + n)
		return bad_name(err);
	t->host = keep_part(t, host, (size_t)(close - host));
	t->port = keep_part(t, colon + 1, (size_t)(s + n - colon) - 1);
	return strchr(t->port, ':') ? bad_name(err) : 0;
}

static int take_name(struct nbd_target *t, const char *name, struct blk_err *err)
{
	static const char key[] = ":exportname=";
	const char *s, *export;
	size_t n;

	if (is_uri(name)) {
		t->uri = keep(t, name);
		return 0;
	}
	if (!blk_str_starts(name, "nbd:"))
		return bad_name(err);
	s = name + 4;
	export = strstr(s, key);
	n = export ? (size_t)(export - s) : strlen(s);
	if (export)
		t->export = keep(t, export + sizeof(key) - 1);
	if (!blk_str_starts(s, "unix:"))
		return n ? take_address(t, s, n, err) : bad_name(err);
	if (n <= 5) /* "unix:exportname=" has one colon for both */
		return bad_name(err);
	t->path = keep_part(t, s + 5, n - 5);
	return 0;
}

static const char *either(const struct blk_opts *o, const char *key, const char *old_key)
{
	const char *s = blk_opt(o, key);

	return s ? s : blk_opt(o, old_key);
}

static int need(const char *key, struct blk_err *err)
{
	return blk_fail_str(err, -THR_EINVAL, BLK_E_NEED_OPTION, key);
}

/* server.type=unix|inet|vsock; the older keys have no type. */
static int take_server(struct nbd_target *t, const struct blk_opts *o, struct blk_err *err)
{
	const char *type = blk_opt(o, "server.type");
	const char *path = either(o, "server.path", "path");
	const char *host = either(o, "server.host", "host");

	if (!type && !path && !host)
		return need("server.type", err);
	if (!type)
		type = path ? "unix" : "inet";
	t->port = keep(t, either(o, "server.port", "port"));
	if (blk_str_eq(type, "unix")) {
		if (host || t->port)
			return blk_fail_str(err, -THR_EINVAL, BLK_E_BAD_OPTION,
				host ? "server.host" : "server.port");
		t->path = keep(t, path);
		return t->path ? 0 : need("server.path", err);
	}
	if (path)
		return blk_fail_str(err, -THR_EINVAL, BLK_E_BAD_OPTION, "server.path");
	if (blk_str_eq(type, "inet")) {
		t->host = keep(t, host);
		if (!t->port && !blk_opt(o, "server.host"))
			t->port = keep_part(t, "10809", 5);
		return !t->host   ? need("server.host", err)
		       : !t->port ? need("server.port", err)
				  : 0;
	}
	if (!blk_str_eq(type, "vsock"))
		return blk_fail_str(err, -THR_EINVAL, BLK_E_BAD_VALUE, "server.type");
	t->cid = keep(t, blk_opt(o, "server.cid"));
	return !t->cid ? need("server.cid", err) : !t->port ? need("server.port", err) : 0;
}

static int take_number(const struct blk_opts *o, const char *key, uint32_t def, uint32_t max,
	uint32_t *out, struct blk_err *err)
{
	uint64_t v;
	int code = blk_opt_size(o, key, def, &v, err);

	if (code)
		return code;
	if (v > max)
		return blk_fail_str(err, -THR_EINVAL, BLK_E_BAD_VALUE, key);
	*out = (uint32_t)v;
	return 0;
}

static int take_tls(struct nbd_target *t, const struct blk_opts *o, struct blk_err *err)
{
	const char *s = blk_opt(o, "tls");

	t->tls_certificates = keep(t, blk_opt(o, "tls-certificates"));
	t->tls_psk_file = keep(t, blk_opt(o, "tls-psk-file"));
	t->tls_username = keep(t, blk_opt(o, "tls-username"));
	if (s && t->uri) /* its scheme says so */
		return blk_fail_str(err, -THR_EINVAL, BLK_E_BAD_OPTION, "tls");
	if (!s)
		t->tls = t->tls_certificates || t->tls_psk_file ? NBD_TLS_REQUIRE
								: NBD_TLS_UNSET;
	else if (blk_str_eq(s, "off"))
		t->tls = NBD_TLS_OFF;
	else if (blk_str_eq(s, "allow"))
		t->tls = NBD_TLS_ALLOW;
	else if (blk_str_eq(s, "require"))
		t->tls = NBD_TLS_REQUIRE;
	else
		return blk_fail_str(err, -THR_EINVAL, BLK_E_BAD_VALUE, "tls");
	return blk_opt_bool(o, "tls-verify-peer", true, &t->tls_verify, err);
}

static int take_limits(struct nbd_target *t, const struct blk_opts *o, struct blk_err *err)
{
	int code = take_number(o, "reconnect-delay", 0, UINT32_MAX, &t->reconnect_delay, err);

	if (!code)
		code = take_number(o, "open-timeout", 0, UINT32_MAX, &t->open_timeout, err);
	if (!code)
		code = take_number(o, "connections", 8, NBD_MAX_LINKS, &t->connections, err);
	if (!code && !t->connections)
		code = blk_fail_str(err, -THR_EINVAL, BLK_E_BAD_VALUE, "connections");
	return code;
}

/* A name says all about the server, so that no option may say otherwise. */
static int no_server_too(const struct blk_opts *o, struct blk_err *err)
{
	static const char *const keys[] = {"server.type", "server.path", "server.host",
		"server.port", "server.cid", "path", "host", "port"};

	for (size_t i = 0; i < THR_ARRAY_SIZE(keys); i++)
		if (blk_opt(o, keys[i]))
			return blk_fail_str(err, -THR_EINVAL, BLK_E_BAD_OPTION, keys[i]);
	return 0;
}

static int take_export(struct nbd_target *t, const struct blk_opts *o, struct blk_err *err)
{
	const char *s = blk_opt(o, "export");

	if (s && (t->export || t->uri))
		return blk_fail_str(err, -THR_EINVAL, BLK_E_BAD_OPTION, "export");
	if (s)
		t->export = keep(t, s);
	if (!t->export)
		t->export = keep_part(t, "", 0);
	/* NBD strings are at most 4096 bytes long. */
	return strlen(t->export) > 4096 ? blk_fail(err, -THR_ENAMETOOLONG, BLK_E_SYS, 0, 0) : 0;
}

int blk_nbd_target_init(struct nbd_target *t, const struct blk_open *o, struct blk_err *err)
{
	const char *name = o->name ? o->name : blk_opt(o->opts, "filename");
	int code;

	memset(t, 0, sizeof(*t));
	code = make_room(t, o);
	if (code)
		return blk_fail(err, code, BLK_E_SYS, 0, 0);
	code = name ? no_server_too(o->opts, err) : 0;
	if (!code)
		code = name ? take_name(t, name, err) : take_server(t, o->opts, err);
	if (!code)
		code = take_export(t, o->opts, err);
	if (!code)
		code = take_tls(t, o->opts, err);
	if (!code)
		code = take_limits(t, o->opts, err);
	if (code) {
		blk_nbd_target_fini(t, o->mem);
		return code;
	}
	t->name = name ? keep(t, name) : t->path ? t->path : t->host ? t->host : t->cid;
	return 0;
}

void blk_nbd_target_fini(struct nbd_target *t, const struct thr_alloc *mem)
{
	if (t->text)
		thr_put(mem, t->text, t->size);
	t->text = NULL;
}

static bool both_same(const char *a, const char *b)
{
	return a && b ? blk_str_eq(a, b) : a == b;
}

bool blk_nbd_target_same(const struct nbd_target *a, const struct nbd_target *b)
{
	return both_same(a->uri, b->uri) && both_same(a->path, b->path) &&
	       both_same(a->cid, b->cid) && both_same(a->host, b->host) &&
	       both_same(a->port, b->port) && both_same(a->export, b->export);
}
