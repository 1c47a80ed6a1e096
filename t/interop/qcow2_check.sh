#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/interop/qcow2_check.sh - damaged images of many geometries: platter finds as
# much as qemu-img does, and what platter repairs is sound for qemu-img.

. "${srctree:-.}/t/interop/peer.inc"

# be64 FILE OFFSET: the number there, without the flags of a table entry
be64()
{
	echo $((0x$(od -An -tx1 -j $(($2 + 1)) -N 7 "$1" | tr -d ' \n')))
}

# poke FILE OFFSET HEX...: writes bytes
poke()
{
	file=$1
	at=$2
	shift 2
	for byte; do
		# shellcheck disable=SC2059 # the byte is the format
		printf "\\$(printf %03o "0x$byte")"
	done | dd of="$file" bs=1 seek="$at" conv=notrunc status=none
}

# poke64 FILE OFFSET VALUE [FLAGS]: a table entry; FLAGS is its first byte in hex
poke64()
{
	v=$(printf '%014x' "$3")
	poke "$1" "$2" "${4:-00}" $(echo "$v" | sed 's/../& /g')
}

# layout IMAGE: where its tables lie
layout()
{
	cluster=$((1 << $(od -An -tu1 -j 23 -N 1 "$1")))
	l1=$(be64 "$1" 40)
	reft=$(be64 "$1" 48)
	block=$(be64 "$1" "$reft")
	l2=$(be64 "$1" "$l1")
	end=$(stat -c %s "$1")
	past=$(((end + 2 * cluster - 1) / cluster * cluster))
}

# damage KIND: spoils bad.q
damage()
{
	case $1 in
	count-0) poke bad.q $((block + 10)) 00 00 ;;
	count-2) poke bad.q $((block + 10)) 00 02 ;;
	count-many) poke bad.q $((block + 12)) ff ff ;;
	header-uncounted) poke bad.q "$block" 00 00 00 00 ;;
	l1-not-copied) poke64 bad.q "$l1" "$l2" ;;
	l1-gone) poke64 bad.q "$l1" 0 ;;
	l1-past-end) poke64 bad.q "$l1" "$past" 80 ;;
	l1-reserved) poke64 bad.q "$l1" $((l2 | 2)) 80 ;;
	l2-not-copied) poke64 bad.q "$l2" "$(be64 bad.q "$l2")" ;;
	l2-unaligned) poke64 bad.q "$l2" $(($(be64 bad.q "$l2") + 512)) 80 ;;
	l2-past-end) poke64 bad.q "$l2" "$past" 80 ;;
	l2-far-away) poke64 bad.q "$l2" $((1 << 50)) 80 ;;
	l2-on-l1) poke64 bad.q "$l2" "$l1" 80 ;;
	l2-twice) poke64 bad.q $((l2 + 8)) "$(be64 bad.q "$l2")" 80 ;;
	l2-reserved) poke64 bad.q "$l2" $(($(be64 bad.q "$l2") | 4)) 80 ;;
	l2-compressed) poke64 bad.q "$l2" "$(be64 bad.q "$l2")" 40 ;;
	l2-compressed-copied) poke64 bad.q "$l2" "$(be64 bad.q "$l2")" c0 ;;
	block-gone) poke64 bad.q "$reft" 0 ;;
	block-past-end) poke64 bad.q "$reft" "$past" ;;
	block-reserved) poke64 bad.q "$reft" $((block + 8)) ;;
	block-twice) poke64 bad.q $((reft + 8)) "$block" ;;
	short) truncate -s $((end - cluster)) bad.q ;;
	longer) truncate -s $((end + 1000)) bad.q ;;
	esac
}

# What a repair cannot make good.
for_ever='l1-past-end l1-reserved l2-past-end l2-far-away l2-unaligned l2-reserved
	l2-compressed-copied short'

create -f qcow2 -o cluster_size=4k small.q 8M
io small.q 'write -P 1 0 64k' 'write -P 2 1M 40k' 'write -z 3M 64k'
create -f qcow2 medium.q 300M
io medium.q 'write -P 1 0 1M' 'write -P 2 100M 300k'
create -f qcow2 -o compat=0.10,cluster_size=512 old.q 4M
io old.q 'write -P 1 0 100k' 'write -P 2 1M 100k'
cp small.q snap.q
"$peer" snapshot -c one snap.q
io snap.q 'write -P 3 8k 100k'
"$peer" snapshot -c two snap.q
io snap.q 'write -P 4 16k 100k'
"$peer" convert -c -O qcow2 medium.q packed.q
cp small.q bitmap.q
"$peer" bitmap --add bitmap.q zero && "$peer" bitmap --add -g 512 bitmap.q one
io bitmap.q 'write -P 5 2M 64k'

for image in small medium old snap packed bitmap; do
	same check --output=json $image.q
	for kind in count-0 count-2 count-many header-uncounted l1-not-copied l1-gone \
		l1-past-end l1-reserved l2-not-copied l2-unaligned l2-past-end l2-far-away \
		l2-on-l1 l2-twice l2-reserved l2-compressed l2-compressed-copied block-gone \
		block-past-end block-reserved block-twice short longer; do
		cp $image.q bad.q
		layout bad.q
		damage $kind
		same check --output=json bad.q
		"$PLATTER" convert -O raw bad.q before.raw 2>/dev/null || rm -f before.raw
		"$PLATTER" check -q -r all bad.q 2>/dev/null
		status=$?
		"$peer" check -q bad.q 2>/dev/null
		left=$?
		case " $(echo $for_ever) " in
		*" $kind "*) ;;
		*) [ $status$left = 00 ] ;;
		esac
		ok $? "$image, $kind: repaired, also for qemu-img"
		[ -f before.raw ] || continue
		"$PLATTER" convert -O raw bad.q after.raw && cmp -s before.raw after.raw
		ok $? "$image, $kind: no byte of the guest has changed"
	done
done

# One host cluster under two guest clusters, counted twice: a write to one leaves the other
# alone, and what a repair makes of it stays so.
for kind in '' -copied; do
	"$B/t/fixtures/assemble" "$srctree/t/fixtures/qcow2/l2-mapped-twice$kind.recipe" twice.q
	same check --output=json twice.q
	[ -z "$kind" ] || "$PLATTER" check -q -r all twice.q 2>/dev/null
	"$PLATTER" convert -O raw twice.q want.raw
	"$PLATTER" io -f qcow2 -c 'write -q -P 9 68k 4k' twice.q
	qemu-io -f raw -c 'write -q -P 9 68k 4k' want.raw
	"$PLATTER" convert -O raw twice.q got.raw && cmp got.raw want.raw
	ok $? "mapped twice$kind: a write changes one"
	"$PLATTER" check -q -r all twice.q 2>/dev/null
	"$PLATTER" io -f qcow2 -c 'write -q -P 8 140k 4k' twice.q
	qemu-io -f raw -c 'write -q -P 8 140k 4k' want.raw
	"$PLATTER" convert -O raw twice.q got.raw && cmp got.raw want.raw && "$peer" check -q twice.q
	ok $? "mapped twice$kind: so does one to the other, after a repair"
done
done_testing
