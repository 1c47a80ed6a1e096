#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/interop/convert_opts.sh - options of convert: --salvage, over a device that fails, -r,
# -C, --target-is-zero.

. "${srctree:-.}/t/interop/peer.inc"

create -f raw src.raw 4M
IO_FORMAT=raw io src.raw 'write -P 1 0 4M'
create -f qcow2 over.q 4M
io over.q 'write -P 1 0 4M'

# faulty FORMAT FILE RULE: a source whose device fails so
faulty()
{
	echo "driver=$1,file.driver=fault,file.op=read,file.error=EIO,$3,file.file.driver=file,file.file.filename=$2"
}

# zeroed OFFSET LENGTH...: src.raw with zeroes there, as want.raw
zeroed()
{
	cp src.raw want.raw
	while [ $# -gt 0 ]; do
		IO_FORMAT=raw io want.raw "write -P 0 $1 $2"
		shift 2
	done
}

# ---- salvage --------------------------------------------------------------------

bad=file.offset=1048576,file.length=1024,file.always=on
says 1 'Error while reading at byte 1048576: Input/output error' convert --image-opts -O raw \
	"$(faulty raw src.raw $bad)" out.raw
zeroed 1048576 1024
for format in raw qcow2; do
	for n in 1 4; do
		check "--salvage to $format, $n threads" sh -c "'$ours' convert --salvage \
			--threads $n --image-opts -O $format '$(faulty raw src.raw $bad)' out 2>err"
		check 'only what cannot be read is zero' "$peer" compare -F raw -f $format out want.raw
		[ "$(cat err)" = "qemu-img: warning: 1024 bytes could not be read and are zeroes in 'out'" ]
		ok $? 'one warning'
	done
done
bad=file.offset=1049000,file.length=3,file.always=on
zeroed 1048576 512
check 'a part of a sector' sh -c "'$ours' convert -q --salvage --image-opts -O raw \
	'$(faulty raw src.raw $bad)' out 2>err"
check 'is the sector' "$peer" compare -f raw -F raw out want.raw
[ ! -s err ]
ok $? '-q says nothing'
zeroed 0 4M
check 'nothing can be read' sh -c "'$ours' convert --salvage --image-opts -O raw \
	'$(faulty raw src.raw file.always=on)' out 2>err"
check 'all of it is zero' "$peer" compare -f raw -F raw out want.raw
grep -q '4194304 bytes' err
ok $? 'and said to be'
check 'an error that goes away' sh -c "'$ours' convert --salvage --image-opts -O raw \
	'$(faulty raw src.raw file.offset=2097152,file.length=512)' out 2>err"
check 'loses nothing' "$peer" compare -f raw -F raw out src.raw
[ ! -s err ]
ok $? 'and says nothing'
# The data of a qcow2 image: the clusters from the third megabyte of its file on.
start=$("$peer" map --output=json over.q | sed -n 's/.*"offset": \([0-9]*\).*/\1/p' | head -n 1)
bad=file.offset=$((start + 2097152)),file.length=512,file.always=on
zeroed 2097152 512
check 'a sector of a qcow2 image' sh -c "'$ours' convert --salvage --image-opts -O raw \
	'$(faulty qcow2 over.q $bad)' out 2>err"
check 'is zero' "$peer" compare -f raw -F raw out want.raw
check 'nothing is wrong' sh -c "'$ours' convert --salvage -O raw src.raw out 2>err && [ ! -s err ]"
check 'the copy is right' "$peer" compare -f raw -F raw out src.raw
says 1 'writing' convert --salvage -n -f raw --target-image-opts src.raw \
	driver=raw,file.driver=fault,file.op=write,file.error=EIO,file.always=on,file.file.driver=file,file.file.filename=out

# ---- rate -------------------------------------------------------------------------

# A quarter of a second is the least that 4 MiB take at 12 MiB a second: the last chunk
# of 1 MiB begins after three.
begin=$(date +%s%N)
check 'convert -r' "$ours" convert -r 12M -O raw src.raw out
took=$((($(date +%s%N) - begin) / 1000000))
[ $took -ge 250 ]
ok $? "took its time: $took ms"
check 'the copy is right' "$peer" compare -f raw -F raw out src.raw
for n in 1 4; do
	check "-r, $n threads" "$ours" convert -r 1G --threads $n -O qcow2 src.raw out.$n
done
cmp out.1 out.4
ok $? 'the same bytes'
same convert -r 0 -O raw src.raw out
same convert -r nope -O raw src.raw out
same convert -r -1 -O raw src.raw out

# ---- others -------------------------------------------------------------------------

same convert -C -O raw src.raw out
check 'the copy with -C is right' "$peer" compare -f raw -F raw out src.raw
same_words convert -C -S 4k -O raw src.raw out
same_words convert --target-is-zero -O raw src.raw out
create -f qcow2 half.q 4M
io half.q 'write -P 3 1M 1M'
create -f qcow2 dst.q 4M
same convert -n --target-is-zero -O qcow2 half.q dst.q
check 'the copy is right' "$peer" compare half.q dst.q
create -f qcow2 dst.q 4M
io dst.q 'write -P 9 3M 64k'
check 'zeroes are left out of a target that is said to be zero' \
	"$ours" convert -n --target-is-zero -O qcow2 half.q dst.q
check 'what was there stays' qemu-io -c 'read -P 9 3M 64k' dst.q
create -f qcow2 -b half.q -F qcow2 back.q 4M
says 1 "cannot be used with a target that has a backing" convert -n --target-is-zero -O qcow2 half.q back.q
says 1 '--bitmaps is not supported' convert --bitmaps -O qcow2 half.q out

done_testing
