/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/serve_hello.c - the handshake: fixed newstyle, options until an export is chosen.
 *
 * Data of an option that is too long to make sense is skipped and refused; what a client
 * says of its lengths is checked against what it has sent.
 */
#include <errno.h>

#include "blk/serve.h"

enum { AGAIN = 1 }; /* haggling goes on */

static void reply_head(uint8_t *head, uint32_t opt, uint32_t type, size_t len)
{
	thr_put_be64(head, NBDP_OPT_REPLY_MAGIC);
	thr_put_be32(head + 8, opt);
	thr_put_be32(head + 12, type);
	thr_put_be32(head + 16, (uint32_t)len);
}

int blk_srv_reply(struct srv_conn *c, uint32_t opt, uint32_t type, const void *data, size_t len,
	const char *text)
{
	size_t more = text ? strlen(text) : 0;
	uint8_t head[NBDP_OPTION_REPLY_LEN + 16];
	int err;

	THR_ASSERT(len <= 16);
	more = THR_MIN(more, NBDP_STRING_MAX);
	reply_head(head, opt, type, len + more);
	if (len)
		memcpy(head + NBDP_OPTION_REPLY_LEN, data, len);
	err = blk_srv_send(c, head, NBDP_OPTION_REPLY_LEN + len);
	return !err && more ? blk_srv_send(c, text, more) : err;
}

/* An answer that leaves the client to go on. */
static int answer(struct srv_conn *c, uint32_t opt, uint32_t type)
{
	int err = blk_srv_reply(c, opt, type, NULL, 0, NULL);

	return err ? err : AGAIN;
}

const struct blk_nbd_export *blk_srv_find(const struct srv *s, const void *name, size_t len)
{
	for (unsigned i = 0; i < s->o->nexports; i++) {
		const struct blk_nbd_export *e = &s->o->exports[i];

		if (strlen(e->name) == len && !memcmp(e->name, name, len))
			return e;
	}
	return NULL;
}

bool blk_srv_read_only(const struct blk_nbd_export *e)
{
	return e->read_only || !(e->dev->flags & BLK_RDWR);
}

static uint16_t flags_of(const struct srv_conn *c, const struct blk_nbd_export *e)
{
	unsigned f = NBDP_HAS_FLAGS | NBDP_SEND_FLUSH | NBDP_SEND_FUA | NBDP_SEND_CACHE;

	f |= c->structured ? NBDP_SEND_DF : 0u;
	f |= c->srv->clients > 1 ? NBDP_CAN_MULTI_CONN : 0u;
	if (blk_srv_read_only(e))
		f |= NBDP_READ_ONLY;
	else
		f |= NBDP_SEND_TRIM | NBDP_SEND_WRITE_ZEROES | NBDP_SEND_FAST_ZERO;
	return (uint16_t)f;
}

/* ---- EXPORT_NAME, INFO, GO --------------------------------------------------------------- */

static int choose(struct srv_conn *c, const struct blk_nbd_export *e)
{
	c->export = e;
	if (c->meta != e)
		c->contexts = 0;
	return 0;
}

static int export_name(struct srv_conn *c, const uint8_t *data, size_t len)
{
	const struct blk_nbd_export *e = blk_srv_find(c->srv, data, len);
	uint8_t out[10 + 124] = {0};
	int err;

	if (!e)
		return -EPROTO;
	thr_put_be64(out, blk_size(e->dev));
	thr_put_be16(out + 8, flags_of(c, e));
	err = blk_srv_send(c, out, c->no_zeroes ? 10 : sizeof(out));
	return err ? err : choose(c, e);
}

static int info_text(struct srv_conn *c, uint32_t opt, unsigned type, const char *text)
{
	uint8_t out[2];

	thr_put_be16(out, (uint16_t)type);
	return blk_srv_reply(c, opt, NBDP_REP_INFO, out, sizeof(out), text);
}

