/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/convert_run.c - the steps of convert: sources opened, target created and opened,
 * the copy, and everything closed.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "cli/convert.h"

struct job {
	const struct cli_convert *a;
	struct fmt_convert c;
	struct blk **src;
	unsigned opened;
	uint64_t size; /* of all sources */
	uint64_t lost;
	struct blk *dst;
	struct blk_err err;
};

static int open_sources(struct job *j)
{
	struct cli_open o = {
		.format = j->a->format,
		.image_opts = j->a->image_opts,
		.cache = j->a->src_cache,
		.blk_flags = BLK_SEQUENTIAL | (j->a->share ? BLK_SHARE : 0u),
	};

	j->src = calloc(j->a->nsrc, sizeof(struct blk *));
	if (!j->src)
		return cli_no_memory();
	for (; j->opened < j->a->nsrc; j->opened++) {
		o.name = j->a->names[j->opened];
		if (cli_open(&j->src[j->opened], &o))
			return 1;
		if (cli_snapshot(j->src[j->opened], j->a->snapshot)) {
			j->opened++;
			return 1;
		}
		if (thr_add_over(j->size, blk_size(j->src[j->opened]), &j->size))
			return cli_error("The sources are too large");
	}
	return 0;
}

/* What -c does not go with, before there is a target. */
static int check_compress(const struct cli_convert *a)
{
	const struct fmt_driver *d = a->out_format ? fmt_driver_find(a->out_format) : NULL;
	const char *prealloc = blk_opt(&a->opts.o, "preallocation");
	enum blk_prealloc p = BLK_PREALLOC_OFF;
	bool encrypt = false;

	if (!a->compress)
		return 0;
	if (d && !d->compress)
		return cli_error("Compression not supported for this file format");
	if (prealloc && !blk_prealloc_parse(prealloc, &p) && p != BLK_PREALLOC_OFF)
		return cli_error(
			"Compression and preallocation not supported at the same time");
	(void)blk_opt_bool(&a->opts.o, "encryption", false, &encrypt, NULL);
	if (encrypt || blk_opt(&a->opts.o, "encrypt.format"))
		return cli_error("Compression and encryption not supported at the same time");
	return 0;
}

static int create_target(struct job *j)
{
	const struct cli_convert *a = j->a;
	struct fmt_create c = {
		.name = a->target,
		.format = a->out_format,
		.size = j->size,
		.has_size = true,
		.backing = a->backing,
		.backing_format = a->backing_format,
		.opts = &a->opts.o,
		.flags = cli_untrusted ? FMT_UNTRUSTED : 0,
		.secrets = cli_secrets(),
		.blk_flags = BLK_NOFLUSH,
		.seed = a->seed,
		.mem = &thr_heap,
	};
	char *what;
	int ret;

	if (!fmt_create(&c, &j->err))
		return 0;
	if (asprintf(&what, "%s: error while converting %s", a->target, a->out_format) < 0)
		return cli_no_memory();
	ret = cli_fail_in(what, &j->err);
	free(what);
	return ret;
}

/* The secrets that the target was created with open it, and the level is for this run. */
static void target_opts(const struct cli_convert *a, struct blk_opt v[3], struct blk_opts *o)
{
	static const char *const keys[2] = {"key-secret", "encrypt.key-secret"};
	const char *level = blk_opt(&a->opts.o, "compression_level");

	if (level)
		v[o->n++] = (struct blk_opt){"compression-level", level};
	for (unsigned i = 0; i < 2; i++) {
		const char *val = a->no_create ? NULL : blk_opt(&a->opts.o, keys[i]);

		if (val)
			v[o->n++] = (struct blk_opt){keys[i], val};
	}
	o->v = v;
}

static int open_target(struct job *j)
{
	struct blk_opt v[3];
	struct blk_opts opts = {0};
	struct cli_open o = {
		.name = j->a->target,
		.format = j->a->out_format,
		.image_opts = j->a->target_image_opts,
		.cache = j->a->cache,
		.blk_flags = BLK_RDWR,
		.trusted = !j->a->no_create, /* what it names is what we were given */
		.opts = &opts,
	};

	target_opts(j->a, v, &opts);
	return cli_open(&j->dst, &o);
}

/* A new image reads as zeroes, unless it lies on a device that holds something; what
 * was preallocated may no longer look so, but is. */
static int find_zero(struct job *j)
{
	const struct cli_convert *a = j->a;

	if (a->target_is_zero && j->dst->backing)
		return cli_error(
			"--target-is-zero cannot be used with a target that has a backing "
			"file");
	j->c.dst_is_zero = a->target_is_zero;
	if (a->no_create || j->dst->backing)
		return 0;
	j->c.dst_is_zero = blk_opt(&a->opts.o, "preallocation") || fmt_reads_zero(j->dst);
	return 0;
}

static int copy_fiber(void *arg)
{
	struct job *j = arg;

	return fmt_convert(&j->c, &j->err);
}

static int copy(struct job *j)
{
	const struct cli_convert *a = j->a;
	struct cli_progress p;
	int code;

	j->c.src = j->src;
	j->c.nsrc = a->nsrc;
	j->c.dst = j->dst;
	j->c.base = a->backing && j->dst->backing ? j->src[0]->backing : NULL;
	j->c.sparse = a->sparse;
	j->c.fibers = a->fibers;
	j->c.rate = a->rate;
	j->c.lost = a->salvage ? &j->lost : NULL;
	j->c.compress = a->compress;
	j->c.unordered = a->unordered;
	cli_progress_begin(&p, a->progress && !a->quiet);
	j->c.progress = p.p;
	code = cli_run(a->threads, copy_fiber, j);
	if (!code)
		code = fmt_close(j->dst);
	else
		(void)fmt_close(j->dst);
	j->dst = NULL;
	if (!code)
		cli_progress_full(&p);
	cli_progress_end(&p);
	if (j->lost && !a->quiet)
		cli_warn("%" PRIu64 " bytes could not be read and are zeroes in '%s'", j->lost,
			a->target);
	if (!code)
		return 0;
	if (!j->err.code) {
		blk_fail(&j->err, code, BLK_E_SYS, 0, 0);
		blk_err_where(&j->err, "Could not write", a->target);
	}
	return cli_fail(&j->err);
}

int cli_convert_run(const struct cli_convert *a)
{
	struct job j = {.a = a};
	int ret = open_sources(&j);

	if (!ret)
		ret = check_compress(a);
	if (!ret && !a->no_create)
		ret = create_target(&j);
	if (!ret)
		ret = open_target(&j);
	if (!ret)
		ret = find_zero(&j);
	if (!ret)
		ret = copy(&j);
	(void)fmt_close(j.dst);
	while (j.opened--)
		(void)fmt_close(j.src[j.opened]);
	free(j.src);
	return ret;
}
