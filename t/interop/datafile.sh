#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# External data files: images that either side made, written by both in turn and read by
# both; where the data lies is said alike; raw ones read as the image does. Prints TAP.

. "$srctree/t/interop/peer.inc"
steps=$B/t/fixtures/steps

sound() { "$peer" check -q "$1" && "$ours" check -q "$1" && "$peer" compare -q -f qcow2 -F raw "$1" "$2"; }

# With data_file_raw, the data file alone is the disk.
alone() { [ $raw = off ] || cmp data "$1"; }

# Ours writes, theirs writes on top, ours goes on; all agree each time.
written() # SEED COUNT [resize]
{
	"$steps" img $1 $2 model.raw $3 && sound img model.raw && alone model.raw || return 1
	# Not discarded: with raw data qemu-io 7.2 leaves in the file what it discards.
	qemu-io -c 'write -P 77 12k 3k' -c 'write -P 78 301k 70k' -c 'write -z 100k 6k' \
		-c 'write -z -u 64k 64k' img >/dev/null # past the end of an image that was cut: refused
	"$peer" convert -O raw img theirs.raw && "$ours" convert -O raw img ours.raw &&
		cmp theirs.raw ours.raw && alone ours.raw && "$ours" check -q img &&
		"$steps" img $(($1 + 100)) 40 model.raw && sound img model.raw && alone model.raw
}

base()
{
	rm -f base.raw img data
	[ $1 = none ] && return
	"$peer" create -q -f raw base.raw $1
	qemu-io -f raw -c "write -q -P 85 0 $1" -c 'write -q -z 64k 40k' base.raw
}

seed=0
for raw in off on; do
	for who in peer ours; do
		eval "img=\$$who"
		for o in cluster_size=4k cluster_size=64k extended_l2=on,cluster_size=16k; do
			for b in none 1000k; do
				[ $raw$b = on1000k ] && continue
				seed=$((seed + 1))
				o=$o,data_file=data,data_file_raw=$raw
				back=
				[ $b = none ] || back='-b base.raw -F raw'
				base $b
				"$img" create -q -f qcow2 -o $o $back img 3M
				check "$o by $who over $b" written $seed 60
				base $b
				"$img" create -q -f qcow2 -o $o $back img 3M
				check "$o by $who over $b, resized" written $seed 60 resize
				o=${o%,data_file=*}
			done
		done
	done
done

# What is said of one.
for raw in off on; do
	rm -f img data
	"$peer" create -q -f qcow2 -o data_file=data,data_file_raw=$raw img 3M
	# No holes in the file: of them we know more.
	qemu-io -c 'write -q -P 1 0 3M' -c 'write -q -z -u 1M 64k' -c 'write -q -z 2M 64k' img
	same info img
	same info --output=json img
	same check img
	same map --output=json img
	same map img
	same measure -O qcow2 img
	same measure -O qcow2 -o data_file=x,data_file_raw=$raw --size 1G
	same resize img 5M
	same resize --shrink img 2M
	same map --output=json img
	check "raw=$raw: the data file has the length of the disk" test "$(stat -c %s data)" = 2097152
	for p in off metadata falloc full; do
		for who in peer ours; do
			eval "img=\$$who"
			"$img" create -q -f qcow2 \
				-o data_file=d.$who,data_file_raw=$raw,preallocation=$p i.$who 3M
			stat -c '%s %b' d.$who >blocks.$who
			"$peer" check i.$who | grep allocated >map.$who
		done
		check "raw=$raw, preallocation=$p: as much mapped" cmp map.peer map.ours
		check "raw=$raw, preallocation=$p: as long" \
			test "$(cut -d' ' -f1 blocks.peer)" = "$(cut -d' ' -f1 blocks.ours)"
	done
done

# Converted into and from, with the data in the right place.
"$peer" create -q -f raw src.raw 3M
qemu-io -f raw -c 'write -q -P 5 100k 300k' -c 'write -q -P 6 2M 77k' src.raw
for raw in off on; do
	for img in "$peer" "$ours"; do
		rm -f img data
		check "converted into, raw=$raw" \
			"$img" convert -O qcow2 -o data_file=data,data_file_raw=$raw src.raw img
		check "is sound, raw=$raw" sound img src.raw
		check "is alone, raw=$raw" alone src.raw
		check "has no data of its own, raw=$raw" test "$(stat -c %s img)" -lt 400000
	done
