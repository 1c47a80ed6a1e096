#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/interop/cli_resize.sh - resize does what qemu-img's does, to the same image.

. "${srctree:-.}/t/interop/peer.inc"

create -f qcow2 a.q 64M
io a.q 'write -P 1 0 1M' 'write -P 2 40M 1M'
create -f qcow2 -o compat=0.10 v2.q 64M
io v2.q 'write -P 1 60M 1M'
create -f raw base.raw 100M
IO_FORMAT=raw io base.raw 'write -P 9 70M 1M'
create -f qcow2 -b base.raw -F raw over.q 64M
create -f qcow2 -o compat=0.10 -b base.raw -F raw over2.q 64M
create -f raw a.raw 1M
IO_FORMAT=raw io a.raw 'write -P 1 0 64k'
truncate -s 1000 odd.raw

# resized FILE ARGS...: X in them stands for a copy of the file
resized()
{
	file=$1
	shift
	for who in peer ours; do
		eval "img=\$$who"
		cp "$file" X
		"$img" resize "$@" >out.$who 2>err.$who </dev/null
		echo $? >status.$who
		mv X X.$who
	done
	bad=
	cmp -s out.peer out.ours || bad='standard output differs'
	cmp -s status.peer status.ours || bad="status $(cat status.ours)"
	[ "$(cat status.ours)" = 0 ] || grep -q '^qemu-img: ' err.ours || bad='nothing is said'
	"$peer" check X.ours >check.out 2>&1
	case $? in
	0 | 63) ;;
	*) bad="check: $(cat check.out)" ;;
	esac
	"$peer" compare X.peer X.ours >check.out 2>&1 || bad="content: $(cat check.out)"
	"$peer" info X.peer | grep virtual >virtual.peer
	"$peer" info X.ours | grep virtual >virtual.ours
	cmp -s virtual.peer virtual.ours || bad='the virtual size differs'
	[ -z "$bad" ] || blame "$bad"
	[ -z "$bad" ]
	ok $? "$file: resize $*"
}

for f in a.q v2.q; do
	resized $f X 128M
	resized $f X +1G
	resized $f X 64M
	resized $f X +0
	resized $f X -- -1M
	resized $f X 1M
	resized $f --shrink X -1M
	resized $f --shrink X 30M
	resized $f --shrink X 512
	resized $f -q --shrink X 1M
	resized $f --shrink X -- -10G
	resized $f X 100001
	resized $f --preallocation=metadata X 65M
	resized $f --preallocation=full X 65M
	resized $f --preallocation=falloc X 70M
	resized $f --preallocation=full --shrink X 50M
	resized $f --preallocation=nothing X 65M
	resized $f X 0
	resized $f X nonsense
done
resized over.q X 128M
resized over.q --shrink X 10M
resized over.q X 65M
resized over2.q --shrink X 10M
# The backing file has data where the overlay ended. (qemu-img 7.2 refuses the old version.)
for f in over.q over2.q; do
	cp $f X
	"$ours" resize -q X 90M && "$peer" check -q X &&
		qemu-io -r -c 'read -P 0 64M 26M' X | grep -q '^read 27262976' &&
		! qemu-io -r -c 'read -P 0 64M 26M' X | grep -q 'fail'
	ok $? "$f: what grows over a longer backing file reads as zeroes"
done
for args in 'X 2M' 'X 2000001' '--shrink X 512k' 'X 512k' 'X +8k' '--shrink X -5k' \
	'--preallocation=falloc X +1M' '--preallocation=full X 3M' '--preallocation=metadata X 3M'; do
	# shellcheck disable=SC2086
	{
	resized a.raw -f raw $args
	resized odd.raw -f raw $args
	}
done
resized a.raw -f qcow2 X 2M
says 0 'Image resized.' resize a.raw 2M
says 0 'warning: Image format was not specified' resize a.raw 3M
says 1 'Use the --shrink option to perform a shrink operation' resize a.q 1M
same resize nothing.q 1M
same_words resize
same_words resize a.q
same_words resize a.q 64M 65M
same_words resize --nothing a.q 64M
done_testing
