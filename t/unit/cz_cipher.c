/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/cz_cipher.c - ciphers over sectors. Published vectors: FIPS 197, NIST SP
 * 800-38A (ECB, CBC), IEEE 1619 (XTS), RFC 3713 (Camellia), RFC 2144 (CAST5), GB/T
 * 32907 (SM4), the submissions of Serpent and Twofish to the AES and NESSIE's of
 * Serpent, RFC 2612 (CAST6). For what has none (XTS with keys of 192 bits, the IV generators,
 * modes of the other ciphers), the definition, block by block. The strings of LUKS
 * headers, sizes that are refused, and keys that are gone afterwards.
 */
#include <stdio.h>

#include "t/unit/cz_util.h"

static size_t unhex(uint8_t *out, const char *hex)
{
	size_t n = strlen(hex) / 2;

	for (size_t i = 0; i < n; i++) {
		unsigned v;

		assert_int_equal(sscanf(hex + 2 * i, "%2x", &v), 1);
		out[i] = (uint8_t)v;
	}
	return n;
}

static struct cz_cipher *make(const struct cz_cipher_spec *s, const uint8_t *key)
{
	struct cz_cipher *c = NULL;
	int err = cz_cipher_new(&c, &thr_heap, s, key, cz_cipher_key_len(s));

	if (err == -THR_ENOTSUP && s->cipher == CZ_CAST5_128) {
		print_message("# OpenSSL's legacy module is not installed: no CAST5\n");
		return NULL;
	}
	assert_int_equal(err, 0);
	return c;
}

/* Those of our own as the configuration says. */
static bool offered(enum cz_cipher_id id)
{
	bool on = id < CZ_SERPENT_128;

#ifdef CONFIG_CZ_SERPENT
	on |= id >= CZ_SERPENT_128 && id <= CZ_SERPENT_256;
#endif
#ifdef CONFIG_CZ_TWOFISH
	on |= id >= CZ_TWOFISH_128 && id <= CZ_TWOFISH_256;
#endif
#ifdef CONFIG_CZ_CAST6
	on |= id >= CZ_CAST6_128 && id <= CZ_CAST6_256;
#endif
	return on;
}

/* ---- published vectors ------------------------------------------------------- */

#define K128 "2b7e151628aed2a6abf7158809cf4f3c"
#define K192 "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b"
#define K256 "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4"
#define SEQ  "000102030405060708090a0b0c0d0e0f"
#define P38A                                                                                   \
	"6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"                     \
	"30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710"
#define CAM "0123456789abcdeffedcba9876543210"
#define Z8  "0000000000000000"
#define Z16 Z8 Z8

