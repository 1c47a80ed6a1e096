/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/cz_digest.c - digests, HMAC and PBKDF2 against published vectors: FIPS 180
 * and 202 with the examples that NIST publishes beside them, RFC 1321, RFC 7693,
 * GB/T 32905, the RIPEMD-160 page of its authors; RFC 2202, 2286 and 4231 for HMAC;
 * RFC 6070 and 7914 for PBKDF2. Contexts that are used again, split messages, and
 * memory that runs out.
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

static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";

static const struct {
	enum cz_digest_id id;
	const char *msg; /* NULL: a million times the letter a */
	const char *hex;
} vectors[] = {
	{CZ_MD5, "", "d41d8cd98f00b204e9800998ecf8427e"},
	{CZ_MD5, "abc", "900150983cd24fb0d6963f7d28e17f72"},
	{CZ_MD5, "message digest", "f96b697d7cb7938d525a2f31aaf161d0"},
	{CZ_SHA1, "abc", "a9993e364706816aba3e25717850c26c9cd0d89d"},
	{CZ_SHA1, two_blocks, "84983e441c3bd26ebaae4aa1f95129e5e54670f1"},
	{CZ_SHA1, NULL, "34aa973cd4c4daa4f61eeb2bdbad27316534016f"},
	{CZ_SHA224, "abc", "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7"},
	{CZ_SHA224, NULL, "20794655980c91d8bbb4c1ea97618a4bf03f42581948b2ee4ee7ad67"},
	{CZ_SHA256, "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
	{CZ_SHA256, "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
	{CZ_SHA256, two_blocks,
		"248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
	{CZ_SHA256, NULL, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
	{CZ_SHA384, "abc",
		"cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed"
		"8086072ba1e7cc2358baeca134c825a7"},
	{CZ_SHA384, NULL,
		"9d0e1809716474cb086e834e310a4a1ced149e9c00f248527972cec5704c2a5b"
		"07b8b3dc38ecc4ebae97ddd87f3d8985"},
	{CZ_SHA512, "abc",
		"ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
		"2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"},
	{CZ_SHA512, NULL,
		"e718483d0ce769644e2e42c7bc15b4638e1f98b13b2044285632a803afa973eb"
		"de0ff244877ea60a4cb0432ce577c31beb009c5c2c49aa2e4eadb217ad8cc09b"},
	{CZ_SHA3_224, "abc", "e642824c3f8cf24ad09234ee7d3c766fc9a3a5168d0c94ad73b46fdf"},
	{CZ_SHA3_256, "abc",
		"3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532"},
	{CZ_SHA3_384, "abc",
		"ec01498288516fc926459f58e2c6ad8df9b473cb0fc08c2596da7cf0e49be4b2"
		"98d88cea927ac7f539f1edf228376d25"},
	{CZ_SHA3_512, "abc",
		"b751850b1a57168a5693cd924b6b096e08f621827444f70d884f5d0240d2712e"
		"10e116e9192af3c91a7ec57647e3934057340b4cf408d5a56592f8274eec53f0"},
	{CZ_RIPEMD160, "", "9c1185a5c5e9fc54612808977ee8f548b2258d31"},
	{CZ_RIPEMD160, "abc", "8eb208f7e05d987a9b044a8e98c6b087f15a0bfc"},
	{CZ_RIPEMD160, NULL, "52783243c1697bdbe16d37f97f68f08325dc1528"},
	{CZ_BLAKE2B_512, "abc",
		"ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1"
		"7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923"},
	{CZ_BLAKE2S_256, "abc",
		"508c5e8c327c14e2e1a72ba34eeb452f37458b209ed63a294d999b4c86675982"},
	{CZ_SM3, "abc", "66c7f0f462eeedd9d1f2d46bdc10e4e24167c4875cf2f7a2297da02b8f4ba8e0"},
};

/* "Sample message for keylen<blocklen" of NIST's HMAC-SHA-3 examples. */
#define K00_1F "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define K0B_20 "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b"
#define AA_16  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define AA_131 AA_16 AA_16 AA_16 AA_16 AA_16 AA_16 AA_16 AA_16 "aaaaaa"

static const char jefe[] = "what do ya want for nothing?";
static const char larger[] = "Test Using Larger Than Block-Size Key - Hash Key First";

static const struct {
	enum cz_digest_id id;
	const char *key;
	const char *msg;
	const char *hex;
} hmacs[] = {
	{CZ_MD5, "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b", "Hi There",
		"9294727a3638bb1c13f48ef8158bfc9d"},
	{CZ_MD5, "4a656665", jefe, "750c783e6ab0b503eaa86e310a5db738"},
	{CZ_SHA1, K0B_20, "Hi There", "b617318655057264e28bc0b6fb378c8ef146be00"},
	{CZ_SHA1, "4a656665", jefe, "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"},
	{CZ_RIPEMD160, K0B_20, "Hi There", "24cb4bd67d20fc1a5d2ed7732dcc39377f0a5668"},
	{CZ_RIPEMD160, "4a656665", jefe, "dda6c0213a485a9e24f4742064a7f033b43c4069"},
	{CZ_SHA224, K0B_20, "Hi There",
		"896fb1128abbdf196832107cd49df33f47b4b1169912ba4f53684b22"},
	{CZ_SHA224, "4a656665", jefe,
		"a30e01098bc6dbbf45690f3a7e9e6d0f8bbea2a39e6148008fd05e44"},
	{CZ_SHA224, AA_131, larger, "95e9a0db962095adaebe9b2d6f0dbce2d499f112f2d2b7273fa6870e"},
	{CZ_SHA256, K0B_20, "Hi There",
		"b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
	{CZ_SHA256, "4a656665", jefe,
		"5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
	{CZ_SHA256, AA_131, larger,
		"60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
	{CZ_SHA384, K0B_20, "Hi There",
		"afd03944d84895626b0825f4ab46907f15f9dadbe4101ec682aa034c7cebc59c"
		"faea9ea9076ede7f4af152e8b2fa9cb6"},
	{CZ_SHA384, AA_131, larger,
		"4ece084485813e9088d2c63a041bc5b44f9ef1012a2b588f3cd11f05033ac4c6"
		"0c2ef6ab4030fe8296248df163f44952"},
	{CZ_SHA512, K0B_20, "Hi There",
		"87aa7cdea5ef619d4ff0b4241a1d6cb02379f4e2ce4ec2787ad0b30545e17cde"
		"daa833b7d6b8a702038b274eaea3f4e4be9d914eeb61f1702e696c203a126854"},
	{CZ_SHA512, "4a656665", jefe,
		"164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554"
		"9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737"},
	{CZ_SHA512, AA_131, larger,
		"80b24263c7c1a3ebb71493c1dd7be8b49b46d1f41b4aeec1121b013783f8f352"
		"6b56d037e05f2598bd0fd2215d6a1e5295e64f73f63f0aec8b915a985d786598"},
	{CZ_SHA3_256, K00_1F, "Sample message for keylen<blocklen",
		"4fe8e202c4f058e8dddc23d8c34e467343e23555e24fc2f025d598f558f67205"},
};

static const struct {
	enum cz_digest_id id;
	const char *pass;
	size_t pass_len;
	const char *salt;
	size_t salt_len;
	uint32_t iterations;
	const char *hex;
} kdfs[] = {
	{CZ_SHA1, "password", 8, "salt", 4, 1, "0c60c80f961f0e71f3a9b524af6012062fe037a6"},
	{CZ_SHA1, "password", 8, "salt", 4, 2, "ea6c014dc72d6f8ccd1ed92ace1d41f0d8de8957"},
	{CZ_SHA1, "password", 8, "salt", 4, 4096, "4b007901b765489abead49d926f721d065a429c1"},
	{CZ_SHA1, "passwordPASSWORDpassword", 24, "saltSALTsaltSALTsaltSALTsaltSALTsalt", 36,
		4096, "3d2eec4fe41c849b80c8d83662c0e44a8b291a964cf2f07038"},
	{CZ_SHA1, "pass\0word", 9, "sa\0lt", 5, 4096, "56fa6aa75548099dcc37d7f03425e0c3"},
	{CZ_SHA256, "passwd", 6, "salt", 4, 1,
		"55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc"
		"49ca9cccf179b645991664b39d77ef317c71b845b1e30bd509112041d3a19783"},
	{CZ_SHA256, "Password", 8, "NaCl", 4, 80000,
		"4ddcd8f60b98be21830cee5ef22701f9641a4418d04c0414aeff08876b34ab56"
		"a1d425a1225833549adb841b51c9b3176a272bdebba1d078478f62b397f33c8d"},
};

static void names(void **state)
{
	static const struct {
		const char *name;
		int id;
	} other[] = {
		{"SHA-256", CZ_SHA256},
		{"sha-1", CZ_SHA1},
		{"SHA512", CZ_SHA512},
		{"blake2b512", CZ_BLAKE2B_512},
		{"BLAKE2s-256", CZ_BLAKE2S_256},
		{"SHA3-256", CZ_SHA3_256},
		{"RIPEMD-160", CZ_RIPEMD160},
		{"sha2567", -THR_ENOENT},
		{"sha25", -THR_ENOENT},
		{"", -THR_ENOENT},
		{"-", -THR_ENOENT},
		{"whirlpool", -THR_ENOENT},
		{"sha256 ", -THR_ENOENT},
	};
	uint8_t out[CZ_DIGEST_MAX];

	(void)state;
	for (int id = 0; id < CZ_DIGESTS; id++) {
		assert_int_equal(cz_digest_find(cz_digest_name(id)), id);
		assert_in_range(cz_digest_size(id), 16, CZ_DIGEST_MAX);
	}
	for (unsigned i = 0; i < THR_ARRAY_SIZE(other); i++)
		assert_int_equal(cz_digest_find(other[i].name), other[i].id);
	for (int id = CZ_DIGESTS; id < CZ_DIGESTS + 2; id++) {
		struct cz_digest_ctx *d;

		assert_null(cz_digest_name(id));
		assert_int_equal(cz_digest_size(id), 0);
		assert_int_equal(cz_digest_new(&d, &thr_heap, id), -THR_EINVAL);
		assert_int_equal(cz_digest(id, "", 0, out), -THR_EINVAL);
		assert_int_equal(cz_hmac(id, "", 0, "", 0, out), -THR_EINVAL);
		assert_int_equal(cz_pbkdf2(id, "", 0, "", 0, 1, out, 16), -THR_EINVAL);
	}
}

/* Feeds the million letters or the message in pieces. */
static void feed(struct cz_digest_ctx *d, const char *msg, size_t piece)
{
	char letters[1000];
	size_t len = msg ? strlen(msg) : 1000000;

	memset(letters, 'a', sizeof(letters));
	for (size_t at = 0; at < len;) {
		size_t n = THR_MIN(len - at, THR_MIN(piece, sizeof(letters)));

		assert_int_equal(cz_digest_update(d, msg ? msg + at : letters, n), 0);
		at += n;
	}
}

static void digests(void **state)
{
	unsigned seen = 0;

	(void)state;
	for (unsigned i = 0; i < THR_ARRAY_SIZE(vectors); i++) {
		size_t size = cz_digest_size(vectors[i].id);
		uint8_t want[CZ_DIGEST_MAX], got[CZ_DIGEST_MAX + CANARY], canary[CANARY];
		struct cz_digest_ctx *d;

		assert_int_equal(unhex(want, vectors[i].hex), size);
		memset(canary, CANARY_VAL, CANARY);
		assert_int_equal(cz_digest_new(&d, &thr_heap, vectors[i].id), 0);
		/* Again and again, in pieces of different sizes. */
		for (size_t piece = 1000; piece; piece /= 7) {
			if (!vectors[i].msg && piece < 100)
				break;
			memset(got, CANARY_VAL, sizeof(got));
			feed(d, vectors[i].msg, piece);
			assert_int_equal(cz_digest_final(d, got), 0);
			assert_memory_equal(got, want, size);
			assert_memory_equal(got + size, canary, CANARY);
		}
		cz_digest_free(d);
		seen |= 1u << vectors[i].id;
		if (!vectors[i].msg)
			continue;
		memset(got, CANARY_VAL, sizeof(got));
		assert_int_equal(
			cz_digest(vectors[i].id, vectors[i].msg, strlen(vectors[i].msg), got),
			0);
		assert_memory_equal(got, want, size);
		assert_memory_equal(got + size, canary, CANARY);
	}
	assert_int_equal(seen, (1u << CZ_DIGESTS) - 1);
	cz_digest_free(NULL);
}

/* RFC 2104 over the one-shot digest. */
static void slow_hmac(enum cz_digest_id id, size_t block, const uint8_t *key, size_t key_len,
	const uint8_t *msg, size_t len, uint8_t *out)
{
	uint8_t k[144] = {0}, *b = malloc(block + len + CZ_DIGEST_MAX);
	size_t size = cz_digest_size(id);

	assert_non_null(b);
	if (key_len > block)
		assert_int_equal(cz_digest(id, key, key_len, k), 0);
	else
		memcpy(k, key, key_len);
	for (size_t i = 0; i < block; i++)
		b[i] = k[i] ^ 0x36;
	memcpy(b + block, msg, len);
	assert_int_equal(cz_digest(id, b, block + len, out), 0);
	for (size_t i = 0; i < block; i++)
		b[i] = k[i] ^ 0x5c;
	memcpy(b + block, out, size);
	assert_int_equal(cz_digest(id, b, block + size, out), 0);
	free(b);
}

static size_t block_of(enum cz_digest_id id)
{
	switch (id) {
	case CZ_SHA384:
	case CZ_SHA512:
	case CZ_BLAKE2B_512:
		return 128;
	case CZ_SHA3_224:
	case CZ_SHA3_256:
	case CZ_SHA3_384:
	case CZ_SHA3_512:
		return 200 - 2 * cz_digest_size(id);
	default:
		return 64;
	}
}

static void hmac(void **state)
{
	(void)state;
	for (unsigned i = 0; i < THR_ARRAY_SIZE(hmacs); i++) {
		size_t size = cz_digest_size(hmacs[i].id), len = strlen(hmacs[i].msg);
		uint8_t key[200], want[CZ_DIGEST_MAX], got[CZ_DIGEST_MAX];
		size_t key_len = unhex(key, hmacs[i].key);
		struct cz_hmac_ctx *h;

		assert_int_equal(unhex(want, hmacs[i].hex), size);
		assert_int_equal(cz_hmac(hmacs[i].id, key, key_len, hmacs[i].msg, len, got), 0);
		assert_memory_equal(got, want, size);
		assert_int_equal(cz_hmac_new(&h, &thr_heap, hmacs[i].id, key, key_len), 0);
		for (size_t cut = 0; cut <= len; cut++) {
			assert_int_equal(cz_hmac_update(h, hmacs[i].msg, cut), 0);
			assert_int_equal(cz_hmac_update(h, hmacs[i].msg + cut, len - cut), 0);
			assert_int_equal(cz_hmac_final(h, got), 0);
			assert_memory_equal(got, want, size);
		}
		cz_hmac_free(h);
	}
	cz_hmac_free(NULL);
}

/* Keys around the block's length, for every digest. */
static void hmac_keys(void **state)
{
	uint8_t key[300], want[CZ_DIGEST_MAX], got[CZ_DIGEST_MAX];

	(void)state;
	fill(key, sizeof(key), DATA_NOISE);
	for (int id = 0; id < CZ_DIGESTS; id++) {
		size_t block = block_of(id);
		const size_t lens[] = {0, 1, block - 1, block, block + 1, 2 * block, 300};

		for (unsigned i = 0; i < THR_ARRAY_SIZE(lens); i++) {
			slow_hmac(id, block, key, lens[i], key, 123, want);
			assert_int_equal(cz_hmac(id, key, lens[i], key, 123, got), 0);
			assert_memory_equal(got, want, cz_digest_size(id));
		}
	}
}

static void pbkdf2(void **state)
{
	(void)state;
	for (unsigned i = 0; i < THR_ARRAY_SIZE(kdfs); i++) {
		uint8_t want[64], got[64 + CANARY], canary[CANARY];
		size_t len = unhex(want, kdfs[i].hex);

		memset(canary, CANARY_VAL, CANARY);
		memset(got, CANARY_VAL, sizeof(got));
		assert_int_equal(
			cz_pbkdf2(kdfs[i].id, kdfs[i].pass, kdfs[i].pass_len, kdfs[i].salt,
				kdfs[i].salt_len, kdfs[i].iterations, got, len),
			0);
		assert_memory_equal(got, want, len);
		assert_memory_equal(got + len, canary, CANARY);
	}
}

/* Every digest against the definition, and every output length up to three blocks. */
static void pbkdf2_all(void **state)
{
	static const uint8_t salt[] = "0123456789abcdef";
	uint8_t long_out[3 * CZ_DIGEST_MAX], out[3 * CZ_DIGEST_MAX];

	(void)state;
	for (int id = 0; id < CZ_DIGESTS; id++) {
		size_t size = cz_digest_size(id), block = block_of(id);

		for (uint32_t number = 1; number <= 3; number++) {
			uint8_t u[CZ_DIGEST_MAX], msg[20], *t = long_out + (number - 1) * size;

			memcpy(msg, salt, 16);
			thr_put_be32(msg + 16, number);
			slow_hmac(id, block, (const uint8_t *)"key", 3, msg, 20, u);
			memcpy(t, u, size);
			for (unsigned i = 1; i < 5; i++) {
				slow_hmac(id, block, (const uint8_t *)"key", 3, u, size, u);
				for (size_t k = 0; k < size; k++)
					t[k] ^= u[k];
			}
		}
		for (size_t len = 0; len <= 3 * size; len += len < size ? 1 : 7) {
			memset(out, 0xee, sizeof(out));
			assert_int_equal(cz_pbkdf2(id, "key", 3, salt, 16, 5, out, len), 0);
			assert_memory_equal(out, long_out, len);
		}
	}
	assert_int_equal(cz_pbkdf2(CZ_SHA256, "key", 3, salt, 16, 0, out, 32), -THR_EINVAL);
}

static void pbkdf2_count(void **state)
{
	uint32_t one, two;

	(void)state;
	assert_int_equal(cz_pbkdf2_count(CZ_SHA256, 32, 0, &one), 0);
	assert_int_equal(one, 1);
	assert_int_equal(cz_pbkdf2_count(CZ_SHA256, 32, UINT32_MAX, &two), 0);
	assert_true(two > 1000);
	assert_int_equal(cz_pbkdf2_count(CZ_DIGESTS, 32, 1, &one), -THR_EINVAL);
	assert_int_equal(cz_pbkdf2_count(CZ_SHA256, 0, 1, &one), -THR_EINVAL);
}

static void no_memory(void **state)
{
	struct counter counter = {.fail_at = 1};
	struct thr_alloc mem = {counter_get, counter_put, &counter};
	struct cz_digest_ctx *d;
	struct cz_hmac_ctx *h;

	(void)state;
	assert_int_equal(cz_digest_new(&d, &mem, CZ_SHA256), -THR_ENOMEM);
	counter.calls = 0;
	assert_int_equal(cz_hmac_new(&h, &mem, CZ_SHA256, "k", 1), -THR_ENOMEM);
	counter = (struct counter){0};
	assert_int_equal(cz_digest_new(&d, &mem, CZ_DIGESTS), -THR_EINVAL);
	assert_int_equal(cz_hmac_new(&h, &mem, CZ_DIGESTS, "k", 1), -THR_EINVAL);
	assert_int_equal(counter.live, 0);
	assert_int_equal(cz_digest_new(&d, &mem, CZ_SHA256), 0);
	assert_int_equal(cz_hmac_new(&h, &mem, CZ_SHA256, "k", 1), 0);
	assert_int_equal(counter.live, 2);
	cz_digest_free(d);
	cz_hmac_free(h);
	assert_int_equal(counter.live, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(digests),
		cmocka_unit_test(hmac),
		cmocka_unit_test(hmac_keys),
		cmocka_unit_test(pbkdf2),
		cmocka_unit_test(pbkdf2_all),
		cmocka_unit_test(pbkdf2_count),
		cmocka_unit_test(no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
