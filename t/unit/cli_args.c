/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the commands share: option lists, numbers, sizes for people, JSON.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cli/args.c"
#include "cli/error.c"
#include "cli/human.c"
#include "cli/json.c"
#include "cli/decrypt_none.c"
#include "cli/object.c"
#include "cli/object_tls.c"
#include "cli/parse.c"

const char *cli_prog = "test";

void cli_help(void)
{
}

void cli_command_help(const char *name, const struct cli_opt *opts)
{
	(void)name;
	cli_opt_list(opts);
}

/* Messages of the parts under test end up here and not in the TAP. */
static char *message;
static size_t message_len;
static FILE *real;

static void listen(void)
{
	real = stderr;
	stderr = open_memstream(&message, &message_len);
	assert_non_null(stderr);
}

/* What was said since listen(); free it. */
static char *heard(void)
{
	fclose(stderr);
	stderr = real;
	return message;
}

static int add_quietly(struct cli_opts *l, const char *arg)
{
	int ret;

	listen();
	ret = cli_opts_add(l, arg);
	free(heard());
	return ret;
}

/* What holds a secret is covered. */
static void assert_secret(const char *arg, const void *data, size_t len)
{
	const struct fmt_secret *s;
	char *own = strdup(arg);

	assert_non_null(own);
	assert_int_equal(cli_object_add(own), 0);
	assert_int_equal(strspn(own, "*"), strlen(arg));
	free(own);
	s = fmt_secret(cli_secrets(), "a");
	assert_non_null(s);
	assert_int_equal(s->len, len);
	assert_memory_equal(s->data, data, len);
	cli_secrets_wipe();
	assert_null(fmt_secret(cli_secrets(), "a"));
}

static void secrets_are_decoded(void **state)
{
	static const char *const bad[] = {"A", "AAAAA", "AA=", "A===", "=", "AA==A", "A!AA"};
	char arg[64];

	(void)state;
	assert_secret("secret,id=a,data=x,,y", "x,y", 3);
	assert_secret("qom-type=secret,id=a,data=", "", 0);
	assert_secret("secret,id=a,format=base64,data=", "", 0);
	assert_secret("secret,id=a,format=base64,data=/+8A", "\xff\xef\0", 3);
	assert_secret("secret,id=a,format=base64,data=aGVs bG8=", "hello", 5);
	assert_secret("secret,id=a,format=base64,data=aGVsbA==", "hell", 4);
	assert_secret("secret,id=a,format=base64,data=aGVsbA", "hell", 4);
	assert_secret("secret,id=a,format=hex,data=00fF 7e", "\0\xff\x7e", 3);
	for (size_t i = 0; i < THR_ARRAY_SIZE(bad); i++) {
		snprintf(arg, sizeof(arg), "secret,id=a,format=base64,data=%s", bad[i]);
		listen();
		assert_int_equal(cli_object_add(arg), 1);
		free(heard());
	}
}

static void option_lists(void **state)
{
	struct cli_opts l = {0};
	char *s;

	(void)state;
	assert_int_equal(cli_opts_add(&l, "a=1,b=x=y,c=,flag"), 0);
	assert_int_equal(cli_opts_add(&l, "b=one,,two,,,d=,,"), 0);
	assert_string_equal(blk_opt(&l.o, "a"), "1");
	assert_string_equal(blk_opt(&l.o, "b"), "one,two,");
	assert_string_equal(blk_opt(&l.o, "c"), "");
	assert_string_equal(blk_opt(&l.o, "d"), ",");
	assert_string_equal(blk_opt(&l.o, "flag"), "on");
	assert_null(blk_opt(&l.o, "e"));
	assert_int_equal(l.o.n, 6);
	assert_false(l.help);

	s = cli_opts_take(&l, "b");
	assert_string_equal(s, "one,two,");
	free(s);
	assert_null(blk_opt(&l.o, "b"));
	assert_null(cli_opts_take(&l, "b"));
	assert_int_equal(l.o.n, 4);
	assert_string_equal(blk_opt(&l.o, "d"), ",");

	assert_int_equal(cli_opts_add(&l, "z=1,help"), 0);
	assert_true(l.help);
	cli_opts_free(&l);
	assert_int_equal(cli_opts_add(&l, "?"), 0);
	assert_true(l.help);
	assert_int_equal(l.o.n, 0);
	assert_int_equal(add_quietly(&l, ""), 1);
	assert_int_equal(add_quietly(&l, ",a=1"), 1);
	assert_int_equal(cli_opts_add(&l, "a=1,"), 0);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(cli_opts_add(&l, "k=v"), 0);
	assert_int_equal(l.o.n, 101);
	cli_opts_free(&l);
}

