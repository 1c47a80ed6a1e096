/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/luks/luks.c - the format luks: a volume that is encrypted sector by sector, behind
 * its header or with that in a file of its own. Sectors are numbered from the payload's
 * start.
 */
#include "fmt/drivers.h"
#include "fmt/luks/luks.h"

struct luks {
	struct blk blk;    /* first; blk.file has the payload */
	struct blk *apart; /* what has the header, where that is not blk.file */
	struct luks_area area;
	struct luks_header h;
	struct luks_crypt *crypt; /* NULL: for info only */
	uint64_t start;           /* of the payload in blk.file */
};

static struct luks *luks_of(const struct blk *b)
{
	return THR_CONTAINER(b, struct luks, blk);
}

/* ---- requests ---- */

static int luks_preadv(struct blk *b, struct blk_req *r)
{
	struct luks *l = luks_of(b);

	if (!l->crypt)
		return -THR_EACCES;
	return luks_crypt_read(l->crypt, b->file, r, l->start + r->off, r->off / LUKS_SECTOR);
}

static int luks_pwritev(struct blk *b, struct blk_req *r)
{
	struct luks *l = luks_of(b);

	if (!l->crypt)
		return -THR_EACCES;
	return luks_crypt_write(l->crypt, b->file, r, l->start + r->off, r->off / LUKS_SECTOR);
}

/* What has not been written is not zero, and a hole in the file is not either. */
static int luks_status(struct blk *b, uint64_t off, uint64_t len, struct blk_extent *e)
{
	(void)b;
	(void)off;
	e->len = len;
	e->flags = BLK_EXT_ALLOC | BLK_EXT_DATA;
	e->map = 0;
	return 0;
}

/* New bytes read as zeroes, which are encrypted ones. */
static int luks_truncate(struct blk *b, uint64_t size, enum blk_prealloc p, struct blk_err *err)
{
	struct luks *l = luks_of(b);
	uint64_t old = blk_size(b), end;
	struct blk_req r = {.off = old, .flags = BLK_CHILD};
	int ret = 0;

	if (size > INT64_MAX - LUKS_SECTOR || l->start > INT64_MAX - LUKS_SECTOR - size)
		return blk_fail(err, -THR_EFBIG, BLK_E_SYS, 0, size);
	size = thr_align_up(size, LUKS_SECTOR);
	end = l->start + size;
	ret = blk_truncate(b->file, end, p, err);
	if (ret)
		return ret;
	for (; !ret && r.off < size; r.off += r.len) {
		r.len = THR_MIN(size - r.off, BLK_MAX_IO);
		ret = luks_crypt_write(
			l->crypt, b->file, &r, l->start + r.off, r.off / LUKS_SECTOR);
	}
	if (ret)
		return blk_fail(err, ret, BLK_E_SYS, 0, 0);
	blk_set_size(b, size);
	return 0;
}

/* ---- open and close ---- */

static void luks_close(struct blk *b)
{
	struct luks *l = luks_of(b);
	const struct thr_alloc *mem = b->mem;

	luks_crypt_close(l->crypt);
	blk_close(l->apart);
	blk_close(b->file);
	blk_fini(b);
	thr_put(mem, l, sizeof(*l));
}

/* The file that has the header, if the options name one. */
static int open_apart(struct luks *l, const struct fmt_open *o, struct blk_err *err)
{
	const char *name = blk_opt(o->opts, "header.filename");
	const char *driver = blk_opt(o->opts, "header.driver");
	struct blk_open bo = {
		.name = name ? name : blk_opt(o->opts, "header"),
		.driver = driver,
		.flags = o->blk_flags,
		.mem = o->mem,
	};
	int ret;

	if (!bo.name && driver)
		return blk_fail_str(err, -THR_EINVAL, BLK_E_NEED_OPTION, "header.filename");
	if (!bo.name)
		return 0;
	ret = blk_open(&l->apart, &bo, err);
	if (ret)
		blk_err_where(err, "Could not open", bo.name);
	return ret;
}

