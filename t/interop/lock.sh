#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/interop/lock.sh - an image that QEMU uses is refused, and one that we use is
# refused by QEMU; readers get along; -U looks anyway.

. "${srctree:-.}/t/interop/peer.inc"

B=${B:-build}
hold=$B/t/fixtures/hold
[ -x "$hold" ] || { echo '1..0 # SKIP t/fixtures/hold is not built'; exit 0; }

create -f qcow2 a.q 16M
create -f raw a.raw 1M
mkfifo in out

# holding COMMAND...: runs it, and goes on once it has the image open
holding()
{
	"$@" <in >out 2>&1 &
	exec 3>in 4<out
}

let_go()
{
	exec 3>&-
	cat <&4 >/dev/null
	exec 4<&-
	wait
}

qemu_holds() # qemu-io's arguments
{
	holding qemu-io "$@"
	echo length >&3
	read -r line <&4
	case $line in
	*MiB*) ;;
	*) echo "# qemu-io says: $line" ;;
	esac
}

we_hold() # MODE FILE
{
	holding "$hold" "$@"
	read -r line <&4
	[ "$line" = held ] || echo "# hold says: $line"
}

# peer_says TEXT COMMAND...: fails with that text; TEXT empty: succeeds
peer_says()
{
	text=$1
	shift
	"$@" >peer.out 2>&1 </dev/null
	status=$?
	if [ -n "$text" ]; then
		[ $status != 0 ] && grep -qF -e "$text" peer.out
	else
		[ $status = 0 ]
	fi
	good=$?
	[ $good = 0 ] || { echo "# status $status"; sed 's/^/# /' peer.out; }
	ok $good "${text:-nothing against}: $*"
}

shared='Failed to get shared "write" lock'
own='Failed to get "write" lock'

# QEMU writes: a virtual machine's image.
qemu_holds -f qcow2 a.q
says 1 "$shared" info a.q
says 1 "$shared" convert -O raw a.q b.raw
says 1 "$shared" check a.q
says 1 "$own" create -f qcow2 a.q 16M
says 1 "$own" resize a.q 32M
says 0 'file format: qcow2' info -U a.q
check 'convert -U' "$ours" convert -U -O raw a.q b.raw
peer_says "$shared" "$hold" ro a.q
peer_says "$own" "$hold" rw a.q
peer_says '' "$hold" ro-shared a.q
let_go
check "let go: info" "$ours" info a.q
check "let go: check" "$ours" check a.q

qemu_holds -f raw a.raw
peer_says "$shared" "$hold" ro a.raw
peer_says "$shared" "$hold" rw a.raw
peer_says '' "$hold" rw-shared a.raw
let_go

# QEMU reads.
qemu_holds -r -f qcow2 a.q
says 0 'file format: qcow2' info a.q
check 'check' "$ours" check a.q
peer_says '' "$hold" ro a.q
let_go
qemu_holds -r -U -f qcow2 a.q
peer_says '' "$hold" rw a.q
let_go

# We write.
we_hold rw a.q
peer_says "$shared" "$peer" info a.q
peer_says "$shared" "$peer" convert -f qcow2 -O raw a.q b.raw
peer_says "$own" "$peer" create -f qcow2 a.q 16M
peer_says "$own" qemu-io -f raw -c 'write 0 1' a.q
peer_says '' "$peer" info -U a.q
peer_says '' qemu-io -r -f raw -U -c 'read 0 1' a.q
let_go
check "let go: qemu-io writes" qemu-io -f qcow2 -c 'write 0 64k' a.q

# We read.
we_hold ro a.q
peer_says '' "$peer" info a.q
peer_says '' qemu-io -r -f qcow2 -c 'read 0 64k' a.q
peer_says "$own" qemu-io -f qcow2 -c 'write 0 64k' a.q
let_go

# We share.
we_hold rw-shared a.raw
peer_says '' qemu-io -f raw -c 'write 0 64k' a.raw
peer_says "$shared" "$peer" convert -f raw -O raw a.raw b.raw
let_go
we_hold ro-shared a.raw
peer_says '' qemu-io -f raw -c 'write 0 64k' a.raw
let_go

done_testing
