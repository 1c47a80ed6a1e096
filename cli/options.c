/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/options.c - "-o help": the options of creating a format, in order of their names.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"

static int by_name(const void *a, const void *b)
{
	const struct fmt_opt *const *x = a;
	const struct fmt_opt *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

static void print(const struct fmt_opt *o)
{
	static const char *const types[] = {
		[FMT_OPT_BOOL] = "<bool (on/off)>",
		[FMT_OPT_SIZE] = "<size>",
		[FMT_OPT_NUMBER] = "<num>",
		[FMT_OPT_STRING] = "<str>",
	};
	int width = printf("  %s=%s", o->name, types[o->type]);

	printf("%*s - %s\n", width < 24 ? 24 - width : 0, "", o->help);
}

static int print_all(const struct fmt_opt *list)
{
	const struct fmt_opt **sorted;
	size_t n = 0;

	while (list[n].name)
		n++;
	sorted = malloc((n + 1) * sizeof(const struct fmt_opt *));
	if (!sorted)
		return cli_no_memory();
	for (size_t i = 0; i < n; i++)
		sorted[i] = &list[i];
	qsort(sorted, n, sizeof(const struct fmt_opt *), by_name);
	for (size_t i = 0; i < n; i++)
		print(sorted[i]);
	free(sorted);
	return 0;
}

int cli_options_help(const char *format, bool target)
{
	const char *name = format ? format : "raw";
	const struct fmt_driver *d = fmt_driver_find(name);

	if (!d)
		return cli_error("Unknown file format '%s'", name);
	if (!d->create_opts)
		return cli_error("Format driver '%s' does not support image creation", name);
	if (target)
		puts("Supported options:");
	else
		printf("Supported %s options:\n", name);
	return print_all(d->create_opts);
}

int cli_amend_help(const struct fmt_driver *d)
{
	if (!d->amend_opts)
		return cli_error(
			"Format driver '%s' does not support option amendment", d->name);
	printf("Amend options for '%s':\n", d->name);
	return print_all(d->amend_opts);
}
