/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/json.c - names in JSON (RFC 8259): json:{"driver":"qcow2","file":{...}}, read by
 * jansson and made flat. They may come from inside an image, so length and depth are
 * bounded before the parser, which recurses, sees them; what is built is bounded too.
 * An object in JSON may hold a secret, so what is parsed is wiped.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "cz/cz.h"
#include "fmt/names.h"

#define PREFIX_LEN (sizeof("json:") - 1)

/* Strings may hold brackets, and are left where the parser ends them too. */
static bool too_deep(const char *s)
{
	unsigned depth = 0;
	bool in_string = false;

	for (; *s; s++) {
		if (in_string && *s == '\\' && s[1])
			s++;
		else if (*s == '"')
			in_string = !in_string;
		else if (!in_string && (*s == '{' || *s == '['))
			depth++;
		else if (!in_string && depth && (*s == '}' || *s == ']'))
			depth--;
		if (depth > FMT_JSON_DEPTH)
			return true;
	}
	return false;
}

static int flatten(struct fmt_names *l, json_t *v, char *key, size_t len, struct blk_err *err);

/* Puts one name more to the key, and what it stands for into the list. */
static int flatten_part(struct fmt_names *l, const char *part, json_t *v, char *key, size_t len,
	struct blk_err *err)
{
	size_t n = strlen(part);
	int code;

	if (!n || n + len + 2 > FMT_KEY_MAX)
		return blk_fail_str(err, -THR_EINVAL, BLK_E_BAD_OPTION, part);
	if (len)
		key[len] = '.';
	memcpy(key + len + (len > 0), part, n + 1);
	code = flatten(l, v, key, len + (len > 0) + n, err);
	key[len] = '\0';
	return code;
}

static int flatten_object(
	struct fmt_names *l, json_t *v, char *key, size_t len, struct blk_err *err)
{
	const char *part;
	json_t *item;
	int code;

	json_object_foreach(v, part, item)
	{
		code = flatten_part(l, part, item, key, len, err);
		if (code)
			return code;
	}
	return 0;
}

static int flatten_array(
	struct fmt_names *l, json_t *v, char *key, size_t len, struct blk_err *err)
{
	char part[24];
	int code;

	for (size_t i = 0; i < json_array_size(v); i++) {
		snprintf(part, sizeof(part), "%zu", i);
		code = flatten_part(l, part, json_array_get(v, i), key, len, err);
		if (code)
			return code;
	}
	return 0;
}

static int add_once(struct fmt_names *l, const char *key, const char *val, struct blk_err *err)
{
	if (blk_opt(&l->o, key))
		return blk_fail_str(err, -THR_EINVAL, BLK_E_JSON_TWICE, key);
	return fmt_names_add(l, "", key, val, err);
}

static bool is_backing(const char *key, size_t len)
{
	static const char word[] = "backing";
	size_t n = sizeof(word) - 1;

	return len >= n && !strcmp(key + len - n, word) &&
	       (len == n || key[len - n - 1] == '.');
}

/* null is an absent backing file, and nothing else. A fraction is no value of ours. */
static int flatten(struct fmt_names *l, json_t *v, char *key, size_t len, struct blk_err *err)
{
	char num[24];

	switch (json_typeof(v)) {
	case JSON_OBJECT:
		return flatten_object(l, v, key, len, err);
	case JSON_ARRAY:
		return flatten_array(l, v, key, len, err);
	case JSON_STRING:
		return add_once(l, key, json_string_value(v), err);
	case JSON_INTEGER:
		snprintf(num, sizeof(num), "%" JSON_INTEGER_FORMAT, json_integer_value(v));
		return add_once(l, key, num, err);
	case JSON_TRUE:
		return add_once(l, key, "on", err);
	case JSON_FALSE:
		return add_once(l, key, "off", err);
	case JSON_NULL:
		if (is_backing(key, len))
			return add_once(l, key, "", err);
		break;
	case JSON_REAL:
		break;
	}
	return blk_fail_str(err, -THR_EINVAL, BLK_E_BAD_VALUE, key);
}

static int parse_failed(const json_error_t *e, struct blk_err *err)
{
	uint64_t at = e->position > 0 ? (uint64_t)e->position : 0;
	int code = blk_fail_str(err, -THR_EINVAL, BLK_E_JSON, e->text);

	if (err)
		err->off = at;
	return code;
}

/* The depth is bounded. */
static void wipe_strings(json_t *v)
{
	const char *key;
	json_t *item;
	size_t i;

	if (json_is_string(v))
		cz_wipe((void *)(uintptr_t)json_string_value(v), json_string_length(v));
	json_object_foreach(v, key, item) wipe_strings(item);
	json_array_foreach(v, i, item) wipe_strings(item);
}

static int add_text(struct fmt_names *l, const char *text, struct blk_err *err)
{
	struct fmt_names own;
	char key[FMT_KEY_MAX] = "";
	json_error_t e;
	json_t *v;
	int code;

	if (strlen(text) > FMT_JSON_MAX)
		return blk_fail(err, -THR_EINVAL, BLK_E_JSON_LONG, 0, FMT_JSON_MAX);
	if (too_deep(text))
		return blk_fail(err, -THR_EINVAL, BLK_E_JSON_DEEP, 0, FMT_JSON_DEPTH);
	v = json_loads(text, JSON_REJECT_DUPLICATES, &e);
	if (!v)
		return parse_failed(&e, err);
	fmt_names_init(&own, l->mem);
	if (json_is_object(v))
		code = flatten(&own, v, key, 0, err);
	else
		code = blk_fail(err, -THR_EINVAL, BLK_E_JSON_OBJECT, 0, 0);
	if (!code)
		code = fmt_names_sub(l, &own.o, "", err);
	fmt_names_free(&own);
	wipe_strings(v);
	json_decref(v);
	return code;
}

int fmt_json_add(struct fmt_names *l, const char *name, struct blk_err *err)
{
	int code = add_text(l, name + PREFIX_LEN, err);

	if (code && err && err->id == BLK_E_JSON)
		err->off += PREFIX_LEN;
	return code;
}

int fmt_json_each(const char *text, int (*put)(void *ctx, const char *key, const char *val),
	void *ctx, const struct thr_alloc *mem, struct blk_err *err)
{
	struct fmt_names l;
	int ret;

	fmt_names_init(&l, mem);
	ret = add_text(&l, text, err);
	for (unsigned i = 0; i < l.o.n && !ret; i++)
		ret = put(ctx, l.v[i].key, l.v[i].val);
	fmt_names_free(&l);
	return ret;
}