done
check 'compressed clusters are refused' sh -c '! "$1" convert -c -O qcow2 -o data_file=z src.raw zimg' - "$ours"

# Commit from one, and into one.
rm -f img data over
"$ours" create -q -f qcow2 -o data_file=data -b src.raw -F raw img
qemu-io -c 'write -q -P 9 1M 200k' -c 'write -q -z 128k 64k' img
"$peer" convert -O raw img want.raw
"$ours" create -q -f qcow2 -b img -F qcow2 over
qemu-io -c 'write -q -P 10 1100k 10k' over
"$peer" convert -O raw over want.over
check 'commit into one' "$ours" commit -q over
check 'has arrived' sound img want.over
check 'commit from one' "$ours" commit -q img
check 'has arrived below' cmp src.raw want.over
check 'is empty' sh -c '"$1" map img | tail -n +2 | grep -v src.raw; test $? = 1' - "$ours"

# Entries that cannot be. The table of ours begins at 256 KiB.
poke() { printf "$2" | dd of=img bs=1 seek=$((262144 + $1 * 8)) conv=notrunc status=none; }
rm -f img data
"$ours" create -q -f qcow2 -o data_file=data,data_file_raw=on img 3M
qemu-io -c 'write -q -P 1 0 3M' img
cp img good
poke 5 '\0'
same check img
check 'not ours alone: put right' sh -c '"$1" check -q -r all img; "$1" check -q img && cmp img good' - "$ours"
poke 5 '\0'
check 'not ours alone: written all the same' sh -c '"$1" io -c "write -q -P 7 321k 3k" img &&
	qemu-io -r -c "read -P 1 320k 1k" -c "read -P 7 321k 3k" -c "read -P 1 324k 60k" img >out &&
	! grep -i -e failed -e invalid out' - "$ours"
cp good img
poke 5 '\200\0\0\0\0\6'
check 'in another place: found' sh -c '"$1" check img 2>&1 | grep "not at its guest offset"' - "$ours"
check 'in another place: not read' sh -c '! "$1" convert -O raw img out 2>/dev/null' - "$ours"
cp good img
poke 5 '\100'
check 'compressed: found' sh -c '"$1" check img 2>&1 | grep "compressed cluster"' - "$ours"
check 'compressed: not read' sh -c '! "$1" convert -O raw img out 2>/dev/null' - "$ours"
rm -f img data
"$ours" create -q -f qcow2 -o data_file=data -b src.raw -F raw img

# Named by options, in place of what the image says; not opened where that is not asked for.
mv data elsewhere
o=driver=qcow2,file.filename=img,data-file.driver=file,data-file.filename=elsewhere
same info img
same check img
same info --image-opts $o
same check --image-opts $o
same map --output=json --image-opts $o
same map --output=json 'json:{"driver":"qcow2","file":{"driver":"file","filename":"img"},"data-file":{"driver":"file","filename":"elsewhere"}}'
check 'through raw' "$ours" check -q --image-opts driver=qcow2,file.filename=img,data-file.driver=raw,data-file.file.filename=elsewhere
mv elsewhere data
check 'untrusted: refused' sh -c '! "$1" check -q --untrusted img' - "$ours"
check 'untrusted: info' sh -c '"$1" info --untrusted img | grep "data file: data"' - "$ours"
check 'untrusted: named by options' "$ours" check -q --untrusted --image-opts driver=qcow2,file.filename=img,data-file.filename=data,backing=

# What cannot be.
for o in data_file_raw=on data_file=x,compat=0.10 data_file=new data_file=./new; do
	check "refused: $o" sh -c '! "$1" create -q -f qcow2 -o $2 new 1M' - "$ours" $o
	rm -f new x
done
check 'refused: raw over a backing file' sh -c \
	'! "$1" create -q -f qcow2 -o data_file=x,data_file_raw=on -b src.raw -F raw new' - "$ours"
"$ours" create -q -f qcow2 -o data_file=src.copy -b src.raw -F raw new
ln -f src.raw linked
check 'refused: the data file is the backing file' sh -c '! "$1" map --image-opts driver=qcow2,file.filename=new,data-file.filename=linked' - "$ours"
check 'refused: the data file is the image' sh -c '! "$1" check -q --image-opts driver=qcow2,file.filename=new,data-file.filename=new' - "$ours"
done_testing