static const struct {
	enum cz_cipher_id cipher;
	enum cz_mode mode;
	const char *key;
	const char *iv; /* CBC */
	const char *plain;
	const char *crypt;
} vectors[] = {
	/* FIPS 197, appendix C */
	{CZ_AES_128, CZ_ECB, SEQ, NULL, "00112233445566778899aabbccddeeff",
		"69c4e0d86a7b0430d8cdb78070b4c55a"},
	{CZ_AES_192, CZ_ECB, SEQ "1011121314151617", NULL, "00112233445566778899aabbccddeeff",
		"dda97ca4864cdfe06eaf70a0ec0d7191"},
	{CZ_AES_256, CZ_ECB, SEQ "101112131415161718191a1b1c1d1e1f", NULL,
		"00112233445566778899aabbccddeeff", "8ea2b7ca516745bfeafc49904b496089"},
	/* SP 800-38A, F.1 */
	{CZ_AES_128, CZ_ECB, K128, NULL, P38A,
		"3ad77bb40d7a3660a89ecaf32466ef97f5d3d58503b9699de785895a96fdbaaf"
		"43b1cd7f598ece23881b00e3ed0306887b0c785e27e8ad3f8223207104725dd4"},
	{CZ_AES_192, CZ_ECB, K192, NULL, P38A,
		"bd334f1d6e45f25ff712a214571fa5cc974104846d0ad3ad7734ecb3ecee4eef"
		"ef7afd2270e2e60adce0ba2face6444e9a4b41ba738d6c72fb16691603c18e0e"},
	{CZ_AES_256, CZ_ECB, K256, NULL, P38A,
		"f3eed1bdb5d2a03c064b5a7e3db181f8591ccb10d410ed26dc5ba74a31362870"
		"b6ed21b99ca6f4f9f153e7b1beafed1d23304b7a39f9f3ff067d8d8f9e24ecc7"},
	/* SP 800-38A, F.2 */
	{CZ_AES_128, CZ_CBC, K128, SEQ, P38A,
		"7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2"
		"73bed6b8e3c1743b7116e69e222295163ff1caa1681fac09120eca307586e1a7"},
	{CZ_AES_192, CZ_CBC, K192, SEQ, P38A,
		"4f021db243bc633d7178183a9fa071e8b4d9ada9ad7dedf4e5e738763f69145a"
		"571b242012fb7ae07fa9baac3df102e008b0e27988598881d920a9e64f5615cd"},
	{CZ_AES_256, CZ_CBC, K256, SEQ, P38A,
		"f58c4c04d6e5f1ba779eabfb5f7bfbd69cfc4e967edb808d679f777bc6702c7d"
		"39f23369a9d9bacfa530e26304231461b2eb05e2c39be9fcda6c19078c6a9d1b"},
	/* RFC 3713, appendix A */
	{CZ_CAMELLIA_128, CZ_ECB, CAM, NULL, CAM, "67673138549669730857065648eabe43"},
	{CZ_CAMELLIA_192, CZ_ECB, CAM "0011223344556677", NULL, CAM,
		"b4993401b3e996f84ee5cee7d79b09b9"},
	{CZ_CAMELLIA_256, CZ_ECB, CAM "00112233445566778899aabbccddeeff", NULL, CAM,
		"9acc237dff16d76c20ef7c919e3a7509"},
	/* GB/T 32907, appendix A */
	{CZ_SM4, CZ_ECB, CAM, NULL, CAM, "681edf34d206965e86b3e94f536e4246"},
	/* RFC 2144, appendix B */
	{CZ_CAST5_128, CZ_ECB, "0123456712345678234567893456789a", NULL, "0123456789abcdef",
		"238b4fe5847e44b2"},
	/* Serpent: NESSIE, sets 1 and 2, vectors 0 */
	{CZ_SERPENT_128, CZ_ECB, Z16, NULL, "8" Z8 "000000000000000",
		"a3b35de7c358ddd82644678c64b8bcbb"},
	{CZ_SERPENT_192, CZ_ECB, "8" Z16 "000000000000000", NULL, Z16,
		"9e274ead9b737bb21efcfca548602689"},
	{CZ_SERPENT_256, CZ_ECB, "8" Z16 Z8 "000000000000000", NULL, Z16,
		"a223aa1288463c0e2be38ebd825616c0"},
	/* and of the submission, which prints bytes backwards: ecb_vk I=1, ecb_vt I=1 and
	 * 2, ecb_tbl I=1 */
	{CZ_SERPENT_128, CZ_ECB, Z8 "0000000000000080", NULL, Z16,
		"ddd26b98a5ffd82c05345a9dadbfaf49"},
	{CZ_SERPENT_128, CZ_ECB, Z16, NULL, Z8 "0000000000000080",
		"4ae9a20b2b14a10290cbb820b7ffb510"},
	{CZ_SERPENT_192, CZ_ECB, Z16 Z8, NULL, Z8 "0000000000000040",
		"9668f388dd4f122a4d9dd8d6b8a322d5"},
	{CZ_SERPENT_256, CZ_ECB, Z16 Z16, NULL, Z16, "49672ba898d98df95019180445491089"},
	/* Twofish: the submission, ecb_ival I=1 and 49 */
	{CZ_TWOFISH_128, CZ_ECB, Z16, NULL, Z16, "9f589f5cf6122c32b6bfec2f2ae8c35a"},
	{CZ_TWOFISH_192, CZ_ECB, Z16 Z8, NULL, Z16, "efa71f788965bd4453f860178fc19101"},
	{CZ_TWOFISH_256, CZ_ECB, Z16 Z16, NULL, Z16, "57ff739d4dc92c1bd7fc01700cc8216f"},
	{CZ_TWOFISH_128, CZ_ECB, "bca724a54533c6987e14aa827952f921", NULL,
		"6b459286f3ffd28d49f15b1581b08e42", "5d9d4eeffa9151575524f115815a12e0"},
	{CZ_TWOFISH_192, CZ_ECB, "fb66522c332fcc4c042abe32fa9e902fdea4f3da75ec7a8e", NULL,
		"f0ab73301125fa21ef70be5385fb76b6", "e75449212beef9f4a390bd860a640941"},
	{CZ_TWOFISH_256, CZ_ECB,
		"248a7f3528b168acfdd1386e3f51e30c2e2158bc3e5fc714c1eeeca0ea696d48", NULL,
		"431058f4dbc7f734da4f02f04cc4f459", "37fe26ff1cf66175f5ddf4c33b97a205"},
	/* RFC 2612, appendix A */
	{CZ_CAST6_128, CZ_ECB, "2342bb9efa38542c0af75647f29f615d", NULL, Z16,
		"c842a08972b43d20836c91d1b7530f6b"},
	{CZ_CAST6_192, CZ_ECB, "2342bb9efa38542cbed0ac83940ac298bac77a7717942863", NULL, Z16,
		"1b386c0210dcadcbdd0e41aa08a7a7e8"},
	{CZ_CAST6_256, CZ_ECB,
		"2342bb9efa38542cbed0ac83940ac2988d7c47ce264908461cc1b5137ae6b604", NULL, Z16,
		"4f6a2038286897b9c9870136553317fa"},
};

/* There is no generator for any IV one likes, but CBC with an IV is CBC with zeros
 * after that IV was XORed to the first block. */
