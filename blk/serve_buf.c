/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/serve_buf.c - buffers and requests of a connection. The buffer that was used last
 * is used next, while it is in the processor's cache.
 */
#include "blk/serve.h"

static size_t size_of(unsigned cls)
{
	return (size_t)4096 << cls;
}

void *blk_srv_buf_get(struct srv_conn *c, size_t len, unsigned *cls)
{
	unsigned n = len <= 4096 ? 0 : thr_log2(len - 1) - 11;
	void *buf = c->kept[n];

	*cls = n;
	if (!buf)
		return thr_get(c->srv->o->mem, size_of(n), 4096);
	memcpy(&c->kept[n], buf, sizeof(void *));
	c->kept_bytes -= size_of(n);
	return buf;
}

void blk_srv_buf_put(struct srv_conn *c, void *buf, unsigned cls)
{
	if (!buf)
		return;
	if (c->kept_bytes + size_of(cls) > SRV_KEEP) {
		thr_put(c->srv->o->mem, buf, size_of(cls));
		return;
	}
	memcpy(buf, &c->kept[cls], sizeof(void *));
	c->kept[cls] = buf;
	c->kept_bytes += size_of(cls);
}

void blk_srv_buf_free_all(struct srv_conn *c)
{
	for (unsigned n = 0; n < SRV_CLASSES; n++) {
		while (c->kept[n]) {
			void *buf = c->kept[n];

			memcpy(&c->kept[n], buf, sizeof(void *));
			thr_put(c->srv->o->mem, buf, size_of(n));
		}
	}
	while (c->spare) {
		struct srv_req *r = c->spare;

		c->spare = r->next;
		thr_put(c->srv->o->mem, r, sizeof(*r));
	}
}

/* Who has nothing in flight gets it whatever others have. */
static bool has_room(struct srv_conn *c, uint32_t cost)
{
	struct srv *s = c->srv;
	uint64_t used;

	if (c->inflight && (c->inflight >= SRV_INFLIGHT || c->bytes + cost > SRV_WINDOW))
		return false;
	if (c->inflight && c->tx_bytes >= SRV_BACKLOG)
		return false;
	used = __atomic_add_fetch(&s->used, cost, __ATOMIC_RELAXED);
	if (used <= s->memory || !c->inflight)
		return true;
	__atomic_fetch_sub(&s->used, cost, __ATOMIC_RELAXED);
	return false;
}

struct srv_req *blk_srv_req_get(struct srv_conn *c, size_t bytes)
{
	uint32_t cost = (uint32_t)bytes + SRV_COST;
	struct srv_req *r;

	while (!has_room(c, cost)) {
		struct thr_wait w;

		thr_wait_init(&w);
		c->room = &w;
		thr_wait_block(&w);
	}
	r = c->spare;
	if (r)
		c->spare = r->next;
	else
		r = (struct srv_req *)thr_get(c->srv->o->mem, sizeof(*r), 16);
	if (!r) {
		__atomic_fetch_sub(&c->srv->used, cost, __ATOMIC_RELAXED);
		return NULL;
	}
	r->c = c;
	r->cost = cost;
	r->buf = NULL;
	c->busy++;
	c->inflight++;
	c->bytes += cost;
	return r;
}

void blk_srv_req_put(struct srv_req *r)
{
	struct srv_conn *c = r->c;
	struct thr_wait *w = c->room;

	blk_srv_buf_put(c, r->buf, r->cls);
	__atomic_fetch_sub(&c->srv->used, r->cost, __ATOMIC_RELAXED);
	c->inflight--;
	c->bytes -= r->cost;
	r->next = c->spare;
	c->spare = r;
	c->room = NULL;
	if (w)
		thr_wait_wake(w);
	blk_srv_unbusy(c);
}
