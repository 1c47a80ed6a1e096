/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The conformance suite's rig: an image of a row, its model, and steps that
 * change both.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "t/conf/conf.h"

uint32_t conf_random(struct conf *c, uint32_t below)
{
	c->seed = c->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((c->seed >> 33) % below);
}

void conf_fail(const struct blk_err *err)
{
#ifdef CONFIG_BLK_ERR_TEXT
	char text[1024];

	blk_err_text(err, text, sizeof(text));
	fail_msg("%s", text);
#else
	fail_msg("error %d, id %d", err->code, (int)err->id);
#endif
}

const struct conf_row *conf_row_find(const char *name)
{
	for (unsigned i = 0; i < conf_nrows; i++)
		if (!strcmp(conf_rows[i].name, name))
			return &conf_rows[i];
	return NULL;
}

struct blk_opts conf_opts(const struct conf_row *row)
{
	struct blk_opts opts = {row->opts, 0};

	while (opts.n < CONF_OPTS && row->opts[opts.n].key)
		opts.n++;
	return opts;
}

const char *conf_opt(const struct conf_row *row, const char *key)
{
	struct blk_opts opts = conf_opts(row);

	return blk_opt(&opts, key);
}

void conf_compare_raw(struct conf *c, struct blk *data)
{
	if (!conf_opt(c->row, "data_file_raw"))
		return;
	assert_int_equal(blk_size(data), c->size);
	assert_int_equal(blk_pread(data, 0, c->buf, c->size), 0);
	assert_memory_equal(c->buf, c->model, c->size);
}

static const struct fmt_secret secret = {"s", (const uint8_t *)"password", 8};
const struct fmt_secrets conf_secrets = {&secret, 1};

struct blk_opts conf_open_opts(const struct conf_row *row, struct blk_opt v[CONF_OPTS])
{
	struct blk_opts from = conf_opts(row), to = {v, 0};

	for (unsigned i = 0; i < from.n; i++)
		if (strstr(from.v[i].key, "key-secret"))
			v[to.n++] = from.v[i];
	return to;
}

static void fill(uint8_t *p, size_t len, uint8_t first)
{
	size_t i;

	for (i = 0; i < len; i++)
		p[i] = (uint8_t)(first + i / 512 + (i & 7));
}

/* ---- in files ------------------------------------------------------------------- */

static void base_make(struct conf *c, const uint8_t *data)
{
	FILE *f = fopen(c->base, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, c->row->backing, f), c->row->backing);
	fclose(f);
}

static void files_make(struct conf *c, const uint8_t *backing)
{
	struct blk_err err = BLK_ERR_INIT;
	struct blk_opts opts = conf_opts(c->row);
	struct blk_opt own[CONF_OPTS];
	struct fmt_create f = {
		.name = c->image,
		.format = c->row->format,
		.size = c->size,
		.has_size = true,
		.opts = &opts,
		.secrets = &conf_secrets,
		.seed = CONF_SEED,
		.mem = &thr_heap,
	};

	snprintf(c->dir, sizeof(c->dir), "/tmp/conf.XXXXXX");
	assert_non_null(mkdtemp(c->dir));
	snprintf(c->image, sizeof(c->image), "%s/image", c->dir);
	snprintf(c->base, sizeof(c->base), "%s/base.raw", c->dir);
	snprintf(c->data, sizeof(c->data), "%s/data", c->dir);
	for (unsigned i = 0; i < opts.n; i++) {
		own[i] = opts.v[i];
		if (!strcmp(own[i].key, "data_file"))
			own[i].val = c->data;
	}
	opts.v = own;
	if (c->row->backing) {
		base_make(c, backing);
		f.backing = "base.raw";
		f.backing_format = "raw";
	}
	if (fmt_create(&f, &err))
		conf_fail(&err);
}

static struct blk *files_open(struct conf *c, unsigned blk_flags, unsigned flags)
{
	struct blk_err err = BLK_ERR_INIT;
	struct blk *b = NULL;
	struct blk_opt v[CONF_OPTS];
	struct blk_opts opts = conf_open_opts(c->row, v);
	struct fmt_open o = {
		.name = c->image,
		.opts = &opts,
		.secrets = &conf_secrets,
		.format = c->row->format,
		.blk_flags = blk_flags,
		.flags = flags,
		.mem = &thr_heap,
	};

	if (fmt_open(&b, &o, &err))
		conf_fail(&err);
	return b;
}

static void files_remove(struct conf *c)
{
	struct blk_open o = {.name = c->data, .mem = &thr_heap};
	struct blk *data;

	if (conf_opt(c->row, "data_file")) {
		assert_int_equal(blk_open(&data, &o, NULL), 0);
		conf_compare_raw(c, data);
		blk_close(data);
	}
	unlink(c->image);
	unlink(c->base);
	unlink(c->data);
	rmdir(c->dir);
}

const struct conf_place conf_files = {
	.make = files_make,
	.open = files_open,
	.remove = files_remove,
};

/* ---- anywhere --------------------------------------------------------------------- */

static void make(struct conf *c)
{
	uint64_t len = c->row->backing, half = len / 2;
	uint8_t *data = calloc(1, len + 1);

	assert_non_null(data);
	fill(data, half / 2, 17);
	fill(data + half, len - half, 99);
	memcpy(c->model, data, THR_MIN(len, c->size));
	c->place->make(c, data);
	free(data);
}

