#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Snapshots that qemu-img made, read: convert -l and measure -l. Prints TAP.

. "$srctree/t/interop/peer.inc"

# as_peer ARGS...: convert ARGS gives the same content and status as the peer's
as_peer()
{
	rm -f out.raw want.raw
	"$peer" convert "$@" -O raw img want.raw >/dev/null 2>err.peer
	want=$?
	"$ours" convert "$@" -O raw img out.raw >/dev/null 2>err.ours
	got=$?
	cat err.peer err.ours
	[ $got = $want ] || return 1
	[ $want != 0 ] || cmp out.raw want.raw
}

for o in compat=0.10 cluster_size=4k extended_l2=on; do
	rm -f img base.raw
	"$peer" create -q -f raw base.raw 1M
	qemu-io -f raw -c 'write -q -P 3 0 1M' base.raw
	"$peer" create -q -f qcow2 -o $o -b base.raw -F raw img 3M
	qemu-io -c 'write -q -P 1 100k 1M' img
	"$peer" snapshot -c one img
	qemu-io -c 'write -q -P 2 600k 1M' -c 'write -q -z 64k 128k' img
	"$peer" snapshot -c 'two, and more' img
	qemu-io -c 'write -q -P 4 0 3M' img
	cp img before
	for l in one 1 2 'two, and more' snapshot.name=one snapshot.id=2 \
		'snapshot.id=2,snapshot.name=two,, and more' snapshot.id=2,snapshot.name=one \
		nope snapshot.name=1 snapshot.foo=1; do
		check "$o: convert -l $l" as_peer -l "$l"
		same measure -l "$l" -O qcow2 img
	done
	check "$o: the disk as it is" as_peer
	check "$o: nothing has changed" cmp img before
done

# The snapshot has the length that the disk had; qemu-img 7.2 takes that of today.
"$ours" convert -l one -O raw img want.raw
"$peer" resize -q img 5M
"$ours" convert -l one -O raw img out.raw
check 'a snapshot keeps its length' cmp want.raw out.raw

for args in 'convert -l one img img out' 'convert -l one -f raw base.raw out' \
	'measure -l one -O raw --size 1M' 'measure -l one -O raw -f raw base.raw'; do
	# shellcheck disable=SC2086
	same $args
done
"$ours" convert -l nope -O qcow2 img none 2>/dev/null
check 'without the snapshot there is no target' test ! -e none
done_testing
