/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/serve.c - platter serve, and the program behind a link called qemu-nbd: its
 * options. Where it differs from qemu-nbd: without -b it listens on the loopback only, and
 * there are no kernel devices.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/help.h"
#include "cli/serve.h"

enum {
	OPT_CACHE = CLI_OPT_FIRST,
	OPT_AIO,
	OPT_DISCARD,
	OPT_DETECT,
	OPT_FORK,
	OPT_PID_FILE,
	OPT_TLS_CREDS,
	OPT_TLS_HOSTNAME,
	OPT_THREADS,
	OPT_REFUSED, /* whatever this program cannot do */
};

static const struct option options[] = {
	CLI_LONG_HELP,
	{"version", no_argument, NULL, 'V'},
	{"port", required_argument, NULL, 'p'},
	{"bind", required_argument, NULL, 'b'},
	{"socket", required_argument, NULL, 'k'},
	{"format", required_argument, NULL, 'f'},
	{"read-only", no_argument, NULL, 'r'},
	{"load-snapshot", required_argument, NULL, 'l'},
	{"nocache", no_argument, NULL, 'n'},
	{"shared", required_argument, NULL, 'e'},
	{"persistent", no_argument, NULL, 't'},
	{"export-name", required_argument, NULL, 'x'},
	{"description", required_argument, NULL, 'D'},
	{"bitmap", required_argument, NULL, 'B'},
	{"allocation-depth", no_argument, NULL, 'A'},
	{"list", no_argument, NULL, 'L'},
	{"verbose", no_argument, NULL, 'v'},
	{"cache", required_argument, NULL, OPT_CACHE},
	{"aio", required_argument, NULL, OPT_AIO},
	{"discard", required_argument, NULL, OPT_DISCARD},
	{"detect-zeroes", required_argument, NULL, OPT_DETECT},
	{"fork", no_argument, NULL, OPT_FORK},
	{"pid-file", required_argument, NULL, OPT_PID_FILE},
	{"tls-creds", required_argument, NULL, OPT_TLS_CREDS},
	{"tls-hostname", required_argument, NULL, OPT_TLS_HOSTNAME},
	{"threads", required_argument, NULL, OPT_THREADS},
	{"connect", required_argument, NULL, 'c'},
	{"disconnect", no_argument, NULL, 'd'},
	{"snapshot", no_argument, NULL, 's'},
	{"offset", required_argument, NULL, 'o'},
	{"tls-authz", required_argument, NULL, OPT_REFUSED},
	{"selinux-label", required_argument, NULL, OPT_REFUSED},
	{"trace", required_argument, NULL, 'T'},
	CLI_LONG_OBJECT,
	CLI_LONG_IMAGE_OPTS,
	CLI_LONG_END,
};

static void help(void)
{
	printf("usage: %s [options] filename\n"
	       "       %s -L [options]\n"
	       "Serves a disk image to NBD clients.\n\n"
	       "  -k, --socket PATH    listen on a Unix socket\n"
	       "  -p, --port PORT      listen on this TCP port (10809)\n"
	       "  -b, --bind ADDRESS   at this address; without it at the loopback only,\n"
	       "                       0.0.0.0 is every address\n"
	       "  -e, --shared N       serve N clients at a time (1), 0: up to %d; others "
	       "wait\n"
	       "  -t, --persistent     go on when the last client has gone\n"
	       "  -x, --export-name N  the name of the export (empty)\n"
	       "  -D, --description T  what it is, in words\n"
	       "  -r, --read-only      nobody may write\n"
	       "  -f, --format FMT     the format of the image\n"
	       "  --image-opts         the file name is a list of options\n"
	       "  --object TYPE,...    secret, tls-creds-x509, tls-creds-psk\n"
	       "  -l, --load-snapshot S  serve a snapshot inside the image, read-only\n"
	       "  -A, --allocation-depth  offer the context qemu:allocation-depth\n"
	       "  -B, --bitmap NAME    offer the context qemu:dirty-bitmap:NAME (with -r)\n"
	       "  -s, --snapshot       what is written goes to a temporary file\n"
	       "  -o, --offset N       serve what lies in the image from byte N on\n"
	       "  --cache MODE         none, writeback, writethrough, directsync, unsafe\n"
	       "  -n, --nocache        as --cache=none\n"
	       "  --aio ENGINE         threads, native or io_uring\n"
	       "  --discard MODE       ignore or unmap (ignore)\n"
	       "  --detect-zeroes MODE off, on or unmap (off)\n"
	       "  --tls-creds ID       clients need TLS, with these credentials\n"
	       "  -L, --list           list what another server exports\n"
	       "  --tls-hostname NAME  with -L: the name that its certificate has\n"
	       "  --fork               return when the server listens\n"
	       "  --pid-file PATH      write its process number there\n"
	       "  --threads N          threads (as many as processors)\n"
	       "  --untrusted          open nothing that an image names\n"
	       "  -v, --verbose        say where it listens\n"
	       "  -h, --help           -V, --version\n"
	       "A socket that a service manager hands over (LISTEN_FDS) is used.\n",
		cli_prog, cli_prog, BLK_NBD_CLIENTS_MAX);
}

