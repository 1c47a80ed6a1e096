#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/perf/checksum.sh - platter checksum and what else could be done, in turns: allocated
# zeroes, data, and an image half full; as raw and qcow2, from the cache and (-T none)
# past it, local and from qemu-nbd on a Unix socket. Prints mean, deviation and speed of
# each, and what the targets are made of: openssl's SHA-256 on one processor times
# processors, and reading memory. Decides nothing.
#
#   ROUNDS=5 MIB=1024 ZEROES=2048 (MiB) DIR=/dev/shm DISK=(a folder for -T none)

PLATTER=${PLATTER:-${B:-build}/platter}
ROUNDS=${ROUNDS:-5}
MIB=${MIB:-1024}
ZEROES=${ZEROES:-2048}
command -v qemu-img >/dev/null || { echo 'checksum: qemu-img is not installed'; exit 0; }
work=$(mktemp -d "${DIR:-/dev/shm}/platter.XXXXXX") && cd "$work" || exit 1
disk=$(mktemp -d "${DISK:-${TMPDIR:-/var/tmp}}/platter.XXXXXX") || exit 1
server=
trap '[ -z "$server" ] || kill $server 2>/dev/null; cd / && rm -rf "$work" "$disk"' EXIT INT TERM

head -c "${ZEROES}M" /dev/zero >zeroes.raw
head -c "$((MIB / 2))M" /dev/urandom >data
truncate -s "${MIB}M" half.raw
i=0
while [ $((8 * i)) -lt "$MIB" ]; do
	dd if=data of=half.raw bs=4M skip=$i seek=$((2 * i)) count=1 conv=notrunc status=none
	i=$((i + 1))
done
mv data full.raw
qemu-img convert -O qcow2 half.raw half.q

# bench NAME MIB CMD...: in turns
bench()
{
	name=$1
	mib=$2
	shift 2
	: >times
	round=-1
	while [ $round -lt "$ROUNDS" ]; do
		n=0
		for cmd in "$@"; do
			n=$((n + 1))
			begin=$(date +%s%N)
			sh -c "$cmd" >/dev/null 2>&1 || { echo "failed: $cmd"; exit 1; }
			[ $round = -1 ] || echo "$n $(($(date +%s%N) - begin))" >>times
		done
		round=$((round + 1))
	done
	n=0
	for cmd in "$@"; do
		n=$((n + 1))
		short=$(echo "$cmd" | sed "s|$PLATTER|platter|; s|$disk/||g; s|nbd+unix[^ ]*|NBD|g; s|'||g")
		awk -v n=$n -v mib="$mib" -v name="$name" -v cmd="$short" '
			$1 == 1 { f++; first += $2 }
			$1 == n { k++; s += $2; q += $2 * $2 }
			END {
				v = q / k - (s / k) ^ 2
				printf "%-16s %-46s %7.0f +- %5.0f ms %6.0f MiB/s, %5.2f\n", name,
					cmd, s / k / 1e6, sqrt(v > 0 ? v : 0) / 1e6,
					mib * 1e9 / (s / k), (s / k) / (first / f)
			}' times
	done
}

echo "(the last column: how many times platter's time)"
openssl speed -seconds 2 -bytes 65536 sha256 2>/dev/null | tail -n 1 |
	awk -v n="$(nproc)" '{ printf "openssl speed: %.0f MiB/s, times %d processors\n", $2 / 1048.576, n }'
P=$PLATTER
bench zeroes "$ZEROES" "$P checksum -f raw zeroes.raw" 'openssl dgst -sha256 zeroes.raw' \
	'dd if=zeroes.raw of=/dev/null bs=256k'
bench data $((MIB / 2)) "$P checksum -f raw full.raw" 'openssl dgst -sha256 full.raw' \
	"$P checksum -f raw --plain full.raw" 'sha256sum full.raw'
bench 'half full' "$MIB" "$P checksum half.q" "$P checksum -f raw half.raw" \
	'openssl dgst -sha256 half.raw' "$P checksum --plain half.q"

cp half.raw half.q "$disk"
if "$P" checksum -T none -f raw "$disk/half.raw" 2>&1 | grep -q O_DIRECT; then
	echo "$disk cannot do O_DIRECT: no measurement past the cache"
else
	bench 'half, direct' "$MIB" "$P checksum -T none $disk/half.q" \
		"$P checksum -T none -f raw $disk/half.raw" \
		"dd if=$disk/half.raw of=/dev/null bs=1M iflag=direct"
fi

grep -q '^CONFIG_BLK_NBD=y' "${O:-$B}/.config" 2>/dev/null || { echo 'no NBD client in this build'; exit 0; }
nbd() # FORMAT FILE
{
	[ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null
	rm -f sock
	qemu-nbd -t -r -e 16 -f "$1" -k "$work/sock" "$2" &
	server=$!
	while [ ! -S sock ]; do sleep 0.05; done
}
uri="'nbd+unix:///?socket=$work/sock'"
nbd qcow2 half.q
bench 'half, NBD' "$MIB" "$P checksum -f raw $uri" "nbdcopy $uri - | sha256sum" "nbdcopy $uri - | $P checksum -"
nbd raw zeroes.raw
bench 'zeroes, NBD' "$ZEROES" "$P checksum -f raw $uri" "nbdcopy $uri - | sha256sum" "nbdcopy $uri null:"