static void published(void **state)
{
	unsigned seen = 0;

	(void)state;
	for (unsigned i = 0; i < THR_ARRAY_SIZE(vectors); i++) {
		struct cz_cipher_spec s = {vectors[i].cipher, vectors[i].mode,
			vectors[i].iv ? CZ_IV_NULL : CZ_IV_NONE, CZ_MD5};
		uint8_t key[64], iv[16] = {0}, plain[64], crypt[64], got[64];
		size_t len = unhex(plain, vectors[i].plain);
		struct cz_cipher *c;

		if (!offered(vectors[i].cipher))
			continue;
		assert_int_equal(unhex(key, vectors[i].key), cz_cipher_key_len(&s));
		assert_int_equal(unhex(crypt, vectors[i].crypt), len);
		if (vectors[i].iv)
			unhex(iv, vectors[i].iv);
		for (unsigned k = 0; k < 16 && k < len; k++)
			plain[k] ^= iv[k];
		c = make(&s, key);
		if (!c)
			continue;
		assert_int_equal(cz_cipher_run(c, 0, len, got, plain, len, true), 0);
		assert_memory_equal(got, crypt, len);
		assert_int_equal(cz_cipher_run(c, 0, len, got, crypt, len, false), 0);
		assert_memory_equal(got, plain, len);
		cz_cipher_free(c);
		seen |= 1u << vectors[i].cipher;
	}
	for (int id = 0; id < CZ_CIPHERS; id++)
		assert_true(seen >> id & 1 || !offered(id) || id == CZ_CAST5_128);
}

/* IEEE 1619-2007, annex B, by number: keys, data unit and its plaintext, which is one
 * byte repeated or 0 to 255 twice. */
static const struct {
	const char *key1, *key2;
	uint64_t unit;
	size_t len;
	int byte; /* or -1 */
	const char *crypt;
} ieee1619[] = {
	{"00000000000000000000000000000000", "00000000000000000000000000000000", 0, 32, 0,
		"917cf69ebd68b2ec9b9fe9a3eadda692cd43d2f59598ed858c02c2652fbf922e"},
	{"11111111111111111111111111111111", "22222222222222222222222222222222", 0x3333333333,
		32, 0x44, "c454185e6a16936e39334038acef838bfb186fff7480adc4289382ecd6d394f0"},
	{"fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0", "22222222222222222222222222222222", 0x3333333333,
		32, 0x44, "af85336b597afc1a900b2eb21ec949d292df4c047e0b21532186a5971a227a89"},
	{"27182818284590452353602874713526", "31415926535897932384626433832795", 0, 512, -1,
		"27a7479befa1d476489f308cd4cfa6e2a96e4bbe3208ff25287dd3819616e89c"
		"c78cf7f5e543445f8333d8fa7f56000005279fa5d8b5e4ad40e736ddb4d35412"
		"328063fd2aab53e5ea1e0a9f332500a5df9487d07a5c92cc512c8866c7e860ce"
		"93fdf166a24912b422976146ae20ce846bb7dc9ba94a767aaef20c0d61ad0265"
		"5ea92dc4c4e41a8952c651d33174be51a10c421110e6d81588ede82103a252d8"
		"a750e8768defffed9122810aaeb99f9172af82b604dc4b8e51bcb08235a6f434"
		"1332e4ca60482a4ba1a03b3e65008fc5da76b70bf1690db4eae29c5f1badd03c"
		"5ccf2a55d705ddcd86d449511ceb7ec30bf12b1fa35b913f9f747a8afd1b130e"
		"94bff94effd01a91735ca1726acd0b197c4e5b03393697e126826fb6bbde8ecc"
		"1e08298516e2c9ed03ff3c1b7860f6de76d4cecd94c8119855ef5297ca67e9f3"
		"e7ff72b1e99785ca0a7e7720c5b36dc6d72cac9574c8cbbc2f801e23e56fd344"
		"b07f22154beba0f08ce8891e643ed995c94d9a69c9f1b5f499027a78572aeebd"
		"74d20cc39881c213ee770b1010e4bea718846977ae119f7a023ab58cca0ad752"
		"afe656bb3c17256a9f6e9bf19fdd5a38fc82bbe872c5539edb609ef4f79c203e"
		"bb140f2e583cb2ad15b4aa5b655016a8449277dbd477ef2c8d6c017db738b18d"
		"eb4a427d1923ce3ff262735779a418f20a282df920147beabe421ee5319d0568"},
	{"2718281828459045235360287471352662497757247093699959574966967627",
		"3141592653589793238462643383279502884197169399375105820974944592", 0xff, 512,
		-1,
		"1c3b3a102f770386e4836c99e370cf9bea00803f5e482357a4ae12d414a3e63b"
		"5d31e276f8fe4a8d66b317f9ac683f44680a86ac35adfc3345befecb4bb188fd"
		"5776926c49a3095eb108fd1098baec70aaa66999a72a82f27d848b21d4a741b0"
		"c5cd4d5fff9dac89aeba122961d03a757123e9870f8acf1000020887891429ca"
		"2a3e7a7d7df7b10355165c8b9a6d0a7de8b062c4500dc4cd120c0f7418dae3d0"
		"b5781c34803fa75421c790dfe1de1834f280d7667b327f6c8cd7557e12ac3a0f"
		"93ec05c52e0493ef31a12d3d9260f79a289d6a379bc70c50841473d1a8cc81ec"
		"583e9645e07b8d9670655ba5bbcfecc6dc3966380ad8fecb17b6ba02469a020a"
		"84e18e8f84252070c13e9f1f289be54fbc481457778f616015e1327a02b140f1"
		"505eb309326d68378f8374595c849d84f4c333ec4423885143cb47bd71c5edae"
		"9be69a2ffeceb1bec9de244fbe15992b11b77c040f12bd8f6a975a44a0f90c29"
		"a9abc3d4d893927284c58754cce294529f8614dcd2aba991925fedc4ae74ffac"
		"6e333b93eb4aff0479da9a410e4450e0dd7ae4c6e2910900575da401fc07059f"
		"645e8b7e9bfdef33943054ff84011493c27b3429eaedb4ed5376441a77ed4385"
		"1ad77f16f541dfd269d50d6a5f14fb0aab1cbb4c1550be97f7ab4066193c4caa"
		"773dad38014bd2092fa755c824bb5e54c4f36ffda9fcea70b9c6e693e148c151"},
};

