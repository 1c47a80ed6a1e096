/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/blk_req.c - the request core from one thread: bounds, splitting,
 * widening, growth, fallbacks, durability, turns, and memory that runs out.
 */
#include "blk_util.h"

#define BS 512u

static void t_bounds(void **state)
{
	uint8_t store[1000], buf[64];
	struct blk *b;

	(void)state;
	assert_int_equal(blk_mem_open(&b, store, sizeof(store), BLK_RDWR, &thr_heap, NULL), 0);
	assert_int_equal(blk_size(b), sizeof(store));
	assert_int_equal(blk_pread(b, 0, buf, 0), 0);
	assert_int_equal(blk_pread(b, 1000, buf, 0), 0);
	assert_int_equal(blk_pread(b, 936, buf, 64), 0);
	assert_int_equal(blk_pread(b, 937, buf, 64), -THR_EINVAL);
	assert_int_equal(blk_pread(b, 1000, buf, 1), -THR_EINVAL);
	assert_int_equal(blk_pread(b, UINT64_MAX - 8, buf, 64), -THR_EINVAL);
	assert_int_equal(blk_pread(b, 0, buf, BLK_MAX_IO + 1ul), -THR_EINVAL);
	assert_int_equal(blk_pwrite(b, 937, buf, 64), -THR_EINVAL);
	assert_int_equal(blk_pwrite(b, UINT64_MAX - 8, buf, 64), -THR_EINVAL);
	assert_int_equal(blk_pwrite(b, 0, buf, BLK_MAX_IO + 1ul), -THR_EINVAL);
	assert_int_equal(zero_at(b, 1, 1000, 0), -THR_EINVAL);
	assert_int_equal(zero_at(b, 1, UINT64_MAX, 0), -THR_EINVAL);
	assert_int_equal(discard_at(b, 1, 1000), -THR_EINVAL);
	assert_int_equal(discard_at(b, 0, 1000), 0);
	assert_int_equal(blk_truncate(b, 1, BLK_PREALLOC_OFF, NULL), -THR_ENOTSUP);
	blk_close(b);
	blk_close(NULL);
}

static void t_read_only(void **state)
{
	struct blk_err err = BLK_ERR_INIT;
	uint8_t store[100] = {7}, buf[10];
	struct blk *b;

	(void)state;
	assert_int_equal(blk_mem_open(&b, store, sizeof(store), 0, &thr_heap, NULL), 0);
	assert_int_equal(blk_pwrite(b, 0, buf, sizeof(buf)), -THR_EROFS);
	assert_int_equal(zero_at(b, 0, 10, 0), -THR_EROFS);
	assert_int_equal(discard_at(b, 0, 10), -THR_EROFS);
	assert_int_equal(blk_truncate(b, 1, BLK_PREALLOC_OFF, &err), -THR_EROFS);
	assert_int_equal(err.id, BLK_E_READ_ONLY);
	assert_int_equal(blk_flush(b), 0);
	assert_int_equal(store[0], 7);
	blk_close(b);
}

static void t_eof_zero(void **state)
{
	uint8_t store[100], a[30], z[40];
	struct thr_iov v[] = {{a, sizeof(a)}, {z, sizeof(z)}};
	struct blk_req r = {
		.off = 60, .len = 60, .iov = v, .niov = 2, .iov_off = 5, .flags = BLK_EOF_ZERO};
	struct blk *b;

	(void)state;
	memset(store, 1, sizeof(store));
	memset(a, 2, sizeof(a));
	memset(z, 2, sizeof(z));
	assert_int_equal(blk_mem_open(&b, store, sizeof(store), 0, &thr_heap, NULL), 0);
	/* 40 bytes are there: 25 in a, 15 in z; 20 zeroes; the rest is not touched. */
	assert_int_equal(blk_preadv(b, &r), 0);
	assert_filled(a, 2, 5);
	assert_filled(a + 5, 1, 25);
	assert_filled(z, 1, 15);
	assert_filled(z + 15, 0, 20);
	assert_filled(z + 35, 2, 5);

	r.off = UINT64_MAX - 3;
	memset(z, 2, sizeof(z));
	assert_int_equal(blk_preadv(b, &r), 0);
	assert_filled(z, 0, 35);
	blk_close(b);
}

