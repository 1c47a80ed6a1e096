/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/object.c - --object: secret,id=ID,data=TEXT|file=NAME[,format=raw|base64]. What
 * they hold is kept until the command is done and then wiped, as are the copies made on
 * the way; what is on the command line itself anybody can see.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

#define SECRET_MAX (1u << 20)

static struct fmt_secret *list;
static struct fmt_secrets secrets;

const struct fmt_secrets *cli_secrets(void)
{
	return &secrets;
}

static void wipe(void *p, size_t len)
{
	if (p)
		explicit_bzero(p, len);
	free(p);
}

void cli_secrets_wipe(void)
{
	for (unsigned i = 0; i < secrets.n; i++) {
		wipe((void *)(uintptr_t)list[i].data, list[i].len);
		free((char *)(uintptr_t)list[i].id);
	}
	free(list);
	list = NULL;
	secrets = (struct fmt_secrets){0};
}

/* ---- base64, RFC 4648; white space is skipped, as files end in a newline -------------- */

static int digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* In place; -1 where it is none. Padding may be left out. */
static int decode(uint8_t *buf, size_t *len)
{
	size_t out = 0, digits = 0, pad = 0;
	unsigned bits = 0;
	uint32_t held = 0;

	for (size_t in = 0; in < *len; in++) {
		char c = (char)buf[in];

		if (c == ' ' || (c >= '\t' && c <= '\r'))
			continue;
		pad += c == '=';
		if (c == '=')
			continue;
		if (pad || digit(c) < 0)
			return -1;
		digits++;
		held = (held << 6 | (uint32_t)digit(c)) & 0xffff;
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			buf[out++] = (uint8_t)(held >> bits);
		}
	}
	explicit_bzero(buf + out, *len - out);
	*len = out;
	return digits % 4 == 1 || (pad && (digits + pad) % 4) || pad > 2 ? -1 : 0;
}

/* ---- what is given ---------------------------------------------------------------------- */

static uint8_t *read_file(const char *name, size_t *len)
{
	FILE *f = fopen(name, "re");
	uint8_t *buf = f ? malloc(SECRET_MAX + 1) : NULL;

	if (!buf) {
		cli_error("Unable to read %s: %s", name, strerror(errno));
	} else {
		setvbuf(f, NULL, _IONBF, 0);
		*len = fread(buf, 1, SECRET_MAX + 1, f);
		if (ferror(f) || *len > SECRET_MAX) {
			cli_error("Unable to read %s: %s", name,
				ferror(f) ? strerror(errno) : "it is too large");
			wipe(buf, *len);
			buf = NULL;
		}
	}
	if (f)
		fclose(f);
	return buf;
}

static int take_data(const struct blk_opts *o, uint8_t **data, size_t *len)
{
	const char *text = blk_opt(o, "data");
	const char *file = blk_opt(o, "file");

	if (text && file)
		return cli_error("'file' and 'data' are mutually exclusive");
	if (!text && !file)
		return cli_error("Either 'file' or 'data' must be provided");
	if (file) {
		*data = read_file(file, len);
		return !*data;
	}
	*len = strlen(text);
	*data = malloc(*len + 1);
	if (!*data)
		return cli_no_memory();
	memcpy(*data, text, *len);
	return 0;
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static int id_ok(const char *id)
{
	const char *p = id;

	if (!id)
		return cli_error("Parameter 'id' is missing");
	while (is_letter(*p) ||
		(p > id && ((*p >= '0' && *p <= '9') || (*p && strchr("-._", *p)))))
		p++;
	if (p == id || *p)
		return cli_error("Parameter 'id' expects an identifier");
	if (fmt_secret(&secrets, id))
		return cli_error("There are two objects with the id '%s'", id);
	return 0;
}

static int keys_ok(const struct blk_opts *o)
{
	static const char *const known[] = {"qom-type", "id", "data", "file", "format", NULL};
	struct blk_err err = BLK_ERR_INIT;

	return blk_opts_known(o, known, &err) ? cli_fail(&err) : 0;
}

static int keep(const char *id, uint8_t *data, size_t len)
{
	struct fmt_secret *v = realloc(list, (secrets.n + 1) * sizeof(*v));
	char *own = strdup(id);

	if (v)
		list = v;
	if (!v || !own) {
		free(own);
		return cli_no_memory();
	}
	list[secrets.n] = (struct fmt_secret){.id = own, .data = data, .len = len};
	secrets.v = list;
	secrets.n++;
	return 0;
}

static int add_secret(const struct blk_opts *o)
{
	const char *format = blk_opt(o, "format");
	const char *id = blk_opt(o, "id");
	bool base64 = format && !strcmp(format, "base64");
	uint8_t *data = NULL;
	size_t len = 0;
	int ret;

	if (keys_ok(o) || id_ok(id))
		return 1;
	if (format && !base64 && strcmp(format, "raw"))
		return cli_error("Parameter 'format' does not accept value '%s'", format);
	if (take_data(o, &data, &len))
		return 1;
	ret = base64 && decode(data, &len)
		      ? cli_error("The secret '%s' is not valid base64", id)
		      : keep(id, data, len);
	if (ret)
		wipe(data, len);
	return ret;
}

/* The first word is the type, with or without its key. */
static const char *type_of(const struct cli_opts *l)
{
	const char *type = blk_opt(&l->o, "qom-type");

	return type || !l->o.n ? type : l->v[0].key;
}

int cli_object_add(const char *arg)
{
	struct cli_opts l = {0};
	const char *type;
	int ret = cli_opts_add(&l, arg);

	if (!ret) {
		type = type_of(&l);
		if (type && !strncmp(type, "tls-creds-", 10))
			return cli_tls_add(&l, type);
		if (!type || strcmp(type, "secret"))
			ret = cli_error("Parameter 'qom-type' does not accept value '%s'",
				type ? type : "");
	}
	if (!ret) {
		/* Not an option of its own. */
		if (!blk_opt(&l.o, "qom-type"))
			free(cli_opts_take(&l, "secret"));
		ret = add_secret(&l.o);
	}
	for (unsigned i = 0; i < l.o.n; i++)
		explicit_bzero((char *)(uintptr_t)l.v[i].val, strlen(l.v[i].val));
	cli_opts_free(&l);
	return ret;
}