static void sizes(void **state)
{
	uint64_t v;
	char *s;

	(void)state;
	assert_int_equal(cli_size("image size", "1.5G", &v), 0);
	assert_int_equal(v, 1610612736);
	assert_int_equal(cli_size("image size", "9223372036854775807", &v), 0);
	listen();
	assert_int_equal(cli_size("image size", "9223372036854775808", &v), 1);
	s = heard();
	assert_string_equal(s, "test: Invalid image size specified. Must be between 0 and "
			       "9223372036854775807.\n");
	free(s);
	listen();
	assert_int_equal(cli_size("image size", "much", &v), 1);
	assert_int_equal(cli_size("image size", "", &v), 1);
	assert_int_equal(cli_size("image size", "-1", &v), 1);
	s = heard();
	assert_non_null(strstr(s, "You may use k, M, G, T, P or E suffixes"));
	free(s);
}

static void numbers(void **state)
{
	unsigned v = 7;

	(void)state;
	assert_int_equal(cli_number("16", 1, 16, &v), 0);
	assert_int_equal(v, 16);
	assert_int_equal(cli_number("17", 1, 16, &v), -THR_EINVAL);
	assert_int_equal(cli_number("0", 1, 16, &v), -THR_EINVAL);
	assert_int_equal(cli_number("", 0, 16, &v), -THR_EINVAL);
	assert_int_equal(cli_number("-1", 0, 16, &v), -THR_EINVAL);
	assert_int_equal(cli_number(" 1", 0, 16, &v), -THR_EINVAL);
	assert_int_equal(cli_number("1x", 0, 16, &v), -THR_EINVAL);
	assert_int_equal(cli_number("99999999999999999999", 0, 16, &v), -THR_EINVAL);
	assert_int_equal(v, 16);
}

static void output_words(void **state)
{
	bool json = true;

	(void)state;
	assert_int_equal(cli_output("human", &json), 0);
	assert_false(json);
	assert_int_equal(cli_output("json", &json), 0);
	assert_true(json);
	listen();
	assert_int_equal(cli_output("xml", &json), 1);
	free(heard());
}

/* What a table of every kind of option fills. */
struct all {
	struct cli_open open;
	bool flag, json;
	const char *text;
	uint64_t size, count;
	unsigned fibers, threads;
	struct cli_opts list;
	unsigned calls;
};

static int call(void *ctx, const char *arg)
{
	struct all *a = ctx;

	a->calls++;
	return arg && !strcmp(arg, "bad") ? cli_error("bad") : 0;
}

static int parse_all(struct all *a, int argc, char **argv)
{
	const struct cli_opt table[] = {
		CLI_OPT_IMAGE(&a->open),
		CLI_FLAG('F', NULL, &a->flag, "a letter"),
		CLI_TEXT(0, "text", "WORD", &a->text, "a name"),
		CLI_SIZE('s', "size", "SIZE", &a->size, "image size", "both"),
		CLI_COUNT('c', NULL, "N", &a->count, "request count", 1, 100, "a number"),
		CLI_CALL(0, "a-name-that-is-long", NULL, call, a, "far to the right"),
		CLI_CALL('C', NULL, "X", call, a, NULL),
		CLI_NOTHING('W', NULL, "nothing"),
		CLI_OPT_FIBERS(&a->fibers),
		CLI_OPT_THREADS(&a->threads),
		CLI_OPT_OUTPUT(&a->json),
		CLI_OPT_LIST(&a->list),
		CLI_OPT_END,
	};

	optind = 0;
	opterr = 0;
	if (argc)
		return cli_parse_one(argc, argv, table, &a->open.name);
	cli_opt_list(table);
	return 0;
}

static int parse_words(struct all *a, char *const *words)
{
	char *argv[16];
	int argc = 0, ret;

	memset(a, 0, sizeof(*a));
	while (words[argc]) {
		argv[argc] = words[argc];
		argc++;
	}
	argv[argc] = NULL;
	ret = parse_all(a, argc, argv);
	cli_opts_free(&a->list);
	return ret;
}

