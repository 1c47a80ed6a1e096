#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/perf/nbd.sh - platter, qemu-img and nbdcopy in turns: an image on nbdkit, over a
# Unix socket, to a file in memory, and back. Prints each one's best and mean time.
# Decides nothing. ROUNDS=5 MIB=512 DIR=/dev/shm in the environment.

PLATTER=${PLATTER:-${B:-build}/platter}
ROUNDS=${ROUNDS:-5}
MIB=${MIB:-512}
for p in qemu-img nbdkit nbdcopy; do
	command -v $p >/dev/null || { echo "nbd: $p is not installed"; exit 0; }
done
work=$(mktemp -d "${DIR:-/dev/shm}/platter.XXXXXX") && cd "$work" || exit 1
server=
trap '[ -z "$server" ] || kill "$server"; cd / && rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

head -c "${MIB}M" /dev/urandom >disk
cp disk in
timeout 300 nbdkit -f -U "$work/s" file disk &
server=$!
while [ ! -S s ]; do sleep 0.05; done
uri="nbd+unix:///?socket=$work/s"

copy() # WHO WAY
{
	case $1$2 in
	platter-read) "$PLATTER" convert -W -f raw -O raw "$uri" out ;;
	platter-write) "$PLATTER" convert -W -n -f raw -O raw in "$uri" ;;
	qemu-img-read) qemu-img convert -W -m 16 -f raw -O raw "$uri" out ;;
	qemu-img-write) qemu-img convert -W -m 16 -n -f raw -O raw in "$uri" ;;
	nbdcopy-read) rm -f out && truncate -s "${MIB}M" out && nbdcopy "$uri" out ;;
	nbdcopy-write) nbdcopy in "$uri" ;;
	esac
}

for way in -read -write; do
	: >times
	round=-1 # one that does not count
	while [ $round -lt "$ROUNDS" ]; do
		for who in platter qemu-img nbdcopy; do
			begin=$(date +%s%N)
			copy $who $way || exit 1
			[ $round = -1 ] || echo "$who $(($(date +%s%N) - begin))" >>times
		done
		round=$((round + 1))
	done
	awk -v way="$way" '
		{ n[$1]++; s[$1] += $2 }
		!($1 in best) || $2 < best[$1] { best[$1] = $2 }
		END {
			for (w in n)
				printf "%-9s%-6s best %7.1f ms, mean %7.1f ms\n", w, way,
					best[w] / 1e6, s[w] / n[w] / 1e6
		}' times
done
