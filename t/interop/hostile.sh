#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/interop/hostile.sh - every recipe of t/fixtures/qcow2 and cow is assembled, and info,
# check, map and convert are run on the image within a second of processor time (and
# 5 of any, for a hang) and 1 GiB. Each must say what the recipe expects: no signal,
# no sanitizer report, one sentence where it fails, and the image unchanged. Sound
# recipes list lengths to which their image is cut as well.
#
# HOSTILE='a b' in the environment: only these recipes.

srctree=${srctree:-$(cd "$(dirname "$0")/../.." && pwd)}
O=${O:-$srctree/build}
B=${B:-$O}
PLATTER=${PLATTER:-$B/platter}
assemble=$B/t/fixtures/assemble
export LC_ALL=C
export ASAN_OPTIONS=exitcode=99 UBSAN_OPTIONS=exitcode=99 TSAN_OPTIONS=exitcode=99
tab=$(printf '\t')

work=$(mktemp -d) && cd "$work" || exit 1
trap 'cd / && rm -rf "$work"' EXIT

case $S in
*address*|*thread*) limit=unlimited seconds=unlimited ;;
*) limit=1048576 seconds=1 ;;
esac

tests=0
# result NAME [REASON TO SKIP]: a line of TAP; $why says what went wrong, line by line
result()
{
	tests=$((tests + 1))
	if [ -z "$why" ]; then
		echo "ok $tests - $1${2:+ # SKIP $2}"
	else
		echo "not ok $tests - $1"
		printf '%s' "$why" | sed 's/^/# /'
	fi
}

blame()
{
	why="$why$command: $1
"
}

# run ARGS...: sets $status; output in out and err
run()
{
	(
		# shellcheck disable=SC3045 # dash and bash have it
		ulimit -v "$limit"
		# shellcheck disable=SC3045
		ulimit -t "$seconds"
		exec timeout -k 1 5 "$PLATTER" "$@"
	) >out 2>err </dev/null
	status=$?
	if [ "$status" -ge 124 ]; then
		blame "ended with status $status (124: too slow; 128 and up: a signal)"
	elif grep -q 'Sanitizer\|runtime error' err; then
		blame "sanitizer: $(grep -m1 'Sanitizer\|runtime error' err)"
	elif grep -q '[[:cntrl:]]' err; then
		blame 'control characters on the terminal'
	fi
}

# one_sentence: exit status 1 and one line on stderr, without a full stop
one_sentence()
{
	[ "$status" = 1 ] || blame "exit status $status, not 1"
	case $(wc -l <err) in
	0) blame 'failed without a word' ;;
	1) ;;
	*) blame "more than one sentence: $(head -c 300 err)" ;;
	esac
	grep -q '^platter: [^ ].*[^.]$' err || blame "no sentence: $(head -c 300 err)"
}

counted() # KEY: the number that check's JSON gives, or 0
{
	n=$(grep -o "\"$1\": *[0-9]*" out | grep -o '[0-9]*$')
	echo "${n:-0}"
}

check_counts() # VERDICT
{
	corrupt=$(counted corruptions)
	leaks=$(counted leaks)
	for w in $1; do
		case $w in
		corruptions) [ "$corrupt" -gt 0 ] || blame 'no corruptions found' ;;
		corruptions=*|leaks=*)
			[ "$(counted "${w%=*}")" = "${w#*=}" ] ||
				blame "corruptions=$corrupt leaks=$leaks, not $1" ;;
		check-errors) [ "$(counted check-errors)" -gt 0 ] || blame 'nothing unread' ;;
		leaks) [ "$leaks" -gt 0 ] || blame 'no leaks found' ;;
		esac
	done
	case $1 in
	check-errors) want=1 ;;
	corruptions*) want=2 ;;
	*) want=3 ;;
	esac
	[ "$status" = $want ] || blame "exit status $status, not $want: $(head -c 200 err)"
}

# judge VERDICT TEXT: compares what $command said
judge()
{
	case $1 in
	error)
		one_sentence
		grep -qF -- "$2" err || blame "'$2' is not in: $(head -c 300 err)"
		return ;;
	corruptions*|leaks*|check-errors)
		check_counts "$1"
		return ;;
	esac
	[ "$status" = 0 ] || blame "exit status $status: $(head -c 300 err)"
	[ -s err ] && [ "$status" = 0 ] && blame "a complaint: $(head -c 300 err)"
	[ "$1" != guest ] || cmp -s out.raw guest.raw ||
		blame "other content: $(cmp out.raw guest.raw 2>&1)"
}