static void tables_fill_fields(void **state)
{
	static char *const words[] = {"x", "-f", "raw", "-UWFF", "--text=a b", "file", "-s1k",
		"-c", "0x10", "-m", "16", "--threads", "7", "--output=json", "--untrusted",
		NULL};
	static char *const more[] = {"x", "--image-opts", "--force-share", "--size", "2k",
		"--a-name-that-is-long", "-Cx", "--", "-z", NULL};
	struct all a;

	(void)state;
	cli_untrusted = false;
	assert_int_equal(parse_words(&a, words), 0);
	assert_string_equal(a.open.format, "raw");
	assert_string_equal(a.open.name, "file");
	assert_int_equal(a.open.blk_flags, BLK_SHARE);
	assert_true(a.flag && a.json && cli_untrusted && !a.open.image_opts);
	assert_string_equal(a.text, "a b");
	assert_int_equal(a.size, 1024);
	assert_int_equal(a.count, 16);
	assert_int_equal(a.fibers, 16);
	assert_int_equal(a.threads, 7);
	cli_untrusted = false;

	assert_int_equal(parse_words(&a, more), 0);
	assert_string_equal(a.open.name, "-z");
	assert_int_equal(a.open.blk_flags, BLK_SHARE);
	assert_int_equal(a.size, 2048);
	assert_int_equal(a.calls, 2);
	assert_true(a.open.image_opts && !a.flag && !cli_untrusted);
}

static void tables_complain(void **state)
{
	static const struct {
		char *words[5];
		const char *said;
	} rows[] = {
		{{"x", "-z"}, "test: unrecognized option '-z'\n"},
		{{"x", "--zz"}, "test: unrecognized option '--zz'\n"},
		{{"x", "-f"}, "test: missing argument for option '-f'\n"},
		{{"x", "--object", "secret"}, "test: Parameter 'id' is missing\n"},
		{{"x", "--object", "foo,id=a"},
			"test: Parameter 'qom-type' does not accept value 'foo'\n"},
		{{"x", "-c0"}, "test: Invalid request count specified\n"},
		{{"x", "-c101"}, "test: Invalid request count specified\n"},
		{{"x", "-c1k"}, "test: Invalid request count specified\n"},
		{{"x", "-c", ""}, "test: Invalid request count specified\n"},
		{{"x", "-m17"}, "test: Invalid number of coroutines. Allowed number of "
				"coroutines is between 1 and 16\n"},
		{{"x", "--threads=0"},
			"test: Invalid number of threads, it is between 1 and 256\n"},
		{{"x", "--output=xml"},
			"test: --output must be used with human or json as argument.\n"},
		{{"x", "-ss"}, "test: Invalid image size specified. You may use k, M, G"},
		{{"x", "-Cbad"}, "test: bad\n"},
		{{"x", "-o", ""}, "test: Invalid option list: \n"},
		{{"x", "-F"}, "test: Expecting one image file name\n"},
		{{"x", "a", "b"}, "test: Expecting one image file name\n"},
	};

	(void)state;
	for (size_t i = 0; i < THR_ARRAY_SIZE(rows); i++) {
		struct all a;
		char *s;

		listen();
		assert_int_equal(parse_words(&a, rows[i].words), 1);
		s = heard();
		assert_memory_equal(s, rows[i].said, strlen(rows[i].said));
		free(s);
	}
}

static void tables_are_listed(void **state)
{
	static const char want[] =
		"  -f, --format FMT     the image format; without it the content tells\n"
		"  --image-opts         a file name is a list of options: driver=qcow2,...\n"
		"  -U, --force-share    although others may be writing to it\n"
		"  -F                   a letter\n"
		"  --text WORD          a name\n"
		"  -s, --size SIZE      both\n"
		"  -c N                 a number\n"
		"  --a-name-that-is-long  far to the right\n"
		"  -W                   nothing\n"
		"  -m N                 requests under way at a time: 1 to 16\n"
		"  --threads N          how many threads work on it\n"
		"  --output OFMT        human or json\n"
		"  -o OPTIONS           name=value pairs; '-o help' lists them\n"
		"  --object TYPE,...    defines a secret or TLS credentials\n"
		"  --untrusted          open nothing that an image names\n"
		"  -h, --help           display this help and exit\n";
	FILE *out = stdout;
	struct all a = {0};
	char *text;
	size_t len;

	(void)state;
	stdout = open_memstream(&text, &len);
	parse_all(&a, 0, NULL);
	fclose(stdout);
	stdout = out;
	assert_string_equal(text, want);
	free(text);
}

