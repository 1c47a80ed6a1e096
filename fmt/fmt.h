/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/fmt.h - image formats, backing chains, and the operations on whole images.
 *
 * An opened image is a struct blk: the virtual disk, seen through its format and
 * its backing chain. What a format knows besides (its options, snapshots, a
 * check) is asked here.
 */
#ifndef FMT_FMT_H
#define FMT_FMT_H

#include "blk/blk.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FMT_NAME_MAX   1024 /* a backing file's name, with its NUL */
#define FMT_FORMAT_MAX 32
#define FMT_CHAIN_MAX  256 /* images in a chain */

/* ---- opening ------------------------------------------------------------------ */

enum fmt_open_flags {
	FMT_NO_BACKING = 1u << 0,  /* this one image; what it lacks reads as zeroes */
	FMT_UNTRUSTED = 1u << 1,   /* an image that names another file is refused */
	FMT_NEED_FORMAT = 1u << 2, /* never guess: no format given is an error */
	FMT_NO_IO = 1u << 3,       /* header only, for info: tables need not be sound */
	FMT_REPAIR = 1u << 4,      /* for check -r: opens a dirty or damaged image as it is */
};

/* Keys and passwords, which options name ("key-secret", "encrypt.key-secret"). Owned by
 * who opens, needed while opening only. */
struct fmt_secret {
	const char *id;
	const uint8_t *data;
	size_t len;
};
struct fmt_secrets {
	const struct fmt_secret *v;
	unsigned n;
};
/* NULL where there is none of that id. @s may be NULL. */
const struct fmt_secret *fmt_secret(const struct fmt_secrets *s, const char *id);

/* Hands what a JSON object says to @put, flat as names in json:{} are ("a.b"), and wipes its
 * own copies. Ends where @put does not return 0, and returns that. -EINVAL for what is no
 * object, nested too deeply or too long; -ENOTSUP in a build without CONFIG_FMT_JSON. */
int fmt_json_each(const char *text, int (*put)(void *ctx, const char *key, const char *val),
	void *ctx, const struct thr_alloc *mem, struct blk_err *err);

struct fmt_open {
	const char *name;   /* a file name, URI or json:{}; NULL where opts have it all */
	const char *format; /* NULL: probe. Raw only where nothing else matches */
	unsigned blk_flags; /* enum blk_open_flags; for backing files without BLK_RDWR */
	unsigned flags;     /* enum fmt_open_flags */
	/* Of the format; with the prefix "file." of its device, "backing." of the image
	 * below, "data-file." of a file that has the data. "driver" counts where format is
	 * NULL. See fmt/names.h. */
	const struct blk_opts *opts;
	const struct fmt_secrets *secrets; /* may be NULL; an id that is not in it is refused */
	unsigned writable; /* the image this deep in the chain is opened for writing too, if it
			    * is not 0: for commit */
	/* Told, in the shape of an error, of what is odd about a file of the chain and no
	 * reason to fail. May be NULL. Told also when a request that has to fail finds out
	 * that a table is damaged: from any fiber, once for an image, until that is closed. */
	void (*warn)(void *ctx, const struct blk_err *odd);
	void *warn_ctx;
	struct fmt_cache *cache; /* shared with other images, or NULL for one of its own */
	const struct thr_alloc *mem;
	/* What an image that has its data in another file uses for it: @data, which is open
	 * and is the image's on success, as the device below is; else what open_data() gives
	 * for the name that the image has ("" where it has none). Both NULL: such an image
	 * is refused. fmt_open() sees to it itself. */
	struct blk *data;
	int (*open_data)(const struct fmt_open *o, const char *name, struct blk **out,
		struct blk_err *err);
};

/* Opens an image and, unless FMT_NO_BACKING, its backing chain, read-only. The
 * chain is walked in a loop and may not contain the same file twice. May wait,
 * and wants more stack than a fiber has: it offloads itself when in one. */
int fmt_open(struct blk **out, const struct fmt_open *o, struct blk_err *err);

/* The same over a device that is open already (firmware, tests, stacking). On
 * success the image owns @file; on failure the caller still does. Opens no
 * backing file: set it with fmt_set_backing(). */
int fmt_open_on(
	struct blk **out, struct blk *file, const struct fmt_open *o, struct blk_err *err);
