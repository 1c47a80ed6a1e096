#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/perf/luks.sh - raw to an encrypted qcow2 image and back, beside qemu-img, by turns in
# one run. SIZE in MiB (1500), RUNS (3), DIR (/dev/shm).

. "${srctree:-.}/t/perf/warm.inc"
PLATTER=${PLATTER:-${B:-build}/platter}
SIZE=${SIZE:-1500}
RUNS=${RUNS:-3}
command -v qemu-img >/dev/null || { echo '# qemu-img is not installed'; exit 0; }
work=$(mktemp -d "${DIR:-/dev/shm}/luks.XXXXXX") && cd "$work" || exit 1
trap 'cd / && rm -rf "$work"' EXIT
K='--object secret,id=s,data=abc'
E=encrypt.format=luks,encrypt.key-secret=s,encrypt.iter-time=50
O=driver=qcow2,encrypt.key-secret=s,file.filename

warm $((4 * SIZE))
head -c "${SIZE}M" /dev/urandom >src.raw

# one NAME COMMAND...: wall and processor seconds into NAME.times
one()
{
	name=$1
	shift
	/usr/bin/env bash -c 'TIMEFORMAT="%R %U %S"; time "$@"' x "$@" 2>one.err || {
		cat one.err
		exit 1
	}
	tail -n 1 one.err | awk '{ print $1, $2 + $3 }' >>"$name.times"
}

# shellcheck disable=SC2086
both() # WHO CONVERT...: an image is made, so that deriving keys is not measured; there, and back
{
	who=$1
	shift
	"$PLATTER" create -q $K -f qcow2 -o $E image "${SIZE}M" || exit 1
	one "d.$who" "$@" -n $K -f raw src.raw --target-image-opts $O=image
	one "f.$who" "$@" $K --image-opts $O=image -O raw out.raw
	cmp src.raw out.raw || exit 1
	rm -f image out.raw
}

i=0
while [ $i -lt "$RUNS" ]; do
	both peer qemu-img convert -W -m 16
	both ours "$PLATTER" convert
	i=$((i + 1))
done

show() # NAME WHAT
{
	awk -v what="$2" '
	{ n[FILENAME]++; w[FILENAME] += $1; q[FILENAME] += $1 * $1; c[FILENAME] += $2 }
	END {
		p = ARGV[1]; o = ARGV[2]
		for (i = 1; i < 3; i++) {
			f = ARGV[i]; m = w[f] / n[f]; v = q[f] / n[f] - m * m
			printf "%-8s %s: wall %.2f s +- %.2f, processor %.2f s\n", \
				i == 1 ? "qemu-img" : "platter", what, m, sqrt(v > 0 ? v : 0), c[f] / n[f]
		}
		printf "ratio    %s: wall %.2f, processor %.2f\n", what, w[p] / w[o], c[o] / c[p]
	}' "$1.peer.times" "$1.ours.times"
}
show d 'encrypt'
show f 'decrypt'
