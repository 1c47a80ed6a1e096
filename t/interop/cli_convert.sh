#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/interop/cli_convert.sh - convert's options: what ends up in the target is what
# qemu-img's convert puts there, and the same is refused.

. "${srctree:-.}/t/interop/peer.inc"

create -f raw x.raw 3M
IO_FORMAT=raw io x.raw 'write -P 1 0 64k' 'write -P 0 128k 64k' 'write -P 2 2M 4k' \
	'write -P 3 2600k 100k'
"$peer" convert -O qcow2 x.raw x.q
create -f qcow2 -b x.raw -F raw over.q
io over.q 'write -P 7 1M 64k' 'write -z 0 64k'
create -f qcow2 -b over.q -F qcow2 top.q
io top.q 'write -P 8 1100k 10k'
"$peer" convert -c -O qcow2 x.raw packed.q
create -f qcow2 empty.q 5M
: >empty.raw
head -c 1000000 x.raw >odd.raw
create -f raw other.raw 3M
IO_FORMAT=raw io other.raw 'write -P 9 1M 1M'

# converted FORMAT ARGS...: T in them is the target. The same content, the same map of
# what is data and what is not, and the peer finds it sound.
converted()
{
	format=$1
	shift
	for who in peer ours; do
		eval "img=\$$who"
		rm -f T
		[ -z "$target" ] || cp "$target" T
		"$img" convert "$@" >out.$who 2>err.$who </dev/null
		echo $? >status.$who
		# (qemu-img writes the first block of a raw image that begins with zeroes, and
		# its map breaks where tables of small clusters do.)
		"$peer" map -f "$format" --output=json T 2>/dev/null |
			sed 's/, "offset": [0-9]*//' >map.$who
		mv T T.$who
	done
	bad=
	cmp -s status.peer status.ours || bad="status $(cat status.ours)"
	[ ! -s out.ours ] && [ ! -s err.ours ] || bad='something is said'
	[ -n "$loose" ] || cmp -s map.peer map.ours || bad="map: $(diff map.peer map.ours)"
	"$peer" compare -f "$format" -F "$format" T.peer T.ours >check.out 2>&1 ||
		bad="content: $(cat check.out)"
	[ "$format" = raw ] || "$peer" check T.ours >check.out 2>&1 ||
		bad="check: $(cat check.out)"
	[ "$format" != raw ] || [ "$(stat -c %s T.peer)" = "$(stat -c %s T.ours)" ] ||
		bad='the length differs'
	[ -z "$bad" ] || blame "$bad"
	[ -z "$bad" ]
	ok $? "convert $*${target:+ onto $target}"
}

target= loose=
for f in x.raw x.q over.q top.q packed.q empty.q odd.raw; do
	converted qcow2 -O qcow2 $f T
	case $f in
	over.q | top.q | empty.q) loose=1 ;;
	esac
	converted raw -O raw $f T
	converted raw $f T
	loose=
done
converted qcow2 -O qcow2 empty.raw T
converted raw -O raw empty.raw T
converted qcow2 -f raw -O qcow2 x.q T
converted qcow2 -O qcow2 x.raw odd.raw x.q T
converted raw -O raw x.raw odd.raw x.q T
for s in 0 4k 64k 512 8k; do
	converted qcow2 -S $s -O qcow2 x.raw T
	converted raw -S $s -O raw x.raw T
done
for c in 4k 64k 2M; do
	converted qcow2 -O qcow2 -o cluster_size=$c x.raw T
done
loose=1
converted qcow2 -O qcow2 -o cluster_size=512 x.raw T
loose=
converted qcow2 -O qcow2 -o compat=0.10 x.q T
converted qcow2 -O qcow2 -o size=40M x.q T
converted qcow2 -W -m 16 -O qcow2 x.q T
converted qcow2 -m 1 -O qcow2 -q x.q T
for t in none writeback writethrough directsync unsafe; do
	converted qcow2 -t $t -O qcow2 x.raw T
	converted raw -t $t -T $t -O raw x.q T
done
# What is preallocated may look different while it reads alike.
loose=1
converted qcow2 -O qcow2 -o preallocation=metadata x.raw T
converted qcow2 -O qcow2 -o preallocation=full x.raw T
converted raw -O raw -o preallocation=full x.raw T
converted raw -O raw -o preallocation=falloc x.raw T
# Backing files: what the source's own has is left out.
converted qcow2 -O qcow2 -B x.raw -F raw over.q T
converted qcow2 -O qcow2 -o backing_file=x.raw,backing_fmt=raw over.q T
converted qcow2 -O qcow2 -B over.q -F qcow2 top.q T
converted qcow2 -O qcow2 -B other.raw -F raw x.q T
converted qcow2 -O qcow2 -B other.raw -F raw empty.q T
"$ours" convert -O qcow2 -B x.raw -F raw over.q T && "$peer" map --output=json T >out.ours
grep -q '"depth": 1, "present": true, "zero": false, "data": true' out.ours
ok $? 'convert -B leaves data where it is'
# Onto what is there.
target=other.raw
converted raw -n -O raw x.raw T
converted raw -n x.q T
create -f qcow2 old.q 5M
io old.q 'write -P 5 0 5M'
create -f qcow2 new.q 5M
for target in old.q new.q; do
	converted qcow2 -n -O qcow2 x.raw T
	converted qcow2 -n -O qcow2 -S 0 x.raw T
	converted qcow2 -n -O qcow2 top.q T
