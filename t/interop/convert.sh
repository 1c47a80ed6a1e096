#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/interop/convert.sh - both ways, over a table of geometries: what we make, qemu-img
# finds sound and holding the same; what qemu-img makes, we read byte for byte.

. "${srctree:-.}/t/interop/peer.inc"

# Data of many lengths at odd places, zeroes that are written, holes, data at both ends.
make_source() # FILE SIZE
{
	truncate -s "$2" "$1"
	i=0
	while [ $((i * 397000 + 20000)) -lt "$2" ]; do
		n=$((4 + i * 37 % 90))
		dd if="$PLATTER" of="$1" bs=1k count=$n skip=$((i * 13 % 400)) \
			seek=$((i * 397000 / 1024)) conv=notrunc status=none
		i=$((i + 1))
	done
	dd if=/dev/zero of="$1" bs=64k count=5 seek=7 conv=notrunc status=none
	tail -c 3000 "$PLATTER" | dd of="$1" bs=1 seek=$(($2 - 3000)) conv=notrunc status=none
}

make_source a.raw 12582912
make_source b.raw 9999872
make_source base.raw 7340032

both_ways() # SOURCE OPTIONS
{
	check "raw to qcow2, $1, $2" "$ours" convert -f raw -O qcow2 -o "$2" "$1" ours.q
	check '... is sound' "$peer" check ours.q
	check '... holds the same' "$peer" compare -f raw -F qcow2 "$1" ours.q
	check '... back to raw by us' "$ours" convert -f qcow2 -O raw ours.q back.raw
	check '... is the same bytes' cmp "$1" back.raw
	"$peer" convert -f raw -O qcow2 -o "$2" "$1" peer.q || exit 1
	check '... and from qemu-img to raw' "$ours" convert -f qcow2 -O raw peer.q back.raw
	check '... is the same bytes' cmp "$1" back.raw
	check '... and to qcow2' "$ours" convert -f qcow2 -O qcow2 peer.q again.q
	check '... is the same content' "$peer" compare "$1" again.q
	rm -f ours.q peer.q again.q back.raw
}

for cluster in 512 4k 64k 2M; do
	both_ways a.raw cluster_size=$cluster
	both_ways b.raw cluster_size=$cluster
done
for bits in 1 8 32 64; do
	both_ways b.raw refcount_bits=$bits,cluster_size=4k
done
both_ways a.raw compat=0.10
both_ways b.raw compat=0.10,cluster_size=1k
both_ways a.raw lazy_refcounts=on
both_ways a.raw preallocation=metadata
both_ways b.raw preallocation=falloc,cluster_size=8k
both_ways b.raw preallocation=full

# Compressed and backed images of the peer's.
for type in zlib zstd; do
	"$peer" convert -c -O qcow2 -o compression_type=$type a.raw packed.q || exit 1
	"$ours" map packed.q 2>&1 | grep -q 'it needs CONFIG_CZ' && continue
	check "compressed with $type" "$ours" convert packed.q back.raw
	check '... is the same bytes' cmp a.raw back.raw
done
for compat in 0.10 1.1; do
	for size in 5M 12M; do
		create -f qcow2 -o compat=$compat,cluster_size=4k -b base.raw -F raw over.q $size
		io over.q 'write -P 1 100k 5k' 'write -P 2 3M 300k' 'write -z 1M 200k'
		"$peer" convert over.q want.raw || exit 1
		check "backed, $compat, $size" "$ours" convert over.q back.raw
		check '... is the same bytes' cmp want.raw back.raw
		check '... backed again' "$ours" convert -O qcow2 -B base.raw -F raw over.q again.q
		check '... is the same content' "$peer" compare again.q want.raw
	done
done
done_testing
