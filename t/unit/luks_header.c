/* SPDX-License-Identifier: BSD-2-Clause
 *
 * LUKS headers: what is refused and with which words, the splitter, key slots, damage.
 */
#include "t/unit/blk_util.h"

#include "fmt/luks/luks.h"

#define AREA (2u << 20)

static const struct fmt_secret one = {"one", (const uint8_t *)"first", 5};
static const struct fmt_secret two = {"two", (const uint8_t *)"second", 6};
static const struct fmt_secret secrets[] = {
	{"one", (const uint8_t *)"first", 5}, {"two", (const uint8_t *)"second", 6}};
static const struct fmt_secrets list = {secrets, 2};

/* A volume in memory, made with the options of @v. */
struct volume {
	uint8_t *mem;
	struct blk *file;
	struct luks_area a;
	struct luks_setup s;
};

static void volume_new(struct volume *v, const struct blk_opt *opts, unsigned n)
{
	struct blk_opts o = {opts, n};
	struct fmt_create c = {.opts = &o, .secrets = &list, .mem = &thr_heap};
	struct blk_err err = BLK_ERR_INIT;

	v->mem = calloc(1, AREA + 4096);
	assert_non_null(v->mem);
	assert_int_equal(
		blk_mem_open(&v->file, v->mem, AREA + 4096, BLK_RDWR, &thr_heap, &err), 0);
	assert_int_equal(luks_setup_options(&v->s, &c, "", &err), 0);
	assert_true(v->s.h.payload * LUKS_SECTOR <= AREA);
	luks_area_init(&v->a, v->file, 0, AREA);
	assert_int_equal(luks_setup_write(&v->s, &v->a, "seed", &thr_heap, &err), 0);
}

static void volume_free(struct volume *v)
{
	blk_close(v->file);
	free(v->mem);
}

static const struct blk_opt plain[] = {{"key-secret", "one"}, {"iter-time", "1"}};

static int unlock(struct volume *v, const struct fmt_secret *pass, unsigned *slot)
{
	struct luks_header h;
	uint8_t key[LUKS_KEY_MAX];
	struct blk_err err = BLK_ERR_INIT;
	int ret = luks_header_read(&v->a, &h, &err);

	return ret ? ret : luks_unlock(&v->a, &h, pass, key, slot, &thr_heap, &err);
}

/* ---- fields ---- */

struct damage {
	const char *name;
	unsigned at, len;
	uint32_t value;
	enum blk_err_id id;
};

static const struct damage damages[] = {
	{"magic", 0, 4, 1, BLK_E_NOT_FORMAT},
	{"version 2", 6, 2, 2, BLK_E_LUKS_VERSION},
	{"version 0", 6, 2, 0, BLK_E_LUKS_VERSION},
	{"cipher", 8, 4, 0x78797a00, BLK_E_LUKS_CIPHER},
	{"mode", 40, 4, 0x78797a00, BLK_E_LUKS_CIPHER},
	{"hash", 72, 4, 0x78797a00, BLK_E_LUKS_HASH},
	{"no payload", 104, 4, 0, BLK_E_LUKS_OVERLAP},
	{"payload in slot 7", 104, 4, 4000, BLK_E_LUKS_OVERLAP},
	{"no key", 108, 4, 0, BLK_E_LUKS_KEY},
	{"large key", 108, 4, 0xffffffff, BLK_E_LUKS_KEY},
	{"odd key", 108, 4, 33, BLK_E_LUKS_CIPHER},
	{"no iterations", 164, 4, 0, BLK_E_LUKS_ITERATIONS},
	{"endless iterations", 164, 4, 0xffffffff, BLK_E_LUKS_ITERATIONS},
	{"slot state", 208, 4, 7, BLK_E_LUKS_STATE},
	{"slot 7 state", 208 + 7 * 48, 4, 7, BLK_E_LUKS_STATE},
	{"slot iterations", 212, 4, 0, BLK_E_LUKS_ITERATIONS},
	{"slot endless", 212, 4, 0x08000001, BLK_E_LUKS_ITERATIONS},
	{"slot in header", 248, 4, 1, BLK_E_LUKS_OVERLAP},
	{"slot in slot", 248, 4, 600, BLK_E_LUKS_OVERLAP},
	{"slot past payload", 248, 4, 0xffffffff, BLK_E_LUKS_OVERLAP},
	{"stripes", 252, 4, 3999, BLK_E_LUKS_STRIPES},
	{"stripes 0", 252, 4, 0, BLK_E_LUKS_STRIPES},
};