static void t_split(void **state)
{
	size_t len = 10 * BS + 7;
	uint8_t *data = malloc(len), *back = malloc(len);
	struct strict s;
	uint32_t seed = 1;

	(void)state;
	strict_open(&s, 64 * BS, 64 * BS, 1, &thr_heap);
	s.b.max_io = 1000;
	for (size_t i = 0; i < len; i++)
		data[i] = (uint8_t)rnd(&seed);
	assert_int_equal(blk_pwrite(&s.b, 33, data, len), 0);
	assert_int_equal(s.writes, 6);
	assert_int_equal(s.longest, 1000);
	assert_int_equal(blk_pread(&s.b, 33, back, len), 0);
	assert_int_equal(s.reads, 6);
	assert_memory_equal(data, back, len);
	/* The first error ends it. */
	s.fail = -THR_EIO;
	assert_int_equal(blk_pread(&s.b, 33, back, len), -THR_EIO);
	assert_int_equal(s.reads, 7);
	assert_int_equal(blk_pwrite(&s.b, 33, back, len), -THR_EIO);
	assert_int_equal(s.writes, 7);
	blk_close(&s.b);
	free(data);
	free(back);
}

/* Random vectors, offsets and lengths, with a model beside it. */
struct model {
	struct strict s;
	uint8_t *image;
	uint8_t *data;
	size_t size;
	uint32_t seed;
};

#define MODEL_DATA 8192u

static unsigned cut_vector(
	struct model *m, struct thr_iov *v, unsigned max, size_t len, bool even)
{
	size_t at = even ? 0 : rnd(&m->seed) % 9;
	unsigned n = 0;

	while (len && n < max) {
		size_t piece = n + 1 == max ? len : THR_MIN(len, 1 + rnd(&m->seed) % 700);

		if (even && n + 1 < max)
			piece = THR_MIN(len, (1 + rnd(&m->seed) % 3) * BS);
		v[n].base = m->data + at;
		v[n].len = piece;
		at += piece;
		len -= piece;
		n++;
	}
	return n;
}

static void model_step(struct model *m)
{
	bool even = rnd(&m->seed) % 4 == 0;
	uint64_t off = rnd(&m->seed) % m->size;
	size_t len = 1 + rnd(&m->seed) % 4000;
	struct thr_iov v[4];
	struct blk_req r = {.iov = v};
	unsigned op = rnd(&m->seed) % 4;

	len = THR_MIN(len, m->size - off);
	if (even) {
		off = thr_align_down(off, BS);
		len = THR_MAX(thr_align_down(len, BS), BS);
		len = THR_MIN(len, m->size - off);
	}
	r.off = off;
	r.len = len;
	for (size_t i = 0; i < MODEL_DATA; i++)
		m->data[i] = (uint8_t)rnd(&m->seed);
	r.niov = cut_vector(m, v, 4, len, even);
	if (op == 0) {
		r.iov = NULL;
		assert_int_equal(blk_zero(&m->s.b, &r), 0);
		memset(m->image + off, 0, len);
	} else if (op == 1) {
		blk_req_to_buf(&r, 0, m->image + off, len);
		assert_int_equal(blk_pwritev(&m->s.b, &r), 0);
	} else {
		assert_int_equal(blk_preadv(&m->s.b, &r), 0);
		for (size_t at = 0, n; at < len; at += n) {
			void *p;

			n = len - at;
			p = blk_req_piece(&r, at, &n);
			assert_memory_equal(p, m->image + off + at, n);
		}
	}
}

