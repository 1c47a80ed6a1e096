/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/qcow2.h - what the files of this room share.
 *
 * The format is specified in docs/interop/qcow2.txt of the QEMU project; our own
 * description is doc/SPEC-qcow2. All numbers on disk are big-endian.
 *
 *   header.c    the header and its extensions, parsed and validated
 *   features.c  the names of features that we do not know
 *   open.c      the driver table, open and close
 *   info.c      what info prints
 *   map.c       guest offset -> extent, through L1 and L2 slices
 *   read.c      preadv and status
 *   data.c      the guest's data in standard clusters
 *   data_open.c   a file of its own for it
 *   crypt.c     encrypted images (nocrypt.c where the build leaves that out)
 *   compressed.c  clusters that are stored compressed
 *   refcount.c  reading reference counts
 *   snapshot.c, bitmap.c  their tables, read
 *   check*.c    consistency check and repair
 *   create*.c   new images (create.h)
 *   write.h and what it lists: everything that changes an image
 *
 * Locking: tables are looked at and changed under the cache's lock
 * (fmt/cache.h); no data I/O happens under it. A request brackets itself with
 * qcow2_enter() and qcow2_exit(), and host clusters that it has mapped are not
 * reused before it exits.
 */
#ifndef FMT_QCOW2_QCOW2_H
#define FMT_QCOW2_QCOW2_H

#include "fmt/cache.h"
#include "fmt/fmt.h"

#define QCOW2_MAGIC         0x514649fbu
#define QCOW2_HEADER_V2     72
#define QCOW2_HEADER_V3     104
#define QCOW2_SNAPSHOT_MIN  40 /* bytes of a snapshot table entry */
#define QCOW2_BITMAP_MIN    24 /* bytes of a bitmap directory entry */
#define QCOW2_L1E_OFF_MASK  0x00fffffffffffe00ull
#define QCOW2_L2E_OFF_MASK  0x00fffffffffffe00ull
#define QCOW2_L1E_RESERVED  0x7f000000000001ffull
#define QCOW2_L2E_RESERVED  0x3f000000000001feull /* of a standard cluster, v3 */
#define QCOW2_REFT_RESERVED 0x1ffull
#define QCOW2_BME_RESERVED  0xff000000000001feull
#define QCOW2_COPIED        (1ull << 63)
#define QCOW2_COMPRESSED    (1ull << 62)
#define QCOW2_L2E_ZERO      (1ull << 0) /* v3 only, and not with extended entries */

/* Extended L2 entries: the cluster's entry, then one bit for each subcluster that is
 * allocated, and 32 bits higher one for each that reads as zeroes. */
#define QCOW2_SUB_SHIFT  5 /* log2 of subclusters in a cluster */
#define QCOW2_SUBS       (1u << QCOW2_SUB_SHIFT)
#define QCOW2_EXTL2_BITS 14 /* of the smallest cluster that has them */

enum qcow2_incompatible {
	QCOW2_INC_DIRTY = 1u << 0,
	QCOW2_INC_CORRUPT = 1u << 1,
	QCOW2_INC_DATA_FILE = 1u << 2,
	QCOW2_INC_COMPRESSION = 1u << 3,
	QCOW2_INC_EXTL2 = 1u << 4,
};
#define QCOW2_INC_KNOWN 0x1full

enum qcow2_extension {
	QCOW2_EXT_END = 0,
	QCOW2_EXT_BACKING_FORMAT = 0xe2792acau,
	QCOW2_EXT_FEATURES = 0x6803f857u,
	QCOW2_EXT_BITMAPS = 0x23852875u,
	QCOW2_EXT_CRYPTO = 0x0537be77u,
	QCOW2_EXT_DATA_FILE = 0x44415441u,
};

enum qcow2_compatible { QCOW2_COMPAT_LAZY = 1u << 0 };
enum qcow2_autoclear { QCOW2_AUTO_BITMAPS = 1u << 0, QCOW2_AUTO_RAW = 1u << 1 };

