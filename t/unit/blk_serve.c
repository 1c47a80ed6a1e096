/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/unit/blk_serve.c - the NBD server, byte by byte over a socket: every option and
 * command.
 */
#include "serve_util.h"

static void options(void **state)
{
	struct rig g;
	uint8_t b[512];
	uint32_t len;

	(void)state;
	rig_open(&g, BLK_RDWR);
	greet(&g, 3);
	opt(&g, NBDP_OPT_LIST, NULL, 0);
	assert_int_equal(reply(&g, NBDP_OPT_LIST, b, &len), NBDP_REP_SERVER);
	assert_int_equal(len, 14);
	assert_memory_equal(b, "\0\0\0\4diska disk", 14);
	assert_int_equal(reply(&g, NBDP_OPT_LIST, b, &len), NBDP_REP_SERVER);
	assert_int_equal(len, 4);
	expect(&g, NBDP_OPT_LIST, NBDP_REP_ACK);
	opt(&g, NBDP_OPT_LIST, "x", 1);
	expect(&g, NBDP_OPT_LIST, NBDP_REP_ERR_INVALID);

	opt(&g, NBDP_OPT_INFO, b, go_data(b, "nobody", 0));
	expect(&g, NBDP_OPT_INFO, NBDP_REP_ERR_UNKNOWN);
	opt(&g, NBDP_OPT_INFO, b, go_data(b, "disk", 3));
	assert_int_equal(reply(&g, NBDP_OPT_INFO, b, &len), NBDP_REP_INFO);
	assert_memory_equal(b, "\0\1disk", 6);
	assert_int_equal(reply(&g, NBDP_OPT_INFO, b, &len), NBDP_REP_INFO);
	assert_memory_equal(b, "\0\2a disk", 8);
	assert_int_equal(reply(&g, NBDP_OPT_INFO, b, &len), NBDP_REP_INFO);
	assert_int_equal(thr_be16(b), NBDP_INFO_BLOCK_SIZE);
	assert_int_equal(thr_be32(b + 2), 1);
	assert_int_equal(thr_be32(b + 10), 32 * MIB);
	assert_int_equal(reply(&g, NBDP_OPT_INFO, b, &len), NBDP_REP_INFO);
	assert_int_equal(thr_be16(b + 10) & (NBDP_READ_ONLY | NBDP_SEND_DF), 0);
	assert_true(thr_be16(b + 10) & NBDP_CAN_MULTI_CONN);
	expect(&g, NBDP_OPT_INFO, NBDP_REP_ACK);

	/* Lengths that contradict each other. */
	len = go_data(b, "disk", 2);
	opt(&g, NBDP_OPT_GO, b, len - 1);
	expect(&g, NBDP_OPT_GO, NBDP_REP_ERR_INVALID);
	thr_put_be32(b, UINT32_MAX);
	opt(&g, NBDP_OPT_GO, b, len);
	expect(&g, NBDP_OPT_GO, NBDP_REP_ERR_INVALID);
	opt(&g, NBDP_OPT_GO, "abc", 3);
	expect(&g, NBDP_OPT_GO, NBDP_REP_ERR_INVALID);

	opt(&g, 77, "what", 4);
	expect(&g, 77, NBDP_REP_ERR_UNSUP);
	opt(&g, 11, NULL, 0);
	expect(&g, 11, NBDP_REP_ERR_UNSUP);
	opt(&g, NBDP_OPT_STARTTLS, NULL, 0);
	expect(&g, NBDP_OPT_STARTTLS, NBDP_REP_ERR_POLICY);
	opt(&g, NBDP_OPT_STRUCTURED_REPLY, "x", 1);
	expect(&g, NBDP_OPT_STRUCTURED_REPLY, NBDP_REP_ERR_INVALID);
	opt(&g, NBDP_OPT_ABORT, NULL, 0);
	expect(&g, NBDP_OPT_ABORT, NBDP_REP_ACK);
	expect_end(&g);
	leave(&g);
	rig_close(&g);
}

