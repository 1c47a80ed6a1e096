#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/interop/matrix.sh - known bugs, against the peer; t/conf/matrix.c has the others.
# Compressed sizes at every cluster size: data that packs to nearly nothing, to some
# sectors, and not at all; runs that end in and next to a host cluster; a disk that ends
# inside its last cluster. Extended L2 with writes of 2 KiB, then copies as of a rebase.
# Reference counts of less than a byte.

. "${srctree:-.}/t/interop/peer.inc"

# Pieces of 3000 bytes up to 2 MiB, of which every third is noise.
make_source() # FILE
{
	: >"$1"
	for n in 3000 70000 513 200000 4096 2097152 1 65536 32769 900000; do
		head -c $n "$PLATTER" | tr '\000-\377' '\001-\377\001' >>"$1"
		head -c $((n / 3 + 1)) noise >>"$1"
		head -c $((n / 2)) /dev/zero | tr '\000' 'z' >>"$1"
		head -c $((n / 5)) /dev/zero >>"$1"
	done
	truncate -s %512 "$1"
}

seq 1 500000 | gzip -9 -n >noise
make_source a.raw

packed() # OPTIONS
{
	"$peer" convert -f raw -c -O qcow2 -o "$1" a.raw packed.q || exit 1
	check "$1: content" "$ours" convert -f qcow2 -O raw packed.q back.raw
	check '... is the same bytes' cmp a.raw back.raw
	same check packed.q
	check '... compare' "$ours" compare -f raw -F qcow2 a.raw packed.q
	# Cut behind the last sector of data: the count of the last entry may pass the end.
	cp packed.q cut.q
	truncate -s -"$(trailing_zeroes packed.q)" cut.q
	check '... without the padding of the last cluster' "$ours" convert -O raw cut.q back.raw
	check '... is the same bytes' cmp a.raw back.raw
	rm -f packed.q cut.q back.raw
}

# How many zeroes a file ends with, at most 511: padding of the last sector.
trailing_zeroes() # FILE
{
	tail -c 511 "$1" | od -An -v -tx1 -w1 | awk '{ n = $1 == "00" ? n + 1 : 0 } END { print n + 0 }'
}

for cluster in 512 1k 2k 4k 8k 16k 32k 64k 128k 256k 512k 1M 2M; do
	packed cluster_size=$cluster,compression_type=zlib
	packed cluster_size=$cluster,compression_type=zstd
done
packed cluster_size=512,compat=0.10
packed cluster_size=64k,compat=0.10
packed cluster_size=2M,compat=0.10
for cluster in 16k 64k 2M; do
	packed cluster_size=$cluster,extended_l2=on
done

# Data, zeroes that keep their place, zeroes, and holes, of 2 KiB each, in turn.
seq 0 8 440 | while read -r k; do
	echo "write -q -P $((k / 8 + 1)) ${k}k 2k"
	echo "write -q -P 99 $((k + 2))k 2k"
	echo "write -q -z $((k + 2))k 2k"
	echo "write -q -z -u $((k + 4))k 2k"
done >pieces

# All agree on the content, on where things are, and that it is sound.
agreed() # IMAGE
{
	same check "$1"
	same map --output=json "$1"
	check "$1: content" "$ours" compare -q -f qcow2 -F raw "$1" want.raw
	check '... for the peer' "$peer" compare -q -f qcow2 -F raw "$1" want.raw
}

# Data of the disk below under all of it, another below that differs here and there.
head -c 500000 a.raw >base.raw
truncate -s 1M base.raw
cp base.raw other.raw
for k in 6 14 130 270 302 438 700; do
	head -c 2048 noise | dd of=other.raw bs=2k seek=$((k / 2)) conv=notrunc status=none
done

for o in extended_l2=on,cluster_size=64k extended_l2=on,cluster_size=16k; do
	rm -f ./*.q
	"$peer" create -q -f qcow2 -b base.raw -F raw -o $o theirs.q 1M
	qemu-io theirs.q <pieces >/dev/null
	"$peer" convert -O raw theirs.q want.raw
	"$ours" create -q -f qcow2 -b base.raw -F raw -o $o ours.q 1M
	check "$o: 2 KiB writes" "$PLATTER" io -f qcow2 ours.q <pieces
	agreed ours.q
	"$peer" map --output=json theirs.q | sed 's/, "offset.*}/}/' >map.peer
	"$peer" map --output=json ours.q | sed 's/, "offset.*}/}/' >map.ours
	check '... allocation, zeroes and holes are the same' cmp map.peer map.ours
	# Onto another disk, by the peer; and what ours has written copied over the same.
	cp ours.q rebased.q
	check '... a rebase by the peer' "$peer" rebase -F raw -b other.raw rebased.q
	agreed rebased.q
	cp base.raw below.raw
	"$ours" convert -q -O qcow2 -o $o -B below.raw -F raw ours.q copied.q
	agreed copied.q
	# And down.
	"$peer" rebase -u -F raw -b below.raw ours.q
	check '... commit' "$ours" commit -q ours.q
	check '... is the same bytes' cmp below.raw want.raw
	"$peer" check -q ours.q
	ok $? '... and leaves a sound image'
done

# Counts of 1, 2 and 4 bits: written by each in turn.
for bits in 1 2 4; do
	rm -f ./*.q
	"$ours" create -q -f qcow2 -o cluster_size=512,refcount_bits=$bits bits.q 1M
	"$PLATTER" io -f qcow2 bits.q <pieces >/dev/null
	qemu-io -c 'discard 8k 99k' -c 'write -q -P 7 33k 200k' bits.q >/dev/null
	"$PLATTER" io -c 'discard 60k 9k' -c 'write -q -P 8 300k 70k' bits.q >/dev/null
	same check bits.q
	"$peer" convert -O raw bits.q want.raw
	check "refcount_bits=$bits: content" "$ours" compare -q -f qcow2 -F raw bits.q want.raw
done

done_testing
