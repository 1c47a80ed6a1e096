/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/info_json.c - info as JSON. Readers go by the keys; their order is qemu-img's all
 * the same. What does not apply has no key.
 */
#include "cli/info.h"

static void snapshots(struct cli_json *j, const struct cli_image *im)
{
	struct fmt_snapshot s;

	if (!im->info.snapshots || !im->info.snapshot)
		return;
	cli_json_open(j, "snapshots", true);
	for (unsigned i = 0; i < im->info.snapshots; i++) {
		if (im->info.snapshot(im->blk, i, &s))
			continue;
		cli_json_open(j, NULL, false);
		if (s.icount != UINT64_MAX)
			cli_json_num(j, "icount", s.icount);
		cli_json_num(j, "vm-clock-nsec", s.vm_clock_nsec % 1000000000u);
		cli_json_str(j, "name", s.name);
		cli_json_num(j, "date-sec", s.date_sec);
		cli_json_num(j, "date-nsec", s.date_nsec);
		cli_json_num(j, "vm-clock-sec", s.vm_clock_nsec / 1000000000u);
		cli_json_str(j, "id", s.id);
		cli_json_num(j, "vm-state-size", s.vm_state_size);
		cli_json_close(j, false);
	}
	cli_json_close(j, true);
}

/* ---- what only the format knows -------------------------------------------------------- */

#define MAX_DEPTH 16

struct specific {
	struct fmt_sink sink;
	struct cli_json *j;
	const char *format;
	bool begun;
	unsigned depth;
	bool array[MAX_DEPTH];
};

static struct cli_json *start(struct fmt_sink *s)
{
	struct specific *p = (struct specific *)(void *)s;

	if (!p->begun) {
		cli_json_open(p->j, "format-specific", false);
		cli_json_str(p->j, "type", p->format);
		cli_json_open(p->j, "data", false);
		p->begun = true;
	}
	return p->j;
}

static void put_str(struct fmt_sink *s, const char *key, const char *val)
{
	cli_json_str(start(s), key, val);
}

static void put_num(struct fmt_sink *s, const char *key, uint64_t val)
{
	cli_json_num(start(s), key, val);
}

static void put_flag(struct fmt_sink *s, const char *key, bool val)
{
	cli_json_bool(start(s), key, val);
}

static void put_open(struct fmt_sink *s, const char *key, bool array)
{
	struct specific *p = (struct specific *)(void *)s;

	cli_json_open(start(s), key, array);
	THR_ASSERT(p->depth < MAX_DEPTH);
	p->array[p->depth++] = array;
}

static void put_close(struct fmt_sink *s)
{
	struct specific *p = (struct specific *)(void *)s;

	THR_ASSERT(p->depth);
	cli_json_close(p->j, p->array[--p->depth]);
}

static void specific(struct cli_json *j, const struct cli_image *im)
{
	struct specific p = {
		.sink = {put_str, put_num, put_flag, put_open, put_close},
		.j = j,
		.format = im->info.format,
	};

	fmt_props(im->blk, &p.sink);
	if (!p.begun)
		return;
	cli_json_close(j, false);
	cli_json_close(j, false);
}

void cli_info_json(struct cli_json *j, const struct cli_image *im)
{
	const struct fmt_info *i = &im->info;

	cli_json_open(j, NULL, false);
	snapshots(j, im);
	if (i->backing_format)
		cli_json_str(j, "backing-filename-format", i->backing_format);
	cli_json_num(j, "virtual-size", i->virtual_size);
	cli_json_str(j, "filename", im->name);
	if (i->cluster_size)
		cli_json_num(j, "cluster-size", i->cluster_size);
	cli_json_str(j, "format", i->format);
	if (im->has_allocated)
		cli_json_num(j, "actual-size", im->allocated);
	specific(j, im);
	if (im->full_backing[0])
		cli_json_str(j, "full-backing-filename", im->full_backing);
	if (i->encrypted)
		cli_json_bool(j, "encrypted", true);
	if (i->has_backing)
		cli_json_str(j, "backing-filename", i->backing);
	cli_json_bool(j, "dirty-flag", i->dirty);
	cli_json_close(j, false);
}