static void oversize_option(void **state)
{
	struct rig g;
	static uint8_t junk[200000];

	(void)state;
	rig_open(&g, BLK_RDWR);
	greet(&g, 1);
	opt(&g, NBDP_OPT_LIST, junk, sizeof(junk));
	expect(&g, NBDP_OPT_LIST, NBDP_REP_ERR_TOO_BIG);
	choose(&g, "disk");
	leave(&g);
	greet(&g, 1);
	opt(&g, NBDP_OPT_LIST, NULL, UINT32_MAX);
	expect_end(&g);
	leave(&g);
	greet(&g, 1);
	opt(&g, NBDP_OPT_EXPORT_NAME, NULL, 1u << 20);
	expect_end(&g);
	leave(&g);
	rig_close(&g);
}

static void export_name(void **state)
{
	struct rig g;

	(void)state;
	rig_open(&g, BLK_RDWR);
	for (unsigned flags = 1; flags <= 3; flags += 2) {
		greet(&g, flags);
		opt(&g, NBDP_OPT_EXPORT_NAME, "disk", 4);
		assert_int_equal(get64(&g), SIZE);
		assert_true(get16(&g) & NBDP_HAS_FLAGS);
		if (flags == 1)
			pass_over(&g, 124);
		leave(&g);
	}
	greet(&g, 3);
	opt(&g, NBDP_OPT_EXPORT_NAME, "none", 4);
	expect_end(&g);
	leave(&g);
	rig_close(&g);
}

static void meta_contexts(void **state)
{
	struct rig g;
	uint8_t b[512];
	uint32_t len;

	(void)state;
	rig_open(&g, BLK_RDWR);
	greet(&g, 3);
	opt(&g, NBDP_OPT_LIST_META_CONTEXT, b, meta_data(b, "disk", NULL, NULL));
	expect(&g, NBDP_OPT_LIST_META_CONTEXT, NBDP_REP_ERR_INVALID);
	opt(&g, NBDP_OPT_STRUCTURED_REPLY, NULL, 0);
	expect(&g, NBDP_OPT_STRUCTURED_REPLY, NBDP_REP_ACK);

	opt(&g, NBDP_OPT_LIST_META_CONTEXT, b, meta_data(b, "disk", NULL, NULL));
	expect(&g, NBDP_OPT_LIST_META_CONTEXT, NBDP_REP_META_CONTEXT);
	expect(&g, NBDP_OPT_LIST_META_CONTEXT, NBDP_REP_META_CONTEXT);
	expect(&g, NBDP_OPT_LIST_META_CONTEXT, NBDP_REP_ACK);
	opt(&g, NBDP_OPT_LIST_META_CONTEXT, b, meta_data(b, "disk", "qemu:", "x:"));
	assert_int_equal(reply(&g, NBDP_OPT_LIST_META_CONTEXT, b, &len), NBDP_REP_META_CONTEXT);
	assert_int_equal(len, 4 + 20);
	assert_memory_equal(b + 4, "qemu:dirty-bitmap:b0", 20);
	expect(&g, NBDP_OPT_LIST_META_CONTEXT, NBDP_REP_ACK);
	opt(&g, NBDP_OPT_LIST_META_CONTEXT, b, meta_data(b, "none", NULL, NULL));
	expect(&g, NBDP_OPT_LIST_META_CONTEXT, NBDP_REP_ERR_UNKNOWN);
	/* The default export was given no contexts and has the one. */
	opt(&g, NBDP_OPT_LIST_META_CONTEXT, b, meta_data(b, "", NULL, NULL));
	expect(&g, NBDP_OPT_LIST_META_CONTEXT, NBDP_REP_META_CONTEXT);
	expect(&g, NBDP_OPT_LIST_META_CONTEXT, NBDP_REP_ACK);

	/* Wildcards select nothing, nor does no query. */
	opt(&g, NBDP_OPT_SET_META_CONTEXT, b, meta_data(b, "disk", "qemu:", NULL));
	expect(&g, NBDP_OPT_SET_META_CONTEXT, NBDP_REP_ACK);
	opt(&g, NBDP_OPT_SET_META_CONTEXT, b, meta_data(b, "disk", NULL, NULL));
	expect(&g, NBDP_OPT_SET_META_CONTEXT, NBDP_REP_ACK);
	len = meta_data(b, "disk", "base:allocation", NULL);
	opt(&g, NBDP_OPT_SET_META_CONTEXT, b, len - 1);
	expect(&g, NBDP_OPT_SET_META_CONTEXT, NBDP_REP_ERR_INVALID);
	thr_put_be32(b + 8, UINT32_MAX);
	opt(&g, NBDP_OPT_SET_META_CONTEXT, b, len);
	expect(&g, NBDP_OPT_SET_META_CONTEXT, NBDP_REP_ERR_INVALID);
	leave(&g);
	rig_close(&g);
}

