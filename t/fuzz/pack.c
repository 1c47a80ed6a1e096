/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/fuzz/pack.c - packs images for the fuzz targets, and unpacks what they found:
 *   pack [-t] IMAGE INPUT   -t: of every 64 KiB only the first, where tables have their
 *                           entries, so that the input is short
 *   pack -u INPUT IMAGE
 */
#include <stdio.h>
#include <stdlib.h>

#include "t/fuzz/fuzz.h"

#define INPUT_MAX (FUZZ_HEAD + FUZZ_IMAGE_MAX / FUZZ_SECTOR * FUZZ_RECORD)

static uint8_t buf[INPUT_MAX];

static int save(const char *name, const uint8_t *p, size_t n)
{
	FILE *f = fopen(name, "wb");
	bool ok = f && fwrite(p, 1, n, f) == n;

	if (f && fclose(f))
		ok = false;
	if (!ok)
		perror(name);
	return ok ? 0 : 1;
}

static int load(const char *name, size_t *n)
{
	FILE *f = fopen(name, "rb");

	if (!f) {
		perror(name);
		return 1;
	}
	*n = fread(buf, 1, sizeof(buf), f);
	fclose(f);
	return 0;
}

static int unpack(const char *from, const char *to)
{
	struct fuzz_image m;
	size_t n;
	int ret;

	if (load(from, &n))
		return 1;
	if (!fuzz_unpack(&m, buf, n)) {
		fprintf(stderr, "%s: too short\n", from);
		return 1;
	}
	ret = save(to, m.p, m.size);
	free(m.p);
	return ret;
}

static void thin(const struct fuzz_image *m)
{
	for (size_t off = 0; off < m->size; off += FUZZ_SECTOR)
		if (off % 65536 >= 2 * FUZZ_SECTOR)
			memset(m->p + off, 0, THR_MIN(FUZZ_SECTOR, m->size - off));
}

static int pack(const char *from, const char *to, bool thinly)
{
	struct fuzz_image m = {0};
	int ret = load(from, &m.size);

	if (ret)
		return ret;
	if (m.size > FUZZ_IMAGE_MAX) {
		fprintf(stderr, "%s: longer than %u\n", from, FUZZ_IMAGE_MAX);
		return 1;
	}
	m.p = malloc(m.size ? m.size : 1);
	if (!m.p)
		return 1;
	memcpy(m.p, buf, m.size);
	if (thinly)
		thin(&m);
	ret = save(to, buf, fuzz_pack(&m, buf, sizeof(buf)));
	free(m.p);
	return ret;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "-u"))
		return unpack(argv[2], argv[3]);
	if (argc == 4 && !strcmp(argv[1], "-t"))
		return pack(argv[2], argv[3], true);
	if (argc == 3)
		return pack(argv[1], argv[2], false);
	fputs("usage: pack [-t] IMAGE INPUT | pack -u INPUT IMAGE\n", stderr);
	return 2;
}
