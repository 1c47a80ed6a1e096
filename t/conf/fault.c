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

enum device { ON_FILE, ON_BASE, ON_DATA, ON_MEM };
enum how {
	ONCE,
	DEAD,    /* and all after it */
	PART,    /* some of it is done nevertheless */
	CHANGES, /* only what changes something, and flushes, are counted */
};

static const struct way {
	const char *name;
	enum device device;
	enum how how;
	bool fiber;
} ways[] = {
	{"request", ON_FILE, ONCE, false},
	{"request and all after it", ON_FILE, DEAD, false},
	{"request, half done", ON_FILE, PART, false},
	{"write or flush", ON_FILE, CHANGES, false},
	{"request to the backing file", ON_BASE, ONCE, false},
	{"request to the backing file and all after it", ON_BASE, DEAD, false},
	{"request to the backing file, half done", ON_BASE, PART, false},
	{"write or flush of the backing file", ON_BASE, CHANGES, false},
	{"request to the data file", ON_DATA, ONCE, false},
	{"request to the data file and all after it", ON_DATA, DEAD, false},
	{"request to the data file, half done", ON_DATA, PART, false},
	{"write or flush of the data file", ON_DATA, CHANGES, false},
	{"allocation", ON_MEM, ONCE, false},
	{"allocation and all after it", ON_MEM, DEAD, false},
	{"request, in a fiber", ON_FILE, ONCE, true},
	{"request to the backing file, in a fiber", ON_BASE, ONCE, true},
	{"request to the data file, in a fiber", ON_DATA, ONCE, true},
	{"allocation, in a fiber", ON_MEM, ONCE, true},
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
	{.version = 3,
		.cluster_bits = 12,
		.refcount_order = 4,
		.size = 160 << 10,
		.backing = 100 << 10,
		.flags = GEO_ON_QCOW2},
	{.version = 3,
		.cluster_bits = 12,
		.refcount_order = 4,
		.size = 160 << 10,
		.backing = 100 << 10,
		.flags = GEO_DATA},
	{.version = 3,
		.cluster_bits = 12,
		.refcount_order = 4,
		.size = (160 << 10) + 512,
		.flags = GEO_DATA | GEO_DATA_RAW},
#ifdef CONFIG_CZ_ZSTD
	{.version = 3,
		.cluster_bits = 12,
		.refcount_order = 4,
		.size = 160 << 10,
		.flags = GEO_ZSTD},
#endif
#ifdef CONFIG_FMT_LUKS
	{.size = 96 << 10, .flags = GEO_LUKS},
	{.version = 3,
		.cluster_bits = 12,
		.refcount_order = 4,
		.size = 96 << 10,
		.backing = 60 << 10,
		.flags = GEO_LUKS},
#endif
};

/* ---- where a loop is, for who looks at a failure or a hang ---------------------------- */

static struct {
	char test[160];
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

/* ---- one attempt ----------------------------------------------------------------- */

static struct blk *device(const struct attempt *a, enum device d)
{
	return d == ON_FILE ? a->fault : d == ON_BASE ? a->base_fault : a->data_fault;
}

static void arm(struct attempt *a, const struct way *w, uint64_t n)
{
	struct blk_fault f = {
		.nth = n,
		.err = w->how == DEAD ? -THR_ENOSPC : -THR_EIO,
		.always = w->how == DEAD,
		.partial = w->how == PART ? 512 : 0,
	};

	if (w->how == CHANGES)
		f.ops = 1u << BLK_OP_WRITE | 1u << BLK_OP_FLUSH;
	/* Holes in a data file are a favour, which may be refused. */
	if (w->how == CHANGES && w->device != ON_DATA)
		f.ops |= 1u << BLK_OP_ZERO;
	if (w->device == ON_MEM)
		poor_arm(&a->mem, n, w->how == DEAD);
	else
		assert_int_equal(blk_fault_add(device(a, w->device), &f), 0);
}

struct call {
	struct attempt *a;
	const struct way *way;
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
	arm(a, c->way, c->n);
	a->err = a->fc->run(a);
	a->must_tell = c->way->how == CHANGES && blk_fault_fired(device(a, c->way->device));
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

static struct blk *failing(struct blk *disk)
{
	struct blk *b;