/* ---- transmission ---- */

static void simple_reads(void **state)
{
	static const uint32_t lens[] = {1, 28, 4096, 65536, MIB, 2 * MIB, 3 * MIB + 5};
	struct rig g;

	(void)state;
	rig_open(&g, BLK_RDWR);
	start(&g, "disk", false);
	for (unsigned i = 0; i < THR_ARRAY_SIZE(lens); i++) {
		ask(&g, NBDP_CMD_READ, 0, i, 3 * i, lens[i]);
		assert_int_equal(simple(&g, i), 0);
		data_is(&g, 3 * i, lens[i]);
	}
	ask(&g, NBDP_CMD_READ, 0, 9, 0, 0);
	assert_int_equal(simple(&g, 9), 0);
	ask(&g, NBDP_CMD_READ, NBDP_CMD_DF, 9, 0, 512);
	assert_int_equal(simple(&g, 9), NBDP_EINVAL);
	ask(&g, NBDP_CMD_BLOCK_STATUS, 0, 9, 0, 512);
	assert_int_equal(simple(&g, 9), NBDP_EINVAL);
	leave(&g);
	rig_close(&g);
}

static void structured_reads(void **state)
{
	struct rig g;

	(void)state;
	rig_open(&g, BLK_RDWR);
	start(&g, "disk", true);
	assert_int_equal(read_chunks(&g, 0, 4096, 0), 0);
	assert_int_equal(read_chunks(&g, 0, 3 * MIB, 0), 1);
	assert_int_equal(read_chunks(&g, 0, 2 * MIB, 0), 1);
	assert_int_equal(read_chunks(&g, 0, 2 * MIB, NBDP_CMD_DF), 0);
	assert_int_equal(read_chunks(&g, MIB, MIB, 0), 1);
	assert_int_equal(read_chunks(&g, MIB + 1, 100000, 0), 1);
	assert_int_equal(read_chunks(&g, 1, SIZE - 1, 0), 1);
	ask(&g, NBDP_CMD_READ, NBDP_CMD_DF, 6, 0, 3 * MIB);
	assert_int_equal(error_chunk(&g, 6), NBDP_EOVERFLOW);
	ask(&g, NBDP_CMD_READ, 0, 6, SIZE - 1, 2);
	assert_int_equal(error_chunk(&g, 6), NBDP_EINVAL);
	ask(&g, NBDP_CMD_READ, 0, 6, UINT64_MAX, 2);
	assert_int_equal(error_chunk(&g, 6), NBDP_EINVAL);
	ask(&g, NBDP_CMD_READ, 0, 6, 0, UINT32_MAX);
	assert_int_equal(error_chunk(&g, 6), NBDP_EINVAL);
	ask(&g, NBDP_CMD_READ, NBDP_CMD_REQ_ONE, 6, 0, 1);
	assert_int_equal(error_chunk(&g, 6), NBDP_EINVAL);
	ask(&g, NBDP_CMD_READ, NBDP_CMD_FUA, 6, 0, 0);
	assert_int_equal(chunk(&g, 6).type, NBDP_REPLY_NONE);
	leave(&g);
	rig_close(&g);
}

