#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/interop/bench.sh - bench takes qemu-img's options, says what it says (the time aside),
# fails where it fails, and writes what it writes.
srctree=${srctree:-$(cd "$(dirname "$0")/../.." && pwd)}
. "$srctree/t/interop/peer.inc"

# alike ARGS...: standard output without the time, first line of standard error, status
alike()
{
	both bench "$@"
	for who in peer ours; do
		sed -i 's/^Run completed in [0-9][0-9.]* seconds\.$/Run completed/' out.$who
	done
	bad=
	cmp -s out.peer out.ours || bad="standard output differs"
	cmp -s status.peer status.ours || bad="status $(cat status.ours), not $(cat status.peer)"
	[ "$(sed 1q err.peer | sed "$words")" = "$(sed 1q err.ours | sed "$words")" ] ||
		bad="other words on standard error"
	[ -z "$bad" ] || blame "$bad"
	[ -z "$bad" ]
	ok $? "bench $*"
}
words='s/^\(qemu-img: Could not open[^:]*:\).*/\1/; s/suffixes for.*/suffixes/'

create -f qcow2 a.qcow2 4M
io a.qcow2 'write -P 1 0 4M'
create -f raw a.raw 1M
truncate -s 1049088 odd.raw

# What it says.
alike -c 1000 -i threads --image-opts driver=null-co
alike -c 1000 -i native -t none --image-opts driver=raw,file.driver=null-co
alike -f raw -c 1000 null-co://
alike -f raw -c 1000 -d 1 -w null-co://
alike -f raw -c 1000 -d 1 -w --pattern 5 -s 64k -S 8k -o 4k null-co://
alike -f raw -c 1000 -d 8 -w --flush-interval 10 null-co://
alike -f raw -c 1000 -d 8 -w --flush-interval 10 --no-drain null-co://
alike -f raw -c 1000 -d 8 -w --no-drain null-co://
alike -f raw -c 1000 -q null-co://
alike -f raw -c 0 null-co://
alike -f raw -c 10 -s 0 null-co://
alike -f raw -c 10 -S 0 null-co://
alike -f raw -c 10 -s 5 null-co://
alike -f raw -c 10 --flush-interval 0 -w null-co://
alike -f raw -c 0x10 -d 0x1 null-co://
alike -f raw -c 010 null-co://
alike -c 10 a.qcow2
alike -U -c 10 a.qcow2
alike -c 10 --pattern 4 a.qcow2
alike -f raw -c 300 -s 1k -S 5k a.raw
alike -f raw -c 100 -o 1020k a.raw
alike -f raw -c 5 -s 512 -S 64k -o 1M odd.raw
# -n names an engine, as in qemu-img.
alike -f raw -t none -n -c 100 a.raw
alike -f raw -n -c 100 a.raw
for engine in threads native io_uring; do
	alike -f raw -t none -i $engine -c 1000 a.raw
	alike -t none -i $engine -c 1000 a.qcow2
done
alike -f raw -i native -c 10 a.raw
for cache in none writeback writethrough directsync unsafe foo; do
	alike -f raw -t $cache -c 10 a.raw
done

# What it refuses.
alike -f raw -c 10 -o 2G null-co://
alike -f raw -c 300 odd.raw
alike -f raw -c 3 -o 1M odd.raw
alike -c 10 -s 8M a.qcow2
alike -c 1 -s 3G a.raw
alike -c -1 a.raw
alike -c x a.raw
alike -c 1k a.raw
alike -c 2147483648 a.raw
alike -d x a.raw
alike -d 2147483648 a.raw
alike -s x a.raw
alike -S x a.raw
alike -o x a.raw
alike -o -1 a.raw
alike -i foo a.raw
alike --pattern 256 a.raw
alike --pattern x a.raw
alike --flush-interval x a.raw
alike --flush-interval 100 a.raw
alike -w --flush-interval 4 a.raw
alike
alike a b
alike nope.raw
alike -w -U a.qcow2
alike -z a.raw
says 1 'Invalid queue depth' bench -d 0 a.raw
says 1 'A block device must be specified' bench --image-opts driver=raw

# What it writes.
create -f raw theirs.raw 2M
cp theirs.raw ours.raw
create -f qcow2 -o cluster_size=4k theirs.qcow2 2M
cp theirs.qcow2 ours.qcow2
for f in raw qcow2; do
	for args in '-c 20 -s 3000 -S 70000 --pattern 7' '-c 600 -s 4k -o 1M --pattern 9' \
		'-c 100 -d 3 -s 512 -S 1536 -o 100k --pattern 1 --flush-interval 5' \
		'-c 100 -d 8 -s 512 -S 512 -o 512 --pattern 2 --flush-interval 8 --no-drain'; do
		# shellcheck disable=SC2086
		"$peer" bench -w -f $f $args theirs.$f >/dev/null || exit 1
		for more in '' '-t none -i threads' '-t none -i aio' '-t none -i uring' \
			'-i sync' '--threads 2' '--threads 2 -t none -i auto'; do
			rm -f new.$f
			cp ours.$f new.$f
			# shellcheck disable=SC2086
			check "bench -w -f $f $args $more" \
				"$ours" bench -w -f $f $args $more new.$f
			check "it wrote what qemu-img wrote" \
				"$peer" compare -f $f -F $f theirs.$f new.$f
			[ $f = raw ] || check "and the image is sound" "$peer" check new.qcow2
		done
		mv new.$f ours.$f
	done
done

# A flush after each 5 of 20 requests, and no more; 3 of them are followed by another.
if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null && [ -z "$S$W" ]; then
	for drain in '' --no-drain; do
		# shellcheck disable=SC2086
		strace -f -e trace=fdatasync,fsync -o trace "$PLATTER" bench -f raw -i sync -w -c 20 \
			-d 4 --flush-interval 5 $drain ours.raw >/dev/null
		n=$(grep -c 'sync(' trace)
		[ "$n" = 3 ] || [ "$n" = 4 ]
		ok $? "flushes with --flush-interval 5 $drain: $n"
	done
else
	tests=$((tests + 1))
	echo "ok $tests - flushes are counted # SKIP no strace"
fi
done_testing
