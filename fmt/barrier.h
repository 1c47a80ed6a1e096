/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/barrier.h - the orders that crash safety stands on, by name.
 *
 * Where one of them is kept, the code asks FMT_BARRIER(NAME), which is 1. A build
 * made to fail (make DROP=NAME) has 0 there, and the crash suite must then go red:
 * that is how it is shown that the suite can see what it is there for.
 */
#ifndef FMT_BARRIER_H
#define FMT_BARRIER_H

#ifndef FMT_DROP
#define FMT_DROP FMT_KEEP_ALL
#endif

enum fmt_barrier {
	FMT_KEEP_ALL,
	DATA_BEFORE_TABLE,  /* data is durable before a table points at it */
	REFCOUNT_BEFORE_L2, /* and so are the counts of its clusters */
	DROP_BEFORE_REUSE,  /* what drops a cluster is durable before it is used again */
	PUNCH_AFTER_DROP,   /* and before its space is given back */
	TABLE_BEFORE_ENTRY, /* a new table is durable before an entry points at it */
	TABLE_MOVE,         /* a table's new place is durable before it is switched to */
	COW_BITMAP,         /* cow: data is durable before its bit says so */
	KEY_SLOT,           /* LUKS: key material is durable before its slot is on, or off */
};

#define FMT_BARRIER(name) (FMT_DROP != (name))

#endif
