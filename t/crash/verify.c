/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/crash/verify.c - a state is opened as the next user would open it: it must open, have
 * no corruption, and hold in each sector what that may hold. Where counts may be behind
 * the image says so, and opening it for writing makes them good.
 */
#include <stdio.h>
#include <stdlib.h>

#include "t/crash/crash.h"

struct look {
	struct crash *c;
	const struct cut *cut;
	bool loud;
	char *why;
	size_t size;
};

static bool bad(struct look *l, const char *what, const char *text)
{
	snprintf(l->why, l->size, "%s%s%s", what, *text ? ": " : "", text);
	return false;
}

static bool bad_err(struct look *l, const char *what, const struct blk_err *err, int code)
{
	char text[200] = "";

	blk_err_text(err, text, sizeof(text));
	return bad(l, what, *text ? text : blk_strerror(code));
}

static bool open_state(struct look *l, unsigned blk_flags)
{
	struct blk_err err = BLK_ERR_INIT;
	int code = crash_open(l->c, l->c->state, false, blk_flags, 0, &err);

	return code ? bad_err(l, "does not open", &err, code) : true;
}

static bool close_state(struct look *l)
{
	int code = fmt_close(l->c->image);

	l->c->image = NULL;
	return code ? bad(l, "close", blk_strerror(code)) : true;
}

static void say(void *ctx, const char *text)
{
	(void)ctx;
	printf("#   check: %s\n", text);
}

static bool check(struct look *l, struct blk *image, const char *when, bool *corrupt)
{
	struct fmt_check ck = {.line = l->loud ? say : NULL};
	struct blk_err err = BLK_ERR_INIT;
	const struct fmt_driver *d = fmt_driver_of(image);
	int code;

	*corrupt = false;
	if (!d || !d->check)
		return true;
	code = fmt_check(image, &ck, &err);
	if (code)
		return bad_err(l, when, &err, code);
	*corrupt = ck.corruptions || ck.check_errors;
	return true;
}

/* ---- content ----------------------------------------------------------------------- */

static bool content(struct look *l, const uint8_t *buf, uint64_t sectors)
{
	struct crash *c = l->c;

	for (uint64_t s = 0; s < sectors; s++) {
		int64_t v = model_value(&c->m, s, buf + s * SECTOR);
		char text[100];

		if (v >= 0 && model_allows(&c->m, s, (uint32_t)v, l->cut->at))
			continue;
		snprintf(text, sizeof(text), "sector %llu holds %s %u, of sector %u",
			(unsigned long long)s, v < 0 ? "what is none of its values," : "write",
			v < 0 ? thr_be32(buf + s * SECTOR) : (unsigned)v,
			thr_be32(buf + s * SECTOR + 4));
		if (l->loud)
			model_explain(&c->m, s, l->cut->at);
		return bad(l, "content", text);
	}
	return true;
}

static bool compare(struct look *l)
{
	struct crash *c = l->c;
	uint64_t size = blk_size(c->image);
	char text[100];
	uint8_t *buf;
	bool ok;
	int code;

	/* raw is as long as its file, up to the end of a sector. */
	if (!model_allows_size(&c->m, c->row, size, l->cut->at)) {
		snprintf(text, sizeof(text), "%llu", (unsigned long long)size);
		return bad(l, "length", text);
	}
	buf = malloc(size + 1);
	THR_ASSERT(buf);
	code = size ? blk_pread(c->image, 0, buf, size) : 0;
	ok = code ? bad(l, "read", blk_strerror(code)) : content(l, buf, size / SECTOR);
	free(buf);
	return ok;
}

/* ---- the life after ------------------------------------------------------------------ */

