/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/io_text.c - amounts, times and the report of a request, as qemu-io prints them.
 */
#include <inttypes.h>
#include <string.h>

#include "cli/io.h"

/* Without the decimals if all of them are zeroes. */
static void cut_zeroes(char *num)
{
	char *dot = strchr(num, '.');

	if (dot && !dot[1 + strspn(dot + 1, "0")])
		*dot = '\0';
}

const char *io_amount(double v, char buf[IO_TEXT])
{
	static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	char num[IO_TEXT / 2];
	unsigned i = 0;

	for (; v >= 1024.0 && i + 1 < THR_ARRAY_SIZE(units); i++)
		v /= 1024.0;
	snprintf(num, sizeof(num), i ? "%.3f" : "%f", v);
	cut_zeroes(num);
	snprintf(buf, IO_TEXT, "%s %s", num, units[i]);
	return buf;
}

#define NS_PER_SEC 1000000000u

/* Hours and minutes only where there are any, or where a machine reads it. */
static const char *time_text(uint64_t ns, bool full, char buf[IO_TEXT])
{
	uint64_t sec = ns / NS_PER_SEC;
	unsigned hundredths = (unsigned)(ns % NS_PER_SEC / (NS_PER_SEC / 100));

	if (full || sec >= 60)
		snprintf(buf, IO_TEXT, "%" PRIu64 ":%02u:%02u.%02u", sec / 3600,
			(unsigned)(sec / 60 % 60), (unsigned)(sec % 60), hundredths);
	else
		snprintf(buf, IO_TEXT, "%02u.%02u sec", (unsigned)sec, hundredths);
	return buf;
}

void io_report(const char *op, uint64_t ns, uint64_t off, uint64_t len, bool machine)
{
	char amount[IO_TEXT], rate[IO_TEXT], took[IO_TEXT];
	double sec = (double)(ns ? ns : 1) / NS_PER_SEC;

	time_text(ns, machine, took);
	if (machine) {
		printf("%" PRIu64 ",1,%s,%.3f,%.3f\n", len, took, (double)len / sec, 1 / sec);
		return;
	}
	printf("%s %" PRIu64 "/%" PRIu64 " bytes at offset %" PRIu64 "\n", op, len, len, off);
	printf("%s, 1 ops; %s (%s/sec and %.4f ops/sec)\n", io_amount((double)len, amount),
		took, io_amount((double)len / sec, rate), 1 / sec);
}

const char *io_strerror(int err)
{
	return blk_strerror(err == -THR_EINVAL ? -THR_EIO : err);
}
