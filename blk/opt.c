/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/opt.c - options, and the words and numbers in them.
 *
 * Sizes are read as qemu-img 7.2 reads them, found out by trying: decimal or 0x,
 * leading white space and a plus sign allowed, a fraction only with a suffix
 * that makes it count ("1.5" is wrong, "1.0" is right), rounded to the nearest
 * byte. Unlike there, fractions are exact: doubling decimal digits gives one
 * binary digit a time, without floating point or division.
 */
#include "blk/private.h"

const char *blk_opt(const struct blk_opts *o, const char *key)
{
	const char *val = NULL;

	for (unsigned i = 0; o && i < o->n; i++)
		if (blk_str_eq(o->v[i].key, key))
			val = o->v[i].val;
	return val;
}

/* The index of @s in @words, or -1. */
static int word_index(const char *const *words, size_t n, const char *s)
{
	for (size_t i = 0; i < n; i++)
		if (blk_str_eq(words[i], s))
			return (int)i;
	return -1;
}

int blk_opt_bool(
	const struct blk_opts *o, const char *key, bool def, bool *out, struct blk_err *err)
{
	static const char *const words[] = {
		"off", "on", "no", "yes", "false", "true", "n", "y"};
	const char *s = blk_opt(o, key);
	int i;

	*out = def;
	if (!s)
		return 0;
	i = word_index(words, THR_ARRAY_SIZE(words), s);
	if (i < 0)
		return blk_fail_str(err, -THR_EINVAL, BLK_E_BAD_VALUE, key);
	*out = i & 1;
	return 0;
}

int blk_opt_size(const struct blk_opts *o, const char *key, uint64_t def, uint64_t *out,
	struct blk_err *err)
{
	const char *s = blk_opt(o, key);
	int code;

	*out = def;
	if (!s)
		return 0;
	code = blk_parse_size(s, out);
	return code ? blk_fail_str(err, code, BLK_E_BAD_VALUE, key) : 0;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int hex_digit(char c)
{
	if (is_digit(c))
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int parse_hex(const char **s, uint64_t *out)
{
	const char *p = *s;
	uint64_t v = 0;

	if (hex_digit(*p) < 0)
		return -THR_EINVAL;
	for (; hex_digit(*p) >= 0; p++) {
		if (v >> 60)
			return -THR_ERANGE;
		v = v << 4 | (uint64_t)hex_digit(*p);
	}
	*s = p;
	*out = v;
	return 0;
}

static int parse_dec(const char **s, uint64_t *out)
{
	const char *p = *s;
	uint64_t v = 0;

	if (!is_digit(*p))
		return -THR_EINVAL;
	for (; is_digit(*p); p++)
		if (thr_mul_over(v, 10, &v) || thr_add_over(v, (uint64_t)(*p - '0'), &v))
			return -THR_ERANGE;
	*s = p;
	*out = v;
	return 0;
}

/* The power of 1024 that a suffix stands for, as a shift; -1 for no suffix. */
static int suffix_shift(char c)
{
	static const char suffixes[] = "bkmgtpe";

	for (int i = 0; suffixes[i]; i++)
		if (c == suffixes[i] || c == suffixes[i] - 0x20)
			return i * 10;
	return -1;
}

/* Digits of a fraction that are looked at. */
#define FRAC_DIGITS 40

/* 0.digits * 2^shift, rounded to the nearest. */
static uint64_t fraction(const char *s, size_t n, int shift)
{
	uint8_t d[FRAC_DIGITS] = {0};
	uint64_t v = 0;

	for (size_t i = 0; i < n && i < FRAC_DIGITS; i++)
		d[i] = (uint8_t)(s[i] - '0');
	while (shift--) {
		unsigned carry = 0;

		for (size_t i = FRAC_DIGITS; i--;) {
			carry += 2u * d[i];
			d[i] = (uint8_t)(carry >= 10 ? carry - 10 : carry);
			carry = carry >= 10;
		}
		v = v << 1 | carry;
	}
	return v + (d[0] >= 5);
}

static bool all_zeroes(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (s[i] != '0')
			return false;
	return true;
}

static int apply_suffix(uint64_t v, const char *frac, size_t nfrac, int shift, uint64_t *out)
{
	if (shift <= 0)
		shift = 0;
	if (!shift && !all_zeroes(frac, nfrac))
		return -THR_EINVAL;
	if (shift && v >> (64 - shift))
		return -THR_ERANGE;
	v <<= shift;
	return thr_add_over(v, fraction(frac, nfrac, shift), out) ? -THR_ERANGE : 0;
}

int blk_parse_size(const char *s, uint64_t *out)
{
	const char *frac = s;
	size_t nfrac = 0;
	uint64_t v;
	int shift, err;

	while (*s == ' ' || (*s >= '\t' && *s <= '\r'))
		s++;
	if (*s == '+')
		s++;
	if (s[0] == '0' && (s[1] | 0x20) == 'x') {
		s += 2;
		err = parse_hex(&s, &v);
	} else {
		err = parse_dec(&s, &v);
		if (!err && *s == '.')
			for (frac = ++s; is_digit(*s); s++)
				nfrac++;
	}
	if (err)
		return err;
	shift = suffix_shift(*s);
	if (shift >= 0)
		s++;
	if (*s)
		return -THR_EINVAL;
	return apply_suffix(v, frac, nfrac, shift, out);
}

static bool key_known(const char *key, const char *const *known)
{
	for (; *known; known++)
		if (blk_str_eq(*known, key))
			return true;
	return false;
}

int blk_opts_known(const struct blk_opts *o, const char *const *known, struct blk_err *err)
{
	for (unsigned i = 0; o && i < o->n; i++)
		if (!key_known(o->v[i].key, known))
			return blk_fail_str(err, -THR_EINVAL, BLK_E_BAD_OPTION, o->v[i].key);
	return 0;
}

int blk_opts_sub(const struct blk_opts *o, const char *prefix, struct blk_opt *v, unsigned max,
	struct blk_opts *out)
{
	size_t n = blk_str_len(prefix);

	out->v = v;
	out->n = 0;
	for (unsigned i = 0; o && i < o->n; i++) {
		if (!blk_str_starts(o->v[i].key, prefix))
			continue;
		if (out->n == max)
			return -THR_EINVAL;
		v[out->n].key = o->v[i].key + n;
		v[out->n].val = o->v[i].val;
		out->n++;
	}
	return 0;
}

static const char *const prealloc_words[] = {"off", "metadata", "falloc", "full"};

int blk_prealloc_parse(const char *s, enum blk_prealloc *out)
{
	int i = word_index(prealloc_words, THR_ARRAY_SIZE(prealloc_words), s);

	if (i < 0)
		return -THR_EINVAL;
	*out = (enum blk_prealloc)i;
	return 0;
}

const char *blk_prealloc_name(enum blk_prealloc p)
{
	return prealloc_words[p];
}

int blk_cache_parse(const char *s, unsigned *flags)
{
	static const char *const words[] = {
		"writeback", "none", "off", "writethrough", "directsync", "unsafe"};
	static const unsigned bits[] = {0, BLK_NOCACHE, BLK_NOCACHE, BLK_WRITETHROUGH,
		BLK_NOCACHE | BLK_WRITETHROUGH, BLK_NOFLUSH};
	int i = word_index(words, THR_ARRAY_SIZE(words), s);

	if (i < 0)
		return -THR_EINVAL;
	*flags &= ~(unsigned)(BLK_NOCACHE | BLK_WRITETHROUGH | BLK_NOFLUSH);
	*flags |= bits[i];
	return 0;
}
