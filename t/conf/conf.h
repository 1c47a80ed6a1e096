/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/conf/conf.h - the conformance suite: every case runs for every row.
 */
#ifndef T_CONF_CONF_H
#define T_CONF_CONF_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "fmt/fmt.h"

#define CONF_OPTS 6

struct conf_row {
	const char *name;
	const char *format;
	uint64_t size;
	uint64_t backing; /* bytes of a raw backing file with data in it; 0: none */
	bool stiff;       /* a new length may be refused, with -THR_ENOTSUP */
	struct blk_opt opts[CONF_OPTS]; /* ends with a NULL key */
	bool noise; /* what has not been written is anything: all is zeroed first */
};
extern const struct conf_row conf_rows[];
extern const unsigned conf_nrows;

struct conf;

/* Where an image lies. Each may fail the test. */
struct conf_place {
	/* An empty image of c->size bytes, over a backing file of those bytes. */
	void (*make)(struct conf *c, const uint8_t *backing);
	struct blk *(*open)(struct conf *c, unsigned blk_flags, unsigned flags);
	/* What is left when all is closed is looked at once more, and goes. */
	void (*remove)(struct conf *c);
	/* What open() gives is no image: it keeps its length, and remove() checks the image. */
	bool afar;
};
extern const struct conf_place conf_files; /* in a folder of its own */
/* The same with NBD in between: our client and a server in this process that opens the
 * image anew whenever the client does; and our client and qemu-nbd. */
extern const struct conf_place conf_nbd, conf_qemu_nbd;

/* An image of a row, and what it should hold. */
struct conf {
	const struct conf_row *row;
	const struct conf_place *place;
	char dir[64];
	char image[96], base[96], data[96];
	struct conf_ram *ram; /* conf_ram */
	struct conf_nbd *nbd; /* conf_nbd, conf_qemu_nbd */
	struct blk *b;        /* open for writing */
	uint8_t *model, *buf; /* room bytes each */
	uint64_t size, room;
	uint64_t seed;
};

/* In files, with room for twice its size; or anywhere with other room. */
void conf_open(struct conf *c, const struct conf_row *row);
void conf_open_at(struct conf *c, const struct conf_row *row, const struct conf_place *place,
	uint64_t room);
void conf_close(struct conf *c); /* checks the image once more and removes it */
void conf_reopen(struct conf *c, unsigned blk_flags);
uint32_t conf_random(struct conf *c, uint32_t below);
/* The whole disk reads as the model. */
void conf_compare(struct conf *c);
/* The image, which is not open for writing elsewhere, has no corruption and no leaks. */
void conf_check(struct conf *c);
/* Fails with the sentence of an error. */
void conf_fail(const struct blk_err *err);
/* Another length, or false where the row may refuse it and does. What is new is zero. */
bool conf_resize(struct conf *c, uint64_t size, bool shrink, enum blk_prealloc p);
/* Whether an option of a row is "on", or there at all. */
const char *conf_opt(const struct conf_row *row, const char *key);
/* Raw external data, @data of so many bytes, is what the model is. */
void conf_compare_raw(struct conf *c, struct blk *data);
/* The options of a row. */
struct blk_opts conf_opts(const struct conf_row *row);
/* Those of them that open it again, in @v, and the secrets that they name. */
struct blk_opts conf_open_opts(const struct conf_row *row, struct blk_opt v[CONF_OPTS]);
extern const struct fmt_secrets conf_secrets;
/* Makes keys the same each time, at no cost. */
#define CONF_SEED "conformance"
const struct conf_row *conf_row_find(const char *name); /* or NULL */

/* What compressed writes have to be multiples of; 0: there are none. */
uint32_t conf_pack_unit(struct conf *c);

struct conf_case {
	const char *name;
	void (*run)(struct conf *c);
};
extern const struct conf_case conf_cases[];
extern const unsigned conf_ncases;

/* One seeded step: write, zero, discard, read or flush. */
void conf_step(struct conf *c);
void conf_write(struct conf *c, uint64_t off, size_t len, uint8_t first);
void conf_zero(struct conf *c, uint64_t off, uint64_t len, unsigned flags);
void conf_discard(struct conf *c, uint64_t off, uint64_t len);

#endif