static void published_xts(void **state)
{
	(void)state;
	for (unsigned i = 0; i < THR_ARRAY_SIZE(ieee1619); i++) {
		uint8_t key[64], plain[512], crypt[512], got[512];
		size_t half = unhex(key, ieee1619[i].key1), len = ieee1619[i].len;
		struct cz_cipher_spec s;
		struct cz_cipher *c;

		assert_int_equal(unhex(key + half, ieee1619[i].key2), half);
		assert_int_equal(unhex(crypt, ieee1619[i].crypt), len);
		for (size_t k = 0; k < len; k++)
			plain[k] = (uint8_t)(ieee1619[i].byte < 0 ? (int)k : ieee1619[i].byte);
		assert_int_equal(cz_cipher_parse(&s, "aes", "xts-plain64", 2 * half), 0);
		c = make(&s, key);
		assert_int_equal(
			cz_cipher_run(c, ieee1619[i].unit, len, got, plain, len, true), 0);
		assert_memory_equal(got, crypt, len);
		assert_int_equal(
			cz_cipher_run(c, ieee1619[i].unit, len, got, crypt, len, false), 0);
		assert_memory_equal(got, plain, len);
		cz_cipher_free(c);
	}
}

/* ---- the definition, block by block, over the cipher in ECB ---------------------- */

struct slow {
	struct cz_cipher *data, *tweak, *essiv;
	size_t block;
};

static void one(
	struct cz_cipher *c, uint8_t *dst, const uint8_t *src, size_t block, bool encrypt)
{
	assert_int_equal(cz_cipher_run(c, 0, block, dst, src, block, encrypt), 0);
}

static bool slow_open(struct slow *w, const struct cz_cipher_spec *s, const uint8_t *key)
{
	struct cz_cipher_spec bare = {s->cipher, CZ_ECB, CZ_IV_NONE, CZ_MD5};
	size_t len = cz_cipher_key_len(s);

	memset(w, 0, sizeof(*w));
	w->data = make(&bare, key);
	if (!w->data)
		return false;
	w->block = s->cipher == CZ_CAST5_128 ? 8 : 16;
	if (s->mode == CZ_XTS)
		w->tweak = make(&bare, key + len / 2);
	if (s->iv == CZ_IV_ESSIV) {
		uint8_t salt[CZ_DIGEST_MAX];
		char cipher[CZ_CIPHER_TEXT], mode[CZ_CIPHER_TEXT];

		cz_cipher_format(s, cipher, mode);
		assert_int_equal(cz_digest(s->iv_hash, key, len, salt), 0);
		assert_int_equal(
			cz_cipher_parse(&bare, cipher, "ecb", cz_digest_size(s->iv_hash)), 0);
		w->essiv = make(&bare, salt);
	}
	return true;
}

static void slow_close(struct slow *w)
{
	cz_cipher_free(w->data);
	cz_cipher_free(w->tweak);
	cz_cipher_free(w->essiv);
}

static void slow_iv(struct slow *w, uint8_t *iv, enum cz_iv kind, uint64_t sector, size_t size)
{
	memset(iv, 0, 16);
	if (kind == CZ_IV_PLAIN)
		sector &= UINT32_MAX;
	if (kind == CZ_IV_BENBI)
		sector = sector * (size / w->block) + 1;
	for (unsigned i = 0; i < 8 && kind != CZ_IV_NULL; i++) {
		bool big = kind == CZ_IV_PLAIN64BE || kind == CZ_IV_BENBI;

		iv[big ? w->block - 1 - i : i] = (uint8_t)(sector >> 8 * i);
	}
	if (w->essiv)
		one(w->essiv, iv, iv, w->block, true);
}

