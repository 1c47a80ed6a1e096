/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/info_human.c - info in lines of "key: value".
 */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "cli/info.h"
#include "cli/props.h"

static void size_line(const struct cli_image *im)
{
	char buf[CLI_HUMAN_SIZE];

	printf("virtual size: %s (%" PRIu64 " bytes)\n",
		cli_human_size(im->info.virtual_size, buf), im->info.virtual_size);
	printf("disk size: %s\n",
		im->has_allocated ? cli_human_size(im->allocated, buf) : "unavailable");
}

static void backing_lines(const struct cli_image *im)
{
	if (!im->info.has_backing)
		return;
	printf("backing file: %s", im->info.backing);
	if (!im->full_backing[0])
		printf(" (cannot determine actual path)");
	else if (strcmp(im->full_backing, im->info.backing))
		printf(" (actual path: %s)", im->full_backing);
	putchar('\n');
	if (im->info.backing_format)
		printf("backing file format: %s\n", im->info.backing_format);
}

/* ---- snapshots ------------------------------------------------------------------------ */

static void snapshot_line(const struct fmt_snapshot *s)
{
	char size[CLI_HUMAN_SIZE], date[32], clock[48], icount[24] = "";
	uint64_t sec = s->vm_clock_nsec / 1000000000u;
	time_t t = (time_t)s->date_sec;
	struct tm tm;

	if (!localtime_r(&t, &tm) || !strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &tm))
		date[0] = '\0';
	snprintf(clock, sizeof(clock), "%02" PRIu64 ":%02u:%02u.%03u", sec / 3600,
		(unsigned)(sec / 60 % 60), (unsigned)(sec % 60),
		(unsigned)(s->vm_clock_nsec / 1000000u % 1000));
	if (s->icount != UINT64_MAX)
		snprintf(icount, sizeof(icount), "%" PRIu64, s->icount);
	printf("%-9s %-16s %8s%20s%13s%11s\n", s->id, s->name,
		cli_human_size(s->vm_state_size, size), date, clock, icount);
}

static void snapshot_lines(const struct cli_image *im)
{
	struct fmt_snapshot s;

	if (!im->info.snapshots || !im->info.snapshot)
		return;
	printf("Snapshot list:\n%-9s %-16s %8s%20s%13s%11s\n", "ID", "TAG", "VM SIZE", "DATE",
		"VM CLOCK", "ICOUNT");
	for (unsigned i = 0; i < im->info.snapshots; i++)
		if (!im->info.snapshot(im->blk, i, &s))
			snapshot_line(&s);
}

void cli_info_human(const struct cli_image *im)
{
	printf("image: %s\nfile format: %s\n", im->name, im->info.format);
	size_line(im);
	if (im->info.encrypted)
		puts("encrypted: yes");
	if (im->info.cluster_size)
		printf("cluster_size: %" PRIu64 "\n", im->info.cluster_size);
	if (im->info.dirty)
		puts("cleanly shut down: no");
	backing_lines(im);
	snapshot_lines(im);
	cli_props(im->blk);
}