static int info_size(struct srv_conn *c, uint32_t opt)
{
	uint8_t out[14];

	thr_put_be16(out, NBDP_INFO_BLOCK_SIZE);
	thr_put_be32(out + 2, 1);
	thr_put_be32(out + 6, 4096);
	thr_put_be32(out + 10, NBDP_PAYLOAD_MAX);
	return blk_srv_reply(c, opt, NBDP_REP_INFO, out, sizeof(out), NULL);
}

static int info_export(struct srv_conn *c, uint32_t opt, const struct blk_nbd_export *e)
{
	uint8_t out[12];

	thr_put_be16(out, NBDP_INFO_EXPORT);
	thr_put_be64(out + 2, blk_size(e->dev));
	thr_put_be16(out + 10, flags_of(c, e));
	return blk_srv_reply(c, opt, NBDP_REP_INFO, out, sizeof(out), NULL);
}

static int info(struct srv_conn *c, uint32_t opt, const uint8_t *data, size_t len)
{
	const struct blk_nbd_export *e;
	uint32_t name;
	unsigned want;
	bool asked[4] = {false};
	int err = 0;

	if (len < 6)
		return answer(c, opt, NBDP_REP_ERR_INVALID);
	name = thr_be32(data);
	if (name > len - 6 || name > NBDP_STRING_MAX)
		return answer(c, opt, NBDP_REP_ERR_INVALID);
	want = thr_be16(data + 4 + name);
	if (len - 6 - name != 2u * want)
		return answer(c, opt, NBDP_REP_ERR_INVALID);
	for (unsigned i = 0; i < want; i++) {
		unsigned type = thr_be16(data + 6 + name + 2 * i);

		if (type < THR_ARRAY_SIZE(asked))
			asked[type] = true;
	}
	e = blk_srv_find(c->srv, data + 4, name);
	if (!e)
		return answer(c, opt, NBDP_REP_ERR_UNKNOWN);
	if (asked[NBDP_INFO_NAME])
		err = info_text(c, opt, NBDP_INFO_NAME, e->name);
	if (!err && asked[NBDP_INFO_DESCRIPTION] && e->description)
		err = info_text(c, opt, NBDP_INFO_DESCRIPTION, e->description);
	if (!err && asked[NBDP_INFO_BLOCK_SIZE])
		err = info_size(c, opt);
	if (!err)
		err = info_export(c, opt, e);
	if (!err)
		err = blk_srv_reply(c, opt, NBDP_REP_ACK, NULL, 0, NULL);
	if (err)
		return err;
	return opt == NBDP_OPT_GO ? choose(c, e) : AGAIN;
}

/* ---- the others -------------------------------------------------------------------------- */

static int list_one(struct srv_conn *c, const struct blk_nbd_export *e)
{
	const char *text = e->description ? e->description : "";
	size_t name = THR_MIN(strlen(e->name), NBDP_STRING_MAX);
	size_t more = THR_MIN(strlen(text), NBDP_STRING_MAX);
	uint8_t head[NBDP_OPTION_REPLY_LEN + 4];
	int err;

	reply_head(head, NBDP_OPT_LIST, NBDP_REP_SERVER, 4 + name + more);
	thr_put_be32(head + NBDP_OPTION_REPLY_LEN, (uint32_t)name);
	err = blk_srv_send(c, head, sizeof(head));
	if (!err)
		err = blk_srv_send(c, e->name, name);
	return err ? err : blk_srv_send(c, text, more);
}

static int list(struct srv_conn *c, size_t len)
{
	int err = 0;

	if (len)
		return answer(c, NBDP_OPT_LIST, NBDP_REP_ERR_INVALID);
	for (unsigned i = 0; !err && i < c->srv->o->nexports; i++)
		err = list_one(c, &c->srv->o->exports[i]);
	return err ? err : answer(c, NBDP_OPT_LIST, NBDP_REP_ACK);
}

