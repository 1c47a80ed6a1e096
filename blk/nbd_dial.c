/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/nbd_dial.c - connects to an NBD server and asks what the export can do; lists
 * exports. Looking up names blocks, so it is done on a helper thread, which also sees
 * a handshake through that must end in time.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blk/nbd.h"

bool blk_nbd_passing(const struct nbd_dial *d, int code)
{
	switch (-code) {
	case ENOENT: /* the socket of a server that starts, not an export */
		return !d->reached;
	case ECONNREFUSED:
	case ECONNRESET:
	case ECONNABORTED:
	case ENOTCONN:
	case EPIPE:
	case EAGAIN:
	case EINTR:
	case ETIMEDOUT:
	case EHOSTUNREACH:
	case ENETUNREACH:
	case ESHUTDOWN:
		return true;
	}
	return false;
}

/* libnbd keeps its last error by thread. */
static int blame(struct nbd_dial *d)
{
	const char *s = libnbd.get_error();
	int e = libnbd.get_errno();

	snprintf(d->text, sizeof(d->text), "%s", s ? s : "it has closed the connection");
	return -(e ? e : s ? EIO : ECONNRESET);
}

static int set_up_tls(struct nbd_handle *h, const struct nbd_target *t)
{
	static const int mode[] = {
		[NBD_TLS_OFF] = LIBNBD_TLS_DISABLE,
		[NBD_TLS_ALLOW] = LIBNBD_TLS_ALLOW,
		[NBD_TLS_REQUIRE] = LIBNBD_TLS_REQUIRE,
	};

	if (t->tls != NBD_TLS_UNSET && !t->uri && libnbd.set_tls(h, mode[t->tls]))
		return -1;
	if (t->tls_certificates && libnbd.set_tls_certificates(h, t->tls_certificates))
		return -1;
	if (t->tls_psk_file && libnbd.set_tls_psk_file(h, t->tls_psk_file))
		return -1;
	if (t->tls_username && libnbd.set_tls_username(h, t->tls_username))
		return -1;
	return t->tls_verify ? 0 : libnbd.set_tls_verify_peer(h, false);
}

static int set_up(struct nbd_handle *h, const struct nbd_target *t)
{
	/* Sizes that are no multiple of the block size end so: the server's affair.
	 * A read's buffer is not cleared first: libnbd counts what arrives. */
	if (libnbd.set_strict_mode(h, LIBNBD_STRICT_MASK & ~LIBNBD_STRICT_ALIGN) ||
		libnbd.set_pread_initialize(h, false) ||
		libnbd.add_meta_context(h, LIBNBD_CONTEXT_BASE_ALLOCATION) ||
		libnbd.set_uri_allow_local_file(h, true) ||
		(!t->uri && libnbd.set_export_name(h, t->export)))
		return -1;
	return set_up_tls(h, t);
}

static int start(struct nbd_handle *h, const struct nbd_target *t)
{
	if (t->uri)
		return libnbd.aio_connect_uri(h, t->uri);
	if (t->path)
		return libnbd.aio_connect_unix(h, t->path);
	if (t->cid)
		return libnbd.aio_connect_vsock(h, (uint32_t)strtoul(t->cid, NULL, 10),
			(uint32_t)strtoul(t->port, NULL, 10));
	return libnbd.aio_connect_tcp(h, t->host, t->port);
}

static bool over(struct nbd_handle *h)
{
	return libnbd.aio_is_dead(h) || libnbd.aio_is_closed(h);
}

/* Until @there says so. */
static int see_through(struct nbd_dial *d, int (*there)(struct nbd_handle *h))
{
	while (!there(d->h)) {
		uint64_t now = thr_now();
		uint64_t ms = now < d->until ? (d->until - now) / 1000000 + 1 : 0;
		int n;

		if (over(d->h))
			return blame(d);
		if (!ms) {
			snprintf(d->text, sizeof(d->text), "it does not answer");
			return -ETIMEDOUT;
		}
		n = libnbd.poll(d->h, (int)THR_MIN(ms, 1000));
		if (n < 0)
			return blame(d);
	}
	return 0;
}

static uint64_t block_size(struct nbd_handle *h, int which)
{
	int64_t n = libnbd.get_block_size(h, which);

	return n > 0 ? (uint64_t)n : 0;
}