/* Gives an image its backing device, of any format and length; owned from then
 * on, and closed with the image. No request is in flight. */
void fmt_set_backing(struct blk *image, struct blk *backing);

/* Tells the format from the content: the driver's name, or NULL with *err filled. */
const char *fmt_probe(struct blk *file, struct blk_err *err);

/* Flushes what is pending and closes, chain and all. The error of the last
 * flush: the image is closed all the same. */
int fmt_close(struct blk *image);

/* Gives back the memory of tables that have not been used for as long as the options say
 * (cache-clean-interval of qcow2), in the whole chain; for who keeps images open for long,
 * to be called now and then. Requests may be in flight. May wait. The bytes freed. Not in
 * firmware builds. */
uint64_t fmt_tidy(struct blk *image);

/* ---- what a format is ------------------------------------------------------------ */

struct fmt_amend;
struct fmt_create;
struct fmt_info;
struct fmt_check;
struct fmt_layout;
struct fmt_sink;
struct fmt_bitmap;

enum fmt_opt_type { FMT_OPT_BOOL, FMT_OPT_SIZE, FMT_OPT_NUMBER, FMT_OPT_STRING };

struct fmt_opt {
	const char *name;
	enum fmt_opt_type type;
	const char *help; /* one line, as `create -o help` prints it */
	const char *def;  /* the value that create reports where none is given, or NULL */
};

/* A driver: one static const table at the bottom of its file. */
struct fmt_driver {
	const char *name;
	const struct blk_ops *ops;
	/* 0 (no) to 100 (certain), from the first bytes (at least 2048, or the
	 * whole of a shorter file, the rest zero) and the file's length. */
	int (*probe)(const uint8_t *head, size_t len, uint64_t size);
	/* As fmt_open_on(). */
	int (*open)(struct blk **out, struct blk *file, const struct fmt_open *o,
		struct blk_err *err);
	/* Writes a new image into the empty, growing device @file. NULL: read only. */
	int (*create)(struct blk *file, const struct fmt_create *c, struct blk_err *err);
	/* How large the file of such an image will be. NULL: cannot be told. */
	int (*measure)(const struct fmt_create *c, struct fmt_layout *l, struct blk_err *err);
	/* What the image's bitmaps take in one with clusters of so many bytes; -ENOTSUP
	 * where such an image has none. NULL: the format has none. */
	int (*bitmaps)(
		struct blk *image, uint32_t cluster, uint64_t *bytes, struct blk_err *err);
	/* As fmt_bitmap_open(); @m has mem and size already. NULL: the format has none. */
	int (*bitmap)(
		struct blk *image, const char *name, struct fmt_bitmap *m, struct blk_err *err);
	/* The name and format ("" if unknown) of the backing file that the image
	 * names: -ENOENT where it names none. Pointers live as long as the image. */
	int (*backing)(struct blk *image, const char **name, const char **format);
	/* The backing file is raw unless options say otherwise, as the format has no place
	 * to say so. One that looks like something else is refused without them: its guest
	 * may have written what it looks like. */
	bool raw_backing;
	/* The backing file is there now. Something else than 0 where it is not what the
	 * image was made for, and @odd, which is not NULL, is filled in. */
	int (*backed)(struct blk *image, struct blk_err *odd);
	int (*info)(struct blk *image, struct fmt_info *info);
	/* Gives up all that the image, open for writing, has allocated, so that its backing
	 * file shows. NULL: it cannot. A cut leaves each part as it was or given up. */
	int (*empty)(struct blk *image);
	/* Whether the image takes writes with BLK_COMPRESS, which have to be multiples of
	 * *unit in offset and length, but for the end of the disk. Fails with the reason why
	 * not. NULL: the format has no such thing. */
	int (*compress)(struct blk *image, uint32_t *unit, struct blk_err *err);
	/* As fmt_snapshot_select(); NULL matches any. */
	int (*select)(struct blk *image, const char *id, const char *name, struct blk_err *err);
	/* format-specific properties, in order, into @s. */
	void (*props)(struct blk *image, struct fmt_sink *s);
	int (*check)(struct blk *image, struct fmt_check *c, struct blk_err *err);
	/* As fmt_amend(), whose options are those of amend_opts. NULL: none. */
	int (*amend)(struct blk *image, const struct fmt_amend *m, struct blk_err *err);
	const struct fmt_opt *amend_opts;
	/* In the order in which create reports them; ends with name == NULL. "size",
	 * "backing_file" and "backing_fmt" are fields of struct fmt_create and listed
	 * for help and to say that they are possible. */
	const struct fmt_opt *create_opts;
	const char *const *open_opts; /* NULL-terminated keys */
	/* As fmt_tidy(), for the image alone, at the time @now. NULL: nothing to do. */
	uint64_t (*tidy)(struct blk *image, uint64_t now);
};

