/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cz/cipher_spec.c - the tables of ciphers, modes and IV generators, and the two
 * strings by which a LUKS header names them (LUKS1 on-disk format specification,
 * section "Registry"; the strings are those of dm-crypt).
 */
#include "cz/private.h"

/* Those of our own, where this build has them. */
#ifdef CONFIG_CZ_SERPENT
#define SERPENT &cz_serpent
#else
#define SERPENT NULL
#endif
#ifdef CONFIG_CZ_TWOFISH
#define TWOFISH &cz_twofish
#else
#define TWOFISH NULL
#endif
#ifdef CONFIG_CZ_CAST6
#define CAST6 &cz_cast6
#else
#define CAST6 NULL
#endif

static const struct cz_cipher_row rows[] = {
	[CZ_AES_128] = {"aes-128", "aes", "AES-128-ECB", NULL, 16, 16},
	[CZ_AES_192] = {"aes-192", "aes", "AES-192-ECB", NULL, 24, 16},
	[CZ_AES_256] = {"aes-256", "aes", "AES-256-ECB", NULL, 32, 16},
	[CZ_CAMELLIA_128] = {"camellia-128", "camellia", "CAMELLIA-128-ECB", NULL, 16, 16},
	[CZ_CAMELLIA_192] = {"camellia-192", "camellia", "CAMELLIA-192-ECB", NULL, 24, 16},
	[CZ_CAMELLIA_256] = {"camellia-256", "camellia", "CAMELLIA-256-ECB", NULL, 32, 16},
	[CZ_SM4] = {"sm4", "sm4", "SM4-ECB", NULL, 16, 16},
	[CZ_CAST5_128] = {"cast5-128", "cast5", "CAST5-ECB", NULL, 16, 8},
	[CZ_SERPENT_128] = {"serpent-128", "serpent", NULL, SERPENT, 16, 16},
	[CZ_SERPENT_192] = {"serpent-192", "serpent", NULL, SERPENT, 24, 16},
	[CZ_SERPENT_256] = {"serpent-256", "serpent", NULL, SERPENT, 32, 16},
	[CZ_TWOFISH_128] = {"twofish-128", "twofish", NULL, TWOFISH, 16, 16},
	[CZ_TWOFISH_192] = {"twofish-192", "twofish", NULL, TWOFISH, 24, 16},
	[CZ_TWOFISH_256] = {"twofish-256", "twofish", NULL, TWOFISH, 32, 16},
	[CZ_CAST6_128] = {"cast6-128", "cast6", NULL, CAST6, 16, 16},
	[CZ_CAST6_192] = {"cast6-192", "cast6", NULL, CAST6, 24, 16},
	[CZ_CAST6_256] = {"cast6-256", "cast6", NULL, CAST6, 32, 16},
};

static const char *const modes[] = {
	[CZ_ECB] = "ecb",
	[CZ_CBC] = "cbc",
	[CZ_CTR] = "ctr",
	[CZ_XTS] = "xts",
};

static const char *const ivs[] = {
	[CZ_IV_NONE] = "none",
	[CZ_IV_NULL] = "null",
	[CZ_IV_PLAIN] = "plain",
	[CZ_IV_PLAIN64] = "plain64",
	[CZ_IV_PLAIN64BE] = "plain64be",
	[CZ_IV_ESSIV] = "essiv",
	[CZ_IV_BENBI] = "benbi",
};

/* The first @len bytes of @s are one of the names. */
static int find(const char *const *names, unsigned n, const char *s, size_t len)
{
	for (unsigned i = 0; i < n; i++) {
		if (strlen(names[i]) == len && !memcmp(names[i], s, len))
			return (int)i;
	}
	return -THR_ENOENT;
}

const struct cz_cipher_row *cz_cipher_row(enum cz_cipher_id id)
{
	return (unsigned)id < THR_ARRAY_SIZE(rows) ? &rows[id] : NULL;
}

int cz_cipher_of_family(const char *family, size_t key_len)
{
	int err = -THR_ENOENT;

	for (unsigned i = 0; i < THR_ARRAY_SIZE(rows); i++) {
		if (strcmp(rows[i].family, family))
			continue;
		if (rows[i].key_len == key_len)
			return (int)i;
		err = -THR_EINVAL;
	}
	return err;
}

int cz_cipher_find(const char *name)
{
	for (unsigned i = 0; i < THR_ARRAY_SIZE(rows); i++) {
		if (!strcmp(rows[i].name, name))
			return (int)i;
	}
	return -THR_ENOENT;
}