/* One sector in place. */
static void slow_sector(struct slow *w, const struct cz_cipher_spec *s, uint64_t sector,
	uint8_t *p, size_t size, bool encrypt)
{
	bool before = s->mode == CZ_XTS || (s->mode == CZ_CBC && encrypt);
	bool after = s->mode == CZ_XTS || (s->mode == CZ_CBC && !encrypt);
	uint8_t iv[16], was[16];

	slow_iv(w, iv, s->iv, sector, size);
	if (s->mode == CZ_XTS)
		one(w->tweak, iv, iv, 16, true);
	for (size_t at = 0; at < size; at += w->block) {
		if (s->mode == CZ_CTR) {
			one(w->data, was, iv, w->block, true);
			for (size_t k = 0; k < w->block; k++)
				p[at + k] ^= was[k];
			for (size_t k = w->block; k-- && !++iv[k];)
				;
			continue;
		}
		memcpy(was, p + at, w->block);
		for (size_t k = 0; before && k < w->block; k++)
			p[at + k] ^= iv[k];
		one(w->data, p + at, p + at, w->block, encrypt);
		for (size_t k = 0; after && k < w->block; k++)
			p[at + k] ^= iv[k];
		if (s->mode == CZ_CBC)
			memcpy(iv, encrypt ? p + at : was, w->block);
		if (s->mode == CZ_XTS) {
			unsigned carry = 0;

			for (unsigned k = 0; k < 16; k++) {
				unsigned v = iv[k] << 1 | carry;

				carry = v >> 8;
				iv[k] = (uint8_t)v;
			}
			iv[0] ^= carry ? 0x87 : 0;
		}
	}
}

/* Sectors enough for several groups; from sector numbers whose top bits matter. */
static void against_definition(const struct cz_cipher_spec *s)
{
	static const size_t sizes[] = {16, 48, 512, 2048, 4096};
	static const uint64_t firsts[] = {0, 1, 0xfffffffe, 0x123456789abcdef0};
	enum { MAX = 3 * 4096 + 512 };
	uint8_t key[64], *plain = malloc(MAX), *want = malloc(MAX), *got = malloc(MAX + 1);
	struct cz_cipher *c;
	struct slow w;

	assert_true(plain && want && got);
	fill(key, sizeof(key), DATA_NOISE);
	fill(plain, MAX, DATA_NOISE);
	c = make(s, key);
	if (!c || !slow_open(&w, s, key))
		goto out;
	for (unsigned i = 0; i < THR_ARRAY_SIZE(sizes); i++) {
		size_t size = sizes[i], len = MAX / size * size;
		uint64_t first = firsts[(i + s->iv) % THR_ARRAY_SIZE(firsts)];

		if (s->iv == CZ_IV_BENBI && !thr_is_pow2(size))
			continue;
		memcpy(want, plain, len);
		for (size_t at = 0; at < len; at += size)
			slow_sector(&w, s, first + at / size, want + at, size, true);
		/* In place, and from one unaligned buffer to another. */
		memcpy(got, plain, len);
		assert_int_equal(cz_cipher_run(c, first, size, got, got, len, true), 0);
		assert_memory_equal(got, want, len);
		assert_int_equal(cz_cipher_run(c, first, size, got, got, len, false), 0);
		assert_memory_equal(got, plain, len);
		assert_int_equal(cz_cipher_run(c, first, size, got + 1, plain, len, true), 0);
		assert_memory_equal(got + 1, want, len);
		memmove(got, want, len);
		slow_sector(&w, s, first, got, size, false);
		assert_memory_equal(got, plain, size);
		/* Any part of it alone gives the same. */
		for (size_t at = 0; at < len; at += size * 5) {
			size_t n = THR_MIN(size * 3, len - at);

			assert_int_equal(cz_cipher_run(c, first + at / size, size, got,
						 want + at, n, false),
				0);
			assert_memory_equal(got, plain + at, n);
		}
	}
	slow_close(&w);
out:
	cz_cipher_free(c);
	free(plain);
	free(want);
	free(got);
}

static void all_modes(void **state)
{
	unsigned done = 0, ours = 0;

	(void)state;
	for (int id = 0; id < CZ_CIPHERS; id++) {
		ours += id >= CZ_SERPENT_128 && offered(id);
		for (int mode = 0; mode < CZ_MODES; mode++) {
			for (int iv = 0; iv < CZ_IVS; iv++) {
				struct cz_cipher_spec s = {id, mode, iv, CZ_SHA256};

				/* Families whose only key has 128 bits. */
				if (id == CZ_SM4 || id == CZ_CAST5_128)
					s.iv_hash = CZ_MD5;
				if (!offered(id) || !cz_cipher_key_len(&s) ||
					(mode == CZ_ECB && iv))
					continue;
				against_definition(&s);
				done++;
			}
		}
	}
	/* Eight ciphers and ours in ECB, CBC and CTR with six generators, all but CAST5 in
	 * XTS. */
	assert_int_equal(done, 8 + 2 * 8 * 6 + 7 * 6 + ours * (1 + 3 * 6));
}

/* ---- names --------------------------------------------------------------------- */

