/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/fuzz/qcow2_write.c - any bytes as a qcow2 image that is written to: repaired or
 * not, then writes, compressed where it can be, zeroes, discards, flushes and resizes
 * by chance. Whatever the image, nothing but errors may come of it. If check has found
 * it sound, it stays so, and holds what was written, and what was not written is as it
 * was. An image that has its data in another file, or names one below, is given one full
 * of noise; if the data is the disk as it is, what was written lies there too.
 */
#include <stdlib.h>

#include "fmt/fmt.h"
#include "t/fuzz/fuzz.h"

#define OPS    24
#define WINDOW 262144u /* of the disk, that is remembered */

struct run {
	uint64_t state;
	struct blk *disk; /* the file, which outlives the images opened on it */
	struct blk *data; /* and the one with the data, where the image wants one */
	struct blk *base; /* and what it names below */
	struct blk *b;
	uint64_t off, len; /* of the window */
	bool sound;        /* check has found nothing wrong before */
	bool exact;        /* the window is known */
};

static uint8_t shadow[WINDOW], buf[WINDOW];
static uint8_t ours[WINDOW]; /* 1: written or zeroed */

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t len, size_t max, unsigned seed)
{
	return fuzz_qcow2_mutate(data, len, max, seed);
}

/* ---- a file that stays when an image on it is closed ------------------------------ */

struct lent {
	struct blk blk;
	struct blk *disk;
};

static struct blk *disk_of(struct blk *b)
{
	return THR_CONTAINER(b, struct lent, blk)->disk;
}

static int lent_preadv(struct blk *b, struct blk_req *r)
{
	return blk_preadv(disk_of(b), r);
}

static int lent_pwritev(struct blk *b, struct blk_req *r)
{
	return blk_pwritev(disk_of(b), r);
}

static int lent_zero(struct blk *b, struct blk_req *r)
{
	return blk_zero(disk_of(b), r);
}

static int lent_discard(struct blk *b, struct blk_req *r)
{
	return blk_discard(disk_of(b), r);
}

static int lent_flush(struct blk *b)
{
	return blk_flush(disk_of(b));
}

static int lent_truncate(struct blk *b, uint64_t size, enum blk_prealloc p, struct blk_err *err)
{
	int code = blk_truncate(disk_of(b), size, p, err);

	if (!code)
		blk_set_size(b, size);
	return code;
}

static void lent_close(struct blk *b)
{
	struct lent *l = THR_CONTAINER(b, struct lent, blk);

	blk_fini(b);
	thr_put(b->mem, l, sizeof(*l));
}

static const struct blk_ops lent_ops = {
	.name = "lent",
	.preadv = lent_preadv,
	.pwritev = lent_pwritev,
	.zero = lent_zero,
	.discard = lent_discard,
	.flush = lent_flush,
	.truncate = lent_truncate,
	.close = lent_close,
};

static struct blk *lend(struct blk *disk, const char *name, unsigned blk_flags)
{
	struct lent *l = thr_zget(&fuzz_mem, sizeof(*l));

	FUZZ_MUST(l);
	blk_init(&l->blk, &lent_ops, name, blk_flags, &fuzz_mem);
	l->disk = disk;
	l->blk.grows = true;
	blk_set_size(&l->blk, blk_size(disk));
	return &l->blk;
}

static int open_image(struct run *t, unsigned blk_flags, unsigned flags)
{
	struct fmt_open o = {
		.format = "qcow2", .blk_flags = blk_flags, .flags = flags, .mem = &fuzz_mem};
	struct blk *file = lend(t->disk, "image", blk_flags);
	struct blk_err err = BLK_ERR_INIT;
	const char *name, *format;
	int code;

	if (t->data)
		o.data = lend(t->data, "data", blk_flags);
	code = fmt_open_on(&t->b, file, &o, &err);
	fuzz_explained(code, &err);
	if (code) {
		blk_close(o.data);
		blk_close(file);
	} else if (!fmt_driver_of(t->b)->backing(t->b, &name, &format)) {
		fmt_set_backing(t->b, lend(t->base, "base", 0));
	}
	return code;
}

