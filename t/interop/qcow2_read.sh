#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/interop/qcow2_read.sh - images that qemu-img makes, of many geometries, with
# backing files shorter and longer, compressed by zlib and zstd: what platter reads
# from them is what qemu-img reads.

. "${srctree:-.}/t/interop/peer.inc"

# reads IMAGE NAME: both convert it to the same bytes
reads()
{
	rm -f peer.raw ours.raw
	"$peer" convert -O raw "$1" peer.raw && "$PLATTER" convert -O raw "$1" ours.raw &&
		cmp -s peer.raw ours.raw
	ok $? "$2"
}

# Data, zeroes, text that compresses, noise: 3 MiB and a bit.
{
	head -c 300000 /dev/urandom
	head -c 700000 /dev/zero
	seq 1 200000 | head -c 1000000
	head -c 65536 /dev/urandom
	head -c 512000 /dev/zero
	seq 5 40000 | head -c 100000
	head -c 411648 /dev/urandom
} >src.raw
truncate -s 3145216 src.raw

for version in 0.10 1.1; do
	for cluster in 512 4k 64k 2M; do
		for bits in 1 16 64; do
			[ $version$bits = 0.101 ] || [ $version$bits = 0.1064 ] && continue
			o=compat=$version,cluster_size=$cluster,refcount_bits=$bits
			[ $version = 0.10 ] && o=compat=0.10,cluster_size=$cluster
			"$peer" convert -f raw -O qcow2 -o $o src.raw plain.q
			reads plain.q "$o"
			"$peer" convert -c -f raw -O qcow2 -o $o src.raw packed.q
			reads packed.q "$o compressed"
			[ $version = 1.1 ] || continue
			"$peer" convert -c -f raw -O qcow2 -o $o,compression_type=zstd \
				src.raw zstd.q || continue
			if "$PLATTER" info zstd.q >/dev/null 2>&1 &&
				! "$PLATTER" map zstd.q 2>&1 | grep -q CONFIG_CZ_ZSTD; then
				reads zstd.q "$o compressed by zstd"
			fi
		done
	done
done

# A chain: raw, compressed, overlays of other sizes and cluster sizes, with holes
# punched and zeroes written in each.
"$peer" convert -c -f raw -O qcow2 src.raw base.q
create -f qcow2 -o cluster_size=4k -b base.q -F qcow2 short.q 1M
io short.q 'write -P 1 5000 70000' 'write -z 300k 64k' 'discard 100k 64k'
create -f qcow2 -o cluster_size=2M -b short.q -F qcow2 long.q 9M
io long.q 'write -P 2 2M 100k' 'write -z 8M 10k'
create -f qcow2 -o compat=0.10,cluster_size=512 -b long.q -F qcow2 top.q 4M
io top.q 'write -P 3 1234 7' 'write -P 4 1M 600k'
create -f qcow2 -b src.raw -F raw over.q 5000000
io over.q 'write -P 5 3M 1M'
for f in base.q short.q long.q top.q over.q; do
	reads $f "chain: $f"
done
# A length that is no multiple of a sector, in a backing file.
head -c 1234567 src.raw >odd.raw
create -f qcow2 -b odd.raw -F raw odd.q 2M
io odd.q 'write -P 6 1234000 300'
reads odd.q 'a backing file of an odd length'

# Snapshots and preallocated images.
cp base.q snap.q
"$peer" snapshot -c one snap.q
io snap.q 'write -P 7 0 1M'
reads snap.q 'after a snapshot'
for p in metadata falloc full; do
	create -f qcow2 -o preallocation=$p,cluster_size=4k pre.q 3M
	io pre.q 'write -P 8 1M 5k' 'write -z 2M 64k'
	reads pre.q "preallocation=$p"
done
done_testing
