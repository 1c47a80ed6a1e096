/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/fuzz/fuzz.h - what the fuzz targets share. Each target is a libFuzzer program of
 * its own (make fuzz; t/fuzz/run says how they are run).
 *
 * Images are given in packed form, so that large ones full of zeroes are short
 * inputs: be32 length, be32 seed for what the target chooses by chance, then any
 * number of records of be16 n and 512 bytes, which lie at 512 n. `pack` converts.
 */
#ifndef T_FUZZ_FUZZ_H
#define T_FUZZ_FUZZ_H

#include "blk/blk.h"

#define FUZZ_IMAGE_MAX (4u << 20)
#define FUZZ_SECTOR    512u
#define FUZZ_HEAD      8u
#define FUZZ_RECORD    (2u + FUZZ_SECTOR)

/* libFuzzer's, which has no header for C. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t len, size_t max, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t len, size_t max);

/* What must hold, whatever the input. */
#define FUZZ_MUST(cond)                                                                        \
	do {                                                                                   \
		if (!(cond))                                                                   \
			fuzz_broken(__FILE__ ":" THR_STR(__LINE__) ": " #cond);                \
	} while (0)
__attribute__((noreturn)) void fuzz_broken(const char *what);

/* Memory that ends after 256 MiB, as a machine's does. */
extern const struct thr_alloc fuzz_mem;
/* At the end of every input: all of it has been given back. */
void fuzz_mem_end(void);
/* Whether it has run out since the last fuzz_mem_end(). */
bool fuzz_mem_ran_out(void);

/* A failure has been explained, if there was one. */
void fuzz_explained(int code, const struct blk_err *err);

/* splitmix64 */
uint64_t fuzz_next(uint64_t *state);
/* Below @n, which is not 0. */
uint64_t fuzz_below(uint64_t *state, uint64_t n);

/* ---- packed.c ---------------------------------------------------------------- */

struct fuzz_image {
	uint8_t *p; /* size bytes, so that a sanitizer sees who reads past them */
	size_t size;
	uint32_t seed;
};
/* False if it is too short to be anything. Free m->p. */
bool fuzz_unpack(struct fuzz_image *m, const uint8_t *data, size_t len);
/* Its length, at most @max: what does not fit is left out. */
size_t fuzz_pack(const struct fuzz_image *m, uint8_t *data, size_t max);

/* ---- qcow2_mutate.c ------------------------------------------------------------ */

/* Changes fields of the header, table entries, and now and then any bytes, of a packed
 * image, such that most are still worth opening. */
size_t fuzz_qcow2_mutate(uint8_t *data, size_t len, size_t max, unsigned seed);

#endif