/* ---- the check, before and after --------------------------------------------------- */

/* 0: it is sound; 1: there is something wrong; negative: it cannot be told. */
static int check(struct run *t, unsigned fix)
{
	struct fmt_check c = {.fix = fix};
	struct blk_err err = BLK_ERR_INIT;
	int code = open_image(t, fix ? BLK_RDWR : 0, fix ? FMT_REPAIR : 0);
	int closed;

	if (code)
		return code;
	code = fmt_check(t->b, &c, &err);
	fuzz_explained(code, &err);
	closed = fmt_close(t->b);
	if (code || closed)
		return code ? code : closed;
	return c.check_errors || c.corruptions;
}

/* ---- what check cannot see --------------------------------------------------------- */

/* A cluster may be counted right and yet be two things at once, a table and data or data
 * at two places of one disk. No writer makes such, and none can keep it sound. */

#define CLUSTERS_MAX  65536u
#define FEATURE_DATA  (1u << 2)
#define FEATURE_EXTL2 (1u << 4)
#define AUTO_RAW      (1u << 1)

enum kind { FREE, TABLE, L2, DATA, PACKED };

/* What lies in one file. */
struct ground {
	uint8_t kind[CLUSTERS_MAX];
	uint8_t pass[CLUSTERS_MAX]; /* which L1 table has seen it */
};

struct census {
	struct blk *disk;
	unsigned bits;
	unsigned entry;  /* bytes of one in an L2 table: 16 with subclusters */
	bool apart, raw; /* data lies in another file; which is the disk as it is */
	struct ground here, there;
	bool alone;
};

static struct census census;

static uint64_t field(struct census *s, uint64_t off, unsigned width)
{
	uint8_t b[8] = {0};
	struct thr_iov v = {.base = b, .len = width};
	struct blk_req r = {
		.off = off, .len = width, .iov = &v, .niov = 1, .flags = BLK_EOF_ZERO};

	if (off > INT64_MAX || blk_preadv(s->disk, &r))
		s->alone = false;
	return thr_be64(b) >> (64 - 8 * width);
}

static void claim_in(struct census *s, struct ground *g, uint64_t off, uint64_t len,
	enum kind kind, uint8_t pass)
{
	uint64_t end = (off + len - 1) >> s->bits;

	if (!len)
		return;
	if (end >= CLUSTERS_MAX || len > 1ull << 40)
		s->alone = false;
	for (uint64_t c = off >> s->bits; s->alone && c <= end; c++) {
		if (g->kind[c] != FREE && (g->kind[c] != kind || kind == TABLE))
			s->alone = false;
		if (g->pass[c] == pass && kind != PACKED)
			s->alone = false;
		g->kind[c] = kind;
		g->pass[c] = pass;
	}
}

static void claim(struct census *s, uint64_t off, uint64_t len, enum kind kind, uint8_t pass)
{
	claim_in(s, &s->here, off, len, kind, pass);
}

/* In another file data lies where the guest has it. Offset 0 is one like any other, with
 * its flag set. */
static void claim_apart(
	struct census *s, uint64_t guest, uint64_t e, uint64_t host, uint8_t pass)
{
	uint64_t cluster = 1ull << s->bits;

	if (!host && !(e >> 63))
		return;
	if (host != guest)
		s->alone = false;
	claim_in(s, &s->there, host, cluster, DATA, pass);
}

static void census_l2(struct census *s, uint64_t guest, uint64_t off, uint8_t pass)
{
	uint64_t cluster = 1ull << s->bits;

	for (uint64_t i = 0; s->alone && i < cluster / s->entry; i++) {
		uint64_t e = field(s, off + s->entry * i, 8), host = e & 0x00fffffffffffe00u;
		unsigned x = 62 - (s->bits - 8);

		if (e >> 62 & 1)
			claim(s, e & ((1ull << x) - 1),
				((e & ((1ull << 62) - 1)) >> x) * 512 + 1, PACKED, pass);
		else if (s->apart)
			claim_apart(s, guest + i * cluster, e, host, pass);
		else if (host)
			claim(s, host, cluster, DATA, pass);
	}
}

