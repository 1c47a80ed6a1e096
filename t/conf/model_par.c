/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The model test for requests in flight together: fibers on two executors write,
 * zero, discard and read ranges that overlap and touch each other, on every row of
 * rows.c, in rounds.
 *
 * What is written is made of stamps of 16 bytes, which name round, operation and
 * place. A clock is read before and after every operation. A piece of 16 bytes that
 * is read may be what operation X put there if X began before the read ended, and no
 * other operation that certainly changed the piece began after X had ended and ended
 * before the read began. What the round began with counts as an operation that ended
 * before all others, and a discard as one that may have zeroed. Nothing else may be
 * read, by the fibers or after the round.
 *
 *   model_par                   all rows in memory; some with our NBD client and server in
 *                               between, as nbd:ROW
 *   model_par ROW SEED ROUNDS   one image: the names of the tests are these arguments
 */
#include <stdlib.h>
#include <string.h>

#include "t/conf/ram.h"

#define FIBERS 8u
#define EACH   24u /* operations of a fiber in a round */
#define STAMP  16u
#define NEVER  UINT64_MAX

enum kind { WRITE, READ, ZERO, UNMAP, DISCARD, FLUSH };

struct op {
	enum kind kind;
	uint64_t off, len;
	uint64_t start, end; /* by the clock */
	uint8_t *buf;        /* WRITE, READ */
	int err;
	bool packed; /* WRITE: compressed */
};

struct round {
	struct conf *c;
	struct blk *b;
	uint32_t number;
	uint64_t lo, len; /* of the disk */
	uint64_t clock;   /* atomic */
	struct op ops[FIBERS * EACH];
};

struct worker {
	struct round *r;
	unsigned first; /* of r->ops; EACH of them */
};

/* ---- planning ------------------------------------------------------------------------ */

static enum kind roll_kind(struct conf *c)
{
	uint32_t n = conf_random(c, 100);

	if (n < 55)
		return WRITE;
	if (n < 73)
		return READ;
	if (n < 80)
		return ZERO;
	if (n < 87)
		return UNMAP;
	return n < 94 ? DISCARD : FLUSH;
}

/* Whole clusters about there, if there are any. */
static void plan_packed(const struct round *r, struct op *o, uint32_t unit)
{
	uint64_t off = o->off / unit * unit, end = thr_align_up(o->off + o->len, unit);

	if (off < r->lo || end > r->lo + r->len)
		return;
	o->off = off;
	o->len = end - off;
	o->packed = true;
}

static void plan_op(struct round *r, struct op *o)
{
	struct conf *c = r->c;
	uint64_t grain = THR_MAX(c->b->zero_align, STAMP);

	if (conf_random(c, 4) || grain > r->len)
		grain = conf_random(c, 2) ? 512 : STAMP;
	memset(o, 0, sizeof(*o));
	o->kind = roll_kind(c);
	o->off = conf_random(c, (uint32_t)r->len) / grain * grain;
	o->len = (conf_random(c, conf_random(c, 3) ? 3000 : 100000) / grain + 1) * grain;
	o->len = THR_MIN(o->len, r->len - o->off);
	o->off += r->lo;
	if (o->kind == WRITE && conf_pack_unit(c) && !conf_random(c, 2))
		plan_packed(r, o, conf_pack_unit(c));
	if (o->kind == WRITE || o->kind == READ)
		o->buf = malloc(o->len);
}

static void stamp(const struct round *r, uint32_t op, uint64_t off, uint8_t *p)
{
	thr_put_le32(p, r->number);
	thr_put_le32(p + 4, op);
	thr_put_le64(p + 8, off);
}

