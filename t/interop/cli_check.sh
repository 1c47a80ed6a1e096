#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/interop/cli_check.sh - check counts, prints and exits as qemu-img's does.

. "${srctree:-.}/t/interop/peer.inc"

be64() # FILE OFFSET
{
	od -An -tx1 -j "$2" -N 8 "$1" | tr -d ' \n'
}

# Sets the 16-bit count of host cluster $2 in image $1 (64 KiB clusters) to \$3\$4.
set_refcount()
{
	table=$((0x$(be64 "$1" 48)))
	block=$((0x$(be64 "$1" $table)))
	printf "\\$3\\$4" | dd of="$1" bs=1 seek=$((block + 2 * $2)) conv=notrunc status=none
}

create -f qcow2 fresh.q 20M
create -f qcow2 zero.q 0
create -f qcow2 used.q 64M
io used.q 'write -P 1 0 1M' 'write -P 1 8M 300k' 'write -z 20M 1M'
"$peer" convert -c -O qcow2 used.q packed.q
create -f qcow2 -b used.q -F qcow2 over.q 100M
io over.q 'write -P 2 3M 1M'
create -f qcow2 snap.q 64M
io snap.q 'write -P 1 0 1M'
"$peer" snapshot -c one snap.q
io snap.q 'write -P 2 512k 1M'
create -f qcow2 -o cluster_size=512 small.q 1M
io small.q 'write -P 1 0 600k'
create -f qcow2 -o refcount_bits=1,cluster_size=4k narrow.q 10M
io narrow.q 'write -P 1 1M 5M'
create -f qcow2 -o compat=0.10 v2.q 10M
io v2.q 'write -P 1 1M 1M' 'discard 1M 128k'
create -f raw plain.raw 1M

for f in fresh.q zero.q used.q packed.q over.q snap.q small.q narrow.q v2.q; do
	same check "$f"
	same check --output=json "$f"
	same check -q "$f"
done
same check plain.raw
same check --output=json plain.raw
same check nothing.q
same check -f raw used.q
same check -U used.q
same check -T writeback used.q
same_words check
same_words check used.q v2.q
same_words check -r nothing used.q
same_words check -T nothing used.q
same_words check --output=nothing used.q

# Leaks: a cluster past the end that is counted, and one that is counted too often.
cp fresh.q leak.q
truncate -s 448k leak.q
set_refcount leak.q 6 0 1
cp used.q much.q
set_refcount much.q 9 0 5
for f in leak.q much.q; do
	same check "$f"
	same check --output=json "$f"
	same check -q "$f"
done
# Corruption: a cluster in use that is not counted.
cp used.q lost.q
set_refcount lost.q 9 0 0
same check lost.q
same check --output=json lost.q

# Repair: the same verdict, and then nothing to find for either.
for f in leak.q much.q lost.q; do
	for how in leaks all; do
		[ "$f$how" = lost.qleaks ] && continue
		for output in human json; do
			cp "$f" a.q
			cp "$f" b.q
			"$peer" check -r $how --output=$output a.q >out.peer 2>err.peer
			echo $? >status.peer
			"$ours" check -r $how --output=$output b.q >out.ours 2>err.ours
			echo $? >status.ours
			sed -i 's/[ab]\.q/X/; /[Ii]mage.end.offset/d' out.peer out.ours
			bad=
			cmp -s out.peer out.ours || bad='standard output differs'
			cmp -s status.peer status.ours || bad='status differs'
			[ -z "$bad" ] || blame "$bad"
			[ -z "$bad" ]
			ok $? "check -r $how --output=$output $f"
		done
		check "the peer finds nothing in $f after -r $how" "$peer" check b.q
		check "the content of $f is what it was" "$peer" compare b.q "$(
			[ $f = leak.q ] && echo fresh.q || echo used.q)"
	done
done
# What leaks cannot fix stays, and is said.
cp lost.q a.q
says 2 'errors were found' check a.q
done_testing
