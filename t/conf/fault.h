/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/conf/fault.h - fault loops: what the cases (fault_cases.c) and the loop that
 * runs them (fault.c) share.
 */
#ifndef T_CONF_FAULT_H
#define T_CONF_FAULT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "t/fixtures/poor.h"
#include "t/fixtures/qcow2_rig.h"

struct fault_case;

/* One attempt: an image in memory, behind a device that fails. */
struct attempt {
	const struct fault_case *fc;
	const struct geo *geo; /* cluster_bits 0: a cow image, or raw if there is no version */
	struct blk *disk, *base;        /* base: NULL where the image has none */
	struct blk *fault, *base_fault; /* before them; they outlive the image */
	struct poor mem;
	struct blk *b;      /* the image */
	uint8_t *old, *new; /* what it held, and should hold; room bytes each */
	uint8_t *buf;
	uint64_t old_size, new_size, room;

	int err, close_err;
	bool must_tell;   /* a change or a flush has failed while the case ran */
	struct blk_err e; /* of functions that fill one in */
};

enum fault_case_flags {
	FAULT_OPENS = 1u << 0,     /* the case opens the image itself */
	FAULT_EMPTY = 1u << 1,     /* there is nothing yet on the disk */
	FAULT_DAMAGED = 1u << 2,   /* reference counts are wrong */
	FAULT_DIRTY = 1u << 3,     /* as after a power cut, with lazy counts */
	FAULT_QCOW2 = 1u << 4,     /* not for raw images; with FAULT_DAMAGED not for cow */
	FAULT_BARE = 1u << 5,      /* a new image, nothing written */
	FAULT_READ_ONLY = 1u << 6, /* opened for reading */
	FAULT_REPAIR = 1u << 7,    /* opened for repair */
	FAULT_NO_COUNTS = 1u << 8, /* all reference counts are lost */
	FAULT_PACKED = 1u << 9,    /* not for formats that store nothing compressed */
};

struct fault_case {
	const char *name;
	unsigned flags;
	void (*before)(struct attempt *a); /* without faults, or NULL */
	int (*run)(struct attempt *a);
};
extern const struct fault_case fault_cases[];
extern const unsigned fault_ncases;

static inline const char *fault_format(const struct geo *g)
{
	return g->cluster_bits ? "qcow2" : g->version ? "cow" : "raw";
}

/* The image, as the case wants it opened, over the devices that fail. */
int fault_open(struct attempt *a, unsigned blk_flags, unsigned flags);
/* Byte @off of what the image is written with at first, before the fault. */
uint8_t fault_old_byte(uint64_t off);

#endif