static void run_model(
	uint32_t align, uint32_t mem_align, size_t size, uint32_t max_io, bool zero)
{
	struct model m = {.size = size, .seed = 7 + align + mem_align};
	size_t cap = thr_align_up(size, 4096);
	struct purse purse;

	purse_init(&purse);
	strict_open(&m.s, cap, size, align, &purse.mem);
	m.s.b.mem_align = mem_align;
	m.s.b.max_io = max_io;
	m.s.can_zero = zero;
	m.image = calloc(1, size);
	assert_int_equal(posix_memalign((void **)&m.data, 4096, MODEL_DATA), 0);
	for (int i = 0; i < 1500; i++)
		model_step(&m);
	assert_memory_equal(m.image, m.s.buf, size);
	/* Past the end of the device, the last block holds zeroes. */
	assert_filled(m.s.buf + size, 0, cap - size);
	assert_int_equal(purse.live, 0);
	blk_close(&m.s.b);
	free(m.image);
	free(m.data);
}

static void t_widen(void **state)
{
	(void)state;
	run_model(1, 1, 20000, BLK_MAX_IO, true);
	run_model(BS, 1, 20480, BLK_MAX_IO, false);
	run_model(BS, BS, 20480, 1024, true);
	run_model(BS, BS, 20000, 700, false);
	run_model(4096, 4096, 40960, BLK_MAX_IO, true);
	run_model(4096, BS, 40001, 8192, false);
	run_model(1, 16, 20000, 5000, false);
}

static void t_widen_counts(void **state)
{
	uint8_t *data = NULL;
	struct strict s;

	(void)state;
	assert_int_equal(posix_memalign((void **)&data, 4096, 65536), 0);
	memset(data, 1, 65536);
	strict_open(&s, 65536, 65536, 4096, &thr_heap);
	/* Aligned: straight through. */
	assert_int_equal(blk_pwrite(&s.b, 4096, data, 8192), 0);
	assert_int_equal(blk_pread(&s.b, 4096, data, 8192), 0);
	assert_int_equal(s.writes, 1);
	assert_int_equal(s.reads, 1);
	/* Inside one block: one read, one write. */
	assert_int_equal(blk_pwrite(&s.b, 100, data, 200), 0);
	assert_int_equal(s.writes, 2);
	assert_int_equal(s.reads, 2);
	/* Head, middle, tail. */
	assert_int_equal(blk_pwrite(&s.b, 4000, data, 9000), 0);
	assert_int_equal(s.writes, 5);
	assert_int_equal(s.reads, 4);
	/* A misaligned buffer costs a copy, not a read. */
	assert_int_equal(blk_pwrite(&s.b, 4096, data + 1, 8192), 0);
	assert_int_equal(s.writes, 6);
	assert_int_equal(s.reads, 4);
	blk_close(&s.b);
	free(data);
}

static void t_grow(void **state)
{
	uint8_t data[3000], back[3000];
	struct strict s;

	(void)state;
	memset(data, 9, sizeof(data));
	for (uint32_t align = 1; align <= 4096; align *= 8) {
		strict_open(&s, 65536, 0, align, &thr_heap);
		s.can_zero = align != 8;
		assert_int_equal(blk_pwrite(&s.b, 0, data, 10), -THR_EINVAL);
		s.b.grows = true;
		assert_int_equal(blk_pwrite(&s.b, 5, data, 1000), 0);
		assert_int_equal(blk_size(&s.b), 1005);
		assert_int_equal(blk_pwrite(&s.b, 500, data, 100), 0);
		assert_int_equal(blk_size(&s.b), 1005);
		assert_int_equal(blk_pwrite(&s.b, 1005, data, 3000), 0);
		assert_int_equal(blk_size(&s.b), 4005);
		assert_int_equal(zero_at(&s.b, 4000, 5000, 0), 0);
		assert_int_equal(blk_size(&s.b), 9000);
		assert_filled(s.buf, 0, 5);
		assert_filled(s.buf + 5, 9, 3995);
		assert_filled(s.buf + 4000, 0, 65536 - 4000);
		assert_int_equal(blk_pread(&s.b, 8000, back, 1001), -THR_EINVAL);
		assert_int_equal(blk_pread(&s.b, 8000, back, 1000), 0);
		/* Discarding what is not there yet does nothing. */
		assert_int_equal(discard_at(&s.b, 9000, 5000), 0);
		assert_int_equal(s.discards, 0);
		assert_int_equal(blk_pwrite(&s.b, UINT64_MAX - 5, data, 10), -THR_EINVAL);
		assert_int_equal(
			blk_pwrite(&s.b, (uint64_t)INT64_MAX - 5, data, 10), -THR_EFBIG);
		s.fail = -THR_ENOSPC;
		assert_int_equal(blk_pwrite(&s.b, 9000, data, 10), -THR_ENOSPC);
		assert_int_equal(blk_size(&s.b), 9000);
		blk_close(&s.b);
	}
}

