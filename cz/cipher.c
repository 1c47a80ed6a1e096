/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cz/cipher.c - encrypting runs of sectors: ECB, CBC, CTR (NIST SP 800-38A) and
 * XTS (IEEE 1619, NIST SP 800-38E) with the IV generators of dm-crypt.
 *
 * All modes are made here of one thing that OpenSSL and our own ciphers give: many
 * blocks through the bare cipher in one call (block.c). Sectors are 512 bytes as a rule, and
 * EVP's own XTS must be told a new IV for each, which takes longer (70 ns) than the AES of the
 * sector (55 ns). Here up to CZ_SECTOR_MAX bytes of sectors go through each step at once:
 *
 * - the IVs of all of them, encrypted in one call where the generator or XTS wants
 *   that;
 * - XTS: all tweaks; then data ^ tweaks, the cipher, ^ tweaks;
 * - CTR: all counters, the cipher, ^ data;
 * - CBC, decrypting: the cipher, ^ the IVs and the blocks before;
 * - CBC, encrypting: a block depends on the one before, but not on other sectors:
 *   the first blocks of all of them, then the second ones, and so on.
 *
 * It also gives XTS to all ciphers with blocks of 16 bytes and to all key lengths,
 * where EVP has AES-128 and AES-256. An ECB context in EVP has no state but its key
 * as long as it sees whole blocks, so it is never set up again.
 */
#include "cz/private.h"

#define GROUP    CZ_SECTOR_MAX
#define BLOCK_16 16

typedef uint64_t vec __attribute__((vector_size(16), may_alias, aligned(1)));
typedef uint64_t word __attribute__((may_alias, aligned(1)));

struct cz_cipher {
	const struct thr_alloc *mem;
	struct cz_ossl ossl;
	struct cz_block data;
	struct cz_block tweak; /* XTS: the second key */
	struct cz_block essiv;
	bool has_essiv;
	enum cz_mode mode;
	enum cz_iv iv;
	size_t block;
	/* Of the group of sectors at work: an IV each, and what its data is XORed
	 * with. */
	uint8_t ivs[GROUP] __attribute__((aligned(16)));
	uint8_t mask[GROUP] __attribute__((aligned(16)));
};

/* Whole cipher blocks: @len is a multiple of 8. */
static void xor_blocks(uint8_t *dst, const uint8_t *a, const uint8_t *b, size_t len)
{
	size_t i = 0;

	for (; i + sizeof(vec) <= len; i += sizeof(vec))
		*(vec *)(dst + i) = *(const vec *)(a + i) ^ *(const vec *)(b + i);
	if (i < len)
		*(word *)(dst + i) = *(const word *)(a + i) ^ *(const word *)(b + i);
}

/* ---- IVs --------------------------------------------------------------------- */

static int make_ivs(struct cz_cipher *c, uint64_t sector, size_t sector_size, size_t n)
{
	size_t block = c->block;
	uint8_t *iv = c->ivs;
	/* Cipher blocks of a sector, of CZ_IV_BENBI. */
	unsigned narrow = thr_log2(sector_size) - thr_log2(block);

	memset(iv, 0, n * block);
	for (size_t i = 0; i < n; i++, iv += block, sector++) {
		if (c->iv == CZ_IV_PLAIN)
			thr_put_le32(iv, (uint32_t)sector);
		else if (c->iv == CZ_IV_PLAIN64 || c->iv == CZ_IV_ESSIV)
			thr_put_le64(iv, sector);
		else if (c->iv == CZ_IV_PLAIN64BE)
			thr_put_be64(iv + block - 8, sector);
		else if (c->iv == CZ_IV_BENBI)
			thr_put_be64(iv + block - 8, (sector << narrow) + 1);
	}
	return c->has_essiv ? cz_block_run(&c->essiv, c->ivs, c->ivs, n * block, true) : 0;
}

/* ---- modes: @n sectors that together are no larger than a group ----------------- */

/* Not thr_put_le64() and thr_put_be64(): byte by byte, compilers make vectors of
 * the loops below that take four times as long. */
