#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Extended L2 entries: images that either side made, written by both in turn and
# read by both; partial writes copy no more than their subclusters; what is said
# about them is the same. Prints TAP.

. "$srctree/t/interop/peer.inc"
steps=$B/t/fixtures/steps

sound() { "$peer" check -q "$1" && "$peer" compare -q -f qcow2 -F raw "$1" "$2"; }

# Ours writes, theirs writes on top, ours goes on; all agree each time.
written() # SEED COUNT [resize]
{
	"$steps" img $1 $2 model.raw $3 && sound img model.raw || return 1
	qemu-io -c 'write -P 77 12k 3k' -c 'write -P 78 301k 70k' -c 'write -z 100k 6k' \
		-c 'discard 400k 64k' -c 'write -z -u 33k 2k' img >/dev/null # past the end of an image that was cut: refused
	"$peer" convert -O raw img theirs.raw && "$ours" convert -O raw img ours.raw &&
		cmp theirs.raw ours.raw && "$ours" check -q img &&
		"$steps" img $(($1 + 100)) 40 model.raw && sound img model.raw &&
		"$ours" check -q img
}

base()
{
	rm -f base.raw img
	[ $1 = none ] && return
	"$peer" create -q -f raw base.raw $1
	qemu-io -f raw -c "write -q -P 85 0 $1" -c 'write -q -z 64k 40k' base.raw
}

seed=0
for who in peer ours; do
	eval "img=\$$who"
	for cluster in 16k 64k 2M; do
		for b in none 1000k 7M; do
			seed=$((seed + 1))
			o=extended_l2=on,cluster_size=$cluster
			back=
			[ $b = none ] || back='-b base.raw -F raw'
			base $b
			"$img" create -q -f qcow2 -o $o $back img 3M
			check "$o by $who over $b" written $seed 60
			base $b
			"$img" create -q -f qcow2 -o $o $back img 3M
			check "$o by $who over $b, resized" written $seed 60 resize
		done
	done
done

for p in metadata falloc full; do
	rm -f img
	"$ours" create -q -f qcow2 -o extended_l2=on,preallocation=$p img 3M
	check "preallocated: $p" written 7 60
done

# Compressed clusters, and a part of one written and zeroed.
rm -f img
"$peer" create -q -f raw src.raw 3M
qemu-io -f raw -c 'write -q -P 3 0 2M' -c 'write -q -P 4 2200k 300k' src.raw
"$peer" convert -c -O qcow2 -o extended_l2=on src.raw img
check "compressed" written 8 80

# Snapshots share subclusters.
snapshots()
{
	qemu-io -c 'write -q -P 9 0 1M' -c 'write -q -z 64k 10k' -c 'write -q -P 8 2M 3k' img &&
		"$peer" snapshot -c one img &&
		"$peer" convert -l snapshot.name=one -O raw img one.raw &&
		"$steps" img 11 60 model.raw && sound img model.raw &&
		"$peer" convert -l snapshot.name=one -O raw img again.raw &&
		cmp one.raw again.raw && "$ours" check -q img &&
		"$peer" snapshot -d one img && sound img model.raw
}
for cluster in 16k 64k; do
	base 1000k
	create -f qcow2 -o extended_l2=on,cluster_size=$cluster -b base.raw -F raw img 3M
	check "snapshots: $cluster" snapshots
done

# A write of one sector into nothing fills its subcluster, not its cluster: the
# backing file shows through beside it after it has changed.
base 1000k
"$ours" create -q -f qcow2 -o extended_l2=on,cluster_size=64k -b base.raw -F raw img 1000k
"$ours" io -c 'write -P 1 256k 512' img >/dev/null
"$peer" map --output=json img >map.peer
check "one subcluster of 2 KiB" grep -q '"start": 262144, "length": 2048, "depth": 0' map.peer
same map img
same map --output=json img
same check img
same info img
"$ours" io -c 'write -P 2 100k 10k' -c 'write -z 20k 5k' -c 'discard 256k 1k' img >/dev/null
same map img
same compare -f qcow2 -F raw img base.raw
for o in extended_l2=on extended_l2=on,cluster_size=16k; do
	same measure -O qcow2 --size 10G -o $o
done
says 1 'only supported with cluster sizes of at least 16384 bytes' \
	create -f qcow2 -o extended_l2=on,cluster_size=8k x 1M
says 1 "'extended_l2' needs compatibility level 1.1" \
	create -f qcow2 -o extended_l2=on,compat=0.10 x 1M

done_testing
