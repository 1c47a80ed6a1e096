/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/luks/luks.h - what the files of this room share, and what qcow2 uses of it.
 *
 * LUKS1 is specified in "LUKS On-Disk Format Specification" 1.2.3 of the cryptsetup
 * project; our description is doc/SPEC-luks. All numbers on disk are big-endian.
 *
 *   header.c   the header: parsed, validated, made
 *   af.c       the anti-forensic splitter
 *   keyslot.c  key slots: opened, switched on and off
 *   setup.c    a new header with its first key slot, from options
 *   amend.c    key slots added and erased, from options
 *   props.c    what info prints
 *   crypt.c    sectors read and written, in parallel
 *   luks.c     the format: a volume that begins with its header, or has it elsewhere
 *
 * A header is read and written through a struct luks_area, so the same code serves
 * a volume, a file that has the header alone, and clusters inside a qcow2 image.
 *
 * Keys are in memory of the caller, or in struct luks_crypt, and wiped there.
 */
#ifndef FMT_LUKS_LUKS_H
#define FMT_LUKS_LUKS_H

#include "cz/cz.h"
#include "fmt/fmt.h"

#define LUKS_SECTOR  512u
#define LUKS_HEADER  592u /* bytes on disk */
#define LUKS_SLOTS   8u
#define LUKS_STRIPES 4000u
#define LUKS_SALT    32u
#define LUKS_DIGEST  20u
#define LUKS_ALIGN   4096u /* of key material, in a new header */
#define LUKS_KEY_MAX 64u

/* What deriving a key may cost, whatever a header says: some minutes. */
#define LUKS_ITER_MAX (1u << 27)
#define LUKS_ITER_MIN 1000u

/* Where a header lies. Offsets are in the area. */
struct luks_area {
	int (*read)(const struct luks_area *a, uint64_t off, void *buf, size_t len);
	int (*write)(const struct luks_area *a, uint64_t off, const void *buf, size_t len);
	int (*flush)(const struct luks_area *a);
	struct blk *blk;
	uint64_t base, size;
	bool alone; /* the data lies elsewhere: the payload offset says nothing of the area */
};
/* An area of @b, which has it from @base on. */
void luks_area_init(struct luks_area *a, struct blk *b, uint64_t base, uint64_t size);

struct luks_slot {
	bool active;
	uint32_t iterations;
	uint8_t salt[LUKS_SALT];
	uint32_t sector; /* of its key material */
};

struct luks_header {
	char cipher[33], mode[33], hash[33]; /* as stored */
	struct cz_cipher_spec spec;
	enum cz_digest_id hash_id;
	uint32_t key_len;
	uint32_t payload; /* sectors */
	uint8_t digest[LUKS_DIGEST], salt[LUKS_SALT];
	uint32_t iterations;
	char uuid[41];
	struct luks_slot slot[LUKS_SLOTS];
};

/* ---- header.c ---- */

/* Reads and validates: what can be used of @h is within bounds afterwards. */
int luks_header_read(const struct luks_area *a, struct luks_header *h, struct blk_err *err);
/* Pure: the same of @raw, LUKS_HEADER bytes. */
int luks_header_parse(struct luks_header *h, const uint8_t *raw, const struct luks_area *a,
	struct blk_err *err);
void luks_header_pack(const struct luks_header *h, uint8_t *raw);
/* One slot on disk; only its state with @state. */
int luks_slot_save(const struct luks_area *a, const struct luks_header *h, unsigned slot);
int luks_slot_switch(const struct luks_area *a, unsigned slot, bool active);
/* Bytes of key material, in whole sectors. */
uint32_t luks_material(uint32_t key_len);

/* ---- af.c ---- */

/* @len * LUKS_STRIPES bytes of @split, filled from @rng, that merge to @key. */
int luks_af_split(enum cz_digest_id hash, const uint8_t *key, size_t len, uint8_t *split,
	struct cz_rng *rng, const struct thr_alloc *mem);
