#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/perf/compress.sh - platter and qemu-img in turns: a pattern, noise and a tar of /usr
# compressed with zlib and zstd, and decompressed again, in memory. Prints mean, deviation
# and ratio (qemu-img's time by ours: above 1 we are faster), the same of processor time,
# and the sizes of what came out. Decides nothing.
#
#   ROUNDS=3 MIB=1000 TAR_MIB=600 DIR=/dev/shm in the environment.

. "${srctree:-.}/t/perf/warm.inc"
PLATTER=${PLATTER:-${B:-build}/platter}
ROUNDS=${ROUNDS:-3}
MIB=${MIB:-1000}
TAR_MIB=${TAR_MIB:-600}
command -v qemu-img >/dev/null || { echo 'compress: qemu-img is not installed'; exit 0; }
work=$(mktemp -d "${DIR:-/dev/shm}/platter.XXXXXX") && cd "$work" || exit 1
trap 'cd / && rm -rf "$work"' EXIT INT TERM

# Files of all kinds: every folder of /usr has its part.
real()
{
	find /usr -type f -size -8192k -print0 2>/dev/null | sort -z |
		awk 'BEGIN { RS = "\0"; ORS = "\0" } NR % 3 == 1' |
		tar cf - --null -T - 2>/dev/null | head -c "${TAR_MIB}M"
}

now()
{
	date +%s%N
}

# run WHO COMMAND...: its wall and processor time, in ms, into the file times
run()
{
	who=$1
	shift
	begin=$(now)
	/usr/bin/env time -f '%U %S %M' -o cpu "$@" >/dev/null || exit 1
	wall=$((($(now) - begin) / 1000000))
	awk -v who="$who" -v wall="$wall" '{ print who, wall, ($1 + $2) * 1000, $3 }' cpu >>times
}

# measure NAME ARGS...: both programs with the same arguments
measure()
{
	name=$1
	shift
	: >times
	round=0
	while [ $round -lt "$ROUNDS" ]; do
		for who in $([ $((round % 2)) = 0 ] && echo ours peer || echo peer ours); do
			rm -f out
			if [ $who = ours ]; then
				run ours "$PLATTER" "$@"
			else
				run peer qemu-img "$@"
			fi
			eval "size_$who=$(stat -c %s out)"
		done
		round=$((round + 1))
	done
	awk -v name="$name" -v a="$size_ours" -v b="$size_peer" '
		{ n[$1]++; s[$1] += $2; q[$1] += $2 * $2; c[$1] += $3 }
		$4 > m[$1] { m[$1] = $4 }
		function mean(w) { return s[w] / n[w] }
		function dev(w, v) { v = q[w] / n[w] - mean(w) ^ 2; return sqrt(v > 0 ? v : 0) }
		END {
			printf "%-26s platter %6.0f +- %4.0f ms, qemu-img %6.0f +- %4.0f ms, ratio %5.2f" \
				" (processor %5.2f); %d and %d bytes; %d and %d KiB of memory\n",
				name, mean("ours"), dev("ours"), mean("peer"), dev("peer"),
				mean("peer") / mean("ours"), c["peer"] / c["ours"], a, b, m["ours"], m["peer"]
		}' times
}

all()
{
	what=$1
	for t in zlib zstd; do
		measure "$what, $t" convert -c -W -m 16 -f raw -O qcow2 -o compression_type=$t in out
		qemu-img convert -c -f raw -O qcow2 -o compression_type=$t in packed
		measure "$what, $t, back" convert -W -m 16 -f qcow2 -O raw packed out
	done
	rm -f in out packed
}

warm $((3 * MIB))
head -c "${MIB}M" /dev/zero | tr '\0' '\253' >in
all 'pattern 0xab'
head -c "${MIB}M" /dev/urandom >in
all 'noise'
real >in
all 'tar of /usr'