/* NULL where unknown. The n-th driver of this build, NULL after the last. */
const struct fmt_driver *fmt_driver_find(const char *name);
const struct fmt_driver *fmt_driver_nth(unsigned n);
/* The driver of an image, or NULL if @b is no image. */
const struct fmt_driver *fmt_driver_of(const struct blk *b);

/* ---- create ------------------------------------------------------------------------ */

struct fmt_create {
	const char *name;   /* the file to make */
	const char *format; /* NULL: raw */
	uint64_t size;
	bool has_size;       /* else the backing file's length */
	const char *backing; /* as it is to be stored; NULL: none */
	const char *backing_format;
	int64_t backing_mtime;             /* fmt_create_check() fills these in; 0: not known */
	uint64_t backing_bytes;            /* of a raw file, where its disk has whole sectors */
	bool unsafe_backing;               /* -u: do not open the backing file */
	unsigned flags;                    /* enum fmt_open_flags, for opening it */
	const struct blk_opts *opts;       /* of the driver */
	const struct fmt_secrets *secrets; /* may be NULL */
	unsigned blk_flags;                /* cache mode */
	struct blk *data; /* empty, growing, for data_file; NULL: fmt_create() makes it */
	const char *seed; /* what would be random comes from it, so that the same options give
			   * the same bytes; NULL: it is random */
	const struct thr_alloc *mem;
};

/* Makes an image. On failure a file that was not there before is removed. An
 * unknown option is refused by its name. May wait. */
int fmt_create(const struct fmt_create *c, struct blk_err *err);
/* What fmt_create() does first: finds out what is wrong with @c, and fills in its
 * format and the size that a backing file gives. Touches nothing. */
int fmt_create_check(struct fmt_create *c, struct blk_err *err);

/* Options of an image that is there. */
struct fmt_amend {
	const struct blk_opts *opts; /* of the driver */
	const struct fmt_secrets *secrets;
	bool force;       /* also where data is lost for good */
	const char *seed; /* as in struct fmt_create */
	const struct thr_alloc *mem;
};
/* Changes options of an image that is open for writing, durably. -ENOTSUP where the
 * format has none that can be changed. Nothing has changed without success, or all that
 * was done is sound by itself. May wait long. */
int fmt_amend(struct blk *image, const struct fmt_amend *m, struct blk_err *err);

/* What a driver knows about an image that is not there yet. */
struct fmt_layout {
	uint64_t metadata, data; /* bytes, when all of the disk is allocated */
	uint32_t cluster;  /* what data is allocated in; 0: the file has its full length at once
			    */
	bool preallocated; /* by the options */
	bool bitmaps;      /* may have them */
};

struct fmt_measure {
	/* results */
	uint64_t required;        /* bytes for the data of the source, or for none */
	uint64_t fully_allocated; /* when every byte of the disk is written */
	bool has_bitmaps;
	uint64_t bitmaps; /* bytes more, when the source's bitmaps are copied too */
};
/* How large the file of a new image will be, of c->size bytes and c->format with c->opts,
 * into which @src (may be NULL) is converted. c->backing only says that there will be a
 * backing file. May wait. */
int fmt_measure(const struct fmt_create *c, struct blk *src, struct fmt_measure *m,
	struct blk_err *err);

/* ---- info ---------------------------------------------------------------------------- */

struct fmt_snapshot {
	const char *id, *name;
	uint64_t vm_state_size; /* bytes */
	uint32_t date_sec, date_nsec;
	uint64_t vm_clock_nsec;
	uint64_t icount; /* UINT64_MAX: none */
	uint64_t disk_size;
};

