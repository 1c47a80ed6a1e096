/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/luks/setup.c - a new LUKS header, as options want it.
 *
 * Layout: the header, then from LUKS_ALIGN on the key material of the eight slots, each
 * aligned to that, then the payload. The header is written last: until then nothing
 * takes what is there for a volume.
 */
#include "fmt/drivers.h"
#include "fmt/luks/luks.h"

#define MS_DEFAULT 2000u
#define MS_MAX     600000u

/* The digest of the master key gets this part of the time. */
#define DIGEST_PART 8u

const char *luks_opt(const struct blk_opts *o, const char *prefix, const char *key)
{
	char name[64];
	size_t n = strlen(prefix), len = strlen(key) + 1;

	THR_ASSERT(n + len <= sizeof(name));
	memcpy(name, prefix, n);
	memcpy(name + n, key, len);
	return blk_opt(o, name);
}

int luks_opt_ms(const struct blk_opts *o, const char *prefix, unsigned *ms, struct blk_err *err)
{
	const char *s = luks_opt(o, prefix, "iter-time");
	uint64_t v = MS_DEFAULT;

	if (s && (blk_parse_size(s, &v) || !v || v > MS_MAX))
		return blk_fail_str(err, -THR_EINVAL, BLK_E_BAD_VALUE, "iter-time");
	*ms = (unsigned)v;
	return 0;
}

/* The number of a name, or @def where the option is not given. */
static int take_name(const struct fmt_create *c, const char *prefix, const char *key,
	int (*find)(const char *name), int def, int *out, struct blk_err *err)
{
	const char *val = luks_opt(c->opts, prefix, key);

	*out = val ? find(val) : def;
	return *out < 0 ? blk_fail_str(err, -THR_EINVAL, BLK_E_BAD_VALUE, key) : 0;
}

static int take_algorithms(struct luks_setup *s, const struct fmt_create *c, const char *prefix,
	struct blk_err *err)
{
	struct cz_cipher_spec *p = &s->h.spec;
	int cipher, mode, iv, iv_hash, hash;
	int ret = take_name(c, prefix, "cipher-alg", cz_cipher_find, CZ_AES_256, &cipher, err);

	if (!ret)
		ret = take_name(c, prefix, "cipher-mode", cz_mode_find, CZ_XTS, &mode, err);
	if (!ret)
		ret = take_name(c, prefix, "ivgen-alg", cz_iv_find,
			mode == CZ_ECB ? CZ_IV_NONE : CZ_IV_PLAIN64, &iv, err);
	if (!ret)
		ret = take_name(c, prefix, "hash-alg", cz_digest_find, CZ_SHA256, &hash, err);
	if (!ret)
		ret = take_name(
			c, prefix, "ivgen-hash-alg", cz_digest_find, CZ_SHA256, &iv_hash, err);
	if (ret)
		return ret;
	p->cipher = (enum cz_cipher_id)cipher;
	p->mode = (enum cz_mode)mode;
	p->iv = (enum cz_iv)iv;
	p->iv_hash = (enum cz_digest_id)iv_hash;
	s->h.hash_id = (enum cz_digest_id)hash;
	s->h.key_len = (uint32_t)cz_cipher_key_len(p);
	if (!s->h.key_len)
		return blk_fail(err, -THR_EINVAL, BLK_E_LUKS_NO_FIT, 0, 0);
	return 0;
}

static void lay_out(struct luks_header *h)
{
	uint64_t each = thr_align_up(luks_material(h->key_len), LUKS_ALIGN);

	for (unsigned i = 0; i < LUKS_SLOTS; i++)
		h->slot[i].sector = (uint32_t)((LUKS_ALIGN + i * each) / LUKS_SECTOR);
	h->payload = (uint32_t)((LUKS_ALIGN + LUKS_SLOTS * each) / LUKS_SECTOR);
}

int luks_setup_options(struct luks_setup *s, const struct fmt_create *c, const char *prefix,
	struct blk_err *err)
{
	const char *id = luks_opt(c->opts, prefix, "key-secret");
	struct cz_cipher *probe;
	uint8_t key[LUKS_KEY_MAX];
	int ret;

