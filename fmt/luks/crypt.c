/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/luks/crypt.c - sectors read and written through a cipher, by any number of
 * requests at a time and outside every lock.
 *
 * A cipher's context is taken for as long as it computes, so there are at most as many
 * as there are threads. What is written is encrypted into a buffer, of which there are at
 * most BUFFERS: who finds none waits, holding no context, for the I/O of another one. What
 * is read is decrypted where it is to go. Both are kept for the next request.
 *
 * A chunk is encrypted and handed on while it is in the cache; larger ones gain nothing.
 */
#include "fmt/luks/luks.h"

#define BUFFERS 16u
#define CHUNK   (1u << 20)

struct context {
	struct cz_cipher *cipher;
	struct context *next;
};

struct buffer {
	struct buffer *next;
	uint8_t *data; /* CHUNK bytes */
};

struct luks_crypt {
	const struct thr_alloc *mem;
	struct cz_cipher_spec spec;
	uint8_t key[LUKS_KEY_MAX];
	size_t key_len;
	struct thr_mutex lock;
	struct context *contexts;  /* not in use */
	struct buffer *buffers;    /* not in use */
	struct thr_sem may_buffer; /* how many more may be taken */
};

/* ---- contexts ---- */

static struct context *new_context(struct luks_crypt *c, int *err)
{
	struct context *x = thr_zget(c->mem, sizeof(*x));

	*err = x ? cz_cipher_new(&x->cipher, c->mem, &c->spec, c->key, c->key_len)
		 : -THR_ENOMEM;
	if (!*err)
		return x;
	thr_put(c->mem, x, sizeof(*x));
	return NULL;
}

static int take_context(struct luks_crypt *c, struct context **out)
{
	int err = 0;

	thr_mutex_lock(&c->lock);
	*out = c->contexts;
	if (*out)
		c->contexts = (*out)->next;
	thr_mutex_unlock(&c->lock);
	if (!*out)
		*out = new_context(c, &err);
	return err;
}

static void give_context(struct luks_crypt *c, struct context *x)
{
	thr_mutex_lock(&c->lock);
	x->next = c->contexts;
	c->contexts = x;
	thr_mutex_unlock(&c->lock);
}

/* ---- buffers ---- */

static struct buffer *new_buffer(const struct thr_alloc *mem)
{
	struct buffer *b = thr_zget(mem, sizeof(*b));

	if (b)
		b->data = thr_get(mem, CHUNK, 4096);
	if (b && b->data)
		return b;
	thr_put(mem, b, sizeof(*b));
	return NULL;
}

static struct buffer *take_buffer(struct luks_crypt *c)
{
	struct buffer *b;

	thr_sem_down(&c->may_buffer, 1);
	thr_mutex_lock(&c->lock);
	b = c->buffers;
	if (b)
		c->buffers = b->next;
	thr_mutex_unlock(&c->lock);
	if (!b)
		b = new_buffer(c->mem);
	if (!b)
		thr_sem_up(&c->may_buffer, 1);
	return b;
}

static void give_buffer(struct luks_crypt *c, struct buffer *b)
{
	thr_mutex_lock(&c->lock);
	b->next = c->buffers;
	c->buffers = b;
	thr_mutex_unlock(&c->lock);
	thr_sem_up(&c->may_buffer, 1);
}

/* ---- open and close ---- */

int luks_crypt_open(struct luks_crypt **out, const struct cz_cipher_spec *s, const void *key,
	size_t len, const struct thr_alloc *mem)
{
	struct luks_crypt *c = thr_zget(mem, sizeof(*c));
	struct context *x;
	int err;

	if (!c)
		return -THR_ENOMEM;
	THR_ASSERT(len <= LUKS_KEY_MAX);
	c->mem = mem;
	c->spec = *s;
	c->key_len = len;
	memcpy(c->key, key, len);
	thr_mutex_init(&c->lock);
	thr_sem_init(&c->may_buffer, BUFFERS);
	err = take_context(c, &x);
	if (err) {
		luks_crypt_close(c);
		return err;
	}
	give_context(c, x);
	*out = c;
	return 0;
}

void luks_crypt_close(struct luks_crypt *c)
{
	if (!c)
		return;
	while (c->contexts) {
		struct context *x = c->contexts;

		c->contexts = x->next;
		cz_cipher_free(x->cipher);
		thr_put(c->mem, x, sizeof(*x));
	}
	while (c->buffers) {
		struct buffer *b = c->buffers;

		c->buffers = b->next;
		thr_put(c->mem, b->data, CHUNK);
		thr_put(c->mem, b, sizeof(*b));
	}
	cz_wipe(c->key, sizeof(c->key));
	thr_put(c->mem, c, sizeof(*c));
}