struct fmt_info {
	const char *format;
	uint64_t virtual_size;
	uint64_t cluster_size; /* 0: none */
	uint64_t vm_state_off; /* where VM state lies in the disk's address space; 0: nowhere */
	bool has_backing;
	const char *backing;        /* as stored */
	const char *backing_format; /* NULL: not stored */
	bool encrypted, compressed, dirty, corrupt;
	unsigned snapshots;
	/* The i-th snapshot; NULL where the format has none. Strings live as long
	 * as the image. */
	int (*snapshot)(struct blk *image, unsigned i, struct fmt_snapshot *s);
};
int fmt_info(struct blk *image, struct fmt_info *info);
/* From now on an image that is not open for writing is the disk as it was in a snapshot,
 * with the length that it had; what it does not have is still the backing file's. @tag is
 * an id, else a name, or "snapshot.id=ID,snapshot.name=NAME" (or one of them; a comma in a
 * value is doubled). Before the first request. Without success the image is what it was. */
int fmt_snapshot_select(struct blk *image, const char *tag, struct blk_err *err);
/* The name of a backing file as opened: @name made relative to the folder of the
 * overlay @image_name unless absolute or with a protocol. -ENAMETOOLONG. */
int fmt_backing_path(const char *image_name, const char *name, char *buf, size_t size);

/* Where properties go: the caller prints them as lines or as JSON. Keys are the
 * JSON keys. */
struct fmt_sink {
	void (*str)(struct fmt_sink *s, const char *key, const char *val);
	void (*num)(struct fmt_sink *s, const char *key, uint64_t val);
	void (*flag)(struct fmt_sink *s, const char *key, bool val);
	/* A nested object or array; in an array keys are NULL. */
	void (*open)(struct fmt_sink *s, const char *key, bool array);
	void (*close)(struct fmt_sink *s);
};
void fmt_props(struct blk *image, struct fmt_sink *s);

/* ---- chains ------------------------------------------------------------------------------ */

/* What the host has said about holes in files, kept by who walks a map: a file system
 * looks for the end of what it is asked about, however far that is. Zeroed at first;
 * for one walker at a time. */
struct fmt_holes {
	struct {
		struct blk *file;
		uint64_t off, len;
		bool zero;
	} known[4];
	unsigned next;
};

struct fmt_map_extent {
	uint64_t off, len;
	unsigned flags; /* enum blk_extent_flags, as the guest sees it */
	uint64_t map;   /* BLK_EXT_MAPPED: offset in @file */
	unsigned depth; /* layers below the image; where nothing is allocated, the last asked */
	struct blk *layer; /* the image that decides */
};
/* What the guest sees at @off, through the chain down to but not including @base
 * (NULL: all of it). Without BLK_EXT_ALLOC it is BLK_EXT_ZERO, or no flag at all if
 * @base decides; and zero at the layer above where a layer below has ended already.
 * With @holes (or NULL) the host file is asked too, so that a hole in it shows as zero; its
 * bytes keep BLK_EXT_DATA where a format has put them there. @off lies within the
 * image. */
int fmt_map(struct blk *image, struct blk *base, uint64_t off, uint64_t len,
	struct fmt_holes *holes, struct fmt_map_extent *e);

/* The extents of [off, off + len), host holes shown, each as long as it can be: calls
 * fn for one after another. What lies past the end of the image is left out. */
int fmt_map_list(struct blk *image, uint64_t off, uint64_t len,
	void (*fn)(void *ctx, const struct fmt_map_extent *e), void *ctx, struct blk_err *err);

/* Reads what @layer does not have, from the images below it: for drivers. Walks
 * the chain in a loop, so its stack does not grow with the chain. Zeroes past
 * the end of a backing file and where there is none. */
int fmt_read_below(struct blk *layer, const struct blk_req *r);
/* What lies below @layer, at most @len: true if it reads as zeroes there. *n says
 * for how many bytes the answer holds. */
int fmt_zero_below(struct blk *layer, uint64_t off, uint64_t len, bool *zero, uint64_t *n);

/* ---- check
 * ----------------------------------------------------------------------------------- */

