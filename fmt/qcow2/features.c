/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/features.c - the names of features: what an image needs and we do
 * not have is refused by its name, from the feature name table (a header
 * extension of 48-byte entries: kind, bit, name) or from our own.
 */
#include "fmt/qcow2/qcow2.h"

#define ENTRY    48
#define NAME_MAX (ENTRY - 2)

struct names {
	struct blk *file;
	uint64_t left; /* bits that have not been named */
	size_t len;
	char buf[BLK_ERR_STR_MAX];
};

static void add(struct names *n, const char *s, size_t len)
{
	if (len > sizeof(n->buf) - 1 - n->len)
		len = sizeof(n->buf) - 1 - n->len;
	memcpy(n->buf + n->len, s, len);
	n->len += len;
	n->buf[n->len] = 0;
}

static void add_bit(struct names *n, unsigned bit, const char *name, size_t len)
{
	if (n->len)
		add(n, ", ", 2);
	add(n, name, len);
	n->left &= ~(1ull << bit);
}

static size_t length(const char *s, size_t max)
{
	size_t n = 0;

	while (n < max && s[n])
		n++;
	return n;
}

static int look(void *ctx, uint32_t type, uint64_t off, uint32_t len, struct blk_err *err)
{
	struct names *n = ctx;
	char e[ENTRY];

	(void)err;
	if (type != QCOW2_EXT_FEATURES)
		return 0;
	for (; len >= ENTRY && n->left; len -= ENTRY, off += ENTRY) {
		unsigned bit;

		if (blk_pread(n->file, off, e, ENTRY))
			return 0;
		bit = (uint8_t)e[1];
		if (e[0] || bit > 63 || !(n->left >> bit & 1) || !e[2])
			continue;
		add_bit(n, bit, e + 2, length(e + 2, NAME_MAX));
	}
	return 0;
}

static void add_unnamed(struct names *n, unsigned bit)
{
	static const char unknown[] = "unknown incompatible feature ";
	char digits[2] = {(char)('0' + bit / 10), (char)('0' + bit % 10)};
	unsigned lead = bit < 10;

	if (1ull << bit == QCOW2_INC_DATA_FILE) {
		add_bit(n, bit, "external data file", 18);
	} else if (1ull << bit == QCOW2_INC_EXTL2) {
		add_bit(n, bit, "extended L2 entries", 19);
	} else {
		add_bit(n, bit, unknown, sizeof(unknown) - 1);
		add(n, digits + lead, 2 - lead);
	}
}

int qcow2_features_fail(
	struct blk *file, const struct qcow2_header *h, uint64_t bits, struct blk_err *err)
{
	struct names n = {.file = file, .left = bits};

	if (!err)
		return -THR_ENOTSUP;
	(void)qcow2_extensions(file, h, look, &n, NULL);
	for (unsigned bit = 0; bit < 64; bit++)
		if (n.left >> bit & 1)
			add_unnamed(&n, bit);
	return blk_fail_str(err, -THR_ENOTSUP, BLK_E_QCOW2_FEATURES, n.buf);
}
