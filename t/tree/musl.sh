#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# musl_defconfig: one static program without third-party libraries, built by Debian's
# musl-gcc, and what it makes of raw and qcow2 images.
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

# The output, in log, has a line that matches $2.
says() {
	grep -q "$2" log
	result $? "$1"
}

if ! command -v musl-gcc >/dev/null; then
	echo '1..0 # SKIP musl-gcc is not installed (package musl-tools)'
	exit 0
fi
make -C "$srctree" O="$PWD/out" musl_defconfig >log 2>&1 &&
	make -C "$srctree" O="$PWD/out" CC=musl-gcc LDFLAGS=-static -j2 >log 2>&1
result $? 'it builds'
p=$PWD/out/v/musl-gcc/platter
readelf -ld "$p" >log 2>&1
grep -q LOAD log && ! grep -Eq 'INTERP|NEEDED' log
result $? 'the program needs no loader and no library'

# 48 MiB of data and holes, through the engines that are there.
seq 1 3000000 | head -c 20M >src.raw
dd if=src.raw of=src.raw bs=1M seek=40 count=8 conv=notrunc >/dev/null 2>&1
truncate -s 50331648 src.raw
"$p" --version >log 2>&1
says 'it says its version' '^platter'
for step in \
	'create -f qcow2 a.qcow2 64M' \
	'check a.qcow2' \
	'convert -O qcow2 src.raw b.qcow2' \
	'check b.qcow2' \
	'compare -f raw -F qcow2 src.raw b.qcow2' \
	'convert -O raw b.qcow2 c.raw' \
	'create -f qcow2 -b b.qcow2 -F qcow2 top.qcow2' \
	'convert -t none -T none -O qcow2 top.qcow2 d.qcow2' \
	'compare -f raw -F qcow2 src.raw d.qcow2'; do
	"$p" $step >log 2>&1
	result $? "$step"
done
cmp src.raw c.raw >log 2>&1
result $? 'the bytes that came back are those that went in'

# What it was built without is refused by name.
"$p" create -f qcow2 -o compression_type=zstd z.qcow2 1M >log 2>&1 && "$p" info z.qcow2 >log 2>&1
says 'a codec that it does not have is refused by its symbol' 'CONFIG_CZ_ZSTD'
echo "1..$n"
