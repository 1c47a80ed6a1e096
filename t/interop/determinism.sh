#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/interop/determinism.sh - the same input and options give the same bytes, with one
# request at a time or sixteen, in order or not, on one thread or many.

. "${srctree:-.}/t/interop/peer.inc"

truncate -s 24M src.raw
i=0
while [ $i -lt 60 ]; do
	dd if="$PLATTER" of=src.raw bs=1k count=$((1 + i * 41 % 150)) skip=$((i * 7 % 400)) \
		seek=$((i * 409)) conv=notrunc status=none
	i=$((i + 1))
done
dd if=/dev/zero of=src.raw bs=64k count=20 seek=33 conv=notrunc status=none
create -f qcow2 -o cluster_size=4k chain0.q 24M
io chain0.q 'write -P 1 0 3M' 'write -P 2 10M 2M' 'write -z 11M 64k'
create -f qcow2 -b chain0.q -F qcow2 chain1.q 30M
io chain1.q 'write -P 3 1M 100k' 'write -P 4 10500k 300k' 'write -P 5 20M 4k' 'write -z 2M 1M'
create -f qcow2 -o cluster_size=512 -b chain1.q -F qcow2 chain2.q
io chain2.q 'write -P 6 1536 512' 'write -P 7 3M 33k' 'write -P 8 29M 1M'
"$peer" convert -c -O qcow2 src.raw packed.q || exit 1
create -f raw old.raw 30M
IO_FORMAT=raw io old.raw 'write -P 9 0 30M'
create -f qcow2 old.q 30M
io old.q 'write -P 9 5M 20M'

# always NAME TARGET ARGS...: TARGET is a file to write onto, or "new"
always()
{
	name=$1
	onto=$2
	shift 2
	sum=
	bad=
	for how in '-m 1 --threads 1' '-m 1 -W' '-m 16' '-m 16 -W' '-m 8 --threads 5' \
		'-m 16 -W --threads 16' '-m 3 --threads 2'; do
		rm -f T
		[ "$onto" = new ] || cp "$onto" T
		# shellcheck disable=SC2086
		"$ours" convert $how "$@" T >out 2>&1 || bad="$how: $(cat out)"
		now=$(cksum T)
		[ -z "$sum" ] && sum=$now
		[ "$sum" = "$now" ] || bad="$bad $how: other bytes"
	done
	case $* in
	*'-O qcow2'*) "$peer" check T >out 2>&1 || bad="$bad $(cat out)" ;;
	esac
	[ -z "$bad" ] || echo "# $bad"
	[ -z "$bad" ]
	ok $? "$name"
}

for c in 512 4k 64k 2M; do
	always "raw to qcow2 of $c clusters" new -O qcow2 -o cluster_size=$c src.raw
done
always 'all written' new -S 0 -O qcow2 src.raw
always 'sparse at 512' new -S 512 -O qcow2 -o cluster_size=512 src.raw
always 'sparse at 24k' new -S 24k -O qcow2 -o cluster_size=4k src.raw
always 'narrow counts' new -O qcow2 -o refcount_bits=1,cluster_size=512 src.raw
always 'version 2' new -O qcow2 -o compat=0.10,cluster_size=4k src.raw
always 'metadata allocated before' new -O qcow2 -o preallocation=metadata src.raw
always 'from compressed' new -O qcow2 packed.q
always 'from a chain' new -O qcow2 chain2.q
always 'from several' new -O qcow2 src.raw chain2.q packed.q
always 'over a backing file' new -O qcow2 -B chain1.q -F qcow2 chain2.q
always 'to raw' new -O raw chain2.q
always 'onto raw' old.raw -n -O raw src.raw
always 'onto qcow2' old.q -n -O qcow2 src.raw
always 'a chain onto qcow2' old.q -n -O qcow2 chain2.q

# Who leaves a codec out says so when an image is made.
codecs=zlib
"$PLATTER" create -q -f qcow2 -o compression_type=zstd probe.q 1M 2>/dev/null && codecs='zlib zstd'
for t in $codecs; do
	for c in 512 4k 64k 2M; do
		always "compressed with $t, clusters of $c" new -c -O qcow2 \
			-o compression_type=$t,cluster_size=$c src.raw
	done
	always "compressed with $t, narrow counts" new -c -O qcow2 \
		-o compression_type=$t,refcount_bits=2,cluster_size=4k src.raw
	always "compressed with $t from a chain" new -c -O qcow2 -o compression_type=$t \
		chain2.q
	always "compressed with $t over a backing file" new -c -O qcow2 \
		-o compression_type=$t -B chain1.q -F qcow2 chain2.q
	always "compressed with $t, recompressed" new -c -O qcow2 \
		-o compression_type=$t,compression_level=5 packed.q
done
always 'compressed, version 2' new -c -O qcow2 -o compat=0.10 src.raw
always 'compressed onto qcow2' old.q -n -c -O qcow2 src.raw

# What the map of the source says does not matter, only what is in it.
cp --sparse=never src.raw full.raw
"$ours" convert -O qcow2 src.raw a.q && "$ours" convert -O qcow2 full.raw b.q
cmp a.q b.q
ok $? 'holes and zeroes give the same image'
"$ours" convert -c -O qcow2 src.raw a.q && "$ours" convert -c -O qcow2 full.raw b.q
cmp a.q b.q
ok $? 'holes and zeroes give the same compressed image'
done_testing
