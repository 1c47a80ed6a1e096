/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/check_text.c - findings as lines of text.
 */
#include <stdarg.h>

#include "fmt/qcow2/check.h"

#define LINE 320

struct line {
	size_t n;
	char s[LINE];
};

static void put(struct line *l, char c)
{
	if (l->n + 1 < sizeof(l->s))
		l->s[l->n++] = (unsigned char)c < 0x20 || c == 0x7f ? '?' : c;
}

static void put_number(struct line *l, uint64_t v, unsigned base)
{
	char digits[20];
	unsigned n = 0;

	do {
		digits[n++] = "0123456789abcdef"[v % base];
		v /= base;
	} while (v);
	while (n)
		put(l, digits[--n]);
}

void qcow2_ck_line(struct qcow2_checker *k, const char *fmt, ...)
{
	struct line l = {.n = 0};
	va_list ap;

	if (!k->c->line)
		return;
	va_start(ap, fmt);
	for (; *fmt; fmt++) {
		if (*fmt != '%') {
			put(&l, *fmt);
		} else if (*++fmt == 's') {
			for (const char *s = va_arg(ap, const char *); *s; s++)
				put(&l, *s);
		} else {
			put_number(&l, va_arg(ap, uint64_t), *fmt == 'x' ? 16 : 10);
		}
	}
	va_end(ap);
	l.s[l.n] = 0;
	k->c->line(k->c->ctx, l.s);
}
