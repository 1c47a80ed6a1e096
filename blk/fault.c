/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/fault.c - the driver "fault": makes requests fail, end early or take long, by
 * rule. Which request a rule meets depends on their order alone, so on one
 * executor a run repeats exactly.
 */
#include "blk/private.h"

struct rule {
	struct rule *next;
	struct blk_fault f;
	uint64_t seen;  /* matching requests so far */
	uint64_t bytes; /* and their lengths */
	bool spent;
};

struct fault {
	struct blk b;
	struct thr_mutex lock; /* the rules */
	struct rule *rules;
	uint64_t fired;
};

static struct fault *fault_of(struct blk *b)
{
	return THR_CONTAINER(b, struct fault, b);
}

/* ---- rules ---------------------------------------------------------------------- */

/* Flushes and changes of length touch no range. */
static bool touches(const struct blk_fault *f, uint64_t off, uint64_t len)
{
	if (!f->len)
		return true;
	if (!len)
		return false;
	return off < f->off ? f->off - off < len : off - f->off < f->len;
}

/* Whether the rule is for this request, which it counts in any case. */
static bool rule_meets(struct rule *r, enum blk_op op, uint64_t off, uint64_t len)
{
	bool hit;

	if (r->f.ops && !(r->f.ops & 1u << op))
		return false;
	if (!touches(&r->f, off, len))
		return false;
	hit = !r->spent && ++r->seen >= r->f.nth && r->bytes >= r->f.after;
	r->bytes += len;
	return hit;
}

/* The verdict on a request; waits where the rule says so. */
static struct blk_fault judge(struct fault *ft, enum blk_op op, uint64_t off, uint64_t len)
{
	struct blk_fault verdict = {0};
	struct rule *met = NULL;

	thr_mutex_lock(&ft->lock);
	for (struct rule *r = ft->rules; r; r = r->next)
		if (rule_meets(r, op, off, len) && !met)
			met = r;
	if (met) {
		verdict = met->f;
		met->spent = !met->f.always;
		ft->fired++;
	}
	thr_mutex_unlock(&ft->lock);
	if (verdict.latency_ns)
		blk_pause(verdict.latency_ns);
	return verdict;
}

int blk_fault_add(struct blk *fault, const struct blk_fault *rule)
{
	struct fault *ft = fault_of(fault);
	struct rule *r, **at;

	if (rule->latency_ns && !blk_can_pause)
		return -THR_ENOTSUP;
	r = thr_zget(fault->mem, sizeof(*r));
	if (!r)
		return -THR_ENOMEM;
	r->f = *rule;
	thr_mutex_lock(&ft->lock);
	for (at = &ft->rules; *at; at = &(*at)->next)
		;
	*at = r;
	thr_mutex_unlock(&ft->lock);
	return 0;
}

void blk_fault_clear(struct blk *fault)
{
	struct fault *ft = fault_of(fault);
	struct rule *r, *next;

	thr_mutex_lock(&ft->lock);
	r = ft->rules;
	ft->rules = NULL;
	thr_mutex_unlock(&ft->lock);
	for (; r; r = next) {
		next = r->next;
		thr_put(fault->mem, r, sizeof(*r));
	}
}

uint64_t blk_fault_fired(struct blk *fault)
{
	struct fault *ft = fault_of(fault);
	uint64_t n;

	thr_mutex_lock(&ft->lock);
	n = ft->fired;
	thr_mutex_unlock(&ft->lock);
	return n;
}

/* ---- requests -------------------------------------------------------------------- */

static int fault_request(struct blk *b, struct blk_req *r, enum blk_op op,
	int (*fn)(struct blk *b, const struct blk_req *r))
{
	struct blk_fault v = judge(fault_of(b), op, r->off, r->len);
	struct blk_req p = *r;

	if (!v.err)
		return fn(b->file, r);
	p.len = THR_MIN(v.partial, r->len);
	if (p.len)
		fn(b->file, &p);
	return v.err;
}

static int fault_preadv(struct blk *b, struct blk_req *r)
{
	return fault_request(b, r, BLK_OP_READ, blk_preadv);
}

static int fault_pwritev(struct blk *b, struct blk_req *r)
{
	return fault_request(b, r, BLK_OP_WRITE, blk_pwritev);
}

static int fault_zero(struct blk *b, struct blk_req *r)
{
	return fault_request(b, r, BLK_OP_ZERO, blk_zero);
}

static int fault_discard(struct blk *b, struct blk_req *r)
{
	return fault_request(b, r, BLK_OP_DISCARD, blk_discard);
}

static int fault_flush(struct blk *b)
{
	struct blk_fault v = judge(fault_of(b), BLK_OP_FLUSH, 0, 0);

	return v.err ? v.err : blk_flush(b->file);
}

