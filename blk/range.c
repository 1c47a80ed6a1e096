/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/range.c - locks on byte ranges.
 *
 * One list in order of arrival holds those that are granted and those that wait.
 * A range is granted once nothing before it in the list conflicts with it: so
 * nobody is overtaken, and as everyone waits only for who came earlier, nobody
 * waits in a circle, provided that nobody takes a second range of a set while
 * holding one.
 */
#include "blk/private.h"

void blk_ranges_init(struct blk_ranges *s)
{
	thr_mutex_init(&s->guard);
	s->head = NULL;
	s->tail = NULL;
}

static bool overlap(const struct blk_range *a, const struct blk_range *b)
{
	return a->off < b->off ? b->off - a->off < a->len : a->off - b->off < b->len;
}

static bool conflict(const struct blk_range *a, const struct blk_range *b)
{
	return !(a->shared && b->shared) && overlap(a, b);
}

static bool is_first(const struct blk_ranges *s, const struct blk_range *r)
{
	for (const struct blk_range *i = s->head; i != r; i = i->next)
		if (conflict(i, r))
			return false;
	return true;
}

#ifdef CONFIG_THR_NONE
static void range_arm(struct blk_range *r)
{
	(void)r;
}

static void range_block(struct blk_range *r)
{
	(void)r;
	thr_panic("a range that nobody will unlock");
}

static void range_wake(struct blk_range *r)
{
	(void)r;
}
#else
static void range_arm(struct blk_range *r)
{
	thr_wait_init(&r->wait);
}

static void range_block(struct blk_range *r)
{
	thr_wait_block(&r->wait);
}

static void range_wake(struct blk_range *r)
{
	thr_wait_wake(&r->wait);
}
#endif

void blk_range_lock(
	struct blk_ranges *s, struct blk_range *r, uint64_t off, uint64_t len, bool shared)
{
	bool granted;

	THR_ASSERT(len);
	r->off = off;
	r->len = len;
	r->shared = shared;
	r->next = NULL;
	thr_mutex_lock(&s->guard);
	if (s->tail)
		s->tail->next = r;
	else
		s->head = r;
	s->tail = r;
	granted = is_first(s, r);
	r->granted = granted;
	if (!granted)
		range_arm(r);
	thr_mutex_unlock(&s->guard);
	if (!granted)
		range_block(r);
}

static struct blk_range *unlink_range(struct blk_ranges *s, struct blk_range *r)
{
	struct blk_range *prev = NULL;

	for (struct blk_range *i = s->head; i != r; i = i->next) {
		THR_ASSERT(i);
		prev = i;
	}
	if (prev)
		prev->next = r->next;
	else
		s->head = r->next;
	if (s->tail == r)
		s->tail = prev;
	return r->next;
}

void blk_range_unlock(struct blk_ranges *s, struct blk_range *r)
{
	struct blk_range *i;

	thr_mutex_lock(&s->guard);
	THR_ASSERT(r->granted);
	for (i = unlink_range(s, r); i; i = i->next) {
		if (i->granted || !conflict(i, r) || !is_first(s, i))
			continue;
		i->granted = true;
		range_wake(i);
	}
	thr_mutex_unlock(&s->guard);
}