/* A small part of the disk, so that all meet there; its start is a cluster's or not. */
static void round_plan(struct round *r, struct conf *c, uint32_t number)
{
	uint64_t most = THR_MAX(THR_MIN(8ull * c->b->zero_align, 400000), 40000) / 512 * 512;

	memset(r, 0, sizeof(*r));
	r->c = c;
	r->b = c->b;
	r->number = number;
	r->len = THR_MIN(most, c->size);
	r->lo = conf_random(c, (uint32_t)(c->size - r->len) + 1) / 512 * 512;
	if (c->size - r->lo - r->len < 4096)
		r->lo = c->size - r->len;
	for (uint32_t i = 0; i < FIBERS * EACH; i++) {
		struct op *o = &r->ops[i];

		plan_op(r, o);
		for (uint64_t at = 0; o->kind == WRITE && at < o->len; at += STAMP)
			stamp(r, i, o->off + at, o->buf + at);
	}
}

/* ---- running --------------------------------------------------------------------------- */

static int do_op(struct blk *b, const struct op *o)
{
	struct thr_iov v = {o->buf, o->len};
	struct blk_req q = {.off = o->off, .len = o->len};

	switch (o->kind) {
	case WRITE:
		q.iov = &v;
		q.niov = 1;
		q.flags = o->packed ? BLK_COMPRESS : 0;
		return blk_pwritev(b, &q);
	case READ:
		return blk_pread(b, o->off, o->buf, o->len);
	case UNMAP:
		q.flags = BLK_UNMAP;
		return blk_zero(b, &q);
	case ZERO:
		return blk_zero(b, &q);
	case DISCARD:
		return blk_discard(b, &q);
	case FLUSH:
		break;
	}
	return blk_flush(b);
}

static int work(void *arg)
{
	struct worker *w = arg;
	struct round *r = w->r;

	for (unsigned i = w->first; i < w->first + EACH; i++) {
		struct op *o = &r->ops[i];

		o->start = __atomic_add_fetch(&r->clock, 1, __ATOMIC_SEQ_CST);
		o->err = do_op(r->b, o);
		o->end = __atomic_add_fetch(&r->clock, 1, __ATOMIC_SEQ_CST);
		thr_yield();
	}
	return 0;
}

static int run_fibers(void *arg)
{
	struct round *r = arg;
	struct thr_pool *pool = thr_pool_self();
	struct worker w[FIBERS];
	struct thr_group g;

	thr_group_init(&g);
	for (unsigned i = 0; i < FIBERS; i++) {
		w[i] = (struct worker){r, i * EACH};
		thr_group_spawn(&g, thr_pool_exec(pool, i % 2), work, &w[i]);
	}
	return thr_group_wait(&g);
}

/* ---- judging ----------------------------------------------------------------------------- */

/* What holds for every piece up to the next place where an operation begins or ends. */
struct stretch {
	uint64_t end;
	uint64_t latest; /* start of the last certain change that ended before the read */
	bool zero;       /* zeroes may be read */
};

static bool covers(const struct op *o, uint64_t at)
{
	return o->kind != READ && o->kind != FLUSH && o->off <= at && at - o->off < o->len;
}

static bool zeroes(const struct op *o)
{
	return o->kind == ZERO || o->kind == UNMAP || o->kind == DISCARD;
}

/* Whether the read may see what @o did. */
static bool may_see(const struct op *o, const struct op *read, const struct stretch *s)
{
	return o->start < read->end && o->end >= s->latest;
}

static void find_stretch(
	const struct round *r, const struct op *read, uint64_t at, struct stretch *s)
{
	s->end = read->off + read->len;
	s->latest = 0;
	s->zero = false;
	for (unsigned i = 0; i < FIBERS * EACH; i++) {
		const struct op *o = &r->ops[i];

		if (o->off > at)
			s->end = THR_MIN(s->end, o->off);
		if (!covers(o, at))
			continue;
		s->end = THR_MIN(s->end, o->off + o->len);
		if (o->kind != DISCARD && o->end < read->start)
			s->latest = THR_MAX(s->latest, o->start);
	}
	for (unsigned i = 0; i < FIBERS * EACH && !s->zero; i++) {
		const struct op *o = &r->ops[i];

		s->zero = covers(o, at) && zeroes(o) && may_see(o, read, s);
	}
}

