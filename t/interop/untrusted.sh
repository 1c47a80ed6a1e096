#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/interop/untrusted.sh - files that are no images, and what an image may make the
# program open: `info` nothing but the image, and with --untrusted no command anything
# that it names. The backing file is a FIFO that nobody writes to: whoever opens it
# hangs, and is ended.

PLATTER=${PLATTER:-${B:-build}/platter}
export LC_ALL=C
tests=0
work=$(mktemp -d) && cd "$work" || exit 1
trap 'cd / && rm -rf "$work"' EXIT
case $S in
*address*|*thread*|*fuzzer*) limit=unlimited ;;
*) limit=1048576 ;;
esac

run() {
	(
		# shellcheck disable=SC3045 # dash and bash have it
		ulimit -v "$limit"
		exec timeout -k 1 5 "$PLATTER" "$@"
	) >out 2>err </dev/null
	status=$?
}

result() { # RESULT NAME
	tests=$((tests + 1))
	if [ "$1" = 0 ]; then
		echo "ok $tests - $2"
	else
		echo "not ok $tests - $2"
		sed 's/^/# /' out err
	fi
}

sentence() { # exit status 1 and one sentence
	[ "$status" = 1 ] && [ "$(wc -l <err)" = 1 ] && grep -q '^platter: [^ ]' err
}

refused() { # TEXT NAME
	sentence && grep -qF -- "$1" err
	result $? "$2"
}

# ---- what is no image ----

mkfifo fifo
mkdir dir
: >empty
printf Q >byte
for f in fifo dir empty byte; do
	for c in info check map convert; do
		case $c in
		convert) run $c -f qcow2 -O raw $f target ;;
		*) run $c -f qcow2 $f ;;
		esac
		sentence
		result $? "$c of $f"
	done
done
for f in fifo dir; do
	run info $f
	sentence
	result $? "info of $f without a format"
done

# ---- what an image names ----

run create -q -f qcow2 -u -b fifo -F raw overlay 1M
result "$status" 'an image on a FIFO'
run info overlay
result "$status" 'info opens one file'
run info -U --output=json overlay
result "$status" 'info with other options too'
run check overlay
result "$status" 'check opens one file'

says='names another file'
run info --untrusted overlay
result "$status" 'info --untrusted, which opens none anyway'
run check --untrusted overlay
result "$status" 'check --untrusted, likewise'
run --untrusted info --backing-chain overlay
refused "$says" '--untrusted before the command'
run info --untrusted --backing-chain overlay
refused "$says" 'info --backing-chain'
run map --untrusted overlay
refused "$says" map
run convert --untrusted -O raw overlay target
refused "$says" convert
[ ! -e target ]
result $? 'convert makes no target'
run compare --untrusted overlay overlay
[ "$status" -gt 1 ] && grep -qF "$says" err
result $? compare
run resize --untrusted overlay 2M
refused "$says" resize
run measure --untrusted -O qcow2 overlay
refused "$says" measure
run bench --untrusted -c 1 overlay
refused "$says" bench
run io --untrusted -c 'read 0 512' overlay
[ "$status" = 1 ] && grep -qF "$says" err
result $? io
run create --untrusted -f qcow2 -b overlay -F qcow2 top 1M
refused "$says" create
printf x >raw
truncate -s 1M raw
run convert --untrusted -n -O qcow2 raw overlay
refused "$says" 'convert -n into one'
run convert --untrusted -O qcow2 -B raw -F raw raw top
result "$status" 'what convert -B names has been given'
run create -q -f qcow2 plain 1M
run map --untrusted plain
result "$status" 'an image that names none'
echo "1..$tests"