done
target=new.q
converted qcow2 -n --target-is-zero -O qcow2 x.raw T
target=

refused()
{
	both convert "$@"
	bad=
	cmp -s status.peer status.ours || bad="status $(cat status.ours)"
	[ "$(wc -l <err.ours)" = 1 ] || bad='not one line'
	[ "$words" = 0 ] || [ "$(cat err.ours)" = "$(head -n 1 err.peer)" ] || bad='other words'
	[ -z "$bad" ] || blame "$bad"
	[ -z "$bad" ]
	ok $? "refused: convert $*"
	rm -f T
}
words=1
refused -O qcow2 x.raw
refused -O qcow2 x.raw /nowhere/T
refused -f qcow2 x.raw T
refused -O qcow2 --target-is-zero x.raw T
refused -O qcow2 -n -o compat=1.1 x.raw old.q
refused -O qcow2 -m 17 x.raw T
refused -O qcow2 -m 0 x.raw T
refused -O qcow2 -m x x.raw T
refused -O qcow2 -S 100 x.raw T
refused -O qcow2 -S 32M x.raw T
refused -O qcow2 -t nothing x.raw T
refused -O qcow2 -T nothing x.raw T
refused -C -S 4k x.raw T
refused -O qcow2 -B x.raw -F raw over.q x.raw T
create -f raw small.raw 64k
create -f qcow2 small.q 64k
refused -n -O raw x.raw small.raw
refused -n -O qcow2 x.raw small.q
words=0
refused -O nothing x.raw T
refused -f nothing x.raw T
refused -O qcow2 -o nothing=1 x.raw T
refused nothing.raw T
refused -O qcow2 -n x.raw /nowhere/T
refused -O qcow2 -n x.raw x.raw
refused -O qcow2 -B x.raw over.q T
refused -O qcow2 -F raw x.raw T
refused -O raw -B x.raw -F raw over.q T
refused -O qcow2 -B nothing.raw -F raw over.q T
before=$(cksum x.raw)
refused x.raw x.raw
[ "$(cksum x.raw)" = "$before" ]
ok $? 'a source is no target'
same_words convert --nothing x.raw T
same_words convert -O

# Options that are not there say so.
for option in --bitmaps; do
	# shellcheck disable=SC2086
	says 1 'is not supported' convert $option x.raw T
	[ ! -e T ]
	ok $? "... and there is no target"
done

# Compression, where there is such a thing.
same_words convert -c x.raw T
same_words convert -c -O qcow2 -o preallocation=metadata x.raw T
says 1 'Compression and encryption not supported at the same time' convert -c -O qcow2 \
	-o encrypt.format=luks x.raw T
[ ! -e T ]
ok $? '-c is judged before there is a target'

# Progress: two decimals, a carriage return each, a newline at the end.
"$ours" convert -p -O qcow2 x.raw T >out 2>err
[ $? = 0 ] && [ ! -s err ] && [ "$(tail -c 1 out | od -An -c | tr -d ' ')" = '\n' ] &&
	[ "$(tr '\r' '\n' <out | tail -n 2 | head -n 1)" = '    (100.00/100%)' ] &&
	! tr '\r' '\n' <out | grep -vq -e '^    ([0-9]*\.[0-9][0-9]/100%)$' -e '^$'
ok $? 'convert -p'
"$ours" convert -p -q -O qcow2 x.raw T >out 2>&1 && [ ! -s out ]
ok $? 'convert -p -q'

# O_DIRECT that cannot be had: one warning, and it works.
if [ -d /dev/shm ] && tmp=$(mktemp -d /dev/shm/platter.XXXXXX); then
	"$ours" convert -t none -O qcow2 x.raw "$tmp/T" >out 2>err
	status=$?
	"$peer" compare -q x.raw "$tmp/T" && [ $status = 0 ] && [ "$(wc -l <err)" -le 1 ]
	ok $? 'convert -t none where there is no O_DIRECT'
	rm -rf "$tmp"
fi

# The limits that programs run it under.
for m in 1 16; do
	(
		# shellcheck disable=SC3045
		case $S in
		*address* | *thread*) ;;
		*) ulimit -v 1048576 ;;
		esac
		exec "$ours" convert -m $m --threads 16 -O qcow2 x.raw T
	) && "$peer" compare -q x.raw T
	ok $? "convert -m $m within 1 GiB of address space"
done
create -f qcow2 huge.q 8T
timeout 20 "$ours" convert -O qcow2 huge.q T && [ "$(stat -c %s T)" -lt 4194304 ]
ok $? 'convert of 8 TiB of nothing'
done_testing