static int refuse(int c)
{
	const char *name = "";

	for (const struct option *o = options; o->name; o++)
		if (o->val == c)
			name = o->name;
	if (c == 'c' || c == 'd')
		return cli_error("--%s needs a kernel device, which this program does not do; "
				 "nbd-client connects one to a server",
			name);
	if (c == OPT_REFUSED)
		return cli_error("--tls-authz and --selinux-label are not supported");
	return cli_error("--%s is not supported", name);
}

static int take_discard(struct serve *s)
{
	bool on = !strcmp(optarg, "unmap") || !strcmp(optarg, "on");

	if (!on && strcmp(optarg, "ignore") && strcmp(optarg, "off"))
		return cli_error("Invalid discard mode `%s'", optarg);
	s->keep_space = !on;
	return 0;
}

static int take_detect(struct serve *s)
{
	static const char *const modes[] = {"off", "on", "unmap"};

	for (unsigned i = 0; i < THR_ARRAY_SIZE(modes); i++)
		if (!strcmp(optarg, modes[i])) {
			s->detect = (enum blk_nbd_detect)i;
			return 0;
		}
	return cli_error(
		"Failed to parse detect_zeroes mode: invalid parameter value: %s", optarg);
}

static int take_engine(struct serve *s)
{
	static const char *const engines[] = {
		"threads", "native", "io_uring", "sync", "auto", "aio", "uring"};

	s->engine = optarg;
	for (size_t i = 0; i < THR_ARRAY_SIZE(engines); i++)
		if (!strcmp(optarg, engines[i]))
			return 0;
	return cli_error("Invalid aio mode `%s'", optarg);
}

static int take_number(struct serve *s, int c)
{
	unsigned port;

	if (c == 'p') {
		s->port = optarg;
		return cli_number(optarg, 1, 65535, &port)
			       ? cli_error("Invalid port `%s'", optarg)
			       : 0;
	}
	if (cli_number(optarg, 0, 1u << 30, &s->clients))
		return cli_error("Invalid shared device number '%s'", optarg);
	return 0;
}

static int take_bitmap(struct serve *s)
{
	if (s->nbitmaps == SERVE_BITMAPS)
		return cli_error("There can be %d bitmaps at most", SERVE_BITMAPS);
	s->bitmaps[s->nbitmaps++] = optarg;
	return 0;
}

static int take_cache(struct serve *s, const char *mode)
{
	unsigned flags;

	s->open.cache = mode;
	return blk_cache_parse(mode, &flags) ? cli_error("Invalid cache mode `%s'", mode) : 0;
}

