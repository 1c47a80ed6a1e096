/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/names.c - lists of options, and what they say about an image (fmt/names.h).
 *
 * Here drivers are only told apart: whether their options are any they know, they say
 * themselves. Of an option that is given twice the last one counts, as in qemu; twice in
 * one object of JSON is an error.
 */
#include "cz/cz.h"
#include "fmt/drivers.h"
#include "fmt/names.h"

/* ---- lists ---------------------------------------------------------------------- */

void fmt_names_init(struct fmt_names *l, const struct thr_alloc *mem)
{
	memset(l, 0, sizeof(*l));
	l->mem = mem;
}

/* Wiped, as it may be a secret's. */
static void put_str(const struct thr_alloc *mem, const char *s)
{
	size_t n = s ? strlen(s) + 1 : 0;

	if (!s)
		return;
	cz_wipe((void *)(uintptr_t)s, n);
	thr_put(mem, (void *)(uintptr_t)s, n);
}

static void put_opt(const struct thr_alloc *mem, const struct blk_opt *o)
{
	put_str(mem, o->key);
	put_str(mem, o->val);
}

void fmt_names_free(struct fmt_names *l)
{
	for (unsigned i = 0; i < l->o.n; i++)
		put_opt(l->mem, &l->v[i]);
	if (l->v)
		thr_put(l->mem, l->v, l->room * sizeof(*l->v));
	fmt_names_init(l, l->mem);
}

static int grow(struct fmt_names *l)
{
	unsigned room = l->room ? 2 * l->room : 8;
	struct blk_opt *v = thr_get(l->mem, room * sizeof(*v), 16);

	if (!v)
		return -THR_ENOMEM;
	if (l->v) {
		memcpy(v, l->v, l->o.n * sizeof(*v));
		thr_put(l->mem, l->v, l->room * sizeof(*v));
	}
	l->v = v;
	l->o.v = v;
	l->room = room;
	return 0;
}

/* @a and @b one after the other. */
static char *joined(const struct thr_alloc *mem, const char *a, const char *b)
{
	size_t n = strlen(a);
	size_t m = strlen(b) + 1;
	char *s = thr_get(mem, n + m, 1);

	if (!s)
		return NULL;
	memcpy(s, a, n);
	memcpy(s + n, b, m);
	return s;
}

int fmt_names_add(struct fmt_names *l, const char *prefix, const char *key, const char *val,
	struct blk_err *err)
{
	struct blk_opt o;

	if (l->o.n == FMT_OPTS_MAX || strlen(prefix) + strlen(key) >= FMT_KEY_MAX)
		return blk_fail_str(err, -THR_EINVAL, BLK_E_BAD_OPTION, key);
	if (l->o.n == l->room && grow(l))
		return blk_fail(err, -THR_ENOMEM, BLK_E_SYS, 0, 0);
	o.key = joined(l->mem, prefix, key);
	o.val = joined(l->mem, val, "");
	if (!o.key || !o.val) {
		put_opt(l->mem, &o);
		return blk_fail(err, -THR_ENOMEM, BLK_E_SYS, 0, 0);
	}
	l->v[l->o.n++] = o;
	return 0;
}

