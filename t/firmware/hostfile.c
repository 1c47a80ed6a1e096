/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/firmware/hostfile.c - see hostfile.h. All that an embedder's own device takes.
 */
#include "t/firmware/hostfile.h"
#include "t/firmware/board.h"

struct hostfile {
	struct blk b;
	int handle;
};

static int hostfile_preadv(struct blk *b, struct blk_req *r)
{
	struct hostfile *f = THR_CONTAINER(b, struct hostfile, b);
	size_t len;

	for (uint64_t at = 0; at < r->len; at += len) {
		void *p;

		len = (size_t)(r->len - at);
		p = blk_req_piece(r, at, &len);
		if (board_read(f->handle, (uint32_t)(r->off + at), p, len))
			return -THR_EIO;
	}
	return 0;
}

static bool hostfile_same(struct blk *a, struct blk *b)
{
	return a == b;
}

static void hostfile_close(struct blk *b)
{
	struct hostfile *f = THR_CONTAINER(b, struct hostfile, b);

	board_close(f->handle);
	blk_fini(b);
	thr_put(b->mem, f, sizeof(*f));
}

static const struct blk_ops hostfile_ops = {
	.name = "hostfile",
	.preadv = hostfile_preadv,
	.same = hostfile_same,
	.close = hostfile_close,
};

int hostfile_open(struct blk **out, const char *name, const struct thr_alloc *mem)
{
	struct hostfile *f = thr_zget(mem, sizeof(*f));
	int64_t size;

	if (!f)
		return -THR_ENOMEM;
	f->handle = board_open(name);
	size = f->handle < 0 ? -1 : board_size(f->handle);
	if (size < 0) {
		if (f->handle >= 0)
			board_close(f->handle);
		thr_put(mem, f, sizeof(*f));
		return -THR_ENOENT;
	}
	blk_init(&f->b, &hostfile_ops, name, 0, mem);
	blk_set_size(&f->b, (uint64_t)size);
	*out = &f->b;
	return 0;
}