/* Limits on what an image may ask of memory and time, whatever its header says. */
#define QCOW2_MIN_CLUSTER_BITS 9
#define QCOW2_MAX_CLUSTER_BITS 21
#define QCOW2_MAX_L1_BYTES     (32u << 20)
#define QCOW2_MAX_REFT_BYTES   (8u << 20)
#define QCOW2_MAX_SNAPSHOTS    65536u
#define QCOW2_MAX_BITMAPS      65535u
#define QCOW2_MAX_BITMAP_DIR   (64u << 20)
#define QCOW2_MAX_BMT_ENTRIES  0x8000000u  /* in one bitmap table */
#define QCOW2_MAX_SNAP_BYTES   (16u << 20) /* of the snapshot table, in memory for info */

/* The header as parsed; every field has passed the checks of header.c. */
struct qcow2_header {
	uint32_t version;
	uint32_t cluster_bits;
	uint64_t size;
	uint32_t crypt_method;
	uint32_t l1_entries;
	uint64_t l1_off;
	uint64_t reft_off;
	uint32_t reft_clusters;
	uint32_t snapshots;
	uint64_t snapshots_off;
	uint64_t incompatible, compatible, autoclear;
	uint32_t refcount_order;
	uint32_t header_length;
	uint8_t compression_type;
	uint64_t backing_off;
	uint32_t backing_len;
};

#define QCOW2_CRYPT_LUKS 2u /* crypt_method */

struct cz_codec;
struct qcow2_crypt;
struct qcow2_write;

struct qcow2 {
	struct blk blk;   /* first; blk.file is the image file */
	struct blk *data; /* what holds the guest's data: blk.file, or a file of its own */
	bool data_raw;    /* that file is to be what the guest sees, without our tables */
	struct fmt_cache *cache;
	bool own_cache;
	struct qcow2_header h;
	uint32_t cluster_size;
	uint32_t cluster_mask;
	unsigned l2_bits;    /* log2 of entries in an L2 table */
	unsigned entry_bits; /* log2 of an entry's bytes: 3, or 4 where they are extended */
	unsigned unit_bits;  /* log2 of what is mapped apart: a cluster or a subcluster */
	uint32_t unit_mask;

	char *backing;        /* NULL: none; h.backing_len bytes and a NUL */
	char *backing_format; /* NULL: not stored; FMT_FORMAT_MAX bytes */
	uint32_t bitmaps; /* from the bitmaps extension; 0 unless its autoclear bit is set */
	uint64_t bitmap_dir_off, bitmap_dir_size;
	uint64_t data_file_off; /* the name of an external data file, in the header */
	uint32_t data_file_len;
	struct fmt_snapshot *snaps; /* once info has been asked for them */
	size_t snaps_bytes;

	uint64_t crypt_off, crypt_len; /* of the LUKS header in the file; 0: none */
	struct qcow2_crypt *crypt;     /* see crypt.c; NULL: not encrypted */

	const struct cz_codec *codec; /* of compressed clusters, or NULL if left out */
	struct qcow2_codec *codecs;   /* contexts and buffers, see compressed.c */

	struct qcow2_write *w; /* what writing needs, see write.h; NULL when read-only */
};

static inline struct qcow2 *qcow2_of(const struct blk *b)
{
	return THR_CONTAINER(b, struct qcow2, blk);
}

/* Whether the guest's data lies in a file of its own: each cluster at its guest offset,
 * without a reference count. */
static inline bool qcow2_external(const struct qcow2 *q)
{
#ifdef CONFIG_HOSTED
	return q->data != q->blk.file;
#else
	(void)q;
	return false;
#endif
}

/* And whether that file is to read as the guest does. */
static inline bool qcow2_raw_data(const struct qcow2 *q)
{
	return qcow2_external(q) && q->data_raw;
}

/* What lies in standard clusters is not what the guest has, and zeroes there are none. */
static inline bool qcow2_encrypted(const struct qcow2 *q)
{
	return q->h.crypt_method;
}

static inline bool qcow2_extended(const struct qcow2 *q)
{
	return q->entry_bits == 4;
}

/* The subcluster that a guest offset is in, in its cluster. */
static inline unsigned qcow2_sub(const struct qcow2 *q, uint64_t off)
{
	return (unsigned)((uint32_t)off & q->cluster_mask) >> q->unit_bits;
}

/* The extended half of the L2 entry at @p, or 0. */
static inline uint64_t qcow2_entry_bitmap(const struct qcow2 *q, const uint8_t *p)
{
	return qcow2_extended(q) ? thr_be64(p + 8) : 0;
}

/* ---- header.c ---- */