const uint8_t *luks_crypt_key(const struct luks_crypt *c)
{
	return c->key;
}

/* ---- reading ---- */

/* A sector that lies in two pieces of the vector. */
static int decrypt_split(struct cz_cipher *x, const struct blk_req *r, uint64_t at, uint64_t s)
{
	uint8_t buf[LUKS_SECTOR];
	int err;

	blk_req_to_buf(r, at, buf, sizeof(buf));
	err = cz_cipher_run(x, s, LUKS_SECTOR, buf, buf, sizeof(buf), false);
	blk_req_from_buf(r, at, buf, sizeof(buf));
	return err;
}

static int decrypt(struct cz_cipher *x, const struct blk_req *r, uint64_t sector)
{
	int err = 0;

	for (uint64_t at = 0; !err && at < r->len;) {
		size_t n = (size_t)(r->len - at);
		uint8_t *p = blk_req_piece(r, at, &n);
		uint64_t s = sector + at / LUKS_SECTOR;

		n &= ~(size_t)(LUKS_SECTOR - 1);
		if (n)
			err = cz_cipher_run(x, s, LUKS_SECTOR, p, p, n, false);
		else
			err = decrypt_split(x, r, at, s);
		at += n ? n : LUKS_SECTOR;
	}
	return err;
}

/* The part of a request from @at on that one chunk takes. */
static struct blk_req chunk_of(const struct blk_req *r, uint64_t at)
{
	struct blk_req p = *r;

	p.off += at;
	p.len = THR_MIN(r->len - at, CHUNK);
	p.iov_off += (size_t)at;
	p.flags = BLK_CHILD;
	p.turn = NULL;
	return p;
}

static int decrypt_chunk(struct luks_crypt *c, const struct blk_req *p, uint64_t sector)
{
	struct context *x;
	int err = take_context(c, &x);

	if (err)
		return err;
	err = decrypt(x->cipher, p, sector);
	give_context(c, x);
	return err;
}

int luks_crypt_read(struct luks_crypt *c, struct blk *file, const struct blk_req *r,
	uint64_t off, uint64_t sector)
{
	int err = 0;

	for (uint64_t at = 0; !err && at < r->len; at += CHUNK) {
		struct blk_req p = chunk_of(r, at);

		p.off = off + at;
		p.flags |= BLK_EOF_ZERO;
		err = blk_preadv(file, &p);
		if (!err)
			err = decrypt_chunk(c, &p, sector + at / LUKS_SECTOR);
	}
	return err;
}

/* ---- writing ---- */

/* From the request into @out; sectors that lie in two pieces are put together there. */
static int encrypt(struct cz_cipher *x, const struct blk_req *r, uint64_t sector, uint8_t *out)
{
	int err = 0;

	for (uint64_t at = 0; !err && at < r->len;) {
		size_t n = (size_t)(r->len - at);
		const uint8_t *p = out + at;

		if (r->iov)
			p = blk_req_piece(r, at, &n);
		else
			memset(out + at, 0, n);
		n &= ~(size_t)(LUKS_SECTOR - 1);
		if (!n) {
			n = LUKS_SECTOR;
			blk_req_to_buf(r, at, out + at, n);
			p = out + at;
		}
		err = cz_cipher_run(
			x, sector + at / LUKS_SECTOR, LUKS_SECTOR, out + at, p, n, true);
		at += n;
	}
	return err;
}

static int encrypt_chunk(
	struct luks_crypt *c, const struct blk_req *p, uint64_t sector, uint8_t *out)
{
	struct context *x;
	int err = take_context(c, &x);

	if (err)
		return err;
	err = encrypt(x->cipher, p, sector, out);
	give_context(c, x);
	return err;
}

int luks_crypt_write(struct luks_crypt *c, struct blk *file, const struct blk_req *r,
	uint64_t off, uint64_t sector)
{
	struct buffer *b = take_buffer(c);
	int err = b ? 0 : -THR_ENOMEM;

	for (uint64_t at = 0; !err && at < r->len; at += CHUNK) {
		struct blk_req p = chunk_of(r, at);
		struct thr_iov v = {b->data, (size_t)p.len};

		err = encrypt_chunk(c, &p, sector + at / LUKS_SECTOR, b->data);
		p.off = off + at;
		p.iov = &v;
		p.niov = 1;
		p.iov_off = 0;
		if (!err)
			err = blk_pwritev(file, &p);
	}
	if (b)
		give_buffer(c, b);
	return err;
}
