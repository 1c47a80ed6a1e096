/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/log.c - the driver "log": records what changes the device below.
 *
 * A request gets its submission time before it goes down and its completion time
 * after it has come back. So "completed before submitted" in the log is true of
 * the device, which is what blk_log_fate() builds on; the reverse need not be.
 *
 * It has no block size of its own: what is recorded is what the writer asked for,
 * and the device below widens it.
 */
#include "blk/private.h"

/* Entries never move, as requests in flight hold on to theirs: they live in batches,
 * and a table of these that grows. */
#define LOG_BATCH 256

struct log_batch {
	struct blk_log_entry e[LOG_BATCH];
};

struct log {
	struct blk b;
	blk_log_sink *sink;
	void *arg;
	struct thr_mutex lock; /* what follows, and the entries */
	uint64_t clock;
	size_t count;
	struct log_batch **batches;
	size_t room; /* for how many batches */
};

static struct log *log_of(struct blk *b)
{
	return THR_CONTAINER(b, struct log, b);
}

/* ---- entries -------------------------------------------------------------------- */

static int table_grow(struct log *l)
{
	size_t room = l->room ? l->room * 2 : 16;
	struct log_batch **t = thr_get(l->b.mem, room * sizeof(struct log_batch *), 16);

	if (!t)
		return -THR_ENOMEM;
	if (l->room)
		memcpy(t, l->batches, l->room * sizeof(struct log_batch *));
	thr_put(l->b.mem, l->batches, l->room * sizeof(struct log_batch *));
	l->batches = t;
	l->room = room;
	return 0;
}

static struct blk_log_entry *entry_add(struct log *l)
{
	size_t batch = l->count / LOG_BATCH, i = l->count % LOG_BATCH;

	if (batch == l->room && table_grow(l))
		return NULL;
	if (!i) {
		l->batches[batch] = thr_zget(l->b.mem, sizeof(struct log_batch));
		if (!l->batches[batch])
			return NULL;
	}
	l->count++;
	return &l->batches[batch]->e[i];
}

static struct blk_log_entry *entry_at(const struct log *l, size_t i)
{
	THR_ASSERT(i < l->count);
	return &l->batches[i / LOG_BATCH]->e[i % LOG_BATCH];
}

static void entry_drop_data(struct log *l, struct blk_log_entry *e)
{
	thr_put(l->b.mem, (void *)(uintptr_t)e->data, (size_t)e->len);
	e->data = NULL;
}

/* Where the entry lives: in the log, or with the caller if it goes to a sink. */
static int log_submit(struct log *l, struct blk_log_entry *tmp, struct blk_log_entry **out)
{
	int err = 0;

	thr_mutex_lock(&l->lock);
	*out = l->sink ? tmp : entry_add(l);
	if (*out) {
		tmp->submitted = ++l->clock;
		tmp->completed = BLK_LOG_NEVER;
		**out = *tmp;
		if (l->sink)
			l->sink(l->arg, tmp);
	} else {
		err = -THR_ENOMEM;
	}
	thr_mutex_unlock(&l->lock);
	return err;
}

static void log_complete(struct log *l, struct blk_log_entry *e, int err)
{
	thr_mutex_lock(&l->lock);
	e->completed = ++l->clock;
	e->err = err;
	if (l->sink)
		l->sink(l->arg, e);
	thr_mutex_unlock(&l->lock);
	if (l->sink)
		entry_drop_data(l, e);
}

/* ---- requests -------------------------------------------------------------------- */

static int log_preadv(struct blk *b, struct blk_req *r)
{
	return blk_preadv(b->file, r);
}

static int log_request(struct log *l, struct blk_log_entry *tmp, struct blk_req *r,
	int (*fn)(struct blk *b, const struct blk_req *r))
{
	struct blk_log_entry *e;
	int err;

	tmp->flags = r->flags & ~(unsigned)BLK_CHILD;
	tmp->off = r->off;
	tmp->len = r->len;
	err = log_submit(l, tmp, &e);
	if (err) {
		entry_drop_data(l, tmp);
		return err;
	}
	err = fn(l->b.file, r);
	log_complete(l, e, err);
	return err;
}

static int log_pwritev(struct blk *b, struct blk_req *r)
{
	struct log *l = log_of(b);
	struct blk_log_entry tmp = {.op = BLK_OP_WRITE};
	void *data = thr_get(b->mem, (size_t)r->len, 16);

	if (!data)
		return -THR_ENOMEM;
	blk_req_to_buf(r, 0, data, (size_t)r->len);
	tmp.data = data;
	return log_request(l, &tmp, r, blk_pwritev);
}

static int log_zero(struct blk *b, struct blk_req *r)
{
	struct blk_log_entry tmp = {.op = BLK_OP_ZERO};

	return log_request(log_of(b), &tmp, r, blk_zero);
}

static int log_discard(struct blk *b, struct blk_req *r)
{
	struct blk_log_entry tmp = {.op = BLK_OP_DISCARD};

	return log_request(log_of(b), &tmp, r, blk_discard);
}

static int log_flush(struct blk *b)
{
	struct log *l = log_of(b);
	struct blk_log_entry tmp = {.op = BLK_OP_FLUSH}, *e;
	int err = log_submit(l, &tmp, &e);

	if (err)
		return err;
	err = blk_flush(b->file);
	log_complete(l, e, err);
	return err;
}

static int log_truncate(struct blk *b, uint64_t size, enum blk_prealloc p, struct blk_err *err)
{
	struct log *l = log_of(b);
	struct blk_log_entry tmp = {.op = BLK_OP_TRUNCATE, .off = size}, *e;
	int code = log_submit(l, &tmp, &e);

	if (code)
		return blk_fail(err, code, BLK_E_SYS, 0, size);
	code = blk_truncate(b->file, size, p, err);
	log_complete(l, e, code);
	if (!code)
		blk_set_size(b, size);
	return code;
}

static void log_close(struct blk *b)
{
	struct log *l = log_of(b);

	blk_fini(b);
	for (size_t i = 0; i < l->count; i++)
		entry_drop_data(l, entry_at(l, i));
	for (size_t i = 0; i < l->count; i += LOG_BATCH)
		thr_put(b->mem, l->batches[i / LOG_BATCH], sizeof(struct log_batch));
	thr_put(b->mem, l->batches, l->room * sizeof(struct log_batch *));
	blk_close(b->file);
	thr_put(b->mem, l, sizeof(*l));
}

static const struct blk_ops log_ops = {
	.name = "log",
	.preadv = log_preadv,
	.pwritev = log_pwritev,
	.zero = log_zero,
	.discard = log_discard,
	.flush = log_flush,
	.status = blk_filter_status,
	.truncate = log_truncate,
	.close = log_close,
};

int blk_log_open(struct blk **out, struct blk *child, blk_log_sink *sink, void *arg,
	const struct thr_alloc *mem, struct blk_err *err)
{
	struct log *l = thr_zget(mem, sizeof(*l));

	if (!l)
		return blk_fail(err, -THR_ENOMEM, BLK_E_SYS, 0, sizeof(*l));
	blk_filter_init(&l->b, &log_ops, child, mem);
	thr_mutex_init(&l->lock);
	l->sink = sink;
	l->arg = arg;
	*out = &l->b;
	return 0;
}

/* ---- looking at it ------------------------------------------------------------ */

size_t blk_log_count(struct blk *log)
{
	return log_of(log)->count;
}

const struct blk_log_entry *blk_log_get(struct blk *log, size_t i)
{
	return entry_at(log_of(log), i);
}

uint64_t blk_log_now(struct blk *log)
{
	return log_of(log)->clock;
}