static void test_fields(void **state)
{
	uint8_t good[LUKS_HEADER], raw[LUKS_HEADER];
	struct luks_header h;
	struct volume v;

	(void)state;
	volume_new(&v, plain, 2);
	memcpy(good, v.mem, sizeof(good));
	for (size_t i = 0; i < THR_ARRAY_SIZE(damages); i++) {
		const struct damage *d = &damages[i];
		struct blk_err err = BLK_ERR_INIT;

		memcpy(raw, good, sizeof(raw));
		if (d->len == 2)
			thr_put_be16(raw + d->at, (uint16_t)d->value);
		else
			thr_put_be32(raw + d->at, d->value);
		if (!luks_header_parse(&h, raw, &v.a, &err) || err.id != d->id)
			fail_msg("%s: error %d, not %d", d->name, err.id, d->id);
	}
	assert_int_equal(luks_header_parse(&h, good, &v.a, NULL), 0);
	luks_header_pack(&h, raw);
	assert_memory_equal(raw, good, sizeof(raw));
	volume_free(&v);
}

/* Strings that fill their fields, and an area that ends early. */
static void test_bounds(void **state)
{
	static const unsigned strings[][2] = {{8, 32}, {40, 32}, {72, 32}, {168, 40}};
	struct luks_header h;
	struct volume v;

	(void)state;
	volume_new(&v, plain, 2);
	for (size_t i = 0; i < THR_ARRAY_SIZE(strings); i++) {
		uint8_t raw[LUKS_HEADER];
		struct blk_err err = BLK_ERR_INIT;

		memcpy(raw, v.mem, sizeof(raw));
		memset(raw + strings[i][0], 'a', strings[i][1]);
		assert_true(luks_header_parse(&h, raw, &v.a, &err) < 0);
		assert_int_equal(err.id, BLK_E_LUKS_STRING);
	}
	for (unsigned size = 0; size < LUKS_HEADER; size += 37) {
		struct luks_area a = v.a;
		struct blk_err err = BLK_ERR_INIT;

		a.size = size;
		assert_true(luks_header_read(&a, &h, &err) < 0);
		assert_int_equal(err.id, BLK_E_LUKS_SHORT);
	}
	v.a.size = 100000;
	{
		struct blk_err err = BLK_ERR_INIT;

		assert_true(luks_header_read(&v.a, &h, &err) < 0);
		assert_int_equal(err.id, BLK_E_LUKS_OUTSIDE);
	}
	volume_free(&v);
}

/* ---- the splitter ---- */

static void test_split(void **state)
{
	static const enum cz_digest_id hashes[] = {
		CZ_SHA1, CZ_SHA256, CZ_SHA512, CZ_BLAKE2B_512};
	static const size_t lens[] = {16, 24, 32, 48, 64};
	uint8_t *split = malloc(LUKS_KEY_MAX * LUKS_STRIPES);
	uint8_t key[LUKS_KEY_MAX], back[LUKS_KEY_MAX];
	struct cz_rng rng;

	(void)state;
	assert_non_null(split);
	assert_int_equal(cz_rng_init(&rng, "x", "y"), 0);
	assert_int_equal(cz_rng_get(&rng, key, sizeof(key)), 0);
	for (size_t i = 0; i < THR_ARRAY_SIZE(hashes); i++)
		for (size_t j = 0; j < THR_ARRAY_SIZE(lens); j++) {
			size_t len = lens[j];

			assert_int_equal(
				luks_af_split(hashes[i], key, len, split, &rng, &thr_heap), 0);
			assert_int_equal(
				luks_af_merge(hashes[i], split, len, back, &thr_heap), 0);
			assert_memory_equal(back, key, len);
			split[len * 1234 + 5] ^= 1;
			assert_int_equal(
				luks_af_merge(hashes[i], split, len, back, &thr_heap), 0);
			assert_memory_not_equal(back, key, len);
		}
	free(split);
}

/* ---- slots ---- */

static int change(struct volume *v, const struct blk_opt *opts, unsigned n, bool force,
	enum blk_err_id *id)
{
	struct blk_opts o = {opts, n};
	struct fmt_amend m = {
		.opts = &o, .secrets = &list, .force = force, .seed = "x", .mem = &thr_heap};
	struct blk_err err = BLK_ERR_INIT;
	struct luks_header h;
	uint8_t key[LUKS_KEY_MAX];
	unsigned slot;
	int ret = luks_header_read(&v->a, &h, NULL);

	assert_int_equal(ret, 0);
	if (luks_unlock(&v->a, &h, &one, key, &slot, &thr_heap, NULL))
		assert_int_equal(luks_unlock(&v->a, &h, &two, key, &slot, &thr_heap, NULL), 0);
	ret = luks_amend(&v->a, &h, key, &m, "", &err);
	*id = err.id;
	return ret;
}

