#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/perf/convert.sh - platter and qemu-img in turns: convert of a full image and of one
# that is half zeroes, both ways, in memory, and info of a small one. Prints mean,
# deviation and ratio (qemu-img's time by ours: above 1 we are faster). Decides nothing.
#
#   ROUNDS=7 MIB=1024 DIR=/dev/shm in the environment.

PLATTER=${PLATTER:-${B:-build}/platter}
ROUNDS=${ROUNDS:-7}
MIB=${MIB:-1024}
command -v qemu-img >/dev/null || { echo 'convert: qemu-img is not installed'; exit 0; }
work=$(mktemp -d "${DIR:-/dev/shm}/platter.XXXXXX") && cd "$work" || exit 1
trap 'cd / && rm -rf "$work"' EXIT INT TERM

head -c 64M /dev/urandom >seed
i=0
: >full.raw
: >half.raw
while [ $i -lt "$MIB" ]; do
	cat seed >>full.raw
	# Data and zeroes in turns of 4 MiB, both written.
	j=0
	while [ $j -lt 16 ]; do
		if [ $((j % 2)) = 0 ]; then
			dd if=seed bs=4M skip=$j count=1 status=none
		else
			dd if=/dev/zero bs=4M count=1 status=none
		fi
		j=$((j + 1))
	done >>half.raw
	i=$((i + 64))
done
truncate -s "${MIB}M" full.raw half.raw
rm seed
for f in full half; do
	qemu-img convert -O qcow2 $f.raw $f.qcow2 || exit 1
done
qemu-img create -q -f qcow2 small.qcow2 1G

now()
{
	date +%s%N
}

# measure NAME COUNT COMMAND...: IMG in the command is one or the other program
measure()
{
	name=$1
	count=$2
	shift 2
	: >times
	round=-1 # one that does not count: memory that nobody has used yet is slow
	while [ $round -lt "$ROUNDS" ]; do
		first=$PLATTER
		second=qemu-img
		[ $((round % 2)) = 0 ] || { first=qemu-img second=$PLATTER; }
		for who in "$first" "$second"; do
			rm -f out
			begin=$(now)
			n=0
			while [ $n -lt "$count" ]; do
				"$who" "$@" >/dev/null || exit 1
				n=$((n + 1))
			done
			[ $round = -1 ] ||
				echo "${who##*/} $((($(now) - begin) / count))" >>times
		done
		round=$((round + 1))
	done
	awk -v name="$name" '
		$1 != "qemu-img" { $1 = "ours" }
		{ n[$1]++; s[$1] += $2; q[$1] += $2 * $2 }
		!($1 in best) || $2 < best[$1] { best[$1] = $2 }
		function mean(w) { return s[w] / n[w] / 1e6 }
		function dev(w, v) { v = q[w] / n[w] - (s[w] / n[w]) ^ 2; return sqrt(v > 0 ? v : 0) / 1e6 }
		END {
			printf "%-23s platter %7.2f +- %6.2f ms, qemu-img %7.2f +- %6.2f ms, " \
				"ratio %.2f (of the best: %.2f)\n", name, mean("ours"), dev("ours"),
				mean("qemu-img"), dev("qemu-img"), mean("qemu-img") / mean("ours"),
				best["qemu-img"] / best["ours"]
		}' times
}

for f in full half; do
	measure "$f: raw to qcow2" 1 convert -W -m 16 -f raw -O qcow2 $f.raw out
	measure "$f: qcow2 to raw" 1 convert -W -m 16 -f qcow2 -O raw $f.qcow2 out
done
measure 'info of a small qcow2' 20 info small.qcow2
