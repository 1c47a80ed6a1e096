/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/blk_nbd.c - where an NBD server is, from names and from options; names that
 * are the driver's.
 */
#include "blk_util.h"

#include "blk/nbd.h"

struct name_case {
	const char *name;
	const char *uri, *path, *host, *port, *export; /* all NULL: refused */
};

static const struct name_case names[] = {
	{"nbd://h", .uri = "nbd://h", .export = ""},
	{"nbd://h:1/x", .uri = "nbd://h:1/x", .export = ""},
	{"nbds+unix:///?socket=/s", .uri = "nbds+unix:///?socket=/s", .export = ""},
	{"nbd+vsock://2:10809/", .uri = "nbd+vsock://2:10809/", .export = ""},
	{"nbd:unix:/tmp/s", .path = "/tmp/s", .export = ""},
	{"nbd:unix:/tmp/a:b", .path = "/tmp/a:b", .export = ""},
	{"nbd:unix:s:exportname=", .path = "s", .export = ""},
	{"nbd:unix:s:exportname=a:b=c", .path = "s", .export = "a:b=c"},
	{"nbd:localhost:10809", .host = "localhost", .port = "10809", .export = ""},
	{"nbd:h:1:exportname=e", .host = "h", .port = "1", .export = "e"},
	{"nbd:[::1]:1", .host = "::1", .port = "1", .export = ""},
	{"nbd:[fe80::1%lo]:nbd:exportname=e", .host = "fe80::1%lo", .port = "nbd",
		.export = "e"},
	{.name = "nbd:"},
	{.name = "nbd:h"},
	{.name = "nbd:h:"},
	{.name = "nbd::1"},
	{.name = "nbd:[]:1"},
	{.name = "nbd:[::1]"},
	{.name = "nbd:[::1:1"},
	{.name = "nbd:[::1]1"},
	{.name = "nbd:h:1:x"},
	{.name = "nbd:unix:"},
	{.name = "nbd:unix::exportname=e"},
	{.name = "nbd:unix:exportname=e"},
	{.name = "nbd:[::1]:exportname=e"},
	{.name = "nbd:h:exportname=e"},
	{.name = "nbd::exportname=e"},
	{.name = "nbds:h:1"},
	{.name = "nbd+unix:s"},
};

static void same_or_null(const char *is, const char *want)
{
	if (want) {
		assert_non_null(is);
		assert_string_equal(is, want);
	} else {
		assert_null(is);
	}
}

static int parse(struct nbd_target *t, struct purse *p, const char *name,
	const struct blk_opt *v, unsigned n, struct blk_err *err)
{
	struct blk_opts opts = {.v = v, .n = n};
	struct blk_open o = {.name = name, .opts = v ? &opts : NULL, .mem = &p->mem};

	return blk_nbd_target_init(t, &o, err);
}

static void t_names(void **state)
{
	struct purse p;

	(void)state;
	purse_init(&p);
	for (size_t i = 0; i < THR_ARRAY_SIZE(names); i++) {
		const struct name_case *c = &names[i];
		struct blk_err err = BLK_ERR_INIT;
		struct nbd_target t;

		if (!c->export) {
			assert_int_equal(parse(&t, &p, c->name, NULL, 0, &err), -THR_EINVAL);
			assert_int_equal(err.id, BLK_E_NBD_NAME);
			assert_int_equal(p.live, 0);
			continue;
		}
		assert_int_equal(parse(&t, &p, c->name, NULL, 0, &err), 0);
		same_or_null(t.uri, c->uri);
		same_or_null(t.path, c->path);
		same_or_null(t.host, c->host);
		same_or_null(t.port, c->port);
		same_or_null(t.export, c->export);
		assert_string_equal(t.name, c->name);
		assert_int_equal(t.connections, 8);
		assert_int_equal(t.reconnect_delay, 0);
		assert_true(t.tls_verify);
		blk_nbd_target_fini(&t, &p.mem);
		assert_int_equal(p.live, 0);
	}
}

struct opt_case {
	const char *name;
	struct blk_opt v[5];
	enum blk_err_id id; /* BLK_E_NONE: taken */
	const char *path, *cid, *host, *port, *export;
	enum nbd_tls tls;
};

