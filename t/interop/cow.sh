#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/interop/cow.sh - cow images and the programs of uml-utilities: uml_mkcow makes what we
# make, byte for byte, and uml_moo merges what we have written; version 2 as QEMU wrote it
# and as uml_moo reads it; backing files of any format, changed ones, and commit.

steps=$B/t/fixtures/steps
PLATTER=${PLATTER:-$B/platter}
export LC_ALL=C
n=0
work=$(mktemp -d) && cd "$work" || exit 1
trap 'cd / && rm -rf "$work"' EXIT

uml=
command -v uml_mkcow >/dev/null && command -v uml_moo >/dev/null && uml=y

ok() # NAME COMMAND...: one test; what it prints is shown when it fails
{
	name=$1
	shift
	n=$((n + 1))
	if "$@" >log 2>&1; then
		echo "ok $n - $name"
	else
		echo "not ok $n - $name"
		sed 's/^/# /' log
	fi
}

with_uml() # NAME COMMAND...
{
	if [ "$uml" ]; then
		ok "$@"
	else
		n=$((n + 1))
		echo "ok $n - $1 # SKIP uml_mkcow and uml_moo (package uml-utilities) are not here"
	fi
}

base() # BYTES: data in it, and an age of its own
{
	rm -f base.raw
	head -c "$1" /dev/urandom >base.raw
	touch -d @1600000000 base.raw
}

ours() { rm -f img && "$PLATTER" create -q -f cow -b base.raw -F raw "$@" img; }

# Version 2 with the long name that uml_moo reads, and nothing makes. It leaves out the last
# sectors of a disk that is not a multiple of 4096 bytes.
uml_v2()
{
	perl -e 'use strict; my ($name, $size) = @ARGV;
		my $sectors = ($size + 511) >> 9;
		my $data = (4120 + (($sectors + 7) >> 3) + 511) & ~511;
		print pack("NN a4096 N Q> N", 0x4f4f4f4d, 2, $name, 1600000000, $size, 512);
		truncate STDOUT, $data + $size or die' "$work/base.raw" "$1" >img
}

said() { grep -q "$1" err || { cat err; false; }; }
clean() { "$PLATTER" check -f cow img | tee out && grep -q '^No errors' out; }

same_file() # BYTES
{
	base "$1"
	rm -f theirs
	uml_mkcow theirs base.raw && ours && cmp img theirs
}

# Written at random by us, merged by uml_moo into another file and into the base.
merged()
{
	"$steps" img "$1" "$2" model.raw && clean || return 1
	rm -f out.raw
	uml_moo img out.raw && cmp out.raw model.raw || return 1
	"$PLATTER" convert -f cow -O raw img conv.raw && cmp conv.raw model.raw || return 1
	uml_moo -d img && cmp base.raw model.raw
}

# uml_moo knows whole sectors only.
odd()
{
	base "$1" && rm -f img out.raw && uml_mkcow img base.raw || return 1
	"$PLATTER" io -f cow -c 'write -P 1 0 700' -c 'write -P 2 3333333 4444' \
		-c "write -P 3 $(($1 / 512 * 512 - 1000)) 1000" img >out && ! grep -q fail out &&
		clean && uml_moo img out.raw && "$PLATTER" convert -f cow -O raw img conv.raw &&
		[ "$(stat -c %s out.raw)" = $(($1 / 512 * 512)) ] &&
		cmp -n "$(stat -c %s out.raw)" out.raw conv.raw && ! cmp -s out.raw base.raw
}

# Ours over such a file: the same bytes, merged by uml_moo into another file and into the
# base; told of when the base gets longer, within the same sector even; committed by us, the
# length in the header is the base's again.
ours_odd()
{
	same_file "$1" && mv theirs img && odd_writes "$1" && cp base.raw keep.raw || return 1
	rm -f out.raw
	touch -r base.raw keep.raw
	uml_moo img out.raw && cmp -n $(($1 / 512 * 512)) out.raw conv.raw || return 1
	truncate -s +1 base.raw && touch -r keep.raw base.raw || return 1
	"$PLATTER" map -f cow img >out 2>err
	said "has $(($1 + 1)) bytes, and the image is made for one of $1" &&
		! uml_moo img out.raw || return 1
	truncate -s -1 base.raw && touch -r keep.raw base.raw || return 1
	"$PLATTER" map -f cow img 2>err >out && [ ! -s err ] && "$PLATTER" commit -f cow img &&
		cmp base.raw conv.raw && clean || return 1
	"$PLATTER" map -f cow img 2>err >out && [ ! -s err ] && rm -f out.raw &&
		uml_moo img out.raw && cmp -n $(($1 / 512 * 512)) out.raw conv.raw
}