void conf_open_at(struct conf *c, const struct conf_row *row, const struct conf_place *place,
	uint64_t room)
{
	memset(c, 0, sizeof(*c));
	c->row = row;
	c->place = place;
	c->size = row->size;
	c->room = room;
	c->seed = 1;
	c->model = calloc(1, room);
	c->buf = malloc(room);
	assert_non_null(c->model);
	assert_non_null(c->buf);
	make(c);
	c->b = place->open(c, BLK_RDWR, 0);
	assert_int_equal(blk_size(c->b), c->size);
	if (row->noise) {
		struct blk_req r = {.len = c->size};

		assert_int_equal(blk_zero(c->b, &r), 0);
	}
}

void conf_open(struct conf *c, const struct conf_row *row)
{
	conf_open_at(c, row, &conf_files, 2 * row->size);
}

void conf_close(struct conf *c)
{
	if (c->b) {
		assert_int_equal(fmt_close(c->b), 0);
		c->b = NULL;
	}
	conf_check(c);
	c->place->remove(c);
	free(c->model);
	free(c->buf);
}

void conf_reopen(struct conf *c, unsigned blk_flags)
{
	assert_int_equal(fmt_close(c->b), 0);
	c->b = NULL;
	c->b = c->place->open(c, blk_flags, 0);
	assert_int_equal(blk_size(c->b), c->size);
}

void conf_compare(struct conf *c)
{
	uint64_t i;

	assert_int_equal(blk_pread(c->b, 0, c->buf, c->size), 0);
	if (!memcmp(c->buf, c->model, c->size))
		return;
	for (i = 0; c->buf[i] == c->model[i]; i++)
		;
	fail_msg("byte %llu is %02x and should be %02x", (unsigned long long)i, c->buf[i],
		c->model[i]);
}

void conf_check(struct conf *c)
{
	const struct fmt_driver *d = fmt_driver_find(c->row->format);
	struct fmt_check ck = {0};
	struct blk_err err = BLK_ERR_INIT;
	struct blk *b;

	assert_non_null(d);
	if (!d->check || c->place->afar)
		return;
	b = c->place->open(c, 0, 0);
	if (fmt_check(b, &ck, &err))
		conf_fail(&err);
	fmt_close(b);
	assert_int_equal(ck.check_errors, 0);
	assert_int_equal(ck.corruptions, 0);
	assert_int_equal(ck.leaks, 0);
}

void conf_write(struct conf *c, uint64_t off, size_t len, uint8_t first)
{
	fill(c->model + off, len, first);
	assert_int_equal(blk_pwrite(c->b, off, c->model + off, len), 0);
}

void conf_zero(struct conf *c, uint64_t off, uint64_t len, unsigned flags)
{
	struct blk_req r = {.off = off, .len = len, .flags = flags};

	memset(c->model + off, 0, len);
	assert_int_equal(blk_zero(c->b, &r), 0);
}

bool conf_resize(struct conf *c, uint64_t size, bool shrink, enum blk_prealloc p)
{
	struct blk_err err = BLK_ERR_INIT;
	uint64_t old = c->size;
	int code = fmt_resize(c->b, size, shrink, p, &err);

	if (code == -THR_ENOTSUP && (c->row->stiff || c->place->afar)) {
		assert_int_equal(blk_size(c->b), old);
		return false;
	}
	if (code)
		conf_fail(&err);
	if (size > old)
		memset(c->model + old, 0, size - old);
	c->size = size;
	assert_int_equal(blk_size(c->b), size);
	return true;
}

/* Discarded bytes read as they did or as zeroes; never as something else, which
 * the backing file's data would be. */
void conf_discard(struct conf *c, uint64_t off, uint64_t len)
{
	struct blk_req r = {.off = off, .len = len};
	uint64_t i;

	assert_int_equal(blk_discard(c->b, &r), 0);
	assert_int_equal(blk_pread(c->b, off, c->buf, len), 0);
	for (i = 0; i < len; i++) {
		if (c->buf[i] && c->buf[i] != c->model[off + i])
			fail_msg("discard shows byte %llu as %02x",
				(unsigned long long)(off + i), c->buf[i]);
	}
	memcpy(c->model + off, c->buf, len);
}

uint32_t conf_pack_unit(struct conf *c)
{
	const struct fmt_driver *d = fmt_driver_of(c->b);
	uint32_t unit;

	return d->compress && !d->compress(c->b, &unit, NULL) ? unit : 0;
}

/* Where and how much: half of the time in sectors, else any byte. */
static void pick(struct conf *c, uint64_t *off, uint64_t *len)
{
	uint32_t grain = conf_random(c, 2) ? 512 : 1;
	uint64_t max = conf_random(c, 8) ? 40000 : c->size / 2;

	*off = conf_random(c, (uint32_t)(c->size / grain)) * (uint64_t)grain;
	*len = (uint64_t)(1 + conf_random(c, (uint32_t)(max / grain))) * grain;
	if (*len > c->size - *off)
		*len = c->size - *off;
}

void conf_step(struct conf *c)
{
	uint64_t off, len;

	pick(c, &off, &len);
	switch (conf_random(c, 10)) {
	case 0:
		conf_zero(c, off, len, 0);
		break;
	case 1:
		conf_zero(c, off, len, BLK_UNMAP);
		break;
	case 2:
	case 3:
		conf_discard(c, off, len);
		break;
	case 4:
		assert_int_equal(blk_flush(c->b), 0);
		break;
	case 5:
	case 6:
		assert_int_equal(blk_pread(c->b, off, c->buf, len), 0);
		assert_memory_equal(c->buf, c->model + off, len);
		break;
	default:
		conf_write(c, off, len, (uint8_t)conf_random(c, 256));
	}
}
