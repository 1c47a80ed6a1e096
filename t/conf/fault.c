/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Fault loops: in every case of fault_cases.c the N-th request to the image's file
 * (or to the backing file) fails, or the N-th allocation, for N = 1, 2, ... until
 * none does. Then nothing leaks or hangs; who says that all went well has done it;
 * after an error every byte is what it was or what it should have become; and the
 * image opens again, is not corrupt, and can be repaired.
 *
 *   fault [GEOMETRY/CASE-SUBSTRING]
 *
 * In a plain thread, and in a fiber of one executor, so that N repeats.
 */
#include <unistd.h>
#include <signal.h>

#include "t/conf/fault.h"

enum where {
	FILE_ONCE,
	FILE_DEAD,    /* and all requests after it */
	FILE_PART,    /* some of it is done nevertheless */
	FILE_CHANGES, /* only what changes something, and flushes, are counted */
	BASE_ONCE,
	MEM_ONCE,
	MEM_DEAD,
};

static const struct way {
	const char *name;
	enum where where;
	bool fiber;
} ways[] = {
	{"request", FILE_ONCE, false},
	{"request and all after it", FILE_DEAD, false},
	{"request, half done", FILE_PART, false},
	{"write or flush", FILE_CHANGES, false},
	{"request to the backing file", BASE_ONCE, false},
	{"allocation", MEM_ONCE, false},
	{"allocation and all after it", MEM_DEAD, false},
	{"request, in a fiber", FILE_ONCE, true},
	{"request to the backing file, in a fiber", BASE_ONCE, true},
	{"allocation, in a fiber", MEM_ONCE, true},
};

static const struct geo geos[] = {
	{.size = 192 << 10},
#ifdef CONFIG_FMT_COW_WRITE
	{.version = 3, .size = 192 << 10, .backing = 128 << 10},
	{.version = 2, .size = (96 << 10) + 512, .backing = 60000},
	{.version = 3, .size = 128 << 10},
#endif
	{.version = 2,
		.cluster_bits = 9,
		.refcount_order = 4,
		.size = 96 << 10,
		.backing = 60000},
	{.version = 3, .cluster_bits = 9, .size = 64 << 10, .backing = 128 << 10},
	{.version = 3, .cluster_bits = 12, .refcount_order = 5, .size = (256 << 10) + 512},
	{.version = 3,
		.cluster_bits = 12,
		.refcount_order = 4,
		.size = 200 << 10,
		.backing = 150 << 10,
		.flags = GEO_LAZY},
	{.version = 3,
		.cluster_bits = 16,
		.refcount_order = 4,
		.size = 1 << 20,
		.backing = 700000},
	{.version = 3,
		.cluster_bits = 14,
		.refcount_order = 4,
		.size = 200 << 10,
		.backing = 150 << 10,
		.flags = GEO_EXTENDED},
};

/* ---- where a loop is, for who looks at a failure or a hang ---------------------------- */

static struct {
	char test[96];
	const char *way;
	uint64_t n;
} here;

static void say_where(void)
{
	char text[256];
	int len = snprintf(text, sizeof(text), "# number %llu, %s, of: t/conf/fault %s\n",
		(unsigned long long)here.n, here.way, here.test);

	if (write(2, text, (size_t)len) < 0)
		_exit(3);
}

static void hangs(int sig)
{
	(void)sig;
	say_where();
	_exit(2);
}

/* ---- the image ------------------------------------------------------------------- */

uint8_t fault_old_byte(uint64_t off)
{
	return (uint8_t)(0x40 | (off / 512 * 5 & 31));
}

static bool is_raw(const struct attempt *a)
{
	return !a->geo->cluster_bits && !a->geo->version;
}

static bool is_qcow2(const struct attempt *a)
{
	return a->geo->cluster_bits;
}

static int open_over(struct blk **out, const struct attempt *a, struct blk *file,
	struct blk *base, unsigned blk_flags, unsigned flags, const struct thr_alloc *mem,
	struct blk_err *err)
{
	struct fmt_open o = {
		.format = fault_format(a->geo),
		.blk_flags = blk_flags,
		.flags = flags,
		.mem = mem,
	};
	int ret = fmt_open_on(out, file, &o, err);

