/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/fuzz/probe.c - any bytes as an image of a format that is to be found out, and
 * opened with what was found.
 */
#include <stdlib.h>

#include "fmt/fmt.h"
#include "t/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fmt_open o = {.mem = &fuzz_mem};
	struct blk_err err = BLK_ERR_INIT;
	struct blk *file, *b = NULL;
	uint8_t *p = malloc(len ? len : 1);
	const char *name;
	int code;

	FUZZ_MUST(p);
	memcpy(p, data, len);
	FUZZ_MUST(!blk_mem_open(&file, p, len, 0, &fuzz_mem, NULL));
	name = fmt_probe(file, &err);
	FUZZ_MUST(!name || fmt_driver_find(name));
	code = fmt_open_on(&b, file, &o, &err);
	fuzz_explained(code, &err);
	if (!code) {
		FUZZ_MUST(name && fmt_driver_of(b) == fmt_driver_find(name));
		FUZZ_MUST(!fmt_close(b));
	} else {
		blk_close(file);
	}
	FUZZ_MUST(!memcmp(p, data, len));
	free(p);
	fuzz_mem_end();
	return 0;
}
