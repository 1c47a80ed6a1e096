#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/perf/serve.sh - NBD servers in turns: platter, qemu-nbd, nbdkit's memory and file
# plugins; nbdcopy in both directions, both ends in memory, and 4 KiB reads at depth 64 by
# qemu-img bench. Prints each one's best and mean time, and what the others take of
# platter's best. Decides nothing. ROUNDS=5 MIB=1024 COUNT=200000 DIR=/dev/shm.

PLATTER=${PLATTER:-${B:-build}/platter}
ROUNDS=${ROUNDS:-5}
MIB=${MIB:-1024}
COUNT=${COUNT:-200000}
for p in qemu-img qemu-nbd nbdkit nbdcopy; do
	command -v $p >/dev/null || { echo "serve: $p is not installed"; exit 0; }
done
work=$(mktemp -d "${DIR:-/dev/shm}/platter.XXXXXX") && cd "$work" || exit 1
servers=
trap 'kill $servers; cd / && rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

head -c "${MIB}M" /dev/urandom >disk
truncate -s "${MIB}M" out
for f in a b c; do cp disk $f; done
start() # NAME COMMAND...
{
	name=$1
	shift
	timeout 600 "$@" &
	servers="$servers $!"
	while [ ! -S "$name" ]; do sleep 0.05; done
}
start platter "$PLATTER" serve -t -e 0 -f raw -k "$work/platter" a
start qemu-nbd qemu-nbd -t -e 0 -f raw -k "$work/qemu-nbd" b
start nbdkit-file nbdkit -f -U "$work/nbdkit-file" file c
start nbdkit-memory nbdkit -f -U "$work/nbdkit-memory" memory "${MIB}M"
nbdcopy disk "nbd+unix:///?socket=$work/nbdkit-memory"

run() # WHO WAY
{
	uri="nbd+unix:///?socket=$work/$1"
	case $2 in
	read) nbdcopy "$uri" out ;;
	write) nbdcopy disk "$uri" ;;
	bench) qemu-img bench -c "$COUNT" -d 64 -s 4096 -S 69632 -f raw "$uri" ;;
	esac >/dev/null
}

for way in ${WAYS:-write read bench}; do
	: >times
	round=-1 # one that does not count
	while [ $round -lt "$ROUNDS" ]; do
		for who in platter qemu-nbd nbdkit-file nbdkit-memory; do
			begin=$(date +%s%N)
			run $who $way || exit 1
			[ $round = -1 ] || echo "$who $(($(date +%s%N) - begin))" >>times
		done
		round=$((round + 1))
	done
	awk -v way="$way" '
		{ n[$1]++; s[$1] += $2 }
		!($1 in best) || $2 < best[$1] { best[$1] = $2 }
		END {
			for (w in n)
				printf "%-6s %-14s best %7.1f ms, mean %7.1f ms, %.2f x platter\n",
					way, w, best[w] / 1e6, s[w] / n[w] / 1e6,
					best[w] / best["platter"]
		}' times
done
