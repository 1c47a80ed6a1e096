#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/interop/nbd.sh - images on NBD servers: what qemu-img says of them, and what is
# read and written, compared with the local file. Servers listen on Unix sockets in
# the test's folder, and end with it.

. "${srctree:-.}/t/interop/peer.inc"

. "${srctree:-.}/t/interop/nbd.inc"

command -v nbdkit >/dev/null || { echo '1..0 # SKIP nbdkit is not installed'; exit 0; }

create -f raw a.raw 32M
IO_FORMAT=raw io a.raw 'write -P 1 1M 3M' 'write -P 2 17M 64k' 'write -P 3 33553920 512'
cp --sparse=always a.raw keep.raw

for how in qemu-nbd nbdkit tcp blocks; do
	case $how in
	qemu-nbd) serve qemu-nbd -t -r -f raw -k "$sock" a.raw ;;
	nbdkit) kit file a.raw ;;
	tcp)
		port=$((20000 + $$ % 20000))
		serve nbdkit -f -i 127.0.0.1 -p $port -P "$sock.pid" file a.raw
		n=0
		while [ ! -s "$sock.pid" ] && [ $n -lt 200 ]; do n=$((n + 1)); sleep 0.05; done
		;;
	blocks) kit --filter=blocksize-policy file a.raw blocksize-minimum=4k \
		blocksize-maximum=64k blocksize-error-policy=error ;;
	esac
	export=$uri
	[ $how != tcp ] || export=nbd:127.0.0.1:$port
	check "$how: compare" "$ours" compare -f raw -F raw keep.raw "$export"
	check "$how: convert from" "$ours" convert -f raw -O raw "$export" out.raw
	check "$how: the same content" cmp out.raw keep.raw
	check "$how: convert to qcow2" "$ours" convert -f raw -O qcow2 "$export" out.q
	check "$how: nothing amiss" "$peer" compare -f qcow2 -F raw out.q keep.raw
done

kit file a.raw
same map -f raw --output=json "$uri"
same map -f raw --output=json "nbd:unix:$sock"

create -f raw b.raw 32M
kit file b.raw
check 'convert -n to a server' "$ours" convert -n -f raw -O raw a.raw "$uri"
check 'it has arrived' cmp b.raw keep.raw
[ "$(du -k b.raw | cut -f1)" -lt 8192 ]
ok $? 'zeroes take no room'

qemu-img convert -f raw -O qcow2 a.raw q.qcow2
kit file q.qcow2
check 'a qcow2 image on a server' "$ours" compare -f qcow2 -F raw "$uri" a.raw
check 'check of it' "$ours" check -f qcow2 "$uri"

kit -r sparse-random 1G seed=7
check 'sparse-random' "$ours" convert -f raw -O raw "$uri" s1.raw
check 'sparse-random by qemu-img' "$peer" convert -f raw -O raw "$uri" s2.raw
check 'the same' cmp s1.raw s2.raw
rm -f s1.raw s2.raw

echo alice:0123456789abcdef0123456789abcdef >psk
kit --tls=require --tls-psk=psk file b.raw
tls="nbds+unix://alice@/?socket=$sock&tls-psk-file=$work/psk"
check 'TLS with a shared key: compare' "$ours" compare -f raw -F raw keep.raw "$tls"
check 'TLS: convert to' "$ours" convert -n -f raw -O raw keep.raw "$tls"
says 1 'Failed to connect to the NBD server' info "$uri"
echo alice:ff23456789abcdef0123456789abcdef >psk.wrong
says 1 'Failed to connect to the NBD server' info "$tls.wrong"

kit --filter=error file a.raw error-pread=EIO error-pread-rate=100%
says 1 'Input/output error' convert -f raw -O raw "$uri" out.raw

# A hole that is not said to be zero has something in it.
head -c 1M /dev/zero | tr '\0' h >hole.raw
if nbdkit eval --version >/dev/null 2>&1; then
	kit eval get_size='echo 1M' pread="dd if='$work/hole.raw' iflag=skip_bytes,count_bytes skip=\$4 count=\$3 status=none" \
		can_extents='exit 0' extents='echo 0 1M hole'
	check 'a hole with something in it' "$ours" compare -f raw -F raw hole.raw "$uri"
	check 'and convert takes it' "$ours" convert -f raw -O raw "$uri" out.raw
	cmp hole.raw out.raw
	ok $? 'the copy has it'
	rm -f out.raw
else
	tests=$((tests + 1))
	echo "ok $tests - a hole with something in it # SKIP nbdkit has no plugin eval"
fi

# What arrives, as the server's log has it.
kit --filter=log memory 4M logfile="$work/kit.log"
check 'zero, FUA, trim, flush' "$PLATTER" io -f raw -c 'write -z 0 64k' -c 'write -z -u 64k 64k' \
	-c 'write -f -P 1 0 4k' -c 'write -z -f 0 4k' -c 'write -z -n 1M 64k' \
	-c 'discard 1M 64k' -c flush "$uri"
for words in 'Zero .*offset=0x0 count=0x10000 trim=0 fua=0 fast=0' \
	'Zero .*offset=0x10000 count=0x10000 trim=1 fua=0 fast=0' \
	'Write .*offset=0x0 count=0x1000 fua=1' 'Zero .*offset=0x0 count=0x1000 trim=0 fua=1 fast=0' \
	'Zero .*offset=0x100000 count=0x10000 trim=0 fua=0 fast=1' \
	'Trim .*offset=0x100000 count=0x10000' 'Flush '; do
	grep -q "connection=1 $words" kit.log
	ok $? "arrives: $words"
done
# Zeroes that are slow: asked for fast they fail, else they are written.
for how in slow none; do
	kit --filter=nozero memory 4M zeromode=emulate fastzeromode=$how
	"$PLATTER" io -f raw -c 'write -P 1 0 64k' -c 'write -z -n 0 64k' -c 'read -P 1 0 64k' "$uri" >out.ours 2>&1
	grep -q 'not supported' out.ours && ! grep -q 'verification failed' out.ours
	ok $? "fastzeromode=$how: -n fails and changes nothing"
	check "fastzeromode=$how: without -n it is done" "$PLATTER" io -f raw -c 'write -P 1 0 64k' \
		-c 'write -z 0 64k' -c 'read -P 0 0 64k' "$uri"
done
kit --filter=nozero --filter=log memory 4M zeromode=none logfile="$work/kit.log"
check 'no zeroes at all: they are written' "$PLATTER" io -f raw -c 'write -P 1 0 64k' \
	-c 'write -z 0 64k' -c 'read -P 0 0 64k' "$uri"

kit --filter=exitlast file a.raw
check 'exitlast' "$ours" compare -f raw -F raw "$uri" keep.raw

kit --filter=delay file a.raw rdelay=40
"$ours" convert -f raw -O raw "$uri" out.raw >out.ours 2>&1 &
client=$!
sleep 0.3
kill -9 "$(cat /proc/"$server"/task/"$server"/children)" 2>/dev/null
wait "$client"
status=$?
[ $status = 1 ] && grep -q 'Transport endpoint\|Failed to connect' out.ours
ok $? 'a server that is killed is an error'
stop
says 1 'Failed to connect to the NBD server' info "$uri"
says 1 'It names no NBD server' info nbd:x

done_testing
