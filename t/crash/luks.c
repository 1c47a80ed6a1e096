/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/crash/luks.c - what rows with LUKS need: key slots that come and go, and an open that
 * fails where a slot is on that does not open.
 */
#include "fmt/luks/luks.h"
#include "t/crash/crash.h"

static const struct fmt_secret keys[] = {
	{"s", (const uint8_t *)"first", 5},
	{"t", (const uint8_t *)"second", 6},
};
const struct fmt_secrets crash_luks_secrets = {keys, THR_ARRAY_SIZE(keys)};

/* ---- key slots ------------------------------------------------------------------- */

static const struct blk_opt on[] = {
	{"state", "active"}, {"new-secret", "t"}, {"iter-time", "1"}};
static const struct blk_opt off[] = {{"state", "inactive"}, {"old-secret", "t"}};
static const struct blk_opt qcow2_on[] = {
	{"encrypt.state", "active"}, {"encrypt.new-secret", "t"}, {"encrypt.iter-time", "1"}};
static const struct blk_opt qcow2_off[] = {
	{"encrypt.state", "inactive"}, {"encrypt.old-secret", "t"}};

static int amend(struct blk *image, const struct blk_opt *v, unsigned n, struct blk_err *err)
{
	struct blk_opts o = {v, n};
	struct fmt_amend m = {
		.opts = &o,
		.secrets = &crash_luks_secrets,
		.seed = "crash",
		.mem = &thr_heap,
	};
	int code = fmt_amend(image, &m, err);

	/* There may be none to be switched off, or no room for one more. */
	return code == -THR_EACCES || code == -THR_ENOSPC ? 0 : code;
}

int crash_luks_amend(struct blk *image, uint32_t random, struct blk_err *err)
{
	return random & 1 ? amend(image, on, 3, err) : amend(image, off, 2, err);
}

int crash_luks_amend_qcow2(struct blk *image, uint32_t random, struct blk_err *err)
{
	return random & 1 ? amend(image, qcow2_on, 3, err) : amend(image, qcow2_off, 2, err);
}

/* ---- opening ----------------------------------------------------------------------- */

static int slot_opens(const struct luks_area *a, const struct luks_header *h, unsigned slot)
{
	uint8_t key[LUKS_KEY_MAX];
	int code = -THR_EACCES;

	for (size_t i = 0; code == -THR_EACCES && i < THR_ARRAY_SIZE(keys); i++)
		code = luks_slot_try(a, h, slot, &keys[i], key, &thr_heap);
	return code;
}

/* Every slot that is on opens with one of the passwords. */
static int slots_open(struct blk *file, uint64_t base, uint64_t size, struct blk_err *err)
{
	struct luks_area a;
	struct luks_header h;
	int code;

	luks_area_init(&a, file, base, size);
	code = luks_header_read(&a, &h, err);
	for (unsigned i = 0; !code && i < LUKS_SLOTS; i++) {
		if (!h.slot[i].active)
			continue;
		code = slot_opens(&a, &h, i);
		if (code)
			blk_fail(err, code, BLK_E_LUKS_PASSWORD, 0, i);
	}
	return code;
}

static int open_with(struct blk **out, const struct crash_row *r, struct blk *file,
	const char *key, unsigned blk_flags, unsigned flags, struct blk_err *err)
{
	struct blk_opt opt = {key, "s"};
	struct blk_opts opts = {&opt, 1};
	struct fmt_open o = {
		.format = r->format,
		.blk_flags = blk_flags,
		.flags = flags,
		.opts = &opts,
		.secrets = &crash_luks_secrets,
		.mem = &thr_heap,
	};

	return fmt_open_on(out, file, &o, err);
}

int crash_luks_open(struct blk **out, const struct crash_row *r, struct blk *const dev[DEVS],
	unsigned blk_flags, unsigned flags, struct blk_err *err)
{
	struct blk *file = dev[DEV_IMAGE];
	int code = slots_open(file, 0, blk_size(file), err);

	return code ? code : open_with(out, r, file, "key-secret", blk_flags, flags, err);
}

/* Where the header lies says an extension, which are a chain of type, length and data. */
static int find_header(struct blk *file, uint64_t *off, uint64_t *len, struct blk_err *err)
{
	uint64_t at = 72;
	uint8_t p[24];
	int code = blk_pread(file, 0, p, 8);

	if (!code && thr_be32(p + 4) >= 3)
		at = 112;
	for (unsigned i = 0; !code && i < 8; i++) {
		code = blk_pread(file, at, p, sizeof(p));
		if (thr_be32(p) == 0x0537be77u)
			break;
		at += 8 + thr_align_up(thr_be32(p + 4), 8);
	}
	*off = thr_be64(p + 8);
	*len = thr_be64(p + 16);
	return code ? blk_fail(err, code, BLK_E_LUKS_SHORT, 0, 0) : 0;
}

int crash_luks_open_qcow2(struct blk **out, const struct crash_row *r,
	struct blk *const dev[DEVS], unsigned blk_flags, unsigned flags, struct blk_err *err)
{
	struct blk *file = dev[DEV_IMAGE];
	uint64_t off, len;
	int code = find_header(file, &off, &len, err);

	if (!code)
		code = slots_open(file, off, len, err);
	if (code)
		return code;
	return open_with(out, r, file, "encrypt.key-secret", blk_flags, flags, err);
}

/* ---- making --------------------------------------------------------------------------- */

/* A volume has noise where nobody has written; this one has zeroes. */
int crash_luks_make(const struct crash_row *r, struct blk *dev[DEVS], struct blk_err *err)
{
	struct blk_opts opts = {r->create, 2};
	struct fmt_create f = {
		.name = "image",
		.format = r->format,
		.size = r->size,
		.has_size = true,
		.opts = &opts,
		.secrets = &crash_luks_secrets,
		.seed = "crash",
		.mem = &thr_heap,
	};
	struct blk_req zero = {.len = r->size};
	struct blk *b;
	int code = fmt_driver_find(r->format)->create(dev[DEV_IMAGE], &f, err);

	if (!code)
		code = open_with(
			&b, r, dev[DEV_IMAGE], "key-secret", BLK_RDWR | BLK_FIXED_SIZE, 0, err);
	if (code)
		return code;
	dev[DEV_IMAGE] = NULL;
	code = blk_zero(b, &zero);
	return fmt_close(b) || code ? -THR_EIO : 0;
}
