/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/snapshot.c - the snapshot table: entries of variable length, one
 * after the other, each aligned to 8 bytes. Opening does not need it; info and
 * check do, and who wants to see the disk as it was.
 */
#include "fmt/drivers.h"
#include "fmt/qcow2/qcow2.h"

/* Fixed fields, and the extra data that we know: 64-bit VM state size, disk size,
 * instruction count. */
#define EXTRA_KNOWN 24

static int read_entry(
	struct qcow2 *q, uint64_t off, struct qcow2_snapshot *s, struct blk_err *err)
{
	uint8_t p[QCOW2_SNAPSHOT_MIN + EXTRA_KNOWN];
	uint64_t size = blk_size(q->blk.file);
	uint64_t bytes;
	int ret;

	if (!thr_within(off, QCOW2_SNAPSHOT_MIN, size))
		return blk_fail(err, -THR_EUCLEAN, BLK_E_QCOW2_SNAP, off, 0);
	memset(p, 0, sizeof(p));
	ret = blk_pread(q->blk.file, off, p, (size_t)THR_MIN(sizeof(p), size - off));
	if (ret)
		return blk_fail(err, ret, BLK_E_SYS, off, 0);
	memset(s, 0, sizeof(*s));
	s->off = off;
	s->l1_off = thr_be64(p);
	s->l1_entries = thr_be32(p + 8);
	s->id_len = thr_be16(p + 12);
	s->name_len = thr_be16(p + 14);
	s->extra = thr_be32(p + 36);
	bytes = (uint64_t)QCOW2_SNAPSHOT_MIN + s->extra + s->id_len + s->name_len;
	if (!thr_within(off, bytes, size) || bytes > UINT32_MAX)
		return blk_fail(err, -THR_EUCLEAN, BLK_E_QCOW2_SNAP, off, 0);
	s->bytes = (uint32_t)bytes;
	s->incomplete = q->h.version >= 3 && s->extra < 16;
	s->s.date_sec = thr_be32(p + 16);
	s->s.date_nsec = thr_be32(p + 20);
	s->s.vm_clock_nsec = thr_be64(p + 24);
	s->s.vm_state_size = s->extra >= 8 ? thr_be64(p + 40) : thr_be32(p + 32);
	s->s.disk_size = s->extra >= 16 ? thr_be64(p + 48) : q->h.size;
	s->s.icount = s->extra >= 24 ? thr_be64(p + 56) : UINT64_MAX;
	return 0;
}

int qcow2_snapshots_walk(struct qcow2 *q,
	int (*fn)(void *ctx, const struct qcow2_snapshot *s, struct blk_err *err), void *ctx,
	struct blk_err *err)
{
	uint64_t off = q->h.snapshots_off;
	struct qcow2_snapshot s;

	for (uint32_t i = 0; i < q->h.snapshots; i++) {
		int ret = read_entry(q, off, &s, err);

		if (!ret && fn)
			ret = fn(ctx, &s, err);
		if (ret)
			return ret;
		off += thr_align_up(s.bytes, 8);
	}
	return 0;
}

/* ---- for info: the whole table in one allocation ---- */

static int add_length(void *ctx, const struct qcow2_snapshot *s, struct blk_err *err)
{
	uint64_t *sum = ctx;

	*sum += (uint64_t)s->id_len + s->name_len + 2;
	if (*sum > QCOW2_MAX_SNAP_BYTES)
		return blk_fail(err, -THR_EFBIG, BLK_E_QCOW2_SNAPS_LARGE, s->off, 0);
	return 0;
}

struct loading {
	struct qcow2 *q;
	struct fmt_snapshot *v;
	unsigned n;
	char *text, *end;
};

