/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/luks/amend.c - key slots added and erased.
 *
 *	state=active    puts new-secret into the slot keyslot=, or the first that is off
 *	state=inactive  erases the slot keyslot=, or all that old-secret opens
 *
 * The last slot that is on, and one that is to be overwritten, want force.
 */
#include "fmt/drivers.h"
#include "fmt/luks/luks.h"

struct amend {
	const struct luks_area *a;
	struct luks_header *h;
	const uint8_t *key;
	const struct fmt_amend *m;
	const char *prefix;
	struct cz_rng rng;
	int slot; /* -1: none is named */
	const struct fmt_secret *fresh, *old;
	struct blk_err *err;
};

static int take_secret(struct amend *x, const char *key, const struct fmt_secret **out)
{
	const char *id = luks_opt(x->m->opts, x->prefix, key);

	*out = id ? fmt_secret(x->m->secrets, id) : NULL;
	return id && !*out ? blk_fail_str(x->err, -THR_EINVAL, BLK_E_NO_SECRET, id) : 0;
}

static int take_slot(struct amend *x)
{
	const char *s = luks_opt(x->m->opts, x->prefix, "keyslot");

	x->slot = -1;
	if (!s)
		return 0;
	if (*s < '0' || *s > '7' || s[1])
		return blk_fail(x->err, -THR_EINVAL, BLK_E_LUKS_SLOT_NUMBER, 0, 0);
	x->slot = *s - '0';
	return 0;
}

static unsigned active(const struct luks_header *h)
{
	unsigned n = 0;

	for (unsigned i = 0; i < LUKS_SLOTS; i++)
		n += h->slot[i].active;
	return n;
}

static int sys(struct amend *x, int code)
{
	return code ? blk_fail(x->err, code, BLK_E_SYS, 0, 0) : 0;
}

/* ---- on ---- */

static int choose(struct amend *x)
{
	if (x->slot >= 0 && x->h->slot[x->slot].active && !x->m->force)
		return blk_fail(x->err, -THR_EBUSY, BLK_E_LUKS_IN_USE, 0, (uint64_t)x->slot);
	for (unsigned i = 0; x->slot < 0 && i < LUKS_SLOTS; i++)
		if (!x->h->slot[i].active)
			x->slot = (int)i;
	return x->slot < 0 ? blk_fail(x->err, -THR_ENOSPC, BLK_E_LUKS_FULL, 0, 0) : 0;
}

/* The old password must be one, if it is given. */
static int check_old(struct amend *x)
{
	uint8_t key[LUKS_KEY_MAX];
	unsigned slot;
	int ret;

	if (!x->old)
		return 0;
	ret = luks_unlock(x->a, x->h, x->old, key, &slot, x->m->mem, x->err);
	cz_wipe(key, sizeof(key));
	return ret;
}

static int switch_on(struct amend *x)
{
	uint32_t iterations;
	unsigned ms;
	int ret;

	if (!x->fresh)
		return blk_fail_str(x->err, -THR_EINVAL, BLK_E_NEED_OPTION, "new-secret");
	ret = luks_opt_ms(x->m->opts, x->prefix, &ms, x->err);
	if (!ret)
		ret = check_old(x);
	if (!ret)
		ret = choose(x);
	if (ret)
		return ret;
	ret = luks_count(x->h, x->h->key_len, ms, x->m->seed, &iterations);
	if (!ret && x->h->slot[x->slot].active)
		ret = luks_slot_off(x->a, x->h, (unsigned)x->slot, &x->rng, x->m->mem);
	if (!ret)
		ret = luks_slot_on(x->a, x->h, (unsigned)x->slot, x->fresh, x->key, iterations,
			&x->rng, x->m->mem);
	return sys(x, ret);
}

/* ---- off ---- */

/* Bits of the slots that are meant. */
static int find_old(struct amend *x, unsigned *slots)
{
	uint8_t key[LUKS_KEY_MAX];
	int ret = 0;

	*slots = 0;
	for (unsigned i = 0; !ret && i < LUKS_SLOTS; i++) {
		if (!x->h->slot[i].active || (x->slot >= 0 && (unsigned)x->slot != i))
			continue;
		ret = luks_slot_try(x->a, x->h, i, x->old, key, x->m->mem);
		if (!ret)
			*slots |= 1u << i;
		if (ret == -THR_EACCES)
			ret = 0;
	}
	cz_wipe(key, sizeof(key));
	if (ret)
		return sys(x, ret);
	return *slots ? 0 : blk_fail_str(x->err, -THR_EACCES, BLK_E_LUKS_NO_MATCH, x->old->id);
}

static int choose_off(struct amend *x, unsigned *slots)
{
	if (x->fresh || luks_opt(x->m->opts, x->prefix, "iter-time"))
		return blk_fail_str(x->err, -THR_EINVAL, BLK_E_LUKS_WITHOUT,
			x->fresh ? "new-secret" : "iter-time");
	if (x->slot < 0 && !x->old)
		return blk_fail_str(x->err, -THR_EINVAL, BLK_E_NEED_OPTION, "old-secret");
	*slots = 1u << (x->slot & 7);
	if (x->slot >= 0 && !x->h->slot[x->slot].active)
		return blk_fail(x->err, -THR_EINVAL, BLK_E_LUKS_IS_OFF, 0, (uint64_t)x->slot);
	return x->old ? find_old(x, slots) : 0;
}

static int switch_off(struct amend *x)
{
	unsigned slots = 0;
	int ret = choose_off(x, &slots);

	if (ret)
		return ret;
	if ((unsigned)__builtin_popcount(slots) == active(x->h) && !x->m->force)
		return blk_fail(x->err, -THR_EBUSY, BLK_E_LUKS_LAST, 0, 0);
	for (unsigned i = 0; !ret && i < LUKS_SLOTS; i++)
		if (slots >> i & 1)
			ret = luks_slot_off(x->a, x->h, i, &x->rng, x->m->mem);
	return sys(x, ret);
}

int luks_amend(const struct luks_area *a, struct luks_header *h, const uint8_t *key,
	const struct fmt_amend *m, const char *prefix, struct blk_err *err)
{
	struct amend x = {.a = a, .h = h, .key = key, .m = m, .prefix = prefix, .err = err};
	const char *state = luks_opt(m->opts, prefix, "state");
	int ret = take_slot(&x);

	if (!ret)
		ret = take_secret(&x, "new-secret", &x.fresh);
	if (!ret)
		ret = take_secret(&x, "old-secret", &x.old);
	if (ret)
		return ret;
	if (!state)
		return blk_fail_str(err, -THR_EINVAL, BLK_E_NEED_OPTION, "state");
	ret = cz_rng_init(&x.rng, m->seed, "luks amend");
	if (ret)
		return sys(&x, ret);
	if (fmt_streq(state, "active"))
		ret = switch_on(&x);
	else if (fmt_streq(state, "inactive"))
		ret = switch_off(&x);
	else
		ret = blk_fail_str(err, -THR_EINVAL, BLK_E_BAD_VALUE, "state");
	cz_wipe(&x.rng, sizeof(x.rng));
	return ret;
}
