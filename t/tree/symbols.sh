#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# What is installed defines no global symbol but thr_ cz_ blk_ fmt_, each library its own,
# and the libraries still fit together.
n=0
unset MAKEFLAGS MAKELEVEL
root=$PWD/root
lib=$root/p/lib

result() {
	n=$((n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		sed 's/^/#   /' log
	fi
}

globals() {
	"${NM:-nm}" -g --defined-only "$1" | awk 'NF == 3 { print $3 }' | sort -u
}

make -C "$srctree" O="$O" install DESTDIR="$root" PREFIX=/p >log 2>&1
result $? 'make install'
for r in thr cz blk fmt; do
	globals "$lib/lib$r.a" | grep -v "^${r}_" >log
	! [ -s log ] && globals "$lib/lib$r.a" | grep -q "^${r}_"
	result $? "lib$r.a defines ${r}_ and nothing else"
done

# All members of all, so that a name that is wanted and not renamed with its definition,
# or that is defined twice, is found.
"${LD:-ld}" -r -o all.o --whole-archive "$lib"/lib*.a >log 2>&1 &&
	! "${NM:-nm}" -u all.o | grep -E ' (thr|cz|blk|fmt|qcow2)_' >log
result $? 'they want nothing of ours that they do not define'

# The check can fail: in the tree the rooms inside fmt have names of their own.
globals "$B/libfmt.a" | grep -v '^fmt_' >log
grep -q . log || ! globals "$B/libfmt.a" | grep -q qcow2
result $? 'it is the installed ones that were renamed'
echo "1..$n"