run_command()
{
	case $command in
	info) run info -f $format $image ;;
	check) run check -f $format --output=json $image ;;
	map) run map -f $format --output=json $image ;;
	convert)
		rm -f out.raw
		run convert -f $format -O raw $image out.raw ;;
	esac
}

unchanged()
{
	command=image
	[ "$(sha256sum <$image)" = "$before" ] || blame 'was changed'
}

recipe() # NAME
{
	why=
	command=assemble
	rm -f $image guest.raw
	if ! "$assemble" "$dir/$1.recipe" $image 2>err ||
		! "$assemble" -g "$dir/$1.recipe" guest.raw 2>err ||
		! "$assemble" -e "$dir/$1.recipe" >expect 2>err; then
		blame "$(cat err)"
		result "$1"
		return
	fi
	sym=$(sed -n "s/^needs$tab\([^$tab]*\).*/\1/p" expect)
	if [ "$sym" ] && [ -f "$O/.config" ] && ! grep -q "^CONFIG_$sym=y" "$O/.config"; then
		result "$1" "needs CONFIG_$sym"
		return
	fi
	sed -i '/^needs/d' expect
	[ "$(wc -l <expect)" = 4 ] || blame 'does not expect something of all four commands'
	before=$(sha256sum <$image)
	while IFS=$tab read -r command verdict text; do
		run_command
		judge "$verdict" "$text"
	done <expect
	unchanged
	result "$1"
}

# A cut image: any verdict, but a sane one. What convert reads from it is right or
# zero, for a file that ends early reads as zeroes from there on.
cut() # NAME LENGTH
{
	why=
	"$assemble" -t "$2" "$dir/$1.recipe" $image
	before=$(sha256sum <$image)
	for command in info check map convert; do
		run_command
		case $command-$status in
		*-0|check-2|check-3) ;;
		*) one_sentence ;;
		esac
	done
	if [ "$status" = 0 ]; then
		[ "$(stat -c %s out.raw)" = "$(stat -c %s guest.raw)" ] || blame 'other length'
		cmp -l guest.raw out.raw | awk '$3 != 0 { exit 1 }' || blame 'wrong bytes'
	fi
	unchanged
	result "$1 cut to $2"
}

# Our idea of a sound image is the peer's too.
peer() # NAME
{
	why=
	command=qemu-img
	"$assemble" "$dir/$1.recipe" $image
	"$assemble" -g "$dir/$1.recipe" guest.raw
	qemu-img check -f qcow2 $image >out 2>&1 || blame "check: $(head -c 300 out)"
	qemu-img convert -f qcow2 -O raw $image out.raw >out 2>&1 ||
		blame "convert: $(head -c 300 out)"
	cmp -s out.raw guest.raw || blame 'other content'
	result "$1 with qemu-img"
}

[ -x "$PLATTER" ] || { echo "1..0 # SKIP no $PLATTER"; exit 0; }
[ -x "$assemble" ] || { echo "1..0 # SKIP no $assemble"; exit 0; }

all() # FORMAT: its recipes, or those of $HOSTILE
{
	format=$1
	dir=$srctree/t/fixtures/$format
	image=image.$format
	for r in ${HOSTILE:-$(cd "$dir" && ls | sed -n 's/\.recipe$//p')}; do
		[ -f "$dir/$r.recipe" ] || continue
		recipe "$r"
		for n in $(grep -q '^cut ' "$dir/$r.recipe" &&
			"$assemble" -c "$dir/$r.recipe"); do
			cut "$r" "$n"
		done
	done
}

if ! [ -f "$O/.config" ] || grep -q '^CONFIG_FMT_COW=y' "$O/.config"; then
	all cow
fi
all qcow2
if [ -z "$HOSTILE" ] && command -v qemu-img >/dev/null; then
	for r in base-v2 base-v3 snapshot zstd; do
		peer $r
	done
fi
echo "1..$tests"
