/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/serve_meta.c - metadata contexts: listed and chosen in the handshake. The number of
 * a context is its place in the export's list. A query is a context's name; in a list,
 * also the beginning of one up to a colon ("qemu:", "qemu:dirty-bitmap:").
 */
#include <errno.h>

#include "blk/serve.h"

#define BASE "base:allocation"

static int base_status(void *arg, uint64_t off, uint64_t len, uint64_t *n, uint32_t *flags)
{
	const struct blk_nbd_export *e = (const struct blk_nbd_export *)arg;
	struct blk_extent x;
	int err = blk_status(e->dev, off, len, &x);

	if (err)
		return err;
	*n = x.len;
	*flags = (x.flags & BLK_EXT_DATA ? 0u : BLK_NBD_HOLE) |
		 (x.flags & BLK_EXT_ZERO || !(x.flags & BLK_EXT_ALLOC) ? BLK_NBD_ZERO : 0u);
	/* What a backing device has is data to us. */
	if (!(x.flags & BLK_EXT_ALLOC) && e->dev->backing)
		*flags = 0;
	return 0;
}

static bool has_base(const struct blk_nbd_export *e)
{
	for (unsigned i = 0; i < e->ncontexts; i++)
		if (!strcmp(e->contexts[i].name, BASE))
			return true;
	return false;
}

unsigned blk_srv_context_count(const struct blk_nbd_export *e)
{
	return THR_MIN(e->ncontexts + !has_base(e), BLK_NBD_CONTEXTS_MAX);
}

const struct blk_nbd_context *blk_srv_context(
	const struct blk_nbd_export *e, unsigned i, struct blk_nbd_context *own)
{
	if (i < e->ncontexts)
		return &e->contexts[i];
	own->name = BASE;
	own->status = base_status;
	own->arg = (void *)(uintptr_t)e;
	return own;
}

/* ---- data that is known ------------------------------------------------------------------ */

/* A file system may look for the end of data all the way, page by page, so its answers are
 * kept for all connections. Only data: where a hole was, something may have been written. */
#define ASK_ABOUT (1ull << 28)

static bool find_hint(struct srv_conn *c, uint64_t off, uint64_t *n, uint32_t *forgot)
{
	struct srv *s = c->srv;
	bool found = false;

	thr_mutex_lock(&s->hint_lock);
	for (unsigned i = 0; i < SRV_HINTS && !found; i++) {
		const struct srv_hint *h = &s->hints[i];

		found = h->export == c->export && off >= h->from && off < h->to;
		*n = h->to - off;
	}
	*forgot = s->forgot;
	thr_mutex_unlock(&s->hint_lock);
	return found;
}

static void add_hint(struct srv_conn *c, uint64_t off, uint64_t n, uint32_t forgot)
{
	struct srv *s = c->srv;

	thr_mutex_lock(&s->hint_lock);
	if (s->forgot == forgot)
		s->hints[s->next_hint++ % SRV_HINTS] =
			(struct srv_hint){c->export, off, off + n};
	thr_mutex_unlock(&s->hint_lock);
}

void blk_srv_forget(struct srv_conn *c)
{
	struct srv *s = c->srv;

	thr_mutex_lock(&s->hint_lock);
	s->forgot++;
	memset(s->hints, 0, sizeof(s->hints));
	thr_mutex_unlock(&s->hint_lock);
}

int blk_srv_allocation(
	struct srv_conn *c, uint64_t off, uint64_t len, uint64_t *n, uint32_t *flags)
{
	struct blk_nbd_context own;
	const struct blk_nbd_context *m = blk_srv_context(c->export, 0, &own);
	uint64_t left = blk_size(c->export->dev) - off;
	uint32_t forgot;
	int err;

	*flags = 0;
	if (find_hint(c, off, n, &forgot))
		return 0;
	for (unsigned i = 1; strcmp(m->name, BASE); i++)
		m = blk_srv_context(c->export, i, &own);
	err = m->status(m->arg, off, THR_MIN(THR_MAX(len, ASK_ABOUT), left), n, flags);
	if (!err && !*flags)
		add_hint(c, off, *n, forgot);
	return err;
}

/* ---- queries ------------------------------------------------------------------------------
 */

static bool matches(const char *name, const uint8_t *q, size_t len, bool wild)
{
	size_t n = strlen(name);

	if (len == n)
		return !memcmp(name, q, len);
	return wild && len && len < n && q[len - 1] == ':' && !memcmp(name, q, len);
}

static uint32_t select_by(
	const struct blk_nbd_export *e, const uint8_t *q, size_t len, bool wild)
{
	struct blk_nbd_context own;
	uint32_t found = 0;

	for (unsigned i = 0; i < blk_srv_context_count(e); i++)
		if (matches(blk_srv_context(e, i, &own)->name, q, len, wild))
			found |= 1u << i;
	return found;
}

/* The contexts that the queries select; false: they make no sense. */
static bool parse_queries(const struct blk_nbd_export *e, const uint8_t *data, size_t len,
	bool wild, uint32_t *found)
{
	uint32_t n = thr_be32(data);

	data += 4;
	len -= 4;
	*found = wild && !n ? UINT32_MAX : 0;
	for (; n; n--) {
		uint32_t q;

		if (len < 4)
			return false;
		q = thr_be32(data);
		if (q > len - 4)
			return false;
		*found |= select_by(e, data + 4, q, wild);
		data += 4 + q;
		len -= 4 + q;
	}
	return !len;
}

static int tell(struct srv_conn *c, uint32_t opt, unsigned id, const char *name)
{
	uint8_t out[4];

	thr_put_be32(out, opt == NBDP_OPT_SET_META_CONTEXT ? id : 0);
	return blk_srv_reply(c, opt, NBDP_REP_META_CONTEXT, out, sizeof(out), name);
}

static int tell_all(
	struct srv_conn *c, uint32_t opt, const struct blk_nbd_export *e, uint32_t which)
{
	struct blk_nbd_context own;
	int err = 0;

	for (unsigned i = 0; !err && i < blk_srv_context_count(e); i++)
		if (which & 1u << i)
			err = tell(c, opt, i, blk_srv_context(e, i, &own)->name);
	return err ? err : blk_srv_reply(c, opt, NBDP_REP_ACK, NULL, 0, NULL);
}

int blk_srv_meta(struct srv_conn *c, uint32_t opt, const uint8_t *data, size_t len)
{
	bool set = opt == NBDP_OPT_SET_META_CONTEXT;
	const struct blk_nbd_export *e;
	uint32_t name, found;

	if (set) {
		c->meta = NULL;
		c->contexts = 0;
	}
	name = len < 8 ? UINT32_MAX : thr_be32(data);
	if (name == UINT32_MAX || name > len - 8)
		return blk_srv_reply(c, opt, NBDP_REP_ERR_INVALID, NULL, 0, NULL);
	e = blk_srv_find(c->srv, data + 4, name);
	if (!e)
		return blk_srv_reply(c, opt, NBDP_REP_ERR_UNKNOWN, NULL, 0, NULL);
	if (!parse_queries(e, data + 4 + name, len - 4 - name, !set, &found))
		return blk_srv_reply(c, opt, NBDP_REP_ERR_INVALID, NULL, 0, NULL);
	if (set) {
		c->meta = e;
		c->contexts = found;
	}
	return tell_all(c, opt, e, found);
}