static int ask_traits(struct nbd_dial *d)
{
	struct nbd_traits *t = &d->traits;
	struct nbd_handle *h = d->h;
	int64_t size = libnbd.get_size(h);

	if (size < 0)
		return blame(d);
	t->size = (uint64_t)size;
	t->min = block_size(h, LIBNBD_SIZE_MINIMUM);
	t->pref = block_size(h, LIBNBD_SIZE_PREFERRED);
	t->max = block_size(h, LIBNBD_SIZE_MAXIMUM);
	t->read_only = libnbd.is_read_only(h) > 0;
	t->multi = libnbd.can_multi_conn(h) > 0;
	t->extents = libnbd.can_meta_context(h, LIBNBD_CONTEXT_BASE_ALLOCATION) > 0;
	t->flush = libnbd.can_flush(h) > 0;
	t->fua = libnbd.can_fua(h) > 0;
	t->trim = libnbd.can_trim(h) > 0;
	t->zero = libnbd.can_zero(h) > 0;
	t->fast_zero = libnbd.can_fast_zero(h) > 0;
	t->cache = libnbd.can_cache(h) > 0;
	t->tls = libnbd.get_tls_negotiated(h) > 0;
	return 0;
}

static int dial(void *arg)
{
	struct nbd_dial *d = (struct nbd_dial *)arg;
	int code = 0;

	d->reached = false;
	d->h = libnbd.create();
	if (!d->h)
		return blame(d);
	if (set_up(d->h, d->to) || start(d->h, d->to))
		code = blame(d);
	else
		d->reached = true;
	if (d->reached)
		code = see_through(d, libnbd.aio_is_ready);
	if (!code)
		code = ask_traits(d);
	if (code) {
		libnbd.close(d->h);
		d->h = NULL;
	}
	return code;
}

int blk_nbd_dial(struct nbd_dial *d)
{
	return thr_offload(dial, d);
}

/* ---- the list of exports ------------------------------------------------------------ */

#define LIST_NS  30000000000u
#define LIST_MAX 65536u /* a server that goes on for ever */

struct entry {
	struct entry *next;
	size_t size, desc;
	char text[];
};

struct list {
	struct nbd_dial dial;
	struct entry *head, **tail;
	unsigned n;
	int code;
	bool done;
};

static int list_entry(void *arg, const char *name, const char *desc)
{
	struct list *l = (struct list *)arg;
	size_t n = strlen(name) + 1, size = sizeof(struct entry) + n + strlen(desc) + 1;
	struct entry *e = NULL;

	if (l->n++ < LIST_MAX)
		e = (struct entry *)thr_get(&thr_heap, size, 16);
	if (!e) {
		l->code = -ENOMEM;
		return 0;
	}
	e->next = NULL;
	e->size = size;
	e->desc = n;
	memcpy(e->text, name, n);
	memcpy(e->text + n, desc, strlen(desc) + 1);
	*l->tail = e;
	l->tail = &e->next;
	return 0;
}

static int list_done(void *arg, int *error)
{
	struct list *l = (struct list *)arg;

	l->done = true;
	if (*error)
		l->code = -*error;
	return 1;
}

static int take_list(struct list *l)
{
	nbd_list_callback each = {.callback = list_entry, .user_data = l};
	nbd_completion_callback done = {.callback = list_done, .user_data = l};
	struct nbd_dial *d = &l->dial;
	int code;

	if (libnbd.set_opt_mode(d->h, true) || set_up(d->h, d->to) || start(d->h, d->to))
		return blame(d);
	code = see_through(d, libnbd.aio_is_negotiating);
	if (code)
		return code;
	if (libnbd.aio_opt_list(d->h, each, done))
		return blame(d);
	code = see_through(d, libnbd.aio_is_negotiating);
	if (!code && !l->done)
		code = blame(d);
	return code ? code : l->code;
}

static int list(void *arg)
{
	struct list *l = (struct list *)arg;
	int code;

	l->dial.h = libnbd.create();
	if (!l->dial.h)
		return blame(&l->dial);
	code = take_list(l);
	libnbd.close(l->dial.h);
	return code;
}

int blk_nbd_list(const struct blk_open *o,
	int (*each)(void *arg, const char *name, const char *description), void *arg,
	struct blk_err *err)
{
	struct nbd_target t;
	struct list *l;
	struct entry *e;
	int code = blk_nbd_need(err);

	if (!code)
		code = blk_nbd_target_init(&t, o, err);
	if (code)
		return code;
	l = (struct list *)thr_zget(&thr_heap, sizeof(*l));
	if (!l) {
		blk_nbd_target_fini(&t, o->mem);
		return blk_fail(err, -ENOMEM, BLK_E_SYS, 0, 0);
	}
	l->dial.to = &t;
	l->dial.until = thr_now() + LIST_NS;
	l->tail = &l->head;
	code = thr_offload(list, l);
	if (code)
		blk_fail_str(err, code, BLK_E_NBD_CONNECT,
			l->dial.text[0] ? l->dial.text : "it does not list its exports");
	while ((e = l->head)) {
		l->head = e->next;
		if (!code)
			code = each(arg, e->text, e->text + e->desc);
		thr_put(&thr_heap, e, e->size);
	}
	thr_put(&thr_heap, l, sizeof(*l));
	blk_nbd_target_fini(&t, o->mem);
	return code;
}
