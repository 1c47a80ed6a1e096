/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/conf/ram.h - images of the conformance suite in memory.
 */
#ifndef T_CONF_RAM_H
#define T_CONF_RAM_H

#include "t/conf/conf.h"
#include "t/fixtures/qcow2_rig.h"

struct fmt_cache;

struct conf_ram {
	struct blk *disk, *base, *data; /* base, data: NULL where the row has none */
	unsigned lend;                  /* enum lend_flags */
	uint32_t align;                 /* of the devices; 0: none */
	struct fmt_cache *cache;        /* NULL: each image has its own, of the usual size */
};
extern const struct conf_place conf_ram;

/* The structure of the image is sound, by a check that is not the library's if there is one. */
void conf_ram_sound(struct conf *c);

/* What the devices hold at this moment is an image of its own that reads as the model;
 * the image in use stays open. */
void conf_ram_snapshot(struct conf *c);

/* Reopens the image over devices that behave so, with a cache of so many slices of
 * 512 bytes; 0: the usual one. */
void conf_ram_rewire(struct conf *c, unsigned lend_flags, uint32_t align, uint32_t slices);

#endif