static void test_slots(void **state)
{
	static const struct blk_opt add[] = {
		{"state", "active"}, {"new-secret", "two"}, {"iter-time", "1"}};
	static const struct blk_opt add7[] = {{"state", "active"}, {"new-secret", "two"},
		{"iter-time", "1"}, {"keyslot", "7"}};
	static const struct blk_opt drop1[] = {{"state", "inactive"}, {"old-secret", "one"}};
	static const struct blk_opt drop2[] = {{"state", "inactive"}, {"old-secret", "two"}};
	static const struct blk_opt drop0[] = {{"state", "inactive"}, {"keyslot", "0"}};
	enum blk_err_id id;
	struct volume v;
	unsigned slot;

	(void)state;
	volume_new(&v, plain, 2);
	assert_int_equal(unlock(&v, &one, &slot), 0);
	assert_int_equal(slot, 0);
	assert_int_equal(unlock(&v, &two, &slot), -THR_EACCES);
	assert_int_equal(change(&v, drop1, 2, false, &id), -THR_EBUSY);
	assert_int_equal(id, BLK_E_LUKS_LAST);
	assert_int_equal(change(&v, drop2, 2, false, &id), -THR_EACCES);
	assert_int_equal(id, BLK_E_LUKS_NO_MATCH);
	assert_int_equal(change(&v, add7, 4, false, &id), 0);
	assert_int_equal(unlock(&v, &two, &slot), 0);
	assert_int_equal(slot, 7);
	assert_int_equal(change(&v, add7, 4, false, &id), -THR_EBUSY);
	assert_int_equal(id, BLK_E_LUKS_IN_USE);
	assert_int_equal(change(&v, add7, 4, true, &id), 0);
	for (unsigned i = 1; i < 7; i++)
		assert_int_equal(change(&v, add, 3, false, &id), 0);
	assert_int_equal(change(&v, add, 3, false, &id), -THR_ENOSPC);
	assert_int_equal(id, BLK_E_LUKS_FULL);
	assert_int_equal(change(&v, drop0, 2, false, &id), 0);
	assert_int_equal(change(&v, drop0, 2, false, &id), -THR_EINVAL);
	assert_int_equal(id, BLK_E_LUKS_IS_OFF);
	assert_int_equal(unlock(&v, &one, &slot), -THR_EACCES);
	assert_int_equal(unlock(&v, &two, &slot), 0);
	assert_int_equal(change(&v, drop2, 2, true, &id), 0);
	assert_int_equal(unlock(&v, &two, &slot), -THR_EACCES);
	volume_free(&v);
}

/* A damaged slot opens nothing; the others still do. */
static void test_damage(void **state)
{
	static const struct blk_opt add[] = {
		{"state", "active"}, {"new-secret", "two"}, {"iter-time", "1"}};
	enum blk_err_id id;
	struct volume v;
	unsigned slot;

	(void)state;
	volume_new(&v, plain, 2);
	assert_int_equal(change(&v, add, 3, false, &id), 0);
	v.mem[LUKS_ALIGN + 100000] ^= 1;
	assert_int_equal(unlock(&v, &one, &slot), -THR_EACCES);
	assert_int_equal(unlock(&v, &two, &slot), 0);
	assert_int_equal(slot, 1);
	v.mem[120] ^= 1; /* the master key's digest */
	assert_int_equal(unlock(&v, &two, &slot), -THR_EACCES);
	volume_free(&v);
}

/* Every one under make t; every few under valgrind, to which deriving a key is work. */
static unsigned stride(void)
{
	const char *w = getenv("W");

	return w && *w ? 15 : 1;
}

/* Every combination that goes together makes a volume that opens. */
static void test_combinations(void **state)
{
	static const char *const ciphers[] = {
		"aes-128", "aes-192", "aes-256", "camellia-128", "camellia-256", "sm4"};
	static const char *const modes[] = {"ecb", "cbc", "ctr", "xts"};
	static const char *const ivs[] = {"plain", "plain64", "essiv"};
	unsigned made = 0;

	(void)state;
	for (unsigned i = 0; i < THR_ARRAY_SIZE(ciphers) * THR_ARRAY_SIZE(modes) * 3;
		i += stride()) {
		const struct blk_opt opts[] = {{"key-secret", "one"}, {"iter-time", "1"},
			{"cipher-alg", ciphers[i / 12]}, {"cipher-mode", modes[i / 3 % 4]},
			{"ivgen-alg", ivs[i % 3]}, {"hash-alg", i & 1 ? "sha1" : "sha512"}};
		struct blk_opts o = {opts, 6};
		struct fmt_create c = {.opts = &o, .secrets = &list, .mem = &thr_heap};
		struct luks_setup s;
		struct volume v;
		unsigned slot;

		if (luks_setup_options(&s, &c, "", NULL))
			continue;
		volume_new(&v, opts, 6);
		assert_int_equal(unlock(&v, &one, &slot), 0);
		assert_int_equal(unlock(&v, &two, &slot), -THR_EACCES);
		volume_free(&v);
		made++;
	}
	assert_true(made >= 30 / stride());
}