static int load_one(void *ctx, const struct qcow2_snapshot *s, struct blk_err *err)
{
	struct loading *l = ctx;
	struct fmt_snapshot *out = &l->v[l->n];
	size_t need = (size_t)s->id_len + s->name_len;
	int ret;

	/* The file may have changed since the lengths were added up. */
	if ((size_t)(l->end - l->text) < need + 2)
		return blk_fail(err, -THR_EUCLEAN, BLK_E_QCOW2_SNAP, s->off, 0);
	ret = blk_pread(l->q->blk.file, s->off + QCOW2_SNAPSHOT_MIN + s->extra, l->text, need);
	if (ret)
		return blk_fail(err, ret, BLK_E_SYS, s->off, 0);
	*out = s->s;
	out->id = l->text;
	out->name = l->text + s->id_len + 1;
	memmove(l->text + s->id_len + 1, l->text + s->id_len, s->name_len);
	l->text[s->id_len] = 0;
	l->text[need + 1] = 0;
	l->text += need + 2;
	l->n++;
	return 0;
}

/* The entries, then their strings. */
static int load_all(struct qcow2 *q)
{
	uint64_t text = 0;
	struct loading l = {.q = q};
	size_t head = q->h.snapshots * sizeof(struct fmt_snapshot);
	int ret = qcow2_snapshots_walk(q, add_length, &text, NULL);

	if (ret)
		return ret;
	l.v = thr_zget(q->blk.mem, head + (size_t)text);
	if (!l.v)
		return -THR_ENOMEM;
	l.text = (char *)l.v + head;
	l.end = l.text + text;
	ret = qcow2_snapshots_walk(q, load_one, &l, NULL);
	if (ret) {
		thr_put(q->blk.mem, l.v, head + (size_t)text);
		return ret;
	}
	q->snaps = l.v;
	q->snaps_bytes = head + (size_t)text;
	return 0;
}

int qcow2_snapshot_nth(struct blk *b, unsigned i, struct fmt_snapshot *s)
{
	struct qcow2 *q = qcow2_of(b);
	int ret;

	if (i >= q->h.snapshots)
		return -THR_ENOENT;
	ret = q->snaps ? 0 : load_all(q);
	if (ret)
		return ret;
	*s = q->snaps[i];
	return 0;
}

/* ---- the disk as it was ---- */

struct finding {
	unsigned left; /* entries before it */
	struct qcow2_snapshot s;
};

static int find(void *ctx, const struct qcow2_snapshot *s, struct blk_err *err)
{
	struct finding *f = ctx;

	(void)err;
	f->s = *s;
	return f->left-- ? 0 : 1;
}

static int use(struct qcow2 *q, const struct qcow2_snapshot *s, struct blk_err *err)
{
	unsigned shift = q->h.cluster_bits + q->l2_bits;
	uint64_t bytes = (uint64_t)s->l1_entries * 8, size = s->s.disk_size;
	uint64_t need = size ? ((size - 1) >> shift) + 1 : 0;

	if (size > INT64_MAX || need > s->l1_entries || bytes > QCOW2_MAX_L1_BYTES ||
		s->l1_off & q->cluster_mask || (bytes && s->l1_off < q->cluster_size) ||
		!thr_within(s->l1_off, bytes, blk_size(q->blk.file)))
		return blk_fail(
			err, -THR_EUCLEAN, BLK_E_QCOW2_SNAP_L1, s->l1_off, s->l1_entries);
	q->h.l1_off = s->l1_off;
	q->h.l1_entries = s->l1_entries;
	q->h.size = size;
	blk_set_size(&q->blk, size);
	return 0;
}

int qcow2_snapshot_select(struct blk *b, const char *id, const char *name, struct blk_err *err)
{
	struct qcow2 *q = qcow2_of(b);
	struct finding f = {.left = 0};
	struct fmt_snapshot s;
	int ret;

	for (;; f.left++) {
		ret = qcow2_snapshot_nth(b, f.left, &s);
		if (ret == -THR_ENOENT)
			return blk_fail(err, ret, BLK_E_NO_SNAPSHOT, 0, 0);
		if (ret)
			return blk_fail(err, ret, BLK_E_QCOW2_SNAP, q->h.snapshots_off, 0);
		if ((!id || fmt_streq(s.id, id)) && (!name || fmt_streq(s.name, name)))
			break;
	}
	ret = qcow2_snapshots_walk(q, find, &f, err);
	return ret < 0 ? ret : use(q, &f.s, err);
}