const char *cz_cipher_name(enum cz_cipher_id id)
{
	return (unsigned)id < THR_ARRAY_SIZE(rows) ? rows[id].name : NULL;
}

const char *cz_cipher_symbol(enum cz_cipher_id id)
{
	if ((unsigned)id >= THR_ARRAY_SIZE(rows))
		return NULL;
	if (id >= CZ_CAST6_128)
		return "CONFIG_CZ_CAST6";
	if (id >= CZ_TWOFISH_128)
		return "CONFIG_CZ_TWOFISH";
	return id >= CZ_SERPENT_128 ? "CONFIG_CZ_SERPENT" : "CONFIG_CZ_CRYPTO";
}

int cz_mode_find(const char *name)
{
	return find(modes, THR_ARRAY_SIZE(modes), name, strlen(name));
}

const char *cz_mode_name(enum cz_mode mode)
{
	return (unsigned)mode < THR_ARRAY_SIZE(modes) ? modes[mode] : NULL;
}

int cz_iv_find(const char *name)
{
	return find(ivs, THR_ARRAY_SIZE(ivs), name, strlen(name));
}

const char *cz_iv_name(enum cz_iv iv)
{
	return (unsigned)iv < THR_ARRAY_SIZE(ivs) ? ivs[iv] : NULL;
}

/* ECB takes an IV generator in its string, and has no use for it. */
static bool goes_together(const struct cz_cipher_spec *s)
{
	const struct cz_cipher_row *row = cz_cipher_row(s->cipher);

	if (!row || !cz_mode_name(s->mode) || !cz_iv_name(s->iv))
		return false;
	if (s->mode == CZ_ECB)
		return s->iv != CZ_IV_ESSIV || cz_digest_name(s->iv_hash);
	if (s->mode == CZ_XTS && row->block != 16)
		return false;
	if (s->iv == CZ_IV_ESSIV)
		return cz_cipher_of_family(row->family, cz_digest_size(s->iv_hash)) >= 0;
	return s->iv != CZ_IV_NONE;
}

size_t cz_cipher_key_len(const struct cz_cipher_spec *s)
{
	if (!goes_together(s))
		return 0;
	return (size_t)rows[s->cipher].key_len << (s->mode == CZ_XTS);
}

/* @text is MODE, MODE-IV or MODE-IV:DIGEST. */
static int parse_mode(struct cz_cipher_spec *s, const char *text)
{
	size_t n = strcspn(text, "-");
	int id = find(modes, THR_ARRAY_SIZE(modes), text, n);

	if (id < 0)
		return id;
	s->mode = (enum cz_mode)id;
	text += n;
	if (!*text)
		return 0;
	text++;
	n = strcspn(text, ":");
	id = find(ivs, THR_ARRAY_SIZE(ivs), text, n);
	if (id < 0)
		return id;
	s->iv = (enum cz_iv)id;
	text += n;
	if ((s->iv == CZ_IV_ESSIV) != (*text == ':') || s->iv == CZ_IV_NONE)
		return -THR_EINVAL;
	if (!*text)
		return 0;
	id = cz_digest_find(text + 1);
	if (id < 0)
		return id;
	s->iv_hash = (enum cz_digest_id)id;
	return 0;
}

int cz_cipher_parse(
	struct cz_cipher_spec *s, const char *cipher, const char *mode, size_t key_len)
{
	int id;

	memset(s, 0, sizeof(*s));
	id = parse_mode(s, mode);
	if (id < 0)
		return id;
	if (s->mode == CZ_XTS && key_len % 2)
		return -THR_EINVAL;
	id = cz_cipher_of_family(cipher, s->mode == CZ_XTS ? key_len / 2 : key_len);
	if (id < 0)
		return id;
	s->cipher = (enum cz_cipher_id)id;
	return goes_together(s) ? 0 : -THR_EINVAL;
}

static char *append(char *to, const char *s)
{
	size_t n = strlen(s);

	memcpy(to, s, n + 1);
	return to + n;
}

void cz_cipher_format(const struct cz_cipher_spec *s, char *cipher, char *mode)
{
	THR_ASSERT(goes_together(s));
	append(cipher, rows[s->cipher].family);
	mode = append(mode, modes[s->mode]);
	if (s->iv == CZ_IV_NONE)
		return;
	mode = append(mode, "-");
	mode = append(mode, ivs[s->iv]);
	if (s->iv != CZ_IV_ESSIV)
		return;
	mode = append(mode, ":");
	append(mode, cz_digest_name(s->iv_hash));
}