static void sizes_for_people(void **state)
{
	static const struct {
		uint64_t v;
		const char *s;
	} rows[] = {
		{0, "0 B"},
		{999, "999 B"},
		{1000, "0.977 KiB"},
		{1024, "1 KiB"},
		{1536, "1.5 KiB"},
		{200704, "196 KiB"},
		{1047552, "0.999 MiB"},
		{1048576, "1 MiB"},
		{12345679360, "11.5 GiB"},
		{1ull << 63, "8 EiB"},
		{UINT64_MAX, "16 EiB"},
	};
	char buf[CLI_HUMAN_SIZE];

	(void)state;
	for (size_t i = 0; i < THR_ARRAY_SIZE(rows); i++)
		assert_string_equal(cli_human_size(rows[i].v, buf), rows[i].s);
}

static char *json_of(void (*fn)(struct cli_json *j, const void *arg), const void *arg)
{
	struct cli_json j;
	size_t len;
	char *s;
	FILE *f = open_memstream(&s, &len);

	assert_non_null(f);
	cli_json_begin(&j, f);
	fn(&j, arg);
	fclose(f);
	return s;
}

static void put_all(struct cli_json *j, const void *arg)
{
	(void)arg;
	cli_json_open(j, NULL, false);
	cli_json_num(j, "n", UINT64_MAX);
	cli_json_open(j, "a", true);
	cli_json_bool(j, NULL, true);
	cli_json_bool(j, NULL, false);
	cli_json_open(j, NULL, false);
	cli_json_str(j, "s", "x");
	cli_json_close(j, false);
	cli_json_close(j, true);
	cli_json_close(j, false);
	cli_json_end(j);
}

static void put_string_arg(struct cli_json *j, const void *arg)
{
	cli_json_str(j, NULL, arg);
}

static void json_layout(void **state)
{
	char *s = json_of(put_all, NULL);

	(void)state;
	assert_string_equal(s, "{\n"
			       "    \"n\": 18446744073709551615,\n"
			       "    \"a\": [\n"
			       "        true,\n"
			       "        false,\n"
			       "        {\n"
			       "            \"s\": \"x\"\n"
			       "        }\n"
			       "    ]\n"
			       "}\n");
	free(s);
}

static void json_strings_are_ascii_and_valid(void **state)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{"", "\"\""},
		{"a\"b\\c/", "\"a\\\"b\\\\c/\""},
		{"\n\t\r\b\f\x01\x1f\x7f", "\"\\n\\t\\r\\b\\f\\u0001\\u001F\\u007F\""},
		{"\xc3\xa9", "\"\\u00E9\""},
		{"\xe2\x82\xac", "\"\\u20AC\""},
		{"\xf0\x9f\x92\xbe", "\"\\uD83D\\uDCBE\""},
		{"\xf4\x8f\xbf\xbf", "\"\\uDBFF\\uDFFF\""},
		/* Too long, too large, surrogates, cut short, stray. */
		{"\xc0\x80", "\"\\uFFFD\\uFFFD\""},
		{"\xe0\x80\x80", "\"\\uFFFD\""},
		{"\xf4\x90\x80\x80", "\"\\uFFFD\""},
		{"\xed\xa0\x80", "\"\\uFFFD\""},
		{"\xe2\x82x", "\"\\uFFFDx\""},
		{"\xe2\x82", "\"\\uFFFD\""},
		{"\x80\xff", "\"\\uFFFD\\uFFFD\""},
	};

	(void)state;
	for (size_t i = 0; i < THR_ARRAY_SIZE(rows); i++) {
		char *s = json_of(put_string_arg, rows[i].in);

		assert_string_equal(s, rows[i].out);
		free(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(option_lists),
		cmocka_unit_test(secrets_are_decoded),
		cmocka_unit_test(sizes),
		cmocka_unit_test(numbers),
		cmocka_unit_test(output_words),
		cmocka_unit_test(tables_fill_fields),
		cmocka_unit_test(tables_complain),
		cmocka_unit_test(tables_are_listed),
		cmocka_unit_test(sizes_for_people),
		cmocka_unit_test(json_layout),
		cmocka_unit_test(json_strings_are_ascii_and_valid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
