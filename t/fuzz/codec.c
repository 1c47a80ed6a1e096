/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/fuzz/codec.c - any bytes as a compressed cluster. Input: one byte that names the
 * codec, be16 the length that is expected, the stream. One context takes all inputs, as
 * an image's does: what one stream leaves in it must not change how the next is read.
 */
#include <stdlib.h>

#include "cz/cz.h"
#include "t/fuzz/fuzz.h"

struct context {
	const struct cz_codec *codec;
	void *ctx;
};

static void context_open(struct context *c, enum cz_codec_id id)
{
	c->codec = cz_codec_find(id);
	if (!c->codec)
		return;
	c->ctx = thr_get(&thr_heap, c->codec->decode_ctx_size, 16);
	FUZZ_MUST(c->ctx && !c->codec->decode_init(c->ctx, &thr_heap));
}

static void context_close(struct context *c)
{
	c->codec->decode_fini(c->ctx);
	thr_put(&thr_heap, c->ctx, c->codec->decode_ctx_size);
}

static int decode(struct context *c, uint8_t *dst, size_t dlen, const uint8_t *src, size_t slen)
{
	int code = c->codec->decode(c->ctx, dst, dlen, src, slen);

	FUZZ_MUST(!code || code == -THR_EIO);
	return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct context kept[2];
	struct context fresh;
	uint8_t *dst, *again, *src;
	size_t dlen;
	unsigned id;
	int code;

	if (len < 3)
		return -1;
	id = data[0] & 1;
	if (!kept[id].codec)
		context_open(&kept[id], id);
	if (!kept[id].codec)
		return -1;
	dlen = (size_t)thr_be16(data + 1) + 1;
	len -= 3;
	src = malloc(len ? len : 1);
	dst = malloc(dlen);
	again = malloc(dlen);
	FUZZ_MUST(src && dst && again);
	memcpy(src, data + 3, len);
	code = decode(&kept[id], dst, dlen, src, len);
	context_open(&fresh, id);
	FUZZ_MUST(decode(&fresh, again, dlen, src, len) == code);
	context_close(&fresh);
	FUZZ_MUST(code || !memcmp(dst, again, dlen));
	FUZZ_MUST(!memcmp(src, data + 3, len));
	free(src);
	free(dst);
	free(again);
	return 0;
}