/* Reads and validates; needs no memory. @h is complete on success. With FMT_REPAIR
 * a reference count table that cannot be is let through: @h says reft_clusters 0
 * then. With FMT_NO_IO features that we cannot read are let through. */
int qcow2_header_read(
	struct blk *file, unsigned flags, struct qcow2_header *h, struct blk_err *err);
/* Calls fn for each extension in order: 0 to go on. The data lies in @file at
 * @off. Bounds have been checked. */
int qcow2_extensions(struct blk *file, const struct qcow2_header *h,
	int (*fn)(void *ctx, uint32_t type, uint64_t off, uint32_t len, struct blk_err *err),
	void *ctx, struct blk_err *err);

#ifdef CONFIG_BLK_ERR_TEXT
/* Fails with the names of the incompatible features @bits, from the feature name
 * table where it has them. */
int qcow2_features_fail(
	struct blk *file, const struct qcow2_header *h, uint64_t bits, struct blk_err *err);
#else
static inline int qcow2_features_fail(
	struct blk *file, const struct qcow2_header *h, uint64_t bits, struct blk_err *err)
{
	(void)file;
	(void)h;
	return blk_fail(err, -THR_ENOTSUP, BLK_E_QCOW2_FEATURES, 72, bits);
}
#endif

/* ---- open.c ---- */

void qcow2_close(struct blk *b);

/* ---- open_opts.c ---- */

extern const char *const qcow2_open_opts[];
#ifdef CONFIG_HOSTED
/* How much memory the options give to the cache of tables; 0: they do not say. */
int qcow2_opt_cache(const struct blk_opts *o, uint64_t *bytes, struct blk_err *err);
/* Tells the image's own cache after how long it is to give memory back. */
int qcow2_opt_clean(struct qcow2 *q, const struct blk_opts *o, struct blk_err *err);
uint64_t qcow2_tidy(struct blk *b, uint64_t now);
#else
static inline int qcow2_opt_clean(
	struct qcow2 *q, const struct blk_opts *o, struct blk_err *err)
{
	(void)q;
	(void)o;
	(void)err;
	return 0;
}

static inline int qcow2_opt_cache(
	const struct blk_opts *o, uint64_t *bytes, struct blk_err *err)
{
	(void)o;
	(void)err;
	*bytes = 0;
	return 0;
}
#endif
/* The level of compressed writes, checked against what @codec (or NULL) has. */
int qcow2_opt_level(const struct blk_opts *o, const struct cz_codec *codec, int *level,
	struct blk_err *err);

/* ---- map.c ---- */

enum qcow2_kind {
	QCOW2_UNALLOCATED,
	QCOW2_ZERO,       /* reads as zeroes; no host cluster */
	QCOW2_ZERO_ALLOC, /* reads as zeroes; host cluster kept */
	QCOW2_NORMAL,
	QCOW2_COMPRESSED_CLUSTER,
};

struct qcow2_extent {
	enum qcow2_kind kind;
	uint64_t len;    /* guest bytes, from the offset asked for */
	uint64_t host;   /* mapped: host offset of the first byte */
	bool mapped;     /* has a host cluster: NORMAL, ZERO_ALLOC, unallocated subclusters.
			  * In an external file that may be the one at 0 */
	bool copied;     /* refcount is one: may be written in place */
	uint64_t entry;  /* the raw L2 entry; COMPRESSED: len ends with the cluster */
	uint64_t bitmap; /* of an extended entry, else 0 */
};
/* The extent at @off, at most @len: as many clusters (or subclusters) of one kind,
 * contiguous in the host, as the L2 slices of one table hold; runs of missing L2
 * tables are taken in one step. Takes the cache's lock. -EUCLEAN: an entry cannot be. */
int qcow2_map(struct qcow2 *q, uint64_t off, uint64_t len, struct qcow2_extent *e);
/* The same with the cache's lock held (drops). */
int qcow2_map_locked(struct qcow2 *q, uint64_t off, uint64_t len, struct qcow2_extent *e);
/* Decodes and validates one L2 entry; where entries are extended, what @bitmap says of
 * subcluster @sub. Pure. @e->len is not touched. */
int qcow2_l2_decode(const struct qcow2 *q, uint64_t entry, uint64_t bitmap, unsigned sub,
	struct qcow2_extent *e);
/* The file range of a compressed cluster's entry. Pure. */
void qcow2_compressed_range(
	const struct qcow2 *q, uint64_t entry, uint64_t *off, uint32_t *len);