/* Those that have a value which is kept as it is, and switches. */
static bool take_plain(struct serve *s, int c)
{
	const struct {
		int c;
		const char **to;
	} values[] = {
		{'b', &s->bind},
		{'k', &s->socket},
		{'f', &s->open.format},
		{'l', &s->snapshot},
		{'x', &s->export},
		{'D', &s->description},
		{OPT_PID_FILE, &s->pid_file},
		{OPT_TLS_CREDS, &s->tls_creds},
		{OPT_TLS_HOSTNAME, &s->tls_hostname},
	};
	const struct {
		int c;
		bool *to;
	} flags[] = {
		{'r', &s->read_only},
		{'t', &s->persistent},
		{'A', &s->depth},
		{'L', &s->list},
		{'s', &s->temporary},
		{'v', &s->verbose},
		{OPT_FORK, &s->fork},
		{CLI_OPT_IMAGE_OPTS, &s->open.image_opts},
	};

	for (size_t i = 0; i < THR_ARRAY_SIZE(values); i++)
		if (values[i].c == c) {
			*values[i].to = optarg;
			return true;
		}
	for (size_t i = 0; i < THR_ARRAY_SIZE(flags); i++)
		if (flags[i].c == c) {
			*flags[i].to = true;
			return true;
		}
	return c == CLI_OPT_OBJECT;
}

static int take_offset(struct serve *s)
{
	if (blk_parse_size(optarg, &s->offset) || s->offset > INT64_MAX)
		return cli_error("Invalid offset '%s'", optarg);
	return 0;
}

static int take_option(struct serve *s, int c)
{
	if (take_plain(s, c))
		return 0;
	switch (c) {
	case 'p':
	case 'e':
		return take_number(s, c);
	case 'B':
		return take_bitmap(s);
	case 'n':
		return take_cache(s, "none");
	case 'o':
		return take_offset(s);
	case OPT_CACHE:
		return take_cache(s, optarg);
	case OPT_AIO:
		return take_engine(s);
	case OPT_DISCARD:
		return take_discard(s);
	case OPT_DETECT:
		return take_detect(s);
	case OPT_THREADS:
		return cli_threads(optarg, &s->threads);
	}
	return refuse(c);
}

static int judge(const struct serve *s)
{
	if (s->socket && (s->bind || s->port))
		return cli_error("A Unix socket has neither address nor port");
	if (s->detect == BLK_NBD_DETECT_UNMAP && s->keep_space)
		return cli_error("setting detect-zeroes to unmap is not allowed without "
				 "setting discard operation to unmap");
	if (s->export && strlen(s->export) > 4096)
		return cli_error("export name '%s' too long", s->export);
	if (s->description && strlen(s->description) > 4096)
		return cli_error("export description '%s' too long", s->description);
	if (s->tls_hostname && !s->list)
		return cli_error("TLS hostname is only supported with list mode");
	if (s->nbitmaps && !s->read_only && !s->snapshot)
		return cli_error("A bitmap is only valid while nobody writes: -B needs -r");
	return 0;
}

static int parse(struct serve *s, int argc, char **argv)
{
	int c, n;

	while ((c = cli_getopt(argc, argv, ":hVp:b:k:f:rl:ne:tx:D:B:ALvc:dso:T:", options)) !=
		-1) {
		if (c == 'V') {
			cli_version();
			exit(cli_done(0));
		}
		if (c == CLI_OPT_BAD || take_option(s, c))
			return 1;
	}
	n = argc - optind;
	if (n != !s->list)
		return s->list ? cli_error("List mode is incompatible with a file name")
			       : cli_usage("Invalid number of arguments");
	s->name = s->open.name = n ? argv[optind] : NULL;
	return judge(s);
}

int cli_serve(int argc, char **argv)
{
	struct serve s = {
		.export = "",
		.clients = 1,
		.keep_space = true,
	};
	int ret;

	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++)
		if (!strcmp(argv[i], "-h") || !strcmp(argv[i], "--help")) {
			help();
			return 0;
		}
	ret = parse(&s, argc, argv);
	if (ret)
		return ret;
#ifdef CONFIG_BLK_NBD
	if (s.list)
		return serve_list(&s);
#else
	if (s.list)
		return cli_error("This build leaves that out: it needs CONFIG_BLK_NBD");
#endif
	return serve_run(&s);
}