static void names(void **state)
{
	(void)state;
	for (int i = 0; i < CZ_CIPHERS; i++)
		assert_int_equal(cz_cipher_find(cz_cipher_name(i)), i);
	for (int i = 0; i < CZ_MODES; i++)
		assert_int_equal(cz_mode_find(cz_mode_name(i)), i);
	for (int i = 0; i < CZ_IVS; i++)
		assert_int_equal(cz_iv_find(cz_iv_name(i)), i);
	assert_null(cz_cipher_name(CZ_CIPHERS));
	assert_null(cz_cipher_symbol(CZ_CIPHERS));
	assert_string_equal(cz_cipher_symbol(CZ_CAST5_128), "CONFIG_CZ_CRYPTO");
	assert_string_equal(cz_cipher_symbol(CZ_SERPENT_128), "CONFIG_CZ_SERPENT");
	assert_string_equal(cz_cipher_symbol(CZ_SERPENT_256), "CONFIG_CZ_SERPENT");
	assert_string_equal(cz_cipher_symbol(CZ_TWOFISH_192), "CONFIG_CZ_TWOFISH");
	assert_string_equal(cz_cipher_symbol(CZ_CAST6_256), "CONFIG_CZ_CAST6");
	assert_null(cz_mode_name(CZ_MODES));
	assert_null(cz_iv_name(CZ_IVS));
	assert_int_equal(cz_cipher_find("aes-512"), -THR_ENOENT);
	assert_int_equal(cz_cipher_find("aes"), -THR_ENOENT);
	assert_int_equal(cz_cipher_find(""), -THR_ENOENT);
	assert_int_equal(cz_mode_find("lrw"), -THR_ENOENT);
	assert_int_equal(cz_mode_find("xt"), -THR_ENOENT);
	assert_int_equal(cz_mode_find("xtsx"), -THR_ENOENT);
	assert_int_equal(cz_iv_find("plain32"), -THR_ENOENT);
	assert_int_equal(cz_iv_find(""), -THR_ENOENT);
}

static const struct {
	const char *cipher, *mode;
	size_t key_len;
	int err;
	struct cz_cipher_spec s;
} strings[] = {
	{"aes", "xts-plain64", 64, 0, {CZ_AES_256, CZ_XTS, CZ_IV_PLAIN64, 0}},
	{"aes", "xts-plain64", 48, 0, {CZ_AES_192, CZ_XTS, CZ_IV_PLAIN64, 0}},
	{"aes", "xts-plain", 32, 0, {CZ_AES_128, CZ_XTS, CZ_IV_PLAIN, 0}},
	{"aes", "cbc-essiv:sha256", 32, 0, {CZ_AES_256, CZ_CBC, CZ_IV_ESSIV, CZ_SHA256}},
	{"aes", "cbc-essiv:sha256", 16, 0, {CZ_AES_128, CZ_CBC, CZ_IV_ESSIV, CZ_SHA256}},
	{"aes", "cbc-plain", 24, 0, {CZ_AES_192, CZ_CBC, CZ_IV_PLAIN, 0}},
	{"aes", "cbc-plain64be", 16, 0, {CZ_AES_128, CZ_CBC, CZ_IV_PLAIN64BE, 0}},
	{"aes", "cbc-benbi", 16, 0, {CZ_AES_128, CZ_CBC, CZ_IV_BENBI, 0}},
	{"aes", "cbc-null", 16, 0, {CZ_AES_128, CZ_CBC, CZ_IV_NULL, 0}},
	{"aes", "ctr-plain64", 32, 0, {CZ_AES_256, CZ_CTR, CZ_IV_PLAIN64, 0}},
	{"aes", "ecb", 32, 0, {CZ_AES_256, CZ_ECB, CZ_IV_NONE, 0}},
	{"aes", "ecb-plain64", 32, 0, {CZ_AES_256, CZ_ECB, CZ_IV_PLAIN64, 0}},
	{"cast5", "cbc-plain64", 16, 0, {CZ_CAST5_128, CZ_CBC, CZ_IV_PLAIN64, 0}},
	{"serpent", "xts-plain64", 64, 0, {CZ_SERPENT_256, CZ_XTS, CZ_IV_PLAIN64, 0}},
	{"twofish", "cbc-essiv:sha256", 16, 0,
		{CZ_TWOFISH_128, CZ_CBC, CZ_IV_ESSIV, CZ_SHA256}},
	{"camellia", "xts-plain64", 32, 0, {CZ_CAMELLIA_128, CZ_XTS, CZ_IV_PLAIN64, 0}},
	{"sm4", "cbc-plain64", 16, 0, {CZ_SM4, CZ_CBC, CZ_IV_PLAIN64, 0}},
	{.cipher = "des", .mode = "cbc-plain", .key_len = 8, .err = -THR_ENOENT},
	{.cipher = "", .mode = "cbc-plain", .key_len = 16, .err = -THR_ENOENT},
	{.cipher = "aes-256", .mode = "cbc-plain", .key_len = 32, .err = -THR_ENOENT},
	{.cipher = "aes", .mode = "lrw-benbi", .key_len = 32, .err = -THR_ENOENT},
	{.cipher = "aes", .mode = "", .key_len = 32, .err = -THR_ENOENT},
	{.cipher = "aes", .mode = "-plain64", .key_len = 32, .err = -THR_ENOENT},
	{.cipher = "aes", .mode = "xts-", .key_len = 32, .err = -THR_ENOENT},
	{.cipher = "aes", .mode = "xts-plain128", .key_len = 32, .err = -THR_ENOENT},
	{.cipher = "aes", .mode = "xts-plain64-", .key_len = 32, .err = -THR_ENOENT},
	{.cipher = "aes", .mode = "cbc-essiv:sha257", .key_len = 32, .err = -THR_ENOENT},
	{.cipher = "aes", .mode = "cbc-essiv:", .key_len = 32, .err = -THR_ENOENT},
	{.cipher = "aes", .mode = "cbc-essiv", .key_len = 32, .err = -THR_EINVAL},
	{.cipher = "aes", .mode = "cbc-essiv:sha1", .key_len = 32, .err = -THR_EINVAL},
	{.cipher = "aes", .mode = "cbc-essiv:sha512", .key_len = 32, .err = -THR_EINVAL},
	{.cipher = "aes", .mode = "cbc-plain64:sha256", .key_len = 32, .err = -THR_EINVAL},
	{.cipher = "aes", .mode = "cbc-none", .key_len = 32, .err = -THR_EINVAL},
	{.cipher = "aes", .mode = "cbc", .key_len = 32, .err = -THR_EINVAL},
	{.cipher = "aes", .mode = "xts", .key_len = 32, .err = -THR_EINVAL},
	{.cipher = "aes", .mode = "xts-plain64", .key_len = 16, .err = -THR_EINVAL},
	{.cipher = "aes", .mode = "xts-plain64", .key_len = 33, .err = -THR_EINVAL},
	{.cipher = "aes", .mode = "xts-plain64", .key_len = 0, .err = -THR_EINVAL},
	{.cipher = "aes", .mode = "cbc-plain64", .key_len = SIZE_MAX, .err = -THR_EINVAL},
	{.cipher = "aes", .mode = "cbc-plain64", .key_len = 64, .err = -THR_EINVAL},
	{.cipher = "cast5", .mode = "xts-plain64", .key_len = 32, .err = -THR_EINVAL},
};

