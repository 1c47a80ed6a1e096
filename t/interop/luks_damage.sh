#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/interop/luks_damage.sh - LUKS headers with every field at its extremes, alone and
# inside qcow2; damaged keys, wrong keys. Each is one sentence and exit status 1 within a
# second of processor time (and 5 of any), or the right content where a slot is left that
# opens; and the image is what it was.

# shellcheck disable=SC2086 # lists of words, all over
PLATTER=${PLATTER:-${B:-build}/platter}
export LC_ALL=C
export ASAN_OPTIONS=exitcode=99 UBSAN_OPTIONS=exitcode=99 TSAN_OPTIONS=exitcode=99
work=$(mktemp -d) && cd "$work" || exit 1
trap 'cd / && rm -rf "$work"' EXIT
KEYS='--object secret,id=s0,data=abc --object secret,id=s1,data=def'
tests=0
case $S in
*address*|*thread*) limit=unlimited seconds=unlimited all='info amend' locked=amend ;;
*) limit=1048576 seconds=1 all='info map convert amend' locked='map convert amend' ;;
esac

result() # WHAT IS WRONG, NAME
{
	tests=$((tests + 1))
	if [ -z "$1" ]; then
		echo "ok $tests - $2"
	else
		echo "not ok $tests - $2"
		printf '%s' "$1" | sed 's/^/# /'
	fi
}

run() # ARGS...: sets $status; output in out and err
{
	(
		# shellcheck disable=SC3045 # dash and bash have it
		ulimit -v "$limit"
		# shellcheck disable=SC3045
		ulimit -t "$seconds"
		# shellcheck disable=SC2086
		exec timeout -k 1 5 "$PLATTER" "$@"
	) >out 2>err </dev/null
	status=$?
}

# what COMMAND SECRET OPTIONS OF THE IMAGE
what()
{
	keys="$KEYS --image-opts driver=$format,file.filename=$image,${key}key-secret=$2$3"
	# shellcheck disable=SC2086
	case $1 in
	info) run info $keys ;;
	map) run map $keys ;;
	convert) run convert $keys -O raw out.raw ;;
	amend) run amend $KEYS -o "${key}state=active,${key}new-secret=s1,${key}iter-time=1" \
		--image-opts "${keys##*--image-opts }" ;;
	esac
}

sentence() # TEXT: what is wrong with what was said, if anything
{
	[ "$status" = 1 ] || echo "exit status $status, not 1: $(head -c 300 err)"
	[ "$(wc -l <err)" = 1 ] || echo "not one line: $(head -c 300 err)"
	grep -q '^platter: [^ ].*[^.]$' err || echo "no sentence: $(head -c 300 err)"
	grep -q '[[:cntrl:]]' err && echo 'control characters'
	grep -qF -- "$1" err || echo "'$1' is not in: $(head -c 300 err)"
}

same() { [ "$(cksum <$image)" = "$before" ] || echo 'the image was changed'; }

poke() # OFFSET HEX...: bytes into the image
{
	at=$1
	shift
	# shellcheck disable=SC2059
	for h in "$@"; do printf "\\$(printf %03o "0x$h")"; done |
		dd of=$image bs=1 seek="$at" conv=notrunc status=none
}

number() { echo $((0x$(od -An -v -tx1 -j "$1" -N "$2" $image | tr -d ' \n'))); }

be32() { printf '%08x' "$1" | sed 's/../& /g'; }
be64() { printf '%016x' "$1" | sed 's/../& /g'; }

fresh() { cp good.$format $image; }

# refused NAME TEXT COMMANDS...: of the image as it is now
refused()
{
	name=$1 text=$2 why=
	shift 2
	before=$(cksum <$image)
	for c in "$@"; do
		what "$c" s0 "$more"
		r=$(sentence "$text")
		why="$why${r:+$c: $r
}"
	done
	r=$(same)
	result "$why$r" "$format: $name"
	fresh
}

bad() # NAME, TEXT, OFFSET IN THE LUKS HEADER, HEX...: a field
{
	name=$1 text=$2 off=$3
	shift 3
	poke $((luks + off)) "$@"
	# shellcheck disable=SC2086
	refused "$name" "$text" $all
}

letters() { i=0; while [ $i -lt "$1" ]; do echo 61; i=$((i + 1)); done; }

