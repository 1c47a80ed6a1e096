#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/interop/cli_info.sh - info says what qemu-img says, to the byte.

. "${srctree:-.}/t/interop/peer.inc"

create -f qcow2 default.q 1G
create -f qcow2 -o compat=0.10 v2.q 100M
create -f qcow2 -o cluster_size=512,refcount_bits=1,lazy_refcounts=on odd.q 1000
create -f qcow2 -o cluster_size=2M,refcount_bits=64,compression_type=zstd big.q 8T
create -f raw plain.raw 10M
printf 'abc' >short.raw
: >empty.raw
IO_FORMAT=raw io plain.raw 'write -P 1 1M 1M'
create -f qcow2 -b default.q -F qcow2 over.q
create -f qcow2 -b over.q -F qcow2 top.q 2G
create -u -f qcow2 -b missing.q -F qcow2 orphan.q 1G
mkdir sub
create -f qcow2 -b ../plain.raw -F raw sub/rel.q
create -u -f qcow2 -b "$work/plain.raw" -F raw sub/abs.q 10M
create -f qcow2 snap.q 64M
io snap.q 'write -P 1 0 1M'
"$peer" snapshot -c 'first "one"' snap.q
"$peer" snapshot -c a-name-that-is-longer-than-its-column-in-the-table snap.q
create -f qcow2 bits.q 64M
"$peer" bitmap --add bits.q b0
"$peer" bitmap --add -g 2M --disable bits.q 'b 1'
create -f qcow2 dirty.q 64M
printf '\1' | dd of=dirty.q bs=1 seek=79 conv=notrunc status=none
create -f qcow2 --object secret,id=s,data=abc -o encrypt.format=aes,encrypt.key-secret=s aes.q 1M
create -f qcow2 --object secret,id=s,data=abc -o encrypt.format=aes,encrypt.key-secret=s \
	-u -b missing.q -F qcow2 aes2.q 1M
name=$(printf 'n\303\251 \360\237\222\276 "\\\001\377.raw')
printf x >"$name"

for f in *.q *.raw sub/rel.q sub/abs.q; do
	same info "$f"
	same info --output=json "$f"
done
for f in default.q over.q top.q sub/rel.q sub/abs.q; do
	same info --backing-chain "$f"
	same info --output=json --backing-chain "$f"
done
same info -f qcow2 default.q
same info -f raw default.q
same info -U default.q
same info --force-share --output=human default.q
same info default.q -f qcow2
same info --backing-chain orphan.q
same_words info --output=xml default.q
same_words info -f qcow2 plain.raw
same info nothing.q
same info .
same info -f nothing default.q
same_words info
same_words info default.q v2.q
same_words info --nothing default.q
same_words info -f
same_words info --output
for n in 511 512 1000 1024 523776 524288 1022976 1023488 1024000 1047552 1048576 1072693248 \
	1073741824 12345678901 1099511627776; do
	truncate -s $n size.raw
	same info size.raw
done
done_testing
