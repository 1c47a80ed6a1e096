#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Optimised while linking, and with hidden visibility: the program and some tests, fibers
# and vectors among them.
n=0
unset MAKEFLAGS MAKELEVEL

result() {
	n=$((n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		sed 's/^/#   /' log
	fi
}

seq 1 300000 >src.raw
make -C "$srctree" O="$PWD/out" core_defconfig >log 2>&1 &&
	make -C "$srctree" O="$PWD/out" LTO=1 CFLAGS=-fvisibility=hidden -j2 >log 2>&1
result $? 'make LTO=1 CFLAGS=-fvisibility=hidden'
readelf -SW out/v/lto/fmt/probe.o 2>/dev/null | grep -q gnu.lto_
result $? 'the objects are for the linker to compile'
out/v/lto/platter convert -O qcow2 src.raw a.qcow2 >log 2>&1 &&
	out/v/lto/platter check a.qcow2 >log 2>&1 &&
	out/v/lto/platter compare -f raw -F qcow2 src.raw a.qcow2 >log 2>&1
result $? 'the program converts, checks and compares'
make -C "$srctree" O="$PWD/out" LTO=1 CFLAGS=-fvisibility=hidden -j2 t \
	T='thr_fiber thr_lock cz_cipher qcow2_map' >log 2>&1
result $? 'tests pass'
echo "1..$n"