static bool is_stamp(const struct round *r, const uint8_t *p, uint64_t at, uint32_t *op)
{
	*op = thr_le32(p + 4);
	return thr_le32(p) == r->number && thr_le64(p + 8) == at && *op < FIBERS * EACH;
}

static bool piece_may_be(const struct round *r, const struct op *read, const struct stretch *s,
	uint64_t at, const uint8_t *p)
{
	static const uint8_t zero[STAMP];
	const struct op *o;
	uint32_t op;

	if (!s->latest && !memcmp(p, r->c->model + at, STAMP))
		return true;
	if (s->zero && !memcmp(p, zero, STAMP))
		return true;
	if (!is_stamp(r, p, at, &op))
		return false;
	o = &r->ops[op];
	return o->kind == WRITE && covers(o, at) && may_see(o, read, s);
}

static void blame(const struct round *r, const struct op *read, uint64_t at, const uint8_t *p)
{
	fprintf(stderr, "# round %u, read %llu to %llu, at %llu: ", r->number,
		(unsigned long long)read->start, (unsigned long long)read->end,
		(unsigned long long)at);
	for (unsigned i = 0; i < STAMP; i++)
		fprintf(stderr, "%02x", p[i]);
	fprintf(stderr, "\n");
	for (unsigned i = 0; i < FIBERS * EACH; i++) {
		const struct op *o = &r->ops[i];

		if (covers(o, at))
			fprintf(stderr, "#   %u: kind %d, %llu + %llu, from %llu to %llu\n", i,
				(int)o->kind, (unsigned long long)o->off,
				(unsigned long long)o->len, (unsigned long long)o->start,
				(unsigned long long)o->end);
	}
	fail_msg("byte %llu holds what it cannot", (unsigned long long)at);
}

static void judge(const struct round *r, const struct op *read)
{
	struct stretch s = {.end = read->off};

	for (uint64_t at = read->off; at < read->off + read->len; at += STAMP) {
		const uint8_t *p = read->buf + (at - read->off);

		if (at == s.end)
			find_stretch(r, read, at, &s);
		if (!piece_may_be(r, read, &s, at, p))
			blame(r, read, at, p);
	}
}

/* Every read of the round, and one after it, whose result is the model from now on. */
static void round_judge(struct round *r)
{
	struct op last = {.kind = READ, .off = r->lo, .len = r->len, .end = NEVER};

	for (unsigned i = 0; i < FIBERS * EACH; i++) {
		assert_int_equal(r->ops[i].err, 0);
		if (r->ops[i].kind == READ)
			judge(r, &r->ops[i]);
	}
	last.start = r->clock + 1;
	last.buf = r->c->buf;
	assert_int_equal(blk_pread(r->b, last.off, last.buf, last.len), 0);
	judge(r, &last);
	memcpy(r->c->model + last.off, last.buf, last.len);
	conf_compare(r->c);
}

/* ---- the tests ------------------------------------------------------------------- */

struct model {
	const struct conf_row *row;
	const struct conf_place *place;
	uint64_t seed;
	unsigned rounds, done;
	bool over;
	char name[96];
};

static void rewire(struct conf *c)
{
	static const uint32_t slices[] = {0, 0, 8, 40};
	static const uint32_t align[] = {0, 0, 512, 4096};
	unsigned flags = LEND_SERIAL;

	if (c->place != &conf_ram) {
		conf_reopen(c, BLK_RDWR);
		conf_compare(c);
		return;
	}
	if (conf_random(c, 4))
		flags |= LEND_YIELD;
	if (conf_random(c, 2))
		flags |= LEND_NO_DISCARD;
	conf_ram_rewire(c, flags, align[conf_random(c, 4)], slices[conf_random(c, 4)]);
	conf_compare(c);
	if (!strcmp(c->row->format, "qcow2"))
		assert_int_equal(image_verify(c->ram->disk, true).bad, 0);
}