static void writes(void **state)
{
	struct rig g;
	uint8_t junk[512] = {0};

	(void)state;
	rig_open(&g, BLK_RDWR);
	start(&g, "disk", true);
	send_write(&g, 1, 1, 0);
	send_write(&g, 100, 5000, NBDP_CMD_FUA);
	send_write(&g, 0, 2 * MIB, 0);
	send_write(&g, 12345, 5 * MIB + 3, 0);
	ask(&g, NBDP_CMD_WRITE, 0, 4, SIZE - 1, 512);
	put(&g, junk, 512);
	assert_int_equal(simple(&g, 4), NBDP_ENOSPC);
	ask(&g, NBDP_CMD_WRITE, NBDP_CMD_DF, 4, 0, 512);
	put(&g, junk, 512);
	assert_int_equal(simple(&g, 4), NBDP_EINVAL);

	assert_int_equal(change(&g, NBDP_CMD_WRITE_ZEROES, 0, 1000, 100000), 0);
	for (unsigned i = 0; i < 100000; i++)
		assert_int_equal(g.disk[1000 + i], 0);
	assert_int_equal(
		change(&g, NBDP_CMD_WRITE_ZEROES, NBDP_CMD_NO_HOLE | NBDP_CMD_FUA, 0, 512), 0);
	assert_int_equal(change(&g, NBDP_CMD_WRITE_ZEROES, 0, 1, SIZE), NBDP_ENOSPC);
	assert_int_equal(change(&g, NBDP_CMD_TRIM, 0, 4096, 4096), 0);
	assert_int_equal(change(&g, NBDP_CMD_TRIM, NBDP_CMD_FUA, 4096, 4096), 0);
	assert_int_equal(change(&g, NBDP_CMD_TRIM, 0, SIZE, 1), NBDP_EINVAL);
	assert_int_equal(change(&g, NBDP_CMD_CACHE, 0, 0, SIZE), 0);
	assert_int_equal(change(&g, NBDP_CMD_CACHE, 0, 1, SIZE), NBDP_EINVAL);
	assert_int_equal(change(&g, NBDP_CMD_FLUSH, 0, 0, 0), 0);
	assert_int_equal(change(&g, NBDP_CMD_FLUSH, 0, 0, 1), NBDP_EINVAL);
	assert_int_equal(change(&g, 99, 0, 0, 0), NBDP_EINVAL);
	ask(&g, NBDP_CMD_DISC, 0, 0, 0, 0);
	expect_end(&g);
	leave(&g);
	rig_close(&g);
}

static void read_only(void **state)
{
	static uint8_t junk[4096];
	struct rig g;

	(void)state;
	rig_open(&g, BLK_RDWR);
	start(&g, "", true);
	ask(&g, NBDP_CMD_WRITE, 0, 1, 0, sizeof(junk));
	put(&g, junk, sizeof(junk));
	assert_int_equal(simple(&g, 1), NBDP_EPERM);
	assert_int_equal(change(&g, NBDP_CMD_TRIM, 0, 0, 4096), NBDP_EPERM);
	assert_int_equal(change(&g, NBDP_CMD_WRITE_ZEROES, 0, 0, 4096), NBDP_EPERM);
	assert_int_equal(change(&g, NBDP_CMD_FLUSH, 0, 0, 0), 0);
	assert_int_equal(g.disk[1], 7);
	leave(&g);
	rig_close(&g);
	/* Not open for writing is the same, whatever the export says. */
	rig_open(&g, 0);
	start(&g, "disk", true);
	assert_int_equal(change(&g, NBDP_CMD_WRITE_ZEROES, 0, 0, 4096), NBDP_EPERM);
	leave(&g);
	rig_close(&g);
}

static void zeroes_are_detected(void **state)
{
	static uint8_t zeroes[65536];
	struct rig g;

	(void)state;
	rig_open(&g, BLK_RDWR);
	g.exports[0].detect = BLK_NBD_DETECT_UNMAP;
	start(&g, "disk", false);
	ask(&g, NBDP_CMD_WRITE, 0, 1, 3, sizeof(zeroes));
	put(&g, zeroes, sizeof(zeroes));
	assert_int_equal(simple(&g, 1), 0);
	assert_memory_equal(g.disk + 3, zeroes, sizeof(zeroes));
	send_write(&g, 5, 1000, 0);
	leave(&g);
	rig_close(&g);
}

/* ---- block status
 * ------------------------------------------------------------------------------- */

