/* SPDX-License-Identifier: BSD-2-Clause
 *
 * thr/pq.c - the pairing heap. See M. Fredman et al., "The pairing heap: a new
 * form of self-adjusting heap", 1986. Pops merge pairwise in two iterative
 * passes, so that no list length can overflow a small stack.
 */
#include "thr/pq.h"

static bool before(const struct thr_pq_node *a, const struct thr_pq_node *b)
{
	return a->key < b->key || (a->key == b->key && a->arrival < b->arrival);
}

static struct thr_pq_node *merge(struct thr_pq_node *a, struct thr_pq_node *b)
{
	if (!a)
		return b;
	if (!b)
		return a;
	if (before(b, a)) {
		struct thr_pq_node *t = a;

		a = b;
		b = t;
	}
	b->sibling = a->child;
	a->child = b;
	return a;
}

void thr_pq_push(struct thr_pq *q, struct thr_pq_node *n, uint64_t key)
{
	n->key = key;
	n->arrival = q->arrivals++;
	n->child = NULL;
	n->sibling = NULL;
	q->root = merge(q->root, n);
}

struct thr_pq_node *thr_pq_pop(struct thr_pq *q)
{
	struct thr_pq_node *top = q->root;
	struct thr_pq_node *list = top->child;
	struct thr_pq_node *pairs = NULL;
	struct thr_pq_node *root = NULL;

	while (list) {
		struct thr_pq_node *a = list;
		struct thr_pq_node *b = a->sibling;

		list = b ? b->sibling : NULL;
		a->sibling = NULL;
		if (b)
			b->sibling = NULL;
		a = merge(a, b);
		a->sibling = pairs;
		pairs = a;
	}
	while (pairs) {
		struct thr_pq_node *next = pairs->sibling;

		pairs->sibling = NULL;
		root = merge(root, pairs);
		pairs = next;
	}
	q->root = root;
	return top;
}