static uint64_t le64(uint64_t v)
{
	return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? __builtin_bswap64(v) : v;
}

static uint64_t be64(uint64_t v)
{
	return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? v : __builtin_bswap64(v);
}

/* IEEE 1619, 5.2: the tweak of a block is that of the block before times x in
 * GF(2^128), little-endian. */
static void tweaks_of_sector(uint8_t *mask, const uint8_t *first, size_t sector_size)
{
	uint64_t lo = thr_le64(first), hi = thr_le64(first + 8);
	word *t = (word *)mask;

	for (size_t i = 0; i < sector_size; i += BLOCK_16) {
		uint64_t carry = (0 - (hi >> 63)) & 0x87;

		*t++ = le64(lo);
		*t++ = le64(hi);
		hi = hi << 1 | lo >> 63;
		lo = lo << 1 ^ carry;
	}
}

static int xts(struct cz_cipher *c, uint8_t *dst, const uint8_t *src, size_t n,
	size_t sector_size, bool encrypt)
{
	size_t len = n * sector_size;
	int err = cz_block_run(&c->tweak, c->ivs, c->ivs, n * BLOCK_16, true);

	if (err)
		return err;
	for (size_t i = 0; i < n; i++)
		tweaks_of_sector(c->mask + i * sector_size, c->ivs + i * BLOCK_16, sector_size);
	xor_blocks(dst, src, c->mask, len);
	err = cz_block_run(&c->data, dst, dst, len, encrypt);
	if (!err)
		xor_blocks(dst, dst, c->mask, len);
	return err;
}

/* SP 800-38A, appendix B.1, over the whole block, big-endian. */
static void counters_of_sector(
	uint8_t *mask, const uint8_t *first, size_t block, size_t sector_size)
{
	uint64_t hi = thr_be64(first), lo = thr_be64(first + block - 8);
	word *t = (word *)mask;

	for (size_t i = 0; i < sector_size; i += block) {
		if (block == BLOCK_16)
			*t++ = be64(hi);
		*t++ = be64(lo);
		hi += !++lo;
	}
}

static int ctr(
	struct cz_cipher *c, uint8_t *dst, const uint8_t *src, size_t n, size_t sector_size)
{
	size_t len = n * sector_size;
	int err;

	for (size_t i = 0; i < n; i++)
		counters_of_sector(c->mask + i * sector_size, c->ivs + i * c->block, c->block,
			sector_size);
	err = cz_block_run(&c->data, c->mask, c->mask, len, true);
	if (!err)
		xor_blocks(dst, src, c->mask, len);
	return err;
}

static int cbc_encrypt(
	struct cz_cipher *c, uint8_t *dst, const uint8_t *src, size_t n, size_t sector_size)
{
	size_t block = c->block;
	uint8_t *chain = c->ivs;

	for (size_t at = 0; at < sector_size; at += block) {
		int err;

		for (size_t i = 0; i < n; i++)
			xor_blocks(chain + i * block, chain + i * block,
				src + i * sector_size + at, block);
		err = cz_block_run(&c->data, chain, chain, n * block, true);
		if (err)
			return err;
		for (size_t i = 0; i < n; i++)
			memcpy(dst + i * sector_size + at, chain + i * block, block);
	}
	return 0;
}

static int cbc_decrypt(
	struct cz_cipher *c, uint8_t *dst, const uint8_t *src, size_t n, size_t sector_size)
{
	size_t block = c->block, len = n * sector_size;
	int err;

	memcpy(c->mask + block, src, len - block);
	for (size_t i = 0; i < n; i++)
		memcpy(c->mask + i * sector_size, c->ivs + i * block, block);
	err = cz_block_run(&c->data, dst, src, len, false);
	if (!err)
		xor_blocks(dst, dst, c->mask, len);
	return err;
}

