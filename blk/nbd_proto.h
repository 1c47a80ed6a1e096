/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/nbd_proto.h - the numbers of the NBD protocol, fixed newstyle, as in
 * https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md
 * All of them are big-endian on the wire.
 */
#ifndef BLK_NBD_PROTO_H
#define BLK_NBD_PROTO_H

#define NBDP_MAGIC            0x4e42444d41474943ull /* "NBDMAGIC" */
#define NBDP_OPT_MAGIC        0x49484156454f5054ull /* "IHAVEOPT" */
#define NBDP_OPT_REPLY_MAGIC  0x0003e889045565a9ull
#define NBDP_REQUEST_MAGIC    0x25609513u
#define NBDP_SIMPLE_MAGIC     0x67446698u
#define NBDP_STRUCTURED_MAGIC 0x668e33efu

#define NBDP_PORT        "10809"
#define NBDP_STRING_MAX  4096u
#define NBDP_PAYLOAD_MAX (32u << 20) /* where block sizes are not negotiated */

/* of the server, of the client: handshake */
#define NBDP_FIXED_NEWSTYLE (1u << 0)
#define NBDP_NO_ZEROES      (1u << 1)

enum {
	NBDP_OPT_EXPORT_NAME = 1,
	NBDP_OPT_ABORT = 2,
	NBDP_OPT_LIST = 3,
	NBDP_OPT_STARTTLS = 5,
	NBDP_OPT_INFO = 6,
	NBDP_OPT_GO = 7,
	NBDP_OPT_STRUCTURED_REPLY = 8,
	NBDP_OPT_LIST_META_CONTEXT = 9,
	NBDP_OPT_SET_META_CONTEXT = 10,
};

#define NBDP_REP_ACK          1u
#define NBDP_REP_SERVER       2u
#define NBDP_REP_INFO         3u
#define NBDP_REP_META_CONTEXT 4u
#define NBDP_REP_ERR_UNSUP    0x80000001u
#define NBDP_REP_ERR_POLICY   0x80000002u
#define NBDP_REP_ERR_INVALID  0x80000003u
#define NBDP_REP_ERR_TLS_REQD 0x80000005u
#define NBDP_REP_ERR_UNKNOWN  0x80000006u
#define NBDP_REP_ERR_SHUTDOWN 0x80000007u
#define NBDP_REP_ERR_TOO_BIG  0x80000009u

enum {
	NBDP_INFO_EXPORT = 0,
	NBDP_INFO_NAME = 1,
	NBDP_INFO_DESCRIPTION = 2,
	NBDP_INFO_BLOCK_SIZE = 3,
};

/* of an export */
#define NBDP_HAS_FLAGS         (1u << 0)
#define NBDP_READ_ONLY         (1u << 1)
#define NBDP_SEND_FLUSH        (1u << 2)
#define NBDP_SEND_FUA          (1u << 3)
#define NBDP_SEND_TRIM         (1u << 5)
#define NBDP_SEND_WRITE_ZEROES (1u << 6)
#define NBDP_SEND_DF           (1u << 7)
#define NBDP_CAN_MULTI_CONN    (1u << 8)
#define NBDP_SEND_CACHE        (1u << 10)
#define NBDP_SEND_FAST_ZERO    (1u << 11)

enum {
	NBDP_CMD_READ = 0,
	NBDP_CMD_WRITE = 1,
	NBDP_CMD_DISC = 2,
	NBDP_CMD_FLUSH = 3,
	NBDP_CMD_TRIM = 4,
	NBDP_CMD_CACHE = 5,
	NBDP_CMD_WRITE_ZEROES = 6,
	NBDP_CMD_BLOCK_STATUS = 7,
};

#define NBDP_CMD_FUA       (1u << 0)
#define NBDP_CMD_NO_HOLE   (1u << 1)
#define NBDP_CMD_DF        (1u << 2)
#define NBDP_CMD_REQ_ONE   (1u << 3)
#define NBDP_CMD_FAST_ZERO (1u << 4)

#define NBDP_REPLY_DONE (1u << 0)
enum {
	NBDP_REPLY_NONE = 0,
	NBDP_REPLY_OFFSET_DATA = 1,
	NBDP_REPLY_OFFSET_HOLE = 2,
	NBDP_REPLY_BLOCK_STATUS = 5,
	NBDP_REPLY_ERROR = 32769,
};

enum {
	NBDP_EPERM = 1,
	NBDP_EIO = 5,
	NBDP_ENOMEM = 12,
	NBDP_EINVAL = 22,
	NBDP_ENOSPC = 28,
	NBDP_EOVERFLOW = 75,
	NBDP_ENOTSUP = 95,
	NBDP_ESHUTDOWN = 108,
};

/* base:allocation */
#define NBDP_STATE_HOLE (1u << 0)
#define NBDP_STATE_ZERO (1u << 1)

/* Bytes of what comes first. */
#define NBDP_REQUEST_LEN      28u
#define NBDP_OPTION_LEN       16u
#define NBDP_OPTION_REPLY_LEN 20u
#define NBDP_SIMPLE_LEN       16u
#define NBDP_CHUNK_LEN        20u

#endif