static void choose_contexts(struct rig *g, uint32_t *id0, uint32_t *id1)
{
	uint8_t b[512];

	greet(g, 3);
	opt(g, NBDP_OPT_STRUCTURED_REPLY, NULL, 0);
	expect(g, NBDP_OPT_STRUCTURED_REPLY, NBDP_REP_ACK);
	opt(g, NBDP_OPT_SET_META_CONTEXT, b,
		meta_data(b, "disk", "qemu:dirty-bitmap:b0", "base:allocation"));
	assert_int_equal(reply(g, NBDP_OPT_SET_META_CONTEXT, b, NULL), NBDP_REP_META_CONTEXT);
	*id0 = thr_be32(b);
	assert_memory_equal(b + 4, "base:", 5);
	assert_int_equal(reply(g, NBDP_OPT_SET_META_CONTEXT, b, NULL), NBDP_REP_META_CONTEXT);
	*id1 = thr_be32(b);
	expect(g, NBDP_OPT_SET_META_CONTEXT, NBDP_REP_ACK);
}

static unsigned extents(struct rig *g, uint32_t id, uint32_t (*v)[2], unsigned *flags)
{
	struct chunk k = chunk(g, 8);
	unsigned n = (k.len - 4) / 8;

	assert_int_equal(k.type, NBDP_REPLY_BLOCK_STATUS);
	assert_int_equal(get32(g), id);
	for (unsigned i = 0; i < n; i++) {
		v[i][0] = get32(g);
		v[i][1] = get32(g);
	}
	*flags = k.flags;
	return n;
}

static void block_status(void **state)
{
	struct rig g;
	static uint32_t v[4096][2];
	uint32_t id0, id1;
	unsigned flags;

	(void)state;
	rig_open(&g, BLK_RDWR);
	choose_contexts(&g, &id0, &id1);
	choose(&g, "disk");
	ask(&g, NBDP_CMD_BLOCK_STATUS, 0, 8, 512, 3 * MIB);
	assert_int_equal(extents(&g, id0, v, &flags), 3);
	assert_int_equal(flags, 0);
	assert_int_equal(v[0][0], MIB - 512);
	assert_int_equal(v[0][1], 0);
	assert_int_equal(v[1][0], MIB);
	assert_int_equal(v[1][1], 3);
	assert_int_equal(v[2][0], MIB + 512);
	assert_int_equal(extents(&g, id1, v, &flags), 49);
	assert_int_equal(flags, NBDP_REPLY_DONE);
	assert_int_equal(v[0][0], 65536 - 512);
	assert_int_equal(v[1][1], 1);
	assert_int_equal(v[48][0], 512);

	ask(&g, NBDP_CMD_BLOCK_STATUS, NBDP_CMD_REQ_ONE, 8, MIB, 3 * MIB);
	assert_int_equal(extents(&g, id0, v, &flags), 1);
	assert_int_equal(v[0][0], MIB);
	assert_int_equal(extents(&g, id1, v, &flags), 1);
	assert_int_equal(v[0][0], 65536);

	ask(&g, NBDP_CMD_BLOCK_STATUS, 0, 8, SIZE - 512, 512);
	assert_int_equal(extents(&g, id0, v, &flags), 1);
	assert_int_equal(error_chunk(&g, 8), NBDP_EIO);
	ask(&g, NBDP_CMD_BLOCK_STATUS, 0, 8, SIZE, 512);
	assert_int_equal(error_chunk(&g, 8), NBDP_EINVAL);
	ask(&g, NBDP_CMD_BLOCK_STATUS, 0, 8, 0, 0);
	assert_int_equal(error_chunk(&g, 8), NBDP_EINVAL);
	leave(&g);

	/* Chosen for one export, another one is used. */
	choose_contexts(&g, &id0, &id1);
	choose(&g, "");
	ask(&g, NBDP_CMD_BLOCK_STATUS, 0, 8, 0, 512);
	assert_int_equal(error_chunk(&g, 8), NBDP_EINVAL);
	leave(&g);
	rig_close(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options),
		cmocka_unit_test(oversize_option),
		cmocka_unit_test(export_name),
		cmocka_unit_test(meta_contexts),
		cmocka_unit_test(simple_reads),
		cmocka_unit_test(structured_reads),
		cmocka_unit_test(writes),
		cmocka_unit_test(read_only),
		cmocka_unit_test(zeroes_are_detected),
		cmocka_unit_test(block_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