static void t_zero(void **state)
{
	size_t size = 5u << 20;
	struct strict s;

	(void)state;
	strict_open(&s, size, size, BS, &thr_heap);
	memset(s.buf, 1, size);
	/* The driver cannot: zeroes are written, the hint is not passed to writes. */
	assert_int_equal(zero_at(&s.b, BS, size - 2 * BS, BLK_UNMAP), 0);
	assert_int_equal(s.zeroes, 1);
	assert_true(s.writes > 1);
	assert_int_equal(s.last_flags, BLK_CHILD);
	assert_filled(s.buf, 1, BS);
	assert_filled(s.buf + BS, 0, size - 2 * BS);
	assert_filled(s.buf + size - BS, 1, BS);
	/* Or it is an error, and nothing is changed. */
	memset(s.buf, 1, size);
	s.writes = 0;
	assert_int_equal(zero_at(&s.b, 5, 3 * BS, BLK_NO_FALLBACK), -THR_ENOTSUP);
	assert_int_equal(s.writes, 0);
	assert_filled(s.buf, 1, size);
	/* It can: one call however long, edges apart. */
	s.can_zero = true;
	s.zeroes = 0;
	assert_int_equal(zero_at(&s.b, 100, size - 200, BLK_UNMAP), 0);
	assert_int_equal(s.zeroes, 1);
	assert_int_equal(s.writes, 2);
	assert_filled(s.buf, 1, 100);
	assert_filled(s.buf + 100, 0, size - 200);
	assert_filled(s.buf + size - 100, 1, 100);
	s.fail = -THR_EIO;
	assert_int_equal(zero_at(&s.b, 0, BS, 0), -THR_EIO);
	blk_close(&s.b);
}

static void t_discard(void **state)
{
	struct strict s;

	(void)state;
	strict_open(&s, 64 * BS, 64 * BS, BS, &thr_heap);
	assert_int_equal(discard_at(&s.b, 100, 3 * BS), 0);
	assert_int_equal(s.last_off, BS);
	assert_int_equal(s.last_len, 2 * BS);
	/* Nothing but parts of blocks. */
	assert_int_equal(discard_at(&s.b, 100, BS), 0);
	assert_int_equal(discard_at(&s.b, 100, 1), 0);
	assert_int_equal(discard_at(&s.b, 0, 0), 0);
	assert_int_equal(s.discards, 1);
	s.fail = -THR_ENOTSUP;
	assert_int_equal(discard_at(&s.b, 0, BS), 0);
	s.fail = -THR_EIO;
	assert_int_equal(discard_at(&s.b, 0, BS), -THR_EIO);
	blk_close(&s.b);
}

