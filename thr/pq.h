/* SPDX-License-Identifier: BSD-2-Clause
 *
 * thr/pq.h - a priority queue of nodes that live in their owners (a pairing
 * heap): lowest key first, equal keys in order of arrival. Private. Push is
 * O(1), pop O(log n) amortised, nothing is allocated.
 */
#ifndef THR_PQ_H
#define THR_PQ_H

#include "thr/base.h"

struct thr_pq_node {
	uint64_t key;
	uint64_t arrival;
	struct thr_pq_node *child;
	struct thr_pq_node *sibling;
};

struct thr_pq {
	struct thr_pq_node *root; /* the lowest, or NULL */
	uint64_t arrivals;
};

void thr_pq_push(struct thr_pq *q, struct thr_pq_node *n, uint64_t key);
/* The queue is not empty. */
struct thr_pq_node *thr_pq_pop(struct thr_pq *q);

#endif