static void one_round(struct conf *c, struct thr_pool *pool, uint32_t number)
{
	struct round *r = malloc(sizeof(*r));

	assert_non_null(r);
	if (!conf_random(c, 2))
		rewire(c);
	round_plan(r, c, number);
	assert_int_equal(thr_pool_run(pool, run_fibers, r), 0);
	round_judge(r);
	for (unsigned i = 0; i < FIBERS * EACH; i++)
		free(r->ops[i].buf);
	free(r);
}

static void run(void **state)
{
	struct model *m = *state;
	struct thr_pool *pool;
	struct conf c;

	conf_open_at(&c, m->row, m->place, m->row->size);
	c.seed = m->seed;
	rewire(&c);
	assert_int_equal(thr_pool_open(&pool, 2, &thr_heap), 0);
	for (m->done = 0; m->done < m->rounds; m->done++)
		one_round(&c, pool, m->done + 1);
	thr_pool_close(pool);
	conf_close(&c);
	m->over = true;
}

static int say_where(void **state)
{
	struct model *m = *state;

	if (!m->over)
		fprintf(stderr, "# in round %u of: t/conf/model_par %s\n", m->done + 1,
			m->name);
	return 0;
}

static void plan(struct model *m, const struct conf_place *place, const struct conf_row *row,
	uint64_t seed, unsigned rounds)
{
	m->row = row;
	m->place = place;
	m->seed = seed;
	m->rounds = rounds;
	snprintf(m->name, sizeof(m->name), "%s%s %llu %u",
		place == &conf_ram ? "" : "nbd:", row->name, (unsigned long long)seed, rounds);
}

static unsigned rounds_here(void)
{
	const char *w = getenv("W"), *s = getenv("S");

	return w && *w ? 2 : s && *s ? 8 : 150;
}

#if defined(CONFIG_BLK_NBD) && defined(CONFIG_FMT_OP_SERVE)
static const struct conf_place *const over_nbd = &conf_nbd;
#else
static const struct conf_place *const over_nbd;
#endif

/* ROW or nbd:ROW */
static const struct conf_row *find(const char *name, const struct conf_place **place)
{
	bool nbd = !strncmp(name, "nbd:", 4);

	*place = nbd ? over_nbd : &conf_ram;
	return *place ? conf_row_find(name + (nbd ? 4 : 0)) : NULL;
}

static unsigned plan_all(struct model *m)
{
	static const char *const nbd[] = {"nbd:raw", "nbd:cow-v3-over-short", "nbd:luks-xts",
		"nbd:v3-over-short", "nbd:extl2-16k"};
	const struct conf_place *place;
	unsigned n = 0;

	for (; n < conf_nrows; n++)
		plan(&m[n], &conf_ram, &conf_rows[n], n + 1, rounds_here());
	for (unsigned i = 0; i < THR_ARRAY_SIZE(nbd); i++) {
		const struct conf_row *row = find(nbd[i], &place);

		if (row)
			plan(&m[n++], place, row, i + 1, (rounds_here() + 5) / 6);
	}
	return n;
}

int main(int argc, char **argv)
{
	const struct conf_place *place = NULL;
	const struct conf_row *row = argc == 4 ? find(argv[1], &place) : NULL;
	unsigned room = conf_nrows + 16, n = 1, i;
	struct model *m = calloc(room, sizeof(*m));
	struct CMUnitTest *tests = calloc(room, sizeof(*tests));
	int failed;

	if (!m || !tests || (argc > 1 && !row)) {
		fprintf(stderr, "usage: model_par [ROW SEED ROUNDS]\n");
		return 2;
	}
	if (row)
		plan(m, place, row, strtoull(argv[2], NULL, 0), (unsigned)atoi(argv[3]));
	else
		n = plan_all(m);
	for (i = 0; i < n; i++)
		tests[i] = (struct CMUnitTest){m[i].name, run, NULL, say_where, &m[i]};
	failed = _cmocka_run_group_tests("model_par", tests, n, NULL, NULL);
	free(tests);
	free(m);
	return failed != 0;
}