static int load(struct luks *l, const struct fmt_open *o, struct blk_err *err)
{
	struct blk *file = l->blk.file, *head;
	uint64_t size = blk_size(file);
	int ret = open_apart(l, o, err);

	if (ret)
		return ret;
	head = l->apart ? l->apart : file;
	luks_area_init(&l->area, head, 0, blk_size(head));
	l->area.alone = l->apart;
	ret = luks_header_read(&l->area, &l->h, err);
	if (ret)
		return ret;
	l->start = (uint64_t)l->h.payload * LUKS_SECTOR;
	/* A header without its payload: enough for info. */
	if (!l->apart && !l->h.payload && o->flags & FMT_NO_IO)
		l->start = size;
	if (l->start > size)
		return blk_fail(err, -THR_EINVAL, BLK_E_LUKS_PAYLOAD, 104, l->h.payload);
	blk_set_size(&l->blk, (size - l->start) & ~(uint64_t)(LUKS_SECTOR - 1));
	return 0;
}

static int unlock(struct luks *l, const struct fmt_open *o, struct blk_err *err)
{
	const char *id = blk_opt(o->opts, "key-secret");
	const struct fmt_secret *pass = id ? fmt_secret(o->secrets, id) : NULL;
	uint8_t key[LUKS_KEY_MAX];
	unsigned slot;
	int ret;

	if (!id)
		return blk_fail_str(err, -THR_EINVAL, BLK_E_CIPHER_SECRET, "key-secret");
	if (!pass)
		return blk_fail_str(err, -THR_EINVAL, BLK_E_NO_SECRET, id);
	ret = luks_unlock(&l->area, &l->h, pass, key, &slot, o->mem, err);
	if (ret)
		return ret;
	ret = luks_crypt_open(&l->crypt, &l->h.spec, key, l->h.key_len, o->mem);
	cz_wipe(key, sizeof(key));
	return ret ? blk_fail(err, ret, BLK_E_SYS, 0, 0) : 0;
}

static const struct blk_ops luks_ops;

static int luks_open(
	struct blk **out, struct blk *file, const struct fmt_open *o, struct blk_err *err)
{
	struct luks *l = thr_zget(o->mem, sizeof(*l));
	int ret;

	if (!l)
		return blk_fail(err, -THR_ENOMEM, BLK_E_SYS, 0, 0);
	blk_init(&l->blk, &luks_ops, file->name, o->blk_flags, o->mem);
	l->blk.file = file;
	l->blk.align = LUKS_SECTOR;
	l->blk.zero_align = LUKS_SECTOR;
	ret = load(l, o, err);
	if (!ret && !(o->flags & FMT_NO_IO))
		ret = unlock(l, o, err);
	if (!ret) {
		*out = &l->blk;
		return 0;
	}
	l->blk.file = NULL; /* the caller's */
	luks_close(&l->blk);
	return ret;
}

static int luks_probe(const uint8_t *head, size_t len, uint64_t size)
{
	static const uint8_t start[] = {'L', 'U', 'K', 'S', 0xba, 0xbe, 0, 1};

	(void)size;
	return len >= sizeof(start) && !memcmp(head, start, sizeof(start)) ? 100 : 0;
}

static int luks_info(struct blk *b, struct fmt_info *info)
{
	info->format = "luks";
	info->virtual_size = blk_size(b);
	info->encrypted = true;
	return 0;
}

static void luks_put_props(struct blk *b, struct fmt_sink *s)
{
	luks_props(&luks_of(b)->h, s, false);
	if (luks_of(b)->apart)
		s->flag(s, "detached-header", true);
}

static int luks_change(struct blk *b, const struct fmt_amend *m, struct blk_err *err)
{
	struct luks *l = luks_of(b);

	if (!l->crypt)
		return blk_fail_str(err, -THR_EINVAL, BLK_E_CIPHER_SECRET, "key-secret");
	return luks_amend(&l->area, &l->h, luks_crypt_key(l->crypt), m, "", err);
}

/* ---- creating ---- */

