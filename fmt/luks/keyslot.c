/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/luks/keyslot.c - key slots. Each has the master key, split (af.c) and encrypted
 * under a key that PBKDF2 makes of a password; a digest of the master key in the header
 * tells whether a password was right.
 *
 * A cut at any time leaves every other slot as it was, and the slot that changes on or
 * off: its material is durable before it goes on, and it is durably off before its
 * material goes. The state is one number within one sector.
 */
#include "fmt/barrier.h"
#include "fmt/luks/luks.h"

/* ---- what takes long ---- */

struct derive {
	const struct luks_header *h;
	const void *pass;
	size_t pass_len;
	const uint8_t *salt;
	uint32_t iterations;
	void *out;
	size_t len;
};

static int derive(void *arg)
{
	struct derive *d = arg;

	return cz_pbkdf2(d->h->hash_id, d->pass, d->pass_len, d->salt, LUKS_SALT, d->iterations,
		d->out, d->len);
}

int luks_derive(const struct luks_header *h, const void *pass, size_t pass_len,
	const uint8_t *salt, uint32_t iterations, void *out, size_t len)
{
	struct derive d = {h, pass, pass_len, salt, iterations, out, len};

	return thr_offload(derive, &d);
}

struct count {
	enum cz_digest_id hash;
	size_t len;
	unsigned ms;
	uint32_t n;
};

static int count(void *arg)
{
	struct count *c = arg;

	return cz_pbkdf2_count(c->hash, c->len, c->ms, &c->n);
}

/* So many a millisecond is what machines do when the number is not to depend on them. */
#define FIXED_RATE 1000u

int luks_count(
	const struct luks_header *h, size_t len, unsigned ms, bool fixed, uint32_t *iterations)
{
	struct count c = {.hash = h->hash_id, .len = len, .ms = ms};
	uint64_t n = (uint64_t)ms * FIXED_RATE;
	int err = fixed ? 0 : thr_offload(count, &c);

	if (err)
		return err;
	if (!fixed)
		n = c.n;
	*iterations = (uint32_t)THR_MIN(THR_MAX(n, LUKS_ITER_MIN), LUKS_ITER_MAX);
	return 0;
}

/* ---- key material ---- */

struct crypting {
	const struct luks_header *h;
	const uint8_t *key;
	uint8_t *buf;
	bool encrypt;
	const struct thr_alloc *mem;
};

static int run_cipher(void *arg)
{
	struct crypting *c = arg;
	struct cz_cipher *x;
	int err = cz_cipher_new(&x, c->mem, &c->h->spec, c->key, c->h->key_len);

	if (err)
		return err;
	err = cz_cipher_run(
		x, 0, LUKS_SECTOR, c->buf, c->buf, luks_material(c->h->key_len), c->encrypt);
	cz_cipher_free(x);
	return err;
}

struct merging {
	const struct luks_header *h;
	uint8_t *split, *key;
	struct cz_rng *rng; /* NULL: merge */
	const struct thr_alloc *mem;
};

static int merge(void *arg)
{
	struct merging *m = arg;

	return m->rng ? luks_af_split(
				m->h->hash_id, m->key, m->h->key_len, m->split, m->rng, m->mem)
		      : luks_af_merge(m->h->hash_id, m->split, m->h->key_len, m->key, m->mem);
}

/* 0 where @key is the master key. */
static int check_key(const struct luks_header *h, const uint8_t *key)
{
	uint8_t digest[LUKS_DIGEST];
	int err = luks_derive(h, key, h->key_len, h->salt, h->iterations, digest, LUKS_DIGEST);

	if (!err && !cz_same(digest, h->digest, LUKS_DIGEST))
		err = -THR_EACCES;
	return err;
}

int luks_slot_try(const struct luks_area *a, const struct luks_header *h, unsigned slot,
	const struct fmt_secret *pass, uint8_t *key, const struct thr_alloc *mem)
{
	const struct luks_slot *s = &h->slot[slot];
	uint32_t bytes = luks_material(h->key_len);
	uint8_t *buf = thr_get(mem, bytes, 512);
	uint8_t own[LUKS_KEY_MAX];
	struct crypting c = {h, own, buf, false, mem};
	struct merging m = {h, buf, key, NULL, mem};
	int err = buf ? 0 : -THR_ENOMEM;

	if (!err)
		err = a->read(a, (uint64_t)s->sector * LUKS_SECTOR, buf, bytes);
	if (!err)
		err = luks_derive(
			h, pass->data, pass->len, s->salt, s->iterations, own, h->key_len);
	if (!err)
		err = thr_offload(run_cipher, &c);
	if (!err)
		err = thr_offload(merge, &m);
	if (!err)
		err = check_key(h, key);
	if (err)
		cz_wipe(key, h->key_len);
	cz_wipe(own, sizeof(own));
	if (buf)
		cz_wipe(buf, bytes);
	thr_put(mem, buf, bytes);
	return err;
}

