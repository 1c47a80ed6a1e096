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
	struct blk *disk, *base, *data; /* base, data: NULL where the image has none */
	struct blk *fault, *base_fault, *data_fault; /* before them; they outlive the image */
	struct poor mem;
	struct blk *b;      /* the image */
	uint8_t *old, *new; /* what it held, and should hold; room bytes each */
	uint8_t *buf;
	uint64_t old_size, new_size, room;

	int err, close_err;
	const char *pass; /* opens it afterwards; NULL: "old" */
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
	FAULT_COMMIT = 1u << 10,   /* into the backing file, which is open for writing */
	FAULT_LUKS = 1u << 11,     /* only for what is encrypted */
	FAULT_PLAIN = 1u << 13,    /* not for what is encrypted, which opens slowly */
	FAULT_V3 = 1u << 12,       /* only for qcow2 of version 3 */
};

struct fault_case {
	const char *name;
	unsigned flags;
	void (*before)(struct attempt *a); /* without faults, or NULL */
	int (*run)(struct attempt *a);
	/* With everything closed and nothing failing any more, or NULL. */
	void (*after)(struct attempt *a);
};
extern const struct fault_case fault_cases[];
extern const unsigned fault_ncases;

/* Flags of a geometry beside enum geo_flags. */
enum fault_geo_flags {
	GEO_DATA = 1u << 8,      /* data in a file of its own */
	GEO_DATA_RAW = 1u << 9,  /* which is the disk, byte for byte */
	GEO_LUKS = 1u << 10,     /* encrypted; a volume if there is no cluster_bits */
	GEO_ZSTD = 1u << 11,     /* what is compressed is so by zstd */
	GEO_ON_QCOW2 = 1u << 12, /* the backing file is one */
};
void fault_geo_name(const struct geo *g, char *buf, size_t size);

static inline bool fault_is_volume(const struct geo *g)
{
	return !g->cluster_bits && g->flags & GEO_LUKS;
}

static inline const char *fault_format(const struct geo *g)
{
	if (g->cluster_bits)
		return "qcow2";
	return g->version ? "cow" : fault_is_volume(g) ? "luks" : "raw";
}

static inline bool fault_is_raw(const struct geo *g)
{
	return !g->cluster_bits && !g->version && !fault_is_volume(g);
}

/* What an image lies on. */
struct over {
	struct blk *file, *base, *data;
	const struct thr_alloc *mem;
	struct blk_err *err;
};
extern const struct fmt_secrets fault_secrets; /* "old", which images are made with, "new" */

/* An image of a->geo onto over->file and data. */
int fault_make(struct attempt *a, const struct over *over, bool preallocate);
/* The template of all attempts: image and old content. */
void fault_template(struct attempt *a);
/* a->b, with the secret @pass where it is encrypted. */
int fault_open_over(struct attempt *a, const struct over *over, const char *pass,
	unsigned blk_flags, unsigned flags);
/* The image, as the case wants it opened, over the devices that fail. */
int fault_open(struct attempt *a, unsigned blk_flags, unsigned flags);
/* Over the disks as they are, with nothing in the way: has to succeed. */
void fault_reopen(struct attempt *a, const char *pass, unsigned blk_flags, unsigned flags);
/* Byte @off of what the image is written with at first, before the fault. */
uint8_t fault_old_byte(uint64_t off);

/* fault_ops.c: what is done with whole images. */
int fault_convert_to(struct attempt *a);
int fault_convert_packed(struct attempt *a);
int fault_convert_from(struct attempt *a);
int fault_checksum(struct attempt *a);
int fault_commit(struct attempt *a);
int fault_commit_keep(struct attempt *a);
int fault_commit_shrink(struct attempt *a);
void fault_committed(struct attempt *a);
int fault_amend_lazy(struct attempt *a);
int fault_amend_add(struct attempt *a);
void fault_added(struct attempt *a);
void fault_add_key(struct attempt *a);
int fault_amend_erase(struct attempt *a);
void fault_erased(struct attempt *a);

#endif