static const struct opt_case opts[] = {
	{NULL, {{"server.type", "unix"}, {"server.path", "/s"}, {"export", "e"}},
		.id = BLK_E_NONE, .path = "/s", .export = "e"},
	{NULL, {{"path", "/s"}}, .id = BLK_E_NONE, .path = "/s", .export = ""},
	{NULL, {{"server.type", "inet"}, {"server.host", "h"}, {"server.port", "1"}},
		.id = BLK_E_NONE, .host = "h", .port = "1", .export = ""},
	{NULL, {{"host", "h"}}, .id = BLK_E_NONE, .host = "h", .port = "10809", .export = ""},
	{NULL, {{"server.type", "vsock"}, {"server.cid", "3"}, {"server.port", "1"}},
		.id = BLK_E_NONE, .cid = "3", .port = "1", .export = ""},
	{NULL, {{"filename", "nbd:unix:/s"}, {"export", "e"}}, .id = BLK_E_NONE, .path = "/s",
		.export = "e"},
	{"nbd:unix:/s", {{"tls", "allow"}}, .id = BLK_E_NONE, .path = "/s", .export = "",
		.tls = NBD_TLS_ALLOW},
	{"nbd:unix:/s", {{"tls-psk-file", "k"}, {"tls-username", "u"}}, .id = BLK_E_NONE,
		.path = "/s", .export = "", .tls = NBD_TLS_REQUIRE},
	{"nbd:unix:/s", {{"tls-certificates", "d"}, {"tls", "off"}}, .id = BLK_E_NONE,
		.path = "/s", .export = "", .tls = NBD_TLS_OFF},
	{NULL, {{"export", "e"}}, .id = BLK_E_NEED_OPTION},
	{NULL, {{"server.type", "unix"}}, .id = BLK_E_NEED_OPTION},
	{NULL, {{"server.type", "inet"}, {"server.host", "h"}}, .id = BLK_E_NEED_OPTION},
	{NULL, {{"server.type", "inet"}, {"server.port", "1"}}, .id = BLK_E_NEED_OPTION},
	{NULL, {{"server.type", "vsock"}, {"server.port", "1"}}, .id = BLK_E_NEED_OPTION},
	{NULL, {{"server.type", "vsock"}, {"server.cid", "3"}}, .id = BLK_E_NEED_OPTION},
	{NULL, {{"server.type", "fd"}}, .id = BLK_E_BAD_VALUE},
	{NULL, {{"path", "/s"}, {"host", "h"}}, .id = BLK_E_BAD_OPTION},
	{NULL, {{"path", "/s"}, {"port", "1"}}, .id = BLK_E_BAD_OPTION},
	{NULL, {{"server.type", "inet"}, {"path", "/s"}, {"host", "h"}},
		.id = BLK_E_BAD_OPTION},
	{"nbd:unix:/s", {{"server.path", "/s"}}, .id = BLK_E_BAD_OPTION},
	{"nbd:unix:/s:exportname=e", {{"export", "e"}}, .id = BLK_E_BAD_OPTION},
	{"nbd://h", {{"export", "e"}}, .id = BLK_E_BAD_OPTION},
	{"nbd://h", {{"tls", "require"}}, .id = BLK_E_BAD_OPTION},
	{"nbd:unix:/s", {{"tls", "on"}}, .id = BLK_E_BAD_VALUE},
	{"nbd:unix:/s", {{"tls-verify-peer", "maybe"}}, .id = BLK_E_BAD_VALUE},
	{"nbd:unix:/s", {{"connections", "0"}}, .id = BLK_E_BAD_VALUE},
	{"nbd:unix:/s", {{"connections", "17"}}, .id = BLK_E_BAD_VALUE},
	{"nbd:unix:/s", {{"reconnect-delay", "-1"}}, .id = BLK_E_BAD_VALUE},
	{"nbd:unix:/s", {{"open-timeout", "4294967296"}}, .id = BLK_E_BAD_VALUE},
};