int luks_af_merge(enum cz_digest_id hash, const uint8_t *split, size_t len, uint8_t *key,
	const struct thr_alloc *mem);

/* ---- keyslot.c: they compute for long and offload that; may wait ---- */

/* The master key, h->key_len bytes, from whichever slot the password opens; *slot says
 * which. -EACCES where none does. */
int luks_unlock(const struct luks_area *a, const struct luks_header *h,
	const struct fmt_secret *pass, uint8_t *key, unsigned *slot,
	const struct thr_alloc *mem, struct blk_err *err);
/* Whether the password opens that one slot: 0, -EACCES. */
int luks_slot_try(const struct luks_area *a, const struct luks_header *h, unsigned slot,
	const struct fmt_secret *pass, uint8_t *key, const struct thr_alloc *mem);
/* Puts the master key into a slot that is off and switches it on: key material first,
 * durably. @iterations of PBKDF2. Without success the slot is off. */
int luks_slot_on(const struct luks_area *a, struct luks_header *h, unsigned slot,
	const struct fmt_secret *pass, const uint8_t *key, uint32_t iterations,
	struct cz_rng *rng, const struct thr_alloc *mem);
/* Switches a slot off, durably, and then overwrites its key material. */
int luks_slot_off(const struct luks_area *a, struct luks_header *h, unsigned slot,
	struct cz_rng *rng, const struct thr_alloc *mem);
/* PBKDF2 of the header's hash, off the executor. */
int luks_derive(const struct luks_header *h, const void *pass, size_t pass_len,
	const uint8_t *salt, uint32_t iterations, void *out, size_t len);
/* As many iterations as take about @ms; a fixed number of them where @fixed. */
int luks_count(
	const struct luks_header *h, size_t len, unsigned ms, bool fixed, uint32_t *iterations);

/* ---- setup.c ---- */

/* What a new header is to be, from the options that begin with @prefix. */
struct luks_setup {
	struct luks_header h;
	const struct fmt_secret *pass;
	unsigned ms; /* iter-time */
};
int luks_setup_options(struct luks_setup *s, const struct fmt_create *c, const char *prefix,
	struct blk_err *err);
/* Makes the header with its keys, and writes it: key slot 0 first, the header last. */
int luks_setup_write(struct luks_setup *s, const struct luks_area *a, const char *seed,
	const struct thr_alloc *mem, struct blk_err *err);
/* The value of option @prefix + @key. */
const char *luks_opt(const struct blk_opts *o, const char *prefix, const char *key);
/* "iter-time", in milliseconds. */
int luks_opt_ms(
	const struct blk_opts *o, const char *prefix, unsigned *ms, struct blk_err *err);

/* ---- amend.c ---- */

/* Changes key slots as the options with @prefix say. @key is the master key. */
int luks_amend(const struct luks_area *a, struct luks_header *h, const uint8_t *key,
	const struct fmt_amend *m, const char *prefix, struct blk_err *err);

/* ---- props.c ---- */

/* @qcow2: with the key "format" that an image has which may have others. */
void luks_props(const struct luks_header *h, struct fmt_sink *s, bool qcow2);

/* ---- crypt.c ---- */

/* Contexts and buffers for as many requests as there are at a time. */
struct luks_crypt;
int luks_crypt_open(struct luks_crypt **out, const struct cz_cipher_spec *s, const void *key,
	size_t len, const struct thr_alloc *mem);
void luks_crypt_close(struct luks_crypt *c);
/* The master key that it was opened with. */
const uint8_t *luks_crypt_key(const struct luks_crypt *c);
/* The data of @r, whole sectors, from or to @file at @off; @sector is the number of the
 * first. Without a vector it is zeroes that are written. */
int luks_crypt_read(struct luks_crypt *c, struct blk *file, const struct blk_req *r,
	uint64_t off, uint64_t sector);
int luks_crypt_write(struct luks_crypt *c, struct blk *file, const struct blk_req *r,
	uint64_t off, uint64_t sector);

#endif