/* ---- power cuts ---- */

static const struct blk_opt on[] = {
	{"state", "active"}, {"new-secret", "two"}, {"iter-time", "1"}, {"keyslot", "6"}};
static const struct blk_opt off[] = {{"state", "inactive"}, {"old-secret", "two"}};

/* After a cut at @at, with some of what was not durable: what was on opens still, and
 * the slot that changes is off or opens. */
static void cut_at(
	struct volume *v, struct blk *log, const uint8_t *was, uint64_t at, unsigned how)
{
	uint8_t key[LUKS_KEY_MAX];
	struct luks_header h;

	memcpy(v->mem, was, AREA);
	for (size_t i = 0; i < blk_log_count(log); i++) {
		const struct blk_log_entry *e = blk_log_get(log, i);
		enum blk_log_fate f = blk_log_fate(log, i, at);

		if (e->op != BLK_OP_WRITE || f == BLK_LOG_NOT_YET)
			continue;
		if (f == BLK_LOG_MAYBE && !(how >> (i & 3) & 1))
			continue;
		assert_int_equal(blk_log_apply(e, 0, e->len, v->file), 0);
	}
	assert_int_equal(luks_header_read(&v->a, &h, NULL), 0);
	assert_int_equal(luks_slot_try(&v->a, &h, 0, &one, key, &thr_heap), 0);
	if (h.slot[6].active)
		assert_int_equal(luks_slot_try(&v->a, &h, 6, &two, key, &thr_heap), 0);
}

static void cuts(struct volume *v, const struct blk_opt *opts, unsigned n)
{
	struct luks_area plain_area = v->a;
	uint8_t *was = malloc(AREA), *now = malloc(AREA);
	enum blk_err_id id;
	struct blk *log;

	assert_true(was && now);
	memcpy(was, v->mem, AREA);
	assert_int_equal(blk_log_open(&log, v->file, NULL, NULL, &thr_heap, NULL), 0);
	v->a.blk = log;
	assert_int_equal(change(v, opts, n, false, &id), 0);
	v->a = plain_area;
	memcpy(now, v->mem, AREA);
	assert_true(blk_log_count(log) >= 4);
	for (uint64_t at = 1; at <= blk_log_now(log); at++)
		for (unsigned how = 0; how < 16; how += stride())
			cut_at(v, log, was, at, how);
	memcpy(v->mem, now, AREA);
	/* It owns the file. */
	v->file = NULL;
	blk_close(log);
	assert_int_equal(
		blk_mem_open(&v->file, v->mem, AREA + 4096, BLK_RDWR, &thr_heap, NULL), 0);
	v->a.blk = v->file;
	free(was);
	free(now);
}

static void test_cuts(void **state)
{
	struct volume v;
	unsigned slot;

	(void)state;
	volume_new(&v, plain, 2);
	cuts(&v, on, 4);
	assert_int_equal(unlock(&v, &two, &slot), 0);
	assert_int_equal(slot, 6);
	cuts(&v, off, 2);
	assert_int_equal(unlock(&v, &two, &slot), -THR_EACCES);
	volume_free(&v);
}

/* The generator's bytes are part of the format of what is made with a seed. */
static void test_seed(void **state)
{
	static const uint8_t want[] = {0x06, 0x35, 0x29, 0x85, 0x84, 0xc0, 0x6b, 0xbd, 0x9e,
		0xc7, 0xa9, 0x78, 0x1a, 0x23, 0xbc, 0x51, 0x53, 0x22, 0x45, 0x8a, 0x53, 0x53,
		0xdf, 0x42, 0x4b, 0xc7, 0xb2, 0x46, 0x7d, 0xea, 0x97, 0xa3, 0xa8, 0xc8, 0x0f,
		0x7e, 0x70, 0x38, 0xb5, 0x09};
	uint8_t got[sizeof(want)];
	struct cz_rng rng;

	(void)state;
	assert_int_equal(cz_rng_init(&rng, "seed", "label"), 0);
	assert_int_equal(cz_rng_get(&rng, got, sizeof(got)), 0);
	assert_memory_equal(got, want, sizeof(got));
	assert_int_equal(cz_rng_init(&rng, NULL, "label"), 0);
	assert_int_equal(cz_rng_get(&rng, got, sizeof(got)), 0);
	assert_memory_not_equal(got, want, sizeof(got));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_combinations),
		cmocka_unit_test(test_cuts),
		cmocka_unit_test(test_seed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
