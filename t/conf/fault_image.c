/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/conf/fault_image.c - the images of the fault loops: how one of a geometry is made,
 * filled, damaged and opened, over devices that fail or over none.
 */
#include "t/conf/fault.h"

#define OPTS 10

static const struct fmt_secret secrets[] = {
	{"old", (const uint8_t *)"first", 5}, {"new", (const uint8_t *)"second", 6}};
const struct fmt_secrets fault_secrets = {secrets, THR_ARRAY_SIZE(secrets)};

uint8_t fault_old_byte(uint64_t off)
{
	return (uint8_t)(0x40 | (off / 512 * 5 & 31));
}

void fault_geo_name(const struct geo *g, char *buf, size_t size)
{
	char text[96] = "";

	if (g->version)
		geo_name(g, text, sizeof(text));
	snprintf(buf, size, "%s%s%s%s%s%s%s", g->cluster_bits ? "" : fault_format(g), text,
		g->flags & GEO_DATA ? " data file" : "", g->flags & GEO_DATA_RAW ? " raw" : "",
		g->flags & GEO_LUKS && g->cluster_bits ? " luks" : "",
		g->flags & GEO_ZSTD ? " zstd" : "",
		g->flags & GEO_ON_QCOW2 ? " over qcow2" : "");
}

/* ---- opening ---------------------------------------------------------------------- */

static int base_open(struct attempt *a, const struct over *over, struct blk **out)
{
	struct fmt_open o = {
		.format = a->geo->flags & GEO_ON_QCOW2 ? "qcow2" : "raw",
		.blk_flags = a->fc->flags & FAULT_COMMIT ? BLK_RDWR : 0,
		.mem = over->mem,
	};
	struct blk *file = disk_lend(over->base, 0);
	int ret = fmt_open_on(out, file, &o, over->err);

	if (ret)
		blk_close(file);
	return ret;
}

int fault_open_over(struct attempt *a, const struct over *over, const char *pass,
	unsigned blk_flags, unsigned flags)
{
	struct blk_opt key = {a->geo->cluster_bits ? "encrypt.key-secret" : "key-secret", pass};
	struct blk_opts opts = {&key, a->geo->flags & GEO_LUKS ? 1 : 0};
	struct fmt_open o = {
		.format = fault_format(a->geo),
		.blk_flags = blk_flags,
		.flags = flags,
		.opts = &opts,
		.secrets = &fault_secrets,
		.data = over->data ? disk_lend(over->data, 0) : NULL,
		.mem = over->mem,
	};
	struct blk *file = disk_lend(over->file, 0), *base = NULL;
	int ret = fmt_open_on(&a->b, file, &o, over->err);

	if (ret) {
		blk_close(o.data);
		blk_close(file);
		a->b = NULL;
		return ret;
	}
	if (!over->base)
		return 0;
	ret = base_open(a, over, &base);
	if (!ret) {
		fmt_set_backing(a->b, base);
		return 0;
	}
	(void)fmt_close(a->b);
	a->b = NULL;
	return ret;
}

int fault_open(struct attempt *a, unsigned blk_flags, unsigned flags)
{
	struct over over = {a->fault, a->base_fault, a->data_fault, &a->mem.a, &a->e};

	return fault_open_over(a, &over, "old", blk_flags, flags);
}

void fault_reopen(struct attempt *a, const char *pass, unsigned blk_flags, unsigned flags)
{
	struct blk_err err = BLK_ERR_INIT;
	struct over over = {a->disk, a->base, a->data, &thr_heap, &err};

	if (fault_open_over(a, &over, pass, blk_flags, flags)) {
		char text[1024];

		blk_err_text(&err, text, sizeof(text));
		fail_msg("does not open afterwards: %s", text);
	}
}

/* ---- making ----------------------------------------------------------------------- */

static void add(struct blk_opts *opts, struct blk_opt *v, const char *key, const char *val)
{
	assert_true(opts->n < OPTS);
	v[opts->n++] = (struct blk_opt){key, val};
}

static void add_key(struct blk_opts *opts, struct blk_opt *v, bool qcow2)
{
	if (qcow2)
		add(opts, v, "encrypt.format", "luks");
	add(opts, v, qcow2 ? "encrypt.key-secret" : "key-secret", "old");
	add(opts, v, qcow2 ? "encrypt.cipher-alg" : "cipher-alg", "aes-128");
	add(opts, v, qcow2 ? "encrypt.cipher-mode" : "cipher-mode", "cbc");
	add(opts, v, qcow2 ? "encrypt.iter-time" : "iter-time", "1");
}

static void add_qcow2(const struct geo *g, bool preallocate, struct blk_opts *opts,
	struct blk_opt *v, const char *cluster, const char *bits)
{
	add(opts, v, "cluster_size", cluster);
	add(opts, v, "compat", g->version == 2 ? "0.10" : "1.1");
	if (preallocate)
		add(opts, v, "preallocation", "metadata");
	if (g->version > 2)
		add(opts, v, "refcount_bits", bits);
	if (g->flags & GEO_LAZY)
		add(opts, v, "lazy_refcounts", "on");
	if (g->flags & GEO_EXTENDED)
		add(opts, v, "extended_l2", "on");
	if (g->flags & GEO_ZSTD)
		add(opts, v, "compression_type", "zstd");
	if (g->flags & GEO_DATA)
		add(opts, v, "data_file", "data");
	if (g->flags & GEO_DATA_RAW)
		add(opts, v, "data_file_raw", "on");
}

