#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/interop/luks.sh - LUKS volumes and encrypted qcow2 images, both ways with qemu-img and
# cryptsetup: contents, key slots, what info says, wrong keys, one secret for one file.

. "${srctree:-.}/t/interop/peer.inc"

KEYS='--object secret,id=s0,data=abc --object secret,id=s1,data=def'
printf abc >k0
printf def >k1
truncate -s 2097664 src.raw
dd if="$PLATTER" of=src.raw bs=1k count=1500 conv=notrunc status=none
dd if=/dev/zero of=src.raw bs=64k count=3 seek=5 conv=notrunc status=none

luks() { echo "driver=luks,key-secret=${2:-s0},file.filename=$1"; }
qcow2() { echo "driver=qcow2,encrypt.key-secret=${2:-s0},file.filename=$1"; }

# reads WHO OPTIONS: the image that the options name holds what src.raw does
reads()
{
	rm -f out.raw
	# shellcheck disable=SC2086
	"$1" convert $KEYS --image-opts "$2" -O raw out.raw && cmp src.raw out.raw
}

# peer_makes ARGS: qemu-img measures the time that a thread takes, which on a busy machine
# is none at times
peer_makes()
{
	for _ in 1 2 3 4 5; do
		# shellcheck disable=SC2086
		"$peer" "$@" $KEYS 2>peer.err && return
		grep -q 'CPU usage' peer.err || break
	done
	cat peer.err
	return 1
}

# ---- all ways of encrypting, both ways ----

both_ways() # OPTIONS
{
	rm -f ours.luks peer.luks
	# shellcheck disable=SC2086
	check "ours, read by qemu-img: $1" "$ours" convert $KEYS -O luks \
		-o "key-secret=s0,iter-time=50,$1" src.raw ours.luks
	check "  $1" reads "$peer" "$(luks ours.luks)"
	check "qemu-img's, read by ours: $1" peer_makes convert -O luks \
		-o "key-secret=s0,iter-time=50,$1" src.raw peer.luks
	check "  $1" reads "$ours" "$(luks peer.luks)"
}

for o in cipher-alg=aes-256 \
	cipher-alg=aes-128,cipher-mode=cbc,ivgen-alg=essiv,ivgen-hash-alg=sha256 \
	cipher-alg=aes-128,cipher-mode=xts,ivgen-alg=plain,hash-alg=sha1 \
	cipher-alg=aes-256,cipher-mode=ecb,hash-alg=sha512 \
	cipher-alg=cast5-128,cipher-mode=cbc,ivgen-alg=plain64,hash-alg=ripemd160; do
	both_ways $o
done

for o in cluster_size=64k cluster_size=512 extended_l2=on compat=0.10 \
	preallocation=metadata encrypt.cipher-mode=cbc,encrypt.cipher-alg=aes-128; do
	f=encrypt.format=luks,encrypt.key-secret=s0,encrypt.iter-time=50
	rm -f ours.q peer.q
	# shellcheck disable=SC2086
	check "qcow2 $o" "$ours" convert $KEYS -O qcow2 -o $f,$o src.raw ours.q
	check "  read by qemu-img" reads "$peer" "$(qcow2 ours.q)"
	# shellcheck disable=SC2086
	check "  checked by qemu-img" "$peer" check $KEYS --image-opts "$(qcow2 ours.q)"
	# shellcheck disable=SC2086
	check "  checked by ours" "$ours" check $KEYS --image-opts "$(qcow2 ours.q)"
	check "  qemu-img's" peer_makes convert -O qcow2 -o $f,$o src.raw peer.q
	check "  read by ours" reads "$ours" "$(qcow2 peer.q)"
	# shellcheck disable=SC2086
	check "  checked by ours" "$ours" check $KEYS --image-opts "$(qcow2 peer.q)"
done

# ---- info, map, the old encryption ----

same info ours.luks
same info --output=json ours.luks
same info ours.q
same info --output=json peer.q
# shellcheck disable=SC2086
same map $KEYS --output=json --image-opts "$(qcow2 ours.q)"
# shellcheck disable=SC2086
"$peer" create -q -f qcow2 $KEYS -o encrypt.format=aes,encrypt.key-secret=s0 aes.q 2097664
# shellcheck disable=SC2086
"$peer" convert -n $KEYS src.raw --target-image-opts "$(qcow2 aes.q)"
check 'the old encryption is read' reads "$ours" "$(qcow2 aes.q)"
same info aes.q
cp aes.q aes.was
# shellcheck disable=SC2086
says 1 'Writing to images with the old AES encryption' resize $KEYS \
	--image-opts "$(qcow2 aes.q)" +1M
check 'and left alone' cmp aes.q aes.was
# shellcheck disable=SC2086
says 1 'use encrypt.format=luks' create $KEYS -f qcow2 \
	-o encrypt.format=aes,encrypt.key-secret=s0 new.q 1M

# ---- what goes wrong ----

