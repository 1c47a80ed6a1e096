/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/conf/conform.c - conform [ROW/CASE-SUBSTRING]: every case of cases.c for every row of
 * rows.c, in files; or those whose name contains it.
 */
#include <stdlib.h>
#include <string.h>

#include "t/conf/conf.h"

struct pair {
	const struct conf_row *row;
	const struct conf_case *cs;
	char name[96];
};

static void run_pair(void **state)
{
	struct pair *p = *state;
	struct conf c;

	conf_open(&c, p->row);
	p->cs->run(&c);
	conf_close(&c);
}

int main(int argc, char **argv)
{
	size_t ncases = conf_ncases, n = 0, i;
	struct pair *pairs = calloc(conf_nrows * ncases, sizeof(*pairs));
	struct CMUnitTest *tests = calloc(conf_nrows * ncases, sizeof(*tests));
	int failed;

	if (!pairs || !tests)
		return 1;
	for (i = 0; i < conf_nrows * ncases; i++) {
		struct pair *p = &pairs[n];

		p->row = &conf_rows[i / ncases];
		p->cs = &conf_cases[i % ncases];
		snprintf(p->name, sizeof(p->name), "%s/%s", p->row->name, p->cs->name);
		if (argc > 1 && !strstr(p->name, argv[1]))
			continue;
		tests[n].name = p->name;
		tests[n].test_func = run_pair;
		tests[n].initial_state = p;
		n++;
	}
	failed = _cmocka_run_group_tests("conform", tests, n, NULL, NULL);
	free(tests);
	free(pairs);
	return failed != 0;
}