static void t_flush(void **state)
{
	struct strict s;

	(void)state;
	strict_open(&s, 64 * BS, 64 * BS, 1, &thr_heap);
	assert_int_equal(blk_flush(&s.b), 0);
	assert_int_equal(s.flushes, 1);
	s.fail = -THR_EIO;
	assert_int_equal(blk_flush(&s.b), -THR_EIO);
	s.fail = -THR_ENOSPC;
	assert_int_equal(blk_flush(&s.b), -THR_EIO);
	s.fail = 0;
	assert_int_equal(blk_flush(&s.b), -THR_EIO);
	assert_int_equal(s.flushes, 2);
	/* Nor does a durable write succeed any more. */
	assert_int_equal(write_at(&s.b, 0, "x", 1, 0, NULL), 0);
	assert_int_equal(write_at(&s.b, 0, "x", 1, BLK_FUA, NULL), -THR_EIO);
	assert_int_equal(zero_at(&s.b, 0, 1, BLK_FUA), -THR_EIO);
	blk_close(&s.b);

	strict_open(&s, 64 * BS, 64 * BS, 1, &thr_heap);
	s.b.flags |= BLK_NOFLUSH;
	s.fail = -THR_EIO;
	assert_int_equal(blk_flush(&s.b), 0);
	assert_int_equal(s.flushes, 0);
	blk_close(&s.b);
}

static void t_durable(void **state)
{
	static uint8_t data[10 * BS];
	struct strict s;

	(void)state;
	for (int fua = 0; fua < 2; fua++) {
		strict_open(&s, 64 * BS, 64 * BS, BS, &thr_heap);
		s.b.fua = fua;
		s.b.max_io = 2 * BS;
		assert_int_equal(write_at(&s.b, 7, data, sizeof(data), 0, NULL), 0);
		assert_int_equal(s.flushes, 0);
		assert_false(s.last_flags & BLK_FUA);
		/* However it was cut, one flush. */
		assert_int_equal(write_at(&s.b, 7, data, sizeof(data), BLK_FUA, NULL), 0);
		assert_int_equal(s.flushes, fua ? 0 : 1);
		assert_int_equal(!!(s.last_flags & BLK_FUA), fua);
		assert_int_equal(zero_at(&s.b, 0, BS, BLK_FUA), 0);
		assert_int_equal(s.flushes, fua ? 0 : 2);
		assert_int_equal(!!(s.last_flags & BLK_FUA), fua);
		s.b.flags |= BLK_WRITETHROUGH;
		assert_int_equal(write_at(&s.b, 0, data, BS, 0, NULL), 0);
		assert_int_equal(s.flushes, fua ? 0 : 3);
		assert_int_equal(!!(s.last_flags & BLK_FUA), fua);
		s.b.flags |= BLK_NOFLUSH;
		assert_int_equal(write_at(&s.b, 0, data, BS, BLK_FUA, NULL), 0);
		assert_int_equal(s.flushes, fua ? 0 : 3);
		assert_false(s.last_flags & BLK_FUA);
		/* A failed write is not flushed. */
		s.b.flags &= ~(unsigned)BLK_NOFLUSH;
		s.fail = -THR_EIO;
		assert_int_equal(write_at(&s.b, 0, data, BS, BLK_FUA, NULL), -THR_EIO);
		assert_int_equal(s.flushes, fua ? 0 : 3);
		blk_close(&s.b);
	}
}

