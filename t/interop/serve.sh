#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/interop/serve.sh - platter serve and the clients that people use: nbdinfo, nbdcopy,
# qemu-img, qemu-io; several at a time, TLS, bitmaps, socket activation, many connections.
# Servers listen on Unix sockets in the test's folder and on the loopback, and end with it.

. "${srctree:-.}/t/interop/peer.inc"

for p in nbdinfo nbdcopy qemu-nbd; do
	command -v $p >/dev/null || { echo "1..0 # SKIP $p is not installed"; exit 0; }
done
ln -s "$PLATTER" bin/qemu-nbd
nbd=$work/bin/qemu-nbd
sock=$work/sock
uri="nbd+unix:///?socket=$sock"
server=

stop()
{
	[ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null
	server=
}
trap 'stop; cd / && rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

up()
{
	n=0
	while [ ! -S "$sock" ] && kill -0 "$server" 2>/dev/null && [ $n -lt 400 ]; do
		n=$((n + 1))
		sleep 0.05
	done
}

# serve ARGUMENT...: goes on once it listens
serve()
{
	stop
	rm -f "$sock"
	timeout 100 "$nbd" -k "$sock" "$@" 2>server.err &
	server=$!
	up
}

# the server ends by itself, with status 0
gone()
{
	wait "$server"
	status=$?
	server=
	[ $status = 0 ] || sed 's/^/# /' server.err
	ok $status "$1"
}

client() # NAME COMMAND...
{
	name=$1
	shift
	check "$name" timeout 60 "$@"
}

create -f raw a.raw 32M
IO_FORMAT=raw io a.raw 'write -P 1 1M 3M' 'write -P 2 17M 64k' 'write -P 3 33553920 512'
head -c 8M /dev/urandom | dd of=a.raw bs=1M seek=20 conv=notrunc status=none
cp --sparse=always a.raw keep.raw
qemu-img convert -f raw -O qcow2 -c a.raw a.q

# What nbdinfo says of ours is what it says of the peer.
for format in raw:a.raw qcow2:a.q; do
	file=${format#*:}
	format=${format%:*}
	timeout 100 qemu-nbd -t -e 4 -f $format -x ex -D 'some words' -k "$work/peer" "$file" &
	other=$!
	n=0
	while [ ! -S peer ] && [ $n -lt 400 ]; do n=$((n + 1)); sleep 0.05; done
	theirs="nbd+unix:///ex?socket=$work/peer"
	nbdinfo --json "$theirs" | grep -v '"uri"' >info.peer
	nbdinfo --map "$theirs" >map.peer
	qemu-img map --output=json --image-opts \
		"driver=nbd,server.type=unix,server.path=$work/peer,export=ex" >qmap.peer
	qemu-nbd -L -k "$work/peer" | grep -v flags >list.peer
	kill $other && wait $other
	rm -f peer
	serve -t -e 4 -f $format -x ex -D 'some words' "$file"
	ours_uri="nbd+unix:///ex?socket=$sock"
	nbdinfo --json "$ours_uri" | grep -v '"uri"' >info.ours
	nbdinfo --map "$ours_uri" >map.ours
	qemu-img map --output=json --image-opts \
		"driver=nbd,server.type=unix,server.path=$sock,export=ex" >qmap.ours
	qemu-nbd -L -k "$sock" | grep -v flags >list.ours
	check "$format: nbdinfo says the same" diff info.peer info.ours
	check "$format: nbdinfo --map too" diff map.peer map.ours
	check "$format: qemu-img map too" diff qmap.peer qmap.ours
	check "$format: qemu-nbd -L too" diff list.peer list.ours
	client "$format: an export that is not there" sh -c "! nbdinfo '$uri' 2>/dev/null"
	client "$format: nbdcopy from" nbdcopy "$ours_uri" out.raw
	check "$format: the same content" cmp out.raw keep.raw
	client "$format: large requests" nbdcopy --request-size=16777216 "$ours_uri" out.raw
	check "$format: the same content again" cmp out.raw keep.raw
	client "$format: qemu-img compare" "$peer" compare -f raw -F raw "$ours_uri" keep.raw
	client "$format: qemu-img convert" "$peer" convert -f raw "$ours_uri" -O qcow2 out.q
	check "$format: nothing is lost" "$peer" compare out.q keep.raw
	client "$format: qemu-img bench" "$peer" bench -c 2000 -d 64 -f raw "$ours_uri"
done

# Written by several clients of several connections each.
qemu-img create -q -f qcow2 b.q 64M
serve -t -e 0 -f qcow2 --discard=unmap b.q
timeout 60 nbdcopy keep.raw "$uri" &
one=$!
timeout 60 qemu-io -f raw -c 'write -P 7 40M 8M' -c 'write -z 50M 1M' -c 'flush' "$uri" >/dev/null &
two=$!
wait $one
ok $? 'nbdcopy to'
wait $two
ok $? 'while another one writes'
client 'without structured replies' nbdcopy --request-size=4194304 --connections=1 "$uri" all.raw
client 'qemu-io reads it' qemu-io -f raw -c 'read -P 7 40M 8M' -c 'read -P 0 50M 1M' \
	-c 'read -P 3 33553920 512' -c 'discard 40M 8M' -c 'write -f -P 9 63M 1M' "$uri"
client 'a write past the end is refused' sh -c "! qemu-io -f raw -c 'write 64M 512' '$uri'"
stop
check 'the image is sound' "$peer" check -f qcow2 b.q
qemu-io -f qcow2 -c 'read -P 9 63M 1M' b.q | grep -q 'read 1048576'
ok $? 'what was written is in it'
dd if=all.raw of=part.raw bs=1M count=32 status=none
check 'what was copied is in it' cmp part.raw keep.raw
[ ! -e "$sock" ]
ok $? 'the socket is gone'

# Read-only is read-only for everyone.
serve -r -t -e 3 -f raw a.raw
client 'nbdinfo: read-only' nbdinfo --is read-only "$uri"
client 'a write is refused' sh -c "! qemu-io -f raw -c 'write 0 512' '$uri' 2>/dev/null"
check 'nothing has changed' cmp a.raw keep.raw

# One client and the end; looking at it is no end.
serve -f raw a.raw
client 'who only asks' nbdinfo --list "$uri"
client 'who uses it' nbdinfo --map "$uri"
gone 'it ends with its last client'
serve -f raw -e 2 a.raw
client 'nbdcopy, several connections' nbdcopy "$uri" out.raw
gone 'it ends after all of them'

# Contexts
qemu-img create -q -f qcow2 -b a.raw -F raw top.q
IO_FORMAT=qcow2 io top.q 'write -P 1 64k 128k'
qemu-img bitmap --add -g 64k top.q b0
IO_FORMAT=qcow2 io top.q 'write -P 5 1M 100k' 'write -P 6 5M 64k'
timeout 100 qemu-nbd -t -r -A -f qcow2 -k "$work/peer" top.q &
other=$!
n=0
while [ ! -S peer ] && [ $n -lt 400 ]; do n=$((n + 1)); sleep 0.05; done
nbdinfo --map=qemu:allocation-depth "nbd+unix:///?socket=$work/peer" >map.peer
kill $other && wait $other
serve -t -r -A -B b0 -f qcow2 top.q
nbdinfo --map=qemu:allocation-depth "$uri" >map.ours
check 'the depth is what the peer says' diff map.peer map.ours
nbdinfo --map=qemu:dirty-bitmap:b0 "$uri" | awk '{ print $1, $2, $3 }' >map.ours
printf '0 1048576 0\n1048576 131072 1\n1179648 4063232 0\n5242880 65536 1\n5308416 28246016 0\n' |
	diff - map.ours >diff.out
ok $? 'the bitmap says what was written'
stop
says_nbd() # TEXT ARGUMENT...
{
	text=$1
	shift
	timeout 20 "$nbd" "$@" >out.ours 2>&1 </dev/null
	status=$?
	[ $status = 1 ] && grep -qF -e "$text" out.ours
	status_ok=$?
	[ $status_ok = 0 ] || { echo "# status $status"; sed 's/^/# /' out.ours; }
	ok $status_ok "says '$text'"
}
says_nbd "Bitmap 'nix' is not found" -r -B nix -f qcow2 -k "$sock" top.q
says_nbd 'needs a kernel device' -c /dev/nbd0 a.raw
says_nbd '--trace is not supported' -T x a.raw
says_nbd 'has to be smaller than the image size (33554432)' -r -o 32M -f raw -k "$sock" a.raw
says_nbd "Invalid offset 'x'" -o x -f raw -k "$sock" a.raw
TMPDIR=$work/nix says_nbd 'Could not create temporary file' -s -f raw -k "$sock" a.raw
says_nbd '--tls-authz and --selinux-label are not supported' --tls-authz=x a.raw
says_nbd 'Invalid number of arguments' -k "$sock"
says_nbd 'No such file or directory' -f raw -k "$sock" nix.raw
says_nbd 'Invalid cache mode' --cache=nix a.raw
says_nbd "No TLS credentials with id 'nix'" --tls-creds=nix -f raw -k "$sock" a.raw

# Snapshots inside the image
qemu-img create -q -f qcow2 snap.q 4M
IO_FORMAT=qcow2 io snap.q 'write -P 1 0 1M'
qemu-img snapshot -c s1 snap.q
IO_FORMAT=qcow2 io snap.q 'write -P 2 0 1M'
serve -l s1 -f qcow2 snap.q
client 'a snapshot' qemu-io -r -f raw -c 'read -P 1 0 1M' "$uri"
gone 'and the end'

# A part of the image, as the peer has it
for o in 1048576 17826304; do
	timeout 100 qemu-nbd -t -r -o $o -f raw -k "$work/peer" a.raw &
	other=$!
	n=0
	while [ ! -S peer ] && [ $n -lt 400 ]; do n=$((n + 1)); sleep 0.05; done
	nbdinfo --map "nbd+unix:///?socket=$work/peer" >map.peer
	nbdcopy "nbd+unix:///?socket=$work/peer" part.peer
	kill $other && wait $other
	serve -t -r -e 4 -o $o -f raw a.raw
	nbdinfo --map "$uri" >map.ours
	check "-o $o: the map is the peer's" diff map.peer map.ours
	client "-o $o: nbdcopy" nbdcopy "$uri" part.ours
	check "-o $o: the content is the peer's" cmp part.peer part.ours
done
serve -t -r -A -B b0 -o 1M -f qcow2 top.q
nbdinfo --map=qemu:allocation-depth "$uri" | awk '{ print $1, $2, $3 }' >map.ours
nbdinfo --map=qemu:dirty-bitmap:b0 "$uri" | awk '{ print $1, $2, $3 }' >>map.ours
printf '0 131072 1\n131072 4063232 2\n4194304 65536 1\n4259840 28246016 2\n' >want
printf '0 131072 1\n131072 4063232 0\n4194304 65536 1\n4259840 28246016 0\n' >>want
check '-o: depth and bitmap of that part' diff want map.ours
[ -s part.peer ] && [ -s map.peer ]
ok $? '-o: there was something to compare'
cp keep.raw part.raw
serve -t -e 4 -o 1000448 -f raw part.raw
client '-o: writes' qemu-io -f raw -c 'write -P 9 0 512' -c 'write -z 1M 64k' -c 'discard 2M 64k' \
	-c 'write -P 8 32553472 512' -c flush "$uri"
client '-o: not past the end' sh -c "! qemu-io -f raw -c 'write -P 8 32553984 512' '$uri' 2>/dev/null"
stop
cp keep.raw want.raw
IO_FORMAT=raw io want.raw 'write -P 9 1000448 512' 'write -z 2049024 64k' 'write -P 8 33553920 512'
check '-o: they are where they belong' "$peer" compare -f raw -F raw part.raw want.raw

# Writes into a temporary file
cp --sparse=always keep.raw part.raw
mkdir tmp
TMPDIR=$work/tmp serve -t -s -e 4 -f raw part.raw
client '-s: writes' qemu-io -f raw -c 'write -P 9 5 100000' -c 'write -z 17M 64k' -c flush \
	-c 'read -P 9 5 100000' -c 'read -P 0 17M 64k' -c 'read -P 1 2M 1M' "$uri"
client '-s: the next client sees them' qemu-io -f raw -c 'read -P 9 5 100000' "$uri"
[ -z "$(ls tmp)" ]
ok $? '-s: the file has no name'
stop
check '-s: the image is what it was' cmp part.raw keep.raw

# TCP: the loopback only
port=$((20000 + $$ % 20000))
timeout 100 "$nbd" -t -e 2 -p $port -f raw --pid-file=tcp.pid a.raw 2>server.err &
server=$!
n=0
while [ ! -s tcp.pid ] && [ $n -lt 400 ]; do n=$((n + 1)); sleep 0.05; done
client 'TCP' nbdcopy nbd://127.0.0.1:$port out.raw
check 'TCP: the same content' cmp out.raw keep.raw
hex=$(printf %04X $port)
awk -v p=":$hex" 'index($2, p) && $4 == "0A" && $2 !~ /^0100007F:|^0+1000000:/ { bad = 1 }
	END { exit bad }' /proc/net/tcp /proc/net/tcp6
ok $? 'TCP: nothing but the loopback'
stop

# In the background
rm -f "$sock"
check '--fork' timeout 20 "$nbd" --fork -t --pid-file="$work/pid" -k "$sock" -f raw a.raw
client '--fork: it listens' nbdinfo --size "$uri"
server=
pid=$(cat pid)
kill "$pid"
n=0
while kill -0 "$pid" 2>/dev/null && [ $n -lt 400 ]; do n=$((n + 1)); sleep 0.05; done
[ ! -e "$sock" ]
ok $? '--fork: it ends on SIGTERM and removes its socket'
timeout 20 "$nbd" --fork -k "$sock" -f raw nix.raw 2>/dev/null
[ $? = 1 ]
ok $? '--fork: what fails in the child fails'

# A socket that is handed over
if command -v systemd-socket-activate >/dev/null; then
	timeout 100 systemd-socket-activate -l "$work/act" "$nbd" -f raw a.raw 2>act.err &
	server=$!
	n=0
	while [ ! -S act ] && [ $n -lt 400 ]; do n=$((n + 1)); sleep 0.05; done
	client 'socket activation' nbdinfo --map "nbd+unix:///?socket=$work/act"
	gone 'socket activation: the end'
else
	ok 0 'socket activation # SKIP systemd-socket-activate is not installed'
fi

# TLS
echo "qemu:$(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')" >keys.psk
sed 's/:.\{8\}/:00000000/' keys.psk >wrong.psk
serve -t -e 4 -f raw --object tls-creds-psk,id=t0,dir="$work",endpoint=server --tls-creds=t0 a.raw
if [ -S "$sock" ]; then
	tls="nbds+unix://qemu@/?socket=$sock&tls-psk-file=$work"
	client 'TLS by key: nbdinfo' nbdinfo --json "$tls/keys.psk"
	client 'TLS by key: nbdcopy' nbdcopy "$tls/keys.psk" out.raw
	check 'TLS by key: the same content' cmp out.raw keep.raw
	client 'TLS by key: nbdcopy to' nbdcopy keep.raw "$tls/keys.psk"
	client 'TLS by key: qemu-img' "$peer" compare \
		--object tls-creds-psk,id=c0,dir="$work",endpoint=client --image-opts driver=raw,file.filename=keep.raw \
		"driver=nbd,server.type=unix,server.path=$sock,tls-creds=c0"
	client 'TLS by key: a wrong key' sh -c "! nbdinfo '$tls/wrong.psk' 2>/dev/null"
	client 'TLS by key: none' sh -c "! nbdinfo '$uri' 2>/dev/null"
elif grep -q CONFIG_BLK_NBD_SERVER_TLS server.err; then
	ok 0 'TLS # SKIP this build is without CONFIG_BLK_NBD_SERVER_TLS'
else
	ok 1 'TLS by key'
fi
certificate() # NAME SUBJECT EXTENSION
{
	openssl req -newkey rsa:2048 -nodes -keyout "$1-key.pem" -subj "/CN=$2" -out "$1.csr" 2>/dev/null
	printf '%s\n' "$3" >ext
	openssl x509 -req -in "$1.csr" -CA ca-cert.pem -CAkey ca-key.pem -CAcreateserial \
		-days 2 -extfile ext -out "$1-cert.pem" 2>/dev/null
}
if command -v openssl >/dev/null; then
	openssl req -x509 -newkey rsa:2048 -nodes -keyout ca-key.pem -subj /CN=ca -days 2 \
		-addext keyUsage=critical,keyCertSign -out ca-cert.pem 2>/dev/null
	certificate server localhost 'subjectAltName=DNS:localhost,IP:127.0.0.1'
	certificate client somebody 'extendedKeyUsage=clientAuth'
	serve -t -e 4 -f raw --object \
		tls-creds-x509,id=t0,dir="$work",endpoint=server,verify-peer=on --tls-creds=t0 a.raw
	tls="nbds+unix://localhost/?socket=$sock&tls-certificates=$work"
	if [ -S "$sock" ]; then
		client 'TLS by certificate: nbdinfo' nbdinfo --json "$tls"
		client 'TLS by certificate: nbdcopy' nbdcopy "$tls" out.raw
		check 'TLS by certificate: the same content' cmp out.raw keep.raw
		mkdir nobody && cp ca-cert.pem nobody
		client 'TLS by certificate: without one' \
			sh -c "! nbdinfo 'nbds+unix://localhost/?socket=$sock&tls-certificates=$work/nobody' 2>/dev/null"
	elif ! grep -q CONFIG_BLK_NBD_SERVER_TLS server.err; then
		ok 1 'TLS by certificate'
	fi
fi

# Crowds
serve -t -e 8 -f raw a.raw
client '2,000 connections' "$B/t/fixtures/crowd" "$sock" 2000
rss=$(awk '/VmHWM/ { print $2 }' "/proc/$(cat /proc/"$server"/task/"$server"/children | tr -d ' ')/status")
[ "$rss" -lt 200000 ]
ok $? "memory is bounded: $rss KiB"
client 'then others are served' nbdcopy "$uri" out.raw
check 'with the right content' cmp out.raw keep.raw

done_testing
