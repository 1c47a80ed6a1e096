#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/interop/serve_io.sh - random commands of qemu-io, each read verified (-P), through
# nbd+unix to platter serve, and the same ones by qemu-io on a local image: both are then
# the same, and qemu-img finds nothing wrong. Seeds are SERVE_IO_SEED (1) and those after it.

. "${srctree:-.}/t/interop/peer.inc"

ln -s "$PLATTER" bin/qemu-nbd
nbd=$work/bin/qemu-nbd
sock=$work/sock
uri="nbd+unix:///?socket=$sock"
server=
stop() { [ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null; server=; }
trap 'stop; cd / && rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

# commands SEED N SIZE: one a line, and in the file whole what reads the disk after them. What is discarded may read as anything, so it is
# written again; what is read is a run of one byte, or a part of one. Requests in flight
# together (aio_) do not overlap: aio_flush comes before the next one.
commands()
{
	awk -v seed="$1" -v n="$2" -v size="$3" '
	function roll(below) { return int(rand() * below) }
	function set(off, len, p,   i)
	{
		for (i = off; i < off + len; i++)
			disk[i] = p
	}
	function place() # in units of 512 bytes
	{
		off = roll(units)
		len = 1 + roll(roll(4) ? 40 : 700)
		if (roll(3) == 0)
			off -= off % 128
		if (len > units - off)
			len = units - off
		at = off * 512 " " len * 512
	}
	function verify(   k)
	{
		for (k = 1; k < len && disk[off + k] == disk[off]; k++)
			;
		# any byte of it
		skip = roll(512)
		print "read -P " disk[off] + 0 " " off * 512 + skip " " k * 512 - skip - roll(512 - skip)
	}
	BEGIN {
		srand(seed)
		units = size / 512
		for (i = 0; i < n; i++) {
			place()
			what = roll(20)
			p = 1 + roll(254)
			if (what < 6) {
				print (roll(3) ? "write -P " : "write -f -P ") p " " at
				set(off, len, p)
			} else if (what < 9) {
				print "write -z " (roll(2) ? "-u " : "") at
				set(off, len, 0)
			} else if (what < 10) {
				print "write -z -f " at
				set(off, len, 0)
			} else if (what < 11) {
				print "discard " at
				print "write -P " p " " at
				set(off, len, p)
			} else if (what < 12) {
				print "aio_write -P " p " " at
				set(off, len, p)
				print "aio_flush"
			} else if (what < 13) {
				print "writev -P " p " " off * 512 " 512 " (off + 2 <= units ? "512" : "")
				set(off, off + 2 <= units ? 2 : 1, p)
			} else if (what < 14)
				print "flush"
			else
				verify()
		}
		for (off = 0; off < units; off += len) {
			for (len = 1; off + len < units && disk[off + len] == disk[off]; len++)
				;
			print "read -P " disk[off] + 0 " " off * 512 " " len * 512 >"whole"
		}
	}'
}

# qemu_io NAME FORMAT IMAGE COMMANDS: all went well, and every pattern was the expected one
qemu_io()
{
	timeout 60 qemu-io -f "$2" "$3" <"$4" >io.out 2>&1
	status=$?
	[ $status = 0 ] && ! grep -q 'failed\|rror' io.out && grep -q '^qemu-io> read' io.out
	status=$?
	[ $status = 0 ] || grep 'failed\|rror' io.out | sed 's/^/# /'
	ok $status "$1"
}

first=${SERVE_IO_SEED:-1}
seed=$first
for how in raw cow qcow2 qcow2,cluster_size=4k,compat=0.10 qcow2,extended_l2=on \
	qcow2,cluster_size=512 over; do
	size=$((3 * 1024 * 1024 + 512 * 3))
	format=${how%%,*}
	opts=
	[ "$how" = "$format" ] || opts=${how#*,}
	if [ $how = over ]; then
		format=qcow2
		[ -e base.raw ] || truncate -s 2M base.raw
		opts=backing_file=base.raw,backing_fmt=raw
	fi
	rm -f ours.img peer.img
	"$ours" create -q -f "$format" ${opts:+-o "$opts"} ours.img $size || exit 1
	reference=$format
	[ $format != cow ] || reference=raw
	"$peer" create -q -f "$reference" ${opts:+-o "$opts"} peer.img $size || exit 1
	commands $seed 120 $size >cmds
	rm -f "$sock"
	timeout 100 "$nbd" -t -e 4 --discard=unmap -f "$format" -k "$sock" ours.img 2>server.err &
	server=$!
	n=0
	while [ ! -S "$sock" ] && [ $n -lt 400 ]; do n=$((n + 1)); sleep 0.02; done
	qemu_io "$how, seed $seed: qemu-io on our server" raw "$uri" cmds
	qemu_io "$how, seed $seed: the next client sees it" raw "$uri" whole
	stop
	qemu_io "$how, seed $seed: qemu-io on a local image" "$reference" peer.img cmds
	check "$how: the same content" "$ours" compare -f "$format" -F "$reference" ours.img peer.img
	check "$how: we find nothing wrong" sh -c \
		"'$ours' check -q -f $format ours.img || [ $format = raw ]"
	if [ $format != cow ]; then
		check "$how: qemu-img says the same" "$peer" compare -f "$format" -F "$reference" ours.img peer.img
		[ $format = raw ] || check "$how: qemu-img finds nothing wrong" "$peer" check -f qcow2 ours.img
	fi
	seed=$((seed + 1))
done

done_testing
