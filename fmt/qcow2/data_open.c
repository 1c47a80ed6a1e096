/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/qcow2/data_open.c - the file of its own that an image has its data in.
 */
#include "fmt/qcow2/qcow2.h"

/* The name as the image has it, in FMT_NAME_MAX bytes. */
static int data_name(struct qcow2 *q, char *name, struct blk_err *err)
{
	uint32_t len = q->data_file_len;
	int ret;

	memset(name, 0, FMT_NAME_MAX);
	if (!q->data_file_off)
		return 0;
	if (!len || len >= FMT_NAME_MAX)
		return blk_fail(err, -THR_EINVAL, BLK_E_QCOW2_DATA_NAME, q->data_file_off, len);
	ret = blk_pread(q->blk.file, q->data_file_off, name, len);
	if (ret)
		return blk_fail(err, ret, BLK_E_SYS, q->data_file_off, 0);
	if (memchr(name, 0, len))
		return blk_fail(err, -THR_EINVAL, BLK_E_QCOW2_DATA_NAME, q->data_file_off, len);
	return 0;
}

static int open_data(
	struct qcow2 *q, const struct fmt_open *o, struct blk **out, struct blk_err *err)
{
	char *name;
	int ret;

	if (!o->open_data)
		return blk_fail(err, -THR_EINVAL, BLK_E_QCOW2_DATA_NONE, 0, 0);
	name = thr_get(q->blk.mem, FMT_NAME_MAX, 16);
	if (!name)
		return blk_fail(err, -THR_ENOMEM, BLK_E_SYS, 0, 0);
	ret = data_name(q, name, err);
	if (!ret)
		ret = o->open_data(o, name, out, err);
	thr_put(q->blk.mem, name, FMT_NAME_MAX);
	return ret;
}

/* The file that has the guest's data, where that is another one. */
int qcow2_data_open(struct qcow2 *q, const struct fmt_open *o, struct blk_err *err)
{
	struct blk *data = o->data;
	int ret;

	if (!(q->h.incompatible & QCOW2_INC_DATA_FILE))
		return 0;
	if (q->h.snapshots && o->blk_flags & BLK_RDWR && !(o->flags & FMT_REPAIR))
		return blk_fail(err, -THR_ENOTSUP, BLK_E_QCOW2_DATA_SNAPSHOTS, 60, 0);
	ret = data ? 0 : open_data(q, o, &data, err);
	if (ret)
		return ret;
	if (blk_same(data, q->blk.file)) {
		if (!o->data)
			blk_close(data);
		return blk_fail_str(err, -THR_EINVAL, BLK_E_QCOW2_DATA_SAME, q->blk.name);
	}
	q->data = data;
	q->blk.data = data;
	q->data_raw = q->h.autoclear & QCOW2_AUTO_RAW;
	return 0;
}