static int luks_create(struct blk *file, const struct fmt_create *c, struct blk_err *err)
{
	const char *word = blk_opt(c->opts, "preallocation");
	enum blk_prealloc p = BLK_PREALLOC_OFF;
	struct luks_setup s;
	struct luks_area a;
	uint64_t size;
	bool alone;
	int ret = blk_opt_bool(c->opts, "detached-header", false, &alone, err);

	if (!ret)
		ret = luks_setup_options(&s, c, "", err);
	if (ret)
		return ret;
	if (word && blk_prealloc_parse(word, &p))
		return blk_fail_str(err, -THR_EINVAL, BLK_E_BAD_VALUE, "preallocation");
	if (p == BLK_PREALLOC_METADATA)
		return blk_fail_str(err, -THR_ENOTSUP, BLK_E_PREALLOC, word);
	size = (uint64_t)s.h.payload * LUKS_SECTOR;
	if (c->size > INT64_MAX - LUKS_SECTOR - size)
		return blk_fail(err, -THR_EFBIG, BLK_E_SYS, 0, c->size);
	/* The data is another file's; this one ends where it would begin. */
	if (alone)
		s.h.payload = 0;
	else
		size += thr_align_up(c->size, LUKS_SECTOR);
	ret = blk_truncate(file, size, p, err);
	if (ret)
		return ret;
	luks_area_init(&a, file, 0, size);
	a.alone = alone;
	return luks_setup_write(&s, &a, c->seed, c->mem, err);
}

static int luks_measure(const struct fmt_create *c, struct fmt_layout *l, struct blk_err *err)
{
	struct luks_setup s;
	int ret = luks_setup_options(&s, c, "", err);

	if (ret)
		return ret;
	l->metadata = (uint64_t)s.h.payload * LUKS_SECTOR;
	l->data = thr_align_up(c->size, LUKS_SECTOR);
	return 0;
}

static const struct fmt_opt create_opts[] = {
	{"size", FMT_OPT_SIZE, "Virtual disk size", NULL},
	{"key-secret", FMT_OPT_STRING, "ID of the secret that provides the keyslot passphrase",
		NULL},
	{"cipher-alg", FMT_OPT_STRING, "Name of encryption cipher algorithm", NULL},
	{"cipher-mode", FMT_OPT_STRING, "Name of encryption cipher mode", NULL},
	{"ivgen-alg", FMT_OPT_STRING, "Name of IV generator algorithm", NULL},
	{"ivgen-hash-alg", FMT_OPT_STRING, "Name of IV generator hash algorithm", NULL},
	{"hash-alg", FMT_OPT_STRING, "Name of encryption hash algorithm", NULL},
	{"iter-time", FMT_OPT_NUMBER, "Time to spend in PBKDF in milliseconds", NULL},
	{"detached-header", FMT_OPT_BOOL, "Create a file that has the header alone", NULL},
	{"preallocation", FMT_OPT_STRING,
		"Preallocation mode (allowed values: off, falloc, full)", NULL},
	{NULL, FMT_OPT_BOOL, NULL, NULL},
};

static const struct fmt_opt amend_opts[] = {
	{"state", FMT_OPT_STRING, "Select new state of affected keyslots (active/inactive)",
		NULL},
	{"keyslot", FMT_OPT_NUMBER, "Select a single keyslot to modify explicitly", NULL},
	{"old-secret", FMT_OPT_STRING, "Select all keyslots that match this password", NULL},
	{"new-secret", FMT_OPT_STRING, "New secret to set in the keyslot", NULL},
	{"iter-time", FMT_OPT_NUMBER, "Time to spend in PBKDF in milliseconds", NULL},
	{NULL, FMT_OPT_BOOL, NULL, NULL},
};

static const char *const open_opts[] = {
	"key-secret", "header", "header.filename", "header.driver", NULL};

static const struct blk_ops luks_ops = {
	.name = "luks",
	.preadv = luks_preadv,
	.pwritev = luks_pwritev,
	.status = luks_status,
	.truncate = luks_truncate,
	.close = luks_close,
};

const struct fmt_driver fmt_luks_driver = {
	.name = "luks",
	.ops = &luks_ops,
	.probe = luks_probe,
	.open = luks_open,
	.create = luks_create,
	.measure = luks_measure,
	.info = luks_info,
	.props = luks_put_props,
	.amend = luks_change,
	.amend_opts = amend_opts,
	.create_opts = create_opts,
	.open_opts = open_opts,
};
