/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/cow/cow.h - the copy-on-write format of User-mode Linux: what the files of this
 * room share. doc/SPEC-cow says what is on the disk, and how it is kept in order.
 *
 *   header.c    the header: its places by version, validated, made
 *   bitmap.c    which sectors are here: looked up in runs
 *   open.c      the driver table, open and close, reading, info
 *   check.c     the bitmap against the lengths of the file and the disk
 *   write.c     writing, zeroing, discarding, flushing
 *   resize.c    another length of the disk, and emptying it after a commit
 *   create.c    new images
 *   nowrite.c   stands in for the last three where a build writes nothing
 *
 * Invariants. A sector has one place in the file, which is the image's for good, so
 * there is nothing to allocate. A set bit is never cleared while the image is in use: what
 * the backing file had there does not come back. The bitmap and the fields of the header
 * that change are only written through the cache (fmt/cache.h), because they may share a
 * sector; data never is, and a slice's bytes of data are neither used nor written.
 */
#ifndef FMT_COW_COW_H
#define FMT_COW_COW_H

#include "fmt/cache.h"
#include "fmt/drivers.h"

#define COW_MAGIC    0x4f4f4f4du /* "OOOM" */
#define COW_SECTOR   512u
#define COW_HEAD     4128u /* bytes of the longest header */
#define COW_V3_ALIGN 4096u /* of what we create, and uml_mkcow does */

/* Where the fields of a header are. */
struct cow_places {
	const char *maker;
	uint32_t version;
	bool whole; /* the size is of whole sectors, whatever the backing file's is */
	uint32_t name, name_size;
	uint32_t mtime; /* 4 bytes */
	uint32_t size;  /* 8 bytes, within one sector of the disk */
	uint32_t sector;
	uint32_t align; /* 0: there is no such field, and it is COW_SECTOR */
	uint32_t format;
	uint32_t len;
};
extern const struct cow_places cow_v2, cow_v3;

/* Where things are in a file, from the length of the disk. */
struct cow_layout {
	uint64_t bitmap;     /* offset */
	uint64_t bitmap_len; /* bytes */
	uint64_t data;       /* offset of the first sector */
};

struct cow {
	struct blk blk; /* first; blk.file is the image file */
	const struct cow_places *at;
	struct cow_layout lay;
	uint64_t stored; /* the length in the header; the disk has whole sectors */
	uint32_t align;
	uint32_t mtime; /* of the backing file, the low 32 bits; 0: not known */
	char *backing;  /* NULL: none; FMT_NAME_MAX bytes */
	struct fmt_cache *cache;
	bool own_cache;
	bool attached; /* to the cache, for writing */
};

static inline struct cow *cow_of(const struct blk *b)
{
	return THR_CONTAINER(b, struct cow, blk);
}

/* ---- header.c ---- */

/* 0, or -EFBIG where such a file cannot be. */
int cow_layout(
	const struct cow_places *at, uint32_t align, uint64_t size, struct cow_layout *l);
/* The length to store for a disk of @size bytes, whole sectors, over a file of @backing:
 * UML's layouts have the length of that file, to the byte. */
uint64_t cow_stored_size(const struct cow_places *at, uint64_t size, uint64_t backing);
/* Reads and validates the header; fills in @c up to cache. */
int cow_header_read(struct cow *c, struct blk *file, struct blk_err *err);
/* Makes the header in COW_HEAD bytes of zeroes. @name fits. */
void cow_header_make(const struct cow_places *at, uint8_t *head, const char *name,
	uint64_t size, uint32_t mtime);
int cow_probe(const uint8_t *head, size_t len, uint64_t size);

/* ---- bitmap.c ---- */

/* The first bit of [first, end) that is not @set, or @end. */
uint64_t cow_bits_until(const uint8_t *map, uint64_t first, uint64_t end, bool set);
/* Whether the sector at @off is here, and for how many bytes that holds: at least a
 * sector, at most @len; as far as a few slices of the bitmap say. */
int cow_run(struct cow *c, uint64_t off, uint64_t len, bool *set, uint64_t *n);

/* ---- write.c, resize.c, create.c ---- */

/* Makes an open image writable. */
int cow_write_open(struct cow *c, struct blk_err *err);
/* Writes what is pending, as far as that goes. */
void cow_write_close(struct cow *c);

/* Holding nothing, before something is changed: bounds what is dirty. */
int cow_make_room(struct cow *c);
/* Sets the bits of whole sectors, whose data has been written. */
int cow_mark(struct cow *c, uint64_t off, uint64_t len);
/* Clears bits, those past the end of the disk included. */
int cow_clear(struct cow *c, uint64_t off, uint64_t len);
/* Changes @len bytes of the header at @at, at most 8. */
int cow_header_put(struct cow *c, uint32_t at, const uint8_t *p, uint32_t len);
/* Makes whole sectors read as zeroes, unless they do. */
int cow_zero_range(struct cow *c, uint64_t off, uint64_t len, unsigned flags);

/* Makes the file as long as a disk of @size bytes needs, if it is shorter. */
int cow_lengthen(struct cow *c, uint64_t size, enum blk_prealloc p, struct blk_err *err);
int cow_truncate(struct blk *b, uint64_t size, enum blk_prealloc p, struct blk_err *err);
int cow_empty(struct blk *b);
int cow_create(struct blk *file, const struct fmt_create *c, struct blk_err *err);
int cow_measure(const struct fmt_create *c, struct fmt_layout *l, struct blk_err *err);
extern const struct fmt_opt cow_create_opts[];
extern const struct blk_ops cow_ops;    /* read-only */
extern const struct blk_ops cow_rw_ops; /* writable */

/* ---- open.c, check.c ---- */

int cow_preadv(struct blk *b, struct blk_req *r);
int cow_status(struct blk *b, uint64_t off, uint64_t len, struct blk_extent *e);
void cow_close(struct blk *b);
int cow_check(struct blk *b, struct fmt_check *k, struct blk_err *err);

#endif
