#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/interop/cli_compare.sh - compare finds what qemu-img finds.

. "${srctree:-.}/t/interop/peer.inc"

create -f raw a.raw 1M
IO_FORMAT=raw io a.raw 'write -P 1 0 64k' 'write -P 0 128k 64k'
"$peer" convert -O qcow2 a.raw a.q
cp --sparse=never a.raw full.raw
truncate -s 2M long.raw
dd if=a.raw of=long.raw conv=notrunc status=none
cp long.raw tail.raw
IO_FORMAT=raw io tail.raw 'write -P 7 1536k 5k'
cp a.raw near.raw
printf x | dd of=near.raw bs=1 seek=5000 conv=notrunc status=none
cp a.raw end.raw
printf x | dd of=end.raw bs=1 seek=1048500 conv=notrunc status=none
cp end.raw two.raw
printf x | dd of=two.raw bs=1 seek=70000 conv=notrunc status=none
cp long.raw early.raw
printf x | dd of=early.raw bs=1 seek=100 conv=notrunc status=none
create -f qcow2 s.q 64M
io s.q 'write -P 1 0 1M' 'write -z 4M 1M' 'write -P 2 8M 64k' 'write -z 16M 1M'
"$peer" convert -c -O qcow2 s.q packed.q
"$peer" convert -O qcow2 s.q copy.q
cp s.q data.q
io data.q 'write -P 0 16M 1M'
create -f qcow2 -b s.q -F qcow2 over.q
create -f qcow2 -b a.raw -F raw longer.q 3M
head -c 1000000 a.raw >cut.raw

for pair in 'a.raw a.q' 'a.q a.raw' 'a.raw full.raw' 'a.raw long.raw' 'long.raw a.raw' \
	'a.raw tail.raw' 'tail.raw a.q' 'a.raw near.raw' 'near.raw a.q' 'a.raw end.raw' \
	'a.raw two.raw' 'early.raw a.raw' 's.q packed.q' 's.q copy.q' 's.q data.q' \
	's.q over.q' 'over.q s.q' 'longer.q a.raw' 'longer.q long.raw' 'a.raw cut.raw' \
	'a.raw a.raw' 's.q a.raw'; do
	# shellcheck disable=SC2086
	{
	same compare $pair
	same compare -q $pair
	}
done
# (Strict mode: qemu-img 7.2 also minds whether both extents end at an end of file.)
for pair in 'a.raw a.q' 'a.q a.raw' 'a.raw long.raw' 'a.raw near.raw' 's.q packed.q' \
	's.q copy.q' 's.q data.q' 's.q over.q' 'a.raw a.raw' 'long.raw tail.raw'; do
	# shellcheck disable=SC2086
	same compare -s $pair
done
same compare -f raw -F raw a.raw a.q
same compare -f qcow2 a.raw a.q
same compare -T none a.raw a.q
same compare -T writeback -U a.raw a.q
same_words compare -T nothing a.raw a.q
same compare a.raw nothing.raw
same compare nothing.raw a.raw
same_words compare a.raw
same_words compare a.raw a.q s.q
same_words compare --nothing a.raw a.q

# A table that cannot be: 3. A file that ends too early: 4.
create -f qcow2 zero.q 64M
cp s.q bad.q
l1=$(od -An -tx1 -j 40 -N 8 bad.q | tr -d ' ')
l2=$(od -An -tx1 -j $((0x$l1 + 1)) -N 7 bad.q | tr -d ' ')
printf '\200\0\0\0\0\5\2\0' | dd of=bad.q bs=1 seek=$((0x$l2)) conv=notrunc status=none
says 3 'block status' compare bad.q zero.q
says 3 'block status' compare zero.q bad.q

# Progress ends in a full line; the result is said before its newline.
"$ours" compare -p a.raw a.q >out 2>err
[ $? = 0 ] && [ "$(tr '\r' '\n' <out | tail -n 3 | head -n 1)" = '    (100.00/100%)' ] &&
	[ "$(tr '\r' '\n' <out | tail -n 2 | head -n 1)" = 'Images are identical.' ]
ok $? 'compare -p'
for n in 1 2 7; do
	says 1 'offset 69632' compare --threads $n a.raw two.raw
done
done_testing