/* Whatever becomes of a request, its turn is passed on, once. */
static void t_turn(void **state)
{
	static const int fails[] = {0, -THR_EIO, -THR_ENOTSUP};
	uint8_t data[BS] = {0};
	struct thr_seq seq;
	struct strict s;
	struct purse purse;
	uint64_t taken = 0;

	(void)state;
	thr_seq_init(&seq);
	purse_init(&purse);
	for (uint32_t align = 1; align <= BS; align *= BS) {
		strict_open(&s, 64 * BS, 64 * BS, align, &purse.mem);
		for (int i = 0; i < 9 * 3; i++) {
			struct blk_turn t = {.seq = &seq, .ticket = thr_seq_take(&seq)};
			struct blk_req z = {.len = 0, .turn = &t};
			struct blk_req far = {.off = 65 * BS, .len = 1, .turn = &t};

			taken++;
			s.fail = fails[i % 3];
			purse.fail_at = i / 3 == 8 ? purse.calls + 1 : 0;
			s.b.flags = i / 3 == 7 ? 0 : BLK_RDWR;
			if (i / 3 == 0)
				assert_int_equal(write_at(&s.b, 0, data, BS, 0, &t), s.fail);
			else if (i / 3 == 1)
				write_at(&s.b, 1, data, BS, 0, &t);
			else if (i / 3 == 2)
				blk_zero(&s.b, &z);
			else if (i / 3 == 3)
				assert_int_equal(blk_zero(&s.b, &far), -THR_EINVAL);
			else if (i / 3 == 4)
				assert_int_equal(blk_discard(&s.b, &far), -THR_EINVAL);
			else if (i / 3 == 5)
				assert_int_equal(write_at(&s.b, 0, NULL, 0, 0, &t), 0);
			else if (i / 3 == 6)
				assert_int_equal(
					write_at(&s.b, 0, data, BLK_MAX_IO + 1ul, 0, &t),
					-THR_EINVAL);
			else
				write_at(&s.b, 1, data, 3, 0, &t);
			assert_true(t.passed);
			assert_int_equal(seq.turn, taken);
			blk_turn_leave(&t);
			assert_int_equal(blk_turn_enter(&t), 0);
			assert_int_equal(seq.turn, taken);
		}
		blk_close(&s.b);
	}
	assert_int_equal(blk_turn_enter(NULL), 0);
	blk_turn_leave(NULL);
	assert_int_equal(purse.live, 0);
}

static int enters_turn(struct strict *s, struct blk_req *r)
{
	int err = blk_turn_enter(r->turn);

	*(uint64_t *)s->arg = r->turn->seq->turn;
	if (!err)
		blk_turn_leave(r->turn);
	return err;
}

static void t_turn_driver(void **state)
{
	struct thr_seq seq;
	struct strict s;
	struct blk_turn t = {.seq = &seq};
	uint64_t seen = 99;

	(void)state;
	thr_seq_init(&seq);
	strict_open(&s, BS, BS, 1, &thr_heap);
	s.in_write = enters_turn;
	s.arg = &seen;
	t.ticket = thr_seq_take(&seq);
	assert_int_equal(write_at(&s.b, 0, "x", 1, 0, &t), 0);
	assert_int_equal(seen, 0);
	assert_int_equal(seq.turn, 1);
	/* A cancelled job: the write fails, the turn goes on. */
	thr_seq_cancel(&seq);
	t = (struct blk_turn){.seq = &seq, .ticket = thr_seq_take(&seq)};
	assert_int_equal(write_at(&s.b, 0, "x", 1, 0, &t), -THR_ECANCELED);
	assert_int_equal(seq.turn, 2);
	blk_close(&s.b);
}

/* Fail the N-th allocation until none fails: an error and nothing leaked. */
static void t_no_memory(void **state)
{
	uint8_t data[3 * 4096 + 1], back[sizeof(data)];
	struct purse purse;
	struct strict s;
	unsigned n, failed = 0;

	(void)state;
	purse_init(&purse);
	memset(data, 3, sizeof(data));
	strict_open(&s, 65536, 65536, 4096, &purse.mem);
	for (n = 1;; n++) {
		int w, r;

		purse.calls = 0;
		purse.fail_at = n;
		w = blk_pwrite(&s.b, 100, data + 1, 3 * 4096);
		r = blk_pread(&s.b, 100, back + 1, 3 * 4096);
		assert_true(!w || w == -THR_ENOMEM);
		assert_true(!r || r == -THR_ENOMEM);
		assert_int_equal(purse.live, 0);
		if (!w && !r)
			break;
		failed++;
	}
	/* Two edges and a middle of the write, one read. */
	assert_int_equal(failed, 4);
	assert_memory_equal(data + 1, back + 1, 3 * 4096);
	purse.fail_at = 0;
	blk_close(&s.b);
}

static int status_short(struct blk *b, uint64_t off, uint64_t len, struct blk_extent *e)
{
	(void)b;
	(void)len;
	if (off == 13)
		return -THR_EUCLEAN;
	e->len = 1000;
	e->flags = BLK_EXT_ZERO;
	return 0;
}

