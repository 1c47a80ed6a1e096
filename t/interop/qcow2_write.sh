#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Images that qemu-img makes, written by us and checked by qemu-img; then written by
# qemu-io and read by us. Prints TAP.

steps=$B/t/fixtures/steps
n=0

command -v qemu-img >/dev/null && command -v qemu-io >/dev/null || {
	echo "1..0 # SKIP qemu-img and qemu-io (package qemu-utils) are not here"
	exit 0
}

# ok NAME COMMAND...: one test; what it prints is shown when it fails.
ok()
{
	name=$1
	shift
	n=$((n + 1))
	if "$@" >log 2>&1; then
		echo "ok $n - $name"
	else
		echo "not ok $n - $name"
		sed 's/^/# /' log
	fi
}

# Exit 3 is "leaks only", which a closed image must not have either.
sound()
{
	qemu-img check -q "$1" && qemu-img compare -q -f qcow2 -F raw "$1" "$2"
}

written()
{
	image=$1
	"$steps" "$image" $2 $3 model.raw $4 && sound "$image" model.raw || return 1
	# On top of it, qemu-io: ours reads what it wrote.
	qemu-io -c 'write -P 77 12k 300k' -c 'write -z 100k 64k' -c 'discard 400k 64k' \
		"$image" >/dev/null && qemu-img convert -O raw "$image" theirs.raw &&
		"$steps" "$image" 1 0 ours.raw && cmp theirs.raw ours.raw &&
		"$steps" "$image" 5 40 model.raw && sound "$image" model.raw
}

# make OPTIONS: with a base of data, shorter or longer, where $base says so.
make()
{
	rm -f base.raw img
	case $base in
	none)
		qemu-img create -q -f qcow2 -o "$1" img 3M
		return
		;;
	short) size=1000k ;;
	long) size=7M ;;
	esac
	qemu-img create -q -f raw base.raw $size
	qemu-io -f raw -c "write -q -P 85 0 $size" base.raw
	qemu-img create -q -f qcow2 -b base.raw -F raw -o "$1" img 3M
}

seed=0
for base in none short long; do
	for o in compat=0.10,cluster_size=64k compat=0.10,cluster_size=512 \
		compat=1.1,cluster_size=64k compat=1.1,cluster_size=4k,refcount_bits=1 \
		compat=1.1,cluster_size=512,refcount_bits=64 \
		compat=1.1,cluster_size=2M,refcount_bits=8 \
		compat=1.1,cluster_size=4k,lazy_refcounts=on; do
		seed=$((seed + 1))
		if [ $base = none ]; then
			make $o
			ok "$o" written img $seed 80
		fi
		make $o
		ok "$o, base $base, resized" written img $seed 120 resize
	done
done

base=none
for p in metadata falloc full; do
	make preallocation=$p
	ok "preallocated: $p" written img 7 80
done

for t in zlib zstd; do
	qemu-img create -q -f raw src.raw 3M
	qemu-io -f raw -c 'write -q -P 3 0 2M' -c 'write -q -P 4 2200k 300k' src.raw
	qemu-img convert -c -O qcow2 -o compression_type=$t,cluster_size=4k src.raw img
	[ $t = zlib ] || "$steps" img 1 0 model.raw 2>/dev/null || {
		n=$((n + 1))
		echo "ok $n - compressed: $t # SKIP this build has no $t"
		continue
	}
	ok "compressed: $t" written img 8 100
done

# As much as both have: qemu-img gives a snapshot the size that the disk has now.
same_start()
{
	a=$(stat -c %s "$1")
	b=$(stat -c %s "$2")
	cmp -n $((a < b ? a : b)) "$1" "$2"
}

# A snapshot holds what it held.
snapshots()
{
	qemu-io -c 'write -q -P 9 0 2M' -c 'write -q -z 64k 128k' img &&
		qemu-img snapshot -c one img &&
		qemu-img convert -l snapshot.name=one -O raw img one.raw &&
		"$steps" img 11 60 model.raw && sound img model.raw &&
		qemu-img snapshot -c two img &&
		"$steps" img 12 60 model.raw $1 && sound img model.raw &&
		qemu-img convert -l snapshot.name=one -O raw img again.raw &&
		same_start one.raw again.raw && qemu-img snapshot -d one img &&
		"$steps" img 13 60 model.raw && sound img model.raw &&
		qemu-img snapshot -d two img && sound img model.raw
}

for o in cluster_size=64k cluster_size=4k cluster_size=512,refcount_bits=16; do
	make $o
	ok "snapshots: $o" snapshots
	make $o
	ok "snapshots: $o, resized" snapshots resize
done
make compat=0.10,cluster_size=4k
ok "snapshots: version 2" snapshots

# Bitmaps: not maintained, so no longer said to be good.
bitmaps()
{
	qemu-img bitmap --add img b0 && "$steps" img 3 10 model.raw &&
		qemu-img compare -q -F raw img model.raw &&
		! qemu-img info --output=json img | grep -q '"name": "b0"'
}

make cluster_size=64k
ok "bitmaps are marked as not good" bitmaps

echo "1..$n"
