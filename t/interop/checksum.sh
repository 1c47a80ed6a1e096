#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/interop/checksum.sh - the checksums of images: published vectors, one sum for one
# content in any format, and lists that sha256sum and platter verify for each other.

. "${srctree:-.}/t/interop/peer.inc"

server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; cd / && rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

# sums TO ARGS...: prints that digest
sums()
{
	want=$1
	shift
	got=$("$PLATTER" checksum "$@" 2>sums.err) || cat sums.err
	[ "${got%% *}" = "$want" ] || echo "# $got"
	[ "${got%% *}" = "$want" ]
	ok $? "checksum $*"
}

sum_of() # ARGS...
{
	"$PLATTER" checksum "$@" | cut -d' ' -f1
}

# ---- vectors
: >empty
printf A >one
truncate -s 65537 zeroes
truncate -s 6G long
head -c 1M /dev/zero | tr '\0' '\253' >ab
i=0
while [ $i -lt 256 ]; do
	# shellcheck disable=SC2059
	printf "\\$(printf %o $i)"
	i=$((i + 1))
done >bytes
i=0
while [ $i -lt 1024 ]; do
	cat bytes
	i=$((i + 1))
done >mixed
head -c 300000 /dev/zero >>mixed
printf xyz >>mixed
sums af5570f5a1810b7af78caf4bc70a660f0df51e42baf91d4de5b2328de0e83dfc empty
sums 11ce619e301aa30251795d3ccecfd8fe0b8046570c6a23e6f718560d4f3a3cc9 -f raw one
sums 0288cd419e65f11047a16b54cd65565547115cd2dd2fa9433e5cc3fa4d464ead zeroes
sums 35755eec2ba385351a26ceccf588f34e5374e144972dd656372c950877321633 ab
sums 3ca9914930fd93e43ea96c4a72416b7bd0f0009f8fe3efb720b5004f656e244b mixed
sums af207a381633092b0d1d945edbc0544ff05637a67fb66d93c1b1363c26e776d9 long
printf A >stdin
sums 60fb4e2bdf7dfc32f8230836f7453a77e665e4a1d3cc117944e0296d40b7800c - <stdin

# ---- the same content
create -f raw a.raw 64M
IO_FORMAT=raw io a.raw 'write -P 1 1M 3M' 'write -P 2 17M 64k' 'write -P 0 30M 1M' \
	'write -P 5 32771k 17k' 'write -P 3 67108352 512'
"$peer" convert -f raw -O qcow2 a.raw a.q
"$peer" convert -c -f raw -O qcow2 a.raw packed.q
"$peer" convert -f raw -O qcow2 -o cluster_size=512 a.raw small.q
cp --sparse=never a.raw full.raw
create -f qcow2 -b a.q -F qcow2 over.q
create -f qcow2 base.q 64M
io base.q 'write -P 9 1M 3M' 'write -P 2 17M 64k' 'write -P 7 40M 1M' 'write -P 5 32771k 17k'
create -f qcow2 -b base.q -F qcow2 chain.q
io chain.q 'write -P 1 1M 3M' 'write -z 40M 1M' 'write -P 3 67108352 512'
truth=$(sum_of -f raw a.raw)
for f in full.raw a.q packed.q small.q over.q chain.q; do
	sums "$truth" $f
done
sums "$truth" -T none a.q
sums "$truth" -f qcow2 -T writeback -U chain.q
sums "$truth" --image-opts driver=qcow2,file.filename=chain.q
sums "$truth" 'json:{"driver": "qcow2", "file": {"driver": "file", "filename": "chain.q"}}'
for n in 1 2 7; do
	sums "$truth" --threads $n -m $n chain.q
	sums "$truth" -f raw --threads $n --block-size 64k a.raw
done
sums "$truth" - <a.raw
mkfifo pipe
cat a.raw >pipe &
sums "$truth" - <pipe
wait
[ "$(sum_of --block-size 4k a.q)" = "$(sum_of --block-size 4k -f raw a.raw)" ] &&
	[ "$(sum_of --block-size 4k a.q)" != "$truth" ]
ok $? 'another block size is another sum'
IO_FORMAT=raw io full.raw 'write -P 1 20M 1'
[ "$(sum_of full.raw)" != "$truth" ]
ok $? 'one byte makes a difference'

# ---- plain: what sha256sum and its like say
sum=$(sha256sum <a.raw | cut -d' ' -f1)
for f in a.raw a.q packed.q chain.q; do
	sums "$sum" --plain $f