int luks_unlock(const struct luks_area *a, const struct luks_header *h,
	const struct fmt_secret *pass, uint8_t *key, unsigned *slot,
	const struct thr_alloc *mem, struct blk_err *err)
{
	bool any = false;

	for (unsigned i = 0; i < LUKS_SLOTS; i++) {
		int ret;

		if (!h->slot[i].active)
			continue;
		any = true;
		ret = luks_slot_try(a, h, i, pass, key, mem);
		*slot = i;
		if (!ret)
			return 0;
		if (ret == -THR_ENOTSUP)
			return blk_fail_str(err, ret, BLK_E_LUKS_CIPHER, h->cipher);
		if (ret != -THR_EACCES)
			return blk_fail(err, ret, BLK_E_SYS, 0, 0);
	}
	return blk_fail(err, -THR_EACCES, any ? BLK_E_LUKS_PASSWORD : BLK_E_LUKS_NO_SLOT, 0, 0);
}

/* ---- on and off ---- */

static int write_material(const struct luks_area *a, const struct luks_header *h,
	const struct luks_slot *s, const struct fmt_secret *pass, const uint8_t *key,
	struct cz_rng *rng, const struct thr_alloc *mem)
{
	uint32_t bytes = luks_material(h->key_len);
	uint8_t *buf = thr_zget(mem, bytes);
	uint8_t own[LUKS_KEY_MAX], master[LUKS_KEY_MAX];
	struct crypting c = {h, own, buf, true, mem};
	struct merging m = {h, buf, master, rng, mem};
	int err = buf ? 0 : -THR_ENOMEM;

	memcpy(master, key, h->key_len);
	if (!err)
		err = luks_derive(
			h, pass->data, pass->len, s->salt, s->iterations, own, h->key_len);
	if (!err)
		err = thr_offload(merge, &m);
	if (!err)
		err = thr_offload(run_cipher, &c);
	if (!err)
		err = a->write(a, (uint64_t)s->sector * LUKS_SECTOR, buf, bytes);
	cz_wipe(own, sizeof(own));
	cz_wipe(master, sizeof(master));
	if (buf)
		cz_wipe(buf, bytes);
	thr_put(mem, buf, bytes);
	return err;
}

int luks_slot_on(const struct luks_area *a, struct luks_header *h, unsigned slot,
	const struct fmt_secret *pass, const uint8_t *key, uint32_t iterations,
	struct cz_rng *rng, const struct thr_alloc *mem)
{
	struct luks_slot *s = &h->slot[slot];
	int err = cz_rng_get(rng, s->salt, LUKS_SALT);

	s->iterations = iterations;
	s->active = false;
	if (!err)
		err = write_material(a, h, s, pass, key, rng, mem);
	if (!err)
		err = luks_slot_save(a, h, slot);
	if (!err && FMT_BARRIER(KEY_SLOT))
		err = a->flush(a);
	if (!err)
		err = luks_slot_switch(a, slot, true);
	if (!err)
		err = a->flush(a);
	s->active = !err;
	return err;
}

/* Once: what is written over on a disk that moves sectors about stays somewhere however
 * often it is written, which is what the splitting is for. */
static int scrub(const struct luks_area *a, const struct luks_header *h, unsigned slot,
	struct cz_rng *rng, const struct thr_alloc *mem)
{
	uint32_t bytes = luks_material(h->key_len);
	uint8_t *buf = thr_get(mem, bytes, 512);
	int err = buf ? cz_rng_get(rng, buf, bytes) : -THR_ENOMEM;

	if (!err)
		err = a->write(a, (uint64_t)h->slot[slot].sector * LUKS_SECTOR, buf, bytes);
	thr_put(mem, buf, bytes);
	return err;
}

int luks_slot_off(const struct luks_area *a, struct luks_header *h, unsigned slot,
	struct cz_rng *rng, const struct thr_alloc *mem)
{
	struct luks_slot *s = &h->slot[slot];
	int err = luks_slot_switch(a, slot, false);

	if (!err && FMT_BARRIER(KEY_SLOT))
		err = a->flush(a);
	if (err)
		return err;
	s->active = false;
	s->iterations = 0;
	memset(s->salt, 0, LUKS_SALT);
	err = scrub(a, h, slot, rng, mem);
	if (!err)
		err = luks_slot_save(a, h, slot);
	if (!err)
		err = a->flush(a);
	return err;
}
