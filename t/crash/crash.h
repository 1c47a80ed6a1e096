/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/crash/crash.h - power cuts, by the thousand.
 *
 * A seeded workload (work.c) is recorded (record.c): what it did to each device on one
 * clock, and what it meant for each sector of the disk (model.c). States that a cut may
 * leave are built from the record (state.c), and each is opened, checked, and compared
 * with what its sectors may hold (verify.c). All of it follows from a row of the table
 * (rows.c), a seed and a number of operations, so every state can be had again.
 */
#ifndef T_CRASH_CRASH_H
#define T_CRASH_CRASH_H

#include "fmt/fmt.h"
#include "t/crash/store.h"

#define SECTOR  512u
#define SECTORS 8192u /* of the longest disk */
#define OPS_MAX 400u
#define OPTS    8u

/* ---- rows ------------------------------------------------------------------------ */

struct crash;

enum row_flags {
	ROW_RESIZE = 1u << 0,     /* both ways */
	ROW_SYNC_SIZE = 1u << 1,  /* a new size is durable when the call returns */
	ROW_ANY_SIZE = 1u << 2,   /* writes past the end that is on the disk extend it */
	ROW_COMPRESS = 1u << 3,   /* compressed writes */
	ROW_COMMIT = 1u << 4,     /* into the base */
	ROW_DIRTY = 1u << 5,      /* counts may be behind while the image says so */
	ROW_FIXED_FILE = 1u << 6, /* the image's device does not grow */
	ROW_LARGE = 1u << 7,      /* long requests, so that tables grow */
	ROW_FEW_ZEROES = 1u << 8, /* no zero writes or discards */
};

enum { DEV_IMAGE, DEV_SECOND, DEV_BASE, DEVS };

struct crash_row {
	const char *name;
	const char *format;
	struct blk_opt create[OPTS]; /* up to the first without a key */
	struct blk_opt open[OPTS];
	const struct fmt_secrets *secrets;
	uint64_t size;           /* of the disk; a multiple of a sector */
	uint64_t max;            /* what resizes make of it at most; 0: 1.5 times as much */
	uint64_t backing;        /* bytes; 0: none */
	const char *base_format; /* NULL: raw */
	struct blk_opt base[OPTS];
	uint32_t grain;     /* bytes that are torn together; 0: a sector */
	uint64_t file_size; /* ROW_FIXED_FILE */
	unsigned flags;     /* enum row_flags */
	unsigned slow;      /* keys are derived to open it: one cut of so many is taken; or 0 */

	/* What the format needs besides, each may be NULL. The defaults make and open an
	 * image on DEV_IMAGE alone. @open owns the devices once it has succeeded; those
	 * that are NULL the row does not have. @make may close one, and set it to NULL. */
	bool second; /* it has a DEV_SECOND */
	int (*make)(const struct crash_row *r, struct blk *dev[DEVS], struct blk_err *err);
	int (*open_image)(struct blk **out, const struct crash_row *r,
		struct blk *const dev[DEVS], unsigned blk_flags, unsigned flags,
		struct blk_err *err);
	/* A command that rewrites: key slots, the header. The image is open for writing. */
	int (*amend)(struct blk *image, uint32_t random, struct blk_err *err);
};
extern const struct crash_row crash_rows[]; /* ends with one without a name */

/* Of rows with LUKS (luks.c): the password is secret "s", and "t" comes and goes. */
extern const struct fmt_secrets crash_luks_secrets;
int crash_luks_make(const struct crash_row *r, struct blk *dev[DEVS], struct blk_err *err);
int crash_luks_open(struct blk **out, const struct crash_row *r, struct blk *const dev[DEVS],
	unsigned blk_flags, unsigned flags, struct blk_err *err);
int crash_luks_open_qcow2(struct blk **out, const struct crash_row *r,
	struct blk *const dev[DEVS], unsigned blk_flags, unsigned flags, struct blk_err *err);
int crash_luks_amend(struct blk *image, uint32_t random, struct blk_err *err);
int crash_luks_amend_qcow2(struct blk *image, uint32_t random, struct blk_err *err);

/* ---- the model: what sectors may hold ----------------------------------------------- */

/* What a sector holds: 0 zeroes; VAL_BASE the base's bytes; VAL_BLOB and up, a text of
 * the model's; else what write number n puts there. */
#define VAL_BASE 0x7fffffffu
#define VAL_BLOB 0x80000000u

enum op_kind {
	OP_WRITE,
	OP_COMPRESSED,
	OP_ZERO,
	OP_DISCARD,
	OP_FLUSH,
	OP_RESIZE,
	OP_COMMIT,
	OP_AMEND,
	OP_REOPEN,
	OP_CUT,    /* the image is lost as it is and opened again: what it holds is new */
	OP_REPAIR, /* a check -r of what was lost so */
};

#define NEVER UINT64_MAX

struct op {
	enum op_kind kind;
	unsigned flags;        /* enum blk_req_flags */
	uint64_t off, len;     /* bytes; of a resize: what it adds */
	uint64_t sector, n;    /* that it touches */
	uint32_t *val;         /* what they hold afterwards, once that is known */
	uint64_t size;         /* of the disk afterwards, where it changes */
	uint64_t began, ended; /* on the clock */
	uint64_t durable;      /* when it was */
};

