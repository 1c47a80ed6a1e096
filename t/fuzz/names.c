/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/fuzz/names.c - any text where an image is named: json:{}, a list of options as after
 * --image-opts, --object secret, and where an NBD server is. Nothing is opened. Two
 * texts, with a NUL between: options or JSON or a name, then what a secret's file holds.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* The file of a secret is the input's. */
static FILE *open_input(const char *name, const char *mode);
#define fopen open_input
#include "cli/args.c"
#include "cli/decrypt_none.c"
#include "cli/object.c"
#undef fopen

#include "blk/nbd.h"
#include "fmt/names.h"
#include "t/fuzz/fuzz.h"

const char *cli_prog = "fuzz";
static const char *file_text;

static FILE *open_input(const char *name, const char *mode)
{
	size_t n = strlen(file_text);

	(void)mode;
	errno = ENOENT;
	return n && *name ? fmemopen((void *)(uintptr_t)file_text, n, "r") : NULL;
}

void cli_help(void)
{
}

int cli_error(const char *fmt, ...)
{
	(void)fmt;
	return 1;
}

int cli_fail(const struct blk_err *err)
{
	fuzz_explained(err->code, err);
	return 1;
}

int cli_usage(const char *fmt, ...)
{
	(void)fmt;
	return 1;
}

int cli_no_memory(void)
{
	return 1;
}

int cli_done(int status)
{
	return status;
}

/* Reads certificates, which is not ours. */
int cli_tls_add(struct cli_opts *l, const char *type)
{
	FUZZ_MUST(blk_str_starts(type, "tls-creds-"));
	cli_opts_free(l);
	return 1;
}

/* ---- NBD ------------------------------------------------------------------------- */

static void target_sane(const struct nbd_target *t)
{
	FUZZ_MUST(!!t->uri + !!t->path + !!t->cid + !!t->host == 1);
	FUZZ_MUST(!t->host || t->port);
	FUZZ_MUST(!t->cid || t->port);
	FUZZ_MUST(t->export && strlen(t->export) <= 4096);
	FUZZ_MUST(t->name && t->used <= t->size);
	FUZZ_MUST(t->connections && t->connections <= NBD_MAX_LINKS);
	FUZZ_MUST(blk_nbd_target_same(t, t));
}

static int nbd_target(struct nbd_target *t, const char *name, const struct blk_opts *opts)
{
	struct blk_open o = {.name = name, .opts = opts, .mem = &fuzz_mem};
	struct blk_err err = BLK_ERR_INIT;
	int code = blk_nbd_target_init(t, &o, &err);

	fuzz_explained(code, &err);
	if (!code)
		target_sane(t);
	return code;
}

/* A name says the same as an option. */
static void nbd_name(const char *text)
{
	const struct blk_opt o = {"filename", text};
	const struct blk_opts opts = {&o, 1};
	struct nbd_target a, b;
	int code = nbd_target(&a, text, NULL);

	FUZZ_MUST(nbd_target(&b, NULL, &opts) == code);
	if (code)
		return;
	FUZZ_MUST(blk_nbd_target_same(&a, &b));
	blk_nbd_target_fini(&a, &fuzz_mem);
	blk_nbd_target_fini(&b, &fuzz_mem);
}

/* ---- options ----------------------------------------------------------------------- */

static void known(const struct fmt_names *l)
{
	FUZZ_MUST(l->o.n <= FMT_OPTS_MAX);
	for (unsigned i = 0; i < l->o.n; i++)
		FUZZ_MUST(strlen(l->v[i].key) < FMT_KEY_MAX && l->v[i].val);
}

/* Brought into form, and once more: there is nothing left to do. */
static void settle(struct fmt_names *l, const char *name)
{
	struct fmt_open o = {.name = name, .blk_flags = BLK_RDWR}, again;
	struct blk_err err = BLK_ERR_INIT;
	int code = fmt_names_settle(l, &o, &err);
	struct fmt_names below;
	struct nbd_target t;
	unsigned n = l->o.n;

	fuzz_explained(code, &err);
	known(l);
	if (code)
		return;
	FUZZ_MUST(o.opts == &l->o && (!o.name || !fmt_names_json(o.name) || !name));
	again = o;
	FUZZ_MUST(!fmt_names_settle(l, &again, &err));
	FUZZ_MUST(l->o.n == n && again.name == o.name && again.blk_flags == o.blk_flags);
	fmt_names_init(&below, &fuzz_mem);
	code = fmt_names_sub(&below, &l->o, "file.", &err);
	FUZZ_MUST(!code || fuzz_mem_ran_out());
	fmt_names_drop(&below, "driver");
	if (!nbd_target(&t, NULL, &below.o))
		blk_nbd_target_fini(&t, &fuzz_mem);
	fmt_names_free(&below);
}

static void json(const char *text)
{
	struct blk_err err = BLK_ERR_INIT;
	struct fmt_names l;
	int code;

	if (!fmt_names_json(text))
		return;
	fmt_names_init(&l, &fuzz_mem);
	code = fmt_json_add(&l, text, &err);
	fuzz_explained(code, &err);
	FUZZ_MUST(!code || !l.o.n || fuzz_mem_ran_out());
	known(&l);
	if (!code)
		settle(&l, text);
	fmt_names_free(&l);
}

static void image_opts(const char *text)
{
	struct blk_err err = BLK_ERR_INIT;
	struct cli_opts given = {0};
	struct fmt_names l;
	int code = 0;

	fmt_names_init(&l, &fuzz_mem);
	if (!cli_opts_add(&given, text)) {
		code = fmt_names_sub(&l, &given.o, "", &err);
		fuzz_explained(code, &err);
		if (!code)
			settle(&l, NULL);
	}
	fmt_names_free(&l);
	cli_opts_free(&given);
}

/* A copy, as what holds a secret is covered. */
static int add_object(const char *text)
{
	char *arg = strdup(text);
	int ret;

	FUZZ_MUST(arg);
	ret = cli_object_add(arg);
	free(arg);
	return ret;
}

/* Base64 is at most three bytes of four. */
static void object(const char *text)
{
	if (!add_object(text)) {
		const struct fmt_secrets *s = cli_secrets();

		FUZZ_MUST(s->n == 1 && *s->v[0].id && s->v[0].len <= SECRET_MAX);
		FUZZ_MUST(fmt_secret(s, s->v[0].id) == &s->v[0]);
		FUZZ_MUST(add_object(text)); /* there are two of that name */
	}
	cli_secrets_wipe();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *text = malloc(len + 2);

	FUZZ_MUST(text);
	memcpy(text, data, len);
	text[len] = text[len + 1] = '\0';
	file_text = text + strlen(text) + 1;
	if (file_text > text + len)
		file_text = text + len;
	json(text);
	image_opts(text);
	object(text);
	nbd_name(text);
	free(text);
	fuzz_mem_end();
	return 0;
}