static int run_group(struct cz_cipher *c, uint64_t sector, size_t sector_size, uint8_t *dst,
	const uint8_t *src, size_t n, bool encrypt)
{
	int err;

	if (c->mode == CZ_ECB)
		return cz_block_run(&c->data, dst, src, n * sector_size, encrypt);
	err = make_ivs(c, sector, sector_size, n);
	if (err)
		return err;
	if (c->mode == CZ_XTS)
		return xts(c, dst, src, n, sector_size, encrypt);
	if (c->mode == CZ_CTR)
		return ctr(c, dst, src, n, sector_size);
	return encrypt ? cbc_encrypt(c, dst, src, n, sector_size)
		       : cbc_decrypt(c, dst, src, n, sector_size);
}

int cz_cipher_run(struct cz_cipher *c, uint64_t sector, size_t sector_size, void *dst,
	const void *src, size_t len, bool encrypt)
{
	const uint8_t *s = src;
	uint8_t *d = dst;
	size_t most;

	if (sector_size < c->block || sector_size > GROUP || sector_size % c->block ||
		len % sector_size)
		return -THR_EINVAL;
	if (c->iv == CZ_IV_BENBI && !thr_is_pow2(sector_size))
		return -THR_EINVAL;
	most = GROUP / sector_size;
	while (len) {
		size_t n = THR_MIN(len / sector_size, most);
		int err = run_group(c, sector, sector_size, d, s, n, encrypt);

		if (err)
			return err;
		sector += n;
		d += n * sector_size;
		s += n * sector_size;
		len -= n * sector_size;
	}
	return 0;
}

/* ---- making one ---------------------------------------------------------------- */

/* The key of the IVs' cipher is a digest of the whole key. */
static int set_essiv(
	struct cz_cipher *c, const struct cz_cipher_spec *s, const void *key, size_t key_len)
{
	const char *family = cz_cipher_row(s->cipher)->family;
	int id = cz_cipher_of_family(family, cz_digest_size(s->iv_hash));
	uint8_t salt[CZ_DIGEST_MAX];
	int err;

	if (id < 0)
		return id;
	err = cz_digest(s->iv_hash, key, key_len, salt);
	if (err)
		return err;
	err = cz_block_init(&c->essiv, c->mem, &c->ossl, (enum cz_cipher_id)id, salt, false);
	c->has_essiv = !err;
	cz_wipe(salt, sizeof(salt));
	return err;
}

static int set_keys(
	struct cz_cipher *c, const struct cz_cipher_spec *s, const void *key, size_t key_len)
{
	int err = cz_block_init(&c->data, c->mem, &c->ossl, s->cipher, key, true);

	if (!err && s->mode == CZ_XTS)
		err = cz_block_init(&c->tweak, c->mem, &c->ossl, s->cipher,
			(const uint8_t *)key + key_len / 2, false);
	if (!err && s->mode != CZ_ECB && s->iv == CZ_IV_ESSIV)
		err = set_essiv(c, s, key, key_len);
	return err;
}

int cz_cipher_new(struct cz_cipher **out, const struct thr_alloc *mem,
	const struct cz_cipher_spec *s, const void *key, size_t key_len)
{
	struct cz_cipher *c;
	int err;

	if (!key_len || key_len != cz_cipher_key_len(s))
		return -THR_EINVAL;
	c = thr_zget(mem, sizeof(*c));
	if (!c)
		return -THR_ENOMEM;
	c->mem = mem;
	c->mode = s->mode;
	c->iv = s->iv;
	c->block = cz_cipher_row(s->cipher)->block;
	err = set_keys(c, s, key, key_len);
	if (err)
		cz_cipher_free(c);
	else
		*out = c;
	return err;
}

void cz_cipher_free(struct cz_cipher *c)
{
	const struct thr_alloc *mem;

	if (!c)
		return;
	mem = c->mem;
	cz_block_fini(&c->data, mem);
	cz_block_fini(&c->tweak, mem);
	cz_block_fini(&c->essiv, mem);
	cz_ossl_fini(&c->ossl);
	cz_wipe(c, sizeof(*c));
	thr_put(mem, c, sizeof(*c));
}