int fault_make(struct attempt *a, const struct over *over, bool preallocate)
{
	const struct geo *g = a->geo;
	char cluster[24], bits[24];
	struct blk_opt v[OPTS];
	struct blk_opts opts = {v, 0};
	struct fmt_create c = {
		.name = "image",
		.format = fault_format(g),
		.size = g->size,
		.has_size = true,
		.backing = g->backing ? "base" : NULL,
		.backing_format = g->backing && g->cluster_bits ? "raw" : NULL,
		.unsafe_backing = true,
		.opts = &opts,
		.secrets = &fault_secrets,
		.seed = "seed",
		.data = over->data ? disk_lend(over->data, 0) : NULL,
		.mem = over->mem,
	};
	struct blk *file = disk_lend(over->file, 0);
	int err;

	snprintf(cluster, sizeof(cluster), "%u", 1u << g->cluster_bits);
	snprintf(bits, sizeof(bits), "%u", 1u << g->refcount_order);
	if (g->cluster_bits)
		add_qcow2(g, preallocate && !g->backing, &opts, v, cluster, bits);
	else if (g->version)
		add(&opts, v, "version", g->version == 2 ? "2" : "3");
	if (g->flags & GEO_LUKS)
		add_key(&opts, v, g->cluster_bits);
	err = fmt_driver_find(c.format)->create(file, &c, over->err);
	blk_close(c.data);
	blk_close(file);
	return err;
}

static struct blk *base_make(const struct geo *g)
{
	static const struct geo qcow2 = {.version = 3, .cluster_bits = 12, .refcount_order = 4};
	struct geo geo = qcow2;
	struct blk *raw = backing_new(g->backing), *disk, *b;
	uint8_t *buf;

	if (!(g->flags & GEO_ON_QCOW2))
		return raw;
	geo.size = g->backing;
	disk = disk_new();
	image_make(disk, &geo);
	b = image_open(disk_lend(disk, 0), NULL, 0);
	buf = malloc(g->backing);
	assert_non_null(buf);
	assert_int_equal(blk_pread(raw, 0, buf, g->backing), 0);
	assert_int_equal(blk_pwrite(b, 0, buf, g->backing), 0);
	assert_int_equal(fmt_close(b), 0);
	blk_close(raw);
	free(buf);
	return disk;
}

/* The first quarter is data, the second zeroed where data was, the third what lies
 * below, the last discarded data. */
static void fill(struct attempt *a, struct blk *b)
{
	uint64_t quarter = a->geo->size / 4, i;
	struct blk_req z = {.off = quarter, .len = quarter};
	struct blk_req d = {.off = 3 * quarter, .len = a->geo->size - 3 * quarter};

	for (i = 0; i < 2 * quarter; i++)
		a->old[i] = fault_old_byte(i);
	assert_int_equal(blk_pwrite(b, 0, a->old, 2 * quarter), 0);
	assert_int_equal(blk_pwrite(b, 3 * quarter, a->old, quarter), 0);
	assert_int_equal(blk_zero(b, &z), 0);
	assert_int_equal(blk_discard(b, &d), 0);
	assert_int_equal(blk_flush(b), 0);
}

/* Some counts in the first block become 0, or 3 where they were 0; none of a cluster that
 * the file does not have, where a check does not look. */
static void damage(struct attempt *a)
{
	uint64_t have = blk_size(a->disk) >> a->geo->cluster_bits;
	uint8_t head[104], block[512];
	uint64_t reft, at;

	assert_int_equal(blk_pread(a->disk, 0, head, sizeof(head)), 0);
	reft = thr_be64(head + 48);
	if (a->fc->flags & FAULT_NO_COUNTS) {
		memset(block, 0, 8);
		assert_int_equal(blk_pwrite(a->disk, reft, block, 8), 0);
		return;
	}
	assert_int_equal(blk_pread(a->disk, reft, block, 8), 0);
	at = thr_be64(block);
	assert_int_equal(blk_pread(a->disk, at, block, sizeof(block)), 0);
	for (unsigned i = 8; i < THR_MIN(have << a->geo->refcount_order >> 3, 512u); i += 3)
		block[i] = (uint8_t)(block[i] ? 0 : 3);
	assert_int_equal(blk_pwrite(a->disk, at, block, sizeof(block)), 0);
	assert_true(image_verify(a->disk, false).bad);
}

static void image_new(struct attempt *a)
{
	struct blk_err err = BLK_ERR_INIT;
	struct over over = {a->disk, NULL, a->data, &thr_heap, &err};

	if (a->fc->flags & FAULT_EMPTY)
		return;
	if (fault_is_raw(a->geo))
		assert_int_equal(
			blk_truncate(a->disk, a->geo->size, BLK_PREALLOC_OFF, NULL), 0);
	else
		assert_int_equal(fault_make(a, &over, false), 0);
}

void fault_template(struct attempt *a)
{
	struct blk *cut;

	a->room = 2 * a->geo->size;
	a->old = calloc(3, a->room);
	assert_non_null(a->old);
	a->new = a->old + a->room;
	a->buf = a->new + a->room;
	a->disk = disk_new();
	if (a->geo->backing)
		a->base = base_make(a->geo);
	if (a->geo->flags & GEO_DATA)
		a->data = disk_new();
	image_new(a);
	if (a->fc->flags & FAULT_EMPTY)
		return;
	fault_reopen(a, "old", BLK_RDWR, 0);
	a->old_size = blk_size(a->b);
	if (!(a->fc->flags & FAULT_BARE))
		fill(a, a->b);
	assert_int_equal(blk_pread(a->b, 0, a->old, a->old_size), 0);
	cut = a->fc->flags & FAULT_DIRTY ? disk_copy(a->disk) : NULL;
	assert_int_equal(fmt_close(a->b), 0);
	a->b = NULL;
	if (cut) {
		blk_close(a->disk);
		a->disk = cut;
	}
	if (a->fc->flags & FAULT_DAMAGED)
		damage(a);
}
