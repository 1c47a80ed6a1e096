/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/nbd_revive.c - what happens to requests when a connection is lost.
 *
 * Without reconnect-delay they fail. With it, they wait until there is a new
 * connection, at most that many seconds from the loss, and are done again: all NBD
 * requests may be. Once the time is up they fail, though one of them tries to connect
 * every second.
 *
 * Nobody can tell whether writes that no flush had covered have survived the server.
 * So the device is torn then: its flushes fail from then on (blk/nbd.c).
 */
#include <errno.h>

#include "blk/nbd.h"

#define SECOND        1000000000u
#define HANDSHAKE_NS  (30ull * SECOND) /* for the first connection of a link */
#define MORE_LINKS_NS (5ull * SECOND)  /* for more than one */
#define PAUSE_NS      (SECOND / 10)

/* The export is what it was, as far as our requests rely on that. */
static bool still_fits(const struct nbd_traits *was, const struct nbd_traits *is)
{
	return is->size == was->size && is->min <= THR_MAX(was->min, 1) &&
	       (!is->max || (was->max && is->max >= was->max)) &&
	       is->read_only <= was->read_only && is->extents >= was->extents &&
	       is->flush >= was->flush && is->fua >= was->fua && is->trim >= was->trim &&
	       is->zero >= was->zero && is->fast_zero >= was->fast_zero &&
	       is->cache >= was->cache;
}

static int dial(struct nbd_link *l, uint64_t until, bool *passing)
{
	struct nbd_dial d = {.to = &l->dev->to, .until = until};
	int err = blk_nbd_dial(&d);

	l->tried_at = thr_now();
	*passing = err && blk_nbd_passing(&d, err);
	if (err)
		return err;
	if (!still_fits(&l->dev->traits, &d.traits)) {
		libnbd.close(d.h);
		return -EPROTO;
	}
	blk_nbd_link_use(l, d.h);
	return 0;
}

static int dial_again(struct nbd_link *l)
{
	uint64_t delay = (uint64_t)l->dev->to.reconnect_delay * SECOND;
	uint64_t until = l->lost_at + delay;
	bool passing;
	int err;

	if (!delay || (thr_now() >= until && thr_now() < l->tried_at + SECOND))
		return -ENOTCONN;
	for (;;) {
		err = dial(l, THR_MAX(until, thr_now() + SECOND), &passing);
		if (!err || !passing || thr_now() >= until)
			return err;
		thr_sleep(PAUSE_NS);
	}
}

int blk_nbd_revive(struct nbd_link *l, unsigned lost_gen)
{
	bool passing;
	int err = 0;

	thr_mutex_lock(&l->dialling);
	/* Else somebody else has. */
	if (l->gen == lost_gen)
		err = lost_gen ? dial_again(l) : dial(l, thr_now() + MORE_LINKS_NS, &passing);
	thr_mutex_unlock(&l->dialling);
	return err;
}

/* A server that shuts down says so before it hangs up. */
static bool is_lost(const struct blk_nbd *d, int err)
{
	return err == -ENOTCONN || (err == -ESHUTDOWN && d->to.reconnect_delay);
}

static bool hung_up(struct nbd_req *q)
{
	struct nbd_link *l = q->link;
	bool yes;

	pthread_mutex_lock(&l->lock);
	yes = !l->h || l->gen != q->gen;
	pthread_mutex_unlock(&l->lock);
	return yes;
}

int blk_nbd_insist(struct blk_nbd *d, struct nbd_req *q)
{
	uint64_t until = thr_now() + (uint64_t)d->to.reconnect_delay * SECOND;
	int err;

	for (;;) {
		err = blk_nbd_try(d, q);
		if (!is_lost(d, err))
			return err;
		if (!hung_up(q)) {
			if (thr_now() >= until)
				return err;
			thr_sleep(PAUSE_NS);
		} else if (blk_nbd_revive(q->link, q->gen)) {
			return -ENOTCONN;
		}
	}
}