static void census_l1(struct census *s, uint64_t off, uint64_t n, uint8_t pass)
{
	uint64_t covers = (1ull << 2 * s->bits) / s->entry;

	claim(s, off, 8 * n, TABLE, pass);
	for (uint64_t i = 0; s->alone && i < n; i++) {
		uint64_t e = field(s, off + 8 * i, 8) & 0x00fffffffffffe00u;

		if (!e)
			continue;
		claim(s, e, 1ull << s->bits, L2, pass);
		census_l2(s, i * covers, e, pass);
	}
}

static void census_counts(struct census *s)
{
	uint64_t off = field(s, 48, 8), n = field(s, 56, 4) << s->bits;

	claim(s, 0, 1ull << s->bits, TABLE, 1);
	claim(s, off, n, TABLE, 1);
	for (uint64_t i = 0; s->alone && i < n / 8; i++) {
		uint64_t e = field(s, off + 8 * i, 8);

		if (e)
			claim(s, e, 1ull << s->bits, TABLE, 1);
	}
}

static void census_snapshots(struct census *s)
{
	uint64_t n = field(s, 60, 4), off = field(s, 64, 8), at = off;

	if (n > 100)
		s->alone = false;
	for (uint64_t i = 0; s->alone && i < n; i++) {
		census_l1(s, field(s, at, 8), field(s, at + 8, 4), (uint8_t)(3 + i));
		at += 40 + field(s, at + 36, 4) + field(s, at + 12, 2) + field(s, at + 14, 2);
		at = thr_align_up(at, 8);
	}
	claim(s, off, at - off, TABLE, 2);
}

static void census_new(struct census *s, struct run *t)
{
	uint64_t features = 0, autoclear = 0;

	memset(s, 0, sizeof(*s));
	s->disk = t->disk;
	s->alone = true;
	s->bits = (unsigned)field(s, 20, 4);
	if (field(s, 4, 4) > 2) {
		features = field(s, 72, 8);
		autoclear = field(s, 88, 8);
	}
	s->entry = features & FEATURE_EXTL2 ? 16 : 8;
	s->apart = features & FEATURE_DATA;
	s->raw = s->apart && autoclear & AUTO_RAW;
}

static bool each_alone(struct run *t)
{
	struct census *s = &census;

	census_new(s, t);
	if (s->bits < 9 || s->bits > 21)
		return false;
	/* Bitmaps are not looked at. In version 2 that is where the name may lie. */
	if (field(s, 88, 8) & ~(s->raw ? (uint64_t)AUTO_RAW : 0))
		return false;
	census_counts(s);
	census_l1(s, field(s, 40, 8), field(s, 36, 4), 2);
	census_snapshots(s);
	return s->alone;
}

/* ---- operations ----------------------------------------------------------------------- */

/* An offset in the window, and a length that ends in it; mostly about a cluster's. */
static uint64_t somewhere(struct run *t, uint64_t *len)
{
	uint64_t off = fuzz_below(&t->state, t->len);

	if (fuzz_below(&t->state, 2))
		off &= ~511ull;
	*len = 1 + fuzz_below(&t->state, 1ull << (1 + fuzz_below(&t->state, 18)));
	if (fuzz_below(&t->state, 2))
		*len = thr_align_up(*len, 512);
	*len = THR_MIN(*len, t->len - off);
	return off;
}

static void must_be_done(struct run *t, int code)
{
	FUZZ_MUST(code <= 0);
	if (code)
		t->exact = false;
}

static void write_some(struct run *t)
{
	uint64_t len, off = somewhere(t, &len);
	struct thr_iov v = {.base = buf, .len = (size_t)len};
	struct blk_req r = {.off = t->off + off, .len = len, .iov = &v, .niov = 1};

	if (!fuzz_below(&t->state, 8))
		r.flags |= BLK_FUA;
	memset(buf, (int)fuzz_below(&t->state, 256), (size_t)len);
	must_be_done(t, blk_pwritev(t->b, &r));
	memcpy(shadow + off, buf, (size_t)len);
	memset(ours + off, 1, (size_t)len);
}