enum fmt_check_flags { FMT_FIX_LEAKS = 1u << 0, FMT_FIX_ERRORS = 1u << 1 };

struct fmt_check {
	unsigned fix; /* enum fmt_check_flags; the image is open for writing */
	/* One line for each finding, without newline: "ERROR ..." or "Leaked ..."
	 * or "Repairing ...". May be NULL. */
	void (*line)(void *ctx, const char *text);
	void *ctx;

	/* results */
	uint64_t corruptions, leaks, check_errors;
	uint64_t corruptions_fixed, leaks_fixed;
	int error; /* the first that reading or writing tables gave, or 0 */
	uint64_t total_clusters, allocated_clusters, fragmented_clusters, compressed_clusters;
	uint64_t image_end;
};
/* -ENOTSUP where the format has no check. An error means that the check itself
 * could not be done; findings are counted, not returned. May wait long. */
int fmt_check(struct blk *image, struct fmt_check *c, struct blk_err *err);

/* ---- operations on whole images
 * ------------------------------------------------------------------ Each is to be called from
 * a fiber of a pool, or from a plain thread where it does its work alone. */

struct fmt_progress {
	/* From any thread, one call at a time, now and then. May be NULL. */
	void (*fn)(void *ctx, uint64_t done, uint64_t total);
	void *ctx;
};

struct fmt_convert {
	struct blk *const *src; /* one image after another (cat) */
	unsigned nsrc;
	struct blk *dst;  /* open for writing, as long as the sources together at least */
	struct blk *base; /* -B: what lies in it is not copied (dst has it as backing file); or
			     NULL */
	bool dst_is_zero; /* a new image: what is not written reads as zeroes */
	uint32_t sparse;  /* -S: shortest run of zeroes that is left out; 0: write everything */
	unsigned fibers;  /* -m: 1 to 16 */
	bool compress;    /* -c: data is stored compressed, where the target can */
	bool unordered;   /* -W: accepted; the output is the same */
	uint64_t memory;  /* budget for buffers, in bytes; 0: 32 MiB */
	uint64_t rate;    /* -r: bytes a second at most; 0: as fast as it goes */
	uint64_t *lost;   /* --salvage: what cannot be read is zeroes in dst, and its bytes are
			   * added to this; NULL: an error */
	struct fmt_progress progress;
};
/* Copies, leaving out what is unallocated or zero. The bytes that end up in dst's
 * file depend on the sources and the options only, not on fibers, threads or
 * timing. Stops at the first error, in image order. Does not flush. */
int fmt_convert(const struct fmt_convert *c, struct blk_err *err);
/* Whether the whole image is known to read as zeroes, from its map. */
bool fmt_reads_zero(struct blk *image);

/* Writes what @image and the images between have into @base, which lies below it in its
 * chain and is open for writing (struct fmt_open: writable), and makes @base longer where
 * it is shorter. All of that is durable before anything is taken from @image. */
struct fmt_commit {
	struct blk *image; /* open for writing, unless keep */
	struct blk *base;
	bool keep;     /* -d: @image is left as it is; otherwise base is its own backing
			* file, and it is empty afterwards */
	uint64_t rate; /* as in struct fmt_convert */
	struct fmt_progress progress;
};
int fmt_commit(const struct fmt_commit *c, struct blk_err *err);

enum fmt_compare_result { FMT_SAME, FMT_DIFFERENT, FMT_SIZE_DIFFERS };
struct fmt_compare {
	struct blk *a, *b;
	bool strict; /* lengths and allocation must agree too */
	struct fmt_progress progress;
	/* results */
	enum fmt_compare_result result;
	uint64_t offset; /* FMT_DIFFERENT: of the first differing byte's sector (512) */
	bool allocation; /* strict: contents agree but allocation does not */
	bool warn_size;  /* lengths differ, and the rest of the longer one is zero */
};
int fmt_compare(struct fmt_compare *c, struct blk_err *err);

/* A checksum of what the guest sees (CONFIG_FMT_OP_CHECKSUM), the same for the same content
 * whatever the format, the number of threads and fibers, and the timing. With H a digest:
 *
 *     H( H(block 0) || H(block 1) || ... || le64(length in bytes) )
 *
 * where the last block may be short; or, @plain, H of the bytes. What is known to be zero
 * is not read, and blocks of zeroes are not hashed unless @plain. */
