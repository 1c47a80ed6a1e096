/* SPDX-License-Identifier: BSD-2-Clause
 *
 * thr/panic.c - the host's end of THR_ASSERT. One of our own invariants does not
 * hold, so nothing can be trusted: say which and stop. A file of its own, so that
 * an embedder may supply another.
 */
#include <stdlib.h>
#include <unistd.h>

#include "thr/base.h"

static void say(const char *text)
{
	if (write(STDERR_FILENO, text, strlen(text)) < 0)
		abort();
}

void thr_panic(const char *what)
{
	say(what);
	say("\n");
	abort();
}