/* Whole clusters, half of them noise. */
static void pack_some(struct run *t)
{
	const struct fmt_driver *d = fmt_driver_of(t->b);
	uint64_t len, off = t->off + somewhere(t, &len), end = t->off + t->len;
	struct thr_iov v = {.base = buf};
	struct blk_req r = {.iov = &v, .niov = 1, .flags = BLK_COMPRESS};
	uint32_t unit;

	if (!d->compress || d->compress(t->b, &unit, NULL))
		return;
	r.off = thr_align_up(off, unit);
	if (r.off >= end || end - r.off < unit)
		return;
	r.len = THR_MIN(thr_align_up(len, unit), (end - r.off) / unit * unit);
	v.len = (size_t)r.len;
	for (uint64_t i = 0; i < r.len; i++)
		buf[i] = (uint8_t)(r.off / unit + i / 512 % 2 * fuzz_next(&t->state));
	must_be_done(t, blk_pwritev(t->b, &r));
	memcpy(shadow + (r.off - t->off), buf, (size_t)r.len);
	memset(ours + (r.off - t->off), 1, (size_t)r.len);
}

static void zero_some(struct run *t)
{
	uint64_t len, off = somewhere(t, &len);
	struct blk_req r = {.off = t->off + off, .len = len};

	if (fuzz_below(&t->state, 2))
		r.flags |= BLK_UNMAP;
	must_be_done(t, blk_zero(t->b, &r));
	memset(shadow + off, 0, (size_t)len);
	memset(ours + off, 1, (size_t)len);
}

/* What it reads as afterwards is the image's to say. */
static void discard_some(struct run *t)
{
	uint64_t len, off = somewhere(t, &len);
	struct blk_req r = {.off = t->off + off, .len = len};

	must_be_done(t, blk_discard(t->b, &r));
	must_be_done(t, blk_pread(t->b, t->off + off, shadow + off, (size_t)len));
	memset(ours + off, 0, (size_t)len);
}

static void compare(struct run *t)
{
	uint64_t len, off = somewhere(t, &len);
	int code = blk_pread(t->b, t->off + off, buf, (size_t)len);

	FUZZ_MUST(code <= 0);
	if (!code && t->exact)
		FUZZ_MUST(!memcmp(buf, shadow + off, (size_t)len));
}

/* Outside of the window too. */
static void write_far(struct run *t)
{
	uint64_t size = blk_size(t->b), off = fuzz_below(&t->state, size);

	if (off + 512 > size || (off < t->off + t->len && off + 512 > t->off))
		return;
	FUZZ_MUST(blk_pwrite(t->b, off, shadow, 512) <= 0);
}

static void resize(struct run *t)
{
	uint64_t size = blk_size(t->b) + fuzz_below(&t->state, 1u << 20);
	struct blk_err err = BLK_ERR_INIT;
	int code;

	if (fuzz_below(&t->state, 2))
		size = t->off + t->len;
	code = fmt_resize(t->b, size, true, BLK_PREALLOC_OFF, &err);
	fuzz_explained(code, &err);
	if (code)
		return;
	FUZZ_MUST(blk_size(t->b) >= size);
}

static void operate(struct run *t)
{
	switch (fuzz_below(&t->state, 14)) {
	case 0:
	case 1:
		zero_some(t);
		break;
	case 2:
		discard_some(t);
		break;
	case 3:
	case 4:
		compare(t);
		break;
	case 5:
		FUZZ_MUST(blk_flush(t->b) <= 0);
		break;
	case 6:
		write_far(t);
		break;
	case 7:
		resize(t);
		break;
	case 8:
	case 9:
		pack_some(t);
		break;
	default:
		write_some(t);
	}
}