/* Goes on writing, and sees that what was written then is there, and nothing else gone. */
static bool go_on(struct look *l)
{
	struct crash *c = l->c;
	uint64_t size = blk_size(c->image), seed = l->cut->sub + l->cut->at, n, off;
	uint8_t *was = malloc(size + 1), *is = malloc(size + 1);
	bool ok, corrupt;
	int code;

	THR_ASSERT(was && is);
	code = size ? blk_pread(c->image, 0, was, size) : 0;
	for (unsigned i = 0; !code && size && i < 6; i++) {
		off = crash_rnd(&seed, (uint32_t)(size / SECTOR)) * (uint64_t)SECTOR;
		n = (1 + crash_rnd(&seed, 60)) * (uint64_t)SECTOR;
		n = THR_MIN(size - off, n);
		memset(was + off, (int)(0x80 + i), n);
		code = blk_pwrite(c->image, off, was + off, n);
		if (!code && i % 3 == 1)
			code = blk_flush(c->image);
	}
	ok = code ? bad(l, "writing afterwards", blk_strerror(code)) : true;
	ok = close_state(l) && ok && open_state(l, 0);
	if (ok) {
		code = size ? blk_pread(c->image, 0, is, size) : 0;
		if (code || memcmp(was, is, size))
			ok = bad(l, "content after writing again", "");
		ok = check(l, c->image, "check after writing again", &corrupt) && ok;
		if (ok && corrupt)
			ok = bad(l, "corrupt after writing again", "");
	}
	free(was);
	free(is);
	return ok;
}

/* As it is for a reader, before anything is repaired. */
static bool dirty_or_sound(struct look *l)
{
	struct fmt_info info = {0};
	bool corrupt, ok = open_state(l, 0);

	if (!ok)
		return false;
	(void)fmt_info(l->c->image, &info);
	ok = check(l, l->c->image, "check for reading", &corrupt);
	if (ok && corrupt && !info.dirty)
		ok = bad(l, "corrupt", "");
	if (ok && info.dirty && !(l->c->row->flags & ROW_DIRTY))
		ok = bad(l, "marked dirty", "");
	ok = ok && compare(l);
	return (!l->c->image || close_state(l)) && ok;
}

static bool look(struct look *l, bool more)
{
	struct crash *c = l->c;
	bool corrupt, ok = dirty_or_sound(l);

	ok = ok && open_state(l, BLK_RDWR) && check(l, c->image, "check", &corrupt);
	if (ok && corrupt)
		ok = bad(l, "corrupt", "");
	if (ok && c->image->backing) {
		ok = check(l, c->image->backing, "check of the base", &corrupt);
		if (ok && corrupt)
			ok = bad(l, "the base is corrupt", "");
	}
	ok = ok && compare(l);
	if (ok && more)
		ok = go_on(l);
	if (c->image)
		ok = close_state(l) && ok;
	return ok;
}

bool state_verify(
	struct crash *c, const struct cut *cut, bool more, bool loud, char *why, size_t size)
{
	struct look l = {c, cut, loud, why, size};

	return look(&l, more);
}

/* ---- for other programs ----------------------------------------------------------------- */

static bool put_file(const char *name, const void *buf, uint64_t len)
{
	FILE *f = fopen(name, "wb");
	bool ok = f && fwrite(buf, 1, len, f) == len;

	return f && !fclose(f) && ok;
}

static bool put_store(const struct store *s, const char *name)
{
	uint8_t *buf = malloc(s->size + 1);
	bool ok;

	THR_ASSERT(buf);
	store_read(s, 0, buf, s->size);
	ok = put_file(name, buf, s->size);
	free(buf);
	return ok;
}

/* What the guest sees, as it is now. */
static bool put_disk(struct crash *c, const char *name)
{
	uint64_t size = blk_size(c->image);
	uint8_t *buf = malloc(size + 1);
	bool ok;

	THR_ASSERT(buf);
	ok = !size || !blk_pread(c->image, 0, buf, size);
	ok = ok && put_file(name, buf, size);
	free(buf);
	return ok;
}

bool state_export(struct crash *c, const char *dir, const char *name)
{
	static const char *const suffix[DEVS] = {"image", "second", "base"};
	struct blk_err err = BLK_ERR_INIT;
	char path[512];
	bool ok = true;

	for (unsigned i = 0; ok && i < DEVS; i++) {
		if (!c->state[i])
			continue;
		snprintf(path, sizeof(path), "%s/%s.%s", dir, name, suffix[i]);
		ok = put_store(c->state[i], path);
	}
	if (!ok || crash_open(c, c->state, false, 0, 0, &err))
		return false;
	snprintf(path, sizeof(path), "%s/%s.guest", dir, name);
	ok = put_disk(c, path);
	ok = !fmt_close(c->image) && ok;
	c->image = NULL;
	return ok;
}