static void luks_strings(void **state)
{
	(void)state;
	for (unsigned i = 0; i < THR_ARRAY_SIZE(strings); i++) {
		char cipher[CZ_CIPHER_TEXT], mode[CZ_CIPHER_TEXT];
		struct cz_cipher_spec s;

		assert_int_equal(cz_cipher_parse(&s, strings[i].cipher, strings[i].mode,
					 strings[i].key_len),
			strings[i].err);
		if (strings[i].err)
			continue;
		assert_int_equal(s.cipher, strings[i].s.cipher);
		assert_int_equal(s.mode, strings[i].s.mode);
		assert_int_equal(s.iv, strings[i].s.iv);
		assert_int_equal(s.iv_hash, strings[i].s.iv_hash);
		assert_int_equal(cz_cipher_key_len(&s), strings[i].key_len);
		cz_cipher_format(&s, cipher, mode);
		assert_string_equal(cipher, strings[i].cipher);
		assert_string_equal(mode, strings[i].mode);
	}
}

/* All that can be said fits in the strings. */
static void longest_strings(void **state)
{
	(void)state;
	for (int id = 0; id < CZ_CIPHERS; id++) {
		for (int iv = 0; iv < CZ_IVS; iv++) {
			for (int hash = 0; hash < CZ_DIGESTS; hash++) {
				struct cz_cipher_spec s = {id, CZ_CBC, iv, hash}, back;
				char text[2][CZ_CIPHER_TEXT + 1];

				if (!cz_cipher_key_len(&s))
					continue;
				memset(text, CANARY_VAL, sizeof(text));
				cz_cipher_format(&s, text[0], text[1]);
				assert_int_equal((uint8_t)text[0][CZ_CIPHER_TEXT], CANARY_VAL);
				assert_int_equal((uint8_t)text[1][CZ_CIPHER_TEXT], CANARY_VAL);
				assert_int_equal(cz_cipher_parse(&back, text[0], text[1],
							 cz_cipher_key_len(&s)),
					0);
				assert_int_equal(back.cipher, id);
				assert_int_equal(back.iv, iv);
				if (iv == CZ_IV_ESSIV)
					assert_int_equal(back.iv_hash, hash);
			}
		}
	}
}

/* ---- what is refused ------------------------------------------------------------- */

static void refused(void **state)
{
	static const uint8_t key[64] = {1};
	struct cz_cipher *c;

	(void)state;
	for (int id = CZ_SERPENT_128; id < CZ_CIPHERS; id++) {
		struct cz_cipher_spec s = {id, CZ_XTS, CZ_IV_PLAIN64, 0};

		if (offered(id))
			continue;
		assert_int_equal(cz_cipher_new(&c, &thr_heap, &s, key, cz_cipher_key_len(&s)),
			-THR_ENOTSUP);
	}
	for (size_t len = 0; len <= sizeof(key); len++) {
		struct cz_cipher_spec s = {CZ_AES_192, CZ_XTS, CZ_IV_PLAIN64, 0};

		if (len != 48)
			assert_int_equal(
				cz_cipher_new(&c, &thr_heap, &s, key, len), -THR_EINVAL);
	}
	for (int i = 0; i < 4; i++) {
		struct cz_cipher_spec s = {i == 0 ? CZ_CIPHERS : CZ_AES_128,
			i == 1 ? CZ_MODES : CZ_CBC, i == 2 ? CZ_IVS : CZ_IV_ESSIV,
			i == 3 ? CZ_DIGESTS : CZ_SHA256};

		assert_int_equal(cz_cipher_key_len(&s), 0);
		assert_int_equal(cz_cipher_new(&c, &thr_heap, &s, key, 16), -THR_EINVAL);
		assert_int_equal(cz_cipher_new(&c, &thr_heap, &s, key, 0), -THR_EINVAL);
	}
}

