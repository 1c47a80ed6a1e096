/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/drivers.c - the table of formats. A format that this build leaves out keeps
 * its row, so that whoever names it is told what to configure.
 */
#include "fmt/drivers.h"

struct row {
	const char *name;
	const char *symbol;
	const struct fmt_driver *driver;
};

static const struct row rows[] = {
	{"cow", "CONFIG_FMT_COW",
#ifdef CONFIG_FMT_COW
		&fmt_cow_driver
#else
		NULL
#endif
	},
	{"luks", "CONFIG_FMT_LUKS",
#ifdef CONFIG_FMT_LUKS
		&fmt_luks_driver
#else
		NULL
#endif
	},
	{"qcow2", "CONFIG_FMT_QCOW2",
#ifdef CONFIG_FMT_QCOW2
		&fmt_qcow2_driver
#else
		NULL
#endif
	},
	{"raw", "CONFIG_FMT_RAW",
#ifdef CONFIG_FMT_RAW
		&fmt_raw_driver
#else
		NULL
#endif
	},
};

const struct fmt_driver *fmt_driver_nth(unsigned n)
{
	for (size_t i = 0; i < THR_ARRAY_SIZE(rows); i++)
		if (rows[i].driver && !n--)
			return rows[i].driver;
	return NULL;
}

const struct fmt_driver *fmt_driver_find(const char *name)
{
	for (size_t i = 0; i < THR_ARRAY_SIZE(rows); i++)
		if (fmt_streq(rows[i].name, name))
			return rows[i].driver;
	return NULL;
}

int fmt_driver_get(const char *name, const struct fmt_driver **out, struct blk_err *err)
{
	for (size_t i = 0; i < THR_ARRAY_SIZE(rows); i++) {
		if (!fmt_streq(rows[i].name, name))
			continue;
		*out = rows[i].driver;
		if (*out)
			return 0;
		return blk_fail_str(err, -THR_ENOTSUP, BLK_E_NOT_BUILT, rows[i].symbol);
	}
	return blk_fail_str(err, -THR_EINVAL, BLK_E_NO_FORMAT, name);
}

/* A format may have several tables of operations; they bear its name. */
const struct fmt_driver *fmt_driver_of(const struct blk *b)
{
	const struct fmt_driver *d;

	for (unsigned i = 0; (d = fmt_driver_nth(i)); i++)
		if (b->ops == d->ops || fmt_streq(b->ops->name, d->name))
			return d;
	return NULL;
}
