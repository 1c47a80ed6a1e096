/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/blk_par.c - many fibers on several executors write neighbouring pieces
 * that share blocks, on a driver that gives way in the middle of everything:
 * nothing may be lost. And writes with turns decide their order by ticket.
 */
#include "blk_util.h"

#define FIBERS 64
#define EXECS  3
#define BLOCK  4096u

struct job {
	struct thr_pool *pool;
	struct blk *b;
	unsigned next;   /* fibers take their numbers here */
	unsigned pieces; /* of each fiber */
	int (*one)(struct job *j, unsigned i);
};

static int fiber(void *arg)
{
	struct job *j = arg;
	unsigned me = __atomic_fetch_add(&j->next, 1, __ATOMIC_RELAXED);
	int err = 0;

	for (unsigned i = 0; !err && i < j->pieces; i++)
		err = j->one(j, i * FIBERS + me);
	return err;
}

static int all_fibers(void *arg)
{
	struct job *j = arg;
	struct thr_group g;

	thr_group_init(&g);
	for (unsigned i = 0; i < FIBERS; i++)
		thr_group_spawn(&g, thr_pool_exec(j->pool, i % EXECS), fiber, j);
	return thr_group_wait(&g);
}

static int run(struct job *j)
{
	int err;

	assert_int_equal(thr_pool_open(&j->pool, EXECS, &thr_heap), 0);
	err = thr_pool_run(j->pool, all_fibers, j);
	thr_pool_close(j->pool);
	return err;
}

/* Piece i covers [start(i), start(i + 1)): of odd lengths, mostly less than a block,
 * some several blocks long, some starting or ending on a block. */
static uint64_t start(unsigned i)
{
	static const unsigned lens[] = {700, 1, 5000, 3395, 4096, 512, 8192, 2680};
	unsigned sum = 0;
	uint64_t all = 0;

	for (unsigned k = 0; k < THR_ARRAY_SIZE(lens); k++)
		all += lens[k];
	for (unsigned k = 0; k < i % THR_ARRAY_SIZE(lens); k++)
		sum += lens[k];
	return i / THR_ARRAY_SIZE(lens) * all + sum;
}

static uint8_t value(unsigned i)
{
	return i % 5 == 3 ? 0 : (uint8_t)(1 + i % 250);
}

static int one_piece(struct job *j, unsigned i)
{
	size_t len = (size_t)(start(i + 1) - start(i));
	uint8_t *buf;
	int err;

	if (!value(i))
		return zero_at(j->b, start(i), len, 0);
	buf = malloc(len);
	memset(buf, value(i), len);
	err = write_at(j->b, start(i), buf, len, 0, NULL);
	memset(buf, 0, len);
	if (!err)
		err = blk_pread(j->b, start(i), buf, len);
	for (size_t k = 0; !err && k < len; k++)
		if (buf[k] != value(i))
			err = -THR_EUCLEAN;
	free(buf);
	return err;
}

static void check_pieces(const struct strict *s, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		assert_filled(s->buf + start(i), value(i), (size_t)(start(i + 1) - start(i)));
}

static void neighbours(bool grows, bool can_zero)
{
	struct job j = {.pieces = 16, .one = one_piece};
	uint64_t end = start(FIBERS * 16);
	struct strict s;

	strict_open(&s, thr_align_up(end, BLOCK), grows ? 0 : end, BLOCK, &thr_heap);
	s.can_zero = can_zero;
	s.b.grows = grows;
	if (!grows)
		memset(s.buf, 0xee, end);
	j.b = &s.b;
	assert_int_equal(run(&j), 0);
	assert_int_equal(blk_size(&s.b), end);
	check_pieces(&s, FIBERS * 16);
	assert_int_equal(s.inside, 0);
	assert_null(s.b.ranges.head);
	blk_close(&s.b);
}

static void t_neighbours(void **state)
{
	(void)state;
	neighbours(false, true);
	neighbours(false, false);
}

static void t_neighbours_grow(void **state)
{
	(void)state;
	neighbours(true, true);
}

/* One block that all fibers change, byte by byte. */
static int one_byte(struct job *j, unsigned i)
{
	uint8_t v = (uint8_t)(1 + i % 255);

	return write_at(j->b, i, &v, 1, 0, NULL);
}