odd_writes() # BYTES: the last sector too
{
	"$PLATTER" io -f cow -c 'write -P 1 0 700' -c 'write -P 2 3333 4444' \
		-c "write -P 3 $(($1 - 1000)) 1000" img >out 2>err && ! grep -q fail out &&
		[ ! -s err ] && clean && "$PLATTER" convert -f cow -O raw img conv.raw 2>err &&
		[ ! -s err ]
}

theirs() { base "$1" && rm -f img && uml_mkcow img base.raw && merged 1 60; }
three() { base "$1" && ours && merged 2 60; }
two() { base "$1" && uml_v2 "$1" && "$PLATTER" info img | grep 'layout: uml' && merged 3 60; }

# The fields of the header and where the bitmap and the data are, read by hand.
qemu_header()
{
	base 1048576
	ours -o version=2 && "$PLATTER" io -f cow -c 'write -P 7 1536 512' img || return 1
	perl -e 'open F, "img"; read F, my $h, 1056; read F, my $bits, 256; seek F, 3072, 0;
		read F, my $data, 512; my @f = unpack("NN a1024 N x4 Q> N", $h);
		$f[2] =~ s/\0*$//;
		my $got = "@f " . unpack("H8", $bits) . " $data";
		print $got eq "1330597709 2 base.raw 1600000000 1048576 512 08000000 " . "\7" x 512
			? "good\n" : "bad: $got\n"' | tee out
	grep -q '^good' out
}

v2_random() { base "$1" && ours -o version=2 && "$steps" img 4 120 model.raw && clean &&
	"$PLATTER" compare -f cow -F raw img model.raw; }

# Both of what an age and a length can differ in; the image is read all the same.
changed()
{
	base 1048576
	ours && touch -d @1600000777 base.raw || return 1
	"$PLATTER" convert -f cow -O raw img out.raw 2>err || return 1
	said "warning: Opened 'img': .*was changed after the image was made.*1600000777.*1600000000" &&
		[ "$(wc -l <err)" = 1 ] && cmp out.raw base.raw || return 1
	truncate -s 2M base.raw
	"$PLATTER" io -f cow -c 'read 0 1M' img 2>err >out || return 1
	said 'warning: .*has 2097152 bytes, and the image is made for one of 1048576' || return 1
	"$PLATTER" info img >out 2>err && [ ! -s err ] || return 1
	truncate -s 1M base.raw
	"$PLATTER" commit -f cow img 2>err && [ "$(grep -c 'was changed after' err)" = 1 ] &&
		"$PLATTER" map -f cow img 2>err >out && [ ! -s err ]
}

unchanged()
{
	base 1048576
	ours && "$PLATTER" convert -f cow -O raw img out.raw 2>err && [ ! -s err ] &&
		touch -d @1600000001 base.raw && touch -d @1600000000 base.raw &&
		"$PLATTER" compare -f cow -F raw img base.raw 2>err && [ ! -s err ]
}

committed()
{
	base 3145728
	ours && "$steps" img 5 60 model.raw && "$PLATTER" commit -f cow img || return 1
	cmp base.raw model.raw && clean && ! grep 'allocated' out || return 1
	"$PLATTER" convert -f cow -O raw img out.raw 2>err && [ ! -s err ] && cmp out.raw model.raw
}

# Its age in the header is the new one: uml_moo would not merge it otherwise.
commit_then_merge()
{
	committed && "$steps" img 6 40 model.raw && rm -f out.raw && uml_moo img out.raw &&
		cmp out.raw model.raw
}