static void t_opts(void **state)
{
	struct purse p;

	(void)state;
	purse_init(&p);
	for (size_t i = 0; i < THR_ARRAY_SIZE(opts); i++) {
		const struct opt_case *c = &opts[i];
		struct blk_err err = BLK_ERR_INIT;
		struct nbd_target t;
		unsigned n = 0;

		while (c->v[n].key)
			n++;
		if (c->id != BLK_E_NONE) {
			assert_int_equal(parse(&t, &p, c->name, c->v, n, &err), -THR_EINVAL);
			assert_int_equal(err.id, c->id);
			assert_int_equal(p.live, 0);
			continue;
		}
		assert_int_equal(parse(&t, &p, c->name, c->v, n, &err), 0);
		same_or_null(t.path, c->path);
		same_or_null(t.cid, c->cid);
		same_or_null(t.host, c->host);
		same_or_null(t.port, c->port);
		same_or_null(t.export, c->export);
		assert_int_equal(t.tls, c->tls);
		blk_nbd_target_fini(&t, &p.mem);
	}
}

static void t_limits(void **state)
{
	const struct blk_opt v[] = {{"reconnect-delay", "7"}, {"open-timeout", "4294967295"},
		{"connections", "16"}, {"tls-verify-peer", "off"}};
	struct nbd_target t;
	struct purse p;

	(void)state;
	purse_init(&p);
	assert_int_equal(parse(&t, &p, "nbd:unix:/s", v, 4, NULL), 0);
	assert_int_equal(t.reconnect_delay, 7);
	assert_true(t.open_timeout == UINT32_MAX);
	assert_int_equal(t.connections, 16);
	assert_false(t.tls_verify);
	blk_nbd_target_fini(&t, &p.mem);
	p.fail_at = p.calls + 1;
	assert_int_equal(parse(&t, &p, "nbd:unix:/s", v, 4, NULL), -THR_ENOMEM);
}

static void t_long_export(void **state)
{
	struct blk_opt v = {.key = "export"};
	char name[4099];
	struct nbd_target t;
	struct purse p;

	(void)state;
	purse_init(&p);
	memset(name, 'x', sizeof(name));
	name[4097] = '\0';
	v.val = name;
	assert_int_equal(parse(&t, &p, "nbd:unix:/s", &v, 1, NULL), -THR_ENAMETOOLONG);
	name[4096] = '\0';
	assert_int_equal(parse(&t, &p, "nbd:unix:/s", &v, 1, NULL), 0);
	blk_nbd_target_fini(&t, &p.mem);
	assert_int_equal(p.live, 0);
}

/* The same server and export, however it is told. */
static void t_same(void **state)
{
	const struct blk_opt a[] = {{"path", "/s"}}, b[] = {{"path", "/s"}, {"export", "x"}};
	struct nbd_target t[3];
	struct purse p;

	(void)state;
	purse_init(&p);
	assert_int_equal(parse(&t[0], &p, "nbd:unix:/s", NULL, 0, NULL), 0);
	assert_int_equal(parse(&t[1], &p, NULL, a, 1, NULL), 0);
	assert_int_equal(parse(&t[2], &p, NULL, b, 2, NULL), 0);
	assert_true(blk_nbd_target_same(&t[0], &t[1]));
	assert_false(blk_nbd_target_same(&t[0], &t[2]));
	for (int i = 0; i < 3; i++)
		blk_nbd_target_fini(&t[i], &p.mem);
}

static void t_driver(void **state)
{
	static const char *const ours[] = {"nbd:unix:none", "nbd+unix:///?socket=none"};
	struct blk_opt v = {"server.other", "x"};
	struct blk_opts unknown = {.v = &v, .n = 1};
	struct blk_open o = {.mem = &thr_heap};
	struct blk_err err;
	struct blk *b;

	(void)state;
	for (size_t i = 0; i < THR_ARRAY_SIZE(ours); i++) {
		o.name = ours[i];
		assert_int_equal(blk_open(&b, &o, &err), -THR_ENOENT);
		assert_int_equal(err.id, BLK_E_NBD_CONNECT);
	}
	o.opts = &unknown;
	assert_int_equal(blk_open(&b, &o, &err), -THR_EINVAL);
	assert_int_equal(err.id, BLK_E_BAD_OPTION);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_names),
		cmocka_unit_test(t_opts),
		cmocka_unit_test(t_limits),
		cmocka_unit_test(t_long_export),
		cmocka_unit_test(t_same),
		cmocka_unit_test(t_driver),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
