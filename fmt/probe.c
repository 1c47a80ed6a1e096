/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/probe.c - tells the format of an image from its content. Every driver gives
 * a weight to the first bytes; the heaviest has it. Raw, which anything could be,
 * weighs least.
 */
#include "fmt/drivers.h"

#define HEAD 2048u

static const struct fmt_driver *heaviest(const uint8_t *head, size_t len, uint64_t size)
{
	const struct fmt_driver *best = NULL;
	const struct fmt_driver *d;
	int most = 0;

	for (unsigned i = 0; (d = fmt_driver_nth(i)); i++) {
		int weight = d->probe ? d->probe(head, len, size) : 0;

		if (weight > most) {
			most = weight;
			best = d;
		}
	}
	return best;
}

const char *fmt_probe(struct blk *file, struct blk_err *err)
{
	uint8_t *head = (uint8_t *)thr_get(file->mem, HEAD, 512);
	struct thr_iov v = {.base = head, .len = HEAD};
	struct blk_req r = {.len = HEAD, .iov = &v, .niov = 1, .flags = BLK_EOF_ZERO};
	const struct fmt_driver *best;
	int code;

	if (!head) {
		blk_fail(err, -THR_ENOMEM, BLK_E_SYS, 0, 0);
		return NULL;
	}
	code = blk_preadv(file, &r);
	best = code ? NULL : heaviest(head, HEAD, blk_size(file));
	thr_put(file->mem, head, HEAD);
	if (code)
		blk_fail(err, code, BLK_E_READ_AT, 0, 0);
	else if (!best)
		blk_fail(err, -THR_EINVAL, BLK_E_FORMAT_UNKNOWN, 0, 0);
	return best ? best->name : NULL;
}