/* Opens for writing, remembers a window, operates. True if it could be opened. */
static bool write_image(struct run *t)
{
	uint64_t size;
	int code = open_image(t, BLK_RDWR, 0);

	if (code)
		return false;
	size = blk_size(t->b);
	if (!size) {
		(void)fmt_close(t->b);
		return false;
	}
	t->off = fuzz_below(&t->state, 3) ? 0 : fuzz_below(&t->state, size);
	t->len = THR_MIN(WINDOW, size - t->off);
	memset(ours, 0, (size_t)t->len);
	t->exact = t->sound && !blk_pread(t->b, t->off, shadow, (size_t)t->len);
	for (unsigned n = 0; n < OPS; n++)
		operate(t);
	return !fmt_close(t->b);
}

static void same_as_before(struct run *t)
{
	int code = open_image(t, 0, 0);

	FUZZ_MUST(!code || fuzz_mem_ran_out());
	if (code)
		return;
	FUZZ_MUST(blk_size(t->b) >= t->off + t->len);
	code = blk_pread(t->b, t->off, buf, (size_t)t->len);
	FUZZ_MUST(!code || fuzz_mem_ran_out());
	if (!code)
		FUZZ_MUST(!memcmp(buf, shadow, (size_t)t->len));
	(void)fmt_close(t->b);
}

/* What was written is where a program that knows no qcow2 looks for it. */
static void same_in_raw_data(struct run *t)
{
	struct thr_iov v = {.base = buf, .len = (size_t)t->len};
	struct blk_req r = {
		.off = t->off, .len = t->len, .iov = &v, .niov = 1, .flags = BLK_EOF_ZERO};

	census_new(&census, t);
	if (!t->data || !census.raw || blk_preadv(t->data, &r))
		return;
	for (uint64_t i = 0; i < t->len; i++)
		FUZZ_MUST(!ours[i] || buf[i] == shadow[i]);
}

/* Whether it can be opened without a key. */
static bool is_open(struct run *t)
{
	census_new(&census, t);
	return !field(&census, 32, 4);
}

static void use(struct run *t)
{
	int sound;

	if (fuzz_below(&t->state, 2)) {
		int fixed = check(t, FMT_FIX_LEAKS | FMT_FIX_ERRORS);

		sound = check(t, 0);
		if (!fixed)
			FUZZ_MUST(!sound || fuzz_mem_ran_out() || !is_open(t));
	} else {
		sound = check(t, 0);
	}
	t->sound = !sound && each_alone(t);
	if (!write_image(t) || !t->sound || fuzz_mem_ran_out())
		return;
	sound = check(t, 0);
	FUZZ_MUST(!sound || fuzz_mem_ran_out());
	if (!t->exact)
		return;
	same_as_before(t);
	same_in_raw_data(t);
}

static struct blk *disk_new(const uint8_t *p, size_t len)
{
	static const struct blk_opt size = {"size", "0"};
	static const struct blk_opts opts = {&size, 1};
	struct blk_open o = {
		.driver = "mem", .flags = BLK_RDWR, .opts = &opts, .mem = &fuzz_mem};
	struct blk *b;

	FUZZ_MUST(!blk_open(&b, &o, NULL));
	FUZZ_MUST(!len || !blk_pwrite(b, 0, p, len));
	return b;
}

/* Some noise, which may be shorter than what is to lie there. */
static struct blk *noise_new(struct run *t)
{
	size_t len = (size_t)fuzz_below(&t->state, WINDOW);

	for (size_t i = 0; i < len; i++)
		buf[i] = (uint8_t)(1 + i % 251);
	return disk_new(buf, len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fuzz_image m;
	struct run t = {0};

	if (!fuzz_unpack(&m, data, len))
		return -1;
	t.state = m.seed;
	t.disk = disk_new(m.p, m.size);
	free(m.p);
	census_new(&census, &t);
	if (census.apart)
		t.data = noise_new(&t);
	t.base = noise_new(&t);
	use(&t);
	blk_close(t.base);
	blk_close(t.data);
	blk_close(t.disk);
	fuzz_mem_end();
	return 0;
}
