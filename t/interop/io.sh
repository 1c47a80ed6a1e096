#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/interop/io.sh - platter, called qemu-io, says and does what qemu-io does: the same
# commands on two equal images give the same lines (times and rates aside), the same
# messages, the same exit status and images that hold the same.
srctree=${srctree:-$(cd "$(dirname "$0")/../.." && pwd)}
B=${B:-${O:-$srctree/build}}
PLATTER=${PLATTER:-$B/platter}
export LC_ALL=C

if ! command -v qemu-io >/dev/null || ! command -v qemu-img >/dev/null; then
	echo '1..0 # SKIP no qemu-io'
	exit 0
fi
work=$(mktemp -d) && cd "$work" || exit 1
trap 'cd / && rm -rf "$work"' EXIT
mkdir ours theirs bin
ln -s "$PLATTER" bin/qemu-io

tests=0
result() # NAME: $why is empty if all is well
{
	tests=$((tests + 1))
	if [ -z "$why" ]; then
		echo "ok $tests - $1"
	else
		echo "not ok $tests - $1"
		printf '%s\n' "$why" | sed 's/^/# /'
	fi
}

# Times go; help is our own; the warning about a probed raw image has other words.
plain()
{
	sed -E -e 's/^(.* ops; ).*/\1/' -e 's/^([0-9]+,1,[0-9:]+):[0-9.]+,.*/\1/' \
		-e 's/^([a-z_]+) (\[.*\] |[a-z]+ |off )+.*-- .*/\1 USAGE/' \
		-e "s/^(qemu-io: can't open device [^:]*: ).*/\1/" \
		-e '/warning: Image format was not|WARNING: Image format|^         (Auto|Spec)/d'
}

# run WHO PROGRAM ARGS...: in the folder WHO
run()
{
	who=$1 prog=$2
	shift 2
	(
		cd "$who" && timeout 30 "$prog" "$@" <"$work/in" >../"$who.out" 2>../"$who.err"
		echo $? >../"$who.status"
	)
	for part in out err; do
		plain <"$who.$part" >"$who.$part.plain"
		[ -z "$sorted" ] || sort -o "$who.$part.plain" "$who.$part.plain"
	done
}

# both NAME ARGS...: runs both and compares
both()
{
	name=$1
	shift
	run theirs qemu-io "$@"
	run ours "$work/bin/qemu-io" "$@"
	why=
	for item in out.plain err.plain status; do
		diff "theirs.$item" "ours.$item" >difference ||
			why="$why$item (<: qemu-io, >: ours)
$(cat difference)
"
	done
	for item; do :; done
	case $item in
	*.qcow2) format=qcow2 ;;
	*.raw) format=raw ;;
	*) format= ;;
	esac
	if [ -n "$format" ] && [ -f "ours/$item" ]; then
		qemu-img compare -U -f $format -F $format "ours/$item" "theirs/$item" \
			>difference 2>&1 || why="$why$item: $(cat difference)
"
	fi
	result "$name"
}

