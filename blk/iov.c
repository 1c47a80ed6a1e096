/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/iov.c - walking the data of a request.
 *
 * A vector shorter than its request would be a caller's mistake that reads or
 * writes foreign memory, so the walk asserts against it.
 */
#include "blk/private.h"

void blk_cursor_init(struct blk_cursor *c, const struct blk_req *r, uint64_t skip)
{
	c->v = r->iov;
	c->end = r->iov + r->niov;
	c->at = r->iov_off + (size_t)skip;
	while (c->v < c->end && c->at >= c->v->len) {
		c->at -= c->v->len;
		c->v++;
	}
}

void *blk_cursor_next(struct blk_cursor *c, size_t *len)
{
	uint8_t *p;

	while (c->v < c->end && c->at >= c->v->len) {
		c->at -= c->v->len;
		c->v++;
	}
	THR_ASSERT(c->v < c->end);
	p = (uint8_t *)c->v->base + c->at;
	*len = THR_MIN(*len, c->v->len - c->at);
	c->at += *len;
	return p;
}

void *blk_req_piece(const struct blk_req *r, uint64_t skip, size_t *len)
{
	struct blk_cursor c;

	blk_cursor_init(&c, r, skip);
	return blk_cursor_next(&c, len);
}

void blk_req_to_buf(const struct blk_req *r, uint64_t skip, void *buf, size_t len)
{
	uint8_t *to = buf;
	struct blk_cursor c;

	blk_cursor_init(&c, r, skip);
	while (len) {
		size_t n = len;
		void *p = blk_cursor_next(&c, &n);

		memcpy(to, p, n);
		to += n;
		len -= n;
	}
}

void blk_req_from_buf(const struct blk_req *r, uint64_t skip, const void *buf, size_t len)
{
	const uint8_t *from = buf;
	struct blk_cursor c;

	blk_cursor_init(&c, r, skip);
	while (len) {
		size_t n = len;
		void *p = blk_cursor_next(&c, &n);

		memcpy(p, from, n);
		from += n;
		len -= n;
	}
}

void blk_req_fill(const struct blk_req *r, uint64_t skip, uint8_t byte, size_t len)
{
	struct blk_cursor c;

	blk_cursor_init(&c, r, skip);
	while (len) {
		size_t n = len;
		void *p = blk_cursor_next(&c, &n);

		memset(p, byte, n);
		len -= n;
	}
}