	if (!disk)
		return NULL;
	assert_int_equal(blk_fault_open(&b, disk_lend(disk, 0), &thr_heap, NULL), 0);
	return b;
}

/* A copy of the template, with devices that can fail before it. */
static void attempt_open(struct attempt *a, const struct attempt *t)
{
	*a = *t;
	poor_init(&a->mem);
	a->disk = disk_copy(t->disk);
	a->base = t->base ? disk_copy(t->base) : NULL;
	a->data = t->data ? disk_copy(t->data) : NULL;
	memcpy(a->new, a->old, a->room);
	a->new_size = a->old_size;
	a->fault = failing(a->disk);
	a->base_fault = failing(a->base);
	a->data_fault = failing(a->data);
}

static void attempt_close(struct attempt *a)
{
	blk_close(a->fault);
	blk_close(a->base_fault);
	blk_close(a->data_fault);
	blk_close(a->disk);
	blk_close(a->base);
	blk_close(a->data);
}

/* ---- judging --------------------------------------------------------------------- */

/* A volume that could not be made longer may be so, and what it has more is noise. */
static bool may_be(const struct attempt *a, bool good, uint64_t i)
{
	if (a->buf[i] == a->new[i])
		return true;
	if (good)
		return fault_is_volume(a->geo) && a->fc->flags & FAULT_EMPTY;
	return i < a->old_size ? a->buf[i] == a->old[i] : fault_is_volume(a->geo);
}

static void judge_content(struct attempt *a)
{
	bool good = !a->err && !a->close_err;
	uint64_t size = blk_size(a->b);

	if (good)
		assert_int_equal(size, a->new_size);
	assert_true(size == a->old_size || size == a->new_size);
	assert_int_equal(blk_pread(a->b, 0, a->buf, size), 0);
	for (uint64_t i = 0; i < size; i++) {
		if (may_be(a, good, i))
			continue;
		fail_msg("byte %llu is %02x; before %02x, to be %02x, result %d and %d",
			(unsigned long long)i, a->buf[i], a->old[i], a->new[i], a->err,
			a->close_err);
	}
}

/* The data file is the disk, whoever reads it. */
static void judge_data(struct attempt *a)
{
	uint8_t *raw;

	if (!(a->geo->flags & GEO_DATA_RAW) || a->err || a->close_err)
		return;
	raw = malloc(a->new_size);
	assert_non_null(raw);
	assert_int_equal(blk_size(a->data), a->new_size);
	assert_int_equal(blk_pread(a->data, 0, raw, a->new_size), 0);
	assert_memory_equal(raw, a->buf, a->new_size);
	free(raw);
}

static bool has_check(const struct attempt *a)
{
	return a->geo->cluster_bits || a->geo->version;
}

static const char *pass(const struct attempt *a)
{
	return a->pass ? a->pass : "old";
}

static void judge_repair(struct attempt *a)
{
	struct fmt_check ck = {.fix = FMT_FIX_LEAKS | FMT_FIX_ERRORS};

	fault_reopen(a, pass(a), BLK_RDWR, FMT_REPAIR);
	assert_int_equal(fmt_check(a->b, &ck, NULL), 0);
	assert_int_equal(ck.corruptions, 0);
	assert_int_equal(ck.leaks, 0);
	assert_int_equal(ck.check_errors, 0);
	judge_content(a);
	assert_int_equal(fmt_close(a->b), 0);
	if (a->geo->cluster_bits)
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
	judge_error(a);
	assert_int_equal(a->mem.live, 0);
	if (a->fc->flags & FAULT_EMPTY && (a->err || fault_is_raw(a->geo)))
		return;
	if (a->fc->after)
		a->fc->after(a);
	fault_reopen(a, pass(a), BLK_RDWR, a->fc->flags & FAULT_DAMAGED ? FMT_REPAIR : 0);
	judge_content(a);
	judge_data(a);
	assert_int_equal(fmt_close(a->b), 0);
	if (!has_check(a))
		return;
	if (a->geo->cluster_bits && (!(a->fc->flags & FAULT_DAMAGED) || !a->err))
		assert_not_corrupt(a->disk);
	/* Opening takes long where it is encrypted, and repair does not care. */
	if (!(a->geo->flags & GEO_LUKS))
		judge_repair(a);
}

/* ---- loops ----------------------------------------------------------------------- */

#define MANY 20000u

static uint64_t one(const struct attempt *t, const struct way *w, uint64_t n)
{
	struct attempt a;
	struct call c = {&a, w, n};
	uint64_t fired;

	attempt_open(&a, t);
	if (w->fiber)
		in_fiber(&c);
	else
		attempt(&c);
	fired = a.mem.failed + blk_fault_fired(a.fault);
	if (a.base)
		fired += blk_fault_fired(a.base_fault);
	if (a.data)
		fired += blk_fault_fired(a.data_fault);
	if (!fired)
		assert_int_equal(a.err | a.close_err, 0);
	judge(&a);
	attempt_close(&a);
	return fired;
}

struct test {
	const struct geo *geo;
	const struct fault_case *fc;
	char name[160];
	bool over;
};

/* A backing file that is only read has no other ways to fail. What is encrypted opens
 * slowly: it goes without those that differ little. */
static bool can(const struct attempt *t, const struct way *w)
{
	if (t->geo->flags & GEO_LUKS &&
		(w->how == DEAD || w->how == PART || (w->fiber && w->device == ON_FILE)))
		return false;
	if (w->device == ON_DATA)
		return t->data;
	if (w->device != ON_BASE)
		return true;
	return t->base && (w->how == ONCE || t->fc->flags & FAULT_COMMIT);
}

/* Each N in turn; after the first few every third under sanitizers and every seventh under
 * valgrind, which are slow. */
static uint64_t after(uint64_t n)
{
	const char *w = getenv("W"), *s = getenv("S");

	if (n < 8)
		return n + 1;
	return n + (w && *w ? 7 : s && *s ? 3 : 1);
}

static void run(void **state)
{
	struct test *test = *state;
	struct attempt t = {.fc = test->fc, .geo = test->geo};
	uint64_t fired = 0;

	snprintf(here.test, sizeof(here.test), "%s", test->name);
	fault_template(&t);
	for (unsigned i = 0; i < THR_ARRAY_SIZE(ways); i++) {
		if (!can(&t, &ways[i]))
			continue;
		here.way = ways[i].name;
		alarm(120);
		for (here.n = 1; one(&t, &ways[i], here.n); here.n = after(here.n)) {
			fired++;
			assert_in_range(here.n, 1, MANY);
		}
		if (getenv("FAULT_TRACE"))
			fprintf(stderr, "# %s, %s: %llu\n", here.test, here.way,
				(unsigned long long)here.n - 1);
	}
	alarm(0);
	/* A volume takes no discards: nothing is asked of the file. */
	assert_true(fired || fault_is_volume(t.geo));
	blk_close(t.disk);
	blk_close(t.base);
	blk_close(t.data);
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
	if (fc->flags & FAULT_COMMIT && !g->backing)
		return false;
	if (fc->flags & FAULT_PLAIN && g->flags & GEO_LUKS)
		return false;
	if (fc->flags & FAULT_LUKS && !(g->flags & GEO_LUKS))
		return false;
	if (fc->flags & FAULT_V3 && (!g->cluster_bits || g->version < 3))
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
		char geo[128];

		t->geo = &geos[i / fault_ncases];
		t->fc = &fault_cases[i % fault_ncases];
		fault_geo_name(t->geo, geo, sizeof(geo));
		snprintf(t->name, sizeof(t->name), "%s/%s", geo, t->fc->name);
		if (!wanted(t->geo, t->fc) || (argc > 1 && !strstr(t->name, argv[1])))
			continue;
		tests[n++] = (struct CMUnitTest){t->name, run, NULL, ended, t};
	}
	failed = _cmocka_run_group_tests("fault", tests, n, NULL, NULL);
	free(tests);
	free(all);
	return failed != 0;
}
