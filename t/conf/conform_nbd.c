/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/conf/conform_nbd.c - conform_nbd [ROW/CASE-SUBSTRING]: every case of cases.c, and one with
 * NBD at both ends, with NBD in between, for some rows of each format: our client and our
 * server, our client and qemu-nbd.
 */
#include <stdlib.h>
#include <string.h>

#include "t/conf/conf.h"

static const struct route {
	const char *name;
	const struct conf_place *place;
	const char *rows[8]; /* ends with a NULL; those that this build has */
} routes[] = {
	{"ours", &conf_nbd,
		{"raw", "cow-v3-over-short", "luks-xts", "v3-64k-r16", "v3-over-short",
			"extl2-16k"}},
	{"qemu-nbd", &conf_qemu_nbd, {"raw", "v3-over-short"}},
};
#define PAIRS_MAX 512

struct pair {
	const struct route *route;
	const struct conf_row *row;
	const struct conf_case *cs;
	char name[96];
};

/* Both ends are images of the row; the other one is full of something else. */
static void copies_to_an_image_of_its_kind(struct conf *c)
{
	struct blk_err err = BLK_ERR_INIT;
	struct fmt_convert cv = {.src = &c->b, .nsrc = 1, .sparse = 4096, .fibers = 4};
	struct fmt_compare cmp = {.a = c->b};
	struct conf d;
	unsigned i;

	for (i = 0; i < 40; i++)
		conf_step(c);
	conf_open_at(&d, c->row, c->place, c->room);
	conf_write(&d, 0, d.size, 77);
	cv.dst = cmp.b = d.b;
	assert_int_equal(fmt_compare(&cmp, &err), 0);
	assert_int_equal(cmp.result, FMT_DIFFERENT);
	assert_int_equal(fmt_convert(&cv, &err), 0);
	assert_int_equal(fmt_compare(&cmp, &err), 0);
	assert_int_equal(cmp.result, FMT_SAME);
	memcpy(d.model, c->model, c->size);
	conf_reopen(&d, 0);
	conf_compare(&d);
	conf_close(&d);
}
static const struct conf_case both_ends = {
	"copies_to_an_image_of_its_kind", copies_to_an_image_of_its_kind};

static struct pair pairs[PAIRS_MAX];
static struct CMUnitTest tests[PAIRS_MAX];
static size_t npairs;
static bool peer_missing;

static void run_pair(void **state)
{
	struct pair *p = *state;
	struct conf c;

	if (p->route->place == &conf_qemu_nbd && peer_missing) {
		print_message("# SKIP qemu-nbd is not installed\n");
		skip();
	}
	conf_open_at(&c, p->row, p->route->place, 2 * p->row->size);
	p->cs->run(&c);
	conf_close(&c);
}

static void add(const struct route *r, const struct conf_row *row, const char *only)
{
	for (unsigned i = 0; i <= conf_ncases && npairs < PAIRS_MAX; i++) {
		struct pair *p = &pairs[npairs];

		*p = (struct pair){.route = r, .row = row, .cs = &both_ends};
		if (i < conf_ncases)
			p->cs = &conf_cases[i];
		snprintf(p->name, sizeof(p->name), "%s/%s/%s", r->name, row->name, p->cs->name);
		if (only && !strstr(p->name, only))
			continue;
		tests[npairs++] = (struct CMUnitTest){p->name, run_pair, NULL, NULL, p};
	}
}

int main(int argc, char **argv)
{
	for (size_t i = 0; i < THR_ARRAY_SIZE(routes); i++)
		for (unsigned k = 0; routes[i].rows[k]; k++) {
			const struct conf_row *row = conf_row_find(routes[i].rows[k]);

			if (row)
				add(&routes[i], row, argc > 1 ? argv[1] : NULL);
		}
	peer_missing = system("qemu-nbd --version >/dev/null 2>&1") != 0;
	return _cmocka_run_group_tests("conform_nbd", tests, npairs, NULL, NULL) != 0;
}
