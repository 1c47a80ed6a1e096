#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/interop/compress.sh - what platter compresses is read by qemu-img (and 7z), and the
# other way round; nothing is larger than what qemu-img makes.

. "${srctree:-.}/t/interop/peer.inc"

# Real bytes, noise, zeroes, and clusters that are alike; the disk ends in a cluster.
cp "$PLATTER" src.raw
truncate -s 6M src.raw
head -c 1M /dev/urandom | dd of=src.raw bs=64k seek=96 conv=notrunc status=none
i=0
while [ $i -lt 40 ]; do
	dd if=/usr/bin/env of=src.raw bs=64k count=1 seek=$((120 + i)) conv=notrunc status=none
	i=$((i + 1))
done
truncate -s 11000320 src.raw

# made NAME OPTIONS...: both make it of src.raw, and each likes what the other has made
made()
{
	name=$1
	shift
	rm -f ours.q peer.q back.raw
	bad=
	"$ours" convert -c -O qcow2 "$@" src.raw ours.q >log 2>&1 || bad="convert: $(cat log)"
	"$peer" convert -c -O qcow2 "$@" src.raw peer.q || bad="$bad peer"
	"$peer" check ours.q >log 2>&1 || bad="$bad peer's check: $(cat log)"
	"$ours" check ours.q >log 2>&1 || bad="$bad check: $(cat log)"
	"$peer" compare -f raw -F qcow2 src.raw ours.q >log 2>&1 || bad="$bad peer: $(cat log)"
	"$ours" compare -f raw -F qcow2 src.raw ours.q >log 2>&1 || bad="$bad ours: $(cat log)"
	"$ours" compare peer.q ours.q >log 2>&1 || bad="$bad peer's: $(cat log)"
	"$peer" convert -O raw ours.q back.raw && cmp -s back.raw src.raw || bad="$bad back"
	rm -f back.raw
	"$ours" convert -O raw peer.q back.raw && cmp -s back.raw src.raw || bad="$bad forth"
	[ -z "$bad" ] || echo "# $bad"
	[ -z "$bad" ]
	ok $? "$name"
}

smaller()
{
	a=$(stat -c %s ours.q)
	b=$(stat -c %s peer.q)
	[ "$a" -le "$b" ] || echo "# $a is more than $b bytes"
	[ "$a" -le "$b" ]
	ok $? "$name: no larger"
}

made 'zlib'
smaller
made 'zstd' -o compression_type=zstd
for c in 512 4k 256k 2M; do
	made "clusters of $c" -o cluster_size=$c
	made "clusters of $c, zstd" -o cluster_size=$c,compression_type=zstd
done
for r in 1 2 4 64; do
	made "counts of $r bits" -o refcount_bits=$r
done
made 'version 2' -o compat=0.10
smaller
made 'extended entries' -o extended_l2=on
made 'lazy counts' -o lazy_refcounts=on

for l in 1 9; do
	"$ours" convert -c -O qcow2 -o compression_level=$l src.raw l$l.q &&
		"$peer" check l$l.q >/dev/null && "$peer" compare -f raw -F qcow2 src.raw l$l.q >/dev/null
	ok $? "level $l"
done
[ "$(stat -c %s l9.q)" -lt "$(stat -c %s l1.q)" ]
ok $? 'a higher level gives less'
says 1 'compression level' convert -c -O qcow2 -o compression_level=99 src.raw T
says 1 'compression level' convert -c -O qcow2 -o compression_type=zstd,compression_level=0 src.raw T
[ ! -e T ]
ok $? 'and no image'
if command -v 7z >/dev/null; then
	7z l ours.q >log 2>&1 && grep -q 11000320 log
	ok $? '7z lists it'
	7z e -so ours.q 2>/dev/null | cmp -s - src.raw
	ok $? '7z extracts it'
else
	echo '# 7z is not installed: not asked'
fi

