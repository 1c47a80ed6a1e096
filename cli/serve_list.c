/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/serve_list.c - serve --list: what another server exports.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/serve.h"

#define OPTS_MAX    10
#define MAX_EXPORTS 10000

struct found {
	char *name, *text;
};

struct exports {
	struct found *v;
	unsigned n;
};

static int add(void *arg, const char *name, const char *text)
{
	struct exports *x = (struct exports *)arg;
	struct found *v = x->n < MAX_EXPORTS ? realloc(x->v, (x->n + 1) * sizeof(*v)) : NULL;

	if (!v)
		return -THR_ENOMEM;
	x->v = v;
	v[x->n].name = strdup(name);
	v[x->n].text = text ? strdup(text) : NULL;
	x->n++;
	return 0;
}

static void free_all(struct exports *x)
{
	for (unsigned i = 0; i < x->n; i++) {
		free(x->v[i].name);
		free(x->v[i].text);
	}
	free(x->v);
}

static void where(const struct serve *s, struct blk_opt *v, unsigned *n)
{
	if (s->socket) {
		v[(*n)++] = (struct blk_opt){"path", s->socket};
		return;
	}
	v[(*n)++] = (struct blk_opt){"host", s->bind ? s->bind : "localhost"};
	v[(*n)++] = (struct blk_opt){"port", s->port ? s->port : "10809"};
}

static int with_tls(const struct serve *s, struct blk_opt *v, unsigned *n, char **psk)
{
	const struct blk_opts *o = s->tls_creds ? cli_tls_find(s->tls_creds) : NULL;
	const char *verify, *user;

	if (!s->tls_creds)
		return 0;
	if (!o)
		return cli_error("No TLS credentials with id '%s'", s->tls_creds);
	v[(*n)++] = (struct blk_opt){"tls", "require"};
	verify = blk_opt(o, "verify-peer");
	user = blk_opt(o, "username");
	if (verify)
		v[(*n)++] = (struct blk_opt){"tls-verify-peer", verify};
	if (!strcmp(blk_opt(o, "qom-type"), "tls-creds-x509")) {
		v[(*n)++] = (struct blk_opt){"tls-certificates", blk_opt(o, "dir")};
		return 0;
	}
	if (asprintf(psk, "%s/keys.psk", blk_opt(o, "dir")) < 0)
		return cli_no_memory();
	v[(*n)++] = (struct blk_opt){"tls-psk-file", *psk};
	v[(*n)++] = (struct blk_opt){"tls-username", user ? user : "qemu"};
	return 0;
}

static void print_size(struct blk_open o, struct blk_opt *v, unsigned n, const char *name)
{
	struct blk_opts opts = {v, n + 1};
	struct blk *b;

	v[n] = (struct blk_opt){"export", name};
	o.opts = &opts;
	if (blk_open(&b, &o, NULL))
		return;
	printf("  size:  %llu\n", (unsigned long long)blk_size(b));
	blk_close(b);
}

int serve_list(const struct serve *s)
{
	struct blk_opt v[OPTS_MAX];
	unsigned n = 0;
	struct blk_opts opts = {.v = v};
	struct blk_open o = {.driver = "nbd", .opts = &opts, .mem = &thr_heap};
	struct blk_err err = BLK_ERR_INIT;
	struct exports x = {0};
	char *psk = NULL;
	int ret;

	if (s->tls_hostname)
		return cli_error("--tls-hostname is not supported");
	where(s, v, &n);
	if (with_tls(s, v, &n, &psk))
		return 1;
	opts.n = n;
	ret = blk_nbd_list(&o, add, &x, &err) ? cli_fail(&err) : 0;
	if (!ret)
		printf("exports available: %u\n", x.n);
	for (unsigned i = 0; !ret && i < x.n; i++) {
		printf(" export: '%s'\n", x.v[i].name);
		if (x.v[i].text && *x.v[i].text)
			printf("  description: %s\n", x.v[i].text);
		print_size(o, v, n, x.v[i].name);
	}
	free_all(&x);
	free(psk);
	return ret;
}
