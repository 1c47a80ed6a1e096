/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/drivers.c - the table of drivers, and opening a device by its name.
 *
 * A driver that this build leaves out keeps its row, so that whoever asks for it
 * is told what to configure.
 */
#include "blk/private.h"

struct row {
	const char *name;
	const char *symbol;
	const char *const *prefixes; /* of names that are its own, or NULL */
	const struct blk_driver *driver;
};

static const char *const null_prefixes[] = {"null-co:", NULL};
static const char *const nbd_prefixes[] = {
	"nbd:", "nbds:", "nbd+unix:", "nbds+unix:", "nbd+vsock:", "nbds+vsock:", NULL};

static const struct row rows[] = {
	{"file", "CONFIG_BLK_FILE", NULL,
#ifdef CONFIG_BLK_FILE
		&blk_file_driver
#else
		NULL
#endif
	},
	{"mem", "CONFIG_BLK_MEM with CONFIG_BLK_WRITE", NULL,
#ifdef CONFIG_BLK_MEM_SPARSE
		&blk_mem_driver
#else
		NULL
#endif
	},
	{"null", "CONFIG_BLK_NULL", null_prefixes,
#ifdef CONFIG_BLK_NULL
		&blk_null_driver
#else
		NULL
#endif
	},
	{"nbd", "CONFIG_BLK_NBD", nbd_prefixes,
#ifdef CONFIG_BLK_NBD
		&blk_nbd_driver
#else
		NULL
#endif
	},
	{"fault", "CONFIG_BLK_FAULT", NULL,
#ifdef CONFIG_BLK_FAULT
		&blk_fault_driver
#else
		NULL
#endif
	},
};

static const struct row *row_by_name(const char *name)
{
	for (size_t i = 0; i < THR_ARRAY_SIZE(rows); i++)
		if (blk_str_eq(rows[i].name, name))
			return &rows[i];
	return NULL;
}

const struct blk_driver *blk_driver_find(const char *name)
{
	const struct row *r = row_by_name(name);

	return r ? r->driver : NULL;
}

static const struct row *row_by_prefix(const char *name)
{
	for (size_t i = 0; i < THR_ARRAY_SIZE(rows); i++)
		for (const char *const *p = rows[i].prefixes; p && *p; p++)
			if (blk_str_starts(name, *p))
				return &rows[i];
	return NULL;
}

/* The protocol before a name ends at a colon that no slash comes before. */
static const char *protocol_end(const char *name)
{
	while (*name && *name != '/' && *name != ':')
		name++;
	return *name == ':' ? name : NULL;
}

static int unknown_protocol(const char *name, const char *end, struct blk_err *err)
{
	char protocol[32];
	size_t len = THR_MIN((size_t)(end - name), sizeof(protocol) - 1);

	memcpy(protocol, name, len);
	protocol[len] = '\0';
	return blk_fail_str(err, -THR_EINVAL, BLK_E_NO_PROTOCOL, protocol);
}

/* Whose a name is; one in JSON is taken apart where formats are known. "file:" only says that
 * what follows is a file's name; it is how a name with a colon is told from a protocol, as
 * "./" is. */
static int row_for_name(const struct row **out, const char **name, struct blk_err *err)
{
	if (blk_str_starts(*name, "json:"))
		return blk_fail(err, -THR_EINVAL, BLK_E_JSON_HERE, 0, 0);
	*out = row_by_prefix(*name);
	if (*out)
		return 0;
	*out = &rows[0];
	if (blk_str_starts(*name, "file:"))
		*name += 5;
	else if (protocol_end(*name))
		return unknown_protocol(*name, protocol_end(*name), err);
	return 0;
}

static int row_for_open(const struct row **out, struct blk_open *o, struct blk_err *err)
{
	const char *driver = o->driver ? o->driver : blk_opt(o->opts, "driver");

	if (driver) {
		*out = row_by_name(driver);
		return *out ? 0 : blk_fail_str(err, -THR_EINVAL, BLK_E_NO_DRIVER, driver);
	}
	if (o->name)
		return row_for_name(out, &o->name, err);
	*out = &rows[0];
	if (blk_opt(o->opts, "filename"))
		return 0;
	return blk_fail_str(err, -THR_EINVAL, BLK_E_NEED_OPTION, "filename");
}

static bool key_taken(const struct blk_driver *d, const char *key)
{
	size_t n;

	if (blk_str_eq(key, "driver"))
		return true;
	for (const char *const *k = d->keys; k && *k; k++) {
		n = blk_str_len(*k);
		/* "file." stands for all keys that start so. */
		if (n && (*k)[n - 1] == '.' ? blk_str_starts(key, *k) : blk_str_eq(key, *k))
			return true;
	}
	return false;
}

static int keys_taken(const struct blk_driver *d, const struct blk_opts *o, struct blk_err *err)
{
	for (unsigned i = 0; o && i < o->n; i++)
		if (!key_taken(d, o->v[i].key))
			return blk_fail_str(err, -THR_EINVAL, BLK_E_BAD_OPTION, o->v[i].key);
	return 0;
}

static int open_row(
	struct blk **out, const struct row *r, const struct blk_open *o, struct blk_err *err)
{
	int code;

	if (!r->driver)
		return blk_fail_str(err, -THR_ENOTSUP, BLK_E_NOT_BUILT, r->symbol);
	code = keys_taken(r->driver, o->opts, err);
	return code ? code : r->driver->open(out, o, err);
}

static const char *shown_name(const struct blk_open *o)
{
	const char *s = o->name ? o->name : blk_opt(o->opts, "filename");

	return s ? s : o->driver;
}

int blk_open(struct blk **out, const struct blk_open *o, struct blk_err *err)
{
	struct blk_open own = *o;
	const struct row *r;
	int code = row_for_open(&r, &own, err);

	if (!code)
		code = open_row(out, r, &own, err);
	if (code)
		blk_err_where(err, "Could not open", shown_name(o));
	return code;
}

int blk_create(const char *name, uint64_t size, enum blk_prealloc p,
	const struct thr_alloc *mem, struct blk_err *err)
{
	const char *full = name;
	const struct row *r;
	int code = row_for_name(&r, &name, err);

	if (!code && !r->driver)
		code = blk_fail_str(err, -THR_ENOTSUP, BLK_E_NOT_BUILT, r->symbol);
	else if (!code && !r->driver->create)
		code = blk_fail(err, -THR_ENOTSUP, BLK_E_SYS, 0, 0);
	else if (!code)
		code = r->driver->create(name, size, p, mem, err);
	if (code)
		blk_err_where(err, "Could not create", full);
	return code;
}
