#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# The crash suite sees what it is there for: for every order of fmt/barrier.h, a build that
# leaves out just this one fails it, and prints a line that fails the same way when it is
# run; the build as it is passes.
n=0
unset MAKEFLAGS MAKELEVEL MAKEOVERRIDES DROP
names=$(sed -n '/^enum fmt_barrier/,/^}/s/^	\([A-Z0-9_]*\),.*/\1/p' "$srctree/fmt/barrier.h" |
	grep -v '^FMT_KEEP_ALL$')

result() {
	n=$((n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		tail -n 30 log | sed 's/^/#   /'
	fi
}

# $1 variant of the build, the rest arguments of make
build() {
	variant=$1
	shift
	make -s -j2 -C "$srctree" O="$O" t-build T=crash "$@" >log 2>&1 || return
	crash=$O$variant/t/crash/crash
	[ -x "$crash" ]
}

build '' && "$crash" --seeds 2 >log 2>&1
result $? 'with every order kept there is nothing to find'

for name in $names; do
	if ! grep -rq "FMT_BARRIER($name)" "$srctree/fmt" --include='*.c'; then
		n=$((n + 1))
		echo "ok $n - without $name # SKIP no code keeps this order yet"
		continue
	fi
	build "/v/drop-$name" DROP="$name"
	built=$?
	"$crash" --stop >log 2>&1
	red=$?
	[ $built = 0 ] && [ $red = 1 ] && grep -q '^not ok' log
	result $? "without $name the suite fails"
	line=$(sed -n 's/^# t\/crash\/crash //p' log | head -n 1)
	# shellcheck disable=SC2086
	[ "$line" ] && ! "$crash" $line >log 2>&1 && grep -q '^not ok' log
	result $? "without $name the line that it prints fails again"
done
echo "1..$n"
