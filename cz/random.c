/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cz/random.c - random bytes from the kernel. Not OpenSSL's generator: this one
 * has no state to seed, to lock or to duplicate in a fork, and salts and
 * identifiers are needed where OpenSSL is not built in.
 */
#include <unistd.h>

#include "cz/cz.h"

/* What getentropy() gives at a time. */
#define AT_ONCE 256

int cz_random(void *p, size_t len)
{
	uint8_t *b = p;

	while (len) {
		size_t n = THR_MIN(len, (size_t)AT_ONCE);

		if (getentropy(b, n))
			return -THR_EIO;
		b += n;
		len -= n;
	}
	return 0;
}