	memset(s, 0, sizeof(*s));
	ret = take_algorithms(s, c, prefix, err);
	if (!ret)
		ret = luks_opt_ms(c->opts, prefix, &s->ms, err);
	if (ret)
		return ret;
	s->pass = id ? fmt_secret(c->secrets, id) : NULL;
	if (!id && *prefix)
		return blk_fail_str(
			err, -THR_EINVAL, BLK_E_CIPHER_SECRET, "encrypt.key-secret");
	if (!id)
		return blk_fail_str(err, -THR_EINVAL, BLK_E_CIPHER_SECRET, "key-secret");
	if (!s->pass)
		return blk_fail_str(err, -THR_EINVAL, BLK_E_NO_SECRET, id);
	memcpy(s->h.hash, cz_digest_name(s->h.hash_id), strlen(cz_digest_name(s->h.hash_id)));
	cz_cipher_format(&s->h.spec, s->h.cipher, s->h.mode);
	/* It has none, and qemu-img wants one. */
	if (s->h.spec.mode == CZ_ECB)
		memcpy(s->h.mode, "ecb-plain64", 12);
	lay_out(&s->h);
	for (unsigned i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)i; /* halves that differ */
	ret = cz_cipher_new(&probe, c->mem, &s->h.spec, key, s->h.key_len);
	if (ret)
		return blk_fail_str(err, ret, BLK_E_LUKS_CIPHER, s->h.cipher);
	cz_cipher_free(probe);
	return 0;
}

static int make_uuid(char *to, struct cz_rng *rng)
{
	static const char digits[] = "0123456789abcdef";
	uint8_t b[16];
	int err = cz_rng_get(rng, b, sizeof(b));

	b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
	b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
	for (unsigned i = 0; i < sizeof(b); i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*to++ = '-';
		*to++ = digits[b[i] >> 4];
		*to++ = digits[b[i] & 15];
	}
	return err;
}

static int make_keys(struct luks_setup *s, bool fixed, struct cz_rng *rng, uint8_t *key,
	uint32_t *iterations)
{
	struct luks_header *h = &s->h;
	int err = cz_rng_get(rng, key, h->key_len);

	if (!err)
		err = cz_rng_get(rng, h->salt, LUKS_SALT);
	if (!err)
		err = make_uuid(h->uuid, rng);
	if (!err)
		err = luks_count(h, LUKS_DIGEST, s->ms, fixed, &h->iterations);
	h->iterations = THR_MAX(h->iterations / DIGEST_PART, LUKS_ITER_MIN);
	if (!err)
		err = luks_derive(
			h, key, h->key_len, h->salt, h->iterations, h->digest, LUKS_DIGEST);
	if (!err)
		err = luks_count(h, h->key_len, s->ms, fixed, iterations);
	return err;
}

/* Slots that are off have no content on the disk: it may be what lay there before. */
static int write_header(const struct luks_area *a, const struct luks_header *h)
{
	uint8_t raw[LUKS_HEADER];
	int err;

	luks_header_pack(h, raw);
	err = a->write(a, 0, raw, sizeof(raw));
	return err ? err : a->flush(a);
}

int luks_setup_write(struct luks_setup *s, const struct luks_area *a, const char *seed,
	const struct thr_alloc *mem, struct blk_err *err)
{
	uint8_t key[LUKS_KEY_MAX];
	uint32_t iterations;
	struct cz_rng rng;
	int ret = cz_rng_init(&rng, seed, "luks create");

	if (!ret)
		ret = make_keys(s, seed, &rng, key, &iterations);
	if (!ret)
		ret = luks_slot_on(a, &s->h, 0, s->pass, key, iterations, &rng, mem);
	if (!ret)
		ret = write_header(a, &s->h);
	cz_wipe(key, sizeof(key));
	cz_wipe(&rng, sizeof(rng));
	if (ret == -THR_ENOTSUP)
		return blk_fail_str(err, ret, BLK_E_LUKS_HASH, s->h.hash);
	return ret ? blk_fail(err, ret, BLK_E_SYS, 0, 0) : 0;
}