struct model {
	struct op op[OPS_MAX];
	unsigned nops;
	uint64_t start_size;
	uint64_t base;         /* sectors of the base that hold VAL_BASE at first */
	uint32_t now[SECTORS]; /* what each sector holds */
	uint8_t (*blob)[SECTOR];
	unsigned nblobs;
	/* Which operations touch a sector: touch[first[s]] to touch[first[s + 1]]. */
	uint32_t first[SECTORS + 1];
	uint16_t *touch;
};

void model_init(struct model *m, const struct crash_row *r);
void model_free(struct model *m);
/* What write @seq puts into a sector, and what value @val is there. */
void model_fill(uint32_t seq, uint64_t sector, uint8_t *buf);
void model_text(const struct model *m, uint32_t val, uint64_t sector, uint8_t *buf);
/* The value of a sector's content, of those there have been: -1 where it is none. */
int64_t model_value(const struct model *m, uint64_t sector, const uint8_t *buf);
/* Sets what @o leaves in its sectors: bytes of write @seq, or zeroes for 0. */
void model_put(struct model *m, struct op *o, uint32_t seq);
/* Sets it to what has been read. Fails with the sector that holds something else. */
int64_t model_take(struct model *m, struct op *o, const uint8_t *buf);
/* All is recorded: finds out when each operation was durable. */
void model_settle(struct model *m, const struct crash_row *r);
/* Whether a cut at @at may leave this. */
bool model_allows(const struct model *m, uint64_t sector, uint32_t val, uint64_t at);
bool model_allows_size(
	const struct model *m, const struct crash_row *r, uint64_t size, uint64_t at);
void model_explain(const struct model *m, uint64_t sector, uint64_t at);

/* ---- the record ------------------------------------------------------------------------ */

struct entry {
	unsigned dev;
	enum blk_op op;
	uint64_t off, len;
	uint8_t *data;
	bool pending;
	uint64_t submitted, completed; /* NEVER: in flight at the end, or failed */
	uint64_t durable;              /* when a flush had covered it; NEVER */
	uint64_t gone;                 /* when it can come no more, its process being dead */
	bool fua;                      /* it was durable when it had completed */
};

struct record {
	uint64_t clock;
	struct entry *v;
	size_t n, room;
	uint64_t *event; /* when there was one: what can be cut after */
	size_t nevents, event_room;
	size_t flushes; /* device flushes */
};

/* ---- all of it --------------------------------------------------------------------------- */

struct watch {
	struct crash *c;
	unsigned dev;
};

struct crash {
	const struct crash_row *row;
	uint64_t seed;
	unsigned ops;
	bool stale;      /* discards leave bytes as they are */
	unsigned fibers; /* that work at a time */

	struct store *live[DEVS], *start[DEVS];
	struct watch watch[DEVS];
	struct fuse fuse;
	struct blk *image, *dev[DEVS];
	struct record rec;
	struct model m;
	uint64_t rnd;
	char where[160]; /* what went wrong while recording */

	/* building */
	struct store *base[DEVS], *state[DEVS];
	struct entry **order; /* as they become durable */
	size_t applied;
};

uint32_t crash_rnd(uint64_t *seed, uint32_t below);

/* The process that had the image is dead: what is in flight never gets there. */
void crash_gone(struct crash *c);
/* Makes the image on c->start, over which c->live then stands. */
int crash_make(struct crash *c, struct blk_err *err);
/* Opens the row's image on stores; c->dev are its devices, recorded if @log. @flags: enum
 * fmt_open_flags, and whether the base is open for writing too, for a commit. */
#define OPEN_BASE_RDWR (1u << 31)
int crash_open(struct crash *c, struct store *const on[DEVS], bool log, unsigned blk_flags,
	unsigned flags, struct blk_err *err);
/* Records the workload. False: c->where says what went wrong. */
bool crash_record(struct crash *c, const struct crash_row *row, uint64_t seed, unsigned ops);
void crash_free(struct crash *c);

/* Modes of loss at a cut: of the writes that may be lost */
enum crash_mode {
	MODE_ALL,     /* a: none is */
	MODE_NONE,    /* b: all are */
	MODE_SUBSET,  /* c: some are */
	MODE_REORDER, /* d: some are, and they came in another order */
	MODE_TORN,    /* e: some sectors of some are */
	MODE_TORN_4K, /* f: the same in blocks of 4096 */
	MODES
};

struct cut {
	uint64_t at;
	enum crash_mode mode;
	uint64_t sub; /* seed of the choice; MODE_SUBSET in exhaustive: bits */
	bool bits;
};

/* Readies for cuts, which then come in ascending order of time. */
void state_begin(struct crash *c);
void state_end(struct crash *c);
/* Builds the state into c->state; how many entries might have been lost. */
unsigned state_build(struct crash *c, const struct cut *cut);
/* How many entries might be lost at a time. */
unsigned state_maybe(struct crash *c, uint64_t at);

/* Opens, checks and compares what state_build() made. False: what is wrong, in @why. */
bool state_verify(
	struct crash *c, const struct cut *cut, bool more, bool loud, char *why, size_t size);
/* Writes the state into files DIR/NAME.* for other programs to look at. */
bool state_export(struct crash *c, const char *dir, const char *name);

#endif
