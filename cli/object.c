/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/object.c - --object: secret,id=ID,data=TEXT|file=NAME[,format=raw|base64|hex]
 * [,keyid=ID,iv=BASE64], or the same in JSON. What they hold is kept until the command is
 * done and then wiped, as are the copies made on the way; what is on the command line is
 * covered there, though who was quick has seen it.
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

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* In place; -1 where it is none. Padding may be left out. */
static int from_base64(uint8_t *buf, size_t *len)
{
	size_t out = 0, digits = 0, pad = 0;
	unsigned bits = 0;
	uint32_t held = 0;

	for (size_t in = 0; in < *len; in++) {
		char c = (char)buf[in];

		if (is_space(c))
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

/* ---- pairs of hexadecimal digits; white space is skipped here too -------------------- */

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int from_hex(uint8_t *buf, size_t *len)
{
	size_t out = 0;
	int high = -1;

	for (size_t in = 0; in < *len; in++) {
		int d = hex_digit((char)buf[in]);

		if (is_space((char)buf[in]))
			continue;
		if (d < 0)
			return -1;
		if (high >= 0)
			buf[out++] = (uint8_t)(high << 4 | d);
		high = high >= 0 ? -1 : d;
	}
	explicit_bzero(buf + out, *len - out);
	*len = out;
	return high >= 0 ? -1 : 0;
}

static int as_it_is(uint8_t *buf, size_t *len)
{
	(void)buf;
	(void)len;
	return 0;
}

static const struct format {
	const char *name;
	int (*decode)(uint8_t *buf, size_t *len); /* in place */
} formats[] = {{"raw", as_it_is}, {"base64", from_base64}, {"hex", from_hex}, {NULL, NULL}};

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
	static const char *const known[] = {
		"qom-type", "id", "data", "file", "format", "keyid", "iv", NULL};
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

/* What is encrypted is opened with another secret. */
static int open_data(const struct blk_opts *o, uint8_t *data, size_t *len)
{
	const char *keyid = blk_opt(o, "keyid"), *text = blk_opt(o, "iv");
	const struct fmt_secret *key;
	uint8_t iv[32];
	size_t n = text ? strlen(text) : 0;

	if (!keyid)
		return 0;
	key = fmt_secret(&secrets, keyid);
	if (!key)
		return cli_error("No secret with id '%s'", keyid);
	if (!text)
		return cli_error("IV is required to decrypt secret");
	if (n <= sizeof(iv)) {
		memcpy(iv, text, n);
		if (from_base64(iv, &n))
			return cli_error(
				"The IV of '%s' is not valid base64", blk_opt(o, "id"));
	}
	if (n != 16)
		return cli_error("IV should be 16 bytes in length");
	return cli_decrypt(blk_opt(o, "id"), key, iv, data, len);
}

static int make_secret(
	const struct blk_opts *o, const struct format *f, uint8_t *data, size_t len)
{
	const char *id = blk_opt(o, "id");

	if (f->decode(data, &len))
		return cli_error("The secret '%s' is not valid %s", id, f->name);
	return open_data(o, data, &len) || keep(id, data, len);
}

static int add_secret(const struct blk_opts *o)
{
	const char *format = blk_opt(o, "format");
	const struct format *f = formats;
	uint8_t *data = NULL;
	size_t len = 0;

	if (keys_ok(o) || id_ok(blk_opt(o, "id")))
		return 1;
	while (f->name && format && strcmp(format, f->name))
		f++;
	if (!f->name)
		return cli_error("Parameter 'format' does not accept value '%s'", format);
	if (take_data(o, &data, &len))
		return 1;
	if (!make_secret(o, f, data, len))
		return 0;
	wipe(data, len);
	return 1;
}

/* The first word is the type, with or without its key. */
static const char *type_of(const struct cli_opts *l)
{
	const char *type = blk_opt(&l->o, "qom-type");

	return type || !l->o.n ? type : l->v[0].key;
}

static int put(void *l, const char *key, const char *val)
{
	return cli_opts_put(l, key, val);
}

static int add_json(struct cli_opts *l, const char *arg)
{
	struct blk_err err = BLK_ERR_INIT;
	int ret = fmt_json_each(arg, put, l, &thr_heap, &err);

	if (ret < 0)
		return cli_fail(&err);
	return ret || blk_opt(&l->o, "qom-type") ? ret
						 : cli_error("Parameter 'qom-type' is missing");
}

/* The title of the process is what the arguments are. */
static void cover(char *arg)
{
	memset(arg, '*', strlen(arg));
}

int cli_object_add(char *arg)
{
	struct cli_opts l = {0};
	const char *type;
	int ret = *arg == '{' ? add_json(&l, arg) : cli_opts_add(&l, arg);

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
		if (blk_opt(&l.o, "data"))
			cover(arg);
	}
	for (unsigned i = 0; i < l.o.n; i++)
		explicit_bzero((char *)(uintptr_t)l.v[i].val, strlen(l.v[i].val));
	cli_opts_free(&l);
	return ret;
}
