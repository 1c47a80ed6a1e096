#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# scripts/layers finds every kind of step out of the order, in a small tree.
n=0
tree=$PWD/tree
mkdir -p tree/scripts out
cp "$srctree/scripts/libs" tree/scripts/
for room in thr cz blk fmt cli; do
	mkdir tree/$room
	: >tree/$room/build.mk
done
for h in thr/base.h thr/thr.h cz/cz.h blk/blk.h fmt/fmt.h; do : >tree/$h; done
: >tree/cz/private.h

# $1 hosted or empty: builds the libraries of the tree and runs the check on it
layers() {
	hosted=$1
	shift
	for room in thr cz blk fmt; do
		rm -f out/$room.o out/lib$room.a
		[ ! -e tree/$room/a.c ] || cc -I tree -ffreestanding -O -c -o out/$room.o \
			tree/$room/a.c 2>log || cat log
		ar rc out/lib$room.a $(ls out/$room.o 2>/dev/null)
	done
	CC=gcc NM=nm B=$PWD/out srctree=$tree hosted=$hosted PARTS= \
		PUBLIC='thr/base.h thr/thr.h cz/cz.h blk/blk.h fmt/fmt.h' \
		"$srctree/scripts/layers" thr= cz= blk= fmt= "$@" >log 2>&1
}

# $1 what, $2 what the output says (empty: all is well), $3 file, $4 hosted; its text is the input
case_of() {
	cat >"tree/$3"
	layers "$4"
	got=$?
	n=$((n + 1))
	if { [ -z "$2" ] && [ $got = 0 ]; } ||
		{ [ "$2" ] && [ $got = 1 ] && grep -q "^#.*$2" log; }; then
		echo "ok $n - $1"
	else
		echo "not ok $n - $1: exit status $got"
		sed 's/^/#   /' log
	fi
	rm -f "tree/$3"
}

case_of 'a room over those below it' '' blk/a.c y <<'END'
#include "cz/cz.h"
#include "thr/thr.h"
#include <string.h>
int blk_f(const char *s) { return (int)strlen(s); }
END
case_of 'a header above' 'fmt/fmt.h is above blk' blk/a.c y <<'END'
#include "fmt/fmt.h"
END
case_of 'a private header of another room' 'cz/private.h is private' blk/a.c y <<'END'
#include "cz/private.h"
END
case_of 'cz and the rest of thr' 'more than cz may use' cz/a.c y <<'END'
#include "thr/thr.h"
END
case_of 'a way around through ..' 'has ..' cz/a.c y <<'END'
#include "../thr/thr.h"
END
case_of 'our header between angles' 'use quotes' blk/a.c y <<'END'
#include <fmt/fmt.h>
END
case_of 'a library that is not declared' 'belongs to zlib' cz/a.c y <<'END'
#include <zlib.h>
END
case_of 'a symbol from above' 'fmt_up is defined in nothing that blk may use' blk/a.c y <<'END'
int fmt_up(void);
int blk_f(void) { return fmt_up(); }
END
case_of 'a symbol of a library that is not declared' 'inflate is defined in nothing' cz/a.c y <<'END'
int inflate(void *, int);
int cz_f(void) { return inflate(0, 0); }
END
case_of 'a symbol with another prefix' 'helper' thr/a.c y <<'END'
int helper(void) { return 1; }
END
case_of 'the C library in firmware' 'strlen is defined in nothing' blk/a.c '' <<'END'
unsigned long strlen(const char *);
int blk_f(const char *s) { return (int)strlen(s); }
END
case_of 'mem*() in firmware' '' blk/a.c '' <<'END'
#include <stddef.h>
void *memcpy(void *, const void *, size_t);
void blk_f(void *a, void *b, size_t n) { memcpy(a, b, n); }
END
case_of '64-bit division in firmware' 'divides 64-bit' blk/a.c '' <<'END'
unsigned __int128 blk_f(unsigned __int128 a, unsigned __int128 b) { return a / b; }
END
printf 'cz-lib-CZ_DEFLATE := zlib\n' >tree/cz/build.mk
cat >tree/cz/a.c <<'END'
#include <zlib.h>
int inflate(z_streamp, int);
int cz_f(void) { return inflate(0, 0); }
END
layers y cz=zlib
got=$?
n=$((n + 1))
if [ $got = 0 ]; then
	echo "ok $n - a declared library"
else
	echo "not ok $n - a declared library"
	sed 's/^/#   /' log
fi
echo "1..$n"