cp ours.luks was.luks
cp ours.q was.q
# shellcheck disable=SC2086
{
	says 1 'Invalid password, cannot unlock any keyslot' map $KEYS \
		--image-opts "$(luks ours.luks s1)"
	says 1 'Invalid password, cannot unlock any keyslot' map $KEYS \
		--image-opts "$(qcow2 ours.q s1)"
	says 1 "No secret with id 's9'" map $KEYS --image-opts "$(qcow2 ours.q s9)"
}
says 1 "Parameter 'key-secret' is required for cipher" map ours.luks
says 1 "Parameter 'encrypt.key-secret' is required for cipher" map ours.q
check 'no change' cmp ours.luks was.luks
check 'no change' cmp ours.q was.q

# ---- writing, over a backing file that is encrypted too ----

# shellcheck disable=SC2086
"$ours" create -q $KEYS -f qcow2 -o encrypt.format=luks,encrypt.key-secret=s1,encrypt.iter-time=50 \
	-u -b ours.q -F qcow2 over.q 2097664
cp src.raw model.raw
over="$(qcow2 over.q s1),backing.encrypt.key-secret=s0"
for c in 'write -P 1 100 1000' 'write -P 2 65530 200000' 'write -z 70000 3000' \
	'write -z 131072 65536' 'write -P 3 1000000 77' 'write -P 4 70000 512'; do
	# shellcheck disable=SC2086
	"$ours" io -c "$c" $KEYS --image-opts "$over" >/dev/null || echo "# $c failed"
	"$ours" io -f raw -c "$c" model.raw >/dev/null
done
mv model.raw src.raw
check 'writes of any alignment, read by qemu-img' reads "$peer" "$over"
check 'and by ours' reads "$ours" "$over"
# shellcheck disable=SC2086
check 'sound' "$peer" check $KEYS --image-opts "$over"

# ---- key slots ----

slot() { cryptsetup open --test-passphrase --type luks1 -d "$1" slots.luks; }
if command -v cryptsetup >/dev/null; then
	# shellcheck disable=SC2086
	{
		"$ours" create -q $KEYS -f luks -o key-secret=s0,iter-time=50 slots.luks 1M
		check 'opened by cryptsetup' slot k0
		check 'dumped by cryptsetup' cryptsetup luksDump slots.luks
		check 'a key added' "$ours" amend $KEYS -o state=active,new-secret=s1,iter-time=50 \
			--image-opts "$(luks slots.luks)"
		check 'opened by cryptsetup' slot k1
		check 'the first erased' "$ours" amend $KEYS -o state=inactive,old-secret=s0 \
			--image-opts "$(luks slots.luks s1)"
		slot k0 2>/dev/null
		[ $? = 2 ]
		ok $? 'it opens no more'
		says 1 'all data would be lost' amend $KEYS -o state=inactive,keyslot=1 \
			--image-opts "$(luks slots.luks s1)"
		check 'a key added by cryptsetup' cryptsetup luksAddKey --type luks1 -q \
			--pbkdf-force-iterations 1000 -d k1 slots.luks k0
		check 'opens here' "$ours" io -c 'read 0 4k' $KEYS \
			--image-opts "$(luks slots.luks)"
		# Key material that does not end with a sector: qemu-img 7.2 aborts
		"$ours" create -q $KEYS -f luks slots.luks 1M \
			-o key-secret=s0,iter-time=50,cipher-alg=aes-192,cipher-mode=cbc
		check 'key material that does not end with a sector' slot k0
		truncate -s 8M made.luks
		cryptsetup luksFormat --type luks1 -q --pbkdf-force-iterations 1000 -d k0 made.luks
		check 'made by cryptsetup' "$ours" io -c 'read 0 4k' $KEYS \
			--image-opts "$(luks made.luks)"
		truncate -s 1M data.raw
		cryptsetup luksFormat --type luks1 -q --header head.luks \
			--pbkdf-force-iterations 1000 -d k0 data.raw
		check 'a header apart, made by cryptsetup' "$ours" io -c 'write 0 4k' $KEYS \
			--image-opts "$(luks data.raw),header=head.luks"
		"$ours" create -q $KEYS -f luks -o key-secret=s1,iter-time=50,detached-header=on \
			head2.luks 0
		check 'a header apart, made by ours' cryptsetup open --test-passphrase \
			--header head2.luks --type luks1 -d k1 data.raw
	}
else
	ok 0 'key slots # SKIP cryptsetup is not installed'
fi

# ---- the same bytes ----

# shellcheck disable=SC2086
for f in 'luks -o key-secret=s0' 'qcow2 -o encrypt.format=luks,encrypt.key-secret=s0'; do
	sum=
	bad=0
	for how in '-m 1 --threads 1' '-m 16 --threads 5' '-m 8 -W'; do
		rm -f same
		"$ours" convert $how --reproducible seed $KEYS -O $f src.raw same || bad=1
		now=$(cksum same)
		[ "${sum:=$now}" = "$now" ] || bad=1
	done
	ok $bad "the same bytes: $f"
	"$ours" convert --reproducible other $KEYS -O $f src.raw same
	[ "$sum" != "$(cksum same)" ]
	ok $? 'other bytes from another seed'
done

done_testing
