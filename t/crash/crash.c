/* SPDX-License-Identifier: BSD-2-Clause
 *
 * t/crash/crash.c - the crash suite: see crash.h for how it works.
 *
 *   crash [--mode log|sample|exhaustive] [--row NAME]... [--seed N] [--seeds N]
 *         [--ops N] [--states N] [--stop] [--list] [--export DIR]
 *   crash --row NAME --seed N --ops N --cut N --mode a|b|c|d|e|f --sub N
 *
 * --stop ends with the first row that fails. The second form is what a failure prints, and
 * builds that state again. Modes of a row: sample takes as many states as it is told to from
 * all cuts and ways of loss; log takes every cut with nothing and with everything lost;
 * exhaustive takes every subset of the writes that may be lost, which is for few operations.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "t/crash/crash.h"

#define SUBSETS 10u /* so many writes have all their subsets looked at */

struct args {
	const char *mode;
	const char *rows[32];
	unsigned nrows;
	uint64_t seed;
	unsigned seeds, ops;
	uint64_t states; /* of a row and seed; 0: the mode's */
	uint64_t cut;    /* replay */
	bool replay;
	uint64_t sub;
	const char *export;
	bool stop;
};

struct run {
	const struct args *a;
	struct crash c;
	uint64_t states;
	unsigned exported;
};

static char replay_line[256];

/* A crash of the code that is tested says where, too. */
static void died(int sig)
{
	static const char text[] = "\n# died in: ";

	if (write(STDOUT_FILENO, text, sizeof(text) - 1) > 0)
		(void)!write(STDOUT_FILENO, replay_line, strlen(replay_line));
	signal(sig, SIG_DFL);
	raise(sig);
}

static void set_replay(const struct crash *c, const struct cut *cut)
{
	int n = snprintf(replay_line, sizeof(replay_line),
		"t/crash/crash --row %s --seed %llu --ops %u", c->row->name,
		(unsigned long long)c->seed, c->ops);

	if (cut)
		n += snprintf(replay_line + n, sizeof(replay_line) - (size_t)n,
			" --cut %llu --mode %c --sub %llu%s", (unsigned long long)cut->at,
			"abcdef"[cut->mode], (unsigned long long)cut -> sub,
			cut -> bits ? " --bits" : "");
	snprintf(replay_line + n, sizeof(replay_line) - (size_t)n, "\n");
}

static bool one_state(struct run *r, const struct cut *cut, bool loud)
{
	char why[256] = "";

	set_replay(&r->c, cut);
	state_build(&r->c, cut);
	r->states++;
	if (r->a->export && r->states % 16 == 1) {
		char name[64];

		snprintf(name, sizeof(name), "%s.%llu.%u", r->c.row->name,
			(unsigned long long)r->c.seed, r->exported++);
		if (!state_export(&r->c, r->a->export, name)) {
			printf("# cannot export: %s", replay_line);
			return false;
		}
	}
	if (state_verify(&r->c, cut, cut->sub % 4 == 0, loud, why, sizeof(why)))
		return true;
	printf("# %s\n# %s", why, replay_line);
	return false;
}

/* ---- modes ---------------------------------------------------------------------------- */

/* One cut of so many is taken. */
static unsigned one_of(const struct run *r)
{
	return r->c.row->slow ? r->c.row->slow : 1;
}

/* Fewer where sanitizers look, which are slow. */
static uint64_t states_of(const struct run *r)
{
	const char *s = getenv("S");

	return (r->a->states ? r->a->states : s && *s ? 100 : 250) / one_of(r);
}

static bool sample(struct run *r)
{
	uint64_t total = states_of(r), i;

	for (i = 0; i < total; i++) {
		struct cut cut = {
			.at = r->c.rec.event[i * r->c.rec.nevents / total],
			.mode = (enum crash_mode)((i + r->c.seed) % MODES),
			.sub = i,
		};

		if (!one_state(r, &cut, false))
			return false;
	}
	return true;
}

static bool every_prefix(struct run *r)
{
	for (size_t i = 0; i < r->c.rec.nevents; i += one_of(r))
		for (unsigned mode = MODE_ALL; mode <= MODE_NONE; mode++) {
			struct cut cut = {.at = r->c.rec.event[i], .mode = mode, .sub = i};

			if (!one_state(r, &cut, false))
				return false;
		}
	return true;
}

static bool exhaustive(struct run *r)
{
	for (size_t i = 0; i < r->c.rec.nevents; i += one_of(r)) {
		uint64_t at = r->c.rec.event[i];
		unsigned n = THR_MIN(state_maybe(&r->c, at), SUBSETS);
		struct cut cut = {.at = at, .mode = MODE_SUBSET, .bits = true};

		for (cut.sub = 0; cut.sub < 1u << n; cut.sub++)
			if (!one_state(r, &cut, false))
				return false;
		cut.bits = false;
		for (unsigned mode = MODE_SUBSET; mode < MODES; mode++)
			for (cut.sub = 0; cut.sub < 4; cut.sub++) {
				cut.mode = mode;
				if (!one_state(r, &cut, false))
					return false;
			}
	}
	return true;
}