static bool starts(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

int fmt_names_sub(struct fmt_names *l, const struct blk_opts *from, const char *prefix,
	struct blk_err *err)
{
	int code = 0;

	for (unsigned i = 0; from && i < from->n && !code; i++)
		if (starts(from->v[i].key, prefix))
			code = fmt_names_add(
				l, "", from->v[i].key + strlen(prefix), from->v[i].val, err);
	return code;
}

void fmt_names_drop(struct fmt_names *l, const char *key)
{
	unsigned n = 0;

	for (unsigned i = 0; i < l->o.n; i++) {
		if (strcmp(l->v[i].key, key))
			l->v[n++] = l->v[i];
		else
			put_opt(l->mem, &l->v[i]);
	}
	l->o.n = n;
}

bool fmt_names_json(const char *name)
{
	return starts(name, "json:");
}

/* ---- what they say ----------------------------------------------------------------- */

/* Protocols, with the names that others know them by. */
static const struct {
	const char *name, *ours;
} protocols[] = {
	{"file", "file"},
	{"host_device", "file"},
	{"mem", "mem"},
	{"null", "null"},
	{"null-co", "null"},
	{"null-aio", "null"},
	{"nbd", "nbd"},
	{"fault", "fault"},
};

static const char *protocol(const char *driver)
{
	for (size_t i = 0; driver && i < THR_ARRAY_SIZE(protocols); i++)
		if (!strcmp(protocols[i].name, driver))
			return protocols[i].ours;
	return NULL;
}

bool fmt_names_device(const struct blk_opts *o)
{
	for (unsigned i = 0; o && i < o->n; i++)
		if (starts(o->v[i].key, "file."))
			return true;
	return protocol(blk_opt(o, "driver"));
}

/* Gives a key a prefix, in place. */
static int move_below(struct fmt_names *l, unsigned i, struct blk_err *err)
{
	char *key;

	if (strlen(l->v[i].key) + sizeof("file.") > FMT_KEY_MAX)
		return blk_fail_str(err, -THR_EINVAL, BLK_E_BAD_OPTION, l->v[i].key);
	key = joined(l->mem, "file.", l->v[i].key);
	if (!key)
		return blk_fail(err, -THR_ENOMEM, BLK_E_SYS, 0, 0);
	put_str(l->mem, l->v[i].key);
	l->v[i].key = key;
	return 0;
}

/* A protocol where a format is expected is raw over that protocol. */
static int settle_protocol(struct fmt_names *l, struct fmt_open *o, struct blk_err *err)
{
	int code = 0;

	if (!protocol(blk_opt(&l->o, "driver")))
		return 0;
	for (unsigned i = 0; i < l->o.n && !code; i++)
		code = move_below(l, i, err);
	if (!o->format)
		o->format = "raw";
	return code;
}

/* The device's driver by our name for it. */
static int settle_driver(struct fmt_names *l, struct blk_err *err)
{
	const char *given = blk_opt(&l->o, "file.driver");
	const char *ours = protocol(given);

	if (!given || (ours && !strcmp(given, ours)))
		return 0;
	if (!ours && fmt_driver_find(given))
		return blk_fail_str(err, -THR_ENOTSUP, BLK_E_FORMAT_BELOW, given);
	if (!ours)
		return blk_fail_str(err, -THR_EINVAL, BLK_E_NO_DRIVER, given);
	fmt_names_drop(l, "file.driver");
	return fmt_names_add(l, "file.", "driver", ours, err);
}

/* A switch that is a flag of the device, wherever it is given. */
static int take_flag(struct fmt_names *l, const char *prefix, const char *key, unsigned bit,
	bool clears, unsigned *flags, struct blk_err *err)
{
	char full[32];
	bool on, given;
	int code;

	memcpy(full, prefix, strlen(prefix) + 1);
	memcpy(full + strlen(prefix), key, strlen(key) + 1);
	given = blk_opt(&l->o, full);
	code = blk_opt_bool(&l->o, full, false, &on, err);
	if (code || !given)
		return code;
	if (clears)
		*flags &= on ? ~bit : ~0u;
	else
		*flags = on ? *flags | bit : *flags & ~bit;
	fmt_names_drop(l, full);
	return 0;
}

static int settle_flags(struct fmt_names *l, unsigned *flags, struct blk_err *err)
{
	static const struct {
		const char *key;
		unsigned bit;
		bool clears;
	} keys[] = {
		{"read-only", BLK_RDWR, true},
		{"force-share", BLK_SHARE, false},
		{"cache.direct", BLK_NOCACHE, false},
		{"cache.no-flush", BLK_NOFLUSH, false},
	};
	int code = 0;

	for (size_t i = 0; i < 2 * THR_ARRAY_SIZE(keys) && !code; i++)
		code = take_flag(l, i & 1 ? "file." : "", keys[i / 2].key, keys[i / 2].bit,
			keys[i / 2].clears, flags, err);
	return code;
}

int fmt_names_settle(struct fmt_names *l, struct fmt_open *o, struct blk_err *err)
{
	int code = settle_flags(l, &o->blk_flags, err);

	if (!code)
		code = settle_protocol(l, o, err);
	if (!code)
		code = settle_driver(l, err);
	if (code)
		return code;
	o->opts = &l->o;
	if (o->name && fmt_names_json(o->name))
		o->name = NULL;
	if (o->name)
		return 0;
	if (!fmt_names_device(&l->o))
		return blk_fail(err, -THR_EINVAL, BLK_E_NEED_FILE, 0, 0);
	/* Without a driver the name tells it. */
	if (!blk_opt(&l->o, "file.driver"))
		o->name = blk_opt(&l->o, "file.filename");
	return 0;
}
