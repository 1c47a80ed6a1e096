#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# appliance_defconfig: the libraries without the program, installed, and doc/examples/
# appliance.c built with nothing but what pkg-config prints. It serves an encrypted overlay
# of a compressed image, which clients read and write; then it is told to stop.
n=0
unset MAKEFLAGS MAKELEVEL
root=$PWD/root

result() {
	n=$((n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		sed 's/^/#   /' log
	fi
}

make -C "$srctree" O="$PWD/out" appliance_defconfig >log 2>&1 &&
	make -C "$srctree" O="$PWD/out" -j2 >log 2>&1
result $? 'appliance_defconfig builds'
[ ! -e out/platter ] && make -C "$srctree" O="$PWD/out" install DESTDIR="$root" PREFIX=/p >log 2>&1
result $? 'the libraries are installed, and there is no program'
PKG_CONFIG_PATH=$root/p/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root \
	pkg-config --cflags --libs platter >flags 2>log &&
	gcc -Wall -Wextra -Werror "$srctree/doc/examples/appliance.c" $(cat flags) -o appliance >log 2>&1
result $? 'the example is built with what pkg-config prints'
lines=$(wc -l <"$srctree/doc/examples/appliance.c")
echo "$lines lines" >log
[ "$lines" -le 130 ]
result $? "it has $lines lines"
ldd ./appliance >log 2>&1 && ! grep -Eq 'lib(thr|cz|blk|fmt)\b' log && grep -q libcrypto log
result $? 'our libraries are in it, others may be shared'

image() {
	p=$B/platter
	seq 1 300000 | head -c 2M >base.raw && truncate -s 8M base.raw &&
		printf 'a passphrase' >key &&
		"$p" convert -c -O qcow2 base.raw base.qcow2 &&
		"$p" create -q -f qcow2 -b base.qcow2 -F qcow2 --object secret,id=k,file=key \
			-o encrypt.format=luks,encrypt.key-secret=k,encrypt.iter-time=10 over.qcow2
}

[ -e "$B/platter" ] || {
	echo "1..$n"
	exit
}
image >log 2>&1
result $? 'an encrypted overlay of a compressed image'

printf 'another' >wrong
./appliance over.qcow2 wrong sock >log 2>&1
[ $? = 1 ] && [ "$(wc -l <log)" = 1 ] && grep -qi 'key\|passphrase\|password' log && [ ! -e sock ]
result $? 'with the wrong key it says so, and ends'

# The program's own id is needed: timeout passes a signal on, but with a status of its own.
timeout 120 sh -c 'echo $$ >pid && exec ./appliance over.qcow2 key sock' >log 2>&1 &
server=$!
trap 'kill $server 2>/dev/null' EXIT
for i in $(seq 100); do
	grep -q '^serving 8388608 bytes' log && break
	sleep 0.1
done
grep -q '^serving 8388608 bytes' log
result $? 'it serves it'

# Clients are the peers where they are installed, and our own where they are not.
uri=nbd+unix:///?socket=$PWD/sock
client() {
	what=$1 peer=$2
	shift 2
	command -v "$peer" >/dev/null || peer=$B/platter
	case $peer in
	nbdcopy) set -- nbdcopy "$uri" "$1" ;;
	qemu-io) set -- qemu-io -f raw "$@" "$uri" ;;
	*) if [ $# = 1 ]; then
		set -- "$peer" convert -f raw -O raw "$uri" "$1"
	else
		set -- "$peer" io -f raw "$@" "$uri"
	fi ;;
	esac
	timeout 60 "$@" >log.client 2>&1
	code=$?
	cat log.client >>log
	! grep -qi 'fail\|error' log.client && [ $code = 0 ]
	result $? "$what ($peer)"
}
same() {
	cmp want.raw got.raw >>log 2>&1
	result $? "$1"
}

cp base.raw want.raw
client 'a client reads it all' nbdcopy got.raw
same 'which is the content of the backing file'
seq 900000 999999 | head -c 300000 >patch
dd if=patch of=want.raw bs=1000 seek=1500 conv=notrunc status=none
dd if=patch of=want.raw bs=1000 seek=5000 conv=notrunc status=none
dd if=/dev/zero of=want.raw bs=64k seek=1 count=2 conv=notrunc status=none
client 'another one writes' qemu-io -c "write -s patch 1500000 300000" \
	-c "write -s patch 5000000 300000" -c 'write -z 64k 128k' -c flush
client 'and all is read again' nbdcopy got.raw
same 'as it was written, and the rest as it was'

kill -TERM $(cat pid) && wait $server
result $? 'a signal ends it well'
[ ! -e sock ]
result $? 'and the socket is gone'

"$B/platter" check -q --object secret,id=k,file=key \
	--image-opts driver=qcow2,encrypt.key-secret=k,file.filename=over.qcow2 >log 2>&1
result $? 'check finds nothing'
"$B/platter" convert --object secret,id=k,file=key -O raw \
	--image-opts driver=qcow2,encrypt.key-secret=k,file.filename=over.qcow2 got.raw >log 2>&1
same 'the overlay has what was written'
grep -qa '900100' over.qcow2
[ $? = 1 ] && grep -qa '900100' patch
result $? 'and has it encrypted'
echo "1..$n"