static bool run_mode(struct run *r)
{
	const char *mode = r->a->mode;
	bool ok;

	if (r->a->replay) {
		struct cut cut = {.at = r->a->cut, .sub = r->a->sub, .bits = false};

		cut.mode = (enum crash_mode)(mode[0] - 'a');
		cut.bits = r->a->states == 1;
		state_begin(&r->c);
		ok = one_state(r, &cut, true);
	} else {
		state_begin(&r->c);
		ok = !strcmp(mode, "log")      ? every_prefix(r)
		     : !strcmp(mode, "sample") ? sample(r)
					       : exhaustive(r);
	}
	state_end(&r->c);
	return ok;
}

static bool run_seed(struct run *r, const struct crash_row *row, uint64_t seed)
{
	bool ok;

	r->c.row = row;
	r->c.seed = seed;
	r->c.ops = r->a->ops;
	set_replay(&r->c, NULL);
	ok = crash_record(&r->c, row, seed, r->a->ops);
	if (ok)
		ok = run_mode(r);
	else
		printf("# %s\n# %s", r->c.where, replay_line);
	crash_free(&r->c);
	return ok;
}

/* ---- arguments --------------------------------------------------------------------------- */

static bool wanted(const struct args *a, const struct crash_row *row)
{
	for (unsigned i = 0; i < a->nrows; i++)
		if (!strcmp(a->rows[i], row->name))
			return true;
	return !a->nrows;
}

static void usage(void)
{
	fprintf(stderr, "usage: see t/crash/crash.c\n");
	exit(2);
}

static void list_rows(void)
{
	for (const struct crash_row *row = crash_rows; row->name; row++)
		printf("%s\n", row->name);
	exit(0);
}

static const struct option long_opts[] = {
	{"mode", 1, NULL, 'm'},
	{"row", 1, NULL, 'r'},
	{"seed", 1, NULL, 's'},
	{"seeds", 1, NULL, 'n'},
	{"ops", 1, NULL, 'o'},
	{"states", 1, NULL, 'c'},
	{"cut", 1, NULL, 'a'},
	{"sub", 1, NULL, 'u'},
	{"bits", 0, NULL, 'b'},
	{"list", 0, NULL, 'l'},
	{"export", 1, NULL, 'e'},
	{"stop", 0, NULL, 'x'},
	{NULL, 0, NULL, 0},
};

static void parse(struct args *a, int argc, char **argv)
{
	int opt;

	while ((opt = getopt_long(argc, argv, "", long_opts, NULL)) != -1) {
		uint64_t n = optarg ? strtoull(optarg, NULL, 10) : 0;

		switch (opt) {
		case 'm':
			a->mode = optarg;
			break;
		case 's':
			a->seed = n;
			break;
		case 'n':
			a->seeds = (unsigned)n;
			break;
		case 'o':
			a->ops = (unsigned)n;
			break;
		case 'c':
			a->states = n;
			break;
		case 'a':
			a->cut = n;
			a->replay = true;
			break;
		case 'u':
			a->sub = n;
			break;
		case 'b':
			a->states = 1;
			break;
		case 'e':
			a->export = optarg;
			break;
		case 'x':
			a->stop = true;
			break;
		case 'l':
			list_rows();
			break;
		case 'r':
			if (a->nrows < THR_ARRAY_SIZE(a->rows))
				a->rows[a->nrows++] = optarg;
			break;
		default:
			usage();
		}
	}
}

/* A replay's mode is a letter. */
static bool mode_is_known(const struct args *a)
{
	if (a->replay)
		return !a->mode[1] && a->mode[0] >= 'a' && a->mode[0] <= 'f';
	return !strcmp(a->mode, "log") || !strcmp(a->mode, "sample") ||
	       !strcmp(a->mode, "exhaustive");
}

int main(int argc, char **argv)
{
	struct args a = {.mode = "sample", .seed = 1, .seeds = 6, .ops = 90};
	static struct run r;
	unsigned n = 0, failed = 0;

	parse(&a, argc, argv);
	if (!mode_is_known(&a))
		usage();
	if (a.replay)
		a.seeds = 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGABRT, died);
	signal(SIGSEGV, died);
	r.a = &a;
	for (const struct crash_row *row = crash_rows; row->name; row++) {
		bool ok = true;
		uint64_t before = r.states;

		if (!wanted(&a, row))
			continue;
		r.exported = 0;
		for (uint64_t s = a.seed; ok && s < a.seed + a.seeds; s++)
			ok = run_seed(&r, row, s);
		failed += !ok;
		printf("%sok %u - %s: %llu states\n", ok ? "" : "not ", ++n, row->name,
			(unsigned long long)(r.states - before));
		if (failed && a.stop)
			break;
	}
	printf("1..%u\n# %llu states\n", n, (unsigned long long)r.states);
	return failed || !n;
}
