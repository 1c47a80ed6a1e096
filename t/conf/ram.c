/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/conf/ram.c - images of the conformance suite in memory: fast, and with devices
 * and caches such as files seldom have.
 */
#include <stdlib.h>
#include <string.h>

#include "fmt/cache.h"
#include "t/conf/ram.h"

static struct blk *lend(struct conf_ram *m, struct blk *disk)
{
	struct blk *b = disk_lend(disk, m->lend | LEND_PREALLOC);

	if (m->align) {
		b->align = m->align;
		b->zero_align = m->align;
	}
	return b;
}

static void ram_make(struct conf *c, const uint8_t *backing)
{
	const struct fmt_driver *d = fmt_driver_find(c->row->format);
	struct blk_err err = BLK_ERR_INIT;
	struct blk_opts opts = conf_opts(c->row);
	struct fmt_create f = {
		.name = "image",
		.format = c->row->format,
		.size = c->size,
		.has_size = true,
		.opts = &opts,
		.secrets = &conf_secrets,
		.seed = CONF_SEED,
		.unsafe_backing = true,
		.mem = &thr_heap,
	};
	struct blk *file;

	assert_non_null(d);
	c->ram = calloc(1, sizeof(*c->ram));
	assert_non_null(c->ram);
	c->ram->disk = disk_new();
	if (conf_opt(c->row, "data_file")) {
		c->ram->data = disk_new();
		f.data = lend(c->ram, c->ram->data);
	}
	if (c->row->backing) {
		c->ram->base = disk_new();
		assert_int_equal(blk_pwrite(c->ram->base, 0, backing, c->row->backing), 0);
		f.backing = "base.raw";
		f.backing_format = "raw";
	}
	file = lend(c->ram, c->ram->disk);
	if (d->create(file, &f, &err))
		conf_fail(&err);
	blk_close(f.data);
	blk_close(file);
}

static struct blk *open_on(struct blk *file, struct blk *data, const char *format,
	const struct blk_opts *opts, unsigned blk_flags, unsigned flags,
	struct fmt_cache *cache)
{
	struct blk_err err = BLK_ERR_INIT;
	struct blk *b = NULL;
	struct fmt_open o = {
		.format = format,
		.blk_flags = blk_flags,
		.flags = flags,
		.cache = cache,
		.opts = opts,
		.secrets = &conf_secrets,
		.mem = &thr_heap,
		.data = data,
	};

	if (fmt_open_on(&b, file, &o, &err)) {
		blk_close(data);
		blk_close(file);
		conf_fail(&err);
	}
	return b;
}

static struct blk *ram_open(struct conf *c, unsigned blk_flags, unsigned flags)
{
	struct conf_ram *m = c->ram;
	struct blk_opt v[CONF_OPTS];
	struct blk_opts opts = conf_open_opts(c->row, v);
	struct blk *b = open_on(lend(m, m->disk), m->data ? lend(m, m->data) : NULL,
		c->row->format, &opts, blk_flags, flags, m->cache);

	if (m->base)
		fmt_set_backing(b, open_on(lend(m, m->base), NULL, "raw", NULL, 0, 0, NULL));
	return b;
}

void conf_ram_sound(struct conf *c)
{
	if (!strcmp(c->row->format, "qcow2"))
		image_assert_sound(c->ram->disk);
}

static void ram_remove(struct conf *c)
{
	struct conf_ram *m = c->ram;

	conf_ram_sound(c);
	if (m->data)
		conf_compare_raw(c, m->data);
	blk_close(m->disk);
	blk_close(m->base);
	blk_close(m->data);
	fmt_cache_close(m->cache);
	free(m);
	c->ram = NULL;
}

const struct conf_place conf_ram = {
	.make = ram_make,
	.open = ram_open,
	.remove = ram_remove,
};

void conf_ram_snapshot(struct conf *c)
{
	struct conf_ram *m = c->ram, was = *m;
	struct blk *b = c->b;

	m->disk = disk_copy(was.disk);
	m->data = was.data ? disk_copy(was.data) : NULL;
	m->cache = NULL;
	c->b = ram_open(c, 0, 0);
	/* A file that is written in blocks has its exact length once it is closed. */
	assert_in_range(blk_size(c->b), c->size, c->size + THR_MAX(m->align, 1u) - 1);
	conf_compare(c);
	assert_int_equal(fmt_close(c->b), 0);
	if (m->data && conf_opt(c->row, "data_file_raw")) {
		assert_in_range(
			blk_size(m->data), c->size, c->size + THR_MAX(m->align, 1u) - 1);
		assert_int_equal(blk_pread(m->data, 0, c->buf, c->size), 0);
		assert_memory_equal(c->buf, c->model, c->size);
	}
	blk_close(m->data);
	blk_close(m->disk);
	*m = was;
	c->b = b;
}

void conf_ram_rewire(struct conf *c, unsigned lend_flags, uint32_t align, uint32_t slices)
{
	struct conf_ram *m = c->ram;

	assert_int_equal(fmt_close(c->b), 0);
	c->b = NULL;
	fmt_cache_close(m->cache);
	m->cache = NULL;
	if (slices)
		assert_int_equal(fmt_cache_open(&m->cache, 512, slices, &thr_heap), 0);
	m->lend = lend_flags;
	m->align = align;
	c->b = ram_open(c, BLK_RDWR, 0);
	assert_int_equal(blk_size(c->b), c->size);
}
