/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/fuzz/cow.c - any bytes as a cow image: read, checked, written to and repaired. The map
 * must say what a read gives; what is written is read again, and nothing else changes; a
 * check finds no more afterwards than before.
 */
#include <stdlib.h>

#include "fmt/fmt.h"
#include "t/fuzz/fuzz.h"

#define EXTENTS 64
#define OPS     16u
#define WINDOW  65536u

static uint8_t shadow[WINDOW], buf[WINDOW];

struct run {
	uint64_t state, off, len; /* of the window of the disk that is remembered */
	struct blk *b;
	bool exact;
};

/* ---- reading ---------------------------------------------------------------------- */

static void look(struct blk *b, const struct fmt_map_extent *e, const struct fuzz_image *m)
{
	uint64_t len = THR_MIN(e->len, WINDOW);
	int code = blk_pread(b, e->off, buf, (size_t)len);

	FUZZ_MUST(!code || (code < 0 && fuzz_mem_ran_out()));
	for (uint64_t i = 0; !code && i < len; i++) {
		uint64_t at = e->map + i;

		if (e->flags & BLK_EXT_ZERO)
			FUZZ_MUST(!buf[i]);
		else
			FUZZ_MUST(buf[i] == (at < m->size ? m->p[at] : 0));
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
		FUZZ_MUST(!code || fuzz_mem_ran_out());
		if (code)
			return;
		FUZZ_MUST(e.off == off && e.len && e.len <= len);
		look(b, &e, m);
		off += e.len;
	}
}

static uint64_t check(struct blk *b, unsigned fix)
{
	struct fmt_check c = {.fix = fix};
	struct blk_err err = BLK_ERR_INIT;
	int code = fmt_check(b, &c, &err);

	fuzz_explained(code, &err);
	FUZZ_MUST(c.allocated_clusters <= c.total_clusters);
	return code ? UINT64_MAX : c.corruptions + c.leaks;
}

static void read_image(const struct fuzz_image *m, unsigned flags)
{
	struct fmt_open o = {.format = "cow", .flags = flags, .mem = &fuzz_mem};
	struct blk_err err = BLK_ERR_INIT;
	const char *name, *format;
	struct blk *file, *b;
	struct fmt_info i;
	int code;

	FUZZ_MUST(!blk_mem_open(&file, m->p, m->size, 0, &fuzz_mem, NULL));
	code = fmt_open_on(&b, file, &o, &err);
	fuzz_explained(code, &err);
	if (code) {
		blk_close(file);
	} else {
		FUZZ_MUST(!fmt_info(b, &i) && i.virtual_size == blk_size(b));
		if (!fmt_driver_of(b)->backing(b, &name, &format))
			FUZZ_MUST(*name && strlen(name) < FMT_NAME_MAX);
		if (!(flags & FMT_NO_IO)) {
			map(b, m);
			(void)check(b, 0);
		}
		FUZZ_MUST(!fmt_close(b));
	}
	fuzz_mem_end();
}

/* ---- writing ------------------------------------------------------------------------ */

static void done(struct run *t, int code)
{
	FUZZ_MUST(code <= 0);
	if (code)
		t->exact = false;
}

static void operate(struct run *t)
{
	uint64_t off = fuzz_below(&t->state, t->len), most = 1u << fuzz_below(&t->state, 17);
	uint64_t len = 1 + fuzz_below(&t->state, THR_MIN(t->len - off, most));
	struct thr_iov v = {.base = buf};
	struct blk_req r = {.iov = &v, .niov = 1};

	r.off = t->off + off;
	r.len = v.len = (size_t)len;
	memset(buf, (int)fuzz_below(&t->state, 256), v.len);
	switch (fuzz_below(&t->state, 6)) {
	case 0:
		memset(shadow + off, 0, v.len);
		done(t, blk_zero(t->b, &r));
		break;
	case 1:
		done(t, blk_discard(t->b, &r));
		done(t, blk_pread(t->b, r.off, shadow + off, v.len));
		break;
	case 2:
		done(t, blk_flush(t->b));
		break;
	case 3:
		done(t, blk_pread(t->b, r.off, buf, v.len));
		if (t->exact)
			FUZZ_MUST(!memcmp(buf, shadow + off, v.len));
		break;
	default:
		memcpy(shadow + off, buf, v.len);
		done(t, blk_pwritev(t->b, &r));
	}
}

static void resize(struct run *t)
{
	uint64_t size = blk_size(t->b) + fuzz_below(&t->state, 1u << 21);
	struct blk_err err = BLK_ERR_INIT;

	size = fuzz_below(&t->state, 2) ? t->off + t->len : size;
	fuzz_explained(fmt_resize(t->b, size, true, BLK_PREALLOC_OFF, &err), &err);
}

static void write_open(struct run *t)
{
	uint64_t size = blk_size(t->b), before = check(t->b, 0);

	if (!fuzz_below(&t->state, 3))
		before = check(t->b, FMT_FIX_LEAKS | FMT_FIX_ERRORS);
	t->off = size > WINDOW ? fuzz_below(&t->state, size - WINDOW) : 0;
	t->len = THR_MIN(size - t->off, WINDOW);
	t->exact = t->len && !blk_pread(t->b, t->off, shadow, (size_t)t->len);
	for (unsigned i = 0; i < OPS && t->len; i++)
		operate(t);
	if (t->len && !fuzz_below(&t->state, 4))
		resize(t);
	if (t->exact && !blk_pread(t->b, t->off, buf, (size_t)t->len))
		FUZZ_MUST(!memcmp(buf, shadow, (size_t)t->len));
	FUZZ_MUST(check(t->b, 0) <= before || fuzz_mem_ran_out());
}

static void write_image(const struct fuzz_image *m)
{
	static const struct blk_opt zero = {"size", "0"};
	static const struct blk_opts opts = {&zero, 1};
	struct blk_open d = {
		.driver = "mem", .flags = BLK_RDWR, .opts = &opts, .mem = &fuzz_mem};
	struct fmt_open o = {.format = "cow", .blk_flags = BLK_RDWR, .mem = &fuzz_mem};
	struct run t = {.state = m->seed};
	struct blk *file;

	FUZZ_MUST(!blk_open(&file, &d, NULL));
	FUZZ_MUST(!m->size || !blk_pwrite(file, 0, m->p, m->size));
	if (fmt_open_on(&t.b, file, &o, NULL)) {
		blk_close(file);
	} else {
		write_open(&t);
		(void)fmt_close(t.b);
	}
	fuzz_mem_end();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fuzz_image m;

	if (!fuzz_unpack(&m, data, len))
		return -1;
	read_image(&m, FMT_NO_IO);
	read_image(&m, 0);
	write_image(&m);
	free(m.p);
	return 0;
}
