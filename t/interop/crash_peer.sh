#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/interop/crash_peer.sh - a sample of the states that the crash suite builds, as files, for
# qemu: it finds no corruption in them (after its own repair where the image says that it
# is dirty), and reads what we read.
crash=${B:-build}/t/crash/crash
command -v qemu-img >/dev/null || { echo '1..0 # SKIP qemu-img is not installed'; exit 0; }
n=0
bad=0
mkdir states

# What qemu says of one state: nothing where all is well. Its check ends with 3 for leaks.
state()
{
	s=states/$1
	[ ! -e $s.base ] || cp $s.base states/base
	out=$(qemu-img check -q -f qcow2 $s.image 2>&1)
	code=$?
	case $code in
	0 | 3) ;;
	2)
		# Dirty: counts may be behind.
		flags=$(od -An -tu1 -j79 -N1 $s.image)
		[ $((flags & 1)) = 1 ] || { echo "$1: check: $out"; return; }
		out=$(qemu-img check -q -r all -f qcow2 $s.image 2>&1) &&
			out=$(qemu-img check -q -f qcow2 $s.image 2>&1) ||
			{ echo "$1: repair: $out"; return; }
		;;
	*) echo "$1: check exits with $code: $out"; return ;;
	esac
	out=$(qemu-img compare -q -f qcow2 -F raw $s.image $s.guest 2>&1) || echo "$1: compare: $out"
}

for row in $("$crash" --list); do
	case $row in raw* | cow* | *luks*) continue ;; esac
	rm -f states/* base
	"$crash" --row "$row" --seeds 2 --states 160 --export states >log 2>&1
	code=$?
	found=$(for i in states/*.image; do
		[ -e states/"$(basename "$i" .image)".second ] && continue
		state "$(basename "$i" .image)"
	done)
	looked=$(ls states/*.image 2>/dev/null | wc -l)
	n=$((n + 1))
	if [ $code = 0 ] && [ -z "$found" ] && [ "$looked" -ge 10 ]; then
		echo "ok $n - $row: $looked states"
	else
		echo "not ok $n - $row: $looked states"
		{ [ $code = 0 ] || cat log; echo "$found"; } | head -n 20 | sed 's/^/# /'
		bad=1
	fi
done
echo "1..$n"
exit $bad
