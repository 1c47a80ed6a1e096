/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/err.c - errors with their texts (CONFIG_BLK_ERR_TEXT). Numbers are written
 * without division, so that a small target may have sentences too.
 */
#include "blk/private.h"

static const char *const sentences[] = {
#define BLK_ERR(id, text) [BLK_E_##id] = text,
#include "blk/errlist.h"
#undef BLK_ERR
};

int blk_fail(struct blk_err *err, int code, enum blk_err_id id, uint64_t off, uint64_t val)
{
	if (!err)
		return code;
	err->code = code;
	err->id = id;
	err->off = off;
	err->val = val;
	err->doing = NULL;
	err->file[0] = '\0';
	err->str[0] = '\0';
	return code;
}

int blk_fail_str(struct blk_err *err, int code, enum blk_err_id id, const char *str)
{
	size_t n = str ? blk_str_len(str) : 0;

	blk_fail(err, code, id, 0, 0);
	if (!err || !n)
		return code;
	n = THR_MIN(n, sizeof(err->str) - 1);
	memcpy(err->str, str, n);
	err->str[n] = '\0';
	return code;
}

/* Of a name that is too long, the end tells more. */
void blk_err_where(struct blk_err *err, const char *doing, const char *file)
{
	size_t n;

	if (!err || err->doing)
		return;
	err->doing = doing;
	n = file ? blk_str_len(file) : 0;
	if (n < sizeof(err->file)) {
		memcpy(err->file, file ? file : "", n + 1);
		return;
	}
	memcpy(err->file, "...", 3);
	memcpy(err->file + 3, file + n - (sizeof(err->file) - 4), sizeof(err->file) - 3);
}

struct out {
	char *buf;
	size_t size, len;
};

static void put_char(struct out *o, char c)
{
	if (o->len + 1 < o->size)
		o->buf[o->len++] = c;
}

static void put_str(struct out *o, const char *s)
{
	while (*s)
		put_char(o, *s++);
}

/* Names come from the command line and from images. The control characters of
 * ISO 6429 beyond ASCII are two bytes in UTF-8: c2 80 to c2 9f. */
static void put_name(struct out *o, const char *s)
{
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s, next = (unsigned char)s[1];

		if (c == 0xc2 && next >= 0x80 && next < 0xa0) {
			put_char(o, '?');
			s++;
		} else {
			put_char(o, c < 0x20 || c == 0x7f ? '?' : *s);
		}
	}
}

static void put_dec(struct out *o, uint64_t v)
{
	static const uint64_t tens[] = {10000000000000000000u, 1000000000000000000u,
		100000000000000000u, 10000000000000000u, 1000000000000000u, 100000000000000u,
		10000000000000u, 1000000000000u, 100000000000u, 10000000000u, 1000000000u,
		100000000u, 10000000u, 1000000u, 100000u, 10000u, 1000u, 100u, 10u, 1u};
	bool begun = false;

	for (size_t i = 0; i < THR_ARRAY_SIZE(tens); i++) {
		char digit = '0';

		for (; v >= tens[i]; v -= tens[i])
			digit++;
		begun |= digit != '0' || i + 1 == THR_ARRAY_SIZE(tens);
		if (begun)
			put_char(o, digit);
	}
}

static void put_hex(struct out *o, uint64_t v)
{
	unsigned shift = v ? thr_log2(v) & ~3u : 0;

	put_str(o, "0x");
	for (;; shift -= 4) {
		put_char(o, "0123456789abcdef"[v >> shift & 15]);
		if (!shift)
			return;
	}
}

static void put_sentence(struct out *o, const struct blk_err *err)
{
	const char *t = err->id < BLK_E_COUNT ? sentences[err->id] : "%e";

	for (; *t; t++) {
		if (*t != '%') {
			put_char(o, *t);
			continue;
		}
		switch (*++t) {
		case 'o':
			put_dec(o, err->off);
			break;
		case 'v':
			put_dec(o, err->val);
			break;
		case 'x':
			put_hex(o, err->val);
			break;
		case 's':
			put_name(o, err->str);
			break;
		case 'e':
			put_str(o, blk_strerror(err->code));
			break;
		default:
			thr_panic("blk/errlist.h: a sentence has an unknown conversion");
		}
	}
}

size_t blk_err_text(const struct blk_err *err, char *buf, size_t size)
{
	struct out o = {buf, size, 0};

	if (!size)
		return 0;
	if (err->doing) {
		put_str(&o, err->doing);
		if (err->file[0]) {
			put_str(&o, " '");
			put_name(&o, err->file);
			put_char(&o, '\'');
		}
		put_str(&o, ": ");
	}
	put_sentence(&o, err);
	buf[o.len] = '\0';
	return o.len;
}

static const struct {
	int code;
	const char *text;
} system_words[] = {
	{0, "Success"},
	{THR_EPERM, "Operation not permitted"},
	{THR_ENOENT, "No such file or directory"},
	{THR_EINTR, "Interrupted system call"},
	{THR_EIO, "Input/output error"},
	{THR_ENXIO, "No such device or address"},
	{THR_EBADF, "Bad file descriptor"},
	{THR_EAGAIN, "Resource temporarily unavailable"},
	{THR_ENOMEM, "Cannot allocate memory"},
	{THR_EACCES, "Permission denied"},
	{THR_EBUSY, "Device or resource busy"},
	{THR_EEXIST, "File exists"},
	{THR_ENODEV, "No such device"},
	{THR_ENOTDIR, "Not a directory"},
	{THR_EISDIR, "Is a directory"},
	{THR_EINVAL, "Invalid argument"},
	{THR_EFBIG, "File too large"},
	{THR_ENOSPC, "No space left on device"},
	{THR_EROFS, "Read-only file system"},
	{THR_EPIPE, "Broken pipe"},
	{THR_ERANGE, "Numerical result out of range"},
	{THR_ENAMETOOLONG, "File name too long"},
	{THR_ELOOP, "Too many levels of symbolic links"},
	{THR_EPROTO, "Protocol error"},
	{THR_EOVERFLOW, "Value too large for defined data type"},
	{THR_ELIBACC, "Can not access a needed shared library"},
	{THR_ENOTSUP, "Operation not supported"},
	{THR_ECONNRESET, "Connection reset by peer"},
	{THR_ENOTCONN, "Transport endpoint is not connected"},
	{THR_ESHUTDOWN, "Cannot send after transport endpoint shutdown"},
	{THR_ETIMEDOUT, "Connection timed out"},
	{THR_ECONNREFUSED, "Connection refused"},
	{THR_EUCLEAN, "Structure needs cleaning"},
	{THR_ECANCELED, "Operation canceled"},
};

const char *blk_strerror(int code)
{
	if (code > 0)
		code = -code;
	for (size_t i = 0; i < THR_ARRAY_SIZE(system_words); i++)
		if (code == -system_words[i].code)
			return system_words[i].text;
	return "Unknown error";
}
