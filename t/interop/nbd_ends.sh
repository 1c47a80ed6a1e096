#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/interop/nbd_ends.sh - every command over NBD, at both ends; images made in exports
# that are there; TLS with certificates; nbd-server.

. "${srctree:-.}/t/interop/peer.inc"
. "${srctree:-.}/t/interop/nbd.inc"

command -v qemu-nbd >/dev/null || { echo '1..0 # SKIP qemu-nbd is not installed'; exit 0; }

create -f raw a.raw 16M
IO_FORMAT=raw io a.raw 'write -P 1 1M 3M' 'write -P 2 9M 64k' 'write -P 3 16776704 512'

# A second server: what is converted to, or compared with.
other=$work/other
to="nbd+unix:///?socket=$other"
second=
offer() # FILE FORMAT
{
	[ -z "$second" ] || { kill "$second" && wait "$second"; } 2>/dev/null
	rm -f "$other"
	timeout 50 qemu-nbd -t -f "$2" -k "$other" "$1" &
	second=$!
	n=0
	while [ ! -S "$other" ] && [ $n -lt 200 ]; do
		n=$((n + 1))
		sleep 0.05
	done
}
trap 'stop; [ -z "$second" ] || kill "$second" 2>/dev/null; cd / && rm -rf "$work"' EXIT

# ---- every command
serve qemu-nbd -t -r -e 8 -f raw -k "$sock" a.raw
says 0 'virtual size: 16 MiB' info -f raw "$uri"
same map -f raw --output=json "$uri"
want=$("$PLATTER" checksum -f raw a.raw | cut -d' ' -f1)
says 0 "$want" checksum -f raw "$uri"
says 0 'Run completed' bench -c 100 -f raw "$uri"
"$PLATTER" io -r -f raw -c 'read -P 2 9M 64k' -c 'read -P 0 0 1M' "$uri" >out
[ $? = 0 ] && ! grep -q 'verification failed' out
ok $? 'io: reads'
says 1 'read-only' io -f raw -c 'write 0 4k' "$uri"

truncate -s 16M b.raw
offer b.raw raw
check 'convert -n, NBD at both ends' "$ours" convert -n -f raw -O raw "$uri" "$to"
check 'compare, NBD at both ends' "$ours" compare -f raw -F raw "$uri" "$to"
check 'io: writes' "$PLATTER" io -f raw -c 'write -P 7 5000 777' -c 'flush' -c 'read -P 7 5000 777' "$to"
check 'io: zeroes and discards' "$PLATTER" io -f raw -c 'write -z 1M 1M' -c 'discard 2M 1M' "$to"
says 1 'mismatch at offset 4608' compare -f raw -F raw "$uri" "$to"
IO_FORMAT=raw io a.raw 'write -P 7 5000 777' 'write -z 1M 1M'
check 'bench -w' "$ours" bench -w -c 100 -f raw --pattern=9 -o 2M -s 4k -S 4k "$to"
[ "$(od -An -tx1 -j 2101248 -N 2 b.raw)" = ' 09 09' ]
ok $? 'bench -w: has written'

# ---- an export is there already, and takes an image as a block device does
head -c 16M /dev/zero | tr '\0' '\252' >c.raw
offer c.raw raw
check 'convert into an export full of something' "$ours" convert -f raw -O raw a.raw "$to"
cmp a.raw c.raw
ok $? 'nothing of that remains'
check 'with another name' "$ours" convert -f raw -O raw a.raw "nbd:unix:$other"
head -c 20M /dev/zero | tr '\0' '\252' >c.raw
offer c.raw raw
check 'convert to a longer export' "$ours" convert -f raw -O raw a.raw "$to"
check 'it has the image' cmp -n 16777216 a.raw c.raw
check 'convert to qcow2 in an export' "$ours" convert -f raw -O qcow2 a.raw "$to"
check 'qemu-img reads it' "$peer" compare -U -f raw -F qcow2 a.raw c.raw
check 'qemu-img finds nothing wrong' "$peer" check -U -q -f qcow2 c.raw
check 'and we read it there' "$ours" compare -f raw -F qcow2 a.raw "$to"
check 'create' "$ours" create -q -f raw "$to" 4M
says 0 'file format: raw' info "$to"
check 'create qcow2' "$ours" create -q -f qcow2 "$to" 1G
says 0 'virtual size: 1 GiB' info "$to"
truncate -s 1M c.raw
offer c.raw raw
says 1 'cannot grow' convert -f raw -O raw a.raw "$to"
says 1 'smaller' convert -n -f raw -O raw a.raw "$to"
says 1 'not supported' create -f raw -o preallocation=full "$to" 1M
says 1 'read-only' convert -f raw -O raw a.raw "$uri"
create -f qcow2 d.q 16M
offer d.q qcow2
check 'convert to an export that is sparse' "$ours" convert -f raw -O raw a.raw "$to"
[ "$(du -k d.q | cut -f1)" -lt 8192 ]
ok $? 'it remains sparse'
check 'with the content' "$ours" compare -f raw -F raw a.raw "$to"