/* Entry @i of the active L1 table, with the cache's lock held (drops). */
int qcow2_l1_get(struct qcow2 *q, uint32_t i, uint64_t *entry);

/* ---- data.c ---- */

/* The data of @r, whose off is the guest's, from the host clusters at @host on, in which
 * all of it is contiguous. */
int qcow2_data_read(struct qcow2 *q, const struct blk_req *r, uint64_t host);

/* ---- data_open.c ---- */

#ifdef CONFIG_HOSTED
/* Sets q->data where that is another file than the image. */
int qcow2_data_open(struct qcow2 *q, const struct fmt_open *o, struct blk_err *err);
#else
static inline int qcow2_data_open(
	struct qcow2 *q, const struct fmt_open *o, struct blk_err *err)
{
	(void)o;
	if (q->h.incompatible & QCOW2_INC_DATA_FILE)
		return qcow2_features_fail(q->blk.file, &q->h, QCOW2_INC_DATA_FILE, err);
	return 0;
}
#endif

/* ---- crypt.c, or nocrypt.c: called for encrypted images alone ---- */

/* Takes what the extension says of where the LUKS header lies. */
int qcow2_crypt_extension(struct qcow2 *q, uint64_t off, uint32_t len, struct blk_err *err);
/* Reads the LUKS header and, unless FMT_NO_IO, opens it with a secret of @o. */
int qcow2_crypt_open(struct qcow2 *q, const struct fmt_open *o, struct blk_err *err);
void qcow2_crypt_close(struct qcow2 *q);
/* As qcow2_data_read(), in whole sectors; and the same for writing. */
int qcow2_crypt_read(struct qcow2 *q, const struct blk_req *r, uint64_t host);
int qcow2_crypt_write(struct qcow2 *q, const struct blk_req *r, uint64_t host);
void qcow2_crypt_props(struct qcow2 *q, struct fmt_sink *s);
/* Key slots; for any image. */
#ifdef CONFIG_FMT_LUKS
int qcow2_crypt_amend(struct qcow2 *q, const struct fmt_amend *m, struct blk_err *err);
#else
static inline int qcow2_crypt_amend(
	struct qcow2 *q, const struct fmt_amend *m, struct blk_err *err)
{
	(void)q;
	(void)m;
	return blk_fail_str(err, -THR_ENOTSUP, BLK_E_NOT_BUILT, "CONFIG_FMT_LUKS");
}
#endif
/* amend.c: struct fmt_driver. */
int qcow2_amend(struct blk *b, const struct fmt_amend *m, struct blk_err *err);
extern const struct fmt_opt qcow2_amend_opts[];

/* ---- read.c, compressed.c ---- */

int qcow2_preadv(struct blk *b, struct blk_req *r);
int qcow2_status(struct blk *b, uint64_t off, uint64_t len, struct blk_extent *e);
/* @len bytes of the decompressed cluster of @entry, from @skip on, into the data
 * of @r at @at. Keeps the last decompressed clusters. */
int qcow2_read_compressed(struct qcow2 *q, uint64_t entry, uint32_t skip,
	const struct blk_req *r, uint64_t at, uint32_t len);
int qcow2_codecs_open(struct qcow2 *q);
void qcow2_codecs_close(struct qcow2 *q);
/* The @n bytes from @host on are about to hold something else, and no request has
 * mapped a cluster there: no cluster that was decompressed from them is kept. */
void qcow2_codecs_forget(struct qcow2 *q, uint64_t host, uint64_t n);

/* ---- snapshot.c, bitmap.c: their tables are read entry by entry ---- */

struct qcow2_snapshot {
	uint64_t off;   /* of the entry, in the file */
	uint32_t bytes; /* of the entry, without padding */
	uint32_t extra; /* bytes of extra data: the id follows them, then the name */
	uint32_t l1_entries;
	uint64_t l1_off;
	uint16_t id_len, name_len;
	bool incomplete;       /* v3: the extra data that there must be is not there */
	struct fmt_snapshot s; /* without its strings */
};
#ifdef CONFIG_FMT_QCOW2_TABLES
/* Calls fn, if it is not NULL, for each snapshot: 0 to go on. Bounds have been
 * checked, the L1 table has not. */
int qcow2_snapshots_walk(struct qcow2 *q,
	int (*fn)(void *ctx, const struct qcow2_snapshot *s, struct blk_err *err), void *ctx,
	struct blk_err *err);