	if (ret) {
		blk_close(file);
		return ret;
	}
	if (base)
		fmt_set_backing(*out, disk_lend(base, 0));
	return 0;
}

int fault_open(struct attempt *a, unsigned blk_flags, unsigned flags)
{
	return open_over(&a->b, a, disk_lend(a->fault, 0), a->base_fault, blk_flags, flags,
		&a->mem.a, &a->e);
}

/* Over the disk as it is, with nothing in the way. */
static struct blk *reopen(struct attempt *a, unsigned blk_flags, unsigned flags)
{
	struct blk_err err = BLK_ERR_INIT;
	struct blk *b = NULL;

	if (open_over(
		    &b, a, disk_lend(a->disk, 0), a->base, blk_flags, flags, &thr_heap, &err)) {
		char text[1024];

		blk_err_text(&err, text, sizeof(text));
		fail_msg("does not open afterwards: %s", text);
	}
	return b;
}

static void cow_make(struct attempt *a)
{
	struct blk_opt v = {"version", a->geo->version == 2 ? "2" : "3"};
	struct blk_opts opts = {&v, 1};
	struct fmt_create c = {
		.name = "image",
		.format = "cow",
		.size = a->geo->size,
		.has_size = true,
		.backing = a->geo->backing ? "base.raw" : NULL,
		.unsafe_backing = true,
		.opts = &opts,
		.mem = &thr_heap,
	};
	struct blk *file = disk_lend(a->disk, 0);

	assert_int_equal(fmt_driver_find("cow")->create(file, &c, NULL), 0);
	blk_close(file);
}

