#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/interop/measure.sh - measure gives qemu-img's numbers, to the byte and in its words,
# over sizes, geometries and sources; and what create and convert make fits into them.
srctree=${srctree:-$(cd "$(dirname "$0")/../.." && pwd)}
. "$srctree/t/interop/peer.inc"

# table NAME: one test for all lines "ARGS" of standard input
table()
{
	bad=
	n=0
	while read -r args; do
		n=$((n + 1))
		# shellcheck disable=SC2086 # several words
		both measure --output=json $args
		cmp -s out.peer out.ours && cmp -s status.peer status.ours || {
			bad=y
			blame "measure $args"
		}
	done
	[ -z "$bad" ] && [ "$n" -gt 0 ]
	ok $? "$1 ($n lines)"
}

for cs in 512 4k 64k 2M; do
	for rb in 1 2 8 16 64; do
		for size in 0 1 511 512 513 65536 1000000 10M 1073741312 1G 5G 1T 64T 1P 8P 128P; do
			echo "-O qcow2 --size $size -o cluster_size=$cs,refcount_bits=$rb"
		done
	done
done >lines
table 'qcow2 by sizes, cluster sizes and refcount widths' <lines
# (Beyond that qemu-img overflows.)
for size in 0 1 511 512 513 10M 9223372036854775296; do
	echo "--size $size"
	echo "-O raw --size $size"
done >lines
table 'raw by sizes' <lines
for o in compat=0.10 compat=1.1 lazy_refcounts=on \
	preallocation=off preallocation=metadata preallocation=falloc preallocation=full \
	size=5G backing_file=nope backing_file=nope,backing_fmt=raw backing_fmt=qcow2; do
	echo "-O qcow2 --size 1G -o $o"
done >lines
printf '%s\n' '-O raw --size 1G -o preallocation=full' '-O raw --size 1G -o size=5' >>lines
table 'options' <lines

# Sources. The holes of a raw file are where the file system puts them.
truncate -s 3M holes.raw
for at in 0 15 16 33 34 300 766; do
	dd if=/dev/urandom of=holes.raw bs=4k seek=$at count=1 conv=notrunc status=none
done
truncate -s 1049088 odd.raw && dd if=/dev/urandom of=odd.raw bs=512 seek=2048 count=1 \
	conv=notrunc status=none
truncate -s 1048581 byte.raw && printf 12345 | dd of=byte.raw bs=1 seek=1048576 \
	conv=notrunc status=none
dd if=/dev/zero of=zeroes.raw bs=64k count=16 status=none
: >empty.raw
create -f qcow2 -o cluster_size=4k small.qcow2 2M
io small.qcow2 'write 0 5k' 'write -z 1M 64k' 'write 1536k 4k'
create -f qcow2 base.qcow2 2M
io base.qcow2 'write 0 128k' 'write -z 1M 64k' 'write 1536k 4k'
create -f qcow2 -b base.qcow2 -F qcow2 over.qcow2 3M
io over.qcow2 'write 64k 64k' 'write -z 0 64k' 'write 2560k 64k'
create -f qcow2 -o compat=0.10 v2.qcow2 1M
io v2.qcow2 'write 100k 1k'
create -f qcow2 -o preallocation=metadata meta.qcow2 1M
create -f qcow2 -o preallocation=falloc falloc.qcow2 1M
"$peer" convert -c -O qcow2 holes.raw packed.qcow2 || exit 1
create -f qcow2 none.qcow2 0
create -f qcow2 maps.qcow2 1G
for g in 512 64k 2M; do
	"$peer" bitmap --add -g $g maps.qcow2 bitmap-$g || exit 1
done
io maps.qcow2 'write 0 1M'
for image in holes.raw odd.raw byte.raw zeroes.raw empty.raw small.qcow2 base.qcow2 over.qcow2 \
	v2.qcow2 meta.qcow2 falloc.qcow2 packed.qcow2 none.qcow2 maps.qcow2; do
	for o in cluster_size=64k cluster_size=512 cluster_size=4k cluster_size=2M \
		refcount_bits=1 compat=0.10 preallocation=metadata preallocation=full \
		backing_file=base.qcow2,backing_fmt=qcow2; do
		echo "-O qcow2 -o $o -f ${image##*.} $image"
	done
	echo "-f ${image##*.} $image"
	echo "-O raw -U $image"
done >lines
table 'sources' <lines

# What people read, and what is refused.
for args in '-O qcow2 --size 10M' '--size 10M' '-O qcow2 maps.qcow2' 'holes.raw' \
	'--output=human -O qcow2 v2.qcow2' '-U --size 1'; do
	# shellcheck disable=SC2086
	same measure $args
done
for args in '' '--size 10M holes.raw' '--size x' '--size -1' '--size 8E' '-O foo --size 1' \
	'-f raw --size 1' '--output=xml --size 1' 'a b' '-O qcow2 -o cluster_size=5 --size 1' \
	'-O qcow2 -o foo=5 --size 1' '-O qcow2 -o refcount_bits=3 --size 1' \
	'-O qcow2 --size 9223372036854775807' '-O qcow2 -o cluster_size=512 --size 2T' \
	'-O qcow2 -o help --size 1' '-O qcow2 nope' '-f qcow2 holes.raw' \
	'-O qcow2 -o compat=foo --size 1' '-O qcow2 -o compat=0.10,refcount_bits=8 --size 1' \
	'-O raw -o foo=on --size 1'; do
	# shellcheck disable=SC2086
	same measure $args
done
says 1 "Can't find snapshot" measure -l snapshot -O qcow2 base.qcow2

# What is made fits.
size_of() # KEY ARGS...
{
	key=$1
	shift
	"$ours" measure --output=json "$@" | sed -n "s/.*\"$key\": \([0-9]*\).*/\1/p"
}
fits() # NAME FILE LIMIT
{
	have=$(stat -c %s "$2")
	[ "$have" -le "$3" ]
	status=$?
	[ $status = 0 ] || echo "# $have bytes, measured $3"
	ok $status "$1"
}
for o in cluster_size=512 cluster_size=4k,refcount_bits=64 cluster_size=64k cluster_size=2M \
	compat=0.10; do
	for image in holes.raw odd.raw small.qcow2 over.qcow2 packed.qcow2 zeroes.raw; do
		rm -f new.qcow2
		"$ours" convert -O qcow2 -o $o $image new.qcow2 || exit 1
		fits "convert $image with $o fits" new.qcow2 \
			"$(size_of required -O qcow2 -o $o $image)"
	done
	for p in off full; do
		rm -f new.qcow2
		"$ours" create -q -f qcow2 -o $o,preallocation=$p new.qcow2 16M || exit 1
		fits "create with $o and preallocation=$p fits" new.qcow2 \
			"$(size_of required -O qcow2 -o $o,preallocation=$p --size 16M)"
	done
	rm -f new.qcow2
	"$ours" create -q -f qcow2 -o $o,preallocation=metadata new.qcow2 16M || exit 1
	fits "create with $o and all tables fits" new.qcow2 \
		"$(size_of fully-allocated -O qcow2 -o $o --size 16M)"
done
done_testing
