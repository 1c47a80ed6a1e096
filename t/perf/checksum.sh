#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/perf/checksum.sh - platter checksum and what else could be done, in turns: allocated
# zeroes, data, and an image half full; as raw and qcow2, from the cache and (-T none)
# past it, local and from qemu-nbd on a Unix socket, which caches or does not. Prints mean,
# deviation, speed, processor time (a server's is not in it) and the ratio of the best times
# for each, and what the targets are made of: openssl's SHA-256 on one processor times
# processors; reading memory, by a dd on each of two processors; and the device, by dd
# past the cache. Decides nothing.
#
#   ROUNDS=5 MIB=1024 ZEROES=2048 (MiB) DIR=/dev/shm DISK=(a folder for -T none; DIR: the
#   same files) CELLS='zeroes data half zeroes-direct half-direct nbd nbd-direct'

PLATTER=${PLATTER:-${B:-build}/platter}
ROUNDS=${ROUNDS:-5}
MIB=${MIB:-1024}
ZEROES=${ZEROES:-2048}
CELLS=${CELLS:-zeroes data half zeroes-direct half-direct nbd nbd-direct}
command -v qemu-img >/dev/null || { echo 'checksum: qemu-img is not installed'; exit 0; }
work=$(mktemp -d "${DIR:-/dev/shm}/platter.XXXXXX") && cd "$work" || exit 1
disk=$work
[ "$DISK" = "${DIR:-/dev/shm}" ] || disk=$(mktemp -d "${DISK:-${TMPDIR:-/var/tmp}}/platter.XXXXXX") || exit 1
server=
trap '[ -z "$server" ] || kill $server 2>/dev/null; cd / && rm -rf "$work" "$disk"' EXIT
trap 'exit 1' INT TERM

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

wants() # CELL
{
	case " $CELLS " in *" $1 "*) true ;; *) false ;; esac
}
spent() { awk '{ print ($16 + $17) * 10 }' "/proc/$$/stat"; } # ms, of who has been waited for

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
			before=$(spent)
			begin=$(date +%s%N)
			sh -c "$cmd" >/dev/null 2>&1 || { echo "failed: $cmd"; exit 1; }
			took=$(($(date +%s%N) - begin))
			[ $round = -1 ] || echo "$n $took $(($(spent) - before))" >>times
		done
		round=$((round + 1))
	done
	n=0
	for cmd in "$@"; do
		n=$((n + 1))
		short=$(echo "$cmd" | sed "s|$PLATTER|platter|; s|$disk/||g; s|$work/||g; s|nbd+unix[^ ]*|NBD|g; s|'||g")
		awk -v n=$n -v mib="$mib" -v name="$name" -v cmd="$short" '
			$1 == 1 && (!first || $2 < first) { first = $2 }
			$1 == n { k++; s += $2; q += $2 * $2; c += $3; if (!best || $2 < best) best = $2 }
			END {
				v = q / k - (s / k) ^ 2
				printf "%-14s %-44s %6.0f +- %5.0f ms, best %6.0f, %6.0f MiB/s, processors %6.0f ms, %5.2f\n",
					name, cmd, s / k / 1e6, sqrt(v > 0 ? v : 0) / 1e6, best / 1e6,
					mib * 1e9 / best, c / k, best / first
			}' times
	done
}

echo "(speeds and, in the last column, times of platter's are of the best rounds)"
openssl speed -seconds 2 -bytes 65536 sha256 2>/dev/null | tail -n 1 |
	awk -v n="$(nproc)" '{ printf "openssl speed: %.0f MiB/s, times %d processors\n", $2 / 1048.576, n }'
P=$PLATTER
half=$((ZEROES / 2))
both="dd if=zeroes.raw of=/dev/null bs=256k count=$((half * 4)) & dd if=zeroes.raw of=/dev/null bs=256k skip=$((half * 4)); wait"
! wants zeroes || bench zeroes "$ZEROES" "$P checksum -f raw zeroes.raw" \
	'openssl dgst -sha256 zeroes.raw' "$both"
! wants data || bench data $((MIB / 2)) "$P checksum -f raw full.raw" \
	'openssl dgst -sha256 full.raw' "$P checksum -f raw --plain full.raw" 'sha256sum full.raw'
! wants half || bench 'half full' "$MIB" "$P checksum half.q" "$P checksum -f raw half.raw" \
	'openssl dgst -sha256 half.raw' "$P checksum --plain half.q"

direct() { "$P" checksum -T none -f raw "$disk/half.raw" >/dev/null 2>&1; }
[ "$disk" = "$work" ] || cp half.raw half.q full.raw zeroes.raw "$disk"
dd="of=/dev/null bs=1M iflag=direct"
if ! direct; then
	echo "$disk cannot do O_DIRECT: no measurement past the cache"
else
	! wants zeroes-direct || bench 'zeroes, direct' "$ZEROES" \
		"$P checksum -T none -f raw $disk/zeroes.raw" "dd if=$disk/zeroes.raw $dd"
	# What there is to be read is half of it.
	! wants half-direct || bench 'half, direct' "$MIB" "$P checksum -T none $disk/half.q" \
		"$P checksum -T none -f raw $disk/half.raw" "dd if=$disk/half.raw $dd" \
		"dd if=$disk/full.raw $dd"
fi

wants nbd || wants nbd-direct || exit 0
grep -q '^CONFIG_BLK_NBD=y' "${O:-$B}/.config" 2>/dev/null || { echo 'no NBD client in this build'; exit 0; }
uri="'nbd+unix:///?socket=$work/sock'"
nbd() # NAME MIB CACHE FORMAT FILE
{
	[ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null
	rm -f sock
	qemu-nbd -t -r -e 16 --cache="$3" -f "$4" -k "$work/sock" "$5" &
	server=$!
	while [ ! -S sock ]; do sleep 0.05; done
	bench "$1" "$2" "$P checksum -f raw $uri" "nbdcopy $uri - | sha256sum" \
		"nbdcopy $uri - | $P checksum -" "nbdcopy $uri null:"
}
if wants nbd; then
	nbd 'half.q, NBD' "$MIB" writeback qcow2 half.q
	nbd 'half.raw, NBD' "$MIB" writeback raw half.raw
	nbd 'zeroes, NBD' "$ZEROES" writeback raw zeroes.raw
fi
if wants nbd-direct && direct; then
	nbd 'half.q, NBD, direct' "$MIB" none qcow2 "$disk/half.q"
	nbd 'zeroes, NBD, direct' "$ZEROES" none raw "$disk/zeroes.raw"
fi
