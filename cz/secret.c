/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cz/secret.c - comparing and clearing secrets, out of the optimiser's sight. Part
 * of the firmware build.
 */
#include "cz/cz.h"

/* The compiler must take @v for unknown after each byte, or it may leave the loop
 * at the first that differs. */
bool cz_same(const void *a, const void *b, size_t len)
{
	const uint8_t *x = a, *y = b;
	unsigned v = 0;

	for (size_t i = 0; i < len; i++) {
		v |= x[i] ^ y[i];
		__asm__("" : "+r"(v));
	}
	return !v;
}

/* The memory is read by the empty instruction, as far as the compiler knows. */
void cz_wipe(void *p, size_t len)
{
	memset(p, 0, len);
	__asm__ volatile("" : : "r"(p) : "memory");
}