done
sums "$(sha256sum <one | cut -d' ' -f1)" --plain one
sums "$(sha256sum <mixed | cut -d' ' -f1)" --plain --threads 3 mixed
sums "$(sha256sum <mixed | cut -d' ' -f1)" --plain - <mixed
for d in md5 sha1 sha512 blake2b-512:b2; do
	tool=${d#*:}
	d=${d%%:*}
	sums "$(${tool}sum <mixed | cut -d' ' -f1)" --plain --digest $d mixed
done
sums "$(openssl dgst -sha512-256 -r mixed | cut -d' ' -f1)" --plain --digest SHA512-256 mixed

# ---- lists
nl='new
line'
cr=$(printf 'a\rb')
cp mixed "$nl"
cp one 'back\slash'
cp one "$cr"
"$PLATTER" checksum --plain mixed "$nl" 'back\slash' "$cr" empty >list
sha256sum mixed "$nl" 'back\slash' "$cr" empty >list.peer
cmp list list.peer
ok $? 'the lines of sha256sum'
sha256sum --quiet -c list
ok $? 'sha256sum -c verifies our list'
sha256sum -c list.peer >out.peer
"$PLATTER" checksum --plain --check list.peer >out.ours
ok $? 'we verify the list of sha256sum'
cmp out.peer out.ours
ok $? 'and say the same about it'
[ -z "$("$PLATTER" checksum --plain -q --check list)" ]
ok $? '-q: not a word about what is right'
sed 's/^\(.*[0-9a-f]\)  mixed$/\1 *mixed/' list | "$PLATTER" checksum --plain -c - >out.ours
[ $? = 0 ] && grep -qx 'mixed: OK' out.ours
ok $? 'from standard input, with an asterisk'

# verdict NAME: both say the same about `list`, but for the name of the program
verdict()
{
	sha256sum -c list >out.peer 2>err.peer
	echo $? >>out.peer
	"$PLATTER" checksum --plain --check list >out.ours 2>err.ours
	echo $? >>out.ours
	cmp -s out.peer out.ours &&
		[ "$(grep WARNING err.peer | cut -d: -f2-)" = \
			"$(grep WARNING err.ours | cut -d: -f2-)" ]
	status=$?
	[ $status = 0 ] || blame verdict
	ok $status "verdict: $1"
}
{
	cat list.peer
	echo nonsense
} >list
verdict 'a line that is none'
sed '1s/^./x/' list.peer >list
verdict 'a digit that is none'
rm one
sed 's/  mixed$/  one/' list.peer >list
verdict 'a file that is not there'
{
	sha256sum ab ab mixed
	sha256sum mixed ab | sed 's/^..../0000/'
	echo x
	echo y
} >list
verdict 'all at once'
echo x >list
verdict 'nothing that could be verified'
"$PLATTER" checksum -q a.q packed.q ab >list
says 0 'packed.q: OK' checksum --check list
IO_FORMAT=qcow2 io packed.q 'write -P 3 0 1'
says 1 'packed.q: FAILED' checksum --check list
says 1 '1 computed checksum did NOT match' checksum --check list
says 1 '"result": "FAILED"' checksum --check --output=json list

# ---- the rest of the interface
says 0 '"length": 67108864' checksum --output=json a.q
says 0 "\"checksum\": \"$truth\"" checksum --output=json a.q
says 0 '"method": "plain"' checksum --output=json --plain a.q
"$PLATTER" checksum -p a.q >out
[ "$(tr '\r' '\n' <out | grep -c '(100.00/100%)')" -ge 1 ] && grep -q "^$truth  a.q$" out
ok $? 'checksum -p'
says 1 "Invalid value for parameter 'digest'" checksum --digest sha257 a.q
says 1 'Invalid block size' checksum --block-size 1000 a.q
says 1 'Could not open' checksum nothing.q
says 1 'Expecting' checksum
says 1 'Invalid number of coroutines' checksum -m 17 a.q
says 1 'is not trusted' checksum --untrusted chain.q
says 0 "$truth" checksum --untrusted a.q
"$PLATTER" checksum nothing.q a.q >out 2>/dev/null
[ $? = 1 ] && grep -q "^$truth  a.q$" out
ok $? 'the others are summed up though one cannot be opened'

# A table that cannot be: the offset of the guest is named.
cp a.q bad.q
l1=$(od -An -tx1 -j 40 -N 8 bad.q | tr -d ' ')
l2=$(od -An -tx1 -j $((0x$l1 + 1)) -N 7 bad.q | tr -d ' ')
printf '\200\0\0\0\0\5\2\0' | dd of=bad.q bs=1 seek=$((0x$l2 + 8 * 16)) conv=notrunc status=none
says 1 'offset 1048576' checksum bad.q
says 1 'offset 1048576' checksum --plain bad.q

# Nothing is as quick as nothing, and takes no memory.
create -f qcow2 huge.q 1T
(
	# (Sanitizers need more than there is.)
	(ulimit -v 600000 && "$PLATTER" --version) >/dev/null 2>&1 && ulimit -v 600000
	timeout 50 "$PLATTER" checksum --threads 2 huge.q >out
)
[ "$(cat out)" = "$(sum_of --threads 1 huge.q)  huge.q" ]
ok $? 'an empty TiB'

# ---- libcrypto is not needed before it is
if grep -q '^CONFIG_CZ_CRYPTO_DLOPEN=y' "${O:-$B}/.config" 2>/dev/null; then
	mkdir lib
	echo nothing >lib/libcrypto.so.3
	LD_LIBRARY_PATH=$work/lib "$PLATTER" info huge.q >log 2>&1
	ok $? 'info without libcrypto'
	LD_LIBRARY_PATH=$work/lib "$PLATTER" checksum huge.q >log 2>&1
	[ $? = 1 ] && grep -q 'Can not access a needed shared library' log
	ok $? 'a checksum without libcrypto'
else
	tests=$((tests + 1))
	echo "ok $tests - without libcrypto # SKIP this build is linked with it"
fi

# ---- NBD
if ! command -v qemu-nbd >/dev/null; then
	tests=$((tests + 1))
	echo "ok $tests - over NBD # SKIP qemu-nbd is not installed"
elif ! grep -q '^CONFIG_BLK_NBD=y' "${O:-$B}/.config" 2>/dev/null; then
	tests=$((tests + 1))
	echo "ok $tests - over NBD # SKIP this build has no NBD client"
else
	timeout 50 qemu-nbd -t -r -f qcow2 -k "$work/sock" chain.q &
	server=$!
	n=0
	while [ ! -S sock ] && [ $n -lt 200 ]; do
		n=$((n + 1))
		sleep 0.05
	done
	sums "$truth" "nbd+unix:///?socket=$work/sock"
	sums "$sum" --plain "nbd+unix:///?socket=$work/sock"
	sums "$truth" --image-opts "driver=raw,file.driver=nbd,file.server.type=unix,file.server.path=$work/sock"
fi
done_testing
