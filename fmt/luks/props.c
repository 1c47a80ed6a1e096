/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/luks/props.c - what info says of a LUKS header. The order is qemu-img's.
 */
#include "fmt/luks/luks.h"

static void put_slot(const struct luks_slot *s, struct fmt_sink *k)
{
	k->open(k, NULL, false);
	k->flag(k, "active", s->active);
	if (s->active)
		k->num(k, "iters", s->iterations);
	k->num(k, "key-offset", (uint64_t)s->sector * LUKS_SECTOR);
	if (s->active)
		k->num(k, "stripes", LUKS_STRIPES);
	k->close(k);
}

/* ECB has no use for what its string may name. */
static void put_iv(const struct luks_header *h, struct fmt_sink *s)
{
	const char *dash = h->spec.iv == CZ_IV_NONE ? strchr(h->mode, '-') : NULL;

	s->str(s, "ivgen-alg", dash ? dash + 1 : cz_iv_name(h->spec.iv));
}

void luks_props(const struct luks_header *h, struct fmt_sink *s, bool qcow2)
{
	put_iv(h, s);
	s->str(s, "hash-alg", cz_digest_name(h->hash_id));
	s->str(s, "cipher-alg", cz_cipher_name(h->spec.cipher));
	s->str(s, "uuid", h->uuid);
	if (h->spec.iv == CZ_IV_ESSIV)
		s->str(s, "ivgen-hash-alg", cz_digest_name(h->spec.iv_hash));
	if (qcow2)
		s->str(s, "format", "luks");
	s->str(s, "cipher-mode", cz_mode_name(h->spec.mode));
	s->open(s, "slots", true);
	for (unsigned i = 0; i < LUKS_SLOTS; i++)
		put_slot(&h->slot[i], s);
	s->close(s);
	s->num(s, "payload-offset", (uint64_t)h->payload * LUKS_SECTOR);
	s->num(s, "master-key-iters", h->iterations);
}
