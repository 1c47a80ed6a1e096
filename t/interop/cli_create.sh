#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/interop/cli_create.sh - create makes what qemu-img makes: the line that it prints, an
# image that info describes alike, and the same refusals.

. "${srctree:-.}/t/interop/peer.inc"

create -f raw base.raw 10M
create -f qcow2 base.q 20M
create -f qcow2 -b gone.q -F qcow2 -u orphan.q 1M

# made NAME ARGS...: both make it, say the same, and the peer sees the same in it
made()
{
	file=$1
	rm -f "$file"
	shift
	for who in peer ours; do
		eval "img=\$$who"
		"$img" create "$@" >out.$who 2>err.$who </dev/null
		echo $? >status.$who
		"$peer" info --output=json "$file" >info.$who 2>/dev/null
		# (qemu-img writes the first block of a raw image.)
		"$peer" map -f qcow2 --output=json "$file" 2>/dev/null |
			sed 's/"offset": [0-9]*/"offset": N/' >map.$who
		"$peer" check "$file" >check.$who 2>&1
		[ -e "$file" ] && stat -c %s "$file" >size.$who
		rm -f "$file"
	done
	sed -i '/actual-size/d' info.peer info.ours
	bad=
	cmp -s out.peer out.ours || bad='standard output differs'
	cmp -s status.peer status.ours || bad="status $(cat status.ours)"
	cmp -s info.peer info.ours || bad="info differs: $(diff info.peer info.ours)"
	cmp -s map.peer map.ours || bad="the map differs: $(diff map.peer map.ours)"
	cmp -s check.peer check.ours || sed -i '/end offset/d' check.peer check.ours
	cmp -s check.peer check.ours || bad="check: $(cat check.ours)"
	[ -s err.ours ] && bad="something is said on standard error"
	[ -z "$bad" ] || blame "$bad"
	[ -z "$bad" ]
	ok $? "create $*"
}

made x -f qcow2 x 1G
made x -f qcow2 x 1.5G
made x -f qcow2 x 1000
made x -f qcow2 x 0
made x -f qcow2 x 1T
made x x 100
made x -f raw x 1k
made x -f raw x 8M -o preallocation=full
made x -f raw -o preallocation=falloc x 8M
made x -f raw -o preallocation=off x 8M
made x -f raw -o size=5M x
made x -q -f raw x 5M
made x -f qcow2 -q x 5M
for size in 512 4k 64k 2M; do
	made x -f qcow2 -o cluster_size=$size x 100M
done
for bits in 1 2 4 8 16 32 64; do
	made x -f qcow2 -o refcount_bits=$bits x 100M
done
made x -f qcow2 -o compat=0.10 x 10M
made x -f qcow2 -o compat=v3,lazy_refcounts=on x 10M
made x -f qcow2 -o compression_type=zstd,lazy_refcounts=on x 10M
made x -f qcow2 -o preallocation=metadata x 10M
made x -f qcow2 -o preallocation=falloc x 10M
made x -f qcow2 -o preallocation=full,cluster_size=4k x 10M
made x -f qcow2 -o extended_l2=off -o cluster_size=1M x 10M
made x -f qcow2 -b base.q -F qcow2 x
made x -f qcow2 -b base.raw -F raw x
made x -f qcow2 -b base.raw -F raw x 100M
made x -f qcow2 -b base.q -F qcow2 x 1M
made x -f qcow2 -u -b gone.q -F qcow2 x 1G
made x -f qcow2 -o backing_file=base.raw,backing_fmt=raw x
mkdir sub
made sub/x -f qcow2 -b ../base.raw -F raw sub/x
cp base.raw 'a,b.raw'
made x -f qcow2 -o 'backing_file=a,,b.raw,backing_fmt=raw' x

# What is refused, and leaves nothing behind.
refused()
{
	same create "$@"
	rm -f x
	"$ours" create "$@" >out.ours 2>&1
	[ ! -e x ]
	ok $? "... and nothing is left"
	rm -f x
}
refused -f qcow2 x -b base.q
refused -f qcow2 x -b gone.q -F qcow2
refused -f qcow2 x -b gone.q -F qcow2 1G
refused -f qcow2 x -b orphan.q -F qcow2
refused -f qcow2 x -u -b gone.q -F qcow2
refused -f qcow2 x -b base.raw -F qcow2
refused -f qcow2 x
refused -f qcow2 x nonsense
refused -f qcow2 x 1Q
refused -f qcow2 x 9E
refused -f qcow2 x -1
refused -f raw x 1M -o size=5M
refused -f raw x 1M -b base.raw -F raw
refused -f nothing x 1M
refused -f qcow2 x 1M -o nothing=1
refused -f qcow2 /nowhere/x -q 1M
# (qemu-img announces these before it refuses them.)
refused -q -f raw x 1M -o preallocation=metadata
refused -q -f qcow2 x 1M -F raw
refused -q -f qcow2 x 1M -o cluster_size=1000
refused -q -f qcow2 x 1M -o cluster_size=4M
refused -q -f qcow2 x 1M -o refcount_bits=3
refused -q -f qcow2 x 1M -o compat=0.10,refcount_bits=64
refused -q -f qcow2 x 1M -o compat=0.10,lazy_refcounts=on
refused -q -f qcow2 x 1M -o compat=2
refused -q -f qcow2 x 1M -o lazy_refcounts=perhaps
says 1 'Backing file specified without backing format' create -f qcow2 x -b base.q
says 1 'Image creation needs a size parameter' create -f qcow2 x
same_words create
same_words create -f qcow2
same_words create --nothing
same_words create -f nothing x 1M
same_words create -f qcow2 -o nothing=1 x 1M

# A file that is not ours to replace.
create -f qcow2 lock.q 64M
qemu-io -c 'sleep 100000' lock.q >/dev/null 2>&1 &
holder=$!
i=0
until grep -q ":$(stat -c %i lock.q) " /proc/locks || [ $i = 200 ]; do
	sleep 0.05
	i=$((i + 1))
done
before=$(cksum lock.q)
says 1 'lock' create -f qcow2 lock.q 1M
says 1 'shared "write" lock' info lock.q
kill $holder 2>/dev/null
wait $holder 2>/dev/null
[ "$(cksum lock.q)" = "$before" ]
ok $? 'an image in use is left alone'

for f in qcow2 raw; do
	"$ours" create -f $f -o help >out.ours 2>&1
	[ $? = 0 ] && grep -q "^Supported $f options:" out.ours &&
		grep -q '^  size=<size>            - Virtual disk size$' out.ours
	ok $? "create -f $f -o help"
done
done_testing
