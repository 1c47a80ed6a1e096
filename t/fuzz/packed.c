/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/fuzz/packed.c - the packed form of images (fuzz.h).
 */
#include <stdlib.h>

#include "cz/cz.h"
#include "t/fuzz/fuzz.h"

bool fuzz_unpack(struct fuzz_image *m, const uint8_t *data, size_t len)
{
	if (len < FUZZ_HEAD)
		return false;
	m->size = thr_be32(data) % (FUZZ_IMAGE_MAX + 1);
	m->seed = thr_be32(data + 4);
	m->p = calloc(1, m->size ? m->size : 1);
	FUZZ_MUST(m->p);
	for (size_t at = FUZZ_HEAD; at + 2 < len; at += FUZZ_RECORD) {
		size_t off = (size_t)thr_be16(data + at) * FUZZ_SECTOR;
		size_t n = THR_MIN(len - at - 2, FUZZ_SECTOR);

		if (off < m->size)
			memcpy(m->p + off, data + at + 2, THR_MIN(n, m->size - off));
	}
	return true;
}

size_t fuzz_pack(const struct fuzz_image *m, uint8_t *data, size_t max)
{
	size_t at = FUZZ_HEAD;

	if (max < FUZZ_HEAD)
		return 0;
	thr_put_be32(data, (uint32_t)m->size);
	thr_put_be32(data + 4, m->seed);
	for (size_t off = 0; off < m->size && max - at >= FUZZ_RECORD; off += FUZZ_SECTOR) {
		size_t n = THR_MIN(FUZZ_SECTOR, m->size - off);

		if (cz_is_zero(m->p + off, n))
			continue;
		thr_put_be16(data + at, (uint16_t)(off / FUZZ_SECTOR));
		memset(data + at + 2, 0, FUZZ_SECTOR);
		memcpy(data + at + 2, m->p + off, n);
		at += FUZZ_RECORD;
	}
	return at;
}