static int fault_truncate(
	struct blk *b, uint64_t size, enum blk_prealloc p, struct blk_err *err)
{
	struct blk_fault v = judge(fault_of(b), BLK_OP_TRUNCATE, size, 0);
	int code;

	if (v.err)
		return blk_fail(err, v.err, BLK_E_SYS, 0, size);
	code = blk_truncate(b->file, size, p, err);
	if (!code)
		blk_set_size(b, size);
	return code;
}

static void fault_close(struct blk *b)
{
	blk_fini(b);
	blk_fault_clear(b);
	blk_close(b->file);
	thr_put(b->mem, fault_of(b), sizeof(struct fault));
}

static const struct blk_ops fault_ops = {
	.name = "fault",
	.preadv = fault_preadv,
	.pwritev = fault_pwritev,
	.zero = fault_zero,
	.discard = fault_discard,
	.flush = fault_flush,
	.status = blk_filter_status,
	.truncate = fault_truncate,
	.close = fault_close,
};

int blk_fault_open(
	struct blk **out, struct blk *child, const struct thr_alloc *mem, struct blk_err *err)
{
	struct fault *ft = thr_zget(mem, sizeof(*ft));

	if (!ft)
		return blk_fail(err, -THR_ENOMEM, BLK_E_SYS, 0, sizeof(*ft));
	blk_filter_init(&ft->b, &fault_ops, child, mem);
	thr_mutex_init(&ft->lock);
	*out = &ft->b;
	return 0;
}

/* ---- by options --------------------------------------------------------------------- */

static int opt_op(const struct blk_opts *o, unsigned *ops, struct blk_err *err)
{
	static const char *const words[] = {
		"read", "write", "zero", "discard", "flush", "truncate"};
	const char *s = blk_opt(o, "op");

	if (!s)
		return 0;
	for (unsigned i = 0; i < THR_ARRAY_SIZE(words); i++)
		if (blk_str_eq(words[i], s))
			*ops = 1u << i;
	return *ops ? 0 : blk_fail_str(err, -THR_EINVAL, BLK_E_BAD_VALUE, "op");
}

static int opt_error(const struct blk_opts *o, int *out, struct blk_err *err)
{
	const char *s = blk_opt(o, "error");
	uint64_t n;

	if (!s)
		return 0;
	if (blk_str_eq(s, "EIO"))
		n = THR_EIO;
	else if (blk_str_eq(s, "ENOSPC"))
		n = THR_ENOSPC;
	else if (blk_parse_size(s, &n) || n > 4095)
		return blk_fail_str(err, -THR_EINVAL, BLK_E_BAD_VALUE, "error");
	*out = -(int)n;
	return 0;
}

static int opt_rule(const struct blk_opts *o, struct blk_fault *f, struct blk_err *err)
{
	const struct {
		const char *key;
		uint64_t *out;
	} numbers[] = {
		{"nth", &f->nth},
		{"offset", &f->off},
		{"length", &f->len},
		{"after", &f->after},
		{"partial", &f->partial},
		{"latency-ns", &f->latency_ns},
	};
	int code = opt_op(o, &f->ops, err);

	if (!code)
		code = opt_error(o, &f->err, err);
	if (!code)
		code = blk_opt_bool(o, "always", false, &f->always, err);
	for (size_t i = 0; !code && i < THR_ARRAY_SIZE(numbers); i++)
		code = blk_opt_size(o, numbers[i].key, 0, numbers[i].out, err);
	return code;
}

/* Options of the device below. */
#define FAULT_SUB_MAX 32

static int open_child(struct blk **out, const struct blk_open *o, struct blk_err *err)
{
	struct blk_opt sub[FAULT_SUB_MAX];
	struct blk_opts opts;
	struct blk_open c = {.flags = o->flags, .opts = &opts, .mem = o->mem};

	if (blk_opts_sub(o->opts, "file.", sub, FAULT_SUB_MAX, &opts))
		return blk_fail_str(err, -THR_EINVAL, BLK_E_BAD_OPTION, "file.");
	return blk_open(out, &c, err);
}

static int fault_open(struct blk **out, const struct blk_open *o, struct blk_err *err)
{
	struct blk_fault f = {0};
	struct blk *child;
	int code = opt_rule(o->opts, &f, err);

	if (code)
		return code;
	code = open_child(&child, o, err);
	if (code)
		return code;
	code = blk_fault_open(out, child, o->mem, err);
	if (code) {
		blk_close(child);
		return code;
	}
	if (!f.err && !f.latency_ns)
		return 0;
	code = blk_fault_add(*out, &f);
	if (!code)
		return 0;
	blk_close(*out);
	return blk_fail(err, code, BLK_E_SYS, 0, 0);
}

static const char *const fault_keys[] = {"op", "nth", "offset", "length", "after", "error",
	"partial", "latency-ns", "always", "file.", NULL};

const struct blk_driver blk_fault_driver = {
	.name = "fault",
	.keys = fault_keys,
	.open = fault_open,
};
