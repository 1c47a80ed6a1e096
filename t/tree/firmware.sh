#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/tree/firmware.sh - the firmware profile, run (make check-firmware).
#
# Images are made with the host's build, and the self-test (selftest.c) is linked with the
# libraries of the firmware profile for a board with 64 KiB of RAM, for one with room for
# a decompressor, and for this machine under sanitizers. The boards are QEMU's; the
# self-test reads an image in flash and others through semihosting. What it prints must be
# the checksums of what the host reads, and for bad images the same on all of them. The
# profile that writes (writetest.c) changes an image in RAM, which the host then checks.
# Last the sizes of code and memory are held against the budgets.
#
# O, srctree and MAKE come from GNUmakefile; TAP on stdout.

srctree=${srctree:-$(cd "$(dirname "$0")/../.." && pwd)}
O=${O:-$srctree/build}
MAKE=${MAKE:-make}
B=${B:-$O}
PLATTER=$B/platter
assemble=$B/t/fixtures/assemble
work=$O/firmware
here=$srctree/t/firmware
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES MAKEFILES GNUMAKEFLAGS S W DROP
export LC_ALL=C
mkdir -p "$work/images" && cd "$work/images" || exit 1

tests=0 failed=0
# ok NAME STATUS [FILE]: a line of TAP; FILE explains a failure
ok()
{
	tests=$((tests + 1))
	if [ "$2" = 0 ]; then
		echo "ok $tests - $1"
	else
		echo "not ok $tests - $1"
		[ "$3" ] && tail -n 40 "$3" | sed 's/^/# /'
		failed=1
	fi
}

# ---- images ----

crc() # of a file, as gzip has it
{
	gzip -1 -c <"$1" | tail -c 8 | od -An -tx4 -N4 --endian=little | tr -d ' \n'
}

# good NAME: the image, whose content the host's build reads, goes into the list
good()
{
	"$PLATTER" convert -O raw "$1" raw.tmp || exit 1
	echo "$1 $(crc raw.tmp)" >>expected
	echo "$1" >>LIST.good
}