static void image_new(struct attempt *a)
{
	a->disk = disk_new();
	if (a->fc->flags & FAULT_EMPTY)
		return;
	if (is_raw(a))
		assert_int_equal(
			blk_truncate(a->disk, a->geo->size, BLK_PREALLOC_OFF, NULL), 0);
	else if (is_qcow2(a))
		image_make(a->disk, a->geo);
	else
		cow_make(a);
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

static void template_make(struct attempt *a)
{
	struct blk *b, *cut;

	a->room = 2 * a->geo->size;
	a->old = calloc(3, a->room);
	assert_non_null(a->old);
	a->new = a->old + a->room;
	a->buf = a->new + a->room;
	if (a->geo->backing)
		a->base = backing_new(a->geo->backing);
	image_new(a);
	if (a->fc->flags & FAULT_EMPTY)
		return;
	b = reopen(a, BLK_RDWR, 0);
	a->old_size = blk_size(b);
	if (!(a->fc->flags & FAULT_BARE))
		fill(a, b);
	assert_int_equal(blk_pread(b, 0, a->old, a->old_size), 0);
	cut = a->fc->flags & FAULT_DIRTY ? disk_copy(a->disk) : NULL;
	assert_int_equal(fmt_close(b), 0);
	if (cut) {
		blk_close(a->disk);
		a->disk = cut;
	}
	if (a->fc->flags & FAULT_DAMAGED)
		damage(a);
}

/* ---- one attempt ----------------------------------------------------------------- */

static void arm(struct attempt *a, enum where where, uint64_t n)
{
	struct blk_fault f = {
		.nth = n,
		.err = where == FILE_DEAD ? -THR_ENOSPC : -THR_EIO,
		.always = where == FILE_DEAD,
		.partial = where == FILE_PART ? 512 : 0,
	};

	if (where == FILE_CHANGES)
		f.ops = 1u << BLK_OP_WRITE | 1u << BLK_OP_ZERO | 1u << BLK_OP_FLUSH;
	if (where == MEM_ONCE || where == MEM_DEAD) {
		poor_arm(&a->mem, n, where == MEM_DEAD);
	} else if (where == BASE_ONCE) {
		assert_int_equal(blk_fault_add(a->base_fault, &f), 0);
	} else {
		assert_int_equal(blk_fault_add(a->fault, &f), 0);
	}
}

struct call {
	struct attempt *a;
	enum where where;
	uint64_t n;
};

static void attempt(void *arg)
{
	struct call *c = arg;
	struct attempt *a = c->a;
	unsigned flags = a->fc->flags;

	if (!(flags & (FAULT_OPENS | FAULT_EMPTY)))
		a->err = fault_open(a, flags & FAULT_READ_ONLY ? 0 : BLK_RDWR,
			flags & FAULT_REPAIR ? FMT_REPAIR : 0);
	if (a->err)
		return;
	if (a->fc->before)
		a->fc->before(a);
	arm(a, c->where, c->n);
	a->err = a->fc->run(a);
	a->must_tell = c->where == FILE_CHANGES && blk_fault_fired(a->fault);
	if (a->b)
		a->close_err = fmt_close(a->b);
	a->b = NULL;
}

static void in_fiber(struct call *c)
{
	struct thr_exec *e;

	assert_int_equal(thr_exec_open(&e, &thr_heap), 0);
	assert_int_equal(thr_spawn(e, attempt, c), 0);
	thr_exec_run(e);
	thr_exec_close(e);
}

/* A copy of the template, with devices that can fail before it. */
static void attempt_open(struct attempt *a, const struct attempt *t)
{
	*a = *t;
	poor_init(&a->mem);
	a->disk = disk_copy(t->disk);
	memcpy(a->new, a->old, a->room);
	a->new_size = a->old_size;
	assert_int_equal(blk_fault_open(&a->fault, disk_lend(a->disk, 0), &thr_heap, NULL), 0);
	if (a->base)
		assert_int_equal(
			blk_fault_open(&a->base_fault, disk_lend(a->base, 0), &thr_heap, NULL),
			0);
}

static void attempt_close(struct attempt *a)
{
	blk_close(a->disk);
	blk_close(a->fault);
	blk_close(a->base_fault);
}

/* ---- judging --------------------------------------------------------------------- */

static void judge_content(struct attempt *a, struct blk *b)
{
	bool good = !a->err && !a->close_err;
	uint64_t size = blk_size(b), old = THR_MIN(a->old_size, size);

	if (good)
		assert_int_equal(size, a->new_size);
	assert_true(size == a->old_size || size == a->new_size);
	assert_int_equal(blk_pread(b, 0, a->buf, size), 0);
	for (uint64_t i = 0; i < size; i++) {
		if (a->buf[i] == a->new[i] || (!good && i < old && a->buf[i] == a->old[i]))
			continue;
		fail_msg("byte %llu is %02x; before %02x, to be %02x, result %d and %d",
			(unsigned long long)i, a->buf[i], a->old[i], a->new[i], a->err,
			a->close_err);
	}
}

static void judge_repair(struct attempt *a)
{
	struct fmt_check ck = {.fix = FMT_FIX_LEAKS | FMT_FIX_ERRORS};
	struct blk *b = reopen(a, BLK_RDWR, FMT_REPAIR);

	assert_int_equal(fmt_check(b, &ck, NULL), 0);
	assert_int_equal(ck.corruptions, 0);
	assert_int_equal(ck.leaks, 0);
	assert_int_equal(ck.check_errors, 0);
	judge_content(a, b);
	assert_int_equal(fmt_close(b), 0);
	if (is_qcow2(a))
		image_assert_sound(a->disk);
}

static void assert_not_corrupt(struct blk *disk)
{
	if (image_verify(disk, false).bad)
		assert_int_equal(image_verify(disk, true).bad, 0);
}

/* An error is the one that was injected; functions that fill in an error fill in the
 * same. */
static void judge_error(struct attempt *a)
{
	assert_true(!a->err || a->err == -THR_EIO || a->err == -THR_ENOSPC ||
		    a->err == -THR_ENOMEM);
	assert_true(a->close_err <= 0);
	assert_true(a->err || !a->must_tell);
	if (a->e.code)
		assert_int_equal(a->e.code, a->err);
}

static void judge(struct attempt *a)
{
	struct blk *b;

	judge_error(a);
	assert_int_equal(a->mem.live, 0);
	if (a->fc->flags & FAULT_EMPTY && (a->err || is_raw(a)))
		return;
	b = reopen(a, BLK_RDWR, a->fc->flags & FAULT_DAMAGED ? FMT_REPAIR : 0);
	judge_content(a, b);
	assert_int_equal(fmt_close(b), 0);
	if (is_raw(a))
		return;
	if (is_qcow2(a) && (!(a->fc->flags & FAULT_DAMAGED) || !a->err))
		assert_not_corrupt(a->disk);
	judge_repair(a);
}

/* ---- loops ----------------------------------------------------------------------- */

#define MANY 20000u

static uint64_t one(const struct attempt *t, const struct way *w, uint64_t n)
{
	struct attempt a;
	struct call c = {&a, w->where, n};
	uint64_t fired;

	attempt_open(&a, t);
	if (w->fiber)
		in_fiber(&c);
	else
		attempt(&c);
	fired = a.mem.failed + blk_fault_fired(a.fault);
	if (a.base)
		fired += blk_fault_fired(a.base_fault);
	if (!fired)
		assert_int_equal(a.err | a.close_err, 0);
	judge(&a);
	attempt_close(&a);
	return fired;
}

struct test {
	const struct geo *geo;
	const struct fault_case *fc;
	char name[96];
	bool over;
};

static void run(void **state)
{
	struct test *test = *state;
	struct attempt t = {.fc = test->fc, .geo = test->geo};
	uint64_t fired = 0;

	snprintf(here.test, sizeof(here.test), "%s", test->name);
	template_make(&t);
	for (unsigned i = 0; i < THR_ARRAY_SIZE(ways); i++) {
		if (ways[i].where == BASE_ONCE && !t.base)
			continue;
		here.way = ways[i].name;
		alarm(120);
		for (here.n = 1; one(&t, &ways[i], here.n); here.n++) {
			fired++;
			assert_in_range(here.n, 1, MANY);
		}
		if (getenv("FAULT_TRACE"))
			fprintf(stderr, "# %s, %s: %llu\n", here.test, here.way,
				(unsigned long long)here.n - 1);
	}
	alarm(0);
	assert_true(fired);
	blk_close(t.disk);
	blk_close(t.base);
	free(t.old);
	test->over = true;
}

static int ended(void **state)
{
	struct test *t = *state;

	if (!t->over)
		say_where();
	return 0;
}

static bool wanted(const struct geo *g, const struct fault_case *fc)
{
	const char *w = getenv("W");

	if (fc->flags & FAULT_DIRTY && !(g->flags & GEO_LAZY))
		return false;
	if (fc->flags & FAULT_QCOW2 && !g->cluster_bits && !g->version)
		return false;
	if (fc->flags & (FAULT_DAMAGED | FAULT_PACKED) && !g->cluster_bits)
		return false;
	/* Under valgrind: the one that has most in it. */
	return !w || !*w || g->flags & GEO_LAZY;
}

int main(int argc, char **argv)
{
	size_t most = THR_ARRAY_SIZE(geos) * fault_ncases, n = 0, i;
	struct test *all = calloc(most, sizeof(*all));
	struct CMUnitTest *tests = calloc(most, sizeof(*tests));
	int failed;

	if (!all || !tests)
		return 1;
	signal(SIGALRM, hangs);
	for (i = 0; i < most; i++) {
		struct test *t = &all[n];
		char geo[64];

		t->geo = &geos[i / fault_ncases];
		t->fc = &fault_cases[i % fault_ncases];
		geo_name(t->geo, geo, sizeof(geo));
		snprintf(t->name, sizeof(t->name), "%s%s/%s",
			t->geo->cluster_bits ? "" : fault_format(t->geo),
			t->geo->version ? geo : "", t->fc->name);
		if (!wanted(t->geo, t->fc) || (argc > 1 && !strstr(t->name, argv[1])))
			continue;
		tests[n++] = (struct CMUnitTest){t->name, run, NULL, ended, t};
	}
	failed = _cmocka_run_group_tests("fault", tests, n, NULL, NULL);
	free(tests);
	free(all);
	return failed != 0;
}