# The fields of the header at $luks of the image; payload and material are those of the
# image as it was made.
# shellcheck disable=SC2046
fields()
{
	payload=$(number $((luks + 104)) 4)
	slot0=$((luks + 208)) slot7=$((luks + 208 + 7 * 48))
	sector7=$(number $((slot7 + 40)) 4)
	bad magic 'not in LUKS format' 0 4d
	bad 'version 0' 'LUKS version 0 is not supported' 6 00 00
	bad 'version 2' 'LUKS version 2 is not supported' 6 00 02
	bad 'version 65535' 'LUKS version 65535 is not supported' 6 ff ff
	bad 'a cipher without end' "'cipher-name' of the LUKS header does not end" 8 $(letters 32)
	bad 'a mode without end' "'cipher-mode' of the LUKS header does not end" 40 $(letters 32)
	bad 'a hash without end' "'hash-spec' of the LUKS header does not end" 72 $(letters 32)
	bad 'a UUID without end' "'uuid' of the LUKS header does not end" 168 $(letters 40)
	bad 'a cipher of nothing' 'is not supported' 8 00
	bad 'a cipher of control characters' 'is not supported' 8 1b 5b 0a 07 00
	bad 'a mode of nothing' 'is not supported' 40 00
	bad 'a long mode' 'is not supported' 40 $(letters 31) 00
	bad 'a hash of nothing' 'is not supported' 72 00
	bad 'a long hash' 'is not supported' 72 $(letters 31) 00
	for n in 00000000 00000001 0000000f 00000011 00000020 00000041 7fffffff 80000000 \
		ffffffff; do
		bad "key-bytes 0x$n" 'LUKS' 108 $(echo $n | sed 's/../& /g')
	done
	for n in 00000000 08000001 80000000 ffffffff; do
		bad "0x$n iterations of the digest" 'An iteration count of the LUKS header' \
			164 $(echo $n | sed 's/../& /g')
		bad "0x$n iterations of slot 0" 'An iteration count of the LUKS header' \
			212 $(echo $n | sed 's/../& /g')
	done
	for n in 00000000 00ac71f2 0000deae ffffffff; do
		bad "slot 0 is 0x$n" 'LUKS key slot 0 is neither on nor off' \
			208 $(echo $n | sed 's/../& /g')
	done
	bad 'slot 7 is nothing' 'LUKS key slot 7 is neither on nor off' $((208 + 7 * 48)) 12
	for n in 00000000 00000001 00000f9f 00000fa1 ffffffff; do
		bad "0x$n stripes" 'does not have 4000 stripes' 252 $(echo $n | sed 's/../& /g')
	done
	for n in 0 1; do
		bad "material of slot 0 at sector $n, on the header" 'overlaps something else' \
			248 $(be32 $n)
	done
	bad 'material of slot 0 on that of slot 7' 'overlaps something else' \
		248 $(be32 "$sector7")
	bad 'material of slot 0 ends in that of slot 7' 'overlaps something else' \
		248 $(be32 $((sector7 - 1)))
	bad 'material of slot 0 in the payload' 'overlaps something else' \
		248 $(be32 $((payload - 1)))
	bad 'material of slot 0 past the end' 'overlaps something else' 248 ff ff ff ff
	bad 'material of slot 7, which is off, past the end' 'overlaps something else' \
		$((208 + 7 * 48 + 40)) 7f ff ff ff
	bad 'the payload in the header' 'overlaps something else' 104 00 00 00 01
	bad 'no payload' 'overlaps something else' 104 00 00 00 00
	bad 'the payload in key material' 'overlaps something else' 104 $(be32 "$((sector7 + 1))")
	both=$all
	all=$locked
	bad 'all slots are off' 'All LUKS key slots are off' 208 00 00 de ad
	bad 'a damaged digest' 'Invalid password' 115 ee
	bad 'another salt of the digest' 'Invalid password' 140 ee ee ee ee
	bad 'another salt of slot 0' 'Invalid password' 220 ee ee ee ee
	bad 'other iterations' 'Invalid password' 212 00 00 04 d2
	bad 'other key material' 'Invalid password' \
		$(($(number $((slot0 + 40)) 4) * 512 + 7777)) ee ee ee ee
	bad 'another hash' 'Invalid password' 72 73 68 61 31 00
	all=$both
}

# A second slot still opens what the first does not any more; both wrong keys.
other_slot()
{
	what amend s0
	cp $image two.$format
	before=$(cksum <$image)
	why=
	for s in s0 s1; do
		what convert $s
		cmp -s out.raw good.raw || why="$why$s: other content, $(cat err)
"
	done
	result "$why$(same)" "$format: two keys"
	poke $((luks + $(number $((luks + 208 + 40)) 4) * 512 + 1000)) ee ee ee
	before=$(cksum <$image)
	what convert s1
	why=
	cmp -s out.raw good.raw || why="$(head -c 300 err)
"
	result "$why$(same)" "$format: one damaged, the other opens"
	refused 'the damaged one does not' 'Invalid password' map convert
	what map s1
	result "$(sentence 'Invalid password')" "$format: a wrong key"
	what map s9
	result "$(sentence "No secret with id 's9'")" "$format: no key"
}

