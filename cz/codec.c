/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cz/codec.c - the codec table: one row an id, with the codecs that this build
 * brings or that the embedder has registered. Part of the firmware build.
 */
#include "cz/cz.h"
#include "cz/private.h"

struct codec_row {
	const char *name;
	const char *symbol;
};

static const struct codec_row rows[] = {
	[CZ_DEFLATE] = {"zlib", "CONFIG_CZ_DEFLATE"},
	[CZ_ZSTD] = {"zstd", "CONFIG_CZ_ZSTD"},
};

/* The preferred ones of an id first. */
static const struct cz_codec *const built[] = {
#ifdef CONFIG_CZ_LIBDEFLATE
	&cz_deflate_libdeflate,
#endif
#ifdef CONFIG_CZ_DEFLATE
	&cz_deflate_zlib,
#endif
#ifdef CONFIG_CZ_ZSTD
	&cz_zstd,
#endif
	NULL,
};

static const struct cz_codec *registered[THR_ARRAY_SIZE(rows)];

/* An id may come straight from a disk. */
static bool id_known(enum cz_codec_id id)
{
	return (unsigned)id < THR_ARRAY_SIZE(rows);
}

const struct cz_codec *cz_codec_find(enum cz_codec_id id)
{
	if (!id_known(id))
		return NULL;
	if (registered[id])
		return registered[id];
	for (unsigned i = 0; built[i]; i++) {
		if (built[i]->id == id)
			return built[i];
	}
	return NULL;
}

const struct cz_codec *cz_codec_built(unsigned i)
{
	return i < THR_ARRAY_SIZE(built) ? built[i] : NULL;
}

const char *cz_codec_name(enum cz_codec_id id)
{
	return id_known(id) ? rows[id].name : NULL;
}

const char *cz_codec_symbol(enum cz_codec_id id)
{
	return id_known(id) ? rows[id].symbol : NULL;
}

void cz_codec_register(const struct cz_codec *c)
{
	THR_ASSERT(id_known(c->id));
	registered[c->id] = c;
}