# Fresh images: a.qcow2, an overlay o.qcow2, a.raw, and a file with a pattern.
fresh()
{
	rm -f ours/* theirs/*
	qemu-img create -q -f qcow2 theirs/a.qcow2 1M
	qemu-img create -q -f qcow2 theirs/base.qcow2 2M
	qemu-io -c 'write -q -P 1 0 1M' theirs/base.qcow2
	qemu-img create -q -f qcow2 -b base.qcow2 -F qcow2 theirs/o.qcow2 3M
	qemu-img create -q -f qcow2 -o compat=0.10,cluster_size=4k theirs/v2.qcow2 1M
	qemu-img create -q -f raw theirs/a.raw 1M
	printf 'hello' >theirs/pattern
	: >theirs/empty
	cp theirs/* ours/
}
: >in
fresh

for image in a.qcow2 v2.qcow2 a.raw; do
	f=${image##*.}
	both "$image: write and read" -f "$f" -c 'write -P 0xab 0 64k' -c 'read -P 0xab 0 64k' \
		-c 'read -P 0xac 0 64k' -c 'read -v 0 32' -c 'read -v 10 40' -c 'read 0 0' \
		-c 'write 0 0' -c 'read 65000 1000' -c 'write 100 1500' \
		-c 'read -P 0xcd 100 1500' -c 'read -P 0xab 1600 5' "$image"
	both "$image: reports" -f "$f" -c 'write -C 0 64k' -c 'read -C 0 3' \
		-c 'read -q 0 64k' -c 'read -qv 0 4' -c 'read -Cv 0 4' -c 'read -Cq 0 4' \
		-c 'read 0 1 -q' -c 'read -- 0 1' -c 'r 0 1k' -c 'w 0 1k' "$image"
	both "$image: vectors" -f "$f" -c 'writev 0 1k 2k 512' -c 'readv -v 0 16 5 11' \
		-c 'writev -q -P 3 0 512 10 5' -c 'readv -P 3 0 527' -c 'readv -P 3 0 100 428' \
		-c 'writev -f 4k 1k' -c 'readv 0 0 0' "$image"
	both "$image: zeroes" -f "$f" -c 'write -z 0 64k' -c 'write -z -u 64k 64k' \
		-c 'write -zfu 0 1k' -c 'write -z 3 5' \
		-c 'read -P 0 0 192k' -c 'write -z 0 0' -c 'write -p 0 1k' "$image"
	both "$image: discard and map" -f "$f" -c 'write -q 0 256k' -c 'discard 64k 64k' \
		-c 'discard 0 0' -c 'discard -C 0 4k' -c 'discard -q 0 4k' -c map \
		-c 'alloc 0 1M' -c 'alloc 0' -c 'alloc 300k 10' -c 'alloc 0 10T' \
		-c 'alloc 1025 1' -c 'alloc 3M 1' -c flush -c length "$image"
	both "$image: past the end" -f "$f" -c 'read 1M 1k' -c 'read 1048575 2' \
		-c 'write 1M 64k' -c 'write -z 1M 1' -c 'discard 1M 1k' -c 'discard 0 5M' \
		-c 'read 9223372036854775807 1' "$image"
	both "$image: truncate" -f "$f" -c 'truncate 2M' -c length -c map \
		-c 'write -P 7 1500k 100' -c 'read -P 7 1500k 100' -c 'truncate -m off 3M' \
		-c 'truncate 1M' -c length -c 'truncate -m foo 1M' -c 'truncate x' \
		-c 'truncate -x 1' -c 'truncate -m' "$image"
	both "$image: info" -f "$f" -c info "$image"
	both "$image: read only" -r -f "$f" -c 'write 0 1k' -c 'read -q 0 1k' \
		-c 'aio_write 0 1k' -c 'writev 0 1' -c 'discard 0 1k' -c 'truncate 1M' \
		-c 'write -z 0 1k' -c 'write -z' -c 'write -y 0 1' -c flush "$image"
	both "$image: a pattern file" -f "$f" -c 'write -s pattern 3 16' -c 'read -v 0 24' \
		-c 'write -s nope 0 16' -c 'write -s empty 0 16' -c 'write -s pattern -P 1 0 1' \
		"$image"
	both "$image: part of the pattern" -f "$f" -c 'read -P 9 -s 512 -l 256 4k 1k' \
		-c 'read -P 9 -s 512 4k 1k' -c 'read -P 9 -l 2k 4k 1k' -c 'read -s 1 0 1k' \
		-c 'read -l 1 0 1k' -c 'read -P 9 -s 1k 4k 1k' -c 'read -P 0 -s 1025 0 1k' \
		-c 'read -P 0 -s x 0 1k' -c 'read -P 0 -s -1 0 1k' "$image"
done
both 'an overlay' -c 'write -q 64k 64k' -c 'write -zq 256k 64k' -c 'write -zq 512k 64k' \
	-c 'write -q 700k 10k' -c 'discard -q 512k 64k' -c map -c 'alloc 0 3M' \
	-c 'read -P 1 0 64k' -c 'read -P 0 1M 2M' -c 'read -P 0 512k 64k' \
	-c 'write -z 900k 100k' -c map o.qcow2
both 'zeroes without falling back' -f qcow2 -c 'write -zn 128k 64k' -c 'write -znu 3 5' a.qcow2

both 'numbers' -f raw -c 'read abc 1' -c 'read 0 1x' -c 'read 0 -1' -c 'read -1 1' \
	-c 'read 0 3G' -c 'read 0x10 0x20' -c 'read 010 1' -c 'read 1.5k 1' -c 'read 1b 1' \
	-c 'read 1s 1' -c 'read 0 1KiB' -c 'read 0 1e3' -c 'read 0 2147483137' \
	-c 'read 9223372036854775808 1' -c 'write 0 99999999999999999999' -c 'write 0 3g' \
	-c 'write -z 0 3g' -c 'write -nz 0 3g' -c 'discard 0 3g' -c 'writev 0 1k 2g' \
	-c 'readv 0 1g 1g 1g' -c 'readv 0 99999999999999999999' -c 'alloc x' -c 'alloc 0 -1' \
	-c 'writev 0 1k x' -c 'read -P 256 0 1' -c 'read -P x 0 1' -c 'read -P -1 0 1' \
	-c 'read -P 0x0 0 1' -c 'write -P 1x 0 1' a.raw
both 'options that do not go together' -f raw -c 'write -z -P 1 0 1k' -c 'write -u 0 1k' \
	-c 'write -n 0 1k' -c 'write -c -f 0 1k' -c 'write -zb 0 1k' -c 'write -b 0 1k' \
	-c 'write -c 0 1k' -c 'write -zc 0 1k' -c 'read -b 0 1k' -c 'write -un 0 1k' \
	-c 'write -uc 0 1k' -c 'read -z 0 1' -c 'read -P' -c 'write -P 1 -P 2 0 1k' a.raw
both 'arguments' -f raw -c foo -c 'read 0' -c read -c 'read 0 1 2' -c sleep -c 'sleep x' \
	-c 'sleep -1' -c 'sleep 1.5' -c 'sleep 1' -c 'sleep 1 2' -c 'length 1' -c sigraise \
	-c 'sigraise x' -c 'sigraise 0' -c 'sigraise 99' -c 'help foo' -c 'help read x' \
	-c 'aio_flush 1' -c 'flush 1' -c 'map 1' -c 'info 1' -c alloc -c truncate -c aio_read \
	-c 'aio_read 0' -c '' -c '  read   0   1k  ' -c 'alloc 1 2 3' -c 'discard 0' a.raw
both 'quit' -f raw -c length -c 'quit 1' -c length a.raw
both 'quit after a failure' -f raw -c 'read x 1' -c q -c length a.raw
both 'sigraise' -f raw -c length -c 'sigraise 15' -c length a.raw
both 'abort' -f raw -c abort a.raw
both 'a failed verification is status 1' -f raw -c 'read -P 9 0 1k' a.raw
both 'one that is asynchronous is not' -f raw -c 'aio_read -P 9 0 1k' a.raw

sorted=y
both 'aio' -c 'aio_write -P 5 0 64k' -c aio_flush -c 'aio_read -P 5 0 64k' \
	-c 'aio_read -P 6 0 64k' -c aio_flush -c 'aio_read -v 0 16' -c 'aio_read -i 0 1k' \
	-c 'aio_write -i 0 1k' -c 'aio_write -z 4k 1k' -c 'aio_write -zu 0 64k 64k' \
	-c 'aio_write -zP 2 8k 1k' -c 'aio_write -u 0 1k' -c 'aio_read 3M 1k' \
	-c 'aio_write 9M 1k' -c 'aio_read -q 0 1k' -c 'aio_write -C 16k 1k' \
	-c 'aio_write 0 1k x' -c 'aio_write -P x 0 1' -c 'aio_read x 1' -c 'aio_write -z 0 x' \
	-c 'aio_write -b 0 1' -c 'aio_read 0 0' -c aio_flush -c 'read -P 0 4k 1k' a.qcow2
sorted=

both 'no file' -c length -c 'read 0 1' -c close -c foo -c 'sleep 1'
both 'open and close' -c 'open a.qcow2' -c length -c close -c 'open -o driver=raw a.qcow2' \
	-c length -c 'open x' -c close -c 'open nope' -c length -c 'open -r a.qcow2' \
	-c 'write 0 1' -c 'open -z a' -c 'open a b' -c open -c close -c 'open -t foo a.qcow2'
both 'open with options' -c 'open -o driver=qcow2,l2-cache-size=64k a.qcow2' -c length -c close \
	-c 'open -o driver=qcow2,cache-size=1M,file.locking=off a.qcow2' -c 'write -q -P 7 0 1k' \
	-c close -c 'open -r -s a.qcow2' -c 'write 0 512' -c close \
	-c 'open -s a.qcow2' -c 'write -q -P 8 0 1k' -c 'read -P 8 0 1k' -c close a.qcow2
both 'a snapshot that is forgotten' -s -f qcow2 -c 'write -q -P 9 0 100k' -c 'read -P 9 0 100k' \
	-c 'read -P 9 100k 1k' -c 'truncate 2M' -c length -c 'discard 0 64k' a.qcow2
both 'a snapshot of what is only read' -r -s -f qcow2 -c 'read 0 100k' -c 'write 0 1k' a.qcow2
both 'a file that is not there' -c length nope.qcow2
both 'a format that is unknown' -f foo -c length a.qcow2
both 'bad cache mode' -t foo -c length a.qcow2
both 'bad engine' -i foo -c length a.qcow2
both 'bad discard mode' -d foo -c length a.qcow2
both 'discard ignored' -d ignore -c 'write -q 0 256k' -c 'discard 0 256k' -c map v2.qcow2
both 'the last format counts' -f raw -f qcow2 -c length a.qcow2
for o in -n -nm '-t none' '-t directsync' '-t writethrough' '-t unsafe' '-i io_uring' \
	'-n -k' '-n -i io_uring' '-i threads' '-m' '-U -r' '-d unmap' '-d on' '-d off'; do
	# shellcheck disable=SC2086 # several words
	both "options $o" $o -c 'read -q 5 1000' -c 'read 0 100k' a.qcow2
done

printf 'length\nread 0 1k\nfoo\n\n  length  \nread 0 1x\nq\nlength\n' >in
both 'commands from standard input' -f qcow2 a.qcow2
printf 'length\nread 0 1k' >in
both 'a last line without newline' -f qcow2 a.qcow2
printf 'open a.qcow2\nlength\n' >in
both 'standard input without a file'

# What is ours alone.
: >in
why=
(cd ours && "$PLATTER" io -c length a.qcow2) >out 2>&1 && [ "$(cat out)" = '1 MiB' ] ||
	why=$(cat out)
result 'platter io'
why=
"$work/bin/qemu-io" --image-opts -c length driver=raw >out 2>&1 && why='status 0'
grep -q 'A block device must be specified' out || why="$why $(cat out)"
result '--image-opts without a file is refused with a sentence'
why=
: >ours/big.raw && truncate -s 2G ours/big.raw &&
	(cd ours && "$work/bin/qemu-io" -f raw -c 'read -P 0 100M 1025M' big.raw) >out 2>&1 ||
	why=$(cat out)
grep -q '^read 1074790400/1074790400 bytes at offset 104857600$' out || why="$why$(cat out)"
rm -f ours/big.raw
result 'a read of more than 1 GiB'
echo "1..$tests"