#define FMT_DIGEST_MAX     64
#define FMT_CHECKSUM_BLOCK (64u << 10)
#define FMT_CHECKSUM_MIN   512u /* blocks are powers of two in this range */
#define FMT_CHECKSUM_MAX   (1u << 20)
struct fmt_checksum {
	struct blk *image; /* or NULL: what read() gives */
	/* The next bytes of a stream, at most @len; *got is 0 at its end. Called from one
	 * thread at a time, which need not be the caller's; may block. */
	int (*read)(void *ctx, void *buf, size_t len, size_t *got);
	void *ctx;
	const struct thr_alloc *mem;
	const char *digest;           /* as cz_digest_named(); NULL: sha256 */
	bool plain;                   /* and of a raw image no more than its file has */
	uint32_t block;               /* 0: FMT_CHECKSUM_BLOCK */
	unsigned fibers;              /* pieces under way at a time; 0: as many as help */
	struct fmt_progress progress; /* not of a stream */
	/* results */
	uint8_t sum[FMT_DIGEST_MAX];
	size_t sum_len;
	uint64_t length; /* bytes that were summed */
};
/* Stops at the first error, in image order, and names its offset. -ENOTSUP: no such
 * digest. Memory is bounded whatever the length: 40 MiB at most. */
int fmt_checksum(struct fmt_checksum *c, struct blk_err *err);

/* Requests of one kind and size, at most @depth of them under way at a time; the pool's
 * executors share them. Reads leave what they read in buffers of the benchmark's own. */
struct fmt_bench {
	struct blk *image;
	bool write;
	uint8_t pattern; /* what writes write */
	uint64_t count;
	unsigned depth;
	uint32_t size;
	uint64_t off;  /* of the first; the next ones are @step further, from the start again */
	uint64_t step; /* past the end of the disk */
	uint64_t flush_interval; /* writes: a flush after each so many requests; 0: none */
	bool drain; /* a flush comes when all requests before it have ended, and those after
		     * it wait; then @depth is at most @flush_interval */
	/* result */
	uint64_t ns; /* from the start of the first to the end of the last */
};
/* Stops at the first error. A request that passes the end fails with -EINVAL. */
int fmt_bench(struct fmt_bench *b, struct blk_err *err);

/* ---- for NBD servers (CONFIG_FMT_OP_SERVE): status() of struct blk_nbd_context ------- */

/* Both with the image as arg: "base:allocation", holes of the host shown;
 * "qemu:allocation-depth", 0 where nothing is allocated, 1 for the image itself, 2 for the
 * one below it and so on. */
int fmt_nbd_allocation(void *image, uint64_t off, uint64_t len, uint64_t *n, uint32_t *flags);
int fmt_nbd_depth(void *image, uint64_t off, uint64_t len, uint64_t *n, uint32_t *flags);
/* What an export of the image has as its plain device: a raw image's file, or NULL. */
struct blk *fmt_nbd_plain(struct blk *image);

/* A persistent dirty bitmap, in memory, as it is in the image now. */
struct fmt_bitmap {
	uint8_t *bits;
	size_t bytes;
	unsigned granularity_bits;
	uint64_t size; /* of the image */
	const struct thr_alloc *mem;
};
#define FMT_BITMAP_MAX (256u << 20) /* bytes; larger ones are refused */
/* -ENOENT where there is none of that name; -EINVAL where it is not valid: an image that
 * is open for writing has none that is. */
int fmt_bitmap_open(
	struct fmt_bitmap *m, struct blk *image, const char *name, struct blk_err *err);
void fmt_bitmap_close(struct fmt_bitmap *m);
/* "qemu:dirty-bitmap:NAME", with a struct fmt_bitmap as arg. */
#define FMT_NBD_DIRTY (1u << 0)
int fmt_nbd_dirty(void *bitmap, uint64_t off, uint64_t len, uint64_t *n, uint32_t *flags);

/* Changes the virtual size. @shrink must be set to make it smaller. */
int fmt_resize(struct blk *image, uint64_t size, bool shrink, enum blk_prealloc p,
	struct blk_err *err);

#ifdef __cplusplus
}
#endif
#endif