# Only the name is stored, so the file is raw, or its format is given: what a guest writes
# into a raw file does not make it another.
over_qcow2()
{
	over=driver=cow,file.filename=img,backing.driver=qcow2
	rm -f img base.q
	"$PLATTER" create -q -f qcow2 base.q 2M &&
		"$PLATTER" io -f qcow2 -c 'write -P 5 64k 300k' base.q &&
		"$PLATTER" create -q -f cow -b base.q -F qcow2 img &&
		refused "base.q': .*looks like qcow2: name it as backing.driver=" \
			convert -f cow -O raw img out.raw &&
		"$PLATTER" io --image-opts -c 'write -P 9 100k 1k' -c 'read -P 5 64k 36k' \
			-c 'read -P 9 100k 1k' -c 'read -P 0 1M 1M' "$over" >out && ! grep -q fail out &&
		"$PLATTER" convert --image-opts -O raw driver=cow,file.filename=img,backing.driver=raw \
			out.raw 2>err && said 'bytes, and the image is made for' &&
		[ "$(stat -c %s out.raw)" = 2097152 ]
}

# Under another format, and as a target.
stacked()
{
	base 2097664
	ours && "$PLATTER" create -q -f qcow2 -b img -F cow top.q && "$steps" top.q 7 40 model.raw &&
		"$PLATTER" convert -O cow top.q flat.cow && "$PLATTER" info flat.cow &&
		"$PLATTER" compare -f cow -F raw flat.cow model.raw &&
		"$PLATTER" map -f cow flat.cow && "$PLATTER" check flat.cow &&
		"$PLATTER" convert -m 4 -O cow -o version=2 model.raw a.cow &&
		"$PLATTER" convert -m 1 -O cow -o version=2 model.raw b.cow && cmp a.cow b.cow
}

resized()
{
	base 1048576
	ours && "$PLATTER" resize -f cow img 8M && "$PLATTER" io -f cow -c 'read -P 0 1M 7M' img |
		tee out && ! grep -q fail out || return 1
	"$PLATTER" resize -f cow --shrink img 512k && clean || return 1
	! "$PLATTER" resize -f cow img 17M 2>err && said 'its data would have to move' && clean
}

refused() # TEXT COMMAND...
{
	text=$1
	shift
	"$PLATTER" "$@" >out 2>err
	[ $? = 1 ] && said "$text" && [ "$(wc -l <err)" = 1 ]
}

itself()
{
	base 1048576
	ours && cp img base.raw && touch -d @1600000000 base.raw &&
		refused 'contains this file twice' convert --image-opts -O raw \
		driver=cow,file.filename=img,backing.driver=cow,backing.backing.driver=cow out.raw
}

untrusted() { base 1048576 && ours && refused 'is not trusted' --untrusted convert -f cow -O raw img o; }

# Cut short: its data is not all there, and a repair says that it reads as zeroes.
cut_short()
{
	base 1048576
	ours && "$PLATTER" io -f cow -c 'write -P 7 0 1M' img && truncate -s 1M img || return 1
	"$PLATTER" check -f cow img >out 2>&1
	[ $? = 2 ] && grep -q '^ERROR.*24 sectors from offset 1036288$' out || return 1
	"$PLATTER" check -f cow -r all img && clean
}

for size in 1048576 512 0 16777216 16777728 33554432; do
	with_uml "made as uml_mkcow makes it: $size bytes" same_file $size
done
for size in 1048576 512 1573376 16777216; do
	with_uml "uml_mkcow makes, we write, uml_moo merges: $size bytes" theirs $size
	with_uml "we make and write, uml_moo merges: $size bytes" three $size
done
for size in 1048576 1576960 16777216; do
	with_uml "version 2 of uml-utilities: $size bytes" two $size
done
with_uml 'uml_mkcow makes one of an odd length' odd 16777217
with_uml 'one in which the bitmap needs more than a page' odd 40001024
for size in 1234567 16777217 20479; do
	with_uml "the same of ours: $size bytes" ours_odd $size
done
ok 'version 2 of QEMU, byte by byte' qemu_header
ok 'version 2 of QEMU, at random' v2_random 3146240
ok 'a backing file that was changed is told of' changed
ok 'one that was not is not' unchanged
ok 'commit' committed
with_uml 'commit, write, merge' commit_then_merge
ok 'over qcow2' over_qcow2
ok 'below qcow2, and converted to' stacked
ok 'resize' resized
ok 'its own backing file' itself
ok 'not trusted' untrusted
ok 'cut short' cut_short
base 1048576
ok 'version 4 is not made' refused "Invalid value for parameter 'version'" create -q -f cow \
	-o version=4 x 1M
ok 'metadata is not preallocated' refused "Preallocation mode 'metadata'" create -q -f cow \
	-o preallocation=metadata x 1M
echo "1..$n"
