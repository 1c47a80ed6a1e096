/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/fuzz/qcow2.c - any bytes as a qcow2 image that is only read: info, map, check and
 * the data, as the commands do it. What the map says must be what a read gives, and
 * the image is unchanged.
 */
#include <stdlib.h>

#include "fmt/fmt.h"
#include "t/fuzz/fuzz.h"

#define EXTENTS 64 /* looked at, of any number */
#define PIECE   65536u

static uint8_t piece[PIECE];

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t len, size_t max, unsigned seed)
{
	return fuzz_qcow2_mutate(data, len, max, seed);
}

static void sink_str(struct fmt_sink *s, const char *key, const char *val)
{
	(void)s;
	FUZZ_MUST(!key || *key);
	FUZZ_MUST(strlen(val) < FUZZ_IMAGE_MAX);
}

static void sink_num(struct fmt_sink *s, const char *key, uint64_t val)
{
	(void)s;
	(void)key;
	(void)val;
}

static void sink_flag(struct fmt_sink *s, const char *key, bool val)
{
	(void)s;
	(void)key;
	(void)val;
}

struct nested {
	struct fmt_sink s;
	unsigned depth;
};

static void sink_open(struct fmt_sink *s, const char *key, bool array)
{
	(void)key;
	(void)array;
	THR_CONTAINER(s, struct nested, s)->depth++;
}

static void sink_close(struct fmt_sink *s)
{
	struct nested *n = THR_CONTAINER(s, struct nested, s);

	FUZZ_MUST(n->depth);
	n->depth--;
}

static void info(struct blk *b)
{
	struct nested n = {.s = {sink_str, sink_num, sink_flag, sink_open, sink_close}};
	const struct fmt_driver *d = fmt_driver_of(b);
	struct blk_err err = BLK_ERR_INIT;
	const char *name, *format;
	struct fmt_snapshot s;
	struct fmt_info i;
	uint64_t bytes;
	int code;

	FUZZ_MUST(d);
	if (!fmt_info(b, &i)) {
		FUZZ_MUST(i.virtual_size == blk_size(b));
		for (unsigned k = 0; i.snapshot && k < THR_MIN(i.snapshots, 16u); k++)
			if (!i.snapshot(b, k, &s))
				FUZZ_MUST(strlen(s.id) + strlen(s.name) < 2 * 65536);
	}
	fmt_props(b, &n.s);
	FUZZ_MUST(!n.depth);
	if (d->backing && !d->backing(b, &name, &format))
		FUZZ_MUST(strlen(name) < FMT_NAME_MAX && strlen(format) < FMT_NAME_MAX);
	code = d->bitmaps ? d->bitmaps(b, 65536, &bytes, &err) : 0;
	if (code != -THR_ENOTSUP)
		fuzz_explained(code, &err);
}

/* The bytes of an extent, from @off on. */
static void look(struct blk *b, const struct fmt_map_extent *e, uint64_t off, uint64_t len,
	const struct fuzz_image *m)
{
	int code;

	len = THR_MIN(len, PIECE);
	memset(piece, 0xee, (size_t)len);
	code = blk_pread(b, off, piece, (size_t)len);
	FUZZ_MUST(code <= 0);
	if (code) {
		/* Only what must be decompressed is not known to be readable. */
		FUZZ_MUST(e->flags & BLK_EXT_COMPRESSED || fuzz_mem_ran_out());
		return;
	}
	for (uint64_t i = 0; i < len; i++) {
		uint64_t at = e->map + (off - e->off) + i;

		if (e->flags & BLK_EXT_ZERO)
			FUZZ_MUST(!piece[i]);
		else if (e->flags & BLK_EXT_MAPPED)
			FUZZ_MUST(piece[i] == (at < m->size ? m->p[at] : 0));
	}
}

static void map(struct blk *b, const struct fuzz_image *m)
{
	uint64_t state = m->seed, off = 0, end = blk_size(b);
	struct fmt_map_extent e;

	for (unsigned n = 0; n < EXTENTS && off < end; n++) {
		uint64_t len = end - off;
		int code;

		if (!fuzz_below(&state, 4))
			len = 1 + fuzz_below(&state, len);
		code = fmt_map(b, NULL, off, len, NULL, &e);
		if (code) {
			/* Whatever was wrong, it ends within a cluster. */
			FUZZ_MUST(code < 0);
			(void)blk_pread(b, off, piece, (size_t)THR_MIN(len, 4096u));
			off += 1u << (9 + fuzz_below(&state, 13));
			continue;
		}
		FUZZ_MUST(e.off == off && e.len && e.len <= len);
		look(b, &e, off, e.len, m);
		if (e.len > PIECE)
			look(b, &e, off + e.len - PIECE, PIECE, m);
		off += e.len;
	}
	if (!end)
		return;
	off = fuzz_below(&state, end); /* across what the map has told apart */
	(void)blk_pread(b, off, piece, (size_t)THR_MIN(PIECE, end - off));
}

static void said(void *ctx, const char *text)
{
	(void)ctx;
	FUZZ_MUST(*text && !strchr(text, '\n'));
}

static void check(struct blk *b)
{
	struct fmt_check c = {.line = said};
	struct blk_err err = BLK_ERR_INIT;
	int code = fmt_check(b, &c, &err);

	fuzz_explained(code, &err);
	if (!code)
		FUZZ_MUST(!c.corruptions_fixed && !c.leaks_fixed);
}

static void use(const struct fuzz_image *m, uint8_t *p, unsigned flags)
{
	struct fmt_open o = {.format = "qcow2", .flags = flags, .mem = &fuzz_mem};
	struct blk_err err = BLK_ERR_INIT;
	struct blk *file, *b = NULL;
	int code;

	FUZZ_MUST(!blk_mem_open(&file, p, m->size, 0, &fuzz_mem, NULL));
	code = fmt_open_on(&b, file, &o, &err);
	fuzz_explained(code, &err);
	if (code) {
		blk_close(file);
	} else {
		info(b);
		if (!(flags & FMT_NO_IO)) {
			map(b, m);
			check(b);
		}
		FUZZ_MUST(!fmt_close(b));
	}
	fuzz_mem_end();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fuzz_image m;
	uint8_t *p;

	if (!fuzz_unpack(&m, data, len))
		return -1;
	p = malloc(m.size ? m.size : 1);
	FUZZ_MUST(p);
	memcpy(p, m.p, m.size);
	use(&m, p, FMT_NO_IO);
	use(&m, p, 0);
	FUZZ_MUST(!memcmp(p, m.p, m.size));
	free(p);
	free(m.p);
	return 0;
}