static int start_tls(struct srv_conn *c, size_t len)
{
	int err;

	if (len || c->tls)
		return answer(c, NBDP_OPT_STARTTLS, NBDP_REP_ERR_INVALID);
	if (!c->srv->o->tls)
		return answer(c, NBDP_OPT_STARTTLS, NBDP_REP_ERR_POLICY);
	/* What came before the encryption began was not the client's, perhaps. */
	if (c->rx_at != c->rx_end)
		return -EPROTO;
	err = blk_srv_reply(c, NBDP_OPT_STARTTLS, NBDP_REP_ACK, NULL, 0, NULL);
	if (!err)
		err = blk_srv_tls_start(c);
	c->structured = false;
	c->meta = NULL;
	c->contexts = 0;
	return err ? err : AGAIN;
}

static int option(struct srv_conn *c, uint32_t opt, const uint8_t *data, size_t len)
{
	if (c->srv->o->tls && !c->tls && opt != NBDP_OPT_STARTTLS && opt != NBDP_OPT_ABORT)
		return opt == NBDP_OPT_EXPORT_NAME ? -EPROTO
						   : answer(c, opt, NBDP_REP_ERR_TLS_REQD);
	switch (opt) {
	case NBDP_OPT_EXPORT_NAME:
		return export_name(c, data, len);
	case NBDP_OPT_ABORT:
		(void)blk_srv_reply(c, opt, NBDP_REP_ACK, NULL, 0, NULL);
		return -ECANCELED;
	case NBDP_OPT_LIST:
		return list(c, len);
	case NBDP_OPT_STARTTLS:
		return start_tls(c, len);
	case NBDP_OPT_INFO:
	case NBDP_OPT_GO:
		return info(c, opt, data, len);
	case NBDP_OPT_STRUCTURED_REPLY:
		c->structured |= !len;
		return answer(c, opt, len ? NBDP_REP_ERR_INVALID : NBDP_REP_ACK);
	case NBDP_OPT_LIST_META_CONTEXT:
	case NBDP_OPT_SET_META_CONTEXT:
		if (!c->structured)
			return answer(c, opt, NBDP_REP_ERR_INVALID);
		return blk_srv_meta(c, opt, data, len) ? -EPIPE : AGAIN;
	}
	return answer(c, opt, NBDP_REP_ERR_UNSUP);
}

static int next_option(struct srv_conn *c)
{
	const struct thr_alloc *mem = c->srv->o->mem;
	uint8_t head[NBDP_OPTION_LEN];
	uint8_t *data = NULL;
	uint32_t opt, len;
	int err = blk_srv_recv(c, head, sizeof(head));

	if (err)
		return err;
	opt = thr_be32(head + 8);
	len = thr_be32(head + 12);
	if (thr_be64(head) != NBDP_OPT_MAGIC)
		return -EPROTO;
	if (len > SRV_OPT_MAX) {
		if (len > SRV_SKIP_MAX || opt == NBDP_OPT_EXPORT_NAME || blk_srv_skip(c, len))
			return -EPROTO;
		return answer(c, opt, NBDP_REP_ERR_TOO_BIG);
	}
	if (len) {
		data = (uint8_t *)thr_get(mem, len, 16);
		err = data ? blk_srv_recv(c, data, len) : -ENOMEM;
	}
	if (!err)
		err = option(c, opt, data, len);
	thr_put(mem, data, len);
	return err;
}

int blk_srv_hello(struct srv_conn *c)
{
	uint8_t out[18], in[4];
	uint32_t flags;
	int err;

	thr_put_be64(out, NBDP_MAGIC);
	thr_put_be64(out + 8, NBDP_OPT_MAGIC);
	thr_put_be16(out + 16, NBDP_FIXED_NEWSTYLE | NBDP_NO_ZEROES);
	err = blk_srv_send(c, out, sizeof(out));
	if (!err)
		err = blk_srv_recv(c, in, sizeof(in));
	if (err)
		return err;
	flags = thr_be32(in);
	if (flags & ~(uint32_t)(NBDP_FIXED_NEWSTYLE | NBDP_NO_ZEROES))
		return -EPROTO;
	c->no_zeroes = (flags & NBDP_NO_ZEROES) != 0;
	do {
		err = next_option(c);
	} while (err == AGAIN);
	return err;
}