make_images()
{
	rm -f ./*
	seq 1 40000 >text
	seq 900000 907000 >text2
	"$PLATTER" create -q -f raw disk.raw 4M &&
		dd if=text of=disk.raw bs=4096 seek=5 conv=notrunc status=none &&
		dd if=text2 of=disk.raw bs=512 seek=4099 conv=notrunc status=none || exit 1
	# The first is what the budget of memory is measured with.
	"$PLATTER" convert -O qcow2 -o cluster_size=64k disk.raw v3-64k.qcow2 && good v3-64k.qcow2
	for c in 512 4k 2M; do
		"$PLATTER" convert -O qcow2 -o cluster_size=$c disk.raw v3-$c.qcow2 || exit 1
		good v3-$c.qcow2
	done
	"$PLATTER" convert -O qcow2 -o compat=0.10 disk.raw v2-64k.qcow2 && good v2-64k.qcow2
	"$PLATTER" convert -O qcow2 -o extended_l2=on,cluster_size=64k disk.raw extl2.qcow2 &&
		good extl2.qcow2
	"$PLATTER" create -q -f qcow2 -b v3-64k.qcow2 -F qcow2 middle.qcow2 5M &&
		"$PLATTER" create -q -f qcow2 -o extended_l2=on -b middle.qcow2 -F qcow2 \
			top.qcow2 6M &&
		"$PLATTER" io -c 'write -P 7 1M 100k' -c 'write -z 64k 64k' middle.qcow2 >io.log &&
		"$PLATTER" io -c 'write -P 9 1050k 3k' -c 'write -P 1 5900k 40k' top.qcow2 >io.log &&
		good top.qcow2
	"$PLATTER" create -q -f qcow2 -o cluster_size=4k flash.qcow2 256k &&
		"$PLATTER" io -c 'write -P 5 10k 30k' -c 'write -P 6 200k 5000' flash.qcow2 >io.log &&
		"$PLATTER" convert -O raw flash.qcow2 raw.tmp || exit 1
	flash="flash $(crc raw.tmp)"
	cp LIST.good LIST.small
	"$PLATTER" convert -c -O qcow2 disk.raw compressed.qcow2 && good compressed.qcow2
	for r in "$srctree"/t/fixtures/qcow2/*.recipe; do
		n=bad-$(basename "$r" .recipe)
		"$assemble" "$r" "$n" 2>assemble.log || continue
		echo "$n" >>LIST.bad
	done
	cat LIST.small LIST.bad >LIST.small.all
	cat LIST.good LIST.bad >LIST.all
}

# ---- programs ----

# library CONFIG ARGUMENTS...: the firmware profile's libraries
library()
{
	config=$1
	shift
	"$MAKE" -s -C "$srctree" O="$work/$config" "$@" >"$work/$config.log" 2>&1
}

flags="-std=gnu11 -Os -g -Wall -Wextra -Werror -ffunction-sections -fdata-sections"
arm="arm-none-eabi-gcc -mcpu=cortex-m3 -mthumb -ffreestanding -fcallgraph-info=su"
common="$here/say.c $here/arena.c"
reads="$here/selftest.c $here/hostfile.c $here/flash.S $common"
writes="$here/writetest.c $here/ramdisk.c $common"

# board PROGRAM MACHINE CONFIG MEMORY FLAGS AND FILES...: links a program for one of QEMU's
# boards with the libraries of CONFIG
board()
{
	program=$1 machine=$2 lib=$work/$3 bytes=$4
	shift 4
	rm -f "$work/$program.elf"-*.ci
	(
		cd "$here" && $arm $flags -I"$srctree" -I"$lib/include" -DBOARD_MEMORY="$bytes" \
			-DFLASH_IMAGE="\"$work/images/flash.qcow2\"" "$@" "$here/semihost.c" \
			"$lib"/libfmt.a "$lib"/libblk.a "$lib"/libcz.a "$lib"/libthr.a \
			-nostdlib -nostartfiles -lgcc -lc -T "$machine.ld" \
			-Wl,--gc-sections,--defsym=board_memory_bytes="$bytes" \
			-Wl,-Map="$work/$program.map" -o "$work/$program.elf"
	) >"$work/$program.log" 2>&1
}

# emulate PROGRAM MACHINE: runs it, with its output in $work/PROGRAM.out
emulate()
{
	timeout 120 qemu-system-arm -M "$2" -nographic -monitor none -serial none \
		-chardev stdio,id=sh -semihosting-config enable=on,target=native,chardev=sh \
		-kernel "$work/$1.elf" </dev/null >"$work/$1.out" 2>"$work/$1.err"
}

# native PROGRAM CONFIG FLAGS AND FILES...: links and runs it here
native()
{
	program=$1 lib=$work/$2/v/address-undefined include=$work/$2/include
	shift 2
	gcc $flags -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -I"$srctree" \
		-I"$include" -DBOARD_MEMORY=8388608 \
		-DFLASH_IMAGE="\"$work/images/flash.qcow2\"" "$@" "$here/native.c" \
		"$lib"/libfmt.a "$lib"/libblk.a "$lib"/libcz.a "$lib"/libthr.a \
		-o "$work/$program.test" >"$work/$program.log" 2>&1 &&
		timeout 120 "$work/$program.test" >"$work/$program.out" 2>&1
}

# size_of PROGRAM LIBRARIES: bytes of code and constants that come from them
size_of()
{
	# A long name has its numbers on the next line.
	list=$(sed -n '/^Linker script/,$p' "$work/$1.map" |
		sed -e '/^ \.[a-z]/{/0x/!{N;s/\n//}}' |
		sed -n "s/^ \.\(text\|rodata\)[^ ]* *0x[0-9a-f]* *\(0x[0-9a-f]*\) .*lib\($2\)\.a(.*/\2/p")
	# shellcheck disable=SC2086 # one number each
	printf '%d\n' $list | awk '{ n += $1 } END { print n + 0 }'
}

# budget PROGRAM BYTES: what the libraries take in it
budget()
{
	all='fmt\|blk\|cz\|thr'
	n=$(size_of "$1" "$all")
	for l in thr cz blk fmt; do
		printf '# %s: lib%-4s %6d bytes of code and constants\n' "$1" "$l.a" \
			"$(size_of "$1" $l)"
	done
	[ "$n" -gt 0 ] && [ "$n" -le "$2" ]
	ok "$1: $n bytes of $2" $?
}

# ---- the tests ----

for p in qemu-system-arm arm-none-eabi-gcc; do
	if ! command -v $p >/dev/null; then
		echo "1..0 # SKIP $p is not installed"
		exit 0
	fi
done

make_images
ok 'images' $?

# for CONFIG: the libraries of configs/CONFIG_defconfig, for the boards and for here. The
# reader is the firmware profile without compressed clusters.
build()
{
	library "$1" "$2" && sed -i "$3" "$work/$1/.config" && library "$1" olddefconfig &&
		library "$1" CROSS_COMPILE=arm-none-eabi- CFLAGS='-fstack-usage -fcallgraph-info=su'
	ok "$1: libraries for Cortex-M3" $? "$work/$1.log"
	library "$1-here" "$2" &&
		sed -i -e "$3" -e '/CROSS_COMPILE/d' -e '/TARGET_CFLAGS/d' "$work/$1-here/.config" &&
		library "$1-here" olddefconfig &&
		library "$1-here" CC=gcc CROSS_COMPILE= S=address,undefined
	ok "$1: libraries for this machine" $? "$work/$1-here.log"
}