#else
static inline int qcow2_snapshots_walk(struct qcow2 *q,
	int (*fn)(void *ctx, const struct qcow2_snapshot *s, struct blk_err *err), void *ctx,
	struct blk_err *err)
{
	(void)q;
	(void)fn;
	(void)ctx;
	(void)err;
	return 0;
}
#endif
/* For info. */
int qcow2_snapshot_nth(struct blk *b, unsigned i, struct fmt_snapshot *s);
int qcow2_snapshot_select(struct blk *b, const char *id, const char *name, struct blk_err *err);

enum qcow2_bitmap_flags {
	QCOW2_BM_IN_USE = 1u << 0,
	QCOW2_BM_AUTO = 1u << 1,
	QCOW2_BM_EXTRA = 1u << 2, /* unknown extra data may be ignored */
	QCOW2_BM_KNOWN = 7u,
};
#define QCOW2_BM_DIRTY 1 /* the type: a dirty tracking bitmap */

struct qcow2_bitmap {
	uint64_t off; /* of the directory entry, in the file */
	uint64_t table_off;
	uint32_t table_entries;
	uint32_t flags;
	uint8_t type, granularity_bits;
	uint16_t name_len;
	uint64_t name_off; /* in the file */
};
int qcow2_bitmaps_walk(struct qcow2 *q,
	int (*fn)(void *ctx, const struct qcow2_bitmap *m, struct blk_err *err), void *ctx,
	struct blk_err *err);

#if defined(CONFIG_FMT_OP_SERVE) && defined(CONFIG_FMT_QCOW2_TABLES)
/* bitmap_load.c */
int qcow2_bitmap_load(
	struct blk *b, const char *name, struct fmt_bitmap *m, struct blk_err *err);
#else
#define qcow2_bitmap_load NULL
#endif

/* ---- create*.c, check*.c ---- */

int qcow2_create(struct blk *file, const struct fmt_create *c, struct blk_err *err);
int qcow2_measure(const struct fmt_create *c, struct fmt_layout *l, struct blk_err *err);
int qcow2_bitmaps_size(struct blk *b, uint32_t cluster, uint64_t *bytes, struct blk_err *err);
extern const struct fmt_opt qcow2_create_opts[];
int qcow2_check(struct blk *b, struct fmt_check *c, struct blk_err *err);
/* pack_write.c: struct fmt_driver, compress. */
int qcow2_compress(struct blk *b, uint32_t *unit, struct blk_err *err);

/* ---- info.c ---- */

/* zero.c: struct fmt_driver, empty. */
int qcow2_empty(struct blk *b);
int qcow2_info(struct blk *b, struct fmt_info *info);
void qcow2_props(struct blk *b, struct fmt_sink *s);

/* ---- refcount.c ---- */

/* The reference count of host cluster @cluster, with the cache's lock held
 * (drops). A missing block counts as 0. */
int qcow2_refcount_get(struct qcow2 *q, uint64_t cluster, uint64_t *count);
/* Count @i in a table of 1 << @order bits each; sub-byte counts are packed from
 * the least significant bit. Pure. */
uint64_t qcow2_refcount_load(const uint8_t *table, unsigned order, uint32_t i);
void qcow2_refcount_store(uint8_t *table, unsigned order, uint32_t i, uint64_t count);

/* ---- what writing adds (write.h; nowrite.c where the build leaves it out) ---- */

extern const struct fmt_driver fmt_qcow2_driver;
extern const struct blk_ops qcow2_ops;    /* read-only */
extern const struct blk_ops qcow2_rw_ops; /* writable */

/* Makes an open image writable: repairs the counts of a dirty one, clears the
 * autoclear bits that we do not maintain, durably. Sets q->blk.ops to qcow2_rw_ops. */
int qcow2_write_open(struct qcow2 *q, const struct fmt_open *o, struct blk_err *err);
void qcow2_write_close(struct qcow2 *q);
/* Whether @host lies in the file, or has been allocated past its end. The cache's
 * lock held. */
bool qcow2_exists(const struct qcow2 *q, uint64_t host);
/* A request that maps host clusters is in flight. Read-only images need none. */
unsigned qcow2_enter(struct qcow2 *q);
void qcow2_exit(struct qcow2 *q, unsigned cookie);

#endif
