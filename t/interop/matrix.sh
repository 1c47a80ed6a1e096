#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/interop/matrix.sh - known bugs of readers of compressed images: sizes at every
# cluster size. Data that packs to nearly nothing, to some sectors, and not at all; runs
# that end in and next to a host cluster; a disk that ends inside its last cluster.

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

done_testing
