/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/firmware/say.c - see say.h.
 */
#include "t/firmware/say.h"

_Noreturn void thr_panic(const char *what)
{
	board_print("panic: ");
	board_print(what);
	board_print("\n");
	board_exit(2);
}

void say_hex(uint32_t v)
{
	char s[10] = " ";

	for (int i = 0; i < 8; i++)
		s[i + 1] = "0123456789abcdef"[v >> (28 - 4 * i) & 15];
	board_print(s);
}

void say_number(int32_t v)
{
	char s[14], *p = s + sizeof(s);
	uint32_t u = v < 0 ? 0u - (uint32_t)v : (uint32_t)v;

	*--p = 0;
	do
		*--p = (char)('0' + u % 10);
	while (u /= 10);
	if (v < 0)
		*--p = '-';
	*--p = ' ';
	board_print(p);
}

uint32_t crc_add(uint32_t crc, const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		crc ^= p[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return crc;
}