# Over a backing file, only what differs, in whole clusters.
cp src.raw base.raw
cp src.raw top.raw
dd if=/usr/bin/env of=top.raw bs=4k count=3 seek=100 conv=notrunc status=none
dd if=/usr/bin/env of=top.raw bs=4k count=2 seek=1023 conv=notrunc status=none
create -f qcow2 -o cluster_size=4k -b base.raw -F raw over.q
IO_FORMAT=qcow2 io over.q 'write -P 7 1000k 5k' 'write -P 8 3M 100k' 'write -z 5M 64k'
"$ours" convert -c -O qcow2 -B base.raw -F raw over.q T >log 2>&1 &&
	"$ours" compare T over.q >/dev/null && "$peer" check T >/dev/null &&
	"$peer" compare T over.q >/dev/null && [ "$(stat -c %s T)" -lt 600000 ]
ok $? 'over a backing file'
rm -f T

# Onto something.
for t in zlib zstd; do
	create -f qcow2 -o compression_type=$t old.q 11000320
	io old.q 'write -P 9 0 5M' 'write -c -P 3 5M 1M'
	"$ours" convert -c -n -O qcow2 src.raw old.q && "$peer" check old.q >log 2>&1 &&
		"$peer" compare -f raw -F qcow2 src.raw old.q >/dev/null
	ok $? "onto an image that has something, $t"
done

# Memory: 64 MiB in all, as far as the kernel has seen while it runs (slowly, with -r).
base64 -w0 </dev/urandom | head -c 48M >words.raw
for t in zlib zstd; do
	for c in 64k 2M; do
		rm -f ours.q
		most=0
		"$ours" convert -c -m 16 --threads 16 -r 48M -O qcow2 \
			-o cluster_size=$c,compression_type=$t words.raw ours.q &
		while now=$(awk '/VmHWM/ { print $2 }' /proc/$!/status 2>/dev/null) && [ "$now" ]; do
			[ "$now" -lt "$most" ] || most=$now
			sleep 0.02
		done
		wait $! && [ "$most" -gt 8192 ] && [ "$most" -le 65536 ]
		ok $? "memory, $t, clusters of $c: $((most >> 10)) MiB of 64"
	done
done
rm -f words.raw

# Sources by the dozen within one cluster.
list=
for i in $(seq 150); do
	dd if=src.raw of=part.$i bs=512 count=$((i % 5 + 1)) skip=$((i * 7)) status=none
	list="$list part.$i"
done
# shellcheck disable=SC2086
cat $list >all.raw
for c in '' -c; do
	for k in 512 2M; do
		rm -f many.q
		# shellcheck disable=SC2086
		"$ours" convert $c -f raw -O qcow2 -o cluster_size=$k $list many.q &&
			"$peer" compare -f raw -F qcow2 all.raw many.q >log
		ok $? "150 sources into one image: $c $k"
	done
done

# io: as qemu-io says, and the same afterwards.
for who in peer ours; do
	case $who in
	peer) prog=qemu-io ;;
	ours) ln -sf "$PLATTER" bin/qemu-io && prog=bin/qemu-io ;;
	esac
	create -f qcow2 $who.q 1000k
	"$prog" -c 'write -c -P 1 0 128k' -c 'write -c -P 2 960k 40k' -c 'write -c 512 64k' \
		-c 'write -c 0 512' -c 'write -P 4 70k 1k' -c 'discard 0 64k' \
		-c 'write -c -P 5 192k 64k' $who.q 2>&1 | sed 's/ops; .*//' >io.$who
done
cmp io.peer io.ours
ok $? 'io says the same'
"$peer" check ours.q >log && "$peer" compare ours.q peer.q >/dev/null
ok $? 'io has written the same'
io ours.q 'write -P 6 0 1000k' && ln -sf "$PLATTER" bin/qemu-io &&
	bin/qemu-io -c 'write -c -P 7 0 1000k' -c 'write -P 8 100k 1k' -c 'write -c -P 9 64k 64k' \
		ours.q >log 2>&1 && "$peer" check ours.q >log &&
	qemu-io -c 'read -P 7 0 64k' -c 'read -P 9 64k 64k' -c 'read -P 7 128k 872k' ours.q >log
ok $? 'compressed over data, and over compressed data'
create -f raw r.raw 1M
bin/qemu-io -f raw -c 'write -c 0 64k' r.raw 2>&1 | grep -q 'Operation not supported'
ok $? 'not into raw'
done_testing