# ---- TLS with certificates
if command -v openssl >/dev/null && qemu-nbd --help | grep -q tls-creds; then
	mkdir pki other-pki
	for d in pki other-pki; do
		openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=$d" \
			-keyout $d/ca-key.pem -out $d/ca-cert.pem 2>/dev/null
	done
	# The one that the server shows, and its clients.
	for who in server client; do
		openssl req -newkey rsa:2048 -nodes -subj "/CN=localhost" \
			-keyout pki/$who-key.pem -out $who.csr 2>/dev/null
		echo 'subjectAltName=DNS:localhost,IP:127.0.0.1' >ext
		openssl x509 -req -in $who.csr -CA pki/ca-cert.pem -CAkey pki/ca-key.pem -set_serial 7 \
			-days 2 -extfile ext -out pki/$who-cert.pem 2>/dev/null
	done
	cp pki/client-*.pem other-pki
	port=$((20000 + $$ % 20000))
	stop
	timeout 50 qemu-nbd -t -r -e 8 -f raw -b 127.0.0.1 -p $port --pid-file=pid \
		--object "tls-creds-x509,id=t,endpoint=server,dir=$work/pki,verify-peer=on" \
		--tls-creds t a.raw 2>server.err &
	server=$!
	n=0
	while [ ! -s pid ] && [ $n -lt 200 ]; do n=$((n + 1)); sleep 0.05; done
	tls="driver=raw,file.driver=nbd,file.server.type=inet,file.server.host=localhost,file.server.port=$port"
	tls="$tls,file.tls=require"
	"$PLATTER" checksum -f raw a.raw >out
	"$PLATTER" checksum --image-opts "$tls,file.tls-certificates=$work/pki" >out.tls
	[ "$(cut -d' ' -f1 out)" = "$(cut -d' ' -f1 out.tls)" ]
	ok $? 'TLS with certificates: checksum'
	check 'TLS with certificates: in a URI' "$ours" compare -f raw -F raw a.raw \
		"nbds://localhost:$port/?tls-certificates=$work/pki"
	says 1 'Failed to connect to the NBD server' info --image-opts \
		"$tls,file.tls-certificates=$work/other-pki"
	says 1 'Failed to connect to the NBD server' info "nbd://localhost:$port/"
else
	ok 0 'TLS with certificates # SKIP openssl or TLS in qemu-nbd is missing'
fi

# ---- vsock, by the loopback of this machine where the kernel has one
stop
vport=$((20000 + $$ % 20000))
vsock=nbd+vsock://1:$vport/
if command -v nbdkit >/dev/null; then
	timeout 50 nbdkit -f -r --vsock -p $vport -P "$work/vsock.pid" file a.raw 2>server.err &
	server=$!
	n=0
	while [ ! -s vsock.pid ] && kill -0 $server 2>/dev/null && [ $n -lt 200 ]; do
		n=$((n + 1))
		sleep 0.05
	done
fi
if "$ours" info -f raw "$vsock" >out.ours 2>&1; then
	check 'vsock: compare' "$ours" compare -f raw -F raw a.raw "$vsock"
	check 'vsock: by options' "$ours" compare --image-opts \
		driver=raw,file.filename=a.raw \
		"driver=raw,file.driver=nbd,file.server.type=vsock,file.server.cid=1,file.server.port=$vport"
else
	[ "$(wc -l <out.ours)" = 1 ] &&
		grep -q "Could not open '$vsock': Failed to connect to the NBD server: " out.ours
	ok $? 'vsock: what cannot be reached is one sentence'
	ok 0 "vsock: compare # SKIP no loopback of vsock here: $(sed 's/.*: //' out.ours)"
fi
stop

# ---- nbd-server
if command -v nbd-server >/dev/null; then
	stop
	cat >conf <<END
[generic]
	unixsock = $sock
	listenaddr = 127.0.0.1
	port = $((30000 + $$ % 20000))
	allowlist = true
[disk]
	exportname = $work/e.raw
	flush = true
	fua = true
	trim = true
END
	truncate -s 16M e.raw
	# In the foreground it takes one client on one connection, and ends with it: others
	# would be waited for.
	disk="driver=raw,file.driver=nbd,file.server.type=unix,file.server.path=$sock"
	disk="$disk,file.export=disk,file.connections=1"
	local=driver=raw,file.filename=a.raw
	once()
	{
		name=$1
		shift
		serve nbd-server -d -C "$work/conf" >/dev/null
		check "nbd-server: $name" "$@"
	}
	once 'convert to' "$ours" convert -n -f raw --target-image-opts a.raw "$disk"
	once 'compare' "$ours" compare --image-opts $local "$disk"
	cmp a.raw e.raw
	ok $? 'nbd-server: the same content'
	once 'convert from' "$ours" convert --image-opts -O qcow2 "$disk" e.q
	check 'nbd-server: it is right' "$peer" compare -f raw -F qcow2 a.raw e.q
	once 'flush, discard, FUA' "$PLATTER" io --image-opts \
		-c 'write -f -P 4 1M 64k' -c 'discard 4M 1M' -c flush -c 'read -P 4 1M 64k' "$disk"
	serve nbd-server -d -C "$work/conf" >/dev/null
	says 1 'Failed to connect to the NBD server' info "nbd+unix:///nothing?socket=$sock"
else
	ok 0 'nbd-server # SKIP it is not installed'
fi

# ---- libnbd is not needed before it is
if grep -q '^CONFIG_BLK_NBD_DLOPEN=y' "${O:-$B}/.config" 2>/dev/null; then
	mkdir lib
	echo nothing >lib/libnbd.so.0
	says 0 'file format: raw' info -f raw a.raw
	LD_LIBRARY_PATH=$work/lib
	export LD_LIBRARY_PATH
	says 1 'The NBD library cannot be loaded' info "$uri"
	says 0 'file format: raw' info -f raw a.raw
	unset LD_LIBRARY_PATH
else
	ok 0 'without libnbd # SKIP this build is linked with it'
fi
done_testing
