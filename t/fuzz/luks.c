/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/fuzz/luks.c - any bytes as the header of a LUKS volume, which is parsed, unlocked
 * with the right password, and written to. It lies over one of two sound volumes, so
 * that key material is good but for bytes that are changed too:
 *
 *   u8 which volume (bit 0), bytes of the header from its start on (LUKS_HEADER at
 *   most), then any number of be24 offset, u8 value
 *
 * A header that parses is made again to the byte. A volume that opens holds what is
 * written, and nothing before its payload changes.
 */
#include <stdlib.h>

#include "fmt/luks/luks.h"
#include "t/fuzz/fuzz.h"

#define AREA  (2u << 20)
#define DATA  4096u
#define ITERS 1000u /* of what has a slower key; the real limit stays what it is */

static const struct fmt_secret secret = {"s", (const uint8_t *)"password", 8};
static const struct fmt_secrets secrets = {&secret, 1};
static const struct blk_opt key = {"key-secret", "s"};

static uint8_t sound[2][AREA + DATA], volume[AREA + DATA], before[AREA];
static uint64_t payload[2];

static void make(unsigned which)
{
	static const struct blk_opt opts[2][4] = {
		{{"key-secret", "s"}, {"iter-time", "1"}},
		{{"key-secret", "s"}, {"iter-time", "1"}, {"cipher-alg", "aes-128"},
			{"cipher-mode", "cbc"}},
	};
	struct blk_opts o = {opts[which], which ? 4 : 2};
	struct fmt_create c = {.opts = &o, .secrets = &secrets, .mem = &thr_heap};
	struct luks_setup s;
	struct luks_area a;
	struct blk *file;

	FUZZ_MUST(!blk_mem_open(&file, sound[which], AREA + DATA, BLK_RDWR, &thr_heap, NULL));
	memset(&s, 0, sizeof(s));
	FUZZ_MUST(!luks_setup_options(&s, &c, "", NULL));
	luks_area_init(&a, file, 0, AREA);
	FUZZ_MUST(!luks_setup_write(&s, &a, "seed", &thr_heap, NULL));
	payload[which] = (uint64_t)s.h.payload * LUKS_SECTOR;
	FUZZ_MUST(payload[which] <= AREA);
	blk_close(file);
}

/* A large number of iterations is refused or takes long; between those is nothing new. */
static void bound(uint8_t *p)
{
	uint32_t n = thr_be32(p);

	if (n > ITERS && n <= LUKS_ITER_MAX)
		thr_put_be32(p, 1 + n % ITERS);
}

static void bound_all(void)
{
	bound(volume + 164);
	for (unsigned i = 0; i < LUKS_SLOTS; i++)
		bound(volume + 208 + 48 * i + 4);
}

/* What was read is what is there. */
static bool parse(struct luks_header *h)
{
	struct luks_area a = {.size = sizeof(volume)};
	struct blk_err err = BLK_ERR_INIT;
	uint8_t raw[LUKS_HEADER];
	int code = luks_header_parse(h, volume, &a, &err);

	fuzz_explained(code, &err);
	if (code)
		return false;
	luks_header_pack(h, raw);
	FUZZ_MUST(!memcmp(raw, volume, LUKS_HEADER));
	return true;
}

static void use(struct blk *b)
{
	uint8_t in[600], out[600];
	uint64_t size = blk_size(b);
	size_t len = (size_t)THR_MIN(size, sizeof(in));

	memset(in, 0x5a, sizeof(in));
	FUZZ_MUST(!blk_pread(b, size - len, out, len));
	FUZZ_MUST(!blk_pwrite(b, 0, in, len));
	FUZZ_MUST(!blk_pread(b, 0, out, len));
	FUZZ_MUST(!memcmp(in, out, len));
}

static void open_volume(const struct luks_header *h, bool intact)
{
	static const struct blk_opts opts = {&key, 1};
	struct fmt_open o = {.format = "luks",
		.blk_flags = BLK_RDWR,
		.opts = &opts,
		.secrets = &secrets,
		.mem = &fuzz_mem};
	struct blk_err err = BLK_ERR_INIT;
	struct blk *file, *b = NULL;
	uint64_t data;
	int code;

	FUZZ_MUST(!blk_mem_open(&file, volume, sizeof(volume), BLK_RDWR, &fuzz_mem, NULL));
	code = fmt_open_on(&b, file, &o, &err);
	fuzz_explained(code, &err);
	FUZZ_MUST(!code || !intact);
	if (code) {
		blk_close(file);
		return;
	}
	FUZZ_MUST(h);
	data = (uint64_t)h->payload * LUKS_SECTOR;
	FUZZ_MUST(blk_size(b) == sizeof(volume) - data);
	use(b);
	FUZZ_MUST(!fmt_close(b));
	FUZZ_MUST(!memcmp(volume, before, (size_t)THR_MIN(data, sizeof(before))));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct luks_header h;
	unsigned which;
	bool parsed;
	size_t n;

	if (!len)
		return -1;
	if (!payload[0]) {
		make(0);
		make(1);
	}
	which = data[0] & 1;
	n = THR_MIN(len - 1, LUKS_HEADER);
	memcpy(volume, sound[which], sizeof(volume));
	memcpy(volume, data + 1, n);
	for (data += 1 + n, len -= 1 + n; len >= 4; data += 4, len -= 4)
		volume[thr_be32(data) >> 8 & (AREA - 1)] = data[3];
	bound_all();
	memcpy(before, volume, sizeof(before));
	parsed = parse(&h);
	open_volume(parsed ? &h : NULL, !memcmp(volume, sound[which], payload[which]));
	fuzz_mem_end();
	return 0;
}