static void t_status(void **state)
{
	struct blk_ops ops = strict_ops;
	struct blk_extent e;
	struct strict s, below;
	uint64_t bytes;

	(void)state;
	strict_open(&s, 4096, 4000, 1, &thr_heap);
	strict_open(&below, 4096, 4000, 1, &thr_heap);
	assert_int_equal(blk_status(&s.b, 10, 3990, &e), 0);
	assert_int_equal(e.len, 3990);
	assert_int_equal(e.flags, BLK_EXT_ALLOC | BLK_EXT_DATA);
	assert_int_equal(blk_status(&s.b, 10, 3991, &e), -THR_EINVAL);
	assert_int_equal(blk_status(&s.b, 10, UINT64_MAX, &e), -THR_EINVAL);
	assert_int_equal(blk_status(&s.b, 10, 0, &e), -THR_EINVAL);
	assert_int_equal(blk_allocated(&s.b, &bytes), -THR_ENOTSUP);
	assert_false(blk_same(&s.b, &below.b));
	s.b.file = &below.b;
	assert_true(blk_same(&s.b, &below.b));
	assert_int_equal(blk_status(&s.b, 10, 5, &e), 0);
	assert_int_equal(e.flags, BLK_EXT_ALLOC | BLK_EXT_DATA | BLK_EXT_MAPPED);
	assert_int_equal(e.map, 10);
	/* What the driver says is cut to what was asked. */
	ops.status = status_short;
	s.b.ops = &ops;
	assert_int_equal(blk_status(&s.b, 10, 5, &e), 0);
	assert_int_equal(e.len, 5);
	assert_int_equal(blk_status(&s.b, 10, 3000, &e), 0);
	assert_int_equal(e.len, 1000);
	assert_int_equal(blk_status(&s.b, 13, 10, &e), -THR_EUCLEAN);
	blk_close(&s.b);
	blk_close(&below.b);
}

static void t_vector(void **state)
{
	uint8_t a[3] = "ab", c[4] = "cde", buf[8];
	struct thr_iov v[] = {{a, 2}, {NULL, 0}, {c, 3}};
	struct blk_req r = {.len = 4, .iov = v, .niov = 3, .iov_off = 1};
	size_t n = 99;

	(void)state;
	blk_req_to_buf(&r, 0, buf, 4);
	assert_memory_equal(buf, "bcde", 4);
	blk_req_to_buf(&r, 2, buf, 2);
	assert_memory_equal(buf, "de", 2);
	assert_ptr_equal(blk_req_piece(&r, 0, &n), a + 1);
	assert_int_equal(n, 1);
	n = 99;
	assert_ptr_equal(blk_req_piece(&r, 1, &n), c);
	assert_int_equal(n, 3);
	n = 1;
	assert_ptr_equal(blk_req_piece(&r, 2, &n), c + 1);
	assert_int_equal(n, 1);
	blk_req_from_buf(&r, 0, "wxyz", 4);
	assert_memory_equal(a, "aw", 2);
	assert_memory_equal(c, "xyz", 3);
	blk_req_fill(&r, 1, '.', 2);
	assert_memory_equal(c, "..z", 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_bounds),
		cmocka_unit_test(t_read_only),
		cmocka_unit_test(t_eof_zero),
		cmocka_unit_test(t_split),
		cmocka_unit_test(t_widen),
		cmocka_unit_test(t_widen_counts),
		cmocka_unit_test(t_grow),
		cmocka_unit_test(t_zero),
		cmocka_unit_test(t_discard),
		cmocka_unit_test(t_flush),
		cmocka_unit_test(t_durable),
		cmocka_unit_test(t_turn),
		cmocka_unit_test(t_turn_driver),
		cmocka_unit_test(t_no_memory),
		cmocka_unit_test(t_status),
		cmocka_unit_test(t_vector),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