build firmware firmware_defconfig ''
build reader firmware_defconfig 's/^CONFIG_FMT_QCOW2_COMPRESSED=y/# CONFIG_FMT_QCOW2_COMPRESSED is not set/'
build writer firmware_rw_defconfig ''

# verdicts PROGRAM LIST NATIVE: the good images' checksums, the bad ones' as they are here
verdicts()
{
	{ echo "$flash" && grep -F -f "$2" -w expected; } >want
	head -n "$(wc -l <want)" "$work/$1.out" | diff want - >diff.out
	ok "$1: content of $(wc -l <want) images" $? diff.out
	grep '^bad-' "$work/$3.out" >want
	grep '^bad-' "$work/$1.out" | diff want - >diff.out
	ok "$1: verdicts on $(wc -l <want) bad images" $? diff.out
}

# shellcheck disable=SC2086 # lists of files
{
cp LIST.small.all LIST
native read-here reader-here $reads
ok 'read-here: under AddressSanitizer and UndefinedBehaviorSanitizer' $? "$work/read-here.out"
verdicts read-here LIST.small read-here
board read lm3s6965evb reader 24576 $reads && emulate read lm3s6965evb
ok 'read: lm3s6965evb, 64 KiB of RAM' $? "$work/read.out"
verdicts read LIST.small read-here

cp LIST.all LIST
native inflate-here firmware-here -DBOARD_INFLATE $reads "$here/inflate.c"
ok 'inflate-here: with a decompressor, the same' $? "$work/inflate-here.out"
verdicts inflate-here LIST.good inflate-here
board inflate mps2-an385 firmware 8388608 -DBOARD_INFLATE $reads "$here/inflate.c" &&
	emulate inflate mps2-an385
ok 'inflate: mps2-an385, with a decompressor' $? "$work/inflate.out"
verdicts inflate LIST.good inflate-here

# written PROGRAM: the host agrees with what has been written
written()
{
	"$PLATTER" check -q DISK.out >check.out 2>&1
	ok "$1: the host's check finds nothing" $? check.out
	"$PLATTER" convert -O raw DISK.out raw.tmp
	grep -qx "content $(crc raw.tmp)" "$work/$1.out"
	ok "$1: the host reads what was written" $? "$work/$1.out"
	rm -f DISK.out
}

for o in cluster_size=4k cluster_size=512,refcount_bits=1 cluster_size=64k \
	cluster_size=16k,extended_l2=on compat=0.10,cluster_size=1k; do
	"$PLATTER" create -q -f qcow2 -o $o DISK 1M
	native write-here writer-here $writes
	ok "write-here: $o, under the sanitizers" $? "$work/write-here.out"
	written write-here
	board write mps2-an385 writer 5242880 $writes && emulate write mps2-an385
	ok "write: mps2-an385, $o" $? "$work/write.out"
	written write
done
}

budget read 12288
budget write 49152
n=$(sed -n 's/^memory needed: //p' "$work/read.out")
[ "${n:-0}" -gt 0 ] && [ "$n" -le $((4096 + 512)) ]
ok "read: $n bytes of memory, of $((4096 + 512))" $?
for c in reader writer; do
	find "$work/$c" -name '*.su' -exec cat {} + | sort -t '	' -k 2 -n -r | head -n 3 |
		sed "s/^.*:\([a-z0-9_]*\)	\([0-9]*\)	.*/# $c: a frame of \2 bytes: \1/"
done

# stack PROGRAM CONFIG BYTES: the deepest chain of calls, which is printed, takes no more;
# and it is no less than what was seen when the program ran
stack()
{
	NM=arm-none-eabi-nm srctree=$srctree "$srctree/scripts/stack" "$work/$1.elf" \
		$(find "$work/$2" -name '*.ci') \
		"$work/$1.elf"-*.ci >"$work/$1.stack" 2>&1
	sed "s/^/# $1: stack: /" "$work/$1.stack"
	n=$(sed -n 's/^total \([0-9]*\) bytes$/\1/p' "$work/$1.stack")
	seen=$(sed -n 's/^stack used: //p' "$work/$1.out")
	[ "${n:-0}" -gt 0 ] && [ "$n" -le "$3" ]
	ok "$1: $n bytes of stack at most, of $3" $? "$work/$1.stack"
	[ "${seen:-0}" -gt 0 ] && [ "$seen" -le "${n:-0}" ]
	ok "$1: $seen bytes of stack were seen in use" $? "$work/$1.out"
}
stack read reader 2400
stack write writer 3600

echo "1..$tests"
exit $failed