static void t_one_block(void **state)
{
	struct job j = {.pieces = 16, .one = one_byte};
	struct strict s;

	(void)state;
	strict_open(&s, BLOCK, BLOCK, BLOCK, &thr_heap);
	j.b = &s.b;
	assert_int_equal(run(&j), 0);
	for (unsigned i = 0; i < FIBERS * 16; i++)
		assert_int_equal(s.buf[i], 1 + i % 255);
	assert_filled(s.buf + FIBERS * 16, 0, BLOCK - FIBERS * 16);
	blk_close(&s.b);
}

/* Each block is written whole by one fiber while others change parts of it. Which
 * of them a part shows is open, but what no part touches is the whole write's. */
static int whole_or_part(struct job *j, unsigned i)
{
	uint64_t block = (uint64_t)(i / 4) * BLOCK;
	uint8_t buf[BLOCK];

	if (i % 4 == 1 && i / 4 % 2)
		return zero_at(j->b, block, BLOCK, 0);
	if (i % 4 == 1) {
		memset(buf, 0, sizeof(buf));
		return write_at(j->b, block, buf, BLOCK, 0, NULL);
	}
	memset(buf, 'p', 100);
	return write_at(j->b, block + 1000 * (i % 4), buf, 100, 0, NULL);
}

static void t_whole_and_part(void **state)
{
	struct job j = {.pieces = 16, .one = whole_or_part};
	unsigned blocks = FIBERS * 16 / 4;
	struct strict s;

	(void)state;
	strict_open(&s, blocks * BLOCK, blocks * BLOCK, BLOCK, &thr_heap);
	memset(s.buf, 'o', s.cap);
	s.can_zero = true;
	j.b = &s.b;
	assert_int_equal(run(&j), 0);
	for (unsigned i = 0; i < blocks; i++) {
		const uint8_t *b = s.buf + i * BLOCK;

		assert_filled(b + 100, 0, 1900);
		assert_filled(b + 2100, 0, 900);
		assert_filled(b + 3100, 0, BLOCK - 3100);
		for (unsigned part = 0; part < 4; part += part ? 1 : 2)
			assert_filled(b + part * 1000, b[part * 1000] ? 'p' : 0, 100);
	}
	blk_close(&s.b);
}

/* ---- turns ------------------------------------------------------------------------- */

struct order {
	struct strict s;
	struct thr_seq seq;
	unsigned n;
	uint64_t off[FIBERS * 16];
};

static int note_order(struct strict *s, struct blk_req *r)
{
	struct order *o = s->arg;
	int err;

	/* Every third gives up before it decides anything. */
	if (r->off % 3 == 0)
		return -THR_ENOSPC;
	err = blk_turn_enter(r->turn);
	if (err)
		return err;
	o->off[o->n++] = r->turn->ticket;
	thr_yield();
	if (r->off % 3 == 1)
		blk_turn_leave(r->turn);
	return 0;
}

static int one_turn(struct job *j, unsigned i)
{
	struct order *o = THR_CONTAINER(j->b, struct order, s.b);
	struct blk_turn t = {.seq = &o->seq};
	int err;

	t.ticket = thr_seq_take(&o->seq);
	err = write_at(j->b, t.ticket, "x", 1, 0, &t);
	(void)i;
	if (err != (t.ticket % 3 ? 0 : -THR_ENOSPC))
		return -THR_EUCLEAN;
	return t.passed ? 0 : -THR_EUCLEAN;
}

static void t_turns(void **state)
{
	struct job j = {.pieces = 16, .one = one_turn};
	struct order *o = calloc(1, sizeof(*o));

	(void)state;
	strict_open(&o->s, BLOCK, BLOCK, 1, &thr_heap);
	o->s.in_write = note_order;
	o->s.arg = o;
	thr_seq_init(&o->seq);
	j.b = &o->s.b;
	assert_int_equal(run(&j), 0);
	assert_int_equal(o->seq.turn, FIBERS * 16);
	assert_int_equal(o->n, FIBERS * 16 * 2 / 3);
	for (unsigned i = 1; i < o->n; i++)
		assert_true(o->off[i - 1] < o->off[i]);
	blk_close(&o->s.b);
	free(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_neighbours),
		cmocka_unit_test(t_neighbours_grow),
		cmocka_unit_test(t_one_block),
		cmocka_unit_test(t_whole_and_part),
		cmocka_unit_test(t_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
