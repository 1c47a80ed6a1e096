/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/op/checksum_sum.c - the construction of a checksum (fmt.h), fed in order.
 *
 * The digest of a block of zeroes is computed once. A long run of them is a long run of
 * that digest for the outer hash, which is fast with large updates only: so there is a
 * buffer full of it.
 */
#include "fmt/op/checksum.h"

#define ZERO_BYTES (64u << 10)
#define REPEATED   (64u << 10)

static int digest_zeroes(struct checksum_sum *s, uint32_t len, uint8_t *out)
{
	uint32_t n;

	for (; len; len -= n) {
		int err;

		n = THR_MIN(len, ZERO_BYTES);
		err = cz_digest_update(s->inner, s->zeroes, n);
		if (err)
			return err;
	}
	return cz_digest_final(s->inner, out);
}

static int fill_repeated(struct checksum_sum *s)
{
	int err = digest_zeroes(s, s->block, s->zero_digest);

	if (err)
		return err;
	s->repeated = thr_get(s->mem, REPEATED, 64);
	if (!s->repeated)
		return -THR_ENOMEM;
	s->nrepeated = REPEATED / s->size;
	for (size_t i = 0; i < s->nrepeated; i++)
		memcpy(s->repeated + i * s->size, s->zero_digest, s->size);
	return 0;
}

int fmt_sum_init(struct checksum_sum *s, const char *digest, uint32_t block, bool plain,
	const struct thr_alloc *mem)
{
	int err = cz_digest_named(&s->outer, mem, digest);

	s->mem = mem;
	if (!err)
		err = cz_digest_named(&s->inner, mem, digest);
	if (err)
		return err;
	s->size = cz_digest_ctx_size(s->outer);
	s->block = block;
	s->plain = plain;
	s->zeroes = thr_get(mem, ZERO_BYTES, 64);
	if (!s->zeroes)
		return -THR_ENOMEM;
	memset(s->zeroes, 0, ZERO_BYTES);
	return plain ? 0 : fill_repeated(s);
}

void fmt_sum_fini(struct checksum_sum *s)
{
	cz_digest_free(s->outer);
	cz_digest_free(s->inner);
	thr_put(s->mem, s->zeroes, ZERO_BYTES);
	thr_put(s->mem, s->repeated, REPEATED);
}

static int plain_zeroes(struct checksum_sum *s, uint64_t len)
{
	uint64_t n;
	int err = 0;

	for (; len && !err; len -= n) {
		n = THR_MIN(len, ZERO_BYTES);
		err = cz_digest_update(s->outer, s->zeroes, (size_t)n);
	}
	return err;
}

/* The last block, where it is short. */
static int short_zeroes(struct checksum_sum *s, uint32_t len)
{
	uint8_t digest[FMT_DIGEST_MAX];
	int err;

	if (!len)
		return 0;
	err = digest_zeroes(s, len, digest);
	return err ? err : cz_digest_update(s->outer, digest, s->size);
}

int fmt_sum_zeroes(struct checksum_sum *s, uint64_t len)
{
	uint64_t blocks = len >> thr_log2(s->block);
	uint64_t n;
	int err = 0;

	s->length += len;
	if (s->plain)
		return plain_zeroes(s, len);
	for (; blocks && !err; blocks -= n) {
		n = THR_MIN(blocks, s->nrepeated);
		err = cz_digest_update(s->outer, s->repeated, (size_t)n * s->size);
	}
	return err ? err : short_zeroes(s, (uint32_t)(len & (s->block - 1)));
}

int fmt_sum_digests(struct checksum_sum *s, uint64_t len, const uint8_t *digests)
{
	uint64_t blocks = (len + s->block - 1) >> thr_log2(s->block);

	s->length += len;
	return cz_digest_update(s->outer, digests, (size_t)blocks * s->size);
}

int fmt_sum_bytes(struct checksum_sum *s, const uint8_t *p, uint64_t len)
{
	s->length += len;
	return cz_digest_update(s->outer, p, (size_t)len);
}

int fmt_sum_final(struct checksum_sum *s, uint8_t *out)
{
	uint8_t length[8];
	int err = 0;

	thr_put_le64(length, s->length);
	if (!s->plain)
		err = cz_digest_update(s->outer, length, sizeof(length));
	return err ? err : cz_digest_final(s->outer, out);
}