i=0
while [ $i -lt 128 ]; do
	printf '%0512d' $i
	i=$((i + 1))
done >good.raw

# ---- volumes ----

cipher() { echo "$1key-secret=s0,$1iter-time=1,$1cipher-alg=aes-128,$1cipher-mode=cbc"; }
more=
format=luks key='' image=image.luks luks=0
# shellcheck disable=SC2086
run convert --reproducible x $KEYS -O luks -o "$(cipher '')" good.raw good.luks
result "$(cat err)" 'a volume'
fresh
fields
bad 'the payload past the end' 'payload offset' 104 7f ff ff ff
bad 'the payload far past the end' 'payload offset' 104 ff ff ff ff
for n in 0 1 6 207 591; do
	truncate -s $n $image
	refused "cut to $n bytes" 'The file ends inside its LUKS header' $all
done
truncate -s 592 $image
refused 'the header alone' 'LUKS' $all
truncate -s $((payload * 512 - 1)) $image
refused 'no payload left' 'LUKS' $all
other_slot

# ---- a header apart ----

cp good.luks apart
more=,header=apart
for n in 0 1 591; do
	truncate -s $n apart
	refused "a header apart of $n bytes" 'The file ends inside its LUKS header' \
		$all
done
head -c 4096 good.luks >apart
refused 'a header apart without key material' 'lies outside the file' $all
head -c 4096 /dev/zero >apart
refused 'a header apart that is none' 'not in LUKS format' $all
rm apart
refused 'a header apart that is not there' 'Could not open' $all
mkdir apart
refused 'a header apart that is a folder' 'Could not open' $all
rmdir apart
more=

# ---- in qcow2 ----

format=qcow2 key=encrypt. image=image.qcow2
# shellcheck disable=SC2086
run convert --reproducible x $KEYS -O qcow2 \
	-o "encrypt.format=luks,$(cipher encrypt.),cluster_size=4k" good.raw good.qcow2
result "$(cat err)" 'an image'
fresh
ext=112
while [ "$(number $ext 4)" != $((0x0537be77)) ] && [ "$(number $ext 4)" != 0 ]; do
	ext=$((ext + 8 + ($(number $((ext + 4)) 4) + 7) / 8 * 8))
done
luks=$(number $((ext + 8)) 8)
end=$(wc -c <$image)
fields
wrong='The header extension for encryption is not as it must be'
# shellcheck disable=SC2046
{
	for n in 0 1 4095 $((luks + 512)) $((luks + 2048)) "$end" $((end + 4096)) \
		$((0x7ffffffffffff000)) $((0x8000000000000000)) -4096 -1; do
		poke $((ext + 8)) $(be64 "$n")
		refused "its header at $n" "$wrong" $all
	done
	for n in 0 1 591 $((end - luks + 1)) $((0x7fffffffffffffff)) -1 -4096; do
		poke $((ext + 16)) $(be64 "$n")
		refused "its header has $n bytes" "$wrong" $all
	done
	for n in 0 8 15 17 24; do
		poke $((ext + 4)) $(be32 "$n")
		refused "its extension has $n bytes" '' $all
	done
	poke $((ext + 16)) $(be64 592)
	refused 'its header has no room for keys' 'lies outside the file' $all
	for f in 40:L1 48:refcounts; do
		poke $((ext + 8)) $(be64 "$(number "${f%:*}" 8)") $(be64 592)
		refused "its header on the ${f#*:}" 'not in LUKS format' $all
	done
}
# A header that says that it reaches over the (empty) L1 table behind it, where a key would
# be written.
top=$(((end + 4095) / 4096 * 4096))
truncate -s $((top + 4096)) $image
# shellcheck disable=SC2046
poke 40 $(be64 $top)
# shellcheck disable=SC2046
poke $((ext + 16)) $(be64 $((top + 4096 - luks)))
refused 'its header over the L1 table' "$wrong" amend
poke $ext 11 22 33 44
refused 'no extension' "$wrong" $all
poke 32 00 00 00 00
refused 'an extension, but no encryption' "$wrong" $all
poke 32 00 00 00 03
refused 'another encryption' 'ncrypt' $all
other_slot
echo "1..$tests"
