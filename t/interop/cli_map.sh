#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/interop/cli_map.sh - map lists what qemu-img lists.

. "${srctree:-.}/t/interop/peer.inc"

create -f qcow2 base.q 64M
io base.q 'write -P 1 0 1M' 'write -z 4M 1M' 'write -P 2 8M 64k' 'write -zu 16M 1M'
create -f qcow2 -b base.q -F qcow2 over.q 128M
io over.q 'write -P 3 512k 1M' 'write -z 20M 1M' 'write -P 3 100M 1M' 'discard 102M 1M'
create -f qcow2 -b over.q -F qcow2 short.q 40M
create -f qcow2 -b short.q -F qcow2 top.q 150M
io top.q 'write -P 4 1M 64k'
"$peer" convert -c -O qcow2 base.q packed.q
create -f qcow2 -o preallocation=metadata meta.q 8M
create -f qcow2 -o preallocation=full full.q 8M
io meta.q 'write -P 1 1M 64k' 'write -z 2M 64k'
create -f qcow2 -o cluster_size=512 small.q 1M
io small.q 'write -P 1 1k 512' 'write -P 1 100k 3k' 'write -P 1 512k 200k'
create -f qcow2 -o compat=0.10 v2.q 64M
io v2.q 'write -P 1 3M 1M'
create -f qcow2 huge.q 8T
io huge.q 'write -P 1 4T 64k'
truncate -s 10M holes.raw
dd if=/dev/zero of=holes.raw bs=64k seek=16 count=3 conv=notrunc status=none
printf 'x' >short.raw
: >empty.raw
dd if=/dev/zero bs=1000 count=100 status=none | tr '\0' x >odd.raw
create -f qcow2 -b odd.raw -F raw onraw.q 1M

for f in *.q *.raw; do
	same map --output=json "$f"
	[ "$f" = packed.q ] || same map "$f"
done
# It prints its header after the error; we before.
says 1 'compressed' map packed.q
for f in over.q holes.raw; do
	same map --output=json --start-offset=512k --max-length=8M "$f"
	same map --start-offset=512k --max-length=8M "$f"
	same map --output=json --start-offset=1000 --max-length=100 "$f"
	same map --output=json --start-offset=200M "$f"
	same map --start-offset=200M "$f"
	same map -s 1M -l 64k "$f"
done
same map -f raw base.q
same map -U base.q
same map nothing.q
same_words map
same_words map --output=x base.q
same map --start-offset=x base.q
same map --max-length=x base.q
same map --max-length=-1 base.q
done_testing
