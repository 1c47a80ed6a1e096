/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cli/progress.c - how far a command has come: with -p a line that is written over,
 * without it once on stderr for each SIGUSR1. The signal is read from a descriptor when
 * the operation reports, so nothing is interrupted.
 */
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/cli.h"

static void show(uint64_t hundredths)
{
	printf("    (%u.%02u/100%%)\r", (unsigned)(hundredths / 100),
		(unsigned)(hundredths % 100));
	fflush(stdout);
}

static bool signalled(const struct cli_progress *p)
{
	struct signalfd_siginfo si;

	return p->signal_fd >= 0 && read(p->signal_fd, &si, sizeof(si)) == sizeof(si);
}

static void update(void *ctx, uint64_t done, uint64_t total)
{
	struct cli_progress *p = ctx;
	uint64_t now = total ? (uint64_t)((double)done * 10000.0 / (double)total) : 10000;

	if (signalled(p) && !p->on)
		fprintf(stderr, "    (%u.%02u/100%%)\n", (unsigned)(now / 100),
			(unsigned)(now % 100));
	if (!p->on || (p->any && now < p->shown + 100))
		return;
	p->any = true;
	p->shown = now;
	show(now);
}

void cli_progress_begin(struct cli_progress *p, bool on)
{
	sigset_t set;

	*p = (struct cli_progress){.p = {update, p}, .on = on, .signal_fd = -1};
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	if (!sigprocmask(SIG_BLOCK, &set, NULL))
		p->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (on)
		update(p, 0, 1);
}

void cli_progress_full(struct cli_progress *p)
{
	if (p->on)
		show(10000);
}

void cli_progress_end(struct cli_progress *p)
{
	if (p->on)
		putchar('\n');
	if (p->signal_fd >= 0)
		close(p->signal_fd);
}