static void sizes_refused(void **state)
{
	static const struct {
		size_t sector, len;
		int err;
	} cases[] = {
		{512, 0, 0},
		{512, 512, 0},
		{512, 8192, 0},
		{4096, 8192, 0},
		{48, 96, 0},
		{512, 511, -THR_EINVAL},
		{512, 1000, -THR_EINVAL},
		{0, 512, -THR_EINVAL},
		{8, 512, -THR_EINVAL},
		{24, 48, -THR_EINVAL},
		{511, 511, -THR_EINVAL},
		{8192, 8192, -THR_EINVAL},
		{SIZE_MAX, 0, -THR_EINVAL},
	};
	struct cz_cipher_spec s = {CZ_AES_128, CZ_XTS, CZ_IV_PLAIN64, 0};
	uint8_t key[32] = {1}, buf[8192] = {0};
	struct cz_cipher *c = make(&s, key);

	(void)state;
	for (unsigned i = 0; i < THR_ARRAY_SIZE(cases); i++) {
		for (int e = 0; e < 2; e++)
			assert_int_equal(
				cz_cipher_run(c, 0, cases[i].sector, buf, buf, cases[i].len, e),
				cases[i].err);
	}
	cz_cipher_free(c);
	s.iv = CZ_IV_BENBI;
	c = make(&s, key);
	assert_int_equal(cz_cipher_run(c, 0, 48, buf, buf, 48, true), -THR_EINVAL);
	assert_int_equal(cz_cipher_run(c, 0, 64, buf, buf, 64, true), 0);
	cz_cipher_free(c);
	cz_cipher_free(NULL);
}

/* ---- memory ---------------------------------------------------------------------- */

static bool wiped = true;

static void wipe_put(void *ctx, void *p, size_t size)
{
	const uint8_t *b = p;

	for (size_t i = 0; i < size; i++)
		wiped &= !b[i];
	counter_put(ctx, p, size);
}

static void memory(void **state)
{
	struct counter counter = {.fail_at = 1};
	struct thr_alloc mem = {counter_get, wipe_put, &counter};
	struct cz_cipher_spec s = {CZ_AES_256, CZ_XTS, CZ_IV_ESSIV, CZ_SHA256};
	uint8_t key[64], buf[8192];
	struct cz_cipher *c;
	unsigned calls;

	(void)state;
	fill(key, sizeof(key), DATA_NOISE);
	fill(buf, sizeof(buf), DATA_NOISE);
	assert_int_equal(cz_cipher_new(&c, &mem, &s, key, 64), -THR_ENOMEM);
	assert_int_equal(counter.live, 0);
	assert_int_equal(cz_cipher_new(&c, &mem, &s, key, 64), 0);
	calls = counter.calls;
	assert_int_equal(cz_cipher_run(c, 5, 512, buf, buf, sizeof(buf), true), 0);
	assert_int_equal(counter.calls, calls);
	/* Tweaks and chains go with it. */
	cz_cipher_free(c);
	assert_true(wiped);
	assert_int_equal(counter.live, 0);
}

/* Of our own ciphers the schedules are our memory: data, tweak, ESSIV. */
static void memory_ours(void **state)
{
	struct counter counter = {0};
	struct thr_alloc mem = {counter_get, wipe_put, &counter};
	uint8_t key[64], buf[8192];
	struct cz_cipher *c;

	(void)state;
	fill(key, sizeof(key), DATA_NOISE);
	fill(buf, sizeof(buf), DATA_NOISE);
	for (int id = CZ_SERPENT_128; id < CZ_CIPHERS; id++) {
		struct cz_cipher_spec s = {id, CZ_XTS, CZ_IV_ESSIV, CZ_SHA256};
		size_t len = cz_cipher_key_len(&s);

		for (unsigned fail = 1; offered(id) && fail <= 4; fail++) {
			counter = (struct counter){.fail_at = fail};
			assert_int_equal(cz_cipher_new(&c, &mem, &s, key, len), -THR_ENOMEM);
			assert_int_equal(counter.live, 0);
		}
		counter = (struct counter){0};
		assert_int_equal(
			cz_cipher_new(&c, &mem, &s, key, len), offered(id) ? 0 : -THR_ENOTSUP);
		if (offered(id)) {
			assert_int_equal(counter.calls, 4);
			assert_int_equal(
				cz_cipher_run(c, 5, 512, buf, buf, sizeof(buf), true), 0);
			assert_int_equal(counter.calls, 4);
			cz_cipher_free(c);
		}
		assert_int_equal(counter.live, 0);
		assert_true(wiped);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published),
		cmocka_unit_test(published_xts),
		cmocka_unit_test(all_modes),
		cmocka_unit_test(names),
		cmocka_unit_test(luks_strings),
		cmocka_unit_test(longest_strings),
		cmocka_unit_test(refused),
		cmocka_unit_test(sizes_refused),
		cmocka_unit_test(memory),
		cmocka_unit_test(memory_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
